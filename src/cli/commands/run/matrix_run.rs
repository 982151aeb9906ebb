//! A run of the matrix: prepared, executed, published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::args::RunArgs;
use super::finish;
use super::live::PartialResults;
use super::publish::{PublishedResults, ReportOptions, publish};
use super::record::{RecordedRows, Recorder, Recording};
use crate::action::{ActionKey, Digest};
use crate::cache::{CacheError, ImportOrigin, Store, Writer};
use crate::cli::args::Common;
use crate::cli::command_line::CommandLine;
use crate::cli::commit::commit_of;
use crate::cli::engine::{RunOptions, models, run_matrix};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::shell_word;
use crate::cli::live::LiveServer;
use crate::cli::project::{ProjectOptions, given, label_of, open_project, print_notices};
use crate::cli::remote::transfers;
use crate::cli::shard::{NumberedShard, ShardOfRun};
use crate::cli::terminal::{Console, Progress, TextStyle};
use crate::files::{FileError, write_whole};
use crate::pipeline::{Matrix, Pipeline, data_files};
use crate::plan::CostEstimate;
use crate::provider::{Lane, Prices};
use crate::remote::SharedCache;
use crate::report::{comparison_table, junit};
use crate::results::{
    Comparison, ComparisonScope, Design, FEW, ForecastTotals, ImportedEntries, Label, LabelLockError, LabelWriter,
    LabelWriterError, Manifest, Publication, RemoteUse, ResultsFolder, RowsForm, WriterEntries, names, newly_failing,
    regressions, underpowered_methods,
};
use crate::scheduler::{BatchOptions, Budget, BudgetLimits, Event, Listener, RunOutcome};
use crate::shard::Shard;

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
    let ExecutedRun { folder, mut manifest, execution: Execution { exit, recorded, is_broken } } =
        prepared.execute(&store, args, live.as_ref(), console)?;
    let PreparedRun { pipeline, label, writer, junit: junit_file, .. } = prepared;
    let exit = complete(&mut manifest, exit);
    let files = writer.lock_files()?;
    let synced = store.sync();
    print_notices(&store, console);
    let RecordedRows { few, unchanged } = recorded;
    // Without rows at hand no context is looked up: what the store keeps in memory is let go.
    let store = few.is_some().then_some(store);
    let earlier = writer.replaced().filter(|_| unchanged);
    let results = publish(
        &pipeline,
        &folder,
        manifest,
        few.zip(store.as_ref()),
        ReportOptions { same_as: earlier.as_ref(), reference: writer.shows_reference() },
    )?;
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
    /// Prints the results and what the gate says of them.
    pub(super) fn conclude(self, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
        let PublishedRun { results: published, exit, folder, synced } = self;
        finish::print_summary(&published, &folder, &next(exit, args, &published), console);
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
                "`{label}` keeps the results that it had: this run is incomplete, and stands beside them in {}",
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
    pub(super) execution: Execution,
}

