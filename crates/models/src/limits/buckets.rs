//! Token buckets: the requests and tokens per minute of one rate limiter, taken together or not at all.
//!
//! What a call reserves for its reply is corrected once the usage is known, so what is taken can be returned.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::PerKind;
use super::rate_estimator::{Bucket, Seconds};

/// Limits per minute; `None` means no limit.
pub(crate) type RatesPerMinute = PerKind<Option<u64>>;

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
const SECOND: Duration = Duration::from_millis(1010);

/// A declared number of requests a minute.
#[derive(Debug)]
struct RequestQuota {
    bucket: TokenBucket,
    /// When the last requests were sent, at most as many as one second allows.
    sent: VecDeque<Instant>,
    per_second: usize,
}

impl RequestQuota {
    /// One second's part may be sent at once; the rest of the minute is spread evenly, so that no minute exceeds the rate.
    fn new(per_minute: u64, now: Instant) -> RequestQuota {
        let per_second = per_minute.div_ceil(60).max(1);
        let most = per_minute.max(1) as f64;
        let spread = if per_second > 1 {
            most - per_second as f64
        } else {
            most
        };
        let rate = spread.min(most * USED_SHARE);
        RequestQuota {
            bucket: TokenBucket::holding(rate.max(1.0) / 60.0, per_second as f64, now),
            sent: VecDeque::new(),
            per_second: per_second as usize,
        }
    }

    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if self.sent.len() == self.per_second {
            let since_first = self
                .sent
                .front()
                .map_or(SECOND, |first| now.saturating_duration_since(*first));
            if since_first < SECOND {
                return Err(SECOND - since_first);
            }
        }
        let wait = self.bucket.wait(1, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.bucket.take(1, now);
        if self.sent.len() == self.per_second {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        Ok(())
    }
}

/// The limits of one rate limiter.
#[derive(Debug, Default)]
pub(crate) struct RateBuckets {
    requests: Option<RequestQuota>,
    /// In the order of `LimitKind::ALL`; the first, for requests, is empty.
    tokens: [Option<TokenBucket>; 4],
}

impl RateBuckets {
    pub(crate) fn new(allowed: RatesPerMinute, now: Instant) -> RateBuckets {
        let bucket = |rate| TokenBucket::new(rate as f64 * USED_SHARE, now);
        let of_tokens = RatesPerMinute {
            requests: None,
            ..allowed
        };
        RateBuckets {
            requests: allowed.requests.map(|rate| RequestQuota::new(rate, now)),
            tokens: of_tokens.all().map(|rate| rate.map(bucket)),
        }
    }

    /// Takes one request and its tokens, or says how long to wait.
    pub(crate) fn take(&mut self, need: TokenDemand, now: Instant) -> Result<(), Duration> {
        let waits = self
            .buckets(need)
            .map(|(bucket, tokens)| bucket.wait(tokens, now));
        let wait = waits.max().unwrap_or_default();
        if !wait.is_zero() {
            return Err(wait);
        }
        if let Some(requests) = &mut self.requests {
            requests.take(now)?;
        }
        self.buckets(need)
            .for_each(|(bucket, tokens)| bucket.take(tokens, now));
        Ok(())
    }

    /// Corrects what was reserved for a call to what it used.
    pub(crate) fn settle(&mut self, reserved: TokenDemand, used: TokenDemand) {
        let amounts = reserved.amounts().into_iter().zip(used.amounts());
        for (bucket, (reserved, used)) in self.tokens.iter_mut().zip(amounts) {
            if let Some(bucket) = bucket {
                bucket.settle(reserved, used);
            }
        }
    }

    fn buckets(&mut self, need: TokenDemand) -> impl Iterator<Item = (&mut TokenBucket, u64)> {
        let all = self.tokens.iter_mut().zip(need.amounts());
        all.filter_map(|(bucket, tokens)| Some((bucket.as_mut()?, tokens)))
    }
}

/// A [`Bucket`] of tokens, by the clock of the runtime.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    start: Instant,
    bucket: Bucket,
}

impl TokenBucket {
    /// A full bucket that refills with `per_minute` tokens and holds the tokens of one second, at least one.
    pub(crate) fn new(per_minute: f64, now: Instant) -> TokenBucket {
        let per_second = per_minute.max(1.0) / 60.0;
        TokenBucket::holding(per_second, per_second.max(1.0), now)
    }

    /// A full bucket of this size.
    fn holding(per_second: f64, size: f64, now: Instant) -> TokenBucket {
        TokenBucket {
            start: now,
            bucket: Bucket::new(per_second, size, size, 0.0),
        }
    }

    fn at(&self, now: Instant) -> Seconds {
        now.saturating_duration_since(self.start).as_secs_f64()
    }

    /// How long until `tokens` may be taken; zero if at once.
    pub(crate) fn wait(&self, tokens: u64, now: Instant) -> Duration {
        let wait = self.bucket.wait(tokens as f64, self.at(now));
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }

    /// Takes `tokens`, into debt if need be.
    pub(crate) fn take(&mut self, tokens: u64, now: Instant) {
        self.bucket.take(tokens as f64, self.at(now));
    }

    /// Corrects what was reserved to what was used.
    pub(crate) fn settle(&mut self, reserved: u64, used: u64) {
        self.bucket
            .take(used as f64 - reserved as f64, Seconds::NEG_INFINITY);
    }
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
        let mut buckets = RateBuckets::new(rates, start);
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
        let start = Instant::now();
        let mut bucket = TokenBucket::new(PER_MINUTE as f64 * USED_SHARE, start);
        let (mut now, mut total, mut outstanding) = (start, 0, VecDeque::new());
        while now < start + MINUTES * Duration::from_secs(60) {
            now += bucket.wait(reserved, now) + Duration::from_micros(1);
            bucket.take(reserved, now);
            total += used;
            outstanding.push_back(reserved);
            if outstanding.len() > 8 {
                bucket.settle(outstanding.pop_front().unwrap_or_default(), used);
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
        let start = Instant::now();
        let mut bucket = TokenBucket::new(6000.0, start);
        assert_eq!(bucket.wait(1000, start), Duration::ZERO);
        bucket.take(1000, start);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(10));
        bucket.settle(1000, 500);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(5));
        bucket.take(u64::MAX, start);
        assert!(bucket.wait(1, start) > Duration::from_secs(1 << 50));
        let mut slow = TokenBucket::new(1.0, start);
        slow.take(u64::MAX, start);
        assert_eq!(
            slow.wait(1, start),
            Duration::MAX,
            "longer than a duration can be"
        );
    }

    #[test]
    fn a_refund_never_fills_a_bucket_above_its_size() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(6000.0, start);
        bucket.settle(100_000, 0);
        bucket.take(100, start);
        assert!(bucket.wait(100, start) > Duration::ZERO);
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_its_tokens_and_one_burst(
            per_minute in 60u64..100_000,
            sizes in proptest::collection::vec(1u64..5000, 1..200),
        ) {
            let start = Instant::now();
            let (mut now, mut taken) = (start, 0);
            let mut bucket = TokenBucket::new(per_minute as f64, start);
            for size in &sizes {
                now += bucket.wait(*size, now) + Duration::from_nanos(1);
                bucket.take(*size, now);
                taken += size;
                let allowed = per_minute as f64 / 60.0 * ((now - start).as_secs_f64() + 1.0) + 5001.0;
                prop_assert!(taken as f64 <= allowed);
            }
        }
    }
}
