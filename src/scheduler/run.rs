//! The event loop: one task owns all state; actions under way are futures that borrow the plan. It admits what is ready,
//! completes what was executed, and finishes when nothing is left.

use std::rc::Rc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;

use super::batch::{BatchLane, EndedLine, LineEnd, Step, Waiting};
use super::breakers::CircuitBreakers;
use super::budget::BudgetReached;
use super::cells::Cells;
use super::event::{Event, Listener, SkipReason};
use super::execute::{ExecutedOutput, ExecutionError, Executor};
use super::in_flight::{Completed, Ended, InFlight};
use super::job::{ActionTask, Job};
use super::options::{RunError, RunOutcome, SchedulerOptions, StopRequest};
use super::qualification::{CaseOutcome, JudgeQualification, JudgeStatus};
use super::queue::ModelQueue;
use super::stats::RunStats;
use crate::action::{StageName, Work};
use crate::pipeline::{JudgeIx, MatrixCounts};
use crate::plan::{Action, Assumptions, Frontier, SelftestTask, Task, forecast};
use crate::provider::ErrorClass;

/// Cells resolved from the cache in one go, before actions under way get their turn.
const BATCH: u64 = 256;

/// Time between two checks whether there is room for more, while nothing completes: a model may go away.
const ROOM_CHECK: Duration = Duration::from_secs(1);

