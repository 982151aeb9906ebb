//! The queue in front of a provider: first come, first served, at the rate and concurrency that apply.
//!
//! Only the head of the queue looks at the limits, so thousands of waiting requests cost next to nothing and a large
//! request is not overtaken forever. Two limiters are chained. One belongs to a model: it keeps to the limits that its
//! limit group learned, and waits while the provider is unavailable. The other belongs to the account: it enforces what
//! the user allowed.
//!
//! How many requests may be in flight grows while the limit is used up and requests succeed, and shrinks once per episode
//! of overload.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::WaitReason;
use super::buckets::{RateBuckets, TokenDemand};
use super::headers::AnnouncedLimits;
use super::limit_group::{LimitGroup, Ticket};
use crate::call::ErrorClass;
use crate::classify::{AttemptError, Delivery, Throttle};
use crate::retry::{RetryPolicy, longer};
use crate::spec::RatesPerMinute;
use base::threads::lock;

/// Admits requests. All waiting is in `acquire`; everything else returns at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The queue: tokio's mutex is fair.
    queue: tokio::sync::Mutex<()>,
    /// Signalled when something changes that the head of the queue may wait for.
    changed: Notify,
    /// The limits that the provider enforces on this model; an account has none of its own.
    group: Option<Arc<LimitGroup>>,
    state: Mutex<LimiterState>,
}

#[derive(Debug, Default)]
struct LimiterState {
    concurrency: ConcurrencyLimit,
    rates: RateBuckets,
    in_flight: u32,
    /// Whether a request waited for a slot since the last reply.
    saturated: bool,
    paused_until: Option<Instant>,
    /// Consecutive failures of all requests that may be an outage.
    failures: u32,
    /// Whether the provider ever answered, for any of its models.
    has_worked: Arc<AtomicBool>,
    /// Consecutive pauses that we chose ourselves, without a reply between them.
    pauses: u32,
    /// When the first and the last request failed since the last reply.
    unanswered: Option<(Instant, Instant)>,
    /// Nothing was answered for longer than any call waits, or a longer pause was asked for.
    is_given_up: bool,
    /// Nothing gets through. One request at a time probes whether that is over.
    unavailable: bool,
    /// The provider's message at the last failure.
    last_error: String,
    /// What the head of the queue waits for.
    blocked_by: Option<Blocker>,
    answered: u64,
}

/// What the head of the queue has to wait for.
#[derive(Clone, Copy, Debug)]
enum Blocker {
    Pause(Duration),
    /// The rates that the user allowed.
    Rate(Duration),
    /// The limits that the provider announced or showed.
    ProviderLimit(Duration),
    Concurrency,
}

/// The right to send one request. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    limiter: &'a RateLimiter,
    ticket: Option<Ticket>,
}

impl Permit<'_> {
    /// The ticket of the request in the limit group of its model.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.limiter.changed.notify_one();
    }
}

impl RateLimiter {
    pub(crate) fn new(concurrency: ConcurrencyLimit, rates: RatesPerMinute) -> RateLimiter {
        let state = LimiterState {
            concurrency,
            rates: RateBuckets::new(rates),
            ..LimiterState::default()
        };
        RateLimiter {
            queue: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
            group: None,
            state: Mutex::new(state),
        }
    }

    /// Shares with the provider's other models whether the provider ever worked.
    pub(crate) fn sharing_history(self, has_worked: &Arc<AtomicBool>) -> RateLimiter {
        self.state().has_worked = has_worked.clone();
        self
    }

    /// Also keeps to the limits of `group`.
    pub(crate) fn within(self, group: Arc<LimitGroup>) -> RateLimiter {
        RateLimiter {
            group: Some(group),
            ..self
        }
    }

    /// The error that a call ends with. It becomes `Unreachable` where nothing gets through, because later calls would
    /// end the same way. `waited_out`: the call's whole waiting budget is spent.
    pub(crate) fn final_error(&self, error: AttemptError, waited_out: bool) -> AttemptError {
        let state = self.state();
        let never_reached = error.delivery == Delivery::NotSent && !state.has_worked();
        let is_unreachable =
            error.may_be_outage() && (state.unavailable && waited_out || never_reached);
        let class = if is_unreachable {
            ErrorClass::Unreachable
        } else {
            error.class
        };
        AttemptError { class, ..error }
    }

