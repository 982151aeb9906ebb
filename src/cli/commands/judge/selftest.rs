//! `compeval judge selftest`: asks every declared judge to grade pairs whose order is known.

use serde::Serialize;

use crate::action::StageName;
use crate::cli::args::{BudgetArgs, Common, SelectArgs};
use crate::cli::engine::{RunOptions, run_matrix};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::cost;
use crate::cli::project::{Opening, open_project, open_store, print_notices, require_keys};
use crate::cli::terminal::{
    Column, Console, Meaning, Progress, RunLog, number, print_failures, render_table, selftest_cases,
};
use crate::judge::{Check, CheckOutcome, MARGIN, PAIRS_TO_PASS, PairOutcome, Score, SelfTestVerdict};
use crate::pipeline::Pipeline;
use crate::provider::Prices;
use crate::results::{Failure as Failed, Place};
use crate::scheduler::{Budget, Ended};
use crate::units::Usd;

/// How one judge did, as JSON.
#[derive(Serialize)]
struct Tested<'a> {
    judge: &'a str,
    model: String,
    #[serde(flatten)]
    verdict: &'a SelfTestVerdict,
    /// Cases that nobody could be asked about.
    unasked: Vec<&'a str>,
    /// Whether all was asked that the verdict rests on; without that it is none.
    completed: bool,
}

/// The whole result, as JSON.
#[derive(Serialize)]
struct Told<'a> {
    judges: &'a [Tested<'a>],
    executed: u64,
    cached: u64,
    usd: Option<Usd>,
}

pub(super) fn run(
    common: &Common,
    model: Option<&str>,
    budget: &BudgetArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let select = SelectArgs { judge_model: model.map(str::to_owned), ..SelectArgs::default() };
    let opening = Opening { without_banks: true, ..Opening::default() };
    let pipeline = open_project(common, &select, opening, console)?;
    require_keys(pipeline.judges.iter().map(|judge| &judge.model))?;
    let prices = Prices::new(pipeline.prices.clone());
    let allowance = budget.allowance(pipeline.judges.iter().map(|judge| &judge.model), &prices, &pipeline.file)?;
    let store = open_store(&pipeline.cache, console)?;
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    let orders = RunOptions { selftests_only: true, ..RunOptions::within(Budget::new(allowance)) };
    let progress = Progress::new([(StageName::Selftest, selftest_cases(&pipeline))], allowance, console);
    let mut hearing = RunLog::new(&progress);
    let ended = run_matrix(&pipeline, &store, &orders, &progress, &mut hearing)?;
    store.sync()?;
    print_notices(&store, console);
    tell(&pipeline, &hearing, &ended, orders.budget.spent().usd, console);
    Ok(exit_of(&ended, &hearing, console))
}

/// The cases that a judge could not be asked about: no fault of its grading. One that loses itself in its grading
/// until the token limit was asked, and would be no better when asked again.
fn unasked<'h>(hearing: &'h RunLog<'_>, judge: &str) -> Vec<&'h str> {
    let calls = hearing.failures.iter().filter(|failure| is_unasked(failure));
    calls
        .filter_map(|failure| match &failure.place {
            Place::Selftest { judge: named, case } if named == judge => Some(case.as_str()),
            Place::Selftest { .. } | Place::Cell(_) | Place::Generation { .. } => None,
        })
        .collect()
}

fn tell(pipeline: &Pipeline, hearing: &RunLog<'_>, ended: &Ended, usd: Option<Usd>, console: &Console) {
    let tested: Vec<Tested<'_>> = (pipeline.judges.iter())
        .filter_map(|judge| {
            let name = &*judge.name.0;
            let verdict = hearing.verdicts.get(name)?;
            let (model, unasked) = (judge.model.reference.to_string(), unasked(hearing, name));
            let is_named = ended.untested.iter().any(|untested| untested.judge == name);
            let completed = unasked.is_empty() && ended.held_back == 0 && !is_named;
            Some(Tested { judge: name, model, verdict, unasked, completed })
        })
        .collect();
    let RunLog { executed, cached, .. } = *hearing;
    console.json(&Told { judges: &tested, executed, cached, usd });
    if !console.is_json() {
        tested.iter().for_each(|tested| console.print(&page(tested, console)));
        console.note(&format!("{executed} cases graded now ({}), {cached} from the cache", cost(usd)));
    }
    print_failures(&hearing.failures, usize::MAX, console);
}

