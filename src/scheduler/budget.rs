//! The budget: the worst case is reserved before a request is sent and settled after, so that no limit is
//! exceeded, however many requests are under way.

use std::sync::{Mutex, PoisonError};

use crate::provider::{Meter, ModelRef, Prices};
use crate::units::{Tokens, Usage, Usd};

/// The limits of a run. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Money.
    pub usd: Option<Usd>,
    /// Requests, every attempt counted.
    pub requests: Option<u64>,
}

/// Why nothing more may be sent.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BudgetReached {
    /// The next request could cost more than is left.
    #[error("the next request could exceed --max-cost {limit:.2} USD ({spent:.4} USD spent or reserved)")]
    Cost {
        /// The limit, in dollars.
        limit: f64,
        /// Spent and reserved, in dollars.
        spent: f64,
    },
    /// All requests allowed were sent.
    #[error("--max-requests {limit} were sent")]
    Requests {
        /// The limit.
        limit: u64,
    },
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    spent: f64,
    reserved: f64,
    reached: Option<BudgetReached>,
}

/// What a run may spend, and has spent.
#[derive(Debug, Default)]
pub struct Budget {
    allowance: Allowance,
    state: Mutex<State>,
}

/// A request that was let through, with what is set aside for it.
#[derive(Debug)]
pub struct Reservation {
    worst: f64,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub fn new(allowance: Allowance) -> Budget {
        Budget { allowance, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets aside one request and its worst cost; unknown prices were refused before if money is limited.
    ///
    /// # Errors
    /// The limit that would be exceeded. From then on the budget counts as reached.
    pub fn reserve(&self, worst: Option<Usd>) -> Result<Reservation, BudgetReached> {
        let mut state = self.state();
        let worst = worst.map_or(0.0, |usd| usd.0);
        if let Some(limit) = self.allowance.requests.filter(|limit| state.requests >= *limit) {
            state.reached = Some(BudgetReached::Requests { limit });
            return Err(BudgetReached::Requests { limit });
        }
        let spent = state.spent + state.reserved;
        if let Some(limit) = self.allowance.usd.filter(|limit| spent + worst > limit.0) {
            let reached = BudgetReached::Cost { limit: limit.0, spent };
            // What others hold back may come free again: only with nothing reserved is this the end.
            if state.reserved <= f64::EPSILON {
                state.reached = Some(reached);
            }
            return Err(reached);
        }
        state.requests += 1;
        state.reserved += worst;
        Ok(Reservation { worst })
    }

    /// Replaces what was set aside by what was paid. An unknown amount counts as the worst case: a request that
    /// timed out may have been billed.
    pub fn settle(&self, reservation: Reservation, paid: Option<Usd>) {
        let mut state = self.state();
        state.reserved = (state.reserved - reservation.worst).max(0.0);
        state.spent += paid.map_or(reservation.worst, |usd| usd.0);
    }

    /// Whether the limit was met with nothing left in reserve.
    pub fn reached(&self) -> Option<BudgetReached> {
        self.state().reached
    }
}

/// Real inputs are up to one and a half times the estimate, which is low on purpose: twice it is the worst case.
const CAUTION: u64 = 2;

/// The budget as one action's attempts meet it.
pub(super) struct Purse<'b> {
    budget: &'b Budget,
    prices: &'b Prices,
    model: &'b ModelRef,
    worst: Option<Usd>,
    word: Mutex<Option<BudgetReached>>,
}

impl<'b> Purse<'b> {
    /// A purse for requests to `model`: the input as estimated, and the longest reply.
    pub(super) fn new(
        budget: &'b Budget,
        prices: &'b Prices,
        model: &'b ModelRef,
        (input, output): (Tokens, Tokens),
    ) -> Purse<'b> {
        let worst = prices.worst_case(model, Tokens(input.0.saturating_mul(CAUTION)), output);
        Purse { budget, prices, model, worst, word: Mutex::default() }
    }

    /// Why the last attempt was not let through.
    pub(super) fn word(&self) -> BudgetReached {
        let word = *self.word.lock().unwrap_or_else(PoisonError::into_inner);
        word.unwrap_or(BudgetReached::Requests { limit: 0 })
    }
}

impl Meter for Purse<'_> {
    type Held = Reservation;

    fn admit(&self) -> Option<Reservation> {
        match self.budget.reserve(self.worst) {
            Ok(reservation) => Some(reservation),
            Err(reached) => {
                *self.word.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
                None
            }
        }
    }

    fn settle(&self, held: Reservation, used: Option<&Usage>) {
        let paid = match used {
            Some(usage) if *usage == Usage::default() => Some(Usd(0.0)),
            Some(usage) => self.prices.cost(self.model, usage),
            None => None,
        };
        self.budget.settle(held, paid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_is_set_aside_until_settled() {
        let budget = Budget::new(Allowance { usd: Some(Usd(1.0)), requests: None });
        let first = budget.reserve(Some(Usd(0.6))).unwrap();
        assert!(budget.reserve(Some(Usd(0.6))).is_err());
        assert_eq!(budget.reached(), None, "the first may turn out cheaper");
        budget.settle(first, Some(Usd(0.1)));
        let second = budget.reserve(Some(Usd(0.6))).unwrap();
        budget.settle(second, None);
        assert!(matches!(budget.reserve(Some(Usd(0.4))), Err(BudgetReached::Cost { .. })));
        assert!(budget.reached().is_some());
    }

    #[test]
    fn requests_are_counted_one_by_one() {
        let budget = Budget::new(Allowance { usd: None, requests: Some(2) });
        for _ in 0..2 {
            let reservation = budget.reserve(None).unwrap();
            budget.settle(reservation, Some(Usd(0.0)));
        }
        assert_eq!(budget.reserve(None).unwrap_err(), BudgetReached::Requests { limit: 2 });
    }
}
