//! `compeval run`: runs the matrix, writes results, prints the summary.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::args::{Common, RunArgs, StageArg};
use super::console::{Console, Meaning};
use super::engine::{Orders, drive, models};
use super::failure::{Exit, Failure};
use super::plan;
use super::progress::Progress;
use super::project::{Opening, open_project, open_store, tell_notices};
use super::publish::{Published, publish};
use super::record::Recorder;
use super::words::{count, duration, money, percent};
use crate::action::Stage;
use crate::cache::Store;
use crate::files::FileError;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::Estimate;
use crate::provider::Prices;
use crate::report::{comparison_table, summary_table};
use crate::results::{
    self, Design, Forecast, Label, ListedRow, Manifest, Outcome, ResultsFolder, Unused, blind_spots, names, regressions,
};
use crate::scheduler::{Budget, Ended, Event, Listener, Untested};

/// Causes of failures told on the terminal; the manifest holds every failure.
const SHOWN_CAUSES: usize = 8;

impl StageArg {
    /// The stage it names.
    pub(crate) fn stage(self) -> Stage {
        match self {
            StageArg::Probes => Stage::Probes,
            StageArg::Compress => Stage::Compress,
            StageArg::Answer => Stage::Answer,
            StageArg::Judge => Stage::Judge,
        }
    }
}

pub(crate) fn run(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    if args.dry_run {
        let forecast = plan::of_project(common, &args.select, console)?;
        return Ok(plan::tell(&forecast, console));
    }
    let opening = Opening { needs_keys: !args.offline, ..Opening::default() };
    let pipeline = open_project(common, &args.select, opening, console)?;
    let prices = Prices::new(pipeline.prices.clone());
    let allowance = args.budget.allowance(models(&pipeline), &prices, &pipeline.file)?;
    let label = label(args)?;
    let orders = Orders {
        budget: Budget::new(allowance),
        offline: args.offline,
        allow_weak_judge: args.allow_weak_judge,
        refresh: args.select.refresh.iter().map(|stage| stage.stage()).collect(),
        jobs: args.jobs,
        selftests_only: false,
    };
    let folder = ResultsFolder::of(&pipeline.results, &label);
    if let Some(baseline) = &args.compare_to {
        // A baseline that is not there is found out before anything is spent.
        ResultsFolder::open_side(&pipeline.results, baseline)?;
    }
    let store = open_store(&pipeline.cache, console)?;
    let mut manifest = begin(&pipeline, &store, &label, args);
    folder.write_manifest(&manifest)?;
    let Executed { exit, spared, rows } = execute(&pipeline, &store, &orders, &folder, &mut manifest, console)?;
    store.sync()?;
    tell_notices(&store, console);
    if exit.is_fatal() {
        return Ok(exit);
    }
    // Without rows at hand no context is looked up: what the store keeps in memory is let go.
    let store = rows.is_some().then_some(store);
    let published = publish(&pipeline, &folder, manifest, rows.zip(store.as_ref()), false)?;
    tell_summary(&published, spared, &folder, console);
    let gate = gate(args, &published, console);
    Ok(exit.and(gate))
}

/// The manifest of a run that begins, and the texts that later explain a change.
fn begin(pipeline: &Pipeline, store: &Store, label: &Label, args: &RunArgs) -> Manifest {
    let started = jiff::Timestamp::now().to_string();
    let mut manifest = Manifest::begin(label.as_str(), &started, Design::of(pipeline));
    manifest.files = pipeline.sources.iter().map(|source| (source.path.clone(), source.digest)).collect();
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    for prompt in crate::plan::prompts(pipeline) {
        store.text(prompt.digest, prompt.text.unwrap_or_default());
    }
    manifest.compared_to.clone_from(&args.compare_to);
    manifest.caveats.offline = args.offline;
    manifest.caveats.allow_unproven = args.select.allow_unproven;
    manifest
}

/// What a run did.
struct Executed {
    /// How it ended.
    exit: Exit,
    /// Actions that an early cutoff spared.
    spared: u64,
    /// Its rows, if they are few.
    rows: Option<Vec<ListedRow>>,
}

/// Runs the matrix and fills the manifest in.
fn execute(
    pipeline: &Pipeline,
    store: &Store,
    orders: &Orders,
    folder: &ResultsFolder,
    manifest: &mut Manifest,
    console: &Console,
) -> Result<Executed, Failure> {
    let began = Instant::now();
    let progress = Progress::of_run(pipeline, orders.budget.allowance(), console);
    let cells = Matrix::new(pipeline).counts().judge;
    let recorder = Recorder::new(folder.begin_rows(cells)?);
    let mut listener = Listeners { recorder, progress: &progress, weaknesses: Vec::new() };
    let ended = drive(pipeline, store, orders, &progress, &mut listener)?;
    let Listeners { recorder, weaknesses, .. } = listener;
    let exit = exit_of(&ended, &recorder, orders, console);
    if !ended.weak_judges.is_empty() {
        tell_weaknesses(&weaknesses, &recorder, console);
    }
    let spared = recorder.spared;
    let traffic = &progress.traffic;
    manifest.requests_sent = traffic.sent.load(Ordering::Relaxed);
    manifest.retries = traffic.retries.load(Ordering::Relaxed);
    manifest.rate_limited = traffic.rate_limited.load(Ordering::Relaxed);
    let rows = recorder.finish(manifest, &orders.budget.spent())?;
    manifest.caveats.weak_judges.clone_from(&ended.weak_judges);
    manifest.models.clone_from(&ended.models);
    manifest.forecast = ended.forecast.as_ref().map(expected);
    manifest.outcome = outcome_of(exit);
    manifest.ended = Some(jiff::Timestamp::now().to_string());
    manifest.wall_s = began.elapsed().as_secs_f64();
    folder.write_manifest(manifest)?;
    Ok(Executed { exit, spared, rows })
}