    /// The number of requests answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.state().answered
    }

    /// Whether the provider ever answered, for this model or another.
    pub(crate) fn has_worked(&self) -> bool {
        self.state().has_worked()
    }

    /// Whether the model has answered nobody for longer than any call waits, or asked for a longer pause.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state().is_given_up
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        self.state().unavailable
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        // No code that can panic runs under this lock.
        lock(&self.state)
    }

    /// Waits here, then at `account`. At most one request is between the two.
    ///
    /// # Errors
    /// The wait that the provider imposes, if it is longer than `longest`, or the time in which it has answered nobody. The
    /// requests queued behind get the same error at once, one after the other.
    pub(crate) async fn acquire<'a>(
        &'a self,
        account: &'a RateLimiter,
        need: TokenDemand,
        longest: Duration,
    ) -> Result<(Permit<'a>, Permit<'a>), Duration> {
        let _turn = self.queue.lock().await;
        let permit = self.admit(need, longest).await?;
        let _account_turn = account.queue.lock().await;
        Ok((permit, account.admit(need, longest).await?))
    }

    async fn admit(&self, need: TokenDemand, longest: Duration) -> Result<Permit<'_>, Duration> {
        loop {
            if self.is_given_up() {
                return Err(longest);
            }
            let admitted = self.state().admit(need, self.group.as_deref());
            let blocker = match admitted {
                Ok(ticket) => {
                    return Ok(Permit {
                        limiter: self,
                        ticket,
                    });
                }
                Err(blocker) => blocker,
            };
            // Where the provider decides on the wait, a probe that comes a minute later would only say the same.
            if let Blocker::Pause(wait) | Blocker::ProviderLimit(wait) = blocker
                && wait > longest
            {
                return Err(wait);
            }
            match blocker {
                Blocker::Concurrency => self.changed.notified().await,
                Blocker::Pause(wait) | Blocker::Rate(wait) | Blocker::ProviderLimit(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait.min(LONGEST_SLEEP)) => {}
                        () = self.changed.notified() => {}
                    }
                }
            }
        }
    }

    /// Records a reply; `announced` are the limits in its headers.
    pub(crate) fn succeeded(&self, ticket: Option<Ticket>, announced: &AnnouncedLimits) {
        let mut state = self.state();
        let saturated = std::mem::take(&mut state.saturated);
        state.concurrency.succeeded(saturated);
        (state.failures, state.pauses, state.unavailable) = (0, 0, false);
        (state.unanswered, state.is_given_up) = (None, false);
        state.answered += 1;
        state.has_worked.store(true, Ordering::Relaxed);
        drop(state);
        if let Some((group, ticket)) = self.group.as_deref().zip(ticket) {
            group.succeeded(ticket, announced);
        }
        self.changed.notify_one();
    }

    /// Records the failure of a request that was sent at `sent`. Returns how long it holds all requests back, if it does. A
    /// refusal by a rate limit delays only its own call; the limit group adapts the rate.
    pub(crate) fn failed(
        &self,
        error: &AttemptError,
        ticket: Option<Ticket>,
        sent: Instant,
        announced: &AnnouncedLimits,
        policy: &RetryPolicy,
    ) -> Option<Duration> {
        if let Some((group, ticket)) = self.group.as_deref().zip(ticket) {
            group.announced(ticket, announced);
            if error.throttle == Some(Throttle::Rate) {
                let asked = error.wait.filter(|asked| *asked <= policy.wait_budget);
                group.refused(ticket, error.limit, asked, announced);
            } else {
                group.failed(ticket, !error.took_no_tokens());
            }
        }
        let mut state = self.state();
        let now = Instant::now();
        state.give_up_after(error, now, policy);
        if matches!(
            error.throttle,
            Some(Throttle::Concurrency | Throttle::Overloaded)
        ) {
            state.concurrency.overloaded(sent, now);
        }
        let pause = state.pause_after(error, now, policy);
        drop(state);
        self.changed.notify_one();
        pause
    }

    /// Corrects the tokens reserved for a request to those it used.
    pub(crate) fn settle(&self, ticket: Option<Ticket>, reserved: TokenDemand, used: TokenDemand) {
        if let Some((group, ticket)) = self.group.as_deref().zip(ticket) {
            group.settle(ticket, reserved, used);
        }
        let mut state = self.state();
        state.rates.settle(reserved, used);
        drop(state);
        self.changed.notify_one();
    }

    /// The requests in flight, and what the next one waits for.
    pub(crate) fn status(&self) -> (u32, Option<WaitReason>) {
        let blocked = self.group.as_ref().and_then(|group| group.blocked());
        let state = self.state();
        let held = blocked.map(|left| WaitReason::Paused(left, state.last_error.clone()));
        let wait_reason = match state.wait_reason() {
            Some(WaitReason::Rate) => held.or(Some(WaitReason::Rate)),
            reason => reason,
        };
        (state.in_flight, wait_reason)
    }
}

