//! Assembles the parts of a run (matrix, store, client, budget, signals) and runs it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::action::Stage;
use crate::cache::{Refresh, Store};
use crate::cli::args::BudgetArgs;
use crate::cli::failure::Failure;
use crate::cli::interrupts::Interrupts;
use crate::cli::remote::{RemoteArgs, print_warnings};
use crate::cli::terminal::{Console, Progress, ProgressSnapshot, TextStyle};
use crate::pipeline::{ExternalAccess, Matrix, Pipeline};
use crate::plan::Preparer;
use crate::remote::SharedCache;
use crate::scheduler::{
    BatchOptions, Budget, BudgetLimits, Executor, Listener, OutputCache, RunOutcome, SchedulerOptions, SharedPrefixes,
    StopRequest, run,
};
use base::units::{Tokens, Usd};
use models::{Client, Limits, ModelUse, Prices, ProviderSpec};

/// Options of a run that are not part of the pipeline.
#[derive(Default)]
pub(crate) struct RunOptions {
    pub(crate) budget: Arc<Budget>,
    pub(crate) offline: bool,
    pub(crate) allow_weak_judge: bool,
    pub(crate) refresh: BTreeSet<Stage>,
    pub(crate) jobs: Option<usize>,
    /// Tests the judges and leaves the matrix alone.
    pub(crate) selftests_only: bool,
    pub(crate) batches: BatchOptions,
    /// The public keys of the writers whose entries are used; `None` for those of environment and pipeline.
    pub(crate) trusted: Option<BTreeSet<String>>,
    /// Where outputs are looked for that are not in the cache, and where new ones are uploaded to.
    pub(crate) shared: Option<SharedCache>,
}

impl RunOptions {
    /// Options without limits, except for the budget.
    pub(crate) fn within(budget: Budget) -> RunOptions {
        RunOptions { budget: Arc::new(budget), allow_weak_judge: true, ..RunOptions::default() }
    }

    fn for_scheduler(&self, pipeline: &Pipeline, refresh: Refresh) -> SchedulerOptions {
        SchedulerOptions {
            jobs: self.jobs.unwrap_or_else(|| jobs(pipeline)).max(1),
            offline: self.offline,
            refresh,
            allow_weak_judge: self.allow_weak_judge,
            selftests_only: self.selftests_only,
            batches: self.batches.clone(),
        }
    }
}

/// The limits for `models`. A cost limit requires a known price of each; `file` is named in the hint.
pub(crate) fn budget_limits<'m>(
    BudgetArgs { max_cost, max_requests }: &BudgetArgs,
    mut models: impl Iterator<Item = &'m ModelUse>,
    prices: &Prices,
    file: &Path,
) -> Result<BudgetLimits, Failure> {
    let requests = *max_requests;
    let Some(limit) = *max_cost else { return Ok(BudgetLimits { usd: None, requests }) };
    if !limit.is_finite() || limit < 0.0 {
        return Err(Failure::input(format!("--max-cost {limit} is not an amount of money: expected 0 or more")));
    }
    let is_unknown = |model: &&ModelUse| !model.is_lexical() && prices.price(&model.reference, Tokens(0)).is_none();
    if let Some(model) = models.find(is_unknown) {
        let model = &model.reference;
        let message = format!("--max-cost needs known prices, and the price of `{model}` is unknown");
        let hint = format!(
            "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
            file.display()
        );
        return Err(Failure::input(message).hinted(hint));
    }
    Ok(BudgetLimits { usd: Some(Usd(limit)), requests })
}

const BEAT: Duration = Duration::from_millis(500);

/// The upload at the end of a run takes no longer; a later run uploads the rest.
const LAST_UPLOAD: Duration = Duration::from_secs(120);

pub(crate) fn models(pipeline: &Pipeline) -> impl Iterator<Item = &ModelUse> {
    let compressors = pipeline.methods.iter().filter_map(|method| method.strategy.model());
    compressors
        .chain(pipeline.answerers.iter().map(|answerer| &answerer.model))
        .chain(pipeline.judges.iter().map(|judge| &judge.model))
}

/// The providers that the stages really use.
pub(crate) fn used_providers(pipeline: &Pipeline) -> Vec<Arc<ProviderSpec>> {
    let mut used: Vec<Arc<ProviderSpec>> = Vec::new();
    for model in models(pipeline) {
        if !used.iter().any(|known| known.name == model.provider.name) {
            used.push(model.provider.clone());
        }
    }
    used
}

/// Actions under way at once: what the providers may carry, and something for local work.
fn jobs(pipeline: &Pipeline) -> usize {
    let local = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    let used = used_providers(pipeline);
    let remote = used.iter().filter(|provider| !provider.base_url.is_empty());
    local + remote.map(|p| p.limits.max_in_flight.unwrap_or(Limits::DEFAULT_IN_FLIGHT) as usize).sum::<usize>()
}

/// Runs the matrix to its end, or until the user stops it.
pub(crate) fn run_matrix<L: Listener>(
    pipeline: &Pipeline,
    store: &Store,
    options: &RunOptions,
    progress: &Progress,
    listener: &mut L,
) -> Result<RunOutcome, Failure> {
    with_engine(pipeline, store, options, progress, async |executor, options, stop| {
        run(executor, options, stop, listener).await.map_err(Failure::from)
    })
}

