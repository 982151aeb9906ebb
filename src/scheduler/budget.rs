//! The budget: money is reserved before a request is sent and settled after.
//!
//! Before a model's replies are known, the worst case is reserved, although a model may be allowed a hundred times as
//! much as it usually writes. Afterwards twice the longest reply so far is reserved for each request, plus the
//! difference to the worst case once for all requests in flight: the limit holds unless two replies at the same time
//! are more than twice as long as all before them. Such a reply raises what is reserved from then on. While few replies
//! are known, the number of requests in flight is limited; a stage without replies uses four times the longest reply of
//! the model's other stages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::breakers::CircuitBreakers;
use crate::action::{ModelRequest, StageName};
use base::units::{Tokens, Usage, Usd, add_known};
use models::{AttemptBudget, AttemptCost, Lane, ModelRef, Prices};

/// The limits of a run's budget. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetLimits {
    pub usd: Option<Usd>,
    pub requests: Option<u64>,
}

impl BudgetLimits {
    /// The limits of one of several processes that share them. `share` is from 0 to 1.
    pub fn part(self, share: f64) -> BudgetLimits {
        BudgetLimits {
            usd: self.usd.map(|usd| Usd(usd.0 * share)),
            requests: self
                .requests
                .map(|requests| (requests as f64 * share) as u64),
        }
    }
}

/// Why nothing more may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetReached {
    /// The next request could cost more than is left.
    Cost {
        /// The limit, in dollars.
        limit: f64,
        /// Spent and reserved, in dollars.
        spent: f64,
    },
    /// All requests allowed were sent.
    Requests { limit: u64 },
}

/// What a run has paid for, unusable replies included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// Replies of models, with those to the requests that programs say they sent.
    pub replies: u64,
    /// What providers reported of them; `None` before the first.
    pub usage: Option<Usage>,
    /// What they cost; `None` where a price or a count is unknown.
    pub usd: Option<Usd>,
    /// Dollars that providers' prompt caches saved, as far as prices are known.
    pub saved: f64,
    /// Requests that were never answered: whether they are billed is unknown.
    pub unanswered: u64,
    /// Requests whose outcome is known, including those that were refused.
    pub settled: u64,
    /// Dollars reserved for requests under way.
    pub reserved: Usd,
    /// Whether the next request waits for money that is reserved for others.
    pub is_waiting: bool,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            replies: 0,
            usage: None,
            usd: Some(Usd(0.0)),
            saved: 0.0,
            unanswered: 0,
            settled: 0,
            reserved: Usd(0.0),
            is_waiting: false,
        }
    }
}

impl Spent {
    /// The same at the end of a run: of `sent` requests, those still under way count as unanswered.
    #[must_use]
    pub fn with_unfinished(self, sent: u64) -> Spent {
        Spent {
            unanswered: self.unanswered + sent.saturating_sub(self.settled),
            ..self
        }
    }

    fn add(&mut self, bill: AttemptCost<'_>, cost: Option<Usd>) {
        self.settled += 1;
        match bill {
            AttemptCost::Free => {}
            AttemptCost::Unknown => self.unanswered += 1,
            AttemptCost::Reported(usage) => self.add_replies(1, *usage, cost),
        }
    }

    /// Adds replies, with what providers reported of them and what they cost.
    fn add_replies(&mut self, replies: u64, usage: Usage, cost: Option<Usd>) {
        self.replies += replies;
        self.usage = Some(self.usage.map_or(usage, |before| before + usage));
        self.usd = add_known(self.usd, cost);
    }
}

#[derive(Debug, Default)]
struct BudgetState {
    requests: u64,
    spent: f64,
    reserved: f64,
    /// Of each reservation that is not settled yet, by how much the worst case exceeds the likely cost.
    open: Vec<f64>,
    /// Replies so far and the longest of them, by stage and model.
    seen: HashMap<(StageName, ModelRef), (u32, Tokens)>,
    reached: Option<BudgetReached>,
    paid: Spent,
}

