//! The loop's books: what is not to be asked any more, what the budget holds back, and that every cell was accounted
//! for in the end.

use super::budget::BudgetReached;
use super::ended::{Closed, Door};
use super::event::{Event, Listener};
use super::run::{Loop, RunError};
use crate::action::{StageName, Work};
use crate::pipeline::Counts;
use crate::plan::Task;
use crate::provider::ErrorClass;
use crate::results::{Blame, Failure, Place};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Why the work is not to be asked of anyone, if so.
    pub(super) fn is_closed(&self, work: &Work) -> Option<String> {
        let Work::Ask(request) = work else { return None };
        let is_closed = |door: &&Door| {
            let asked = (&request.model, request.operation);
            door.provider == request.provider
                && door.only.as_ref().is_none_or(|(model, operation)| (model, *operation) == asked)
        };
        self.doors.iter().find(is_closed).map(|door| door.why.clone())
    }

    /// A wrong key, an empty account, an unknown model fail every further call alike: better to stop and say so.
    pub(super) fn note_closed(&mut self, work: &Work, failure: &Failure) -> Result<(), RunError> {
        let (Some(class), Work::Ask(request)) = (failure.class.filter(|class| class.is_terminal()), work) else {
            return Ok(());
        };
        if self.is_closed(work).is_some() {
            return Ok(());
        }
        let only = (class == ErrorClass::NotFound).then(|| (request.model.clone(), request.operation));
        let who = match &only {
            Some((model, _)) => format!("{}/{model}", request.provider),
            None => request.provider.to_string(),
        };
        let why = failure.told();
        self.doors.push(Door { provider: request.provider.clone(), only, why: why.clone() });
        let closed = Closed { who, why };
        self.listener.hear(&Event::Closed(&closed))?;
        self.ended.closed.push(closed);
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

    /// Counts a cell of which nothing more will be heard, and those that are blocked by it.
    pub(super) fn count(&mut self, stage: StageName, blocked: Counts) {
        let Counts { compress, answer, judge } = blocked;
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
        let due = if self.options.selftests_only { Counts::default() } else { all };
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
