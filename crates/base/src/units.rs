//! Numbers with units: tokens, dollars, and the usage that a provider reports for a call.
//!
//! Arithmetic here never turns an unknown number into 0. A number that was not reported stays `None` up to the printed
//! table, which shows a dash.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A count of tokens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
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

/// Writes the amount for people: `$0`, `$1.50`, and below a cent `$0.0040` or `<$0.0001`. `money` in
/// `assets/report/dom.js` writes the same form.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, amount) = (if self.0 < 0.0 { "-" } else { "" }, self.0.abs());
        if amount == 0.0 {
            f.pad("$0")
        } else if amount < 0.00005 {
            f.pad(&format!("{sign}<$0.0001"))
        } else if amount < 0.01 {
            f.pad(&format!("{sign}${amount:.4}"))
        } else {
            f.pad(&format!("{sign}${amount:.2}"))
        }
    }
}

/// Formats an amount for people; an unknown one is a dash, never 0.
pub fn money(amount: Option<Usd>) -> String {
    amount.map_or_else(|| "–".to_owned(), |amount| amount.to_string())
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
    /// Of those, tokens kept for an hour, which cost more. Only needed to price the reply, so it is not stored.
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
        self.with(other, subtract_known)
    }

    /// This usage and `other`, number by number.
    fn with(&self, other: &Usage, number: KnownOf) -> Usage {
        Usage {
            input: number(self.input, other.input),
            cached_input: number(self.cached_input, other.cached_input),
            cache_write: number(self.cache_write, other.cache_write),
            cache_write_hour: number(self.cache_write_hour, other.cache_write_hour),
            output: number(self.output, other.output),
            reasoning: number(self.reasoning, other.reasoning),
        }
    }
}

impl Add for Usage {
    type Output = Usage;
    /// The usage of two calls. A number is unknown if either is.
    fn add(self, other: Usage) -> Usage {
        self.with(&other, add_known)
    }
}

/// A number from two that may be unknown.
type KnownOf = fn(Option<Tokens>, Option<Tokens>) -> Option<Tokens>;

fn subtract_known(all: Option<Tokens>, part: Option<Tokens>) -> Option<Tokens> {
    Some(Tokens(all?.0.saturating_sub(part?.0)))
}

/// The sum of two possibly unknown amounts: unknown if either is.
pub fn add_known<T: Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    Some(a? + b?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_amount_is_not_shown_as_zero_and_an_unknown_one_is_a_dash() {
        assert_eq!(money(None), "–");
        let amounts = [0.0, 0.000_01, 0.004, 0.009_99, 0.01, 1.5, 1234.5, -0.5]
            .map(|amount| Usd(amount).to_string());
        assert_eq!(
            amounts,
            [
                "$0", "<$0.0001", "$0.0040", "$0.0100", "$0.01", "$1.50", "$1234.50", "-$0.50"
            ]
        );
        assert_eq!(format!("{:>6}|", Usd(0.0)), "    $0|");
    }
}
