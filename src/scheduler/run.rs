//! The loop: one task owns frontier, flights and counts; actions under way are futures that borrow the plan.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

use super::doors::Doors;
use super::ended::RunOutcome;
use super::errand::Errand;
use super::event::{Event, Listener, SkipReason};
use super::perform::{Fresh, NoOutput, Performer};
use super::rows::RowMaker;
use super::selftest::{Selftests, Trust};
use super::sheets::Sheets;
use crate::action::{ActionKey, Stage, Work};
use crate::cache::CacheError;
use crate::files::FileError;
use crate::pipeline::MatrixCounts;
use crate::plan::{
    self, Action, ActionStatus, CurrentSources, Estimate, Frontier, Output, Resolved, SelftestTask, Task, TaskOutcome,
};
use crate::provider::{ErrorClass, ModelName, ProviderName};
use crate::results::Failure;

/// How far a run may go.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// Actions under way at once.
    pub jobs: usize,
    /// Sends no request and starts no program.
    pub offline: bool,
    /// Stages whose cached outputs are ignored, then replaced.
    pub refresh: HashSet<Stage>,
    /// Goes on with a judge that fails its self-test.
    pub allow_weak_judge: bool,
    /// Tests the judges and leaves the matrix alone.
    pub selftests_only: bool,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// What the user asked for while the run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Nothing: go on.
    #[default]
    No,
    /// No new calls; what is under way is finished and kept.
    Drain,
    /// At once.
    Now,
}

/// Cached cells settled in one go, before actions under way get their turn.
const BREATH: u64 = 256;

/// Time between two looks whether there is room for more, where nothing lands.
const LOOK: Duration = Duration::from_secs(1);

/// What an action under way is for.
#[expect(clippy::large_enum_variant, reason = "one at a time, and short-lived: a box would cost more than it saves")]
pub(super) enum Errands {
    Cell(Task),
    Selftest(SelftestTask),
}

/// An action that is no longer under way.
pub(super) struct Landed {
    pub(super) errand: Errands,
    pub(super) action: Action,
    pub(super) result: Result<Fresh, NoOutput>,
}

type Flight<'f> = Pin<Box<dyn Future<Output = Landed> + 'f>>;

