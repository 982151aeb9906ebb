//! The queue in front of a provider: first come, first served, at the rate and concurrency that apply.
//!
//! Only the head of the queue looks at the limits, so thousands of waiting requests cost next to nothing and a large
//! request is not overtaken forever. Two limiters stand in a row. One belongs to a model: it learns its limits from
//! replies and pauses everyone when the provider asks for it. The other belongs to the account: it holds what the user
//! allowed.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::buckets::{RateBuckets, RatesPerMinute, TokenDemand};
use super::concurrency_limit::ConcurrencyLimit;
use super::headers::{AnnouncedLimits, LimitWindow};
use super::rate_estimator::RateEstimator;
use super::status::WaitReason;
use crate::provider::call::ErrorClass;
use crate::provider::classify::{AttemptError, Delivery, Throttle};
use crate::provider::retry::RetryPolicy;

/// Admits requests. All waiting is in `acquire`; everything else returns at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The queue: tokio's mutex is fair.
    queue: tokio::sync::Mutex<()>,
    /// Signalled when something changed that the head of the queue may wait for.
    changed: Notify,
    state: Mutex<LimiterState>,
}

#[derive(Debug)]
struct LimiterState {
    concurrency: ConcurrencyLimit,
    rates: RateBuckets,
    /// Rates that the provider reported, or that the user allowed.
    reported: RatesPerMinute,
    /// Processes that share the rates that the provider announces.
    sharers: NonZeroU32,
    /// Stands in where no rate was reported, or where a reported one is shared with other clients.
    estimator: RateEstimator,
    in_flight: u32,
    /// Whether a request waited for a slot since the last reply.
    saturated: bool,
    paused_until: Option<Instant>,
    /// Consecutive failures of any request.
    failures: u32,
    /// Whether the provider ever answered, for any of its models.
    has_worked: Arc<AtomicBool>,
    /// Consecutive pauses that we chose ourselves, without a reply between them.
    pauses: u32,
    /// Nothing gets through: one request at a time probes whether that is over.
    unavailable: bool,
    /// The provider's message at the last failure.
    last_error: String,
    /// What the head of the queue waits for.
    blocked_by: Option<Blocker>,
    sent: u64,
    answered: u64,
    used: TokenDemand,
}

/// A limiter's figures at one moment.
#[derive(Debug)]
pub(crate) struct LimiterStatus {
    pub sent: u64,
    pub used: TokenDemand,
    pub in_flight: u32,
    pub allowed: RatesPerMinute,
    pub wait_reason: Option<WaitReason>,
}

/// What the head of the queue has to wait for.
#[derive(Clone, Copy, Debug)]
enum Blocker {
    Pause(Duration),
    Rate(Duration),
    Concurrency,
}

