//! Token buckets: the requests and tokens per minute of one rate limiter, taken together or not at all.
//!
//! governor keeps the requests per minute. It cannot refund, and what a call reserves for its reply is corrected once
//! the usage is known, so tokens have a bucket of their own.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use tokio::time::Instant;

/// Limits per minute; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RatesPerMinute {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
    pub input: Option<u64>,
    pub output: Option<u64>,
}

impl RatesPerMinute {
    /// Each limit divided into this many parts; a part is at least 1.
    pub(crate) fn divided_by(self, parts: u64) -> RatesPerMinute {
        let [requests, tokens, input, output] =
            [self.requests, self.tokens, self.input, self.output]
                .map(|limit| limit.map(|limit| (limit / parts.max(1)).max(1)));
        RatesPerMinute {
            requests,
            tokens,
            input,
            output,
        }
    }
}

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
}

/// The share of an allowed rate that is used, so that no minute exceeds it, bursts and network jitter included.
const USED_SHARE: f64 = 0.985;

/// No period of this length gets more than a second's part of the rate. It is a little longer than a second, because servers
/// count by the second and the network moves requests together by some milliseconds.
const SECOND: Duration = Duration::from_millis(1010);

/// Seconds of a rate that may be sent at once.
const BURST: f64 = 0.03;
/// Seconds of a rate that may be sent at once, up to [`TIMER_BURST_REQUESTS`]. So from 20 requests a second on, two may be
/// sent at once, which makes up for late timers.
const TIMER_BURST: f64 = 0.1;
const TIMER_BURST_REQUESTS: f64 = 2.0;

/// Governor's clock on tokio's time, so that tests can use virtual time.
#[derive(Clone, Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

type GovernorLimiter =
    governor::RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Nanos>>;

#[derive(Debug)]
struct RequestQuota {
    limiter: GovernorLimiter,
    clock: TokioClock,
    /// When the last requests were sent, at most as many as one second allows.
    sent: VecDeque<Instant>,
    per_second: usize,
}

impl RequestQuota {
    /// Spreads requests evenly, with bursts that make up for late timers but exceed the rate in no second.
    fn new(per_minute: u64) -> RequestQuota {
        let per_second = per_minute.max(1) as f64 * USED_SHARE / 60.0;
        let burst = (per_second * BURST).max((per_second * TIMER_BURST).min(TIMER_BURST_REQUESTS));
        let burst = NonZeroU32::new(burst as u32).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(Duration::from_secs_f64(1.0 / per_second));
        let quota = quota
            .unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        let clock = TokioClock(Instant::now());
        let limiter = governor::RateLimiter::direct_with_clock(quota, clock.clone());
        let per_second = per_minute.div_ceil(60).max(1) as usize;
        RequestQuota {
            limiter,
            clock,
            sent: VecDeque::new(),
            per_second,
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
        self.limiter
            .check()
            .map_err(|not_until| not_until.wait_time_from(self.clock.now()))?;
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
    tokens: Option<TokenBucket>,
    input: Option<TokenBucket>,
    output: Option<TokenBucket>,
}

impl RateBuckets {
    pub(crate) fn new(allowed: RatesPerMinute, now: Instant) -> RateBuckets {
        let [tokens, input, output] = [allowed.tokens, allowed.input, allowed.output]
            .map(|rate| rate.map(|rate| TokenBucket::new(rate as f64 * USED_SHARE, now)));
        RateBuckets {
            requests: allowed.requests.map(RequestQuota::new),
            tokens,
            input,
            output,
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
            .for_each(|(bucket, tokens)| bucket.take(tokens));
        Ok(())
    }

    /// Corrects what was reserved for a call to what it used.
    pub(crate) fn settle(&mut self, reserved: TokenDemand, used: TokenDemand) {
        let kinds = [
            (&mut self.tokens, reserved.total(), used.total()),
            (&mut self.input, reserved.input, used.input),
            (&mut self.output, reserved.output, used.output),
        ];
        for (bucket, reserved, used) in kinds {
            if let Some(bucket) = bucket {
                bucket.settle(reserved, used);
            }
        }
    }

    fn buckets(&mut self, need: TokenDemand) -> impl Iterator<Item = (&mut TokenBucket, u64)> {
        let all = [
            (&mut self.tokens, need.total()),
            (&mut self.input, need.input),
            (&mut self.output, need.output),
        ];
        all.into_iter()
            .filter_map(|(bucket, tokens)| Some((bucket.as_mut()?, tokens)))
    }
}

/// A token bucket that refills evenly. What is taken can be returned. A request larger than the bucket is admitted by
/// a full one and leaves it in debt, so that no request is too large to be sent.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    per_second: f64,
    size: f64,
    level: f64,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket that refills with `per_minute` tokens and holds the tokens of one second, at least one.
    pub(crate) fn new(per_minute: f64, now: Instant) -> TokenBucket {
        let per_second = per_minute.max(1.0) / 60.0;
        let size = per_second.max(1.0);
        TokenBucket {
            per_second,
            size,
            level: size,
            at: now,
        }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.size);
        self.at = now;
    }

    /// How long until `tokens` may be taken; zero if at once.
    pub(crate) fn wait(&mut self, tokens: u64, now: Instant) -> Duration {
        self.refill(now);
        let missing = (tokens as f64).min(self.size) - self.level;
        // A hair of rounding must not cost a timer tick.
        let wait = if missing <= 1e-6 {
            0.0
        } else {
            missing / self.per_second
        };
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }

    /// Takes `tokens`, into debt if need be.
    pub(crate) fn take(&mut self, tokens: u64) {
        self.level -= tokens as f64;
    }

    /// Corrects what was reserved to what was used.
    pub(crate) fn settle(&mut self, reserved: u64, used: u64) {
        self.level = (self.level + reserved as f64 - used as f64).min(self.size);
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
            bucket.take(reserved);
            total += used;
            outstanding.push_back(reserved);
            if outstanding.len() > 8 {
                bucket.settle(outstanding.pop_front().unwrap_or_default(), used);
            }
        }
        total as f64 / (PER_MINUTE * u64::from(MINUTES)) as f64
    }

