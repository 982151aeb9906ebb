//! An evaluation from its request to its published results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::commit::commit_of;
use super::engine::{EngineOptions, require_prices, run_matrix};
use super::error::EvaluationError;
use super::event::{Event, Listening};
use super::looks::add_look;
use super::origins::{note_origins, report_changed_outputs};
use super::outcome::{Ended, Ending, Outcome};
use super::part::{NumberedPart, PartOfRun};
use super::project::{
    open_project, open_snapshot, open_store, open_with_store, paths_of_project, report_notices, stage_models,
};
use super::publish::publish;
use super::recorder::Recorder;
use super::remote::{connect_remote, remote_use, trusted_keys};
use super::request::{Baseline, Request};
use crate::action::ActionKey;
use crate::cache::{Layered, Lookup, Store};
use crate::pipeline::{Matrix, OpenRequest, Opened, Pipeline, data_files};
use crate::plan::{CostEstimate, reachable, selftest_keys};
use crate::remote::SharedCache;
use crate::results::{
    ComparisonScope, Design, FinishedRows, ForecastTotals, Label, LabelLockError, LabelWriter, LabelWriterError,
    Manifest, Summary, names, open_side,
};
use crate::scheduler::{self, Budget, Listener, RunOutcome};
use base::files::FileError;
use models::{Lane, Prices};

/// Evaluates what `request` names: opens the project, runs what is stale, publishes the results. `listener` receives
/// each step as it happens.
///
/// # Errors
/// The project or the request has faults; the cache or the label is locked or damaged; a file cannot be written. Cells
/// that fail are no error: the [`Outcome`] has them.
pub fn evaluate(request: Request, listener: &mut dyn FnMut(&Event<'_>)) -> Result<Outcome, EvaluationError> {
    let listening = Listening::new(listener);
    let (file, profile) = (request.project.file.clone(), request.project.profile.clone());
    let (prepared, store) = match request.part {
        // Its cache is its own; that of the project is not locked.
        Some(_) => {
            let prepared = Prepared::new(request, &listening)?;
            let store = open_store(prepared.cache(), &listening)?;
            (prepared, store)
        }
        None => {
            let paths = paths_of_project(&file, profile.as_deref()).ok();
            let existing = paths.as_ref().map(|paths| paths.cache.as_path());
            open_with_store(existing, &listening, || Prepared::new(request, &listening), Prepared::cache)?
        }
    };
    evaluate_prepared(prepared, store, |_, _| {}, &listening)
}

/// Runs what was prepared and publishes the results. `complete` adds to the manifest what the run cannot know.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_prepared(
    prepared: Prepared,
    store: Store,
    complete: impl FnOnce(&mut Manifest, Ending),
    listening: &Listening<'_>,
) -> Result<Outcome, EvaluationError> {
    let pipeline = &prepared.pipeline;
    if let Some(file) = &prepared.request.selftest {
        import_selftest(pipeline, &store, file, listening)?;
    }
    if let Some(part) = &prepared.part {
        listening.report(&Event::Part(part));
        copy_known(part, pipeline, &store)?;
    }
    let ExecutedRun { mut manifest, ending, recorded, is_broken } = prepared.execute(&store, listening)?;
    if let Some(before) = &prepared.request.look_before {
        add_look(&mut manifest, before);
    }
    complete(&mut manifest, ending);
    let Prepared { pipeline, writer, part, .. } = prepared;
    let (folder, files) = (writer.folder().clone(), writer.lock_files()?);
    let synced = store.sync();
    report_notices(&store, listening);
    let (summary, manifest, refused): (Option<Summary>, Manifest, Option<EvaluationError>) = match part {
        // The reports are made of all parts.
        Some(_) => (None, manifest, None),
        None => {
            let FinishedRows { few, unchanged } = recorded;
            // Without rows at hand no context is looked up: what the store keeps in memory is let go.
            let store = few.is_some().then_some(store);
            let earlier = writer.replaced().filter(|_| unchanged);
            let (at_hand, reference) = (few.zip(store.as_ref()), writer.shows_reference());
            let published = publish(&pipeline, &folder, manifest, at_hand, earlier.as_ref(), reference)?;
            (Some(published.summary), published.manifest, published.refused)
        }
    };
    let staged = folder.stage_json(names::MANIFEST, &manifest)?;
    let publication = writer.publish(staged, &manifest)?;
    drop(files);
    // A cache that can keep nothing more has said so.
    let unsynced = synced.err().filter(|_| !is_broken);
    Ok(Outcome { manifest, summary, refused, publication, ending, unsynced })
}

/// An evaluation whose inputs are validated; nothing of it has been written or spent yet.
pub struct Prepared {
    pub pipeline: Pipeline,
    pub label: Label,
    pub design: Design,
    request: Request,
    writer: LabelWriter,
    options: EngineOptions,
    part: Option<PartOfRun>,
}

