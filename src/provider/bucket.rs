//! A bucket of tokens that refills evenly. What is taken can be given back, and a request larger than the bucket is
//! served from a full one and leaves it in debt.

use std::time::Duration;

use tokio::time::Instant;

/// Tokens of one kind, a minute.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    per_second: f64,
    /// How many seconds' worth it holds.
    seconds: f64,
    size: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket that refills with `per_minute` tokens and holds those of `seconds`, one at least.
    pub(super) fn new(per_minute: f64, seconds: f64, now: Instant) -> Bucket {
        let per_second = per_minute.max(1.0) / 60.0;
        let size = (per_second * seconds).max(1.0);
        Bucket { per_second, seconds, size, level: size, at: now }
    }

    /// Changes the rate; level and debt stay.
    pub(super) fn set_rate(&mut self, per_minute: f64, now: Instant) {
        self.refill(now);
        let fresh = Bucket::new(per_minute, self.seconds, now);
        *self = Bucket { level: self.level.min(fresh.size), ..fresh };
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.size);
        self.at = now;
    }

    /// How long until `tokens` may be taken; zero if at once.
    pub(super) fn wait(&mut self, tokens: u64, now: Instant) -> Duration {
        self.refill(now);
        let missing = (tokens as f64).min(self.size) - self.level;
        // A hair of rounding must not cost a timer tick.
        if missing <= 1e-6 { Duration::ZERO } else { Duration::from_secs_f64(missing / self.per_second) }
    }

    /// Takes `tokens`, into debt if need be.
    pub(super) fn take(&mut self, tokens: u64) {
        self.level -= tokens as f64;
    }

    /// Corrects what was reserved to what was used.
    pub(super) fn settle(&mut self, reserved: u64, used: u64) {
        self.level = (self.level + reserved as f64 - used as f64).min(self.size);
    }

    /// The provider says that only `remaining` are left.
    pub(super) fn at_most(&mut self, remaining: u64, now: Instant) {
        self.refill(now);
        self.level = self.level.min(remaining as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_larger_than_the_bucket_is_served_and_paid_off() {
        let start = Instant::now();
        let mut bucket = Bucket::new(6000.0, 1.0, start);
        assert_eq!(bucket.wait(1000, start), Duration::ZERO);
        bucket.take(1000);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(10));
        bucket.settle(1000, 500);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(5));
    }

    #[test]
    fn giving_back_never_overfills() {
        let start = Instant::now();
        let mut bucket = Bucket::new(6000.0, 1.0, start);
        bucket.settle(100_000, 0);
        bucket.take(100);
        assert!(bucket.wait(100, start) > Duration::ZERO);
        bucket.at_most(0, start);
        assert_eq!(bucket.wait(1, start), Duration::from_millis(10));
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_its_tokens_and_one_burst(
            per_minute in 60u64..100_000,
            sizes in proptest::collection::vec(1u64..5000, 1..200),
        ) {
            let start = Instant::now();
            let (mut now, mut taken) = (start, 0);
            let mut bucket = Bucket::new(per_minute as f64, 1.0, start);
            for size in &sizes {
                now += bucket.wait(*size, now) + Duration::from_nanos(1);
                bucket.take(*size);
                taken += size;
                let allowed = per_minute as f64 / 60.0 * ((now - start).as_secs_f64() + 1.0) + 5001.0;
                prop_assert!(taken as f64 <= allowed);
            }
        }
    }
}
