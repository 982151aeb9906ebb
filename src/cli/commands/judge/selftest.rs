//! `compeval judge selftest`: asks every declared judge to grade answers of known quality, and about nothing else; `judge
//! grade` asks in the same way.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use crate::action::Place;
use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure, stopped};
use crate::cli::format::{cost, count, number};
use crate::cli::project::{RemoteArgs, open_project, open_request, open_store, print_notices};
use crate::cli::screen::{Screen, print_failures};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{
    EngineOptions, Event, Listening, RunTotals, require_keys, require_prices, run_matrix,
};
use crate::judge::{DimensionResult, SelfTestVerdict};
use crate::pipeline::{Banks, ExternalAccess, OpenRequest, Overrides, Pipeline, first_few};
use crate::plan::FailedAction;
use crate::report::{Block, Section, TextTable};
use crate::scheduler::{Budget, RunOutcome, SchedulerOptions};
use base::units::Usd;
use store::cache::Store;

/// Missed cases that are named in a line; JSON has all.
const CASES_SHOWN: usize = 4;

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

pub(super) fn run(
    common: &Common,
    model: Option<&str>,
    budget: &BudgetArgs,
    remote: &RemoteArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let pipeline = judges_of(common, model, console)?;
    let AskedCases {
        totals,
        outcome,
        usd,
        ..
    } = ask_judges(&pipeline, budget, &remote.writing(), console)?;
    print(&pipeline, &totals, &outcome, usd, console);
    Ok(exit_of(&outcome, &totals, console))
}

/// The project without its banks, judged by `model` if one is named.
pub(super) fn judges_of(
    common: &Common,
    model: Option<&str>,
    console: &Console,
) -> Result<Pipeline, Failure> {
    let request = OpenRequest {
        overrides: Overrides {
            judge_model: model.map(str::to_owned),
            ..Overrides::default()
        },
        banks: Banks::Unread,
        ..open_request(common)?
    };
    open_project(&request, console)
}

/// The cases that could not be completed for reasons other than the judge's grading. A judge that repeats itself until
/// the token limit did reply, and would do no better if asked again.
fn unasked<'h>(totals: &'h RunTotals, judge: &str) -> Vec<&'h str> {
    let calls = totals.failures.iter().filter(|failure| is_unasked(failure));
    calls
        .filter_map(|failure| match &failure.place {
            Place::Selftest { judge: named, case } if named == judge => Some(case.as_str()),
            Place::Selftest { .. }
            | Place::Regrading { .. }
            | Place::Cell(_)
            | Place::Generation { .. } => None,
        })
        .collect()
}

fn print(
    pipeline: &Pipeline,
    totals: &RunTotals,
    ended: &RunOutcome,
    usd: Option<Usd>,
    console: &Console,
) {
    let tested: Vec<Tested<'_>> = (pipeline.judges.iter())
        .filter_map(|judge| {
            let name = &*judge.name.0;
            let verdict = totals.verdicts.get(name)?;
            let (model, unasked) = (judge.model.reference.to_string(), unasked(totals, name));
            let is_named = ended.untested.iter().any(|untested| untested.judge == name);
            let completed = unasked.is_empty() && ended.skipped == 0 && !is_named;
            Some(Tested {
                judge: name,
                model,
                verdict,
                unasked,
                completed,
            })
        })
        .collect();
    let (executed, cached) = (totals.executed(), totals.cached());
    console.report(
        &json!({ "judges": tested, "executed": executed, "cached": cached, "usd": usd }),
        || {
            let sections: Vec<Section> = tested.iter().map(section).collect();
            console.print(&console.document(&sections));
            console.note(&format!(
                "{} graded now ({}), {cached} from the cache",
                count(executed, "case"),
                cost(usd)
            ));
        },
    );
    print_failures(&totals.failures, usize::MAX, console);
}

fn section(tested: &Tested<'_>) -> Section {
    let columns = [
        "dimension",
        "right",
        "half right",
        "wrong",
        "missed",
        "longer",
        "",
    ];
    let rows = tested.verdict.dimensions.iter().map(|result| {
        let shift = result.length_shift.map(|shift| format!("{shift:+.2}"));
        let mark = match result.qualified {
            true => "✓",
            false => "✗ not qualified",
        };
        vec![
            result.dimension.name().replace('_', " "),
            number(result.median_right, 2),
            number(result.median_half, 2),
            number(result.median_wrong, 2),
            format!("{} of {}", result.misses.len(), result.labels),
            shift.unwrap_or_default(),
            mark.to_owned(),
        ]
    });
    let dimensions = Block::Table(TextTable::plain(&columns, &[6], rows));
    // The result first, then the medians that it is made of.
    let details = details(tested).into_iter().map(Block::plain);
    let blocks = [outcome(tested)].into_iter().chain(details);
    Section::plain(
        format!("{} ({})", tested.judge, tested.model),
        blocks.chain([dimensions]),
    )
}