/// A run whose actions are over, and whose files are not published.
struct ExecutedRun {
    manifest: Manifest,
    ending: Ending,
    recorded: FinishedRows,
    /// Whether the cache can keep nothing more.
    is_broken: bool,
}

impl Prepared {
    /// Opens the project, locks the label and connects to the remote.
    ///
    /// # Errors
    /// The project or the request has faults; another process writes the label.
    pub fn new(mut request: Request, listening: &Listening<'_>) -> Result<Prepared, EvaluationError> {
        let label = request.label.clone().unwrap_or_else(|| Label::of_time(base::clock::now()));
        let opening = OpenRequest {
            needs_keys: !request.offline,
            sharers: request.part.and_then(NumberedPart::sharers),
            ..request.project.clone()
        };
        let Opened { mut pipeline, warnings, .. } = open_project(&opening)?;
        listening.report(&Event::Opened { pipeline: &pipeline, warnings: &warnings });
        let mut limits = request.limits;
        require_prices(&limits, stage_models(&pipeline), &Prices::new(pipeline.prices.clone()), &pipeline.file)?;
        if request.part.is_some() {
            refuse_batches(&pipeline)?;
        }
        let part = request.part.map(|number| PartOfRun::restrict(&mut pipeline, number, &label));
        if let Some(part) = &part {
            limits = limits.part(part.share());
        }
        if let Some(Baseline { side, .. }) = &request.baseline {
            open_side(&pipeline.results, side)?;
        }
        let design = Design::of(&pipeline);
        let writer = LabelWriter::lock(&pipeline.results, &label, &design, request.replace);
        let writer = writer.map_err(|error| match (error, &part) {
            (error @ LabelWriterError::Lock(LabelLockError::Held { .. }), Some(part)) => {
                EvaluationError::PartIsRunning { shard: part.record.shard, error }
            }
            (error, _) => error.into(),
        })?;
        let (remote, declared) = (std::mem::take(&mut request.remote), &pipeline.remote);
        let trusted = trusted_keys(&remote, declared);
        // Offline, nothing is sent to anybody.
        let shared = match request.offline {
            true => None,
            false => connect_remote(remote, declared, listening, SharedCache::new)?,
        };
        let options = EngineOptions {
            budget: Arc::new(Budget::new(limits)),
            offline: request.offline,
            allow_weak_judge: request.allow_weak_judge,
            refresh: request.refresh.clone(),
            jobs: request.jobs,
            batches: request.batches.clone(),
            trusted,
            shared,
            reports_access: request.reports_access,
            stop: request.stop.clone(),
            ..EngineOptions::default()
        };
        Ok(Prepared { pipeline, label, design, request, writer, options, part })
    }

    /// The cache that the evaluation writes.
    pub fn cache(&self) -> &Path {
        &self.pipeline.cache
    }

    /// Begins the result set, runs the matrix and fills the manifest in.
    fn execute(&self, store: &Store, listening: &Listening<'_>) -> Result<ExecutedRun, EvaluationError> {
        let Prepared { pipeline, options, writer, .. } = self;
        let folder = writer.folder();
        let mut manifest = self.begin(store);
        writer.begin(&manifest)?;
        let earlier = writer.replaced().filter(|_| !self.request.is_followed);
        let began = Instant::now();
        let cells = Matrix::new(pipeline).counts();
        let recorder = Recorder::begin(pipeline, folder, earlier.as_ref(), cells.judge)?;
        let shared = options.shared.as_ref();
        let mut recording = Recording { recorder, weaknesses: BTreeMap::new(), shared };
        // A part may have no chain; then it asks no judge either.
        let run = match cells.all() {
            0 => RunOutcome::default(),
            _ => run_matrix(pipeline, store, options, Some(folder), listening, Some(&mut recording))?,
        };
        let Recording { recorder, weaknesses, .. } = recording;
        let allow_weak_judge = options.allow_weak_judge;
        let ended = Ended { run, weaknesses, failures: recorder.failures.clone(), allow_weak_judge };
        listening.report(&Event::Ended(&ended));
        let ending = ended.ending();
        manifest.outcome = ended.recorded();
        let recorded = self.record_spending(&mut manifest, recorder, ended.run.submitted)?;
        note_origins(store, folder, &mut manifest)?;
        if let Some(summary) = shared.and_then(SharedCache::summary) {
            listening.report(&Event::Exchanged(&summary));
            manifest.remote = Some(remote_use(summary));
        }
        let is_broken = ended.run.broken.is_some();
        manifest.caveats.weak_judges = ended.run.weak_judges;
        manifest.caveats.unqualified = ended.run.unqualified;
        manifest.models = ended.run.models;
        manifest.forecast = ended.run.forecast.as_ref().map(expected);
        manifest.ended = Some(now());
        manifest.wall_s = began.elapsed().as_secs_f64();
        report_changed_outputs(&pipeline.results, &manifest, listening);
        Ok(ExecutedRun { manifest, ending, recorded, is_broken })
    }