/// Runs the matrix: executes what is stale, reports everything to `listener`.
pub async fn run(
    executor: &Executor<'_>,
    options: &SchedulerOptions,
    stop: watch::Receiver<StopRequest>,
    listener: &mut dyn Listener,
) -> Result<RunOutcome, RunError> {
    let mut run = EventLoop::new(executor, options, listener);
    let broken = match run.drive(stop).await {
        Ok(()) => None,
        // What was stored is good, and there is to be a report of it.
        Err(RunError::Cache(error)) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    let (weak_judges, submitted) = (run.judges.weak(), run.batches.submitted_requests());
    Ok(RunOutcome { models: executor.outputs.models(), broken, weak_judges, submitted, ..run.stats.outcome })
}

struct EventLoop<'r, 'e> {
    executor: &'r Executor<'e>,
    options: &'r SchedulerOptions,
    cells: Cells<'r, 'e>,
    judges: JudgeQualification<'r, 'e>,
    queue: ModelQueue<'r>,
    in_flight: InFlight<'r, ActionTask>,
    breakers: Rc<CircuitBreakers>,
    batches: BatchLane<'r, 'e>,
    stats: RunStats<'r>,
    /// What is left of the budget is reserved for actions under way: nothing begins until one completes.
    waits_for_budget: bool,
    /// Whether an estimate was tried.
    is_estimated: bool,
}

impl<'r, 'e: 'r> EventLoop<'r, 'e> {
    fn new(
        executor: &'r Executor<'e>,
        options: &'r SchedulerOptions,
        listener: &'r mut dyn Listener,
    ) -> EventLoop<'r, 'e> {
        let frontier = Frontier::new(&executor.preparer).warming_prompt_caches();
        let frontier = if options.selftests_only { frontier.without_cells() } else { frontier };
        EventLoop {
            executor,
            options,
            cells: Cells::new(executor, &options.refresh, frontier),
            judges: JudgeQualification::new(executor, options),
            queue: ModelQueue::new(executor.client, options.jobs),
            in_flight: InFlight::new(),
            breakers: Rc::default(),
            batches: BatchLane::new(executor, options),
            stats: RunStats::new(listener),
            waits_for_budget: false,
            is_estimated: false,
        }
    }

    async fn drive(&mut self, mut stop: watch::Receiver<StopRequest>) -> Result<(), RunError> {
        self.judges.prepare(&mut self.stats)?;
        if !self.options.selftests_only {
            self.batches.open().await?;
        }
        let mut room_check = tokio::time::interval(ROOM_CHECK);
        loop {
            let asked = *stop.borrow_and_update();
            if asked >= StopRequest::Drain && !self.stats.outcome.interrupted {
                self.stats.outcome.interrupted = true;
                self.breakers.cancel_all();
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
                let advance = self.batches.advance(stop.clone(), self.options.offline, &self.breakers);
                let step = tokio::select! {
                    biased;
                    () = stopped_now(stop.clone()) => return Ok(()),
                    step = advance => step?,
                };
                if self.follow(step)? {
                    continue;
                }
                self.stats.outcome.interrupted |= *stop.borrow() >= StopRequest::Drain;
                return self.finish();
            }
            tokio::select! {
                Some(ended) = self.in_flight.next() => self.end(ended)?,
                Ok(()) = stop.changed() => {}
                _ = room_check.tick() => {}
            }
        }
    }

    /// Ends what waits for a batch no longer. Returns whether there may be more to do.
    fn follow(&mut self, step: Step) -> Result<bool, RunError> {
        self.stats.tripped(self.breakers.take_unreported())?;
        match step {
            Step::Ended(lines) => {
                lines.into_iter().try_for_each(|line| self.end_line(line))?;
                Ok(true)
            }
            Step::Idle(skipped) => {
                let mut has_released_cells = false;
                for (Waiting { task, job }, reason) in skipped {
                    match task {
                        ActionTask::Cell(task) => {
                            let mut sharers = self.cells.finished(&job.action.key);
                            sharers.push(task);
                            sharers.iter().try_for_each(|task| self.cells.skip(task, reason, &mut self.stats))?;
                        }
                        ActionTask::Selftest(case) => {
                            has_released_cells = true;
                            self.skip_case(&case, reason)?;
                        }
                    }
                }
                Ok(has_released_cells)
            }
        }
    }

    fn end_line(&mut self, EndedLine { waiting: Waiting { task, job }, end }: EndedLine) -> Result<(), RunError> {
        match (task, end) {
            (ActionTask::Cell(task), LineEnd::Executed(result)) => self.complete_cell(task, &job.action, result),
            (ActionTask::Selftest(case), LineEnd::Executed(result)) => self.complete_case(case, result),
            (ActionTask::Cell(task), LineEnd::Again { live }) => {
                if live {
                    self.batches.mark_live(job.action.key);
                }
                let mut tasks = self.cells.finished(&job.action.key);
                tasks.insert(0, task);
                self.cells.put_back(tasks);
                Ok(())
            }
            (ActionTask::Selftest(case), LineEnd::Again { .. }) => {
                self.judges.put_back(case);
                Ok(())
            }
        }
    }

    /// Begins what is ready, until enough is under way. Returns whether there is more that needs no waiting.
    fn admit(&mut self) -> Result<bool, RunError> {
        let enough = self.stats.finished_cells() + BATCH;
        for _ in 0..BATCH {
            if self.stats.finished_cells() >= enough {
                break;
            }
            if self.waits_for_budget || self.queue.is_full(self.in_flight.len()) {
                return Ok(false);
            }
            if let Some(case) = self.judges.next_case() {
                self.begin_case(case)?;
                continue;
            }
            let Some(task) = self.cells.next_ready().or_else(|| self.queue.take()) else { return Ok(false) };
            if let Some((task, action)) = self.cells.begin(task, &mut self.stats)? {
                self.begin_stale(task, action)?;
            }
        }
        Ok(true)
    }

    fn begin_case(&mut self, case: SelftestTask) -> Result<(), RunError> {
        let job = Job::of_selftest(&self.executor.preparer, &case);
        if let Some(outcome) = self.judges.cached(&case, &job, &mut self.stats)? {
            return self.settle_case(&case, outcome);
        }
        if self.may_pull(&case.action) {
            let key = case.action.key;
            self.in_flight.pull(self.executor, ActionTask::Selftest(case), key);
            return Ok(());
        }
        self.estimate()?;
        let decided = self.judges.is_decided(&case).then_some(SkipReason::VerdictKnown);
        match decided.or_else(|| self.skip_reason(&case.action.work)) {
            Some(reason) => self.skip_case(&case, reason),
            None if self.batches.holds_or_exports(&case.action.key) => self.skip_case(&case, SkipReason::Submitted),
            None if !self.options.selftests_only && self.batches.files.takes(&job) => {
                self.batches.add(ActionTask::Selftest(case), job);
                Ok(())
            }
            None => self.start(ActionTask::Selftest(case), job),
        }
    }

    fn begin_stale(&mut self, task: Task, action: Action) -> Result<(), RunError> {
        if self.may_pull(&action) {
            self.cells.started(action.key);
            self.in_flight.pull(self.executor, ActionTask::Cell(task), action.key);
            return Ok(());
        }
        self.estimate()?;
        if let Task::Judge(judge) = &task {
            let judge = judge.cell.judge;
            if self.judges.is_given_up(judge) {
                return self.cells.skip(&task, SkipReason::WeakJudge, &mut self.stats);
            }
            match self.judges.status(judge) {
                JudgeStatus::Pending => {
                    self.judges.wait(judge, task);
                    return Ok(());
                }
                JudgeStatus::Weak | JudgeStatus::Untested if !self.options.allow_weak_judge => {
                    return self.cells.skip(&task, SkipReason::WeakJudge, &mut self.stats);
                }
                JudgeStatus::Weak | JudgeStatus::Untested | JudgeStatus::Qualified => {}
            }
        }
        if self.batches.holds(&action.key) && (!self.options.offline || self.options.batches.export.is_some()) {
            self.cells.started(action.key);
            let job = Job::of_task(&self.executor.preparer, &task, action);
            self.batches.wait(ActionTask::Cell(task), job);
            return Ok(());
        }
        if let Some(reason) = self.skip_reason(&action.work) {
            return self.cells.skip(&task, reason, &mut self.stats);
        }
        let Some(task) = self.queue.defer(task, &action.work, self.cells.has_more()) else { return Ok(()) };
        self.cells.started(action.key);
        let job = Job::of_task(&self.executor.preparer, &task, action);
        if self.batches.takes(&job) {
            self.batches.add(ActionTask::Cell(task), job);
            return Ok(());
        }
        self.start(ActionTask::Cell(task), job)
    }

    /// Whether the output is to be looked for in the remote, which is done once.
    fn may_pull(&self, action: &Action) -> bool {
        let is_wanted = !self.options.refresh.has(action.stage) && !self.stats.outcome.interrupted;
        is_wanted && self.executor.shared.is_some_and(|shared| shared.has(&action.key))
    }

    fn start(&mut self, subject: ActionTask, job: Job) -> Result<(), RunError> {
        self.queue.begin(&job.action.work);
        self.stats.emit(&Event::Started { stage: job.stage })?;
        self.in_flight.start(self.executor, (subject, job), &self.breakers);
        Ok(())
    }

    /// Why this work is not to be begun, if so.
    fn skip_reason(&self, work: &Work) -> Option<SkipReason> {
        let outcome = &self.stats.outcome;
        if outcome.interrupted {
            Some(SkipReason::Interrupted)
        } else if outcome.budget.is_some() {
            Some(SkipReason::Budget)
        } else if self.judges.has_weak() && !self.options.allow_weak_judge {
            Some(SkipReason::WeakJudge)
        } else if self.options.forbids(work) {
            Some(SkipReason::Offline)
        } else {
            self.breakers.reason(work).map(|_| SkipReason::ProviderUnavailable)
        }
    }

    fn end(&mut self, ended: Ended<ActionTask>) -> Result<(), RunError> {
        match ended {
            Ended::Executed(completed) => self.complete(completed),
            Ended::Pulled { result: Err(error), .. } => Err(error.into()),
            Ended::Pulled { subject: ActionTask::Cell(task), key, .. } => {
                let mut tasks = self.cells.finished(&key);
                tasks.insert(0, task);
                self.cells.put_back(tasks);
                Ok(())
            }
            Ended::Pulled { subject: ActionTask::Selftest(case), .. } => {
                self.judges.put_back(case);
                Ok(())
            }
        }
    }

    fn complete(&mut self, completed: Completed<ActionTask>) -> Result<(), RunError> {
        let Completed { subject, job, result } = completed;
        self.waits_for_budget = false;
        self.stats.tripped(self.breakers.take_unreported())?;
        self.cells.put_back(self.queue.finish(&job.action.work));
        match subject {
            ActionTask::Cell(task) => {
                self.batches.note_live(&job, result.is_ok());
                self.complete_cell(task, &job.action, result)
            }
            ActionTask::Selftest(case) => self.complete_case(case, result),
        }
    }

    fn complete_cell(
        &mut self,
        task: Task,
        action: &Action,
        result: Result<ExecutedOutput, ExecutionError>,
    ) -> Result<(), RunError> {
        let mut sharers = self.cells.finished(&action.key);
        let reply = judge_reply(&task, &result);
        match result {
            Ok(fresh) => self.cells.complete(&task, action, (fresh, sharers), &mut self.stats),
            Err(ExecutionError::Store(error)) => Err(error.into()),
            Err(ExecutionError::Failed(failure)) => {
                self.cells.fail_shared(&task, action.key, (&failure, sharers), &mut self.stats)
            }
            Err(ExecutionError::OverBudget(reached)) if self.wait_for_budget(reached) => {
                sharers.reverse();
                sharers.insert(0, task);
                self.cells.put_back(sharers);
                Ok(())
            }
            Err(ExecutionError::OverBudget(_) | ExecutionError::Cancelled) => {
                let reason = self.cancel_reason(&action.work);
                sharers.push(task);
                sharers.iter().try_for_each(|task| self.cells.skip(task, reason, &mut self.stats))
            }
        }?;
        match reply {
            Some((judge, keeps_contract)) => self.judges.note_reply(judge, keeps_contract, &mut self.stats),
            None => Ok(()),
        }
    }

    fn complete_case(
        &mut self,
        case: SelftestTask,
        result: Result<ExecutedOutput, ExecutionError>,
    ) -> Result<(), RunError> {
        let outcome = match result {
            Ok(fresh) => self.judges.completed(&case, &fresh, &mut self.stats)?,
            Err(ExecutionError::Store(error)) => return Err(error.into()),
            Err(ExecutionError::Failed(failure)) => self.judges.failed(&case, &failure, &mut self.stats)?,
            Err(ExecutionError::OverBudget(reached)) if self.wait_for_budget(reached) => {
                self.judges.put_back(case);
                return Ok(());
            }
            Err(ExecutionError::OverBudget(_) | ExecutionError::Cancelled) => {
                return self.skip_case(&case, self.cancel_reason(&case.action.work));
            }
        };
        self.settle_case(&case, outcome)
    }

    fn skip_case(&mut self, case: &SelftestTask, reason: SkipReason) -> Result<(), RunError> {
        self.stats.skipped(StageName::Selftest, reason)?;
        self.settle_case(case, CaseOutcome::Unasked(self.breakers.reason(&case.action.work)))
    }

    fn settle_case(&mut self, case: &SelftestTask, outcome: CaseOutcome) -> Result<(), RunError> {
        let released = self.judges.settle(case, outcome, &mut self.stats)?;
        self.cells.put_back(released);
        if self.judges.status(case.judge) == JudgeStatus::Weak && !self.options.allow_weak_judge {
            self.breakers.cancel_all();
        }
        Ok(())
    }

    /// Whether the money is only reserved for others: then the action waits for what they leave.
    fn wait_for_budget(&mut self, reached: BudgetReached) -> bool {
        let may = self.executor.budget.reached().is_none() && !self.in_flight.is_empty();
        self.waits_for_budget |= may;
        if !may {
            self.stats.outcome.budget.get_or_insert(reached);
        }
        may
    }

    /// Why an action that was under way was not sent: whatever keeps it from being begun again.
    fn cancel_reason(&self, work: &Work) -> SkipReason {
        self.skip_reason(work).unwrap_or(SkipReason::Interrupted)
    }

    /// Estimates what is to come, before the first stale action begins: where all is cached nothing needs it.
    fn estimate(&mut self) -> Result<(), RunError> {
        let is_known = self.executor.shared.is_none_or(|shared| !shared.has_entries());
        // The plan looks at the local cache alone: what the remote has would count as still to be paid.
        if std::mem::replace(&mut self.is_estimated, true) || self.options.selftests_only || !is_known {
            return Ok(());
        }
        let Executor { preparer, store, prices, .. } = *self.executor;
        let (refresh, submitted) = (&self.options.refresh, self.batches.held());
        let assumptions = Assumptions { refresh, prices, submitted, reasons: false };
        // Where a prompt does not render there is no estimate; its cells fail by name.
        let found = forecast(preparer, store, assumptions).ok();
        let estimate = found.as_ref().map(|found| found.estimate);
        self.executor.prefixes.expect(found.map(|found| found.durations).unwrap_or_default());
        self.stats.outcome.forecast = estimate;
        Ok(estimate.iter().try_for_each(|estimate| self.stats.emit(&Event::Estimated(estimate)))?)
    }

    /// Makes sure that every cell was reported.
    fn finish(&mut self) -> Result<(), RunError> {
        self.stats.outcome.batches = self.batches.notes();
        self.stats.outcome.exported = self.batches.files.exported();
        self.stats.outcome.not_exported = self.batches.files.not_exported();
        self.stats.outcome.budget = self.stats.outcome.budget.or(self.batches.budget_reached());
        self.cells.fail_waiting(self.judges.drain(), &mut self.stats)?;
        let all = self.executor.preparer.matrix().counts();
        self.stats.account(if self.options.selftests_only { MatrixCounts::default() } else { all });
        Ok(())
    }
}

/// Returns once the run is to end at once.
async fn stopped_now(mut stop: watch::Receiver<StopRequest>) {
    while *stop.borrow_and_update() != StopRequest::Now {
        if stop.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether the reply to a judgement kept the contract, where there was one.
fn judge_reply(task: &Task, result: &Result<ExecutedOutput, ExecutionError>) -> Option<(JudgeIx, bool)> {
    let Task::Judge(judge) = task else { return None };
    match result {
        Ok(_) => Some((judge.cell.judge, true)),
        Err(ExecutionError::Failed(failure)) if failure.class.is_none_or(ErrorClass::was_answered) => {
            Some((judge.cell.judge, false))
        }
        Err(_) => None,
    }
}
