//! A run of the matrix: prepared, executed, published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::args::RunArgs;
use super::finish;
use super::gate::gate;
use super::live::PartialResults;
use super::next::next_command;
use super::origins::{note_origins, warn_of_changed_outputs};
use super::publish::{PublishedResults, publish};
use super::record::Recorder;
use crate::cache::{CacheError, Store};
use crate::cli::args::Common;
use crate::cli::command_line::CommandLine;
use crate::cli::commit::commit_of;
use crate::cli::engine::{RunOptions, budget_limits, models, run_matrix};
use crate::cli::failure::{Exit, Failure};
use crate::cli::live::LiveServer;
use crate::cli::project::{ProjectOptions, given, label_of, open_project, print_notices};
use crate::cli::remote::transfers;
use crate::cli::shard::{NumberedShard, ShardOfRun};
use crate::cli::terminal::{Console, Progress, RequestLog, TextStyle};
use crate::pipeline::{Matrix, Pipeline, data_files};
use crate::plan::CostEstimate;
use crate::remote::{SharedCache, SharedSummary};
use crate::report::junit;
use crate::results::{
    ComparisonScope, Design, FinishedRows, ForecastTotals, Label, LabelLockError, LabelWriter, LabelWriterError,
    Manifest, Publication, RemoteUse, ResultsFolder, names, open_side,
};
use crate::scheduler::{BatchOptions, Budget, Event, Listener, RunOutcome};
use crate::shard::Shard;
use base::files::{FileError, write_whole};
use models::{Lane, Prices};

/// A run whose results are written, and not yet reported.
pub(super) struct PublishedRun {
    pub(super) results: PublishedResults,
    pub(super) exit: Exit,
    folder: ResultsFolder,
    /// Whether the cache is on disk; `None` of one that can keep nothing more, which has said so.
    synced: Option<Result<(), CacheError>>,
}

/// Runs the matrix, or what other processes left of it, publishes the results and prints them. `complete` adds to the
/// manifest what the run cannot know.
pub(super) fn run_whole(
    prepared: PreparedRun,
    store: Store,
    args: &RunArgs,
    complete: impl FnOnce(&mut Manifest, Exit) -> Exit,
    console: &Console,
) -> Result<Exit, Failure> {
    publish_run(prepared, store, args, complete, console)?.conclude(args, console)
}

/// The same without printing the results.
pub(super) fn publish_run(
    prepared: PreparedRun,
    store: Store,
    args: &RunArgs,
    complete: impl FnOnce(&mut Manifest, Exit) -> Exit,
    console: &Console,
) -> Result<PublishedRun, Failure> {
    let live = args.live.then(|| prepared.serve(console)).transpose()?;
    let ExecutedRun { folder, mut manifest, exit, recorded, is_broken } =
        prepared.execute(&store, args, live.as_ref(), console)?;
    let PreparedRun { pipeline, label, writer, junit: junit_file, .. } = prepared;
    let exit = complete(&mut manifest, exit);
    let files = writer.lock_files()?;
    let synced = store.sync();
    print_notices(&store, console);
    let FinishedRows { few, unchanged } = recorded;
    // Without rows at hand no context is looked up: what the store keeps in memory is let go.
    let store = few.is_some().then_some(store);
    let earlier = writer.replaced().filter(|_| unchanged);
    let results =
        publish(&pipeline, &folder, manifest, few.zip(store.as_ref()), earlier.as_ref(), writer.shows_reference())?;
    let staged = folder.stage_json(names::MANIFEST, &results.manifest)?;
    let folder = publication(writer.publish(staged, &results.manifest)?, &label, console);
    drop(files);
    if let Some(live) = live {
        live.finish(folder.file(names::HTML));
    }
    if let Some(file) = &junit_file {
        write_whole(file, junit(&results.summary, results.manifest.wall_s))?;
    }
    Ok(PublishedRun { results, exit, folder, synced: (!is_broken).then_some(synced) })
}

