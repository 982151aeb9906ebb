//! The tasks of a run: cells of the matrix, and cases of the judges' self-tests. The event loop begins and ends both
//! alike; what differs between them is decided here.

use std::rc::Rc;

use super::breakers::CircuitBreakers;
use super::cells::Cells;
use super::event::SkipReason;
use super::execute::{ExecutedOutput, Executor};
use super::job::ActionTask;
use super::options::{RunError, SchedulerOptions};
use super::qualification::{CaseOutcome, JudgeQualification, JudgeReadiness, broken_replies};
use super::stats::RunStats;
use crate::action::{ActionKey, StageName};
use crate::pipeline::JudgeIx;
use crate::plan::{Action, Frontier, SelftestTask, Task};
use crate::results::{FailedAction, UnqualifiedJudge};
use models::ErrorClass;

/// All tasks of a run, and their outcomes.
pub(super) struct Tasks<'r, 'e> {
    cells: Cells<'r, 'e>,
    judges: JudgeQualification<'r, 'e>,
    breakers: Rc<CircuitBreakers>,
}

impl<'r, 'e> Tasks<'r, 'e> {
    pub(super) fn new(
        executor: &'r Executor<'e>,
        options: &'r SchedulerOptions,
        breakers: Rc<CircuitBreakers>,
    ) -> Tasks<'r, 'e> {
        let frontier = Frontier::new(&executor.preparer).warming_prompt_caches();
        let frontier = if options.selftests_only { frontier.without_cells() } else { frontier };
        let cells = Cells::new(executor, &options.refresh, frontier);
        Tasks { cells, judges: JudgeQualification::new(executor, options), breakers }
    }

    /// Prepares the cases of the self-tests.
    pub(super) fn prepare(&mut self, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        self.judges.prepare(stats)
    }

    /// The next task whose inputs are known. Cases come first: cells wait for them.
    pub(super) fn next_ready(&mut self) -> Option<ActionTask> {
        let case = self.judges.next_case().map(ActionTask::Selftest);
        case.or_else(|| self.cells.next_ready().map(ActionTask::Cell))
    }

    /// Whether another cell is ready.
    pub(super) fn has_more(&self) -> bool {
        self.cells.has_more()
    }

    /// Resolves a task from the cache, or lets it share the action of another one. Returns a task whose action is stale.
    pub(super) fn begin(
        &mut self,
        task: ActionTask,
        stats: &mut RunStats<'_>,
    ) -> Result<Option<(ActionTask, Action)>, RunError> {
        match task {
            ActionTask::Cell(task) => {
                let stale = self.cells.begin(task, stats)?;
                Ok(stale.map(|(task, action)| (ActionTask::Cell(task), action)))
            }
            ActionTask::Selftest(case) => match self.judges.cached(&case, stats)? {
                Some(outcome) => self.settle(&case, outcome, stats).map(|()| None),
                None => {
                    let action = case.action.clone();
                    Ok(Some((ActionTask::Selftest(case), action)))
                }
            },
        }
    }

    /// Returns a task that may be executed as far as judges are concerned. A cell waits for its judge's test or is skipped;
    /// so is a case that decides nothing any more.
    pub(super) fn qualify(
        &mut self,
        task: ActionTask,
        stats: &mut RunStats<'_>,
    ) -> Result<Option<ActionTask>, RunError> {
        match task {
            ActionTask::Cell(Task::Judge(judge)) => {
                let ix = judge.cell.judge;
                let task = Task::Judge(judge);
                match self.judges.readiness(ix) {
                    JudgeReadiness::Ready => return Ok(Some(ActionTask::Cell(task))),
                    JudgeReadiness::Pending => self.judges.wait(ix, task),
                    JudgeReadiness::Refused => self.cells.skip(&task, SkipReason::WeakJudge, stats)?,
                }
            }
            ActionTask::Selftest(case) if self.judges.is_decided(&case) => {
                self.skip_case(&case, SkipReason::VerdictKnown, stats)?;
            }
            task => return Ok(Some(task)),
        }
        Ok(None)
    }

    /// Whether the run is to end because a judge is weak.
    pub(super) fn has_unacceptable_judge(&self) -> bool {
        self.judges.has_unacceptable()
    }

