//! Decides whether and when a call is sent again, within a budget of attempts that is reserved before each and settled
//! after it. Pure: the client sleeps. Calls of batch APIs only use the back-off, since they pass no rate limiter
//! ([`BatchClient`](super::BatchClient)).

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use super::call::ErrorClass;
use super::classify::{AttemptError, Throttle};
use super::spec::ProviderName;
use base::units::Usage;

/// The least pause after the first refusal.
const LEAST_PAUSE: Duration = Duration::from_millis(5);

/// A call is given up after this many replies that lack the answer but for which the provider counts output: a model that
/// wrote nothing of use a few times mostly does so again, and each reply is paid.
const MOST_BILLED: u32 = 3;

/// How long the client waits between attempts, and in total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The back-off after the first failure; it doubles with each.
    pub first_wait: Duration,
    /// The longest back-off. A pause that the provider asks for is not shortened to it.
    pub longest_wait: Duration,
    /// Pauses that a provider asks for, and outages of a provider that worked before, do not count as attempts until they
    /// add up to this. All calls of a model fail that has answered nobody for this long, and at once if it asks for a
    /// longer pause. [`Limits::give_up_after`](super::Limits) takes precedence.
    pub wait_budget: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            wait_budget: Duration::from_secs(10 * 60),
        }
    }
}

impl RetryPolicy {
    /// The error of a call that would have to wait longer than `wait_budget`.
    pub(super) fn waits_too_long(&self, provider: &ProviderName, wait: Duration) -> AttemptError {
        let message = format!(
            "`{provider}` lets no request through for {} s, and a call waits {} s at most; run again later, or look at the \
             limits of the account",
            wait.as_secs(),
            self.wait_budget.as_secs()
        );
        AttemptError::new(ErrorClass::RateLimited, message)
    }

    /// The least pause after this many refusals in a row that do not count as attempts. It starts below what any provider
    /// asks for and doubles, so that a provider that asks for no pause is not asked without end.
    fn least_pause(&self, refusals: u32) -> Duration {
        LEAST_PAUSE
            .saturating_mul(1 << refusals.saturating_sub(1).min(20))
            .min(self.longest_wait)
    }

    /// The wait after `failures` failures in a row; `jitter` in 0..1 shortens it by up to a quarter.
    pub(super) fn back_off(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self
            .first_wait
            .saturating_mul(1 << doublings)
            .min(self.longest_wait);
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 4.0)
    }
}

/// The attempts and waits of one call so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct AttemptCounts {
    /// Requests sent.
    pub sent: u32,
    /// Failures that count against `max_attempts`.
    pub counted: u32,
    /// Time waited because the provider asked for it or was unavailable.
    pub waited: Duration,
    /// Refusals and pauses that do not count as attempts.
    pub refused: u32,
    /// Replies without the answer that are certainly paid.
    pub billed: u32,
    /// How many requests the model's limiter had seen answered when this call first failed.
    pub answered: Option<u64>,
}

impl AttemptCounts {
    /// The counts of a call whose request has this many replies behind it that could not be used.
    pub(super) fn after(unusable: u32) -> AttemptCounts {
        AttemptCounts {
            counted: unusable,
            billed: unusable,
            ..AttemptCounts::default()
        }
    }

    /// How long this call waits after `error` before it queues again; `None` to give up. `pause` is how long the rate
    /// limiter pauses all requests because of the error.
    pub(super) fn next(
        &mut self,
        error: &AttemptError,
        pause: Option<Duration>,
        max_attempts: u32,
        policy: &RetryPolicy,
        jitter: f64,
    ) -> Option<Duration> {
        self.billed += u32::from(error.is_billed);
        if !error.is_retryable() || max_attempts <= 1 || self.billed >= MOST_BILLED {
            self.counted += 1;
            return None;
        }
        if let Some(pause) = pause {
            self.refused += 1;
            let least = policy.least_pause(self.refused);
            self.waited += pause.max(least);
            if self.waited <= policy.wait_budget {
                // The rate limiter holds all requests back for `pause`; this call waits only for the rest.
                return Some(least.saturating_sub(pause));
            }
        }
        if error.wait.is_some_and(|asked| asked > policy.wait_budget) {
            return None;
        }
        // A refusal by a rate limit delays only this call, and is no failed attempt. The limit group holds the others back.
        if error.throttle == Some(Throttle::Rate) {
            self.refused += 1;
            let least = policy.least_pause(self.refused);
            let wait = error.wait.map_or(least.min(policy.first_wait), |asked| {
                longer(asked).max(least)
            });
            self.waited += wait;
            if self.waited <= policy.wait_budget {
                return Some(wait);
            }
        }
        self.counted += 1;
        (self.counted < max_attempts).then(|| policy.back_off(self.counted, jitter))
    }
}

/// Slightly longer than asked, so that a clock that runs a little slow does not cost another refusal.
pub(super) fn longer(asked: Duration) -> Duration {
    asked.mul_f64(1.02) + Duration::from_millis(1)
}

/// What an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptCost<'u> {
    /// Nothing: it was not sent, or was rejected.
    Free,
    /// The usage in the reply; a count that it leaves out is unknown.
    Reported(&'u Usage),
    /// Unknown: the model may have worked on it, and the reply never arrived, as after a time-out.
    Unknown,
}

