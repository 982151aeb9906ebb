//! Counts and logs the events of the HTTP client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use models::ClientEvent;

#[derive(Debug, Default)]
pub struct RequestLog {
    pub(super) sent: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) rate_limited: AtomicU64,
}

impl RequestLog {
    /// Counts an event and logs it.
    pub(super) fn on_event(&self, event: &ClientEvent) {
        match describe(event) {
            Some(message) => tracing::info!("{message}"),
            None => tracing::debug!(?event),
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

/// The message for an event that slows a run down.
fn describe(event: &ClientEvent) -> Option<String> {
    match event {
        ClientEvent::Sent { .. } | ClientEvent::Answered { .. } => None,
        ClientEvent::RateLimited { provider } => Some(format!("{provider} reports a rate limit")),
        ClientEvent::Retrying { provider, model, cause, wait, .. } => {
            let delay = if wait.is_zero() { String::new() } else { format!(" in {}", seconds(wait)) };
            Some(format!("retrying {provider}/{model}{delay}: {cause}"))
        }
        ClientEvent::Paused { provider, model, wait } => {
            Some(format!("{provider}/{model} is paused for {}", seconds(wait)))
        }
    }
}

fn seconds(wait: &Duration) -> String {
    format!("{:.2} s", wait.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::ErrorClass;

    #[test]
    fn a_retry_is_logged_with_its_model_and_cause() {
        let retrying = |wait| ClientEvent::Retrying {
            provider: "stub".into(),
            model: "small".into(),
            class: ErrorClass::Transient,
            cause: "HTTP 500: try later".to_owned(),
            wait,
        };
        let words = [Duration::from_millis(500), Duration::ZERO].map(|wait| describe(&retrying(wait)));
        let again = "retrying stub/small";
        let expected = [format!("{again} in 0.50 s: HTTP 500: try later"), format!("{again}: HTTP 500: try later")];
        assert_eq!(words, expected.map(Some));
        assert_eq!(describe(&ClientEvent::Sent { provider: "stub".into() }), None);
    }
}
