//! The queue in front of models: tasks whose model is unavailable are deferred, so that they do not block other models.

use std::collections::HashMap;

use crate::action::StageName;
use crate::plan::{Action, Task};
use models::{Client, ModelName, ProviderName};

/// The most tasks that are deferred. Further ones are begun anyway, so that memory stays flat.
const MOST_DEFERRED: usize = 4096;

type Model = (ProviderName, ModelName);

/// The models that currently get requests, and the tasks that wait for an unavailable model.
pub(super) struct ModelQueue<'r> {
    client: &'r Client,
    jobs: usize,
    in_flight: HashMap<Model, usize>,
    deferred: HashMap<Model, Vec<Task>>,
}

impl<'r> ModelQueue<'r> {
    pub(super) fn new(client: &'r Client, jobs: usize) -> ModelQueue<'r> {
        ModelQueue {
            client,
            jobs,
            in_flight: HashMap::new(),
            deferred: HashMap::new(),
        }
    }

    /// Whether no more actions may begin. Up to `jobs` actions do not count that wait for an unavailable model, or that
    /// were refused and are sent again later.
    pub(super) fn is_full(&self, in_flight: usize) -> bool {
        in_flight >= self.jobs && in_flight >= self.jobs + self.stuck().min(self.jobs)
    }

    fn stuck(&self) -> usize {
        let stuck = self.in_flight.iter().map(|(model, count)| {
            if self.is_unavailable(model) {
                *count
            } else {
                self.client.delayed(&model.0, &model.1).min(*count)
            }
        });
        stuck.sum()
    }

    fn is_unavailable(&self, (provider, model): &Model) -> bool {
        self.client.is_unavailable(provider, model)
    }

    /// Whether a model is unavailable, or has only failed so far: it may not exist.
    fn is_away(&self, model: &Model) -> bool {
        let (provider, name) = model;
        self.is_unavailable(model)
            || (self.client.delayed(provider, name) > 0
                && !self.client.has_answered(provider, name))
    }

    /// Defers a task whose model is away, if other tasks already wait for the model and there is something else to do.
    /// Returns an action that is to begin now. Cells wait for the cases of a self-test: these are not deferred.
    pub(super) fn defer(&mut self, action: Action, has_other_work: bool) -> Option<Action> {
        let Some(model) = model_of(&action).filter(|_| action.task.stage() != StageName::Selftest)
        else {
            return Some(action);
        };
        let can_wait =
            has_other_work && self.deferred.values().map(Vec::len).sum::<usize>() < MOST_DEFERRED;
        if can_wait && self.in_flight.contains_key(&model) && self.is_away(&model) {
            self.deferred.entry(model).or_default().push(action.task);
            return None;
        }
        Some(action)
    }

    pub(super) fn begin(&mut self, action: &Action) {
        if let Some(model) = model_of(action) {
            *self.in_flight.entry(model).or_default() += 1;
        }
    }

    /// An action is no longer under way. If its model is back, returns the tasks that were deferred for it.
    pub(super) fn finish(&mut self, action: &Action) -> Vec<Task> {
        let Some(model) = model_of(action) else {
            return Vec::new();
        };
        if let Some(count) = self.in_flight.get_mut(&model) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&model);
            }
        }
        if self.is_away(&model) {
            Vec::new()
        } else {
            self.deferred.remove(&model).unwrap_or_default()
        }
    }

    /// A deferred task, for when there is nothing else to do.
    pub(super) fn take(&mut self) -> Option<Task> {
        self.deferred.values_mut().find_map(Vec::pop)
    }
}

fn model_of(action: &Action) -> Option<Model> {
    action
        .request()
        .map(|request| (request.provider.clone(), request.model.clone()))
}