fn outcome(tested: &Tested<'_>) -> Block {
    let verdict = tested.verdict;
    let graded = format!(
        "{} of {} labels graded as they should be",
        verdict.correct, verdict.labels
    );
    let names: Vec<&str> = verdict
        .unqualified()
        .map(|result| result.dimension.name())
        .collect();
    let (style, text) = match (verdict.may_grade, tested.completed) {
        (true, _) if names.is_empty() => (TextStyle::Good, format!("passed: {graded}")),
        (true, _) => {
            let names = names.join(", ");
            let out = format!(
                "partly: {graded}; not qualified in {names}, which leaves `overall` and the gate"
            );
            (TextStyle::Warning, out)
        }
        (false, true) => (TextStyle::Bad, format!("failed: {graded}")),
        (false, false) => {
            let why = "untested: some cases could not be asked";
            (TextStyle::Warning, why.to_owned())
        }
    };
    Block::Sentence(style, text)
}

/// Why a judge failed, and what it missed, if it was asked about all cases.
fn details(tested: &Tested<'_>) -> Vec<String> {
    if !tested.completed {
        return Vec::new();
    }
    let verdict = tested.verdict;
    let failures = verdict.failures.iter();
    let mut lines: Vec<String> = failures.map(|failure| format!("  {failure}")).collect();
    for result in verdict.unqualified() {
        if verdict.may_grade {
            let (name, why) = (result.dimension.name(), result.failures.join("; "));
            lines.push(format!("  {name}: {why}"));
        }
        lines.extend(missed_line(result));
    }
    lines
}

/// The first cases that the judge missed in a dimension; JSON has all.
fn missed_line(result: &DimensionResult) -> Option<String> {
    let cases: Vec<&String> = result.misses.iter().map(|case| &case.0).collect();
    let (name, shown) = (result.dimension.name(), first_few(&cases, CASES_SHOWN));
    (!cases.is_empty()).then(|| format!("  {name} missed: {shown}"))
}

/// Whether the judge gave no reply at all.
fn is_unasked(failure: &FailedAction) -> bool {
    failure.class.is_some_and(|class| !class.was_answered())
}

fn exit_of(ended: &RunOutcome, totals: &RunTotals, console: &Console) -> Exit {
    if let Some(exit) = stopped(ended, console) {
        return exit;
    }
    if !ended.weak_judges.is_empty() {
        return Exit::Error;
    }
    if ended.skipped > 0 || !ended.untested.is_empty() || totals.failures.iter().any(is_unasked) {
        console.eprint("the judge could not be asked about every case; run it again when it can");
        return Exit::Incomplete;
    }
    if totals.verdicts.values().all(|verdict| verdict.may_grade) {
        Exit::Done
    } else {
        Exit::Error
    }
}

/// What came of the cases. The grades are in the store.
pub(super) struct AskedCases {
    pub(super) store: Store,
    pub(super) totals: RunTotals,
    pub(super) outcome: RunOutcome,
    /// What the replies cost; `None` where a price is unknown.
    pub(super) usd: Option<Usd>,
}

/// Asks about the cases that are not graded in the cache or the remote. A judge that fails is asked all the same.
///
/// # Errors
/// There is no judge, a key or a price is missing, or the store or the remote cannot be used.
pub(super) fn ask_judges(
    pipeline: &Pipeline,
    budget: &BudgetArgs,
    remote: &RemoteArgs,
    console: &Console,
) -> Result<AskedCases, Failure> {
    if pipeline.judges.is_empty() {
        let hint = "add a [[judge]] table to the pipeline";
        return Err(Failure::input("the project has no judge").hinted(hint));
    }
    let models = pipeline.judges.iter().map(|judge| &judge.model);
    require_keys(models.clone())?;
    let allowance = budget.limits();
    require_prices(&allowance, models, pipeline)?;
    let store = open_store(&pipeline.cache, console)?;
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    let mut screen = Screen::new(console);
    let options = EngineOptions {
        run: SchedulerOptions {
            without_cells: true,
            allow_weak_judge: true,
            ..SchedulerOptions::default()
        },
        budget: Arc::new(Budget::new(allowance)),
        shared: remote.connect(&pipeline.remote, console)?,
        access: (!console.is_quiet).then(|| ExternalAccess::from_pipeline(pipeline)),
        stop: Some(screen.stop()),
        ..EngineOptions::default()
    };
    let mut show = |event: &Event<'_>| screen.on_event(event);
    let listening = Listening::new(&mut show);
    let outcome = run_matrix(pipeline, &store, &options, &listening, None)?;
    store.sync()?;
    print_notices(&store, console);
    Ok(AskedCases {
        store,
        totals: listening.totals().clone(),
        outcome,
        usd: options.budget.spent().usd,
    })
}
