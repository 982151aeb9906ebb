//! Circuit breakers: after a failure that every further call would repeat, no more calls are sent.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;

use crate::action::{ModelRequest, Work};
use crate::plan::FailedAction;
use models::{ErrorClass, ModelName, Operation, ProviderName};

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

/// The breakers of a run, and whether the run is to end. They cancel calls that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct CircuitBreakers {
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
