//! How fast requests are sent to a provider: within the limits that the user declared, those that response headers
//! announce, and those that only refusals reveal.
//!
//! Each has a file of its own because they change for different reasons. [`buckets`] holds a declared rate exactly;
//! [`rate_estimator`] finds a rate that is enforced, or keeps to an announced one; [`limit_group`] has an estimator for
//! each kind of limit and is shared by the models that share limits; [`headers`] reads what a provider announces;
//! [`rate_limiter`] adapts the number of requests in flight, queues requests and applies all of them.
//! [`ProviderStatus`] is what progress displays show of them.

mod buckets;
mod headers;
mod limit_group;
mod rate_estimator;
mod rate_limiter;

pub(crate) use buckets::TokenDemand;
pub(crate) use headers::{AnnouncedLimits, Headers};
pub(crate) use limit_group::{LimitGroup, Ticket};
pub(crate) use rate_limiter::{ConcurrencyLimit, Permit, RateLimiter};

use std::time::Duration;

use crate::spec::{ModelName, ProviderName};

/// The state of one model of a provider at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderStatus {
    /// The provider.
    pub provider: ProviderName,
    /// The model.
    pub model: ModelName,
    /// Requests sent and not answered.
    pub in_flight: u32,
    /// What the next request waits for; `None` if none waits.
    pub waits: Option<WaitReason>,
}

/// What the next request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The provider is unavailable; it is tried again after this time. With its last error.
    Unavailable(Duration, String),
    /// The provider asked for a pause, or refused without naming one; requests continue after this time.
    Paused(Duration, String),
    /// The rate limit leaves no room yet.
    Rate,
    /// The allowed number of requests is in flight: replies are waited for.
    Replies,
}
