//! `compeval plan`: what would run, what is cached and why, and the estimated cost.

use std::collections::HashMap;

use clap::Args;
use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use super::cache::snapshot;
use crate::action::StageName;
use crate::cli::args::{Common, SelectArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{cost, count, short};
use crate::cli::project::{RemoteArgs, baseline_of, open_project, selecting_request};
use crate::cli::screen::access_line;
use crate::cli::terminal::{Console, TextStyle, labelled, typed_again};
use crate::entries::{Journal, Refresh};
use crate::evaluation::{
    Baseline, EvaluationError, baseline_actions, check_baseline, forecast_run,
};
use crate::pipeline::{ExternalAccess, MatrixSelection, Pipeline, first_few};
use crate::plan::{Forecast, ReasonGroup, StaleCause, TooLong, reachable};
use crate::report::{Block, TextTable, styled};
use crate::results::{Design, Label, ReadingCheck, all_sets, unfinished_refresh};
use base::locale::Locale;

use stats::{DifferenceVariances, SampleSizes, regraded_answers};
use store::remote::RemoteEntries;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Also say what has changed since this label, or since the results folder at this path (./FOLDER); `previous`, also
    /// without a name, is the newest complete results
    #[arg(long, value_name = "LABEL", num_args = 0..=1, default_missing_value = Label::PREVIOUS)]
    pub(crate) compare_to: Option<String>,
    /// Exit with 7 if work is pending
    #[arg(long)]
    pub(crate) exit_code: bool,
}

pub(crate) fn run(common: &Common, args: &PlanArgs, console: &Console) -> Result<Exit, Failure> {
    let plan = plan_project(common, args, console)?;
    print(&plan, console);
    let is_pending = plan.forecast.is_pending() || plan.most_checks > 0;
    Ok(if args.exit_code && is_pending {
        Exit::Pending
    } else {
        Exit::Done
    })
}

/// What would run, and which hosts it would reach.
#[derive(Serialize)]
struct ProjectPlan {
    #[serde(flatten)]
    forecast: Forecast,
    access: ExternalAccess,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteJson>,
    /// The smallest difference of two methods, in points, that gets a verdict in 80% of repetitions with this many
    /// fixtures, questions and runs, and usual noise; null where there is no verdict.
    smallest_change: Option<f64>,
    #[serde(skip)]
    fixtures: Option<usize>,
    /// The label that a run with these arguments writes, where one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The most requests that grade answers of a baseline again (`run --compare-to`).
    #[serde(skip_serializing_if = "Option::is_none")]
    most_regradings: Option<usize>,
    /// The baseline of `since_baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_to: Option<String>,
    /// Whether a run can be compared with the baseline only with `--only-common`.
    #[serde(skip)]
    only_common: bool,
    /// The most requests that check whether the judges read: answers of the run, graded again.
    most_checks: usize,
}

/// The variances of a difference of two prompts that are usual with models of 2025, in points².
const USUAL: DifferenceVariances = DifferenceVariances {
    fixture: 0.06,
    probe: 0.36,
    compress_run: 0.18,
    compress_probe: 0.10,
    answer: 0.18,
    judge: 0.30,
};

fn smallest_change(pipeline: &Pipeline) -> Option<f64> {
    let probes: usize = pipeline
        .fixtures
        .iter()
        .flat_map(|fixture| &fixture.selected)
        .map(Vec::len)
        .sum();
    let runs = pipeline.settings.runs;
    USUAL.smallest_detectable(&SampleSizes {
        fixtures: pipeline.fixtures.len(),
        probes: probes as f64 / pipeline.fixtures.len().max(1) as f64,
        runs: runs.compress,
        answers: runs.answer,
        judgements: runs.judge,
    })
}

/// The line on the smallest change that the selection can find; none without questions.
fn change_line(plan: &ProjectPlan) -> Option<String> {
    let fixtures = count(plan.fixtures? as u64, "fixture");
    Some(match plan.smallest_change {
        Some(points) => format!(
            "Verdict: {fixtures} find a difference of {points:.2} points in 80% of cases; more fixtures find a smaller one."
        ),
        None => format!("Verdict: none with {fixtures}; three are needed."),
    })
}