fn expected(estimate: &Estimate) -> Forecast {
    Forecast {
        requests: estimate.requests,
        input_tokens: estimate.input_tokens.round() as u64,
        output_tokens: estimate.output_tokens.round() as u64,
        usd: estimate.usd,
        seconds: estimate.seconds,
    }
}

/// Recorder and progress hear the same events.
struct Listeners<'p> {
    recorder: Recorder,
    progress: &'p Progress,
    /// What judges failed in, judge by judge.
    weaknesses: Vec<String>,
}

impl Listener for Listeners<'_> {
    fn hear(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        self.progress.hear(event);
        if let Event::Selftested { judge, verdict } = event {
            self.weaknesses.extend(verdict.failures.iter().map(|failure| format!("{judge}: {failure}")));
        }
        self.recorder.hear(event)
    }
}

/// What failed, each cause once with the first cell it befell.
fn tell_failures(failures: &[results::Failure], folder: &ResultsFolder, console: &Console) {
    let mut causes: Vec<(&results::Failure, usize)> = Vec::new();
    let mut other = 0;
    for failure in failures {
        let like = |(first, _): &(&results::Failure, usize)| {
            (&first.message, &first.hint) == (&failure.message, &failure.hint)
        };
        match causes.iter().position(like) {
            Some(known) => causes[known].1 += 1,
            None if causes.len() < SHOWN_CAUSES => causes.push((failure, 0)),
            None => other += 1,
        }
    }
    for (failure, alike) in &causes {
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let more = if *alike > 0 { format!(" and {alike} more") } else { String::new() };
        let word = console.paint(Meaning::Bad, "failed:");
        console.tell(&format!("{word} {}{more}: {}{hint}", failure.place, failure.message));
    }
    if other > 0 {
        console.tell(&format!("… and {other} more in {}", folder.file(names::MANIFEST).display()));
    }
}

/// The table, and the last lines: label, cost, share from the cache, what to type next.
fn tell_summary(published: &Published, spared: u64, folder: &ResultsFolder, console: &Console) {
    let Published { summary, manifest } = published;
    console.json(summary);
    let table = summary_table(summary, manifest, console.width());
    console.say(&console.styled(&table));
    tell_failures(&manifest.failures, folder, console);
    if spared > 0 {
        console.say(&format!("{} cut off: an edit left what they build on unchanged.", count(spared, "action")));
    }
    for line in [prompt_cache_line(manifest), unused_line(manifest), forecast_line(manifest)].into_iter().flatten() {
        console.say(&line);
    }
    console.say(&format!(
        "{} · {} · {} from the cache · {} · {}",
        console.paint(Meaning::Strong, &manifest.label),
        money(manifest.usd),
        percent(manifest.cached_share()),
        count(manifest.requests_sent, "request"),
        duration(manifest.wall_s),
    ));
    let next = format!(
        "compeval show {} --label {}",
        summary.fixtures.first().map_or("FIXTURE", String::as_str),
        manifest.label
    );
    console.say(&format!("{} {}", console.paint(Meaning::Dim, "report:"), folder.file(names::HTML).display()));
    console.say(&format!("{} {next}", console.paint(Meaning::Hint, "next:")));
}

/// What the providers' prompt caches were worth; nothing if none was used.
fn prompt_cache_line(manifest: &Manifest) -> Option<String> {
    let (cached, input) = (manifest.usage.cached_input?.0, manifest.usage.input?.0);
    let share = (cached > 0 && input > 0).then(|| cached as f64 / input as f64);
    let saved = money(Some(manifest.saved_by_prompt_cache));
    Some(format!(
        "{} of the input tokens came from providers' prompt caches, which saved {saved}.",
        percent(Some(share?))
    ))
}

/// What was paid for nothing.
fn unused_line(manifest: &Manifest) -> Option<String> {
    let Unused { replies, usd, unanswered, .. } = manifest.unused;
    let replies = (replies > 0).then(|| format!("{} gave no result and cost {}", of_replies(replies), money(usd)));
    let unanswered = (unanswered > 0)
        .then(|| format!("{} never answered, and nobody knows whether they are billed", were(unanswered)));
    let told: Vec<String> = [replies, unanswered].into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("{}.", told.join("; ")))
}

