//! Events of the client, for progress displays and counters.

use std::sync::Arc;
use std::time::Duration;

use super::call::ErrorClass;
use super::spec::{ModelName, ProviderName};

/// Something that happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    Sent {
        provider: ProviderName,
    },
    /// A whole 2xx reply arrived.
    Answered {
        provider: ProviderName,
        /// From sending to the last byte.
        latency: Duration,
    },
    /// The provider rejected a request because of a limit. A `Retrying` or a failure follows.
    RateLimited {
        provider: ProviderName,
    },
    /// A failed attempt will be repeated with the same bytes.
    Retrying {
        provider: ProviderName,
        /// The model that was asked.
        model: ModelName,
        class: ErrorClass,
        cause: String,
        /// How long this call waits before it queues again.
        wait: Duration,
    },
    /// All requests to this model are paused.
    Paused {
        /// The provider that asked for the pause, or is unavailable.
        provider: ProviderName,
        /// The model whose requests wait.
        model: ModelName,
        /// How long, from now.
        wait: Duration,
    },
}

/// Receives events. Called on the path of every request: it must return at once.
pub type ClientListener = Arc<dyn Fn(&ClientEvent) + Send + Sync>;