/// Consecutive failures after which a provider that once worked counts as unavailable.
const FAILURES_OF_AN_OUTAGE: u32 = 5;
/// The longest sleep before the limits are looked at again, because another model of the group may shorten a wait.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl LimiterState {
    /// Admits a request, or says what it has to wait for.
    fn admit(
        &mut self,
        need: TokenDemand,
        group: Option<&LimitGroup>,
    ) -> Result<Option<Ticket>, Blocker> {
        let admitted = self.try_admit(need, group, Instant::now());
        self.blocked_by = admitted.err();
        if admitted.is_ok() {
            self.in_flight += 1;
        }
        admitted
    }

    fn try_admit(
        &mut self,
        need: TokenDemand,
        group: Option<&LimitGroup>,
        now: Instant,
    ) -> Result<Option<Ticket>, Blocker> {
        if let Some(left) = self.paused_for(now) {
            return Err(Blocker::Pause(left));
        }
        // After a pause one request probes whether it is over.
        let slots = if self.unavailable || self.pauses > 0 {
            1
        } else {
            self.concurrency.limit()
        };
        if self.in_flight >= slots {
            self.saturated = true;
            return Err(Blocker::Concurrency);
        }
        self.rates.take(need, now).map_err(Blocker::Rate)?;
        group
            .map(|group| group.admit(need))
            .transpose()
            .map_err(Blocker::ProviderLimit)
    }

    /// Pauses all requests if `error` gives reason to. Returns the pause unless it counts as a failed attempt of the call.
    /// It does not if the provider asked for it, or if the provider worked before and will again; a provider that never
    /// answered gets no such credit.
    fn pause_after(
        &mut self,
        error: &AttemptError,
        now: Instant,
        policy: &RetryPolicy,
    ) -> Option<Duration> {
        // Any other answer, a refusal for example, shows that the provider works.
        self.failures = if error.may_be_outage() {
            self.failures.saturating_add(1)
        } else {
            0
        };
        self.last_error.clone_from(&error.message);
        let asked = error.wait.filter(|wait| {
            matches!(
                error.throttle,
                Some(Throttle::Concurrency | Throttle::Overloaded)
            ) && *wait <= policy.wait_budget
        });
        let asked = asked.map(longer);
        self.unavailable |= self.has_worked() && self.failures >= FAILURES_OF_AN_OUTAGE;
        let backs_off = error.throttle == Some(Throttle::Concurrency) || self.unavailable;
        let pause = asked.or_else(|| backs_off.then(|| self.backoff_pause(now, policy)))?;
        let until = self
            .paused_until
            .map_or(now + pause, |until| until.max(now + pause));
        self.paused_until = Some(until);
        (asked.is_some() || self.has_worked()).then(|| until - now)
    }

    fn has_worked(&self) -> bool {
        self.has_worked.load(Ordering::Relaxed)
    }

    /// Gives the model up if `error` is reason enough. Failures long ago, when nothing was asked since, are none.
    fn give_up_after(&mut self, error: &AttemptError, now: Instant, policy: &RetryPolicy) {
        let recent = self
            .unanswered
            .filter(|(_, last)| now - *last <= policy.wait_budget);
        let first = recent.map_or(now, |(first, _)| first);
        self.unanswered = Some((first, now));
        let asks_too_much =
            error.throttle.is_some() && error.wait.is_some_and(|asked| asked > policy.wait_budget);
        self.is_given_up |= asks_too_much || now - first > policy.wait_budget;
    }

    /// The length of a pause that we choose. It doubles with each consecutive pause; a failure during a pause starts no new
    /// one.
    fn backoff_pause(&mut self, now: Instant, policy: &RetryPolicy) -> Duration {
        if let Some(left) = self.paused_for(now) {
            return left;
        }
        self.pauses = self.pauses.saturating_add(1);
        policy.back_off(self.pauses, 0.0)
    }

    fn paused_for(&self, now: Instant) -> Option<Duration> {
        self.paused_until?
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())
    }

    fn wait_reason(&self) -> Option<WaitReason> {
        match (self.paused_for(Instant::now()), self.blocked_by) {
            (left, _) if self.unavailable => Some(WaitReason::Unavailable(
                left.unwrap_or_default(),
                self.last_error.clone(),
            )),
            (Some(left), _) => Some(WaitReason::Paused(left, self.last_error.clone())),
            (None, Some(Blocker::Rate(_) | Blocker::ProviderLimit(_))) => Some(WaitReason::Rate),
            (None, Some(Blocker::Concurrency)) => Some(WaitReason::Replies),
            (None, Some(Blocker::Pause(_)) | None) => None,
        }
    }
}