/// The most requests that check judges on answers of a whole run. A selection is checked by what the cache has, and so is a
/// run of the design of earlier results.
fn most_checks(pipeline: &Pipeline) -> usize {
    let design = Design::from_pipeline(pipeline);
    let was_checked = || {
        let sets = all_sets(&pipeline.results).unwrap_or_default();
        let mut manifests = sets.iter().filter_map(|set| set.manifest().ok());
        manifests.any(|known| !known.caveats.reading.is_empty() && known.design == design)
    };
    if !pipeline.settings.regrade || was_checked() {
        return 0;
    }
    2 * asked_judges(pipeline) * ReadingCheck::ANSWERS
}

/// The most requests of a comparison that check the judges: for each method, and for the mean of several.
fn most_regradings(pipeline: &Pipeline) -> usize {
    let subjects = pipeline.methods.len() + usize::from(pipeline.methods.len() > 1);
    subjects * asked_judges(pipeline) * regraded_answers(0.0)
}

fn asked_judges(pipeline: &Pipeline) -> usize {
    pipeline
        .judges
        .iter()
        .filter(|judge| judge.model.is_asked())
        .count()
}

#[derive(Serialize)]
struct RemoteJson {
    url: String,
    /// Whether it answered.
    asked: bool,
    /// Whether the time was over before everything was looked for.
    is_cut_off: bool,
}

/// Prints the plan. What the run sends and costs is the first line.
fn print(plan: &ProjectPlan, console: &Console) {
    console.report(plan, || {
        let text = styled(&blocks(plan), console.whole_width());
        console.print(&text);
        let regradings = plan.most_regradings.filter(|most| *most > 0);
        let remote = plan.remote.as_ref();
        let remote = remote.and_then(|remote| remote_note(remote, &plan.forecast));
        for text in regradings.map(regrading_note).into_iter().chain(remote) {
            console.note(&console.labelled_prose(TextStyle::Hint, "note:", text));
        }
        console.print(&next_line(plan, console));
    });
}

/// The note on requests that a comparison may add.
fn regrading_note(most: usize) -> String {
    format!(
        "for each verdict, answers of the baseline are graded again, to see whether the judge has changed: at most {most} more \
         requests, in no figure above"
    )
}

/// The note on what a run pulls from the remote, or could pull.
fn remote_note(
    RemoteJson {
        url, is_cut_off, ..
    }: &RemoteJson,
    forecast: &Forecast,
) -> Option<String> {
    if *is_cut_off {
        return Some(format!(
            "{url} was not looked through to the end, which takes too long for a plan: what it has beyond this counts as \
             pending"
        ));
    }
    let pulled: u64 = forecast.stages.values().map(|stage| stage.remote).sum();
    (pulled > 0).then(|| {
        format!(
            "only in {url}: {}, downloaded at no cost",
            count(pulled, "cached output")
        )
    })
}