fn of_replies(number: u64) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}

fn were(requests: u64) -> String {
    format!("{} {}", count(requests, "request"), if requests == 1 { "was" } else { "were" })
}

/// How good the forecast was.
fn forecast_line(manifest: &Manifest) -> Option<String> {
    let forecast = manifest.forecast.filter(|forecast| forecast.requests > 0)?;
    let tokens = |tokens: Option<crate::units::Tokens>| tokens.map_or("–".to_owned(), |t| format!("{}k", t.0 / 1000));
    Some(format!(
        "Forecast and outcome: {} and {} requests, {}k and {} tokens in, {}k and {} out, {} and {}.",
        forecast.requests,
        manifest.requests_sent,
        forecast.input_tokens / 1000,
        tokens(manifest.usage.input),
        forecast.output_tokens / 1000,
        tokens(manifest.usage.output),
        money(forecast.usd),
        money(manifest.usd),
    ))
}

/// What the gate says of the comparison.
fn gate(args: &RunArgs, published: &Published, console: &Console) -> Exit {
    let Some(comparison) = &published.summary.comparison else { return Exit::Done };
    let table = comparison_table(comparison, published.manifest.design.locale, console.width());
    console.say(&console.styled(&table));
    if !args.fail_on_regression {
        return Exit::Done;
    }
    for (method, mdd) in blind_spots(comparison) {
        let from = mdd.map_or("none would be".to_owned(), |mdd| format!("only losses over {mdd:.2} points would be"));
        console.remark(&format!("{} {method}: {from} seen by this gate", console.paint(Meaning::Warning, "gate:")));
    }
    let worse = regressions(comparison);
    for regression in &worse {
        console.tell(&format!("{} {}", console.paint(Meaning::Bad, "regressed:"), regression.why));
    }
    if worse.is_empty() { Exit::Done } else { Exit::Regression }
}

fn label(args: &RunArgs) -> Result<Label, Failure> {
    match &args.select.label {
        Some(text) => Label::new(text).map_err(|error| Failure::input(error.to_string())),
        None => Ok(Label::of_time(jiff::Timestamp::now())),
    }
}

/// How the run ended, in words and as an exit.
fn exit_of(ended: &Ended, recorder: &Recorder, orders: &Orders, console: &Console) -> Exit {
    let mut exit = Exit::Done;
    let say = |what: &str| console.tell(&format!("{} {what}", console.paint(Meaning::Warning, "stopped:")));
    for Untested { judge, why } in &ended.untested {
        let grades = if orders.allow_weak_judge { "its grades may mean little" } else { "it grades nothing" };
        say(&format!("the self-test of judge {judge} could not be completed, so {grades}: {why}"));
        exit = exit.and(Exit::Incomplete);
    }
    if !ended.unaccounted.is_empty() {
        say(&format!("only {} were told of: a fault of compeval, please report it", ended.unaccounted.join(", ")));
        exit = exit.and(Exit::Incomplete);
    }
    if let Some(reached) = ended.budget {
        say(&format!("{reached}; run again with a larger budget to go on where this ended"));
        exit = exit.and(Exit::Budget);
    }
    if !ended.weak_judges.is_empty() {
        let names = ended.weak_judges.join(", ");
        let told = format!("judge failed its self-test: {names} (`compeval judge selftest` shows how)");
        if orders.allow_weak_judge {
            console
                .tell(&format!("{} {told}; its grades may mean little", console.paint(Meaning::Warning, "warning:")));
        } else {
            say(&format!("{told}; --allow-weak-judge goes on all the same"));
            exit = exit.and(Exit::Error);
        }
    }
    if ended.interrupted {
        say("interrupted; what was finished is kept, and running again goes on from there");
        exit = exit.and(Exit::Interrupted);
    }
    if !recorder.failures().is_empty() {
        exit = exit.and(Exit::Incomplete);
    } else if ended.held_back > 0 && exit == Exit::Done {
        exit = Exit::Pending;
    }
    exit
}

/// What a judge failed in, and why some answers got no grade at all.
fn tell_weaknesses(weaknesses: &[String], recorder: &Recorder, console: &Console) {
    for weakness in weaknesses {
        console.tell(&format!("  {weakness}"));
    }
    let mut ungraded = recorder.failures().iter().filter(|failure| failure.place.cell().is_none());
    if let Some(first) = ungraded.next() {
        let hint = first.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let answers = count(ungraded.count() as u64 + 1, "answer");
        console.tell(&format!("  {answers} got no grade; the first, {}: {}{hint}", first.place, first.message));
    }
}

fn outcome_of(exit: Exit) -> Outcome {
    match exit {
        Exit::Done | Exit::Regression => Outcome::Complete,
        Exit::Budget => Outcome::Budget,
        Exit::Pending => Outcome::Pending,
        Exit::Interrupted => Outcome::Interrupted,
        Exit::Incomplete | Exit::Error | Exit::BadInput | Exit::EmptySelection => Outcome::Incomplete,
    }
}
