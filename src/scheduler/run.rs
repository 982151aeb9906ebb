//! The event loop: one task owns all state; actions under way are futures that borrow the plan. It admits what is ready,
//! completes what was executed, and finishes when nothing is left.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{FutureExt, StreamExt};

use super::batch::{BatchLane, EndedLine};
use super::breakers::ModelQueue;
use super::budget::BudgetReached;
use super::event::{Listener, RunEvent};
use super::execute::Executor;
use super::in_flight::{EndedAction, InFlight, read_failure, share};
use super::options::{
    ExecutedOutput, ExecutionError, RunError, RunOutcome, StopRequest, stop_requested,
};
use super::tasks::{BegunTask, Tasks};
use crate::action::Work;
use crate::pipeline::{Matrix, MatrixCounts};
use crate::plan::{Action, Assumptions, Frontier, Output, Task, forecast};
use store::remote::{Found, SharedCache};

/// Cells resolved from the cache in one go, before actions under way get their turn.
const CELLS_PER_TURN: u64 = 256;
/// The most tasks that are held. Further ones are begun anyway, so that memory stays flat.
const MOST_HELD: usize = 4096;

/// Time between two checks whether there is room for more, while nothing completes: a model may go away.
const ROOM_CHECK: Duration = Duration::from_secs(1);