#[cfg(test)]
#[path = "rate_limiter_tests.rs"]
mod tests;

/// Where an undeclared limit starts.
const SLOW_START: f64 = 8.0;

/// The least time between two cuts, however many requests of one episode fail.
const EPISODE: Duration = Duration::from_secs(1);

/// An adaptive limit on concurrent requests (additive increase, multiplicative decrease).
#[derive(Clone, Debug, Default)]
pub(crate) struct ConcurrencyLimit {
    ceiling: f64,
    limit: f64,
    slow_start: bool,
    last_cut: Option<Instant>,
}

impl ConcurrencyLimit {
    /// The limit that the user declared, used from the first call.
    pub(crate) fn declared(ceiling: u32) -> ConcurrencyLimit {
        let ceiling = f64::from(ceiling.max(1));
        ConcurrencyLimit {
            ceiling,
            limit: ceiling,
            slow_start: false,
            last_cut: None,
        }
    }

    /// A slow start towards `ceiling`, doubling each round trip until the provider is overloaded.
    pub(crate) fn undeclared(ceiling: u32) -> ConcurrencyLimit {
        let limit = ConcurrencyLimit::declared(ceiling);
        ConcurrencyLimit {
            limit: SLOW_START.min(limit.ceiling),
            slow_start: true,
            ..limit
        }
    }

    /// Requests that may be in flight.
    pub(crate) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// Records a reply; `saturated` if other requests had to wait for its slot.
    pub(crate) fn succeeded(&mut self, saturated: bool) {
        if saturated {
            let step = if self.slow_start {
                1.0
            } else {
                1.0 / self.limit
            };
            self.limit = (self.limit + step).min(self.ceiling);
        }
    }

    /// Records that a request that was sent at `sent` met an overloaded provider. Requests sent before the last cut belong
    /// to the same episode.
    pub(crate) fn overloaded(&mut self, sent: Instant, now: Instant) {
        let same_episode = self
            .last_cut
            .is_some_and(|cut| sent <= cut || now.duration_since(cut) < EPISODE);
        if !same_episode {
            self.limit = (self.limit * 0.7).max(1.0);
            self.slow_start = false;
            self.last_cut = Some(now);
        }
    }
}

#[cfg(test)]
mod concurrency_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_declared_number_is_used_from_the_first_call() {
        assert_eq!(ConcurrencyLimit::declared(64).limit(), 64);
        assert_eq!(ConcurrencyLimit::declared(0).limit(), 1);
        assert_eq!(ConcurrencyLimit::undeclared(64).limit(), 8);
    }

    #[test]
    fn slow_start_doubles_each_round_and_growth_needs_saturation() {
        let mut limit = ConcurrencyLimit::undeclared(64);
        (0..8).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 16);
        (0..1000).for_each(|_| limit.succeeded(false));
        assert_eq!(limit.limit(), 16);
    }

    #[test]
    fn one_episode_of_overload_cuts_the_limit_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limit = ConcurrencyLimit::declared(100);
        (0..50).for_each(|_| limit.overloaded(at(0), at(10)));
        assert_eq!(limit.limit(), 70);
        limit.overloaded(at(5), at(5000));
        assert_eq!(limit.limit(), 70, "sent before the cut");
        limit.overloaded(at(4000), at(5000));
        assert_eq!(limit.limit(), 49);
        (0..49).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 49);
        (0..2).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 50, "one more for a whole round of answers");
    }

    proptest! {
        #[test]
        fn never_below_one_nor_above_the_ceiling(ceiling in 1u32..200, events in proptest::collection::vec(0u8..3, 0..500)) {
            let start = Instant::now();
            let mut limit = ConcurrencyLimit::undeclared(ceiling);
            for (index, event) in events.iter().enumerate() {
                let now = start + Duration::from_secs(2 * index as u64);
                match event {
                    0 => limit.succeeded(true),
                    1 => limit.succeeded(false),
                    _ => limit.overloaded(now, now),
                }
                prop_assert!((1..=ceiling).contains(&limit.limit()));
            }
        }
    }
}
