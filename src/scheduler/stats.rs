//! Statistics of a run: every event is emitted through here and counted on its way, so that what is reported and what
//! is counted cannot differ.

use super::batch::BatchLane;
use super::breakers::TrippedBreaker;
use super::budget::BudgetReached;
use super::event::{Listener, RunEvent, SkipReason};
use super::options::ExecutedOutput;
use super::options::{RunOutcome, UntestedJudge};
use crate::action::{ActionKey, StageName};
use crate::pipeline::MatrixCounts;
use crate::plan::{Action, CostEstimate, Resolved};
use base::files::FileError;

/// The events of a run and their totals.
pub(super) struct RunStats<'r> {
    listener: &'r mut dyn Listener,
    outcome: RunOutcome,
    /// Cells that are done: nothing more will be reported about them.
    finished: MatrixCounts,
}

impl<'r> RunStats<'r> {
    pub(super) fn new(listener: &'r mut dyn Listener) -> RunStats<'r> {
        let outcome = RunOutcome {
            forecast: Some(CostEstimate::nothing()),
            ..RunOutcome::default()
        };
        RunStats {
            listener,
            outcome,
            finished: MatrixCounts::default(),
        }
    }

    pub(super) fn emit(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        self.listener.on_event(event)
    }

    /// Reports an output that was found in the cache. Only the first cell with its action has it from there; the others
    /// share it.
    pub(super) fn cached(
        &mut self,
        stage: StageName,
        key: ActionKey,
        is_first: bool,
        early_cutoff: bool,
    ) -> Result<(), FileError> {
        self.emit(&match is_first {
            true => RunEvent::Cached {
                stage,
                key,
                early_cutoff,
            },
            false => RunEvent::Shared { stage },
        })
    }

    pub(super) fn completed(
        &mut self,
        action: &Action,
        fresh: &ExecutedOutput,
    ) -> Result<(), FileError> {
        let (stage, asked) = (action.task.stage(), action.request().is_some());
        let reported = fresh.output.usage().map(|usage| usage.calls.unwrap_or(0));
        let replies = reported.or(asked.then_some(1));
        let ExecutedOutput {
            resolved:
                Resolved {
                    key,
                    cost,
                    unchanged,
                    ..
                },
            usage,
            ..
        } = *fresh;
        self.emit(&RunEvent::Completed {
            stage,
            key,
            asked,
            replies,
            usage,
            cost,
            unchanged,
        })
    }

    /// Reports a task that is not begun.
    pub(super) fn skipped(
        &mut self,
        stage: StageName,
        reason: SkipReason,
    ) -> Result<(), FileError> {
        self.outcome.skipped += u64::from(reason != SkipReason::GivenUp);
        self.emit(&RunEvent::Skipped { stage, reason })
    }

    /// Reports breakers that tripped.
    pub(super) fn tripped(&mut self, breakers: Vec<TrippedBreaker>) -> Result<(), FileError> {
        for breaker in breakers {
            self.emit(&RunEvent::BreakerTripped(&breaker))?;
            self.outcome.tripped.push(breaker);
        }
        Ok(())
    }

    /// Reports warnings.
    pub(super) fn note(
        &mut self,
        notes: impl IntoIterator<Item = String>,
    ) -> Result<(), FileError> {
        notes
            .into_iter()
            .try_for_each(|note| self.emit(&RunEvent::Warning(note)))
    }

    /// Reports a judge that gets no more requests.
    pub(super) fn give_up(&mut self, why: String) -> Result<(), FileError> {
        self.outcome.given_up.push(why.clone());
        self.note([why])
    }

    /// Counts a cell that has an output.
    pub(super) fn resolved(&mut self, stage: StageName) {
        self.count(stage, MatrixCounts::default());
    }

    /// Reports a cell that has no output, and the cells that depend on it, which can have none either.
    pub(super) fn unresolved(
        &mut self,
        stage: StageName,
        blocked: MatrixCounts,
    ) -> Result<(), FileError> {
        self.count(stage, blocked);
        self.emit(&RunEvent::Blocked(blocked))
    }

    fn count(&mut self, stage: StageName, blocked: MatrixCounts) {
        let MatrixCounts {
            compress,
            answer,
            judge,
        } = blocked;
        self.finished.compress += compress + u64::from(stage == StageName::Compress);
        self.finished.answer += answer + u64::from(stage == StageName::Answer);
        self.finished.judge += judge + u64::from(stage == StageName::Judge);
    }

    /// Marks the run as interrupted. Returns whether that is new.
    pub(super) fn interrupt(&mut self) -> bool {
        !std::mem::replace(&mut self.outcome.interrupted, true)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.outcome.interrupted
    }

    /// Notes that the budget refused requests; the first limit that was reached is reported.
    pub(super) fn note_budget(&mut self, reached: BudgetReached) {
        self.outcome.budget.get_or_insert(reached);
    }

    pub(super) fn budget_reached(&self) -> Option<BudgetReached> {
        self.outcome.budget
    }

    pub(super) fn note_untested(&mut self, judge: UntestedJudge) {
        self.outcome.untested.push(judge);
    }

    pub(super) fn note_forecast(&mut self, forecast: Option<CostEstimate>) {
        self.outcome.forecast = forecast;
    }

    pub(super) fn finished_cells(&self) -> u64 {
        self.finished.all()
    }

    /// Adds the outcome of the batches, and compares the cells that were reported with those that were `due`.
    pub(super) fn finish(&mut self, batches: &BatchLane<'_, '_>, due: MatrixCounts) {
        batches.report(&mut self.outcome);
        let finished = self.finished;
        let stages = [
            (StageName::Compress, due.compress, finished.compress),
            (StageName::Answer, due.answer, finished.answer),
            (StageName::Judge, due.judge, finished.judge),
        ];
        for (stage, due, finished) in stages {
            if due != finished {
                let name = stage.name();
                self.outcome
                    .unaccounted
                    .push(format!("{finished} of {due} {name} cells"));
            }
        }
    }

    pub(super) fn into_outcome(self) -> RunOutcome {
        self.outcome
    }
}
