//! Whether and when to ask again. Pure: one question, one answer; the client does the sleeping.

use std::time::Duration;

use super::classify::Fault;

/// How patient the client is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// The back-off after the first failure; it doubles with each.
    pub first_wait: Duration,
    /// The longest back-off.
    pub longest_wait: Duration,
    /// Waits that a provider asked for, and outages of one that worked before, count as no attempt until they sum up
    /// to this.
    pub wait_budget: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            wait_budget: Duration::from_secs(30 * 60),
        }
    }
}

impl Patience {
    /// The wait after `failures` failures in a row; `jitter` in 0..1 shortens it by up to a quarter.
    pub(super) fn back_off(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self.first_wait.saturating_mul(1 << doublings).min(self.longest_wait);
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 4.0)
    }
}

/// What one call has been through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Requests sent.
    pub sent: u32,
    /// Failures that count against `max_attempts`.
    pub counted: u32,
    /// Time waited because the provider asked for it or was away.
    pub waited: Duration,
    /// What the gate had answered when this call failed first.
    pub answered: Option<u64>,
}

impl Tally {
    /// After `fault`: how long this call waits by itself before it queues again, or `None` to give up. `held` is how
    /// long the gate holds everyone back because of it.
    pub(super) fn next(
        &mut self,
        fault: &Fault,
        held: Option<Duration>,
        max_attempts: u32,
        patience: &Patience,
        jitter: f64,
    ) -> Option<Duration> {
        if !fault.may_pass() || max_attempts <= 1 {
            self.counted += 1;
            return None;
        }
        if let Some(held) = held {
            self.waited += held;
            if self.waited <= patience.wait_budget {
                return Some(Duration::ZERO);
            }
        }
        if fault.wait.is_some_and(|asked| asked > patience.wait_budget) {
            return None;
        }
        self.counted += 1;
        (self.counted < max_attempts).then(|| patience.back_off(self.counted, jitter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::api::ErrorClass;
    use proptest::prelude::*;

    const PATIENCE: Patience = Patience {
        first_wait: Duration::from_millis(500),
        longest_wait: Duration::from_secs(8),
        wait_budget: Duration::from_secs(60),
    };

    fn fault(class: ErrorClass) -> Fault {
        Fault::new(class, "x")
    }

    fn waits(class: ErrorClass, max_attempts: u32) -> Vec<Duration> {
        let mut tally = Tally::default();
        std::iter::from_fn(|| tally.next(&fault(class), None, max_attempts, &PATIENCE, 0.0)).collect()
    }

    #[test]
    fn back_off_doubles_up_to_its_limit_within_the_attempts() {
        let millis: Vec<u128> = waits(ErrorClass::Transient, 8).iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(waits(ErrorClass::Malformed, 2).len(), 1);
    }

    #[test]
    fn what_cannot_pass_is_not_asked_again() {
        use ErrorClass::{Auth, Invalid, Quota, Refused, TooLong, Truncated};
        for class in [Auth, Invalid, Quota, Refused, TooLong, Truncated] {
            assert!(waits(class, 6).is_empty(), "{class:?}");
        }
        assert!(waits(ErrorClass::RateLimited, 1).is_empty(), "one attempt fails fast");
    }

    #[test]
    fn waits_that_were_asked_for_count_as_attempts_only_past_the_budget() {
        let mut tally = Tally::default();
        let held = Some(Duration::from_secs(7));
        let fault = fault(ErrorClass::RateLimited);
        let free = std::iter::from_fn(|| tally.next(&fault, held, 3, &PATIENCE, 0.0)).count();
        assert_eq!(free, 8 + 2, "8 times 7 s fit into a minute, then two more attempts");
    }

    #[test]
    fn a_wait_beyond_the_budget_is_not_waited_for() {
        let asked = Fault { wait: Some(Duration::from_secs(3600)), ..fault(ErrorClass::RateLimited) };
        assert_eq!(Tally::default().next(&asked, asked.wait, 6, &PATIENCE, 0.0), None);
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
