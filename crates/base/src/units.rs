//! Numbers with units: tokens, dollars, and the usage that a provider reports for a call.
//!
//! No arithmetic here turns an unknown number into 0. What was not reported stays `None` up to the printed table, which
//! shows a dash.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A count of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(iter: I) -> Tokens {
        iter.fold(Tokens(0), Add::add)
    }
}

/// An amount of money in US dollars; finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(pub f64);

impl Add for Usd {
    type Output = Usd;
    fn add(self, other: Usd) -> Usd {
        Usd(self.0 + other.0)
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Usd) {
        *self = *self + other;
    }
}

/// The tokens of one call, as its provider reported them. A number that it did not report is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, including those read from and written to a prompt cache.
    pub input: Option<Tokens>,
    /// Of the input, tokens read from the provider's prompt cache.
    pub cached_input: Option<Tokens>,
    /// Of the input, tokens written to the provider's prompt cache.
    pub cache_write: Option<Tokens>,
    /// Of those, tokens that are kept for an hour, which cost more. Known until the reply is priced, and not stored.
    #[serde(skip)]
    pub cache_write_hour: Option<Tokens>,
    /// All output tokens, including reasoning.
    pub output: Option<Tokens>,
    /// Of the output, tokens spent on reasoning.
    pub reasoning: Option<Tokens>,
}

impl Usage {
    /// This usage minus `other`. A number is unknown if either is.
    pub fn without(&self, other: &Usage) -> Usage {
        let left = |all: Option<Tokens>, part: Option<Tokens>| Some(Tokens(all?.0.saturating_sub(part?.0)));
        Usage {
            input: left(self.input, other.input),
            cached_input: left(self.cached_input, other.cached_input),
            cache_write: left(self.cache_write, other.cache_write),
            cache_write_hour: left(self.cache_write_hour, other.cache_write_hour),
            output: left(self.output, other.output),
            reasoning: left(self.reasoning, other.reasoning),
        }
    }
}

impl Add for Usage {
    type Output = Usage;
    /// The usage of two calls. A number is unknown if either is.
    fn add(self, other: Usage) -> Usage {
        Usage {
            input: add_known(self.input, other.input),
            cached_input: add_known(self.cached_input, other.cached_input),
            cache_write: add_known(self.cache_write, other.cache_write),
            cache_write_hour: add_known(self.cache_write_hour, other.cache_write_hour),
            output: add_known(self.output, other.output),
            reasoning: add_known(self.reasoning, other.reasoning),
        }
    }
}

/// The sum of two possibly unknown amounts: unknown if either is.
pub fn add_known<T: Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    Some(a? + b?)
}
