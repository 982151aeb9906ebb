//! An evaluation from its request to its published results.
//!
//! Whether a cost limit allows a run at all is decided before the first request. If the price of a model is unknown, the run
//! is refused. A model without `max_output_tokens` may write so much that one reply costs more than the limit, although a
//! run with usual replies costs a tenth of the limit. Such a run is allowed if its estimated cost is below the limit; then
//! the last reply may exceed the limit. Otherwise the run is refused, and the error has the smallest limit that works.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::comparison::{check_baseline, compared_to_baseline, scope};
use super::engine::{EngineOptions, run_matrix};
use super::event::{EvaluationError, EvaluationOutcome, Event, Listening};
use super::project::{
    add_spending, commit_of, connect_shared, open_project, open_snapshot, open_store,
    remote_of_run, report_notices, require_selftest,
};
use super::publish::publish;
use super::regrade::{Regrader, check_reading};
use super::request::{PartOfRun, Request};
use super::rows::Recorder;
use crate::action::{ActionKey, CellCoordinate};
use crate::entries::{Journal, Refresh};
use crate::parts::PartNumber;
use crate::pipeline::{ExternalAccess, Matrix, OpenRequest, Opened, Pipeline, Problem, data_files};
use crate::plan::{Assumptions, Forecast, PrepareError, forecast, reachable};
use crate::results::{
    Comparison, Design, FolderError, Label, LabelWriter, Manifest, Outcome, ResultSet,
    ResultsFolder, names, unfinished_refresh,
};
use crate::scheduler::{Budget, BudgetLimits, RunOutcome, SchedulerOptions};
use base::units::{Tokens, Usd, money};
use lexical::claims::language_of;
use models::{Lane, ModelRef, ModelUse, Prices, longest_reply};
use store::cache::{Layered, Lookup, Store};
use store::remote::{Exchanged, SharedCache};

