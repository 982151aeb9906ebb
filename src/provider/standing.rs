//! How a provider is doing just now, for progress displays: what was sent, what is allowed, what is waited for.

use std::time::Duration;

use super::spec::{ModelName, ProviderName};

/// How one model of a provider is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The provider.
    pub provider: ProviderName,
    /// The model.
    pub model: ModelName,
    /// Requests let through so far.
    pub sent: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests a minute that are allowed: declared, told, or guessed from refusals; `None` if nothing is known.
    pub requests_per_minute: Option<u64>,
    /// Tokens that were used so far, of the kind that is limited.
    pub tokens: u64,
    /// Tokens a minute that are allowed; `None` if nothing is known.
    pub tokens_per_minute: Option<u64>,
    /// Requests a minute that the user allows all models of the account together.
    pub account_requests_per_minute: Option<u64>,
    /// Tokens a minute that the user allows them together, of the kind that is limited.
    pub account_tokens_per_minute: Option<u64>,
    /// What the next request waits for; `None` if no request waits.
    pub waits: Option<Waiting>,
}

/// What the next request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing gets through to the provider; it is tried again after this.
    Away(Duration, String),
    /// The provider asked for a pause, or refused without a word; it goes on after this.
    Pause(Duration, String),
    /// The rate that is allowed.
    Rate,
    /// As many as may be are under way: replies are waited for.
    Replies,
}
