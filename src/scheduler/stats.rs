//! Statistics of a run: every event goes out through here and is counted on its way, so that what is reported and what
//! is counted cannot differ.

use super::batch::BatchLane;
use super::breakers::TrippedBreaker;
use super::budget::BudgetReached;
use super::event::{Event, Listener, SkipReason};
use super::execute::ExecutedOutput;
use super::options::{RunOutcome, UntestedJudge};
use crate::action::{ActionKey, StageName};
use crate::pipeline::MatrixCounts;
use crate::plan::{Action, CostEstimate, Resolved};
use base::files::FileError;
use base::say;

/// The events of a run and their totals.
pub(super) struct RunStats<'r> {
    listener: &'r mut dyn Listener,
    outcome: RunOutcome,
    /// Cells of which nothing more will be reported.
    finished: MatrixCounts,
}

impl<'r> RunStats<'r> {
    pub(super) fn new(listener: &'r mut dyn Listener) -> RunStats<'r> {
        let outcome = RunOutcome { forecast: Some(CostEstimate::nothing()), ..RunOutcome::default() };
        RunStats { listener, outcome, finished: MatrixCounts::default() }
    }

    pub(super) fn emit(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        self.listener.on_event(event)
    }

    /// An output was found in the cache, for the `first` cell with its action or for another one.
    pub(super) fn cached(
        &mut self,
        stage: StageName,
        key: ActionKey,
        is_first: bool,
        early_cutoff: bool,
    ) -> Result<(), FileError> {
        self.emit(&match is_first {
            true => Event::Cached { stage, key, early_cutoff },
            false => Event::Shared { stage },
        })
    }

    pub(super) fn completed(&mut self, action: &Action, fresh: &ExecutedOutput) -> Result<(), FileError> {
        let (stage, asked) = (action.task.stage(), action.request().is_some());
        let ExecutedOutput { resolved: Resolved { key, cost, unchanged, .. }, usage, repeated, .. } = *fresh;
        self.emit(&Event::Completed { stage, key, asked, usage, repeated, cost, unchanged })
    }

    /// A task is not begun.
    pub(super) fn skipped(&mut self, stage: StageName, reason: SkipReason) -> Result<(), FileError> {
        self.outcome.skipped += u64::from(reason != SkipReason::VerdictKnown);
        self.emit(&Event::Skipped { stage, reason })
    }

    /// Calls to a provider or a model are not sent any more.
    pub(super) fn tripped(&mut self, breakers: Vec<TrippedBreaker>) -> Result<(), FileError> {
        for breaker in breakers {
            self.emit(&Event::BreakerTripped(&breaker))?;
            self.outcome.tripped.push(breaker);
        }
        Ok(())
    }

    /// Reports what is odd.
    pub(super) fn note(&mut self, notes: impl IntoIterator<Item = String>) -> Result<(), FileError> {
        notes.into_iter().try_for_each(|note| self.emit(&Event::Warning(note)))
    }

    /// A cell has an output.
    pub(super) fn resolved(&mut self, stage: StageName) {
        self.count(stage, MatrixCounts::default());
    }

    /// A cell has no output, and so those that depend on it can have none.
    pub(super) fn unresolved(&mut self, stage: StageName, blocked: MatrixCounts) -> Result<(), FileError> {
        self.count(stage, blocked);
        self.emit(&Event::Blocked(blocked))
    }

    fn count(&mut self, stage: StageName, blocked: MatrixCounts) {
        let MatrixCounts { compress, answer, judge } = blocked;
        self.finished.compress += compress + u64::from(stage == StageName::Compress);
        self.finished.answer += answer + u64::from(stage == StageName::Answer);
        self.finished.judge += judge + u64::from(stage == StageName::Judge);
    }

    /// The run is to end. Returns whether that is new.
    pub(super) fn interrupt(&mut self) -> bool {
        !std::mem::replace(&mut self.outcome.interrupted, true)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.outcome.interrupted
    }

    /// Requests were refused by the budget; the first limit that was reached is reported.
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

    /// Adds what came of the batches, and compares the cells that were reported with those that were `due`.
    pub(super) fn finish(&mut self, batches: &BatchLane<'_, '_>, due: MatrixCounts) {
        batches.report(&mut self.outcome);
        let found = self.finished;
        let stages = [
            (StageName::Compress, due.compress, found.compress),
            (StageName::Answer, due.answer, found.answer),
            (StageName::Judge, due.judge, found.judge),
        ];
        let missing = stages.into_iter().filter(|(_, due, found)| due != found);
        let words = missing.map(|(stage, due, found)| {
            say!("{found} of {due} {} cells", "{due} 个 {} 单元中的 {found} 个", stage.name())
        });
        self.outcome.unaccounted = words.collect();
    }

    pub(super) fn into_outcome(self) -> RunOutcome {
        self.outcome
    }
}
