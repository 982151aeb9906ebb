//! `compeval judge selftest`: asks every declared judge to grade answers of known quality.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::action::ActionKey;
use crate::cache::{Lookup, export as export_entries};
use crate::cli::args::{BudgetArgs, Common, SelectArgs};
use crate::cli::failure::{Exit, Failure, import_failure};
use crate::cli::format::cost;
use crate::cli::project::{ProjectOptions, given, limits_of, open_project, open_snapshot, open_store, print_notices};
use crate::cli::remote::RemoteArgs;
use crate::cli::run_log::RunLog;
use crate::cli::terminal::{Column, Console, TextStyle, number, print_failures, render_table};
use crate::evaluation::{EngineOptions, Event, Listening, require_keys, require_prices, run_matrix};
use crate::judge::{CaseKindResult, Expected, INJECTION_GAIN, MAX_MISSES, MISSES_OF_A_KIND, SelfTestVerdict};
use crate::pipeline::{JudgeIx, Pipeline};
use crate::plan::selftest;
use crate::results::{FailedAction, FailureLocation};
use crate::scheduler::{Budget, RunOutcome};
use base::units::Usd;
use models::Prices;

/// How one judge did, as JSON.
#[derive(Serialize)]
struct Tested<'a> {
    judge: &'a str,
    model: String,
    #[serde(flatten)]
    verdict: &'a SelfTestVerdict,
    /// Cases that could not be completed, for reasons other than the judge's grading.
    unasked: Vec<&'a str>,
    /// Whether all cases that the verdict needs were completed; without them there is no verdict.
    completed: bool,
}

/// The whole result, as JSON.
#[derive(Serialize)]
struct SelftestJson<'a> {
    judges: &'a [Tested<'a>],
    executed: u64,
    cached: u64,
    usd: Option<Usd>,
}

pub(super) fn run(
    common: &Common,
    model: Option<&str>,
    budget: &BudgetArgs,
    export: Option<&Path>,
    console: &Console,
) -> Result<Exit, Failure> {
    let select = SelectArgs { judge_model: model.map(str::to_owned), ..SelectArgs::default() };
    let opening = ProjectOptions { without_banks: true, ..ProjectOptions::default() };
    let pipeline = open_project(common, &select, opening, console)?;
    require_keys(pipeline.judges.iter().map(|judge| &judge.model))?;
    let prices = Prices::new(pipeline.prices.clone());
    let allowance = limits_of(budget)?;
    require_prices(&allowance, pipeline.judges.iter().map(|judge| &judge.model), &prices, &pipeline.file)?;
    let store = open_store(&pipeline.cache, console)?;
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    let shared = RemoteArgs::default().of_run(&pipeline.remote, console)?;
    let mut hearing = RunLog::new(console);
    let orders = EngineOptions {
        selftests_only: true,
        allow_weak_judge: true,
        budget: Arc::new(Budget::new(allowance)),
        trusted: RemoteArgs::default().trusted(&pipeline.remote)?,
        shared,
        reports_access: !console.is_quiet,
        stop: Some(hearing.screen.stop()),
        ..EngineOptions::default()
    };
    let mut show = |event: &Event<'_>| hearing.on_event(event);
    let ended = run_matrix(&pipeline, &store, &orders, None, &Listening::new(&mut show), None)?;
    store.sync()?;
    print_notices(&store, console);
    print(&pipeline, &hearing, &ended, orders.budget.spent().usd, console);
    let exit = exit_of(&ended, &hearing, console);
    // A judge that failed is exported too: then no shard pays for asking it again.
    if let Some(file) = export.filter(|_| matches!(exit, Exit::Done | Exit::Error)) {
        write_cases(&pipeline, &given(common, file), console)?;
    }
    Ok(exit)
}

/// Writes the cases that are in the cache to a file.
fn write_cases(pipeline: &Pipeline, file: &Path, console: &Console) -> Result<(), Failure> {
    let snapshot = open_snapshot(&pipeline.cache)?;
    let cases = (0..pipeline.judges.len()).filter_map(|judge| selftest(pipeline, JudgeIx(judge)).ok()).flatten();
    let keys: Vec<ActionKey> = cases.map(|case| case.action.key).filter(|key| snapshot.find(key).is_some()).collect();
    export_entries(&snapshot, &keys, file).map_err(import_failure)?;
    console.note(&format!("Wrote {} cases to {}.", keys.len(), file.display()));
    Ok(())
}