/// Runs the matrix: executes what is stale, reports everything to `listener`.
pub async fn run(
    executor: &Executor<'_>,
    listener: &mut dyn Listener,
) -> Result<RunOutcome, RunError> {
    let frontier = Frontier::new(executor.pipeline);
    let mut run = if executor.options.without_cells {
        EventLoop::new(executor, frontier.without_cells(), None, listener)
    } else {
        let due = Matrix(executor.pipeline).counts();
        EventLoop::new(executor, frontier, Some(due), listener)
    };
    let broken = match run.drive().await {
        Ok(()) => None,
        // What was stored before is good, and is reported.
        Err(RunError::Cache(error)) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    run.tasks.stats.note(executor.programs.notes())?;
    let (weak_judges, submitted) = (run.tasks.judges.weak(), run.batches.submitted_requests);
    Ok(RunOutcome {
        allow_weak_judge: executor.options.allow_weak_judge,
        refreshes: !executor.options.refresh.is_empty(),
        models: executor.outputs.models(),
        broken,
        weak_judges,
        submitted,
        ..run.tasks.stats.outcome
    })
}

/// Executes tasks outside of the matrix, such as the generation of probes, and returns their outputs in order: `None`
/// for a task that failed or was not sent.
///
/// # Errors
/// As [`run`]; also where the cache can store nothing more.
pub async fn run_tasks(
    executor: &Executor<'_>,
    tasks: &[Task],
    listener: &mut dyn Listener,
) -> Result<Vec<Option<Output>>, RunError> {
    let frontier = Frontier::from_tasks(executor.pipeline, tasks.to_vec());
    EventLoop::new(executor, frontier, None, listener)
        .drive()
        .await?;
    Ok(tasks
        .iter()
        .map(|task| executor.cached_output(task))
        .collect())
}

struct EventLoop<'r, 'e> {
    executor: &'r Executor<'e>,
    /// The cells of the matrix, if they are executed.
    due: Option<MatrixCounts>,
    tasks: Tasks<'r, 'e>,
    queue: ModelQueue<'r>,
    in_flight: InFlight<'r>,
    batches: BatchLane<'r, 'e>,
    /// Whether the estimate was made, or is not wanted.
    is_estimated: bool,
    /// Tasks that ask a model, held until the remote has given what it has: so it is known first what has to be paid.
    held: VecDeque<Task>,
    pulls_first: bool,
}

impl<'r, 'e: 'r> EventLoop<'r, 'e> {
    fn new(
        executor: &'r Executor<'e>,
        frontier: Frontier<'e>,
        due: Option<MatrixCounts>,
        listener: &'r mut dyn Listener,
    ) -> EventLoop<'r, 'e> {
        EventLoop {
            executor,
            due,
            tasks: Tasks::new(executor, frontier, listener),
            queue: ModelQueue::new(executor.client, executor.options.jobs),
            in_flight: InFlight::new(),
            batches: BatchLane::new(executor),
            is_estimated: due.is_none(),
            held: VecDeque::new(),
            pulls_first: executor.shared.is_some(),
        }
    }

    async fn drive(&mut self) -> Result<(), RunError> {
        let mut stop = self.executor.stop.clone();
        if self.due.is_some() {
            self.batches.open().await?;
        }
        let mut room_check = tokio::time::interval(ROOM_CHECK);
        loop {
            let asked = *stop.borrow_and_update();
            if asked >= StopRequest::Drain && !self.tasks.stats.outcome.interrupted {
                self.tasks.stats.outcome.interrupted = true;
                self.executor.breakers.cancel_all();
            }
            if asked == StopRequest::Now {
                return Ok(());
            }
            if self.admit()? {
                while let Some(Some(ended)) = self.in_flight.next().now_or_never() {
                    self.end(ended)?;
                }
                tokio::task::yield_now().await;
                continue;
            }
            if self.in_flight.is_empty() && !stop.has_changed().unwrap_or(false) {
                let advance = self.batches.advance();
                let ended = tokio::select! {
                    biased;
                    () = stop_requested(stop.clone(), StopRequest::Now) => continue,
                    ended = advance => ended?,
                };
                if !ended.is_empty() {
                    self.follow(ended).await?;
                    continue;
                }
                self.tasks.stats.outcome.interrupted |= *stop.borrow() >= StopRequest::Drain;
                return self.finish();
            }
            tokio::select! {
                Some(ended) = self.in_flight.next() => self.end(ended)?,
                Ok(()) = stop.changed() => {}
                _ = room_check.tick() => {}
            }
        }
    }

    /// Begins ready tasks until enough is under way. Returns whether more may be begun without waiting.
    fn admit(&mut self) -> Result<bool, RunError> {
        let enough = self.tasks.stats.finished_cells() + CELLS_PER_TURN;
        for _ in 0..CELLS_PER_TURN {
            if self.tasks.stats.finished_cells() >= enough {
                break;
            }
            if self.in_flight.waits_for_budget()
                || self.in_flight.is_pulling_enough()
                || self.queue.is_full(self.in_flight.len())
            {
                return Ok(false);
            }
            let Some(task) = self.next_task() else {
                return Ok(false);
            };
            match self.tasks.begin(task)? {
                BegunTask::Settled => {}
                BegunTask::Stale(action) => self.begin_stale(action)?,
                BegunTask::Unshared(action) => self.pull(action, true),
            }
        }
        Ok(true)
    }

    /// The next task that is ready, was deferred, or is no longer held.
    fn next_task(&mut self) -> Option<Task> {
        if let Some(task) = self
            .tasks
            .frontier
            .next_ready()
            .or_else(|| self.queue.take())
        {
            return Some(task);
        }
        if self.in_flight.is_empty() {
            self.pulls_first = false;
        }
        if self.pulls_first {
            None
        } else {
            self.held.pop_front()
        }
    }

    /// Pulls the output of a stale action, puts its request into a batch, starts it, or skips its task.
    fn begin_stale(&mut self, action: Action) -> Result<(), RunError> {
        if self.may_pull(&action) {
            self.pull(action, false);
            return Ok(());
        }
        let asks = action.request().is_some() && !self.tasks.stats.outcome.interrupted;
        if self.pulls_first && asks && self.held.len() < MOST_HELD {
            self.held.push_back(action.task);
            return Ok(());
        }
        self.estimate_once()?;
        let Some(mut action) = self.tasks.qualify(action)? else {
            return Ok(());
        };
        if !self.batches.waits_for(&action) {
            // What is in a batch that has not ended is not sent again.
            if self.is_held_back(&action.work) || self.batches.excludes(&action) {
                return self.tasks.skip(action);
            }
            match self.queue.defer(action, self.tasks.frontier.has_more()) {
                Some(due) => action = due,
                None => return Ok(()),
            }
        }
        self.tasks.started(&action);
        let Some(action) = self.batches.take(action) else {
            return Ok(());
        };
        self.queue.begin(&action);
        self.in_flight.start(self.executor, action);
        Ok(())
    }

    /// Asks the remote for the output of an action, or puts the local one there.
    fn pull(&mut self, action: Action, is_local: bool) {
        self.tasks.started(&action);
        self.in_flight.pull(self.executor, action, is_local);
    }

    /// Reports the estimate of what is to come, before the first stale action begins: if everything is cached, nobody needs
    /// it. Requests in open batches are already paid for.
    fn estimate_once(&mut self) -> Result<(), RunError> {
        if std::mem::replace(&mut self.is_estimated, true) {
            return Ok(());
        }
        let Executor {
            pipeline,
            store,
            prices,
            ..
        } = *self.executor;
        let (refresh, submitted) = (&self.executor.options.refresh, &self.batches.held);
        let assumptions = Assumptions {
            refresh,
            prices,
            submitted,
            explained: None,
        };
        // Where a prompt does not render there is no estimate; its cells fail by name.
        let found = forecast(pipeline, store, assumptions).ok();
        let estimate = found.map(|found| found.estimate);
        self.tasks.stats.outcome.forecast = estimate;
        Ok(estimate
            .iter()
            .try_for_each(|estimate| self.tasks.stats.emit(&RunEvent::Estimated(estimate)))?)
    }

    /// Whether the output is to be looked for in the remote, which is done once.
    fn may_pull(&self, action: &Action) -> bool {
        let is_wanted = !self.executor.options.refresh.has(action.stage)
            && !self.tasks.stats.outcome.interrupted;
        is_wanted
            && self
                .executor
                .shared
                .is_some_and(|shared| shared.may_have(&action.key))
    }

    /// Whether this work is not to be begun: the run ends, it is offline, or every such call would fail the same way.
    fn is_held_back(&self, work: &Work) -> bool {
        let outcome = &self.tasks.stats.outcome;
        outcome.interrupted
            || outcome.budget.is_some()
            || self.tasks.judges.has_unacceptable()
            || self.executor.options.forbids(work)
            || self.executor.breakers.reason(work).is_some()
    }

    /// Completes an action that is no longer under way.
    fn end(&mut self, ended: EndedAction) -> Result<(), RunError> {
        match ended {
            EndedAction::Executed { action, result } => {
                self.tasks
                    .stats
                    .tripped(self.executor.breakers.take_unreported())?;
                self.tasks.put_back_all(self.queue.finish(&action));
                self.complete(action, result)
            }
            EndedAction::Pulled {
                result: Err(error), ..
            } => Err(error.into()),
            EndedAction::Pulled {
                action,
                result: Ok(Found::Failure(content)),
            } => match read_failure(self.executor, &action, &content) {
                Some(failure) => self.tasks.fail(&action, &failure),
                None => {
                    self.tasks.put_back(action);
                    Ok(())
                }
            },
            EndedAction::Pulled { action, .. } => {
                self.tasks.put_back(action);
                Ok(())
            }
        }
    }

    /// Completes the actions that no longer wait for a batch.
    async fn follow(&mut self, ended: Vec<EndedLine>) -> Result<(), RunError> {
        let executor = self.executor;
        let stats = &mut self.tasks.stats;
        stats.tripped(executor.breakers.take_unreported())?;
        if let Some(why) = self.batches.refusal.take() {
            stats.emit(&RunEvent::BatchRefused(&why))?;
        }
        let shares = ended.into_iter().map(async |(action, result)| {
            let result = match result {
                Some(result) => Some(share(executor, &action, result).await),
                None => None,
            };
            (action, result)
        });
        let mut shared = futures::stream::iter(shares).buffered(SharedCache::AT_ONCE);
        while let Some((action, result)) = shared.next().await {
            match result {
                Some(result) => self.complete(action, result)?,
                None => self.tasks.put_back(action),
            }
        }
        Ok(())
    }

    fn complete(
        &mut self,
        action: Action,
        result: Result<ExecutedOutput, ExecutionError>,
    ) -> Result<(), RunError> {
        match result {
            Ok(fresh) => self.tasks.complete(&action, fresh),
            Err(ExecutionError::Store(error)) => Err(error.into()),
            Err(ExecutionError::Failed(failure)) => self.tasks.fail(&action, &failure),
            Err(ExecutionError::OverBudget(reached)) if self.may_afford_later(reached) => {
                self.tasks.put_back(action);
                Ok(())
            }
            Err(ExecutionError::OverBudget(_) | ExecutionError::Cancelled) => {
                self.tasks.skip(action)
            }
        }
    }

    /// Whether the money is only reserved for other actions. Then this one waits for what they leave; otherwise, notes that
    /// the budget ended the run.
    fn may_afford_later(&mut self, reached: BudgetReached) -> bool {
        let may = self.executor.budget.reached().is_none() && self.in_flight.wait_for_budget();
        if !may {
            self.tasks.stats.outcome.budget.get_or_insert(reached);
        }
        may
    }

    /// Makes sure that every cell was reported.
    fn finish(&mut self) -> Result<(), RunError> {
        for action in self.batches.drain() {
            self.tasks.skip(action)?;
        }
        self.tasks.fail_waiting()?;
        self.batches.report(&mut self.tasks.stats.outcome);
        self.tasks.stats.finish(self.due.unwrap_or_default());
        Ok(())
    }
}
