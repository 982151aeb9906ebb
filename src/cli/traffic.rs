//! Requests, retries and slow-downs, as the client tells them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::provider::ClientEvent;

/// Counts of what went over the wire.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) rate_limited: AtomicU64,
}

impl Traffic {
    /// Takes note of an event, in the log too.
    pub(crate) fn hear(&self, event: &ClientEvent) {
        match event {
            ClientEvent::Sent { .. } | ClientEvent::Answered { .. } => tracing::debug!(?event),
            ClientEvent::RateLimited { .. } | ClientEvent::Retrying { .. } | ClientEvent::Paused { .. } => {
                tracing::info!(?event);
            }
        }
        let counter = match event {
            ClientEvent::Sent { .. } => &self.sent,
            ClientEvent::Retrying { .. } => &self.retries,
            ClientEvent::RateLimited { .. } => &self.rate_limited,
            ClientEvent::Answered { .. } | ClientEvent::Paused { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