/// The part of the remaining budget that is reserved for an expensive reply, if such replies are allowed.
const ROOM_FOR_ONE: f64 = 0.25;
/// The part of the limit that must be left for a second one beside the first.
const LEAST_ROOM: f64 = 0.1;

/// What a run may spend, and has spent.
#[derive(Debug, Default)]
pub struct Budget {
    limits: BudgetLimits,
    state: Mutex<BudgetState>,
    /// Whether one reply may cost more than the limit, of a run that is estimated below it.
    allows_expensive_replies: AtomicBool,
}

/// A request that was admitted, with what is reserved for it.
#[derive(Debug)]
pub struct Reservation {
    likely: f64,
    /// By how much the worst case exceeds it.
    excess: f64,
}

impl Budget {
    /// A budget with nothing spent.
    pub fn new(limits: BudgetLimits) -> Budget {
        Budget {
            limits,
            ..Budget::default()
        }
    }

    /// From now on the worst case of a request stops no run: it is estimated below the limit, though a single reply may
    /// cost more. Until lengths are known, few requests are sent at once, and the limit may be exceeded by their replies.
    pub fn allow_expensive_replies(&self) {
        self.allows_expensive_replies.store(true, Ordering::Relaxed);
    }

    /// The likely cost and the excess to reserve for a request if `room` dollars are left. Where expensive replies are
    /// allowed, a request that could cost more than `room` reserves only a part of it, unless little is left.
    fn limited_to(&self, room: f64, likely: f64, excess: f64, is_first: bool) -> (f64, f64) {
        let least = self.limits.usd.map_or(0.0, |limit| limit.0 * LEAST_ROOM);
        let is_allowed = self.allows_expensive_replies.load(Ordering::Relaxed)
            && room > 0.0
            && (is_first || room > least);
        if is_allowed && likely + excess > room {
            (likely.min(room * ROOM_FOR_ONE), 0.0)
        } else {
            (likely, excess)
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves one request and what it likely costs at most, with a reserve for the worst case of one request. An unknown
    /// price counts as 0: if money is limited, such a run was refused earlier.
    pub fn reserve(
        &self,
        likely: Option<Usd>,
        worst: Option<Usd>,
    ) -> Result<Reservation, BudgetReached> {
        let mut state = self.state();
        let [likely, worst] = [likely, worst].map(|usd| usd.map_or(0.0, |usd| usd.0));
        let left = self.limits.usd.map_or(f64::INFINITY, |limit| {
            limit.0 - state.spent - state.reserved
        });
        let (likely, excess) = self.limited_to(
            left,
            likely,
            (worst - likely).max(0.0),
            state.open.is_empty(),
        );
        if let Some(limit) = self
            .limits
            .requests
            .filter(|limit| state.requests >= *limit)
        {
            let reached = BudgetReached::Requests { limit };
            // A request that was not sent yet may be given back.
            if state.open.is_empty() {
                state.reached = Some(reached);
            }
            return Err(reached);
        }
        let spent = state.spent + state.reserved;
        let most = state.open.iter().copied().fold(excess, f64::max);
        if let Some(limit) = self
            .limits
            .usd
            .filter(|limit| spent + likely + most > limit.0)
        {
            let reached = BudgetReached::Cost {
                limit: limit.0,
                spent,
            };
            // What is reserved for others may be freed: only with nothing reserved is this the end.
            if state.open.is_empty() {
                state.reached = Some(reached);
            } else {
                state.paid.is_waiting = true;
            }
            return Err(reached);
        }
        state.requests += 1;
        state.open.push(excess);
        state.reserved += likely;
        state.paid.is_waiting = false;
        Ok(Reservation { likely, excess })
    }

    /// Replaces what was reserved by what was paid. An unknown amount counts as the worst case: a request that
    /// timed out may have been billed.
    pub fn settle(&self, reservation: Reservation, paid: Option<Usd>) {
        let mut state = self.state();
        let mut open = state.open.iter();
        if let Some(at) = open.position(|excess| *excess == reservation.excess) {
            state.open.swap_remove(at);
        }
        // Sums of fractions leave a remainder: with nothing open nothing is reserved.
        state.reserved = if state.open.is_empty() {
            0.0
        } else {
            (state.reserved - reservation.likely).max(0.0)
        };
        state.spent += paid.map_or(reservation.likely + reservation.excess, |usd| usd.0);
    }

    /// Reserves what a batch of an earlier run may cost, whatever the limit: that money is already committed.
    pub fn reserve_unconditionally(&self, worst: Usd) -> Reservation {
        let mut state = self.state();
        state.open.push(0.0);
        state.reserved += worst.0;
        Reservation {
            likely: worst.0,
            excess: 0.0,
        }
    }

    /// Replaces what was reserved for a batch by what counts as `spent` for it, and adds what was billed for its lines, each
    /// with its usage if it has a reply. A line with neither was never answered.
    pub fn settle_batch(
        &self,
        reservations: Vec<Reservation>,
        spent: Usd,
        lines: impl Iterator<Item = (Option<Usage>, Option<Usd>)>,
    ) {
        for (at, reservation) in reservations.into_iter().enumerate() {
            self.settle(reservation, Some(if at == 0 { spent } else { Usd(0.0) }));
        }
        let paid = &mut self.state().paid;
        for (usage, charge) in lines {
            paid.unanswered += u64::from(usage.is_none() && charge.is_none());
            let Some(usage) = usage else { continue };
            paid.add_replies(1, usage, charge);
        }
    }

    /// Adds what the user's own program has paid. Nothing was reserved for it.
    pub(super) fn charge(&self, requests: u64, usage: Usage, cost: Option<Usd>) {
        let mut state = self.state();
        state.requests += requests;
        state.spent += cost.map_or(0.0, |usd| usd.0);
        state.paid.add_replies(requests, usage, cost);
    }

    /// Checks whether something of unknown cost may begin.
    ///
    /// # Errors
    /// A limit is used up.
    pub(super) fn check(&self) -> Result<(), BudgetReached> {
        let mut state = self.state();
        let (requests, spent) = (state.requests, state.spent);
        let by_requests = self.limits.requests.filter(|limit| requests >= *limit);
        let by_cost = self
            .limits
            .usd
            .filter(|limit| spent >= limit.0 && spent > 0.0);
        let reached = by_requests
            .map(|limit| BudgetReached::Requests { limit })
            .or_else(|| {
                by_cost.map(|limit| BudgetReached::Cost {
                    limit: limit.0,
                    spent,
                })
            });
        let Some(reached) = reached else {
            return Ok(());
        };
        state.reached = Some(reached);
        Err(reached)
    }

    /// Releases what was reserved for a request that was not sent.
    pub fn give_back(&self, reservation: Reservation) {
        let mut state = self.state();
        state.requests = state.requests.saturating_sub(1);
        drop(state);
        self.settle(reservation, Some(Usd(0.0)));
    }

    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// What was paid for so far.
    pub fn spent(&self) -> Spent {
        let state = self.state();
        Spent {
            reserved: Usd(state.reserved),
            ..state.paid
        }
    }

    /// Whether the limit was met with nothing left in reserve.
    pub fn reached(&self) -> Option<BudgetReached> {
        self.state().reached
    }
}

/// The worst case of an input, as a multiple of its estimate. The estimate is low on purpose: real inputs are up to one
/// and a half times as long.
const CAUTION: u64 = 2;

/// The most that one request in a lane may cost: the input as estimated, and the longest reply.
pub(super) fn worst_case(
    prices: &Prices,
    model: &ModelRef,
    lane: Lane,
    input: Tokens,
    output: Tokens,
) -> Option<Usd> {
    let worst = prices.worst_case(model, Tokens(input.0.saturating_mul(CAUTION)), output)?;
    Some(Usd(worst.0 * prices.lane_ratio(model, lane)))
}

/// Replies of a stage from which on the longest of them says what to expect.
const ENOUGH_REPLIES: u32 = 10;
/// How many times as long as the longest of them a reply is likely to be at most.
const LIKELY_LENGTH: u64 = 2;
/// The same factor for a stage with fewer replies: for it, the replies of the model's other stages count, too.
const LIKELY_ELSEWHERE: u64 = 4;
/// How many requests may then be under way for each reply seen. Among twice as many replies as were seen, about two are
/// longer than the longest so far; the reserve for the worst case covers one of them.
const OPEN_PER_REPLY: u64 = 2;

/// Pays for the attempts of one action from the budget.
pub(super) struct BudgetLease<'b> {
    pub(super) budget: &'b Budget,
    pub(super) prices: &'b Prices,
    pub(super) stage: StageName,
    pub(super) model: &'b ModelRef,
    /// The input as estimated.
    pub(super) input: Tokens,
    /// The longest reply.
    pub(super) longest: Tokens,
    /// Replies to the request, before its first attempt, that could not be used.
    pub(super) unusable_before: u32,
    /// The request is cancelled when its breaker trips.
    pub(super) breakers: Option<(&'b CircuitBreakers, &'b ModelRequest)>,
}

impl BudgetLease<'_> {
    /// The most that an attempt costs if its reply has `reply` tokens.
    fn worst_cost(&self, reply: Tokens) -> Option<Usd> {
        worst_case(self.prices, self.model, Lane::Live, self.input, reply)
    }