impl PublishedRun {
    /// Prints the results and the verdict of the gate.
    pub(super) fn conclude(self, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
        let PublishedRun { results: published, exit, folder, synced } = self;
        finish::print_summary(&published, &folder, &next_command(exit, args, &published), console);
        synced.transpose()?;
        if let Some(refusal) = &published.refused {
            let refused = refusal.report(console);
            // Of a run that ended early this is no surprise, and not why it ended.
            return Ok(if matches!(exit, Exit::Done | Exit::Incomplete) { refused } else { exit });
        }
        let gate = gate(args, &published, console);
        Ok(exit.and(gate))
    }
}

/// The folder of the results, after saying so if they are not those of the label.
pub(super) fn publication(publication: Publication, label: &Label, console: &Console) -> ResultsFolder {
    match publication {
        Publication::Published(folder) => folder,
        Publication::Beside(folder) => {
            let text = format!(
                "`{label}` keeps its earlier results: this run is incomplete, and its results are in {}",
                folder.path().display()
            );
            console.warn("not replaced:", text);
            folder
        }
    }
}

/// A run whose inputs are validated; nothing of it has been written or spent yet.
pub(super) struct PreparedRun {
    pub(super) pipeline: Pipeline,
    pub(super) label: Label,
    pub(super) writer: LabelWriter,
    pub(super) design: Design,
    options: RunOptions,
    pub(super) shard: Option<ShardOfRun>,
    /// Where the scores go as JUnit XML.
    junit: Option<PathBuf>,
}

/// A run whose actions are over, and whose files are not published.
pub(super) struct ExecutedRun {
    pub(super) folder: ResultsFolder,
    pub(super) manifest: Manifest,
    pub(super) exit: Exit,
    recorded: FinishedRows,
    /// Whether the cache can keep nothing more.
    pub(super) is_broken: bool,
}

impl PreparedRun {
    pub(super) fn of(common: &Common, args: &RunArgs, console: &Console) -> Result<PreparedRun, Failure> {
        let number = args.shards.number()?;
        let label = label_of(&args.select)?;
        let sharers = number.and_then(NumberedShard::sharers);
        let opening = ProjectOptions { needs_keys: !args.offline, sharers, ..ProjectOptions::default() };
        let mut pipeline = open_project(common, &args.select, opening, console)?;
        let prices = Prices::new(pipeline.prices.clone());
        let mut limits = budget_limits(&args.budget, models(&pipeline), &prices, &pipeline.file)?;
        if number.is_some() {
            refuse_batches(&pipeline)?;
        }
        let shard = number.map(|number| ShardOfRun::restrict_to_shard(&mut pipeline, number, &label));
        if let Some(shard) = &shard {
            limits = limits.part(shard.share());
        }
        if let Some(baseline) = &args.comparison.compare_to {
            open_side(&pipeline.results, baseline)?;
        }
        let design = Design::of(&pipeline);
        let writer = LabelWriter::lock(&pipeline.results, &label, &design, args.replace);
        let writer = writer.map_err(|error| match (&error, &shard) {
            (LabelWriterError::Lock(LabelLockError::Held { .. }), Some(shard)) => {
                shard_already_running(&error, shard.record.shard)
            }
            _ => refusal(error, &label),
        })?;
        let options = RunOptions {
            budget: Arc::new(Budget::new(limits)),
            offline: args.offline,
            allow_weak_judge: args.allow_weak_judge,
            refresh: args.select.refresh.iter().copied().collect(),
            jobs: args.jobs,
            batches: BatchOptions { wait: args.batches.wait, deadline: args.batches.batch_deadline },
            trusted: Some(args.remote.trusted(&pipeline.remote)?),
            // Offline, nothing is sent to anybody.
            shared: if args.offline { None } else { args.remote.of_run(&pipeline.remote, console)? },
            ..RunOptions::default()
        };
        let junit = args.comparison.junit.as_deref().map(|file| given(common, file));
        Ok(PreparedRun { pipeline, label, writer, design, options, shard, junit })
    }