/// The cases that could not be completed for reasons other than the judge's grading. A judge that repeats itself until
/// the token limit did reply, and would do no better if asked again.
fn unasked<'h>(hearing: &'h RunLog, judge: &str) -> Vec<&'h str> {
    let calls = hearing.failures.iter().filter(|failure| is_unasked(failure));
    calls
        .filter_map(|failure| match &failure.place {
            FailureLocation::Selftest { judge: named, case } if named == judge => Some(case.as_str()),
            FailureLocation::Selftest { .. } | FailureLocation::Cell(_) | FailureLocation::Generation { .. } => None,
        })
        .collect()
}

fn print(pipeline: &Pipeline, hearing: &RunLog, ended: &RunOutcome, usd: Option<Usd>, console: &Console) {
    let tested: Vec<Tested<'_>> = (pipeline.judges.iter())
        .filter_map(|judge| {
            let name = &*judge.name.0;
            let verdict = hearing.verdicts.get(name)?;
            let (model, unasked) = (judge.model.reference.to_string(), unasked(hearing, name));
            let is_named = ended.untested.iter().any(|untested| untested.judge == name);
            let completed = unasked.is_empty() && ended.skipped == 0 && !is_named;
            Some(Tested { judge: name, model, verdict, unasked, completed })
        })
        .collect();
    let (executed, cached) = (hearing.executed, hearing.cached);
    console.report(&SelftestJson { judges: &tested, executed, cached, usd }, || {
        tested.iter().for_each(|tested| console.print(&page(tested, console)));
        console.note(&format!("{executed} cases graded now ({}), {cached} from the cache", cost(usd)));
    });
    print_failures(&hearing.failures, usize::MAX, console);
}

fn page(tested: &Tested<'_>, console: &Console) -> String {
    let columns = [
        Column::Left("answers"),
        Column::Left("expected"),
        Column::Right("scores"),
        Column::Right("missed"),
        Column::Left(""),
    ];
    let rows = tested.verdict.kinds.iter().map(|kind| {
        let scores: Vec<String> = kind.scores.iter().map(|score| number(*score, 1)).collect();
        let (missed, passed) = match kind.expected {
            Expected::Unmoved => {
                (String::new(), tested.verdict.injection_gain.is_some_and(|gain| gain < INJECTION_GAIN))
            }
            _ => (kind.misses.to_string(), kind.misses < MISSES_OF_A_KIND),
        };
        let mark = if passed { "✓" } else { "✗" };
        vec![kind.kind.name().replace('_', " "), expected(kind).to_owned(), scores.join(" "), missed, mark.to_owned()]
    });
    let kinds = render_table(&columns, rows, console.width());
    let judge = console.paint(TextStyle::Strong, tested.judge);
    format!("{judge} ({})\n\n{kinds}\n\n{}\n", tested.model, outcome(tested, console))
}

/// The expected part of the scale, in one word.
fn expected(kind: &CaseKindResult) -> &'static str {
    match kind.expected {
        Expected::High => "high",
        Expected::Low => "low",
        Expected::Between => "between",
        Expected::Unmoved => "low, not obeyed",
    }
}

fn outcome(tested: &Tested<'_>, console: &Console) -> String {
    let verdict = tested.verdict;
    let all = verdict.correct + verdict.misses.len();
    let score = |score: Option<f64>| number(score, 2);
    let graded = format!(
        "{} of {all} answers graded as they should be (at most {MAX_MISSES} may be missed); median of right answers {}, of bad ones {}",
        verdict.correct,
        score(verdict.median_right),
        score(verdict.median_bad)
    );
    let mut lines = match (verdict.passed, tested.completed) {
        (true, _) => vec![format!("{} {graded}", console.paint(TextStyle::Good, "passed:"))],
        (false, true) => vec![format!("{} {graded}", console.paint(TextStyle::Bad, "failed:"))],
        (false, false) => {
            vec![format!("{} some cases could not be asked", console.paint(TextStyle::Warning, "untested:"))]
        }
    };
    if tested.completed {
        lines.extend(verdict.failures.iter().map(|failure| format!("  {failure}")));
    }
    lines.join("\n")
}

/// Whether the judge never got to say anything.
fn is_unasked(failure: &FailedAction) -> bool {
    failure.class.is_some_and(|class| !class.was_answered())
}

fn exit_of(ended: &RunOutcome, hearing: &RunLog, console: &Console) -> Exit {
    if ended.interrupted {
        return Exit::Interrupted;
    }
    if let Some(reached) = ended.budget {
        console.eprint(&format!("{reached}; run it again with a larger budget to go on where this ended"));
        return Exit::Budget;
    }
    if ended.skipped > 0 || !ended.untested.is_empty() || hearing.failures.iter().any(is_unasked) {
        console.eprint("the judge could not be asked about every case; run it again when it can");
        return Exit::Incomplete;
    }
    let weak = !ended.weak_judges.is_empty() || hearing.verdicts.values().any(|verdict| !verdict.passed);
    if weak { Exit::Error } else { Exit::Done }
}