    /// The longest reply that is likely, where enough were seen.
    fn likely_reply(&self) -> Option<Tokens> {
        let state = self.budget.state();
        let (mut all_replies, mut all_longest) = (0_u64, Tokens(0));
        for ((stage, _), (replies, longest)) in state
            .seen
            .iter()
            .filter(|((_, model), _)| model == self.model)
        {
            if *stage == self.stage && *replies >= ENOUGH_REPLIES {
                return Some(Tokens(longest.0.saturating_mul(LIKELY_LENGTH)));
            }
            all_replies += u64::from(*replies);
            all_longest = all_longest.max(*longest);
        }
        let is_enough = (state.open.len() as u64) < all_replies.saturating_mul(OPEN_PER_REPLY);
        is_enough.then(|| Tokens(all_longest.0.saturating_mul(LIKELY_ELSEWHERE)))
    }
}

impl AttemptBudget for BudgetLease<'_> {
    type Reservation = Reservation;
    type Refusal = BudgetReached;

    fn reserve(&self) -> Result<Reservation, BudgetReached> {
        let likely = self
            .likely_reply()
            .unwrap_or(self.longest)
            .min(self.longest);
        self.budget
            .reserve(self.worst_cost(likely), self.worst_cost(self.longest))
    }

    fn settle(&self, held: Reservation, bill: AttemptCost<'_>) {
        let (cost, saved) = match bill {
            AttemptCost::Free => (Some(Usd(0.0)), None),
            AttemptCost::Reported(usage) => (
                self.prices.cost(self.model, usage),
                self.prices.saved_by_cache(self.model, usage),
            ),
            AttemptCost::Unknown => (None, None),
        };
        self.budget.settle(held, cost);
        let mut state = self.budget.state();
        if let AttemptCost::Reported(Usage {
            output: Some(output),
            ..
        }) = bill
        {
            let (replies, longest) = state
                .seen
                .entry((self.stage, self.model.clone()))
                .or_default();
            (*replies, *longest) = (replies.saturating_add(1), (*longest).max(*output));
        }
        state.paid.add(bill, cost);
        state.paid.saved += saved.unwrap_or_default();
    }

    fn release(&self, held: Reservation) {
        self.budget.give_back(held);
    }

    fn unusable_before(&self) -> u32 {
        self.unusable_before
    }

    async fn cancelled(&self) {
        match self.breakers {
            Some((breakers, request)) => breakers.blocked(request).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