    /// The same with governor, where a request weighs what it reserves. A weight above the burst is never admitted, so
    /// the burst is the larger of a second's tokens and one request.
    async fn governor_share(reserved: u32, used: u64) -> f64 {
        let start = Instant::now();
        let per_second = NonZeroU32::new((PER_MINUTE as f64 * USED_SHARE / 60.0) as u32).unwrap();
        let weight = NonZeroU32::new(reserved).unwrap();
        let quota = Quota::per_second(per_second).allow_burst(per_second.max(weight));
        let clock = TokioClock(start);
        let limiter: GovernorLimiter =
            governor::RateLimiter::direct_with_clock(quota, clock.clone());
        let mut total = 0;
        while start.elapsed() < MINUTES * Duration::from_secs(60) {
            match limiter.check_n(weight).unwrap() {
                Ok(()) => total += used,
                Err(not_until) => tokio::time::advance(not_until.wait_time_from(clock.now())).await,
            }
        }
        total as f64 / (PER_MINUTE * u64::from(MINUTES)) as f64
    }

    /// Replies are shorter than what is reserved for them, and prompts longer than they are estimated.
    #[tokio::test(start_paused = true)]
    async fn only_with_refunds_a_limit_of_tokens_is_used_and_kept() {
        let (output, prompt) = ((1024, 250), (850, 1000));
        let ours = [
            used_share(output.0, output.1),
            used_share(prompt.0, prompt.1),
        ];
        let (reserved, weight) = (output.0 as u32, prompt.0 as u32);
        let governor = [
            governor_share(reserved, output.1).await,
            governor_share(weight, prompt.1).await,
        ];
        assert!(
            ours.iter().all(|share| (0.95..1.0).contains(share)),
            "{ours:?}"
        );
        assert!(
            (0.20..0.30).contains(&governor[0]),
            "most of the limit is not used: {governor:?}"
        );
        assert!(governor[1] > 1.1, "the limit is exceeded: {governor:?}");
    }

    #[test]
    fn a_request_larger_than_the_bucket_is_admitted_and_paid_off() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(6000.0, start);
        assert_eq!(bucket.wait(1000, start), Duration::ZERO);
        bucket.take(1000);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(10));
        bucket.settle(1000, 500);
        assert_eq!(bucket.wait(1000, start), Duration::from_secs(5));
        bucket.take(u64::MAX);
        assert!(bucket.wait(1, start) > Duration::from_secs(1 << 50));
        let mut slow = TokenBucket::new(1.0, start);
        slow.take(u64::MAX);
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
        bucket.take(100);
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
                bucket.take(*size);
                taken += size;
                let allowed = per_minute as f64 / 60.0 * ((now - start).as_secs_f64() + 1.0) + 5001.0;
                prop_assert!(taken as f64 <= allowed);
            }
        }
    }
}