    /// Serves the page of the results to come, and prints where.
    fn serve(&self, console: &Console) -> Result<LiveServer, Failure> {
        let (pipeline, folder) = (self.pipeline.clone(), self.writer.folder().clone());
        let live = LiveServer::start(PartialResults { pipeline, folder })?;
        console.eprint(&console.labelled(TextStyle::Hint, "live:", live.address()));
        Ok(live)
    }

    /// Begins the result set, runs the matrix and fills the manifest in.
    pub(super) fn execute(
        &self,
        store: &Store,
        args: &RunArgs,
        live: Option<&LiveServer>,
        console: &Console,
    ) -> Result<ExecutedRun, Failure> {
        let PreparedRun { pipeline, options, writer, .. } = self;
        let folder = writer.folder().clone();
        let mut manifest = self.begin(store, args);
        writer.begin(&manifest)?;
        let mut progress = Progress::of_run(pipeline, options.budget.limits(), console);
        progress.live = live.map(LiveServer::progress);
        let earlier = writer.replaced().filter(|_| live.is_none());
        let began = Instant::now();
        let cells = Matrix::new(pipeline).counts();
        let recorder = Recorder::begin(pipeline, &folder, earlier.as_ref(), cells.judge)?;
        let (weaknesses, shared) = (BTreeMap::new(), options.shared.as_ref());
        let mut listener = Listeners { recorder, progress: &progress, weaknesses, shared };
        // A shard may have no chain; then it asks no judge either.
        let ended = match cells.all() {
            0 => RunOutcome::default(),
            _ => run_matrix(pipeline, store, options, &progress, &mut listener)?,
        };
        let Listeners { recorder, weaknesses, .. } = listener;
        let exit = finish::print_stop_reasons(&ended, &weaknesses, &recorder.failures, options, console);
        manifest.outcome = finish::outcome_of(exit, &ended, &recorder.failures);
        let recorded = self.record_spending(&mut manifest, recorder, &progress.requests, ended.submitted)?;
        note_origins(store, &folder, &mut manifest)?;
        if let Some(summary) = shared.and_then(SharedCache::summary) {
            transfers(&summary).into_iter().for_each(|line| console.note(&line));
            manifest.remote = Some(remote_use(summary));
        }
        manifest.caveats.weak_judges = ended.weak_judges;
        manifest.models = ended.models;
        manifest.forecast = ended.forecast.as_ref().map(expected);
        manifest.ended = Some(now());
        manifest.wall_s = began.elapsed().as_secs_f64();
        warn_of_changed_outputs(&pipeline.results, &manifest, console);
        Ok(ExecutedRun { folder, manifest, exit, recorded, is_broken: ended.broken.is_some() })
    }

    /// The manifest of the run that begins. Stores the texts that later explain a change.
    fn begin(&self, store: &Store, args: &RunArgs) -> Manifest {
        let pipeline = &self.pipeline;
        let mut manifest = Manifest::begin(self.label.as_str(), &now(), self.design.clone());
        manifest.shard = self.shard.as_ref().map(|shard| shard.record);
        for file in pipeline.sources.iter().cloned().chain(data_files(pipeline)) {
            store.text(file.digest, &file.text);
            manifest.files.insert(file.path, file.digest);
        }
        for source in crate::plan::source_texts(pipeline) {
            store.text(source.digest, source.text);
        }
        manifest.commit = commit_of(&pipeline.folder);
        manifest.compared_to.clone_from(&args.comparison.compare_to);
        manifest.compared_scope = scope(args);
        manifest.until_decided = args.comparison.until_decided;
        manifest.caveats.offline = args.offline;
        manifest.caveats.allow_weak_judge = args.allow_weak_judge;
        manifest.caveats.allow_unproven = args.select.allow_unproven;
        manifest
    }