/// The plan as a command prints it. A run that would be refused has no plan.
fn plan_project(
    common: &Common,
    args: &PlanArgs,
    console: &Console,
) -> Result<ProjectPlan, Failure> {
    let PlanArgs {
        select,
        remote,
        compare_to,
        ..
    } = args;
    let baseline = baseline_of(common, compare_to.as_deref(), select, true, console)?;
    let request = selecting_request(common, select)?;
    let pipeline = open_project(&request, console)?;
    let only_common = match &baseline {
        Some(baseline) => needs_only_common(&pipeline, &request.selection, baseline)?,
        None => false,
    };
    let url = remote
        .given()?
        .place(&pipeline.remote)
        .map(ToString::to_string);
    let remote = remote.connect_for_plan(&pipeline.remote, console)?;
    let explained = match &baseline {
        Some(baseline) => baseline_actions(&pipeline, baseline)?,
        None => HashMap::new(),
    };
    let snapshot = snapshot(&pipeline.cache, console)?;
    let refreshed = select.refresh.iter().copied().collect();
    let journal = Journal::read(&snapshot)?;
    // The refresh that a run with these arguments would do.
    let refresh = match unfinished_refresh(&pipeline.results, &refreshed) {
        Some((_, refresh)) => refresh,
        None => Refresh::new(refreshed),
    };
    let forecast = match &remote {
        None => forecast_run(&pipeline, &snapshot, &journal, refresh, Some(&explained)),
        Some(remote) => {
            let both = remote.below(&snapshot);
            // What a stage needs is known from what the one before gave.
            while {
                reachable(&pipeline, &both).map_err(EvaluationError::from)?;
                remote.get_wanted()
            } {}
            forecast_run(&pipeline, &both, &journal, refresh, Some(&explained))
        }
    };
    let forecast = forecast.map_err(EvaluationError::from)?;
    for warning in remote.iter().flat_map(RemoteEntries::take_warnings) {
        console.warn("remote:", warning);
    }
    let asked = remote.as_ref().is_some_and(RemoteEntries::is_answering);
    let is_cut_off = remote.as_ref().is_some_and(RemoteEntries::is_cut_off);
    Ok(ProjectPlan {
        forecast,
        access: ExternalAccess::from_pipeline(&pipeline),
        remote: url.map(|url| RemoteJson {
            url,
            asked,
            is_cut_off,
        }),
        smallest_change: smallest_change(&pipeline),
        fixtures: (!pipeline.judges.is_empty()).then_some(pipeline.fixtures.len()),
        label: select.label.as_ref().map(Label::to_string),
        most_checks: match request.selection.is_whole() {
            true => most_checks(&pipeline),
            false => 0,
        },
        only_common,
        most_regradings: baseline.as_ref().map(|_| most_regradings(&pipeline)),
        compared_to: baseline.map(|baseline| baseline.side),
    })
}

/// Refuses a baseline with which nothing can be compared. Returns whether it can be compared only with `--only-common`.
fn needs_only_common(
    pipeline: &Pipeline,
    selection: &MatrixSelection,
    baseline: &Baseline,
) -> Result<bool, Failure> {
    let design = Design::from_pipeline(pipeline);
    check_baseline(pipeline, &design, baseline, selection, None)?;
    let whole = Baseline {
        only_common: false,
        ..baseline.clone()
    };
    Ok(check_baseline(pipeline, &design, &whole, selection, None).is_err())
}

fn blocks(plan: &ProjectPlan) -> Vec<Block> {
    let forecast = &plan.forecast;
    let access = (!plan.access.is_empty()).then(|| access_line(&plan.access));
    let first = estimate_line(plan).into_iter().chain(access);
    let mut blocks: Vec<Block> = first.map(Block::plain).collect();
    blocks.push(Block::Table(stage_table(forecast)));
    let since = plan.compared_to.as_deref().unwrap_or_default();
    let explained = [
        (&forecast.reasons, "why".to_owned()),
        (&forecast.since_baseline, format!("since {since}")),
    ];
    for (groups, title) in explained.iter().filter(|(groups, _)| !groups.is_empty()) {
        blocks.push(Block::plain(reasons(title, groups)));
    }
    if forecast.since_baseline.is_empty() && !since.is_empty() && !forecast.is_pending() {
        blocks.push(Block::plain(format!("No changes found since {since}.")));
    }
    let too_long = forecast.too_long.iter().map(too_long_line);
    blocks.extend(too_long.map(|line| Block::Sentence(TextStyle::Warning, line)));
    let last = submitted_line(forecast)
        .into_iter()
        .chain(change_line(plan));
    blocks.extend(last.map(Block::plain));
    blocks
}

/// The command that runs what was planned.
fn next_line(plan: &ProjectPlan, console: &Console) -> String {
    let note = if plan.forecast.is_pending() || plan.most_checks > 0 {
        ""
    } else {
        "   (everything is cached)"
    };
    let mut words = typed_again(&["plan", "--exit-code"]);
    let named = words.iter().position(|word| word == "--compare-to");
    if let Some(value) = named.map(|at| at + 1)
        && words.get(value).is_none_or(|next| next.starts_with('-'))
    {
        // No baseline was named: it is the one that was found.
        words.splice(value..value, plan.compared_to.clone());
    }
    words.insert(0, "run".to_owned());
    words.extend(plan.only_common.then(|| "--only-common".to_owned()));
    console.next_line(
        Locale::En,
        format_args!("compeval {}{note}", words.join(" ")),
    )
}

