//! Whom nobody asks any more: providers that would refuse every further call the same way, and all of them once the run
//! is to end.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;

use crate::action::Request;
use crate::provider::{ErrorClass, ModelName, Operation, ProviderName};
use crate::results::Failure;

/// A provider, or one of its models, at which every further call would have failed the same way.
#[derive(Clone, Debug)]
pub struct TrippedBreaker {
    /// `provider` or `provider/model`.
    pub target: String,
    /// What it said, and what to do.
    pub reason: String,
}

/// Where every further call would fail the same way.
#[derive(Debug)]
struct Door {
    provider: ProviderName,
    /// The one model, and what is not asked of it: a server may lack one endpoint only. `None` for all of the provider.
    only: Option<(ModelName, Operation)>,
    why: String,
}

/// The doors of a run. Calls that still wait for their turn learn here that they are not to be sent.
#[derive(Debug, Default)]
pub(super) struct Doors {
    closed: RefCell<Vec<Door>>,
    /// Those of which the user was not told yet.
    untold: RefCell<Vec<TrippedBreaker>>,
    all: Cell<bool>,
    changed: Notify,
}

impl Doors {
    /// Why the request is not to be sent, if its provider is the reason.
    pub(super) fn why(&self, request: &Request) -> Option<String> {
        let is_closed = |door: &&Door| {
            let asked = (&request.model, request.operation);
            door.provider == request.provider
                && door.only.as_ref().is_none_or(|(model, operation)| (model, *operation) == asked)
        };
        self.closed.borrow().iter().find(is_closed).map(|door| door.why.clone())
    }

    /// A wrong key, an empty account, an unknown model fail every further call alike: then the door closes.
    pub(super) fn note(&self, request: &Request, failure: &Failure) {
        let Some(class) = failure.class.filter(|class| class.is_terminal() && self.why(request).is_none()) else {
            return;
        };
        let (provider, why) = (request.provider.clone(), failure.told());
        let only = (class == ErrorClass::NotFound).then(|| (request.model.clone(), request.operation));
        let who = match &only {
            Some((model, _)) => format!("{provider}/{model}"),
            None => provider.to_string(),
        };
        self.untold.borrow_mut().push(TrippedBreaker { target: who, reason: why.clone() });
        self.closed.borrow_mut().push(Door { provider, only, why });
        self.changed.notify_waiters();
    }

    /// What was closed since the last time, to be told.
    pub(super) fn untold(&self) -> Vec<TrippedBreaker> {
        self.untold.take()
    }

    /// Closes all: the run is to end.
    pub(super) fn close_all(&self) {
        self.all.set(true);
        self.changed.notify_waiters();
    }

    /// Whether all are closed.
    pub(super) fn are_closed(&self) -> bool {
        self.all.get()
    }

    /// Returns once the request is not to be sent any more.
    pub(super) async fn closed_for(&self, request: &Request) {
        loop {
            let changed = self.changed.notified();
            if self.are_closed() || self.why(request).is_some() {
                return;
            }
            changed.await;
        }
    }
}
