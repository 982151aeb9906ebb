//! Token buckets: the requests and tokens per minute of one rate limiter, taken together or not at all.
//!
//! What a call reserves for its reply is corrected once the usage is known, so what is taken can be returned.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::rate_estimator::{Bucket, Seconds};
use crate::spec::RatesPerMinute;

/// Tokens that a call is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenDemand {
    pub input: u64,
    pub output: u64,
}

impl TokenDemand {
    pub(crate) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What a request with these tokens takes of each kind of limit, in the order of `LimitKind::ALL`.
    pub(crate) fn amounts(self) -> [u64; 4] {
        [1, self.total(), self.input, self.output]
    }
}

/// The share of an allowed rate that is used, so that no minute exceeds it, bursts and network jitter included.
const USED_SHARE: f64 = 0.985;

/// No period of this length gets more than a second's part of the rate. It is a little longer than a second, because servers
/// count by the second and the network moves requests together by some milliseconds.
const SECOND: Seconds = 1.01;

/// A declared number of requests a minute.
#[derive(Debug)]
struct RequestQuota {
    bucket: Bucket,
    /// When the last requests were sent, at most as many as one second allows.
    sent: VecDeque<Seconds>,
    per_second: usize,
}

impl RequestQuota {
    /// One second's part may be sent at once; the rest of the minute is spread evenly, so that no minute exceeds the rate.
    fn new(per_minute: u64) -> RequestQuota {
        let per_second = per_minute.div_ceil(60).max(1);
        let most = per_minute.max(1) as f64;
        let spread = if per_second > 1 {
            most - per_second as f64
        } else {
            most
        };
        let rate = spread.min(most * USED_SHARE);
        let size = per_second as f64;
        RequestQuota {
            bucket: Bucket::new(rate.max(1.0) / 60.0, size, size, 0.0),
            sent: VecDeque::new(),
            per_second: per_second as usize,
        }
    }

    /// How long until one more may be sent; 0 if at once.
    fn wait(&self, now: Seconds) -> Seconds {
        let full = self
            .sent
            .front()
            .filter(|_| self.sent.len() == self.per_second);
        let second = full.map_or(0.0, |first| first + SECOND - now);
        second.max(self.bucket.wait(1.0, now))
    }

    fn take(&mut self, now: Seconds) {
        self.bucket.take(1.0, now);
        if self.sent.len() == self.per_second {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }
}

/// The limits of one rate limiter.
#[derive(Debug, Default)]
pub(crate) struct RateBuckets {
    /// The first time that a request was to be sent.
    start: Option<Instant>,
    requests: Option<RequestQuota>,
    /// In the order of `LimitKind::ALL`; the first, for requests, is empty.
    tokens: [Option<Bucket>; 4],
}

impl RateBuckets {
    pub(crate) fn new(allowed: RatesPerMinute) -> RateBuckets {
        let of_tokens = RatesPerMinute {
            requests: None,
            ..allowed
        };
        RateBuckets {
            start: None,
            requests: allowed.requests.map(RequestQuota::new),
            tokens: of_tokens
                .all()
                .map(|rate| rate.map(|rate| bucket_of(rate as f64 * USED_SHARE))),
        }
    }

    /// Takes one request and its tokens, or says how long to wait.
    pub(crate) fn take(&mut self, need: TokenDemand, now: Instant) -> Result<(), Duration> {
        let start = *self.start.get_or_insert(now);
        let now = now.saturating_duration_since(start).as_secs_f64();
        let wait = self.requests.as_ref().map_or(0.0, |quota| quota.wait(now));
        let wait = self
            .buckets(need)
            .map(|(bucket, tokens)| bucket.wait(tokens, now))
            .fold(wait, f64::max);
        // A wait of less than a nanosecond is none: it would be waited for again and again.
        let wait = Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX);
        if !wait.is_zero() {
            return Err(wait);
        }
        if let Some(requests) = &mut self.requests {
            requests.take(now);
        }
        self.buckets(need)
            .for_each(|(bucket, tokens)| bucket.take(tokens, now));
        Ok(())
    }

    /// Corrects what was reserved for a call to what it used.
    pub(crate) fn settle(&mut self, reserved: TokenDemand, used: TokenDemand) {
        let used = used.amounts();
        for ((bucket, reserved), used) in self.tokens.iter_mut().zip(reserved.amounts()).zip(used) {
            if let Some(bucket) = bucket {
                bucket.take(used as f64 - reserved as f64, Seconds::NEG_INFINITY);
            }
        }
    }

    fn buckets(&mut self, need: TokenDemand) -> impl Iterator<Item = (&mut Bucket, f64)> {
        let all = self.tokens.iter_mut().zip(need.amounts());
        all.filter_map(|(bucket, tokens)| Some((bucket.as_mut()?, tokens as f64)))
    }
}