/// Admits attempts or refuses them. A run's budget implements it.
pub trait AttemptBudget {
    /// The amount set aside for one attempt.
    type Reservation;
    /// Why an attempt is not allowed.
    type Refusal;

    /// Sets aside what one more attempt may cost at most.
    ///
    /// # Errors
    /// The budget does not allow it.
    fn reserve(&self) -> Result<Self::Reservation, Self::Refusal>;

    /// Replaces a reservation by the actual cost.
    fn settle(&self, reservation: Self::Reservation, cost: AttemptCost<'_>);

    /// Returns the reservation of an attempt that is not made after all.
    fn release(&self, reservation: Self::Reservation);

    /// How many replies to the same request could not be used before this call: they count as replies to it.
    fn unusable_before(&self) -> u32 {
        0
    }

    /// Completes once no further attempt is wanted. An attempt in flight is not interrupted.
    fn cancelled(&self) -> impl Future<Output = ()>;
}

/// A budget that admits every attempt and cancels none.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

impl AttemptBudget for Unlimited {
    type Reservation = ();
    type Refusal = Infallible;

    fn reserve(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&self, (): (), _: AttemptCost<'_>) {}

    fn release(&self, (): ()) {}

    async fn cancelled(&self) {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ErrorClass;
    use proptest::prelude::*;

    const PATIENCE: RetryPolicy = RetryPolicy {
        first_wait: Duration::from_millis(500),
        longest_wait: Duration::from_secs(8),
        wait_budget: Duration::from_secs(60),
    };

    fn fault(class: ErrorClass) -> AttemptError {
        AttemptError::new(class, "x")
    }

    fn waits(class: ErrorClass, max_attempts: u32) -> Vec<Duration> {
        let mut counts = AttemptCounts::default();
        std::iter::from_fn(|| counts.next(&fault(class), None, max_attempts, &PATIENCE, 0.0))
            .collect()
    }

    #[test]
    fn back_off_doubles_up_to_its_limit_within_the_attempts() {
        let millis: Vec<u128> = waits(ErrorClass::Transient, 8)
            .iter()
            .map(Duration::as_millis)
            .collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(waits(ErrorClass::Malformed, 2).len(), 1);
    }

    #[test]
    fn errors_that_no_retry_can_mend_end_the_call() {
        use ErrorClass::{Auth, Invalid, Quota, Refused, TooLong, Truncated};
        for class in [Auth, Invalid, Quota, Refused, TooLong, Truncated] {
            assert!(waits(class, 6).is_empty(), "{class:?}");
        }
        assert!(
            waits(ErrorClass::RateLimited, 1).is_empty(),
            "one attempt fails fast"
        );
    }

    #[test]
    fn an_unusable_reply_from_before_the_call_is_one_of_those_that_it_may_bring() {
        for (is_billed, most) in [(true, MOST_BILLED), (false, 6)] {
            let error = AttemptError {
                is_billed,
                ..fault(ErrorClass::Malformed)
            };
            for before in [0, 1] {
                let mut counts = AttemptCounts::after(before);
                let waits =
                    std::iter::from_fn(|| counts.next(&error, None, 6, &PATIENCE, 0.0)).count();
                assert_eq!(
                    before as usize + waits + 1,
                    most as usize,
                    "{is_billed}, {before} before"
                );
            }
        }
    }

    #[test]
    fn pauses_count_as_attempts_only_past_the_budget() {
        let mut counts = AttemptCounts::default();
        let held = Some(Duration::from_secs(7));
        let fault = fault(ErrorClass::RateLimited);
        let free = std::iter::from_fn(|| counts.next(&fault, held, 3, &PATIENCE, 0.0)).count();
        assert_eq!(
            free,
            8 + 2,
            "8 times 7 s fit into a minute, then two more attempts"
        );
    }

    #[test]
    fn a_provider_that_asks_for_no_pause_is_not_asked_without_end() {
        for (class, pause) in [
            (ErrorClass::Overloaded, Some(Duration::ZERO)),
            (ErrorClass::RateLimited, None),
        ] {
            let error = AttemptError {
                wait: Some(Duration::ZERO),
                throttle: Some(Throttle::Rate),
                ..fault(class)
            };
            let mut counts = AttemptCounts::default();
            let waits: Vec<Duration> =
                std::iter::from_fn(|| counts.next(&error, pause, 2, &PATIENCE, 0.0))
                    .take(1000)
                    .collect();
            assert!(waits.len() < 25, "{class:?}: {} attempts", waits.len());
            assert!(
                waits.iter().all(|wait| *wait >= LEAST_PAUSE),
                "{class:?}: {waits:?}"
            );
        }
    }

    #[test]
    fn a_pause_beyond_the_budget_ends_the_call() {
        let asked = AttemptError {
            wait: Some(Duration::from_secs(3600)),
            ..fault(ErrorClass::RateLimited)
        };
        assert_eq!(
            AttemptCounts::default().next(&asked, asked.wait, 6, &PATIENCE, 0.0),
            None
        );
    }

    proptest! {
        #[test]
        fn jitter_takes_at_most_a_quarter(failures in 0u32..100, jitter in 0.0f64..1.0) {
            let full = PATIENCE.back_off(failures, 0.0);
            let some = PATIENCE.back_off(failures, jitter);
            prop_assert!(some <= full && some >= full.mul_f64(0.75));
            prop_assert!(full <= PATIENCE.longest_wait);
        }
    }
}