/// Runs the matrix: executes what is stale, tells `listener` everything.
///
/// # Errors
/// A listener that cannot go on. What was kept is safe.
pub async fn run<L: Listener>(
    performer: &Performer<'_>,
    options: &SchedulerOptions,
    stop: watch::Receiver<Stop>,
    listener: &mut L,
) -> Result<RunOutcome, RunError> {
    let mut run = Loop::new(performer, options, listener);
    let broken = match run.go(stop).await {
        Ok(()) => None,
        // What was kept is good, and there is to be a report of it.
        Err(RunError::Cache(error)) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    let mut ended = RunOutcome { models: performer.outputs.models(), broken, ..run.ended };
    let judges = &performer.preparer.pipeline().judges;
    ended.weak_judges.sort_by_key(|name| judges.iter().position(|judge| *judge.name.0 == **name));
    Ok(ended)
}

/// The state of a run.
pub(super) struct Loop<'r, 'e, L> {
    pub(super) performer: &'r Performer<'e>,
    pub(super) options: &'r SchedulerOptions,
    pub(super) frontier: Frontier<'e>,
    pub(super) selftests: Selftests,
    /// Cases of self-tests that were not begun yet.
    pub(super) tests: Vec<SelftestTask>,
    pub(super) rows: RowMaker<'e>,
    pub(super) sheets: Sheets,
    pub(super) flights: FuturesUnordered<Flight<'r>>,
    /// How many of them ask whom.
    pub(super) lanes: HashMap<(ProviderName, ModelName), usize>,
    /// Tasks whose model is away.
    pub(super) aside: HashMap<(ProviderName, ModelName), Vec<Task>>,
    /// Cells that wait for the same action, by its key.
    pub(super) parked: HashMap<ActionKey, Vec<Task>>,
    /// Actions settled so far: a second cell of one shares it.
    pub(super) seen: HashSet<ActionKey>,
    /// Actions that failed in this run: another cell of one shares the failure, it is not asked again.
    lost: HashSet<ActionKey>,
    /// Contexts whose oddities were told.
    pub(super) warned: HashSet<ActionKey>,
    /// What is left of the budget is set aside for what is under way.
    pub(super) squeezed: bool,
    /// Whether it was tried to tell what is to come.
    pub(super) is_foretold: bool,
    /// Whom nobody asks any more.
    pub(super) doors: Rc<Doors>,
    /// Cells that were settled.
    pub(super) settled: MatrixCounts,
    pub(super) ended: RunOutcome,
    pub(super) listener: &'r mut L,
}

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    fn new(performer: &'r Performer<'e>, options: &'r SchedulerOptions, listener: &'r mut L) -> Loop<'r, 'e, L> {
        let (preparer, pipeline) = (performer.preparer, performer.preparer.pipeline());
        let frontier = Frontier::new(&preparer).warming_prompt_caches();
        Loop {
            performer,
            options,
            frontier: if options.selftests_only { frontier.without_cells() } else { frontier },
            selftests: Selftests::new(pipeline.judges.len(), pipeline.settings.locale),
            tests: Vec::new(),
            rows: RowMaker::new(preparer, performer.outputs, performer.store),
            sheets: Sheets::default(),
            flights: FuturesUnordered::new(),
            lanes: HashMap::new(),
            aside: HashMap::new(),
            parked: HashMap::new(),
            seen: HashSet::new(),
            lost: HashSet::new(),
            warned: HashSet::new(),
            squeezed: false,
            is_foretold: false,
            doors: Rc::new(Doors::default()),
            settled: MatrixCounts::default(),
            ended: RunOutcome { forecast: Some(Estimate::nothing()), ..RunOutcome::default() },
            listener,
        }
    }

    async fn go(&mut self, mut stop: watch::Receiver<Stop>) -> Result<(), RunError> {
        self.find_selftests()?;
        let mut look = tokio::time::interval(LOOK);
        loop {
            if self.heed(*stop.borrow_and_update()) {
                return Ok(());
            }
            let out_of_breath = self.admit()?;
            if out_of_breath {
                while let Some(Some(landed)) = self.flights.next().now_or_never() {
                    self.land(landed)?;
                }
                tokio::task::yield_now().await;
                continue;
            }
            if self.flights.is_empty() && !stop.has_changed().unwrap_or(false) {
                return self.account();
            }
            tokio::select! {
                Some(landed) = self.flights.next() => self.land(landed)?,
                Ok(()) = stop.changed() => {}
                // A model may go away while nothing lands: then there is room for others.
                _ = look.tick() => {}
            }
        }
    }

    /// Does as the user asked. Returns whether that is to end at once.
    fn heed(&mut self, stop: Stop) -> bool {
        if stop >= Stop::Drain && !self.ended.interrupted {
            self.ended.interrupted = true;
            self.doors.close_all();
        }
        stop == Stop::Now
    }

    /// Why nothing more is to be begun, if so.
    pub(super) fn stop_reason(&self) -> Option<SkipReason> {
        let is_weak = !self.ended.weak_judges.is_empty() && !self.options.allow_weak_judge;
        [
            (self.ended.interrupted, SkipReason::Interrupted),
            (self.ended.budget.is_some(), SkipReason::Budget),
            (is_weak, SkipReason::WeakJudge),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    }

    /// Why this work is not to be begun, if so.
    pub(super) fn skip_reason(&self, work: &Work) -> Option<SkipReason> {
        let is_offline = self.options.offline && !is_local(work);
        let offline = is_offline.then_some(SkipReason::Offline);
        let unavailable = || self.is_closed(work).map(|_| SkipReason::ProviderUnavailable);
        self.stop_reason().or(offline).or_else(unavailable)
    }

    /// Begins what is ready, until enough is under way. Returns whether there is more that needs no waiting.
    fn admit(&mut self) -> Result<bool, RunError> {
        let enough = self.settled.all() + BREATH;
        for _ in 0..BREATH {
            if self.settled.all() >= enough {
                break;
            }
            if self.squeezed || self.is_full() {
                return Ok(false);
            }
            // Tests run beside the compressions, so that no judge is waited for.
            if let Some(test) = self.tests.pop() {
                self.begin_selftest(test)?;
                continue;
            }
            let Some(task) = self.frontier.next_ready().or_else(|| self.take_from_aside()) else { return Ok(false) };
            self.begin(task)?;
        }
        Ok(true)
    }

    fn begin(&mut self, task: Task) -> Result<(), RunError> {
        let stage = task.stage();
        let action = match self.performer.preparer.prepare(&task) {
            Ok(action) => action,
            Err(error) => {
                let pipeline = self.performer.preparer.pipeline();
                let mut failure = Failure::of_cell(task.place(pipeline), stage, None, &error);
                if let Some(path) = CurrentSources::of(pipeline, &task).prompt.and_then(|prompt| prompt.path) {
                    failure.message = format!("{path}: {}", failure.message);
                }
                return self.fail(&task, &failure);
            }
        };
        if let Some(waiting) = self.parked.get_mut(&action.key) {
            waiting.push(task);
            return Ok(());
        }
        if self.lost.contains(&action.key) {
            return self.share_failure(&task);
        }
        // What this run has just made stands, also of a stage that is to be refreshed.
        let refresh = if self.seen.contains(&action.key) { &HashSet::new() } else { &self.options.refresh };
        match plan::look_up(self.performer.store, &self.performer.preparer, &task, &action, refresh) {
            ActionStatus::Cached { resolved, reread, record } => match self.vouch(&record, reread) {
                Ok(()) => {
                    self.note_used(&task, &action);
                    self.cached(&task, Resolved { unchanged: task.follows_unchanged(), ..resolved })
                }
                // The store has named it, and it is made again.
                Err(_) => self.begin_stale(task, action),
            },
            ActionStatus::Stale => self.begin_stale(task, action),
        }
    }

    fn begin_stale(&mut self, task: Task, action: Action) -> Result<(), RunError> {
        self.foretell()?;
        if let Task::Judge(judge) = &task {
            if self.selftests.is_given_up(judge.cell.judge.0) {
                return self.skip(&task, SkipReason::WeakJudge);
            }
            match self.selftests.trust(judge.cell.judge.0) {
                Trust::Waiting => {
                    self.selftests.wait(judge.cell.judge.0, task);
                    return Ok(());
                }
                Trust::Weak | Trust::Untested if !self.options.allow_weak_judge => {
                    return self.skip(&task, SkipReason::WeakJudge);
                }
                Trust::Weak | Trust::Untested | Trust::Proven => {}
            }
        }
        if let Some(reason) = self.skip_reason(&action.work) {
            return self.skip(&task, reason);
        }
        let Some(task) = self.put_aside(task, &action.work) else { return Ok(()) };
        self.parked.insert(action.key, Vec::new());
        self.note_begun(&action.work);
        self.listener.on_event(&Event::Started { stage: task.stage() })?;
        let performer = self.performer;
        let (errand, doors) = (Errand::of_task(&performer.preparer, &task, &action), self.doors.clone());
        self.flights.push(Box::pin(async move {
            let result = performer.perform(&errand, &action, &doors).await;
            Landed { errand: Errands::Cell(task), action, result }
        }));
        Ok(())
    }

    pub(super) fn settle(&mut self, task: &Task, kept: Resolved, output: Option<Output>) -> Result<(), RunError> {
        self.count(task.stage(), MatrixCounts::default());
        if let Task::Compress(task) = task {
            return self.settle_context(task, kept);
        }
        self.frontier.resolve(task, TaskOutcome::Resolved(kept));
        if let Some(Output::Answer(answer)) = &output {
            self.performer.outputs.put_answer(kept.key, answer.text.clone());
        }
        match task {
            Task::Judge(judge) => self.judged(judge, kept, output),
            Task::Compress(_) | Task::Answer(_) => Ok(()),
        }
    }

    fn land(&mut self, landed: Landed) -> Result<(), RunError> {
        self.squeezed = false;
        self.tell_closed()?;
        let Landed { errand, action, result } = landed;
        self.note_landed(&action.work);
        let task = match errand {
            Errands::Selftest(test) => return self.land_selftest(&test, result),
            Errands::Cell(task) => task,
        };
        let sharers = self.parked.remove(&action.key).unwrap_or_default();
        match result {
            Ok(fresh) => self.land_fresh(&task, &action, fresh, sharers),
            Err(NoOutput::Store(error)) => Err(error.into()),
            Err(NoOutput::OverBudget(reached)) if self.is_squeezed(reached) => {
                sharers.into_iter().chain([task]).for_each(|task| self.frontier.put_back(task));
                Ok(())
            }
            Err(NoOutput::OverBudget(_) | NoOutput::CalledOff) => {
                let reason = self.skip_reason(&action.work).unwrap_or(SkipReason::Interrupted);
                sharers.iter().chain([&task]).try_for_each(|task| self.skip(task, reason))
            }
            Err(NoOutput::Failed(failure)) => {
                self.lost.insert(action.key);
                self.fail(&task, &failure)?;
                if let Task::Judge(judge) = &task
                    && failure.class.is_none_or(ErrorClass::was_answered)
                {
                    self.note_reply(judge.cell.judge.0, false)?;
                }
                sharers.iter().try_for_each(|task| self.share_failure(task))
            }
        }
    }

    fn land_fresh(&mut self, task: &Task, action: &Action, fresh: Fresh, sharers: Vec<Task>) -> Result<(), RunError> {
        let stage = task.stage();
        self.seen.insert(action.key);
        let Fresh { out, output, usage, cost, unchanged, warnings } = fresh;
        self.warn(action.key, warnings)?;
        if let Task::Judge(judge) = task {
            self.note_reply(judge.cell.judge.0, true)?;
        }
        let (key, asked) = (action.key, is_asked(&action.work));
        self.listener.on_event(&Event::Completed { stage, key, asked, usage, cost, unchanged })?;
        let kept = Resolved { key: action.key, out, cost, unchanged };
        self.settle(task, kept, Some(output))?;
        for sharer in sharers {
            self.note_used(&sharer, action);
            self.listener.on_event(&Event::Shared { stage })?;
            self.settle(&sharer, kept, None)?;
        }
        Ok(())
    }
}

/// Whether the work is a request to a model behind an endpoint.
pub(super) fn is_asked(work: &Work) -> bool {
    matches!(work, Work::Ask(request) if !request.is_lexical())
}

/// Whether the work needs neither a request nor a program.
pub(super) fn is_local(work: &Work) -> bool {
    match work {
        Work::Ask(request) => request.is_lexical(),
        Work::Execute(_) => false,
        Work::Compute(_) => true,
    }
}
