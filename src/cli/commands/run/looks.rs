//! `run --until-decided`: fixtures are added until the comparison has a verdict; those that are not needed are not paid for.
//!
//! There is a look after each of [`LOOKS`], in the order of the transcripts' digests, which nobody chooses. Every look
//! tests at [`stats::thresholds::LOOK_ALPHA`], so that all looks together find a nonexistent difference no more
//! often than one comparison at 5%. A look is a run of its label that only adds to the previous look.

use super::args::RunArgs;
use super::matrix_run::{PreparedRun, PublishedRun, publish_run};
use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::count;
use crate::cli::project::{ProjectOptions, label_of, read_project, with_store};
use crate::cli::terminal::{Console, TextStyle};
use crate::results::{Comparison, Label, Manifest, ResultsFolder, open_side};

/// Fixtures after which there is a look.
const LOOKS: [usize; 3] = [4, 8, 12];

pub(super) fn run_until_decided(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let label = label_of(&args.select)?;
    let (fixtures, begun) = fixtures(common, args, &label)?;
    let last = LOOKS.into_iter().max().unwrap_or_default().min(fixtures.len());
    let looks = LOOKS.into_iter().filter(|size| *size < last && *size >= begun).chain([last]);
    let mut before: Option<Manifest> = None;
    for size in looks {
        let mut look = args.clone();
        look.select.label = Some(label.to_string());
        look.select.fixtures = fixtures.iter().take(size).cloned().collect();
        look.replace = args.replace && before.is_none();
        look.budget = left(&args.budget, before.as_ref());
        // Warnings about the project are the same at each look.
        let quiet = if before.is_some() { console.silenced() } else { *console };
        let prepare = || PreparedRun::of(common, &look, &quiet);
        let (prepared, store) = with_store(common, &quiet, prepare, PreparedRun::cache)?;
        let add = |manifest: &mut Manifest, exit| {
            before.iter().for_each(|before| add_look(manifest, before));
            exit
        };
        let published: PublishedRun = publish_run(prepared, store, &look, add, console)?;
        let comparison = published.results.summary.comparison.as_ref();
        if size == last || published.exit != Exit::Done || comparison.is_none_or(Comparison::has_verdict) {
            return published.conclude(&look, console);
        }
        let line = format!("no verdict after {} of at most {last}; continuing", count(size, "fixture"));
        console.note(&console.labelled(TextStyle::Hint, "look:", line));
        before = Some(published.results.manifest);
    }
    Ok(Exit::Done)
}

/// The selected fixtures that the baseline has too, in the order of their transcripts' digests; and how many of them,
/// from the first, a look that already took place needs.
fn fixtures(common: &Common, args: &RunArgs, label: &Label) -> Result<(Vec<String>, usize), Failure> {
    let pipeline = read_project(common, &args.select, ProjectOptions::default())?.pipeline;
    let baseline = args.comparison.compare_to.as_deref().unwrap_or_default();
    let (baseline, _) = open_side(&pipeline.results, baseline)?;
    let known = baseline.manifest()?.design;
    let shared = pipeline.fixtures.iter().filter(|loaded| known.fixture(loaded.name()).is_some());
    let mut ordered: Vec<(String, String)> =
        shared.map(|loaded| (loaded.digests.transcript.to_string(), loaded.name().to_owned())).collect();
    ordered.sort();
    let names: Vec<String> = ordered.into_iter().map(|(_, name)| name).collect();
    let first = LOOKS.into_iter().min().unwrap_or_default();
    if names.len() < first {
        let have = count(names.len(), "fixture");
        let message = format!("--until-decided needs {first} fixtures that the baseline has too: there is {have}");
        return Err(Failure::input(message).hinted("run without --until-decided compares what there is"));
    }
    let earlier = ResultsFolder::of(&pipeline.results, label).manifest().ok().filter(|_| !args.replace);
    let is_in = |name: &String| earlier.as_ref().is_some_and(|earlier| earlier.design.fixture(name).is_some());
    let begun = names.iter().rposition(is_in).map_or(0, |at| at + 1);
    Ok((names, begun))
}

/// What the looks so far left of a budget.
fn left(budget: &BudgetArgs, before: Option<&Manifest>) -> BudgetArgs {
    let Some(before) = before else { return budget.clone() };
    let spent = before.usd.unwrap_or_default().0;
    BudgetArgs {
        max_cost: budget.max_cost.map(|limit| (limit - spent).max(0.0)),
        max_requests: budget.max_requests.map(|limit| limit.saturating_sub(before.requests_sent)),
    }
}

/// Adds what the looks before sent and paid.
fn add_look(manifest: &mut Manifest, before: &Manifest) {
    manifest.started.clone_from(&before.started);
    manifest.wall_s += before.wall_s;
    for (stage, counts) in &mut manifest.stages {
        let executed = before.stages.get(stage).map_or(0, |before| before.executed).min(counts.cached);
        counts.executed += executed;
        counts.cached -= executed;
    }
    manifest.add_spending(before);
    if before.requests_sent > 0 {
        manifest.saved_by_prompt_cache += before.saved_by_prompt_cache;
        manifest.forecast = None;
    }
}