    /// The manifest of the run that begins. Stores the texts that later explain a change.
    fn begin(&self, store: &Store) -> Manifest {
        let Prepared { pipeline, request, .. } = self;
        let mut manifest = Manifest::begin(self.label.as_str(), &now(), self.design.clone());
        manifest.shard = self.part.as_ref().map(|part| part.record);
        for file in pipeline.sources.iter().cloned().chain(data_files(pipeline)) {
            store.text(file.digest, &file.text);
            manifest.files.insert(file.path, file.digest);
        }
        for source in crate::plan::source_texts(pipeline) {
            store.text(source.digest, source.text);
        }
        manifest.commit = commit_of(&pipeline.folder);
        manifest.compared_to = request.baseline.as_ref().map(|baseline| baseline.side.clone());
        manifest.compared_scope = scope(request);
        manifest.until_decided = request.baseline.as_ref().is_some_and(|baseline| baseline.until_decided);
        manifest.selftest = (!pipeline.judges.is_empty()).then_some(pipeline.settings.selftest);
        manifest.caveats.offline = request.offline;
        manifest.caveats.allow_weak_judge = request.allow_weak_judge;
        manifest.caveats.allow_unproven = request.project.allow_unproven;
        manifest
    }

    /// Finishes the files of rows and fills in what was sent and paid.
    fn record_spending(
        &self,
        manifest: &mut Manifest,
        recorder: Recorder,
        submitted: u64,
    ) -> Result<FinishedRows, EvaluationError> {
        let requests = &self.options.requests;
        let sent = requests.sent.load(Ordering::Relaxed);
        manifest.requests_sent = sent + submitted;
        manifest.retries = requests.retries.load(Ordering::Relaxed);
        manifest.rate_limited = requests.rate_limited.load(Ordering::Relaxed);
        Ok(recorder.finish(manifest, &self.options.budget.spent().with_unfinished(sent))?)
    }
}

/// A part's folder may be gone before its batches have ended.
fn refuse_batches(pipeline: &Pipeline) -> Result<(), EvaluationError> {
    match stage_models(pipeline).find(|model| model.lane == Lane::Batch) {
        Some(model) => Err(EvaluationError::BatchedPart { model: model.reference.clone() }),
        None => Ok(()),
    }
}

/// Copies what a part of the matrix finds in the project's cache into the part's own, so that a merge needs nothing but
/// the part's folder, on whatever machine it is.
fn copy_known(part: &PartOfRun, pipeline: &Pipeline, store: &Store) -> Result<(), EvaluationError> {
    let known = open_snapshot(part.project_cache())?;
    if !known.is_empty() {
        let found = reachable(pipeline, &Layered { upper: store, lower: &known })?;
        store.import_from_cache(&known, &found.keys)?;
    }
    Ok(())
}

/// Adds the exported self-test to the cache, so that no judge is asked about it.
fn import_selftest(
    pipeline: &Pipeline,
    store: &Store,
    file: &Path,
    listening: &Listening<'_>,
) -> Result<(), EvaluationError> {
    if !file.is_file() {
        return Err(EvaluationError::NoSelftest(file.to_owned()));
    }
    store.import(file, None).map_err(EvaluationError::Import)?;
    let is_missing = |key: &ActionKey| !store.find(key).is_some_and(|record| record.is_usable());
    match selftest_keys(pipeline).into_iter().filter(is_missing).count() {
        0 => {}
        cases => listening.report(&Event::SelftestLacks { file, cases }),
    }
    Ok(())
}

fn now() -> String {
    base::clock::now().to_string()
}

/// What the comparison may leave out: a run of some fixtures is compared on what both sides have.
fn scope(Request { project, baseline, .. }: &Request) -> ComparisonScope {
    let (fixtures, probes) = (&project.selection.fixtures, &project.selection.probes);
    if baseline.as_ref().is_some_and(|baseline| baseline.only_common) {
        ComparisonScope::Common
    } else if fixtures.is_none() && probes.is_none() {
        ComparisonScope::All
    } else {
        ComparisonScope::Selected
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

/// Records every step of the run, and notes what others may pull.
struct Recording<'s> {
    recorder: Recorder,
    /// What a judge failed in, by judge.
    weaknesses: BTreeMap<String, Vec<String>>,
    shared: Option<&'s SharedCache>,
}

impl Listener for Recording<'_> {
    fn on_event(&mut self, event: &scheduler::Event<'_>) -> Result<(), FileError> {
        if let scheduler::Event::SelftestCompleted { judge, verdict } = event {
            self.weaknesses.insert((*judge).to_owned(), verdict.failures.clone());
        }
        let key = match event {
            scheduler::Event::Cached { key, .. } | scheduler::Event::Completed { key, .. } => Some(*key),
            _ => None,
        };
        if let Some((shared, key)) = self.shared.zip(key) {
            shared.note(key);
        }
        self.recorder.on_event(event)
    }
}
