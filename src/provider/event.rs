//! What the client tells while it works, for progress displays and counters.

use std::sync::Arc;
use std::time::Duration;

use super::api::ErrorClass;
use super::spec::{ModelName, ProviderName};

/// Something that happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// A request goes out.
    Sent {
        /// Who carries it.
        provider: ProviderName,
    },
    /// A whole 2xx reply arrived.
    Answered {
        /// Who sent it.
        provider: ProviderName,
        /// From sending to the last byte.
        latency: Duration,
    },
    /// The provider answered that requests come too fast. What follows is a `Retrying` or a failure.
    RateLimited {
        /// Who said so.
        provider: ProviderName,
    },
    /// A failed attempt will be repeated with the same bytes.
    Retrying {
        /// Who failed.
        provider: ProviderName,
        /// The model that was asked.
        model: ModelName,
        /// Why, by class.
        class: ErrorClass,
        /// Why, in words.
        cause: String,
        /// How long this call waits before it queues again.
        wait: Duration,
    },
    /// Nobody asks this model for a while.
    Paused {
        /// Who asked for it, or is away.
        provider: ProviderName,
        /// The model whose requests wait.
        model: ModelName,
        /// From now.
        wait: Duration,
    },
}

/// Who is told. Called on the path of every request: it must return at once.
pub type Listener = Arc<dyn Fn(&ClientEvent) + Send + Sync>;