/// The right to send one request. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    limiter: &'a RateLimiter,
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
            rates: RateBuckets::new(rates, Instant::now()),
            reported: rates,
            sharers: NonZeroU32::MIN,
            estimator: RateEstimator::default(),
            in_flight: 0,
            saturated: false,
            paused_until: None,
            failures: 0,
            has_worked: Arc::default(),
            pauses: 0,
            unavailable: false,
            last_error: String::new(),
            blocked_by: None,
            sent: 0,
            answered: 0,
            used: TokenDemand::default(),
        };
        RateLimiter { queue: tokio::sync::Mutex::new(()), changed: Notify::new(), state: Mutex::new(state) }
    }

    /// Shares with the provider's other models the knowledge that the provider works.
    pub(crate) fn sharing_history(self, has_worked: &Arc<AtomicBool>) -> RateLimiter {
        self.state().has_worked = has_worked.clone();
        self
    }

    /// Starts slowly, for a model whose rate nobody declared; `initial` requests may be in flight from the start.
    pub(crate) fn with_slow_start(self, initial: u32) -> RateLimiter {
        self.state().estimator = RateEstimator::with_slow_start(initial);
        self
    }

    /// Takes a part of every rate that the provider announces: other processes use the same account.
    pub(crate) fn shared_among(self, sharers: NonZeroU32) -> RateLimiter {
        self.state().sharers = sharers;
        self
    }

    /// The error that a call ends with. It becomes `Unreachable` where nothing gets through, because later calls would
    /// end the same way. `waited_out`: the call's whole waiting budget is spent.
    pub(crate) fn final_error(&self, error: AttemptError, waited_out: bool) -> AttemptError {
        let state = self.state();
        let never_reached = error.delivery == Delivery::NotSent && !state.has_worked();
        let is_unreachable = error.may_be_outage() && (state.unavailable && waited_out || never_reached);
        let class = if is_unreachable { ErrorClass::Unreachable } else { error.class };
        AttemptError { class, ..error }
    }

    /// The number of requests answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.state().answered
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        self.state().unavailable
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits here, then at `account`. At most one request stands between the two.
    pub(crate) async fn acquire<'a>(&'a self, account: &'a RateLimiter, need: TokenDemand) -> (Permit<'a>, Permit<'a>) {
        let _turn = self.queue.lock().await;
        let permit = self.admit(need).await;
        let _account_turn = account.queue.lock().await;
        (permit, account.admit(need).await)
    }

    async fn admit(&self, need: TokenDemand) -> Permit<'_> {
        loop {
            let blocker = self.state().admit(need, Instant::now());
            match blocker {
                Ok(()) => return Permit { limiter: self },
                Err(Blocker::Concurrency) => self.changed.notified().await,
                Err(Blocker::Pause(wait) | Blocker::Rate(wait)) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.changed.notified() => {}
                    }
                }
            }
        }
    }

    /// Records a reply; `announced` are the limits in its headers.
    pub(crate) fn succeeded(&self, announced: &AnnouncedLimits) {
        let mut state = self.state();
        let saturated = std::mem::take(&mut state.saturated);
        state.concurrency.succeeded(saturated);
        (state.failures, state.pauses, state.unavailable) = (0, 0, false);
        state.answered += 1;
        state.has_worked.store(true, Ordering::Relaxed);
        let now = Instant::now();
        let is_rate_bound = matches!(state.blocked_by, Some(Blocker::Rate(_)));
        state.estimator.succeeded(now, is_rate_bound);
        state.learn(announced, now);
        drop(state);
        self.changed.notify_one();
    }

    /// Records the failure of a request that was sent at `sent`. Returns how long all requests are held back because
    /// of it, if they are.
    pub(crate) fn failed(
        &self,
        error: &AttemptError,
        sent: Instant,
        announced: &AnnouncedLimits,
        policy: &RetryPolicy,
    ) -> Option<Duration> {
        let mut state = self.state();
        let now = Instant::now();
        state.learn(announced, now);
        if error.throttle == Some(Throttle::Rate) {
            let is_reported = state.reported.requests.is_some();
            state.estimator.refused(sent, now, is_reported);
            // The provider has nothing left for us, whatever our own count says.
            state.rates.at_most(Some(0), Some(0), Some(0), now);
        }
        if matches!(error.throttle, Some(Throttle::Concurrency | Throttle::Overloaded)) {
            state.concurrency.overloaded(sent, now);
        }
        let pause = state.pause_after(error, now, policy);
        drop(state);
        self.changed.notify_one();
        pause
    }

    /// Corrects the tokens reserved for a request to those it used.
    pub(crate) fn settle(&self, reserved: TokenDemand, used: TokenDemand) {
        let mut state = self.state();
        state.rates.settle(reserved, used);
        state.used = TokenDemand { input: state.used.input + used.input, output: state.used.output + used.output };
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn status(&self) -> LimiterStatus {
        let state = self.state();
        // A reported rate is shown as such, also where the estimator found that others share it.
        let requests = state.reported.requests.or(state.estimator.per_minute());
        let allowed = RatesPerMinute { requests, ..state.reported };
        let (sent, used, in_flight) = (state.sent, state.used, state.in_flight);
        LimiterStatus { sent, used, in_flight, allowed, wait_reason: state.wait_reason() }
    }
}

/// Consecutive failures after which a provider that once worked counts as unavailable.
const FAILURES_OF_AN_OUTAGE: u32 = 5;

impl LimiterState {
    /// Admits a request, or says what it has to wait for.
    fn admit(&mut self, need: TokenDemand, now: Instant) -> Result<(), Blocker> {
        let admitted = self.try_admit(need, now);
        self.blocked_by = admitted.err();
        if admitted.is_ok() {
            self.sent += 1;
            self.estimator.sent(now);
        }
        admitted
    }