/// A full bucket that refills with `per_minute` tokens and holds the tokens of one second, at least one.
fn bucket_of(per_minute: f64) -> Bucket {
    let per_second = per_minute.max(1.0) / 60.0;
    let size = per_second.max(1.0);
    Bucket::new(per_second, size, size, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A server that counts by the second sees requests later than they were sent, each by another few milliseconds.
    #[tokio::test(start_paused = true)]
    async fn no_second_of_a_server_exceeds_the_declared_rate() {
        let start = Instant::now();
        let rates = RatesPerMinute {
            requests: Some(3000),
            ..RatesPerMinute::default()
        };
        let mut buckets = RateBuckets::new(rates);
        let mut arrivals: Vec<Duration> = Vec::new();
        while start.elapsed() < Duration::from_secs(20) {
            match buckets.take(TokenDemand::default(), Instant::now()) {
                Ok(()) => {
                    let late = Duration::from_micros(arrivals.len() as u64 * 7919 % 8000);
                    arrivals.push(start.elapsed() + late);
                }
                // The timers of a runtime are late too.
                Err(wait) => {
                    tokio::time::advance(
                        wait + Duration::from_millis(arrivals.len() as u64 * 13 % 6),
                    )
                    .await
                }
            }
        }
        arrivals.sort_unstable();
        let in_second = |from: &Duration| {
            let end = arrivals.partition_point(|at| *at < *from + Duration::from_secs(1));
            end - arrivals.partition_point(|at| at < from)
        };
        assert!(arrivals.iter().map(in_second).all(|count| count <= 50));
        assert!(arrivals.len() > 970, "{} of 1000", arrivals.len());
    }

    /// Tokens per minute of the limits below, and the minutes that are measured.
    const PER_MINUTE: u64 = 60_000;
    const MINUTES: u32 = 10;

    /// The share of a declared limit that calls use which reserve some tokens and turn out to use others, with 8 replies
    /// outstanding.
    fn used_share(reserved: u64, used: u64) -> f64 {
        let mut bucket = bucket_of(PER_MINUTE as f64 * USED_SHARE);
        let (mut now, mut total, mut outstanding) = (0.0, 0, VecDeque::new());
        while now < f64::from(MINUTES * 60) {
            now += bucket.wait(reserved as f64, now) + 1e-6;
            bucket.take(reserved as f64, now);
            total += used;
            outstanding.push_back(reserved);
            if outstanding.len() > 8 {
                let reserved = outstanding.pop_front().unwrap_or_default();
                bucket.take(used as f64 - reserved as f64, Seconds::NEG_INFINITY);
            }
        }
        total as f64 / (PER_MINUTE * u64::from(MINUTES)) as f64
    }

    /// Replies are shorter than what is reserved for them, and prompts longer than they are estimated.
    #[test]
    fn with_refunds_a_limit_of_tokens_is_used_and_kept() {
        for (reserved, used) in [(1024, 250), (850, 1000)] {
            let share = used_share(reserved, used);
            assert!(
                (0.95..1.0).contains(&share),
                "{share} for {reserved} reserved"
            );
        }
    }

    #[test]
    fn a_request_larger_than_the_bucket_is_admitted_and_paid_off() {
        let mut bucket = bucket_of(6000.0);
        assert_eq!(bucket.wait(1000.0, 0.0), 0.0);
        bucket.take(1000.0, 0.0);
        assert_eq!(bucket.wait(1000.0, 0.0), 10.0);
        bucket.take(-500.0, 0.0);
        assert_eq!(bucket.wait(1000.0, 0.0), 5.0);
        bucket.take(u64::MAX as f64, 0.0);
        assert!(bucket.wait(1.0, 0.0) > f64::powi(2.0, 50));
        let slow = RatesPerMinute {
            input: Some(1),
            ..RatesPerMinute::default()
        };
        let (mut slow, now) = (RateBuckets::new(slow), Instant::now());
        let tokens = |input| TokenDemand { input, output: 0 };
        slow.take(tokens(u64::MAX), now).unwrap();
        let longest = Duration::MAX;
        assert_eq!(
            slow.take(tokens(1), now),
            Err(longest),
            "longer than a duration can be"
        );
    }

    #[test]
    fn a_refund_never_fills_a_bucket_above_its_size() {
        let mut bucket = bucket_of(6000.0);
        bucket.take(-100_000.0, Seconds::NEG_INFINITY);
        bucket.take(100.0, 0.0);
        assert!(bucket.wait(100.0, 0.0) > 0.0);
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_its_tokens_and_one_burst(
            per_minute in 60u64..100_000,
            sizes in proptest::collection::vec(1u64..5000, 1..200),
        ) {
            let (mut now, mut taken) = (0.0, 0);
            let mut bucket = bucket_of(per_minute as f64);
            for size in &sizes {
                now += bucket.wait(*size as f64, now) + 1e-9;
                bucket.take(*size as f64, now);
                taken += size;
                let allowed = per_minute as f64 / 60.0 * (now + 1.0) + 5001.0;
                prop_assert!(taken as f64 <= allowed);
            }
        }
    }
}
