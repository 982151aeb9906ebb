//! Puts together what performs actions (store, client, budget, remote) and runs a matrix with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::event::{EvaluationError, Event, Listening, ProgressSnapshot};
use super::project::runtime;
use super::rows::{Recorder, RowMaker};
use crate::action::StageName;
use crate::entries::Journal;
use crate::pipeline::{ExternalAccess, Matrix, Pipeline};
use crate::plan::OutputCache;
use crate::scheduler::{
    Budget, CircuitBreakers, Executor, Programs, RunOutcome, SchedulerOptions, StopRequest, run,
};
use models::{Client, Limits, Prices, ProviderSpec, RequestCounts};
use store::cache::{Lookup, Store};
use store::remote::SharedCache;

/// How actions are performed, as far as the pipeline does not decide it.
#[derive(Default)]
pub struct EngineOptions {
    pub budget: Arc<Budget>,
    pub run: SchedulerOptions,
    /// Where outputs are searched that are not in the cache, and where new outputs are put.
    pub shared: Option<SharedCache>,
    /// The hosts and programs to report, unless they were reported before.
    pub access: Option<ExternalAccess>,
    /// Receives requests to stop; with `None` there are none.
    pub stop: Option<watch::Receiver<StopRequest>>,
    /// Counts the requests that are sent.
    pub requests: Arc<RequestCounts>,
}

impl EngineOptions {
    /// Whether the work was asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| *stop.borrow() != StopRequest::No)
    }
}

const BEAT: Duration = Duration::from_millis(500);

/// The providers of the models that the stages use.
fn used_providers(pipeline: &Pipeline) -> Vec<Arc<ProviderSpec>> {
    let mut used: Vec<Arc<ProviderSpec>> = Vec::new();
    for model in pipeline.stage_models() {
        if !used.iter().any(|known| known.name == model.provider.name) {
            used.push(model.provider.clone());
        }
    }
    used
}

/// The number of actions in progress at once: as many as the providers allow, and some for local work.
fn jobs(pipeline: &Pipeline) -> usize {
    let local = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    let used = used_providers(pipeline);
    let remote = used.iter().filter(|provider| !provider.base_url.is_empty());
    local
        + remote
            .map(|p| p.limits.max_in_flight.unwrap_or(Limits::DEFAULT_IN_FLIGHT) as usize)
            .sum::<usize>()
}

/// Runs the matrix until it is done or asked to stop; `recorder` writes the rows, if they are written.
///
/// # Errors
/// The cache or a file cannot be written; the runtime cannot be started.
pub(crate) fn run_matrix(
    pipeline: &Pipeline,
    store: &Store,
    options: &EngineOptions,
    listening: &Listening<'_>,
    recorder: Option<&mut Recorder>,
) -> Result<RunOutcome, EvaluationError> {
    with_engine(
        pipeline,
        &stages(pipeline, options.run.without_cells),
        store,
        options,
        listening,
        async move |executor| {
            let Some(recorder) = recorder else {
                return Ok(run(executor, &mut &*listening).await?);
            };
            let shared = executor.shared.filter(|_| !executor.options.offline);
            let remote = shared.map(|shared| shared.exchanged().url);
            let mut rows = RowMaker::new(executor, recorder, listening, remote);
            let outcome = run(executor, &mut rows).await?;
            rows.finish()?;
            Ok(outcome)
        },
    )
}

/// The stages of a run and their cells.
fn stages(pipeline: &Pipeline, selftests_only: bool) -> Vec<(StageName, u64)> {
    let cases = pipeline.selftest.cases.len();
    let selftest = (StageName::Selftest, (pipeline.judges.len() * cases) as u64);
    if selftests_only {
        return vec![selftest];
    }
    let [compress, answer, judge] = Matrix(pipeline).counts().by_stage();
    vec![compress, answer, selftest, judge]
}

/// Puts together what is needed to perform actions, and passes it to `work`.
///
/// # Errors
/// The errors of `work`; the cache cannot be read; the runtime cannot be started.
pub fn with_engine<T>(
    pipeline: &Pipeline,
    stages: &[(StageName, u64)],
    store: &Store,
    options: &EngineOptions,
    listening: &Listening<'_>,
    work: impl AsyncFnOnce(&Executor<'_>) -> Result<T, EvaluationError>,
) -> Result<T, EvaluationError> {
    if let Some(access) = options.access.as_ref().filter(|_| !options.run.offline) {
        report_access(access, store, listening);
    }
    let prices = Prices::new(pipeline.prices.clone());
    let outputs = OutputCache::new(pipeline, store);
    let client = client(pipeline, options.requests.clone());
    let shared = options.shared.as_ref();
    let scheduler_options = SchedulerOptions {
        jobs: match options.run.jobs {
            0 => jobs(pipeline),
            jobs => jobs,
        },
        refresh: Journal::read(store)?.refresh(options.run.refresh.clone()),
        ..options.run.clone()
    };
    let (_never, never) = watch::channel(StopRequest::No);
    let executor = Executor {
        pipeline,
        store,
        outputs: &outputs,
        client: &client,
        budget: &options.budget,
        prices: &prices,
        programs: Programs::default(),
        shared,
        options: &scheduler_options,
        breakers: CircuitBreakers::default(),
        stop: options.stop.clone().unwrap_or(never),
    };
    let runtime = runtime()?;
    let limits = options.budget.limits();
    listening.report(&Event::Started { stages, limits });
    let work = work(&executor);
    let done = runtime.block_on(work_and_report(work, &executor, listening));
    listening.report(&Event::WorkIsOver);
    if let Some(shared) = shared {
        listening.report_warnings(shared);
    }
    // Do not wait for computations whose result is no longer used.
    runtime.shutdown_background();
    done
}

/// A client of all providers that the project may use.
fn client(pipeline: &Pipeline, requests: Arc<RequestCounts>) -> Client {
    let generator = pipeline.generator.model.provider.clone();
    let client = Client::new(used_providers(pipeline).into_iter().chain([generator]));
    client.with_counts(requests)
}

/// Does `work`, and meanwhile reports progress.
async fn work_and_report<T>(
    work: impl Future<Output = Result<T, EvaluationError>>,
    Executor {
        client,
        budget,
        shared,
        stop,
        ..
    }: &Executor<'_>,
    listening: &Listening<'_>,
) -> Result<T, EvaluationError> {
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = beats.tick() => {}
        }
        if let Some(shared) = shared {
            listening.report_warnings(shared);
        }
        listening.report(&Event::Progress(&ProgressSnapshot {
            statuses: client.statuses(),
            spent: budget.spent(),
            stop: *stop.borrow(),
        }));
    }
}

/// Reports which hosts and programs the project uses, unless the same list was reported before, which the cache
/// records.
fn report_access(access: &ExternalAccess, store: &Store, listening: &Listening<'_>) {
    if !access.is_empty() && store.read_memo(&access.digest()).is_none() {
        store.keep_memo(access.digest(), b"shown");
        let text = format!("This project {}", access.lines().join("; "));
        listening.note("", &text);
    }
}