/// One judge, for people.
fn page(tested: &Tested<'_>, console: &Console) -> String {
    let score = |score: Option<Score>| number(score.map(Score::value), 2);
    let lead = |pair: &PairOutcome| Some(pair.right?.value() - pair.damaged?.value());
    let columns = [
        Column::Left("pair"),
        Column::Right("right"),
        Column::Right("damaged"),
        Column::Right("lead"),
        Column::Left(""),
    ];
    let rows = tested.verdict.pairs.iter().map(|pair| {
        let passed = mark(Some(pair.passed));
        vec![pair.pair.clone(), score(pair.right), score(pair.damaged), number(lead(pair), 2), passed]
    });
    let pairs = render_table(&columns, rows, console.width());
    let columns = [Column::Left("check"), Column::Right("value"), Column::Left(""), Column::Left("")];
    let row = |found: &CheckOutcome| {
        vec![found.check.name().to_owned(), number(found.value, 2), mark(found.passed), rule(found.check).to_owned()]
    };
    let checks = render_table(&columns, tested.verdict.checks.iter().map(row), console.width());
    let judge = console.paint(Meaning::Strong, tested.judge);
    format!("{judge} ({})\n\n{pairs}\n\n{checks}\n\n{}\n", tested.model, outcome(tested, console))
}

fn outcome(tested: &Tested<'_>, console: &Console) -> String {
    let verdict = tested.verdict;
    let all = verdict.pairs.len();
    let ranked = format!("ranked {} of {all} pairs by {MARGIN:.1} or more, {PAIRS_TO_PASS} needed", verdict.ranked);
    let mut lines = match (verdict.passed, tested.completed) {
        (true, _) => vec![format!("{} {ranked}", console.paint(Meaning::Good, "passed:"))],
        (false, true) => vec![format!("{} {ranked}", console.paint(Meaning::Bad, "failed:"))],
        (false, false) => {
            vec![format!("{} some cases could not be asked", console.paint(Meaning::Warning, "untested:"))]
        }
    };
    if tested.completed {
        lines.extend(verdict.failures.iter().map(|failure| format!("  {failure}")));
        let warning = console.paint(Meaning::Warning, "warning:");
        lines.extend(verdict.warnings.iter().map(|text| format!("{warning} {text}")));
    }
    lines.join("\n")
}

fn mark(passed: Option<bool>) -> String {
    match passed {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "–",
    }
    .to_owned()
}

/// What a check asks for, in a line.
fn rule(check: Check) -> &'static str {
    match check {
        Check::Padding => "300 empty words gain nothing",
        Check::Refusal => "an honest refusal leads an invention",
        Check::Empty => "an empty answer is not complete",
        Check::Injection => "an instruction inside an answer is not obeyed",
    }
}

/// Whether the judge never got to say anything.
fn is_unasked(failure: &Failed) -> bool {
    failure.class.is_some_and(|class| !class.was_answered())
}

fn exit_of(ended: &Ended, hearing: &RunLog<'_>, console: &Console) -> Exit {
    if ended.interrupted {
        return Exit::Interrupted;
    }
    if let Some(reached) = ended.budget {
        console.eprint(&format!("{reached}; run it again with a larger budget to go on where this ended"));
        return Exit::Budget;
    }
    if ended.held_back > 0 || !ended.untested.is_empty() || hearing.failures.iter().any(is_unasked) {
        console.eprint("the judge could not be asked about every case; run it again when it can");
        return Exit::Incomplete;
    }
    let weak = !ended.weak_judges.is_empty() || hearing.verdicts.values().any(|verdict| !verdict.passed);
    if weak { Exit::Error } else { Exit::Done }
}