impl PreparedRun {
    pub(super) fn of(common: &Common, args: &RunArgs, console: &Console) -> Result<PreparedRun, Failure> {
        let number = args.shards.number()?;
        let label = label_of(&args.select)?;
        let sharers = number.and_then(NumberedShard::sharers);
        let opening = ProjectOptions { needs_keys: !args.offline, sharers, ..ProjectOptions::default() };
        let mut pipeline = open_project(common, &args.select, opening, console)?;
        let prices = Prices::new(pipeline.prices.clone());
        let mut limits = args.budget.limits(models(&pipeline), &prices, &pipeline.file)?;
        if number.is_some() {
            refuse_batches(&pipeline)?;
        }
        let shard = number.map(|number| ShardOfRun::enter(&mut pipeline, number, &label));
        if let Some(shard) = &shard {
            limits = limits.part(shard.share());
        }
        if let Some(baseline) = &args.comparison.compare_to {
            ResultsFolder::open_side(&pipeline.results, baseline)?;
        }
        let design = Design::of(&pipeline);
        let writer = LabelWriter::lock(&pipeline.results, &label, &design, args.replace);
        let writer = writer.map_err(|error| match (&error, &shard) {
            (LabelWriterError::Lock(LabelLockError::Held { .. }), Some(shard)) => twice(&error, shard.record.shard),
            _ => refusal(error, &label),
        })?;
        let options = RunOptions {
            trusted: Some(args.remote.trusted(&pipeline.remote)?),
            // Offline, nothing is sent to anybody.
            shared: if args.offline { None } else { args.remote.of_run(&pipeline.remote, console)? },
            ..options(args, limits)
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

    /// Begins the result set and runs the matrix.
    pub(super) fn execute(
        &self,
        store: &Store,
        args: &RunArgs,
        live: Option<&LiveServer>,
        console: &Console,
    ) -> Result<ExecutedRun, Failure> {
        let folder = self.writer.folder().clone();
        let manifest = Manifest::begin(self.label.as_str(), &now(), self.design.clone());
        let mut manifest = begin(&self.pipeline, store, manifest, args);
        manifest.shard = self.shard.as_ref().map(|shard| shard.record);
        self.writer.begin(&manifest)?;
        let mut progress = Progress::of_run(&self.pipeline, self.options.budget.limits(), console);
        progress.live = live.map(LiveServer::progress);
        let earlier = self.writer.replaced().filter(|_| live.is_none());
        let folders = (&folder, earlier.as_ref());
        let execution = execute(&self.pipeline, store, &self.options, folders, &mut manifest, &progress)?;
        warn_of_changed_outputs(&self.pipeline.results, &manifest, console);
        Ok(ExecutedRun { folder, manifest, execution })
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
        Lane::File => Some("through files"),
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
fn twice(error: &LabelWriterError, shard: Shard) -> Failure {
    Failure::input(format!("shard {shard} is being run already: {error}"))
        .hinted("give each process a number of its own, from 1/N to N/N")
}

fn options(args: &RunArgs, limits: BudgetLimits) -> RunOptions {
    RunOptions {
        budget: Arc::new(Budget::new(limits)),
        offline: args.offline,
        allow_weak_judge: args.allow_weak_judge,
        refresh: args.select.refresh.iter().map(|stage| stage.stage()).collect(),
        jobs: args.jobs,
        selftests_only: false,
        batches: BatchOptions { wait: args.batches.wait, deadline: args.batches.batch_deadline, export: None },
        trusted: None,
        shared: None,
    }
}

fn now() -> String {
    crate::clock::now().to_string()
}

/// Fills in the manifest of a run that begins, and stores the texts that later explain a change.
fn begin(pipeline: &Pipeline, store: &Store, mut manifest: Manifest, args: &RunArgs) -> Manifest {
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

pub(super) struct Execution {
    pub(super) exit: Exit,
    recorded: RecordedRows,
    /// Whether the cache can keep nothing more.
    pub(super) is_broken: bool,
}

/// Runs the matrix and fills the manifest in. The results go into `folder`, and replace the `earlier` ones.
fn execute(
    pipeline: &Pipeline,
    store: &Store,
    options: &RunOptions,
    (folder, earlier): (&ResultsFolder, Option<&ResultsFolder>),
    manifest: &mut Manifest,
    progress: &Progress,
) -> Result<Execution, Failure> {
    let began = Instant::now();
    let cells = Matrix::new(pipeline).counts();
    let recorder = Recorder::begin(Recording {
        folder,
        earlier,
        cells: cells.judge,
        form: rows_form(pipeline, cells.judge),
        has_rules: pipeline.fixtures.iter().any(|fixture| !fixture.injections.is_empty()),
    })?;
    let mut listener = Listeners { recorder, progress, weaknesses: BTreeMap::new(), shared: options.shared.as_ref() };
    // A shard may have no chain; then it asks no judge either.
    let ended = match cells.all() {
        0 => RunOutcome::default(),
        _ => run_matrix(pipeline, store, options, progress, &mut listener)?,
    };
    let Listeners { recorder, weaknesses, .. } = listener;
    let exit = finish::print_stop_reasons(&ended, &weaknesses, recorder.failures(), options, progress.console());
    let requests = &progress.requests;
    manifest.requests_sent = requests.sent.load(Ordering::Relaxed);
    manifest.retries = requests.retries.load(Ordering::Relaxed);
    manifest.rate_limited = requests.rate_limited.load(Ordering::Relaxed);
    manifest.outcome = finish::outcome_of(exit, &ended, recorder.failures());
    let spent = options.budget.spent().with_unfinished(manifest.requests_sent);
    manifest.requests_sent += ended.submitted;
    let recorded = recorder.finish(manifest, &spent)?;
    note_origins(store, folder, manifest)?;
    if let Some(summary) = options.shared.as_ref().and_then(SharedCache::summary) {
        transfers(&summary).into_iter().for_each(|line| progress.console().note(&line));
        manifest.remote = Some(RemoteUse {
            url: summary.url,
            list: summary.list,
            segments: summary.segments,
            pulled: summary.pulled.entries,
            uploaded: summary.pushed.entries,
        });
    }
    manifest.caveats.weak_judges.clone_from(&ended.weak_judges);
    manifest.models.clone_from(&ended.models);
    manifest.forecast = ended.forecast.as_ref().map(expected);
    manifest.ended = Some(now());
    manifest.wall_s = began.elapsed().as_secs_f64();
    Ok(Execution { exit, recorded, is_broken: ended.broken.is_some() })
}

fn rows_form(pipeline: &Pipeline, rows: u64) -> RowsForm {
    let is_compressed = pipeline.settings.compress_rows.unwrap_or(rows > FEW);
    if is_compressed { RowsForm::Compressed } else { RowsForm::Plain }
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

/// Notes the entries that were made elsewhere: by files and by writers.
fn note_origins(store: &Store, folder: &ResultsFolder, manifest: &mut Manifest) -> Result<(), Failure> {
    if !store.was_imported_into() {
        return Ok(());
    }
    let (mut files, mut writers) = (BTreeMap::new(), BTreeMap::new());
    for (key, raw, ImportOrigin { file, digest, writer }) in store.origins(&folder.keys()?) {
        match writer {
            None => *files.entry((file, digest)).or_default() += 1,
            Some(Writer { name, key: public }) => {
                *writers.entry((name, public)).or_default() += 1;
                manifest.pulled.insert(key, raw);
            }
        }
    }
    let imported = |((file, digest), entries)| ImportedEntries { file, digest, entries };
    manifest.imported = files.into_iter().map(imported).collect();
    let written = |((name, key), entries)| WriterEntries { name, key, entries };
    manifest.writers = writers.into_iter().map(written).collect();
    Ok(())
}

/// Reports outputs that differ from those that the earlier results of the label pin: they are not the same
/// measurement.
fn warn_of_changed_outputs(results: &Path, manifest: &Manifest, console: &Console) {
    if manifest.pulled.is_empty() {
        return;
    }
    let earlier = ResultsFolder::open(results, &manifest.label).and_then(|folder| folder.manifest());
    let Ok(earlier) = earlier else { return };
    let differs = |(key, raw): &(&ActionKey, &Digest)| earlier.pulled.get(key).is_some_and(|pinned| pinned != *raw);
    let changed: Vec<String> = manifest.pulled.iter().filter(differs).take(3).map(|(key, _)| key.0.short()).collect();
    if !changed.is_empty() {
        let text = format!(
            "pulled outputs differ from those that the earlier results of `{}` stand on ({}, …); `compeval cache show KEY` \
             says who wrote them",
            manifest.label,
            changed.join(", ")
        );
        console.warn("warning:", text);
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

/// The command to type next: one that goes on with the work, and where all is done, one that looks at it.
fn next(exit: Exit, args: &RunArgs, PublishedResults { summary, manifest, .. }: &PublishedResults) -> String {
    let typed = CommandLine::current();
    let is_judged = summary.methods.iter().any(|(_, method)| method.cells.judged > 0);
    match (exit, summary.fixtures.first()) {
        (Exit::Error, _) if !args.allow_weak_judge && !manifest.caveats.weak_judges.is_empty() => selftest(typed, args),
        (Exit::Error, _) => typed.with_label(&manifest.label).command("run"),
        (Exit::Interrupted | Exit::Incomplete, _) if args.select.refresh.is_empty() => {
            typed.with_label(&manifest.label).command("run")
        }
        (Exit::Pending, _) => typed.without("offline").with_label(&manifest.label).command("run"),
        // The same budget again goes further, but not where it is too small for a beginning, nor where all that it
        // paid for is asked anew.
        (Exit::Budget, _) if manifest.requests_sent > 0 && args.select.refresh.is_empty() => {
            typed.with_label(&manifest.label).command("run")
        }
        (Exit::Budget | Exit::Interrupted | Exit::Incomplete, _) => typed.with_label(&manifest.label).command("plan"),
        (_, Some(fixture)) if is_judged || manifest.design.answerers.is_empty() => {
            typed.of_results().with_label(&manifest.label).command(&format!("show {}", shell_word(fixture)))
        }
        _ => typed.of_project().command("plan"),
    }
}

/// The self-test of the judges that were asked: `judge selftest` knows no `--model`.
fn selftest(typed: CommandLine, args: &RunArgs) -> String {
    let model = args.select.judge_model.as_ref().or(args.select.model.as_ref());
    let typed = typed.of_project();
    let typed = match model {
        Some(model) => typed.with("judge_model", &format!("--judge-model {}", shell_word(model))),
        None => typed,
    };
    typed.command("judge selftest")
}

/// What the gate says of the comparison.
fn gate(args: &RunArgs, published: &PublishedResults, console: &Console) -> Exit {
    let Some(comparison) = &published.summary.comparison else { return Exit::Done };
    let table = comparison_table(comparison, published.manifest.design.locale, console.width());
    console.print(&console.styled(&table));
    let is_worse = args.comparison.fail_on_regression && reports_regressions(comparison, console);
    let gates = args.comparison.fail_on_regression || args.comparison.fail_on_new_failures;
    if gates && published.summary.scale.refuses_gate() {
        let why =
            "full and none are graded under 1.0 apart, so no regression could be seen (the report names the cause)";
        console.error("gate refused:", why);
        return Exit::Error;
    }
    let fails_anew = args.comparison.fail_on_new_failures && reports_new_failures(comparison, console);
    if is_worse || fails_anew { Exit::Regression } else { Exit::Done }
}

/// Names what the gate cannot see and what regressed; whether anything did.
fn reports_regressions(comparison: &Comparison, console: &Console) -> bool {
    for (method, mdd) in underpowered_methods(comparison) {
        let seen = mdd.map_or_else(
            || "no loss, however large, would be detected on these fixtures".to_owned(),
            |mdd| format!("only losses over {mdd:.2} points would be detected on these fixtures"),
        );
        console.note(&console.labelled(TextStyle::Warning, "gate:", format_args!("{method}: {seen}")));
    }
    let worse = regressions(comparison);
    for regression in &worse {
        console.error("regressed:", &regression.why);
    }
    !worse.is_empty()
}

/// Names every chain that fails now and did not before; whether there is one.
fn reports_new_failures(comparison: &Comparison, console: &Console) -> bool {
    let new: Vec<String> = newly_failing(comparison).map(|(method, chain)| format!("{method} · {chain}")).collect();
    for chain in &new {
        console.error("newly failing:", chain);
    }
    !new.is_empty()
}
