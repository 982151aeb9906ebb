//! ReportedModels that are away for a while: what waits for them does not keep the others from being asked.

use super::event::Listener;
use super::run::Loop;
use crate::action::{Request, Work};
use crate::plan::Task;
use crate::provider::{ModelName, ProviderName};

/// Tasks put aside at once: past this they are begun all the same, so that memory stays flat.
const MOST_ASIDE: usize = 4096;

fn lane(request: &Request) -> (ProviderName, ModelName) {
    (request.provider.clone(), request.model.clone())
}

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Whether as much is under way as may be. What waits for a model that is away does not count, up to as much again.
    pub(super) fn is_full(&self) -> bool {
        let (flights, jobs) = (self.flights.len(), self.options.jobs);
        flights >= jobs && flights >= jobs + self.stuck().min(jobs)
    }

    fn stuck(&self) -> usize {
        let client = self.performer.client;
        self.lanes.iter().filter(|((provider, model), _)| client.is_unavailable(provider, model)).map(|(_, n)| n).sum()
    }

    /// Puts a task aside whose model is away, if others already wait for it and there is something else to do.
    pub(super) fn put_aside(&mut self, task: Task, work: &Work) -> Option<Task> {
        let Work::Ask(request) = work else { return Some(task) };
        let key = lane(request);
        let can_wait = self.frontier.has_more() && self.aside.values().map(Vec::len).sum::<usize>() < MOST_ASIDE;
        if can_wait && self.lanes.contains_key(&key) && self.is_away(request) {
            self.aside.entry(key).or_default().push(task);
            return None;
        }
        Some(task)
    }

    fn is_away(&self, request: &Request) -> bool {
        self.performer.client.is_unavailable(&request.provider, &request.model)
    }

    pub(super) fn note_begun(&mut self, work: &Work) {
        if let Work::Ask(request) = work {
            *self.lanes.entry(lane(request)).or_default() += 1;
        }
    }

    /// Takes note that an action is no longer under way. If its model is back, so is what was put aside.
    pub(super) fn note_landed(&mut self, work: &Work) {
        let Work::Ask(request) = work else { return };
        let key = lane(request);
        if let Some(count) = self.lanes.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.lanes.remove(&key);
            }
        }
        if !self.is_away(request) {
            let back = self.aside.remove(&key).unwrap_or_default();
            back.into_iter().rev().for_each(|task| self.frontier.put_back(task));
        }
    }

    /// A task that was put aside, where there is nothing else to do.
    pub(super) fn take_from_aside(&mut self) -> Option<Task> {
        self.aside.values_mut().find_map(Vec::pop)
    }
}
