//! The loop's books: what is not to be asked any more, what the budget holds back, and that every cell was accounted
//! for in the end.

use super::budget::BudgetReached;
use super::event::{Event, Listener, SkipReason};
use super::run::{Loop, RunError};
use crate::action::{StageName, Work};
use crate::pipeline::MatrixCounts;
use crate::plan::{Task, TaskOutcome};
use crate::results::{Blame, Failure, Place};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Why the work is not to be asked of anyone, if so.
    pub(super) fn is_closed(&self, work: &Work) -> Option<String> {
        match work {
            Work::Ask(request) => self.doors.why(request),
            Work::Execute(_) | Work::Compute(_) => None,
        }
    }

    pub(super) fn skip(&mut self, task: &Task, reason: SkipReason) -> Result<(), RunError> {
        self.ended.skipped += 1;
        self.listener.on_event(&Event::Skipped { stage: task.stage(), reason })?;
        self.without(task)
    }

    pub(super) fn fail(&mut self, task: &Task, failure: &Failure) -> Result<(), RunError> {
        self.listener.on_event(&Event::Failed(failure))?;
        self.without(task)
    }

    pub(super) fn share_failure(&mut self, task: &Task) -> Result<(), RunError> {
        self.listener.on_event(&Event::SharedFailure { stage: task.stage() })?;
        self.without(task)
    }

    pub(super) fn without(&mut self, task: &Task) -> Result<(), RunError> {
        let blocked = self.frontier.resolve(task, TaskOutcome::Unresolved);
        self.count(task.stage(), blocked);
        if let Some(context) = task.context() {
            self.sheets.tear(context.cell);
        }
        Ok(self.listener.on_event(&Event::Blocked(blocked))?)
    }

    /// Tells whom nobody asks any more.
    pub(super) fn tell_closed(&mut self) -> Result<(), RunError> {
        for closed in self.doors.untold() {
            self.listener.on_event(&Event::BreakerTripped(&closed))?;
            self.ended.closed.push(closed);
        }
        Ok(())
    }

    /// Whether the money is only set aside for others: then the action waits for what they leave over.
    pub(super) fn is_squeezed(&mut self, reached: BudgetReached) -> bool {
        let squeezed = self.performer.budget.reached().is_none() && !self.flights.is_empty();
        self.squeezed |= squeezed;
        if !squeezed {
            self.ended.budget.get_or_insert(reached);
        }
        squeezed
    }

    /// MatrixCounts a cell of which nothing more will be heard, and those that are blocked by it.
    pub(super) fn count(&mut self, stage: StageName, blocked: MatrixCounts) {
        let MatrixCounts { compress, answer, judge } = blocked;
        self.settled.compress += compress + u64::from(stage == StageName::Compress);
        self.settled.answer += answer + u64::from(stage == StageName::Answer);
        self.settled.judge += judge + u64::from(stage == StageName::Judge);
    }

    /// Nothing may end unsaid: a cell that waits for something that will not come fails, by name.
    pub(super) fn account(&mut self) -> Result<(), RunError> {
        let parked = std::mem::take(&mut self.parked).into_values().flatten();
        let left: Vec<Task> = self.selftests.waiting().into_iter().chain(parked).collect();
        for task in left {
            let place = Place::Cell(task.place(self.performer.preparer.pipeline()));
            let message = "this cell was left waiting for what never came: a fault of compeval".to_owned();
            let (stage, blame) = (task.stage(), Blame::Infrastructure);
            let failure = Failure { place, stage, key: None, blame, class: None, message, hint: Some(REPORT.into()) };
            self.fail(&task, &failure)?;
        }
        let all = self.performer.preparer.matrix().counts();
        let due = if self.options.selftests_only { MatrixCounts::default() } else { all };
        let missing = |due: u64, settled: u64, stage: StageName| {
            (due != settled).then(|| format!("{settled} of {due} {} cells", stage.name()))
        };
        let told = [
            missing(due.compress, self.settled.compress, StageName::Compress),
            missing(due.answer, self.settled.answer, StageName::Answer),
            missing(due.judge, self.settled.judge, StageName::Judge),
        ];
        self.ended.unaccounted = told.into_iter().flatten().collect();
        Ok(())
    }
}

const REPORT: &str = "run again; if it stays, please report it";