    /// The action of a task is executed from now on: other cells with the same one wait for it.
    pub(super) fn started(&mut self, task: &ActionTask, key: ActionKey) {
        if let ActionTask::Cell(_) = task {
            self.cells.started(key);
        }
    }

    /// Makes a task ready again that could not be executed yet, and those that shared its action.
    pub(super) fn put_back(&mut self, task: ActionTask, key: &ActionKey) {
        match task {
            ActionTask::Cell(task) => {
                let mut tasks = self.cells.finished(key);
                tasks.insert(0, task);
                self.cells.put_back(tasks);
            }
            ActionTask::Selftest(case) => self.judges.put_back(case),
        }
    }

    /// Makes cells ready again that were deferred.
    pub(super) fn put_back_cells(&mut self, tasks: Vec<Task>) {
        self.cells.put_back(tasks);
    }

    /// An action was executed: resolves its task and those that share it.
    pub(super) fn complete(
        &mut self,
        task: &ActionTask,
        action: &Action,
        fresh: ExecutedOutput,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        match task {
            ActionTask::Cell(task) => {
                let sharers = self.cells.finished(&action.key);
                self.cells.complete(task, action, (fresh, sharers), stats)?;
                judge_of(task).map_or(Ok(()), |judge| self.judges.note_replies(judge, 0, stats))
            }
            ActionTask::Selftest(case) => {
                let outcome = self.judges.completed(case, &fresh, stats)?;
                self.settle(case, outcome, stats)
            }
        }
    }

    /// An action failed: its task has no output, nor have those that share it.
    pub(super) fn fail(
        &mut self,
        task: &ActionTask,
        key: ActionKey,
        failure: &FailedAction,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        match task {
            ActionTask::Cell(task) => {
                let sharers = self.cells.finished(&key);
                self.cells.fail_shared(task, key, (failure, sharers), stats)?;
                let judge = judge_of(task).filter(|_| failure.class.is_none_or(ErrorClass::was_answered));
                let Some(judge) = judge else { return Ok(()) };
                let broken = broken_replies(failure, self.judges.attempts(judge));
                self.judges.note_replies(judge, broken, stats)
            }
            ActionTask::Selftest(case) => {
                let outcome = self.judges.failed(case, failure, stats)?;
                self.settle(case, outcome, stats)
            }
        }
    }

    /// A task is not executed in this run, nor are those that share its action.
    pub(super) fn skip(
        &mut self,
        task: ActionTask,
        key: &ActionKey,
        reason: SkipReason,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        match task {
            ActionTask::Cell(task) => {
                let mut tasks = self.cells.finished(key);
                tasks.push(task);
                tasks.iter().try_for_each(|task| self.cells.skip(task, reason, stats))
            }
            ActionTask::Selftest(case) => self.skip_case(&case, reason, stats),
        }
    }

    fn skip_case(&mut self, case: &SelftestTask, reason: SkipReason, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        stats.skipped(StageName::Selftest, reason)?;
        self.settle(case, CaseOutcome::Unasked(self.breakers.reason(&case.action.work)), stats)
    }

    /// Notes the outcome of a case. A verdict releases the cells that waited for it, or ends the run.
    fn settle(&mut self, case: &SelftestTask, outcome: CaseOutcome, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        let released = self.judges.settle(case, outcome, stats)?;
        self.cells.put_back(released);
        if self.judges.has_unacceptable() {
            self.breakers.cancel_all();
        }
        Ok(())
    }

    /// Makes sure that every cell is reported.
    pub(super) fn fail_waiting(&mut self, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        self.cells.fail_waiting(self.judges.drain(), stats)
    }

    /// Judges that may not grade some dimensions.
    pub(super) fn unqualified_judges(&self) -> Vec<UnqualifiedJudge> {
        self.judges.unqualified()
    }

    /// Judges that failed their self-test.
    pub(super) fn weak_judges(&self) -> Vec<String> {
        self.judges.weak()
    }
}

/// The judge that a task asks; `None` of a task without one.
fn judge_of(task: &Task) -> Option<JudgeIx> {
    match task {
        Task::Judge(judge) => Some(judge.cell.judge),
        Task::Compress(_) | Task::Answer(_) => None,
    }
}
