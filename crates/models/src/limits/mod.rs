//! How fast requests are sent to a provider: within the limits that the user declared, those that response headers
//! announce, and those that only refusals reveal.
//!
//! Each has a file of its own because they change for different reasons. [`buckets`] holds a declared rate exactly;
//! [`rate_estimator`] finds a rate that is enforced, or keeps to an announced one; [`limit_group`] has an estimator for
//! each kind of limit and is shared by the models that share limits; [`concurrency_limit`] adapts the number of requests
//! in flight; [`headers`] reads what a provider announces; [`rate_limiter`] queues requests and applies all of them.

mod buckets;
mod concurrency_limit;
mod headers;
mod limit_group;
mod rate_estimator;
mod rate_limiter;
mod status;

pub(crate) use buckets::{RatesPerMinute, TokenDemand};
pub(crate) use concurrency_limit::ConcurrencyLimit;
pub(crate) use headers::{AnnouncedLimits, Headers};
pub(crate) use limit_group::{LimitGroup, Ticket};
pub(crate) use rate_limiter::{Permit, RateLimiter, WaitTooLong};
pub use status::{ProviderStatus, WaitReason};
