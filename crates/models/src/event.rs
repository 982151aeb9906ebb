//! Events of the client, for progress displays and counters.

use std::sync::Arc;
use std::time::Duration;

use super::call::ErrorClass;
use super::spec::{ModelName, ProviderName};

/// Something that happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// A request was sent.
    Sent {
        /// The provider that was asked.
        provider: ProviderName,
    },
    /// A whole 2xx reply arrived.
    Answered {
        /// The provider that was asked.
        provider: ProviderName,
        /// From sending to the last byte.
        latency: Duration,
    },
    /// The provider rejected a request because of a limit. A `Retrying` or a failure follows.
    RateLimited {
        /// The provider that was asked.
        provider: ProviderName,
    },
    /// A failed attempt will be repeated with the same bytes.
    Retrying {
        /// The provider that was asked.
        provider: ProviderName,
        /// The model that was asked.
        model: ModelName,
        /// What kind of failure it was.
        class: ErrorClass,
        /// What the provider said, without keys.
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