/// Assembles everything that performing actions needs and passes it to `work`.
pub(crate) fn with_engine<T>(
    pipeline: &Pipeline,
    store: &Store,
    options: &RunOptions,
    progress: &Progress,
    work: impl AsyncFnOnce(&Executor<'_>, &SchedulerOptions, watch::Receiver<StopRequest>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if !options.offline {
        announce_access(pipeline, store, &progress.console);
    }
    hide_untrusted(pipeline, store, options, &progress.console)?;
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let prices = Prices::new(pipeline.prices.clone());
    let outputs = OutputCache::new(preparer, store);
    let generators = pipeline.generators.iter().map(|generator| generator.model.provider.clone());
    let client = Client::new(used_providers(pipeline).into_iter().chain(generators)).with_listener({
        let requests = progress.requests.clone();
        move |event| requests.on_event(event)
    });
    let shared = options.shared.as_ref();
    let executor = Executor {
        preparer,
        store,
        outputs: &outputs,
        client: &client,
        budget: &options.budget,
        prices: &prices,
        prefixes: SharedPrefixes::default(),
        shared,
    };
    let scheduler_options = options.for_scheduler(pipeline, store.journal()?.refresh(options.refresh.clone()));
    let runtime = runtime()?;
    let interrupts = Interrupts::listen(&progress.console)?;
    let stop = &interrupts.stop;
    let work = work(&executor, &scheduler_options, stop.clone());
    let done = runtime.block_on(work_and_report(work, &executor, stop, progress));
    interrupts.work_is_over();
    progress.finish();
    if let Some(shared) = shared {
        print_warnings(shared.take_warnings(), &progress.console);
    }
    // Do not wait for computations whose result is no longer used.
    runtime.shutdown_background();
    done
}

/// Does `work` while progress is shown and what was made is uploaded.
async fn work_and_report<T>(
    work: impl Future<Output = Result<T, Failure>>,
    Executor { client, budget, store, shared, .. }: &Executor<'_>,
    stop: &watch::Receiver<StopRequest>,
    progress: &Progress,
) -> Result<T, Failure> {
    if let Some(shared) = shared {
        shared.load_or_warn().await;
        print_warnings(shared.take_warnings(), &progress.console);
    }
    let snapshot = || ProgressSnapshot { statuses: client.statuses(), spent: budget.spent(), stop: *stop.borrow() };
    let done = tokio::select! {
        done = work => done,
        () = update_periodically(progress, snapshot) => Err(Failure::error("the clock stopped")),
        () = upload_periodically(*shared, store) => Err(Failure::error("the clock stopped")),
    };
    if let Some(shared) = shared.filter(|_| *stop.borrow() != StopRequest::Now) {
        let _ = tokio::time::timeout(LAST_UPLOAD, shared.finish(store)).await;
    }
    done
}

/// Prints which hosts and programs the project uses, unless this list was printed before. The cache records that.
fn announce_access(pipeline: &Pipeline, store: &Store, console: &Console) {
    let access = ExternalAccess::of(pipeline);
    if access.is_empty() || console.is_quiet || store.read_derived(&access.digest()).is_some() {
        return;
    }
    store.keep_derived(access.digest(), b"shown");
    console.note(&access_list(&access, console));
}

/// The hosts and programs that a project uses, on one line.
pub(crate) fn access_line(access: &ExternalAccess, console: &Console) -> String {
    format!("{} {}", console.paint(TextStyle::Strong, "This project"), access.lines().join("; "))
}

/// The same as a list with a heading.
pub(crate) fn access_list(access: &ExternalAccess, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, "This project:");
    [heading].into_iter().chain(access.lines().iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
}

pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(std::thread::available_parallelism().map_or(2, std::num::NonZero::get))
        .build()
        .map_err(|e| Failure::error(format!("failed to start the runtime: {e}")))
}

/// Lets entries count as missing whose writer is not trusted.
fn hide_untrusted(pipeline: &Pipeline, store: &Store, options: &RunOptions, console: &Console) -> Result<(), Failure> {
    let trusted = match &options.trusted {
        Some(trusted) => trusted.clone(),
        None => RemoteArgs::default().trusted(&pipeline.remote)?,
    };
    let hidden = store.trust_only(&trusted)?;
    if hidden > 0 {
        let text = format!("{hidden} pulled entries are of writers that are not in `trust`; they count as missing");
        console.warn("cache:", text);
    }
    Ok(())
}

/// During the run, uploads what was made; never returns.
async fn upload_periodically(shared: Option<&SharedCache>, store: &Store) {
    let Some(shared) = shared.filter(|shared| shared.is_written()) else { return std::future::pending().await };
    let mut beats = tokio::time::interval(BEAT);
    loop {
        beats.tick().await;
        shared.upload_if_due(store).await;
    }
}

/// Updates the progress periodically; never returns.
async fn update_periodically(progress: &Progress, snapshot: impl Fn() -> ProgressSnapshot) {
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        beats.tick().await;
        progress.update(snapshot());
    }
}
