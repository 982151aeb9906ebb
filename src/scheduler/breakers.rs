//! Models that are unavailable. Circuit breakers: after a failure that every further call would repeat, no more calls are
//! sent. And the queue in front of models: tasks whose model is unavailable are deferred, so that they do not block others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tokio::sync::Notify;

use crate::action::{ModelRequest, StageName, Work};
use crate::plan::{Action, FailedAction, Task};
use models::{Client, ErrorClass, ModelName, Operation, ProviderName};

/// A provider, or one of its models, at which every further call would fail the same way.
#[derive(Clone, Debug)]
pub struct TrippedBreaker {
    /// `provider` or `provider/model`.
    pub target: String,
    /// The error message, and what to do.
    pub reason: String,
    provider: ProviderName,
    /// The one model, and the operation: a server may lack one endpoint only. `None` for all of the provider.
    only: Option<(ModelName, Operation)>,
}

impl TrippedBreaker {
    fn applies(&self, request: &ModelRequest) -> bool {
        let called = (&request.model, request.operation);
        self.provider == request.provider
            && self
                .only
                .as_ref()
                .is_none_or(|(model, operation)| (model, *operation) == called)
    }
}

/// The breakers of an executor in all of its runs, and whether these are to end. They cancel calls that wait for their turn.
#[derive(Debug, Default)]
pub struct CircuitBreakers {
    tripped: RefCell<Vec<TrippedBreaker>>,
    /// How many of them were reported, the first ones.
    reported: Cell<usize>,
    is_cancelled: Cell<bool>,
    changed: Notify,
}

impl CircuitBreakers {
    /// Why the work is not to be sent, if its provider is the reason.
    pub(super) fn reason(&self, work: &Work) -> Option<String> {
        match work {
            Work::Ask(request) => self.reason_for(request),
            Work::Execute(_) | Work::Compute(_) => None,
        }
    }

    fn reason_for(&self, request: &ModelRequest) -> Option<String> {
        self.tripped
            .borrow()
            .iter()
            .find(|breaker| breaker.applies(request))
            .map(|breaker| breaker.reason.clone())
    }

    /// Trips on a failure that every further call would repeat: a wrong key, an empty account, an unknown model, one that always
    /// fails.
    pub(super) fn record(&self, request: &ModelRequest, failure: &FailedAction) {
        let Some(class) = failure
            .class
            .filter(|class| class.is_terminal() && self.reason_for(request).is_none())
        else {
            return;
        };
        let (provider, reason) = (request.provider.clone(), failure.message_with_hint());
        // A quota, too, may be of one model: Google's and OpenRouter's free tiers have one for each.
        let is_of_model = !matches!(class, ErrorClass::Auth | ErrorClass::Unreachable);
        let only = is_of_model.then(|| (request.model.clone(), request.operation));
        let target = match &only {
            Some((model, _)) => format!("{provider}/{model}"),
            None => provider.to_string(),
        };
        self.tripped.borrow_mut().push(TrippedBreaker {
            target,
            reason,
            provider,
            only,
        });
        self.changed.notify_waiters();
    }

    /// The breakers that tripped since the last call.
    pub(super) fn take_unreported(&self) -> Vec<TrippedBreaker> {
        let tripped = self.tripped.borrow();
        tripped
            .iter()
            .skip(self.reported.replace(tripped.len()))
            .cloned()
            .collect()
    }

    /// Blocks all further calls: the run is to end.
    pub(super) fn cancel_all(&self) {
        self.is_cancelled.set(true);
        self.changed.notify_waiters();
    }

    /// Whether further calls are blocked.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.get()
    }

    /// Returns once the request is not to be sent any more.
    pub(super) async fn blocked(&self, request: &ModelRequest) {
        loop {
            let changed = self.changed.notified();
            if self.is_cancelled() || self.reason_for(request).is_some() {
                return;
            }
            changed.await;
        }
    }
}

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