/// The reasons on one line, each once: what was edited before what merely follows from it or is not in the cache.
fn reasons(title: &str, groups: &[ReasonGroup]) -> String {
    const PLACES: usize = 3;
    let mut found: IndexMap<StaleCause, (u64, IndexSet<&str>)> = IndexMap::new();
    for group in groups {
        let (actions, changed) = found.entry(group.why).or_default();
        *actions += group.actions;
        changed.extend(group.changed.iter().map(String::as_str));
    }
    found
        .sort_by_cached_key(|why, (_, changed)| (changed.is_empty(), *why == StaleCause::Upstream));
    let reasons = found.iter().map(|(why, (actions, changed))| {
        let changed: Vec<&str> = changed.iter().copied().collect();
        let places = match changed.is_empty() {
            true => String::new(),
            false => format!(" ({})", first_few(&changed, PLACES)),
        };
        format!("{}: {}{places}", count(*actions, "action"), why.name())
    });
    let reasons: Vec<String> = reasons.collect();
    labelled(TextStyle::Strong, &format!("{title}:"), reasons.join("; "))
}

fn stage_table(forecast: &Forecast) -> TextTable {
    let stages = StageName::OF_RUN.into_iter();
    let stages = stages.filter_map(|stage| Some((stage, forecast.stages.get(&stage)?)));
    let rows = stages.map(|(stage, counts)| {
        let style = if counts.stale + counts.blocked > 0 {
            TextStyle::Warning
        } else {
            TextStyle::Good
        };
        let figures = [
            counts.cells,
            counts.actions,
            counts.cached,
            counts.stale,
            counts.blocked,
        ];
        let texts = [stage.name().to_owned()].into_iter();
        let texts = texts.chain(figures.map(|count| count.to_string()));
        texts.map(|text| vec![(style, text)]).collect()
    });
    let header = ["stage", "cells", "actions", "cached", "stale", "blocked"];
    TextTable::new(header, rows)
}

fn too_long_line(group: &TooLong) -> String {
    let method = group
        .method
        .as_ref()
        .map(|method| format!(" · {method}"))
        .unwrap_or_default();
    format!(
        "Too long: {} of {}{method} would send up to {} tokens, but {} accepts at most {}. They would fail: compress \
         more, move the point, or use a model with a larger context window.",
        count(group.actions, "action"),
        group.stage.name(),
        group.longest,
        group.model,
        group.window
    )
}

/// The line on open batches, whose requests are paid for, or about to be, and in no estimate.
fn submitted_line(forecast: &Forecast) -> Option<String> {
    let submitted: u64 = forecast.stages.values().map(|stage| stage.submitted).sum();
    (submitted > 0).then(|| {
        format!(
            "Submitted: {} in open batches, not counted above (`compeval batch ls`).",
            count(submitted, "action")
        )
    })
}

/// What the run sends and costs: the requests, and one range of dollars, which says on which lengths it rests.
fn estimate_line(plan: &ProjectPlan) -> Option<String> {
    let forecast = &plan.forecast;
    let estimate = &forecast.estimate;
    if estimate.requests == 0 {
        return forecast.is_pending().then(|| "No requests.".to_owned());
    }
    let checks = match plan.most_checks {
        0 => String::new(),
        most => format!(" and at most {most} more that check the judges"),
    };
    let range = estimate.usd_low.zip(estimate.usd_high);
    let price = match range.filter(|(low, high)| low.0 < high.0) {
        Some((low, high)) => format!("{} to {}", cost(Some(low)), cost(Some(high))),
        None => cost(estimate.usd),
    };
    let lengths = match forecast.assumes_lengths {
        true => "assumed",
        false => "those in the cache",
    };
    Some(format!(
        "{}{checks}: {} tokens in, {} out, {price} (lengths of replies: {lengths}).",
        count(estimate.requests, "request"),
        short(Some(estimate.input_tokens as u64)),
        short(Some(estimate.output_tokens as u64)),
    ))
}