/// Does an evaluation: opens the project, runs what is stale, and publishes the results. `listener` receives each step
/// as it happens.
///
/// # Errors
/// The project or the request has faults; the cache or the label is locked or damaged; a file cannot be written. Cells
/// that fail are not errors; the [`EvaluationOutcome`] has them.
pub fn evaluate(
    request: Request,
    listener: &mut dyn FnMut(&Event<'_>),
) -> Result<EvaluationOutcome, EvaluationError> {
    let listening = Listening::new(listener);
    let prepared = Prepared::new(request, &listening)?;
    let store = open_store(&prepared.pipeline.cache, &listening)?;
    run_and_publish(prepared, store, &listening)
}

/// Runs what was prepared and publishes the results.
fn run_and_publish(
    prepared: Prepared,
    store: Store,
    listening: &Listening<'_>,
) -> Result<EvaluationOutcome, EvaluationError> {
    let mut manifest = prepared.begin(&store, listening)?;
    let began = Instant::now();
    let run = prepared.run(&mut manifest, &store, listening)?;
    let mut ending = listening.totals().ending(&run);
    let compared = prepared.compare(&mut manifest, &mut ending, &store, listening)?;
    prepared.record(&mut manifest, &run, &store, listening)?;
    manifest.wall_s = began.elapsed().as_secs_f64();
    let Prepared {
        pipeline,
        writer,
        part,
        options,
        ..
    } = prepared;
    let files = writer.wait_for_files()?;
    let unpushed = part
        .as_ref()
        .and_then(|_| options.shared.as_ref().and_then(SharedCache::failure));
    if unpushed.is_some() {
        manifest.outcome = Outcome::Incomplete;
    }
    let synced = store.sync();
    report_notices(&store, listening);
    let folder = writer.folder().clone();
    let (manifest, summary, refused) = match compared {
        // A part has no reports: these are made from all parts together.
        None => (manifest, None, None),
        Some((mut set, compared)) => {
            set.manifest = manifest;
            let (comparison, refused) = match compared {
                Ok(comparison) => (comparison, None),
                Err(refusal) => (None, Some(refusal)),
            };
            let summary = publish(&pipeline, &folder, &set, comparison, &store)?;
            (set.manifest, Some(summary), refused)
        }
    };
    let staged = folder.stage_json(names::MANIFEST, &manifest)?;
    let (folder, is_beside) = writer.publish(staged, &manifest)?;
    drop(files);
    // If the cache failed, that was already reported.
    let unsynced = synced.err().filter(|_| run.broken.is_none());
    Ok(EvaluationOutcome {
        manifest,
        summary,
        refused,
        folder,
        is_beside,
        ending,
        unpushed,
        unsynced,
    })
}

/// An evaluation whose inputs are validated, before anything is written or spent.
struct Prepared {
    pipeline: Pipeline,
    label: Label,
    design: Design,
    request: Request,
    writer: LabelWriter,
    /// When the run of the baseline began.
    baseline_began: Option<String>,
    options: EngineOptions,
    part: Option<PartOfRun>,
}

/// The scores of a run, with what they were compared with or why they were not.
type Compared = (ResultSet, Result<Option<Comparison>, EvaluationError>);

impl Prepared {
    /// Opens the project, locks the label and connects to the remote.
    ///
    /// # Errors
    /// The project or the request has faults; another process writes the label.
    fn new(mut request: Request, listening: &Listening<'_>) -> Result<Prepared, EvaluationError> {
        let (number, offline) = (request.part, request.offline);
        let opening = OpenRequest {
            needs_keys: !offline,
            sharers: number.map(PartNumber::count),
            ..request.project.clone()
        };
        let Opened {
            mut pipeline,
            warnings,
            ..
        } = open_project(&opening)?;
        listening.report(&Event::Opened {
            pipeline: &pipeline,
            warnings: &warnings,
        });
        let label = request.label.clone().unwrap_or_else(|| {
            Label::from_time(base::clock::now(), |label| {
                ResultsFolder::new(&pipeline.results, label).exists()
            })
        });
        let mut limits = request.limits;
        require_prices(&limits, pipeline.stage_models(), &pipeline)?;
        if number.is_some() {
            refuse_batches(&pipeline)?;
        }
        let part = number.map(|number| PartOfRun::restrict(&mut pipeline, number, &label));
        if let Some(part) = &part {
            limits = limits.part(part.number.share());
        }
        let design = Design::from_pipeline(&pipeline);
        let selection = &request.project.selection;
        let checked = request
            .baseline
            .as_ref()
            .map(|baseline| check_baseline(&pipeline, &design, baseline, selection, Some(&label)));
        let baseline_began = match checked.transpose() {
            // What is cached is paid for: it is published, and only its comparison is refused.
            Err(EvaluationError::OtherBaseline(_)) if offline => None,
            checked => checked?,
        };
        let writer = LabelWriter::lock(&pipeline.results, &label, &design, request.replace)
            .map_err(|error| lock_failure(error, part.as_ref()))?;
        let refresh = begin_refresh(&pipeline, &request, listening);
        let given = remote_of_run(std::mem::take(&mut request.remote), number, offline);
        let shared = match given {
            Some(given) => connect_shared(given, &pipeline.remote, listening)?,
            None => None,
        };
        if number.is_some() && shared.is_none() {
            let message =
                "the parts of a run share their outputs through a remote, and none is set";
            let help = "--remote fs:///srv/compeval, or COMPEVAL_REMOTE";
            return Err(Problem::error(message).help(help).into());
        }
        let options = EngineOptions {
            budget: Arc::new(Budget::new(limits)),
            run: SchedulerOptions {
                offline,
                allow_weak_judge: request.allow_weak_judge,
                refresh,
                jobs: request.jobs.unwrap_or_default(),
                waits_for_batches: request.waits_for_batches,
                ..SchedulerOptions::default()
            },
            shared,
            access: request
                .reports_access
                .then(|| ExternalAccess::from_pipeline(&pipeline)),
            stop: request.stop.clone(),
            ..EngineOptions::default()
        };
        Ok(Prepared {
            pipeline,
            label,
            design,
            request,
            writer,
            baseline_began,
            options,
            part,
        })
    }

    /// Begins the result set, unless its budget cannot be enough.
    fn begin(&self, store: &Store, listening: &Listening<'_>) -> Result<Manifest, EvaluationError> {
        let Prepared {
            pipeline, options, ..
        } = self;
        let mut share = 1.0;
        if let Some(part) = &self.part {
            share = part.number.share();
            listening.note("", &part.words());
            copy_known(part, pipeline, store)?;
            if let Some(shared) = &options.shared {
                require_selftest(pipeline, shared, store)?;
            }
        }
        check_cost_limit(pipeline, store, options, share)?;
        let manifest = self.first_manifest(store);
        self.writer.begin(&manifest)?;
        Ok(manifest)
    }

    /// Runs the matrix, writes its rows, and records in the manifest how it ended.
    fn run(
        &self,
        manifest: &mut Manifest,
        store: &Store,
        listening: &Listening<'_>,
    ) -> Result<RunOutcome, EvaluationError> {
        let Prepared {
            pipeline, options, ..
        } = self;
        let cells = Matrix(pipeline).counts();
        let mut recorder = Recorder::begin(pipeline, self.writer.folder())?;
        // A part without chains runs nothing, not even the self-test of the judges.
        let run = match cells.all() {
            0 => RunOutcome::default(),
            _ => run_matrix(pipeline, store, options, listening, Some(&mut recorder))?,
        };
        recorder.finish()?;
        let totals = &*listening.totals();
        listening.report(&Event::Ended { run: &run, totals });
        manifest.outcome = totals.recorded(&run);
        manifest.caveats.weak_judges.clone_from(&run.weak_judges);
        manifest.caveats.unqualified = totals.unqualified();
        manifest.models.clone_from(&run.models);
        Ok(run)
    }

    /// Compares the scores with those of the baseline, and checks the judges with answers of this run. The manifest keeps the
    /// regradings, on which verdicts depend besides the rows, so that making a report again sends nothing. `None` for a part:
    /// its scores are made together with those of all parts.
    fn compare(
        &self,
        manifest: &mut Manifest,
        ending: &mut Outcome,
        store: &Store,
        listening: &Listening<'_>,
    ) -> Result<Option<Compared>, EvaluationError> {
        if self.part.is_some() {
            return Ok(None);
        }
        let Prepared {
            pipeline,
            options,
            request,
            ..
        } = self;
        let folder = self.writer.folder();
        let regrader = Regrader {
            pipeline,
            store,
            options,
            left_out: Cell::new(false),
        };
        let checks = regrader.has_judge() && *ending <= Outcome::Incomplete;
        if checks && pipeline.settings.regrade {
            // A selection has other longest contexts: it is checked by what the whole run paid for.
            let only_known = !request.project.selection.is_whole();
            let design = &manifest.design;
            manifest.caveats.reading =
                check_reading(&regrader, folder, design, only_known, listening)?;
        }
        let so_far = Manifest {
            failures: listening.totals().failures.clone(),
            ..manifest.clone()
        };
        let set = ResultSet::read_as(folder, so_far)?;
        let comparison = match compared_to_baseline(pipeline, &set, store) {
            Ok(Some(found)) if checks => {
                manifest.regradings = regrader.check_drift(&found, &set, listening)?;
                Ok(Some(found.comparison.with_regradings(&manifest.regradings)))
            }
            compared => compared.map(|found| found.map(|found| found.comparison)),
        };
        if regrader.left_out.get() {
            let text = "interrupted while the judges were checked with answers of this run; finished work is saved, and the next \
                        run makes the other checks";
            listening.warn("stopped:", text);
            *ending = Outcome::Interrupted;
        }
        Ok(Some((set, comparison)))
    }

    /// The manifest at the start of the run. Stores the texts that can later explain a change.
    fn first_manifest(&self, store: &Store) -> Manifest {
        let Prepared {
            pipeline, request, ..
        } = self;
        let mut manifest = Manifest::begin(self.label.as_str(), &now(), self.design.clone());
        manifest.part = self.part.as_ref().map(|part| part.number);
        manifest.refresh = self.options.run.refresh.clone();
        for file in pipeline.sources.iter().cloned().chain(data_files(pipeline)) {
            store.text(file.digest, &file.text);
            manifest.files.insert(file.path, file.digest);
        }
        for source in crate::plan::source_texts(pipeline) {
            store.text(source.digest, source.text);
        }
        manifest.commit = commit_of(&pipeline.folder);
        manifest.chosen_locale = request.locale;
        manifest.compared_to = request
            .baseline
            .as_ref()
            .map(|baseline| baseline.side.clone());
        manifest.compared_began.clone_from(&self.baseline_began);
        manifest.compared_scope = scope(&request.project.selection, request.baseline.as_ref());
        manifest.selftest = (!pipeline.judges.is_empty()).then_some(pipeline.settings.selftest);
        // What a remote has was asked by others.
        manifest.caveats.offline = request.offline && self.options.shared.is_none();
        manifest.caveats.allow_weak_judge = request.allow_weak_judge;
        manifest.caveats.allow_unproven = request.project.allow_unproven;
        let languages = pipeline
            .fixtures
            .iter()
            .map(|loaded| language_of(&loaded.fixture.messages));
        manifest.caveats.other_language = languages
            .filter(|language| *language != pipeline.settings.locale)
            .count();
        manifest
    }

    /// Records in the manifest what was done, sent and paid.
    fn record(
        &self,
        manifest: &mut Manifest,
        run: &RunOutcome,
        store: &Store,
        listening: &Listening<'_>,
    ) -> Result<(), EvaluationError> {
        let Prepared {
            options, writer, ..
        } = self;
        let (totals, requests) = (&*listening.totals(), &options.requests);
        writer.folder().write_keys(&totals.keys)?;
        manifest.forecast.clone_from(&run.forecast);
        let sent = requests.sent.load(Ordering::Relaxed);
        manifest.requests_sent = sent + run.submitted;
        manifest.retries = requests.retries.load(Ordering::Relaxed);
        manifest.rate_limited = requests.rate_limited.load(Ordering::Relaxed);
        totals.record(manifest, &options.budget.spent().with_unfinished(sent));
        if let Some(shared) = &options.shared {
            listening.report_warnings(shared);
            let exchanged = shared.exchanged();
            if let Some(line) = transfers(&exchanged) {
                listening.note("", &line);
            }
            manifest.remote = Some(exchanged);
            if options.run.offline {
                add_spending(store, writer.folder(), manifest)?;
            }
        }
        manifest.ended = Some(now());
        Ok(())
    }
}

/// Why the label of a run, or of a part, cannot be written.
fn lock_failure(error: FolderError, part: Option<&PartOfRun>) -> EvaluationError {
    match (error, part) {
        (error @ FolderError::Held { .. }, Some(PartOfRun { number, .. })) => {
            Problem::error(format!("part {number} is being run already: {error}"))
                .help("give each process a number of its own, from 1/N to N/N")
                .into()
        }
        (error, _) => error.into(),
    }
}

/// The refresh that a run does: the one that the last run was stopped in, or a new one.
fn begin_refresh(pipeline: &Pipeline, request: &Request, listening: &Listening<'_>) -> Refresh {
    match unfinished_refresh(&pipeline.results, &request.refresh) {
        Some((label, refresh)) => {
            let text = format!(
                "this continues the --refresh in which the last run of `{label}` was stopped: outputs made since it began are \
                 not asked for again"
            );
            listening.note("note:", &text);
            refresh
        }
        None => Refresh::new(request.refresh.clone()),
    }
}

/// What was pulled and put, in a line; `None` if nothing was.
fn transfers(exchanged: &Exchanged) -> Option<String> {
    let counts = [
        (exchanged.pulled, "pulled"),
        (exchanged.pushed, "put there"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let done: Vec<String> = counts
        .map(|(count, verb)| format!("{count} {verb}"))
        .collect();
    (!done.is_empty()).then(|| format!("Remote {}: {}.", exchanged.url, done.join(", ")))
}

/// Refuses batches in a part, because its folder may be gone before they end.
fn refuse_batches(pipeline: &Pipeline) -> Result<(), EvaluationError> {
    match pipeline
        .stage_models()
        .find(|model| model.lane == Lane::Batch)
    {
        Some(model) => {
            let model = &model.reference;
            Err(Problem::error(format!(
                "a part cannot send requests to `{model}` in batches"
            ))
            .help("--lane live, or run the matrix in one process")
            .into())
        }
        None => Ok(()),
    }
}

/// Copies the outputs that a part needs from the project's cache into the part's own cache, so that they are pushed
/// together with the part's new outputs.
fn copy_known(part: &PartOfRun, pipeline: &Pipeline, store: &Store) -> Result<(), EvaluationError> {
    let known = open_snapshot(&part.project_cache)?;
    if !known.is_empty() {
        let found = reachable(
            pipeline,
            &Layered {
                upper: store,
                lower: &known,
                missed: None,
            },
        )?;
        store.import_from_cache(&known, &found.keys)?;
    }
    Ok(())
}

fn now() -> String {
    base::clock::now().to_string()
}

/// Refuses a cost limit if the price of a model is unknown.
///
/// # Errors
/// The first model without a price.
pub fn require_prices<'m>(
    limits: &BudgetLimits,
    models: impl Iterator<Item = &'m ModelUse>,
    pipeline: &Pipeline,
) -> Result<(), EvaluationError> {
    let prices = Prices::new(pipeline.prices.clone());
    let mut asked = models.filter(|model| model.is_asked());
    let unknown = asked.find(|model| prices.price(&model.reference, Tokens(0)).is_none());
    match unknown.filter(|_| limits.usd.is_some()) {
        Some(ModelUse {
            reference: model, ..
        }) => {
            let message =
                format!("--max-cost needs known prices, and the price of `{model}` is unknown");
            let help = format!(
                "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
                pipeline.file.display()
            );
            Err(Problem::error(message).help(help).into())
        }
        None => Ok(()),
    }
}

/// Refuses a run that its cost limit would stop at the first reply. If one reply may cost more than the limit but the
/// estimate of the run is below it, the budget is changed to allow such replies. `share` is the part of the money that
/// this process may spend, from 0 to 1.
///
/// # Errors
/// One reply may cost more than the limit, and so may the whole run.
pub(super) fn check_cost_limit(
    pipeline: &Pipeline,
    store: &Store,
    options: &EngineOptions,
    share: f64,
) -> Result<(), EvaluationError> {
    let prices = Prices::new(pipeline.prices.clone());
    let Some(limit) = options.budget.limits().usd.filter(|_| !options.run.offline) else {
        return Ok(());
    };
    let Some(reply) = dearest_reply(pipeline, &prices).filter(|reply| reply.usd.0 > limit.0) else {
        return Ok(());
    };
    let (journal, refresh) = (Journal::read(store)?, options.run.refresh.clone());
    let expected = forecast_run(pipeline, store, &journal, refresh, None).ok();
    let expected = expected.and_then(|found| found.estimate.usd);
    match expected {
        Some(expected) if expected.0 <= limit.0 => {
            options.budget.allow_expensive_replies();
            Ok(())
        }
        expected => Err(cost_limit_problem(limit, share, &reply, expected).into()),
    }
}

/// What a run would do with what `lookup` has. Reasons are wanted if `explained` has the actions to compare with.
///
/// # Errors
/// An action cannot be prepared.
pub fn forecast_run<L: Lookup>(
    pipeline: &Pipeline,
    lookup: &L,
    journal: &Journal,
    refresh: Refresh,
    explained: Option<&HashMap<CellCoordinate, ActionKey>>,
) -> Result<Forecast, PrepareError> {
    let assumptions = Assumptions {
        refresh: &journal.refresh(refresh),
        prices: &Prices::new(pipeline.prices.clone()),
        submitted: &journal.held(),
        explained,
    };
    forecast(pipeline, lookup, assumptions)
}

/// What a limit is too small for, the smallest one that works, and what lowers the cost of one reply.
fn cost_limit_problem(
    limit: Usd,
    share: f64,
    reply: &DearestReply,
    expected: Option<Usd>,
) -> Problem {
    let model = &reply.model;
    let estimate =
        expected.map(|usd| format!(", and the run is estimated at {}", money(Some(usd))));
    let message = format!(
        "--max-cost {} is less than one reply of `{model}` may cost: {} for {} tokens{}",
        limit.0,
        money(Some(reply.usd)),
        reply.tokens.0,
        estimate.unwrap_or_default()
    );
    let needed = expected.map_or(reply.usd.0, |expected| expected.0.min(reply.usd.0));
    let least = limit.0 + (needed - limit.0) / share;
    let amount = format!("--max-cost {:.2} works", (least * 100.0).ceil() / 100.0);
    Problem::error(message).help(match reply.is_limited {
        true => format!("{amount}, or a lower max_output_tokens where `{model}` is asked"),
        false => {
            format!("{amount}, or max_output_tokens where `{model}` is asked: it is missing there")
        }
    })
}

/// The longest reply of a model, with its cost.
struct DearestReply {
    model: ModelRef,
    /// The maximum length of the reply.
    tokens: Tokens,
    /// The cost of a reply of this length.
    usd: Usd,
    /// Whether the pipeline limits the model's replies (`max_output_tokens`).
    is_limited: bool,
}

/// The model whose longest reply costs the most, among those that are asked live.
fn dearest_reply(pipeline: &Pipeline, prices: &Prices) -> Option<DearestReply> {
    let models = pipeline
        .stage_models()
        .filter(|model| model.is_asked() && model.lane != Lane::Batch);
    let replies = models.filter_map(|model| {
        let (reference, most) = (&model.reference, model.settings.max_output_tokens);
        let tokens = longest_reply(model.provider.dialect, &reference.model, most);
        Some(DearestReply {
            model: reference.clone(),
            tokens,
            usd: prices.worst_case(reference, Tokens(0), tokens)?,
            is_limited: most.is_some(),
        })
    });
    replies.max_by(|a, b| a.usd.0.total_cmp(&b.usd.0))
}