    /// Finishes the files of rows and fills in what was sent and paid.
    fn record_spending(
        &self,
        manifest: &mut Manifest,
        recorder: Recorder,
        requests: &RequestLog,
        submitted: u64,
    ) -> Result<FinishedRows, Failure> {
        let sent = requests.sent.load(Ordering::Relaxed);
        manifest.requests_sent = sent + submitted;
        manifest.retries = requests.retries.load(Ordering::Relaxed);
        manifest.rate_limited = requests.rate_limited.load(Ordering::Relaxed);
        Ok(recorder.finish(manifest, &self.options.budget.spent().with_unfinished(sent))?)
    }

    pub(super) fn budget(&self) -> Arc<Budget> {
        self.options.budget.clone()
    }

    pub(super) fn cache(&self) -> &Path {
        &self.pipeline.cache
    }
}

/// A shard's folder may be gone before its batches have ended.
fn refuse_batches(pipeline: &Pipeline) -> Result<(), Failure> {
    let how = |lane| match lane {
        Lane::Batch => Some("in batches"),
        Lane::Live | Lane::Flex => None,
    };
    match models(pipeline).find_map(|model| Some((&model.reference, how(model.lane)?))) {
        Some((model, how)) => Err(Failure::input(format!("a shard cannot send requests to `{model}` {how}"))
            .hinted("--lane live or --lane flex, or run the matrix in one process")),
        None => Ok(()),
    }
}

/// The error with the ways on.
fn refusal(error: LabelWriterError, label: &Label) -> Failure {
    let typed = CommandLine::current();
    let other = typed.clone().with_label("NEW").command("run");
    let hint = match &error {
        LabelWriterError::OtherDesign { .. } => {
            let replace = typed.with("replace", "--replace").command("run");
            Some(format!("{other}   keeps both\n      {replace}   keeps the old results as `{}`", label.earlier(1)))
        }
        LabelWriterError::Protected(label) => {
            Some(format!("{other}   keeps both; `compeval labels protect --off {label}` lifts the protection"))
        }
        _ => None,
    };
    let failure = Failure::from(error);
    if let Some(hint) = hint { failure.hinted(hint) } else { failure }
}

/// The error of a shard that is being run already.
fn shard_already_running(error: &LabelWriterError, shard: Shard) -> Failure {
    Failure::input(format!("shard {shard} is being run already: {error}"))
        .hinted("give each process a number of its own, from 1/N to N/N")
}

fn now() -> String {
    base::clock::now().to_string()
}

/// What the comparison may leave out: a run of some fixtures is compared on what both sides have.
fn scope(args: &RunArgs) -> ComparisonScope {
    if args.comparison.only_common {
        ComparisonScope::Common
    } else if args.select.fixtures.is_empty() && args.select.probes.is_empty() {
        ComparisonScope::All
    } else {
        ComparisonScope::Selected
    }
}

fn remote_use(summary: SharedSummary) -> RemoteUse {
    RemoteUse {
        url: summary.url,
        list: summary.list,
        segments: summary.segments,
        pulled: summary.pulled.entries,
        uploaded: summary.pushed.entries,
    }
}

fn expected(estimate: &CostEstimate) -> ForecastTotals {
    ForecastTotals {
        requests: estimate.requests,
        input_tokens: estimate.input_tokens.round() as u64,
        output_tokens: estimate.output_tokens.round() as u64,
        usd: estimate.usd,
        seconds: estimate.seconds,
    }
}

/// Passes every event to the recorder and to the progress display.
struct Listeners<'p> {
    recorder: Recorder,
    progress: &'p Progress,
    /// What a judge failed in, by judge.
    weaknesses: BTreeMap<String, Vec<String>>,
    shared: Option<&'p SharedCache>,
}

impl Listener for Listeners<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        self.progress.on_event(event);
        if let Event::SelftestCompleted { judge, verdict } = event {
            self.weaknesses.insert((*judge).to_owned(), verdict.failures.clone());
        }
        if let (Some(shared), Event::Cached { key, .. } | Event::Completed { key, .. }) = (self.shared, event) {
            shared.note(*key);
        }
        self.recorder.on_event(event)
    }
}