    fn try_admit(&mut self, need: TokenDemand, now: Instant) -> Result<(), Blocker> {
        if let Some(left) = self.paused_for(now) {
            return Err(Blocker::Pause(left));
        }
        // After a pause one request probes whether it is over.
        let slots = if self.unavailable || self.pauses > 0 { 1 } else { self.concurrency.limit() };
        if self.in_flight >= slots {
            self.saturated = true;
            return Err(Blocker::Concurrency);
        }
        let wait = self.estimator.wait(now, self.reported.requests.is_some());
        if !wait.is_zero() {
            return Err(Blocker::Rate(wait));
        }
        self.rates.take(need, now).map_err(Blocker::Rate)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Pauses all requests if `error` gives reason to. The pause counts as no failed attempt of a call where the
    /// provider asked for it, or where the provider worked before and will again. A provider that never answered gets
    /// no such credit.
    fn pause_after(&mut self, error: &AttemptError, now: Instant, policy: &RetryPolicy) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        self.last_error.clone_from(&error.message);
        let asked = error.wait.filter(|wait| error.throttle.is_some() && *wait <= policy.wait_budget);
        // Slightly longer than asked, so that a clock that runs a little behind does not cost another refusal.
        let asked = asked.map(|wait| wait.mul_f64(1.02) + Duration::from_millis(1));
        self.unavailable |= self.has_worked() && self.failures >= FAILURES_OF_AN_OUTAGE && error.may_be_outage();
        let backs_off = matches!(error.throttle, Some(Throttle::Rate | Throttle::Concurrency)) || self.unavailable;
        let pause = asked.or_else(|| backs_off.then(|| self.backoff_pause(now, policy)))?;
        let until = self.paused_until.map_or(now + pause, |until| until.max(now + pause));
        self.paused_until = Some(until);
        (asked.is_some() || self.has_worked()).then(|| until - now)
    }

    fn has_worked(&self) -> bool {
        self.has_worked.load(Ordering::Relaxed)
    }

    /// Doubles with each consecutive pause. A failure during a pause starts no new one.
    fn backoff_pause(&mut self, now: Instant, policy: &RetryPolicy) -> Duration {
        if let Some(left) = self.paused_for(now) {
            return left;
        }
        self.pauses = self.pauses.saturating_add(1);
        policy.back_off(self.pauses, 0.0)
    }

    fn paused_for(&self, now: Instant) -> Option<Duration> {
        self.paused_until?.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn wait_reason(&self) -> Option<WaitReason> {
        let last_error = || self.last_error.clone();
        match (self.paused_for(Instant::now()), self.blocked_by) {
            (left, _) if self.unavailable => Some(WaitReason::Unavailable(left.unwrap_or_default(), last_error())),
            (Some(left), _) => Some(WaitReason::Paused(left, last_error())),
            (None, Some(Blocker::Rate(_))) => Some(WaitReason::Rate),
            (None, Some(Blocker::Concurrency)) => Some(WaitReason::Replies),
            (None, Some(Blocker::Pause(_)) | None) => None,
        }
    }

    fn learn(&mut self, announced: &AnnouncedLimits, now: Instant) {
        let AnnouncedLimits { requests, tokens, input, output } = announced;
        // What remains is what all sharers left: it is taken as it is.
        let sharers = u64::from(self.sharers.get());
        let known = |old: Option<u64>, window: &LimitWindow| {
            window.limit.filter(|limit| *limit > 0).map(|limit| (limit / sharers).max(1)).or(old)
        };
        let reported = RatesPerMinute {
            requests: known(self.reported.requests, requests),
            tokens: known(self.reported.tokens, tokens),
            input: known(self.reported.input, input),
            output: known(self.reported.output, output),
        };
        if reported != self.reported {
            self.reported = reported;
            self.rates.set(reported, now);
        }
        self.rates.at_most(tokens.remaining, input.remaining, output.remaining, now);
        match *requests {
            LimitWindow { remaining: Some(0), reset: Some(reset), .. } => {
                self.paused_until = self.paused_until.max(Some(now + reset));
            }
            LimitWindow { remaining: Some(remaining), reset: Some(reset), limit: Some(limit) } => {
                self.estimator.remaining(remaining, reset, limit, now);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "rate_limiter_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rate_limiter_trials.rs"]
mod trials;
