//! The rates of one gate: requests and tokens a minute, taken together or not at all.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

use super::bucket::Bucket;

/// Numbers a minute; `None` is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PerMinute {
    pub requests: Option<u64>,
    /// Input and output together.
    pub tokens: Option<u64>,
    pub input: Option<u64>,
    pub output: Option<u64>,
}

/// Tokens that a call is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    pub input: u64,
    pub output: u64,
}

impl Need {
    pub(super) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// Of what is allowed this much is used, so that no minute holds more than was allowed, bursts and the jitter of the
/// wire included.
const USED_SHARE: f64 = 0.985;

/// Governor's clock on tokio's time, so that a paused test clock paces too.
#[derive(Clone, Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Nanos>>;

#[derive(Debug)]
struct Requests {
    limiter: Limiter,
    clock: TokioClock,
}

impl Requests {
    /// Spread evenly, with bursts of a tenth of a second.
    fn new(per_minute: u64) -> Requests {
        let per_second = per_minute.max(1) as f64 * USED_SHARE / 60.0;
        let burst = NonZeroU32::new((per_second / 10.0) as u32).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(Duration::from_secs_f64(1.0 / per_second));
        let quota = quota.unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(burst);
        let clock = TokioClock(Instant::now());
        Requests { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock }
    }

    fn take(&self) -> Result<(), Duration> {
        self.limiter.check().map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }
}

/// The rates of one gate.
#[derive(Debug, Default)]
pub(super) struct Rates {
    allowed: PerMinute,
    requests: Option<Requests>,
    tokens: Option<Bucket>,
    input: Option<Bucket>,
    output: Option<Bucket>,
}

impl Rates {
    pub(super) fn new(allowed: PerMinute, now: Instant) -> Rates {
        let mut rates = Rates::default();
        rates.set(allowed, now);
        rates
    }

    /// Puts new rates into force; tokens owed stay owed.
    pub(super) fn set(&mut self, allowed: PerMinute, now: Instant) {
        if allowed.requests != self.allowed.requests {
            self.requests = allowed.requests.map(Requests::new);
        }
        let set = |bucket: &mut Option<Bucket>, rate: Option<u64>| {
            let rate = rate.map(|rate| rate as f64 * USED_SHARE);
            match (bucket.as_mut(), rate) {
                (Some(bucket), Some(rate)) => bucket.set_rate(rate, now),
                (_, rate) => *bucket = rate.map(|rate| Bucket::new(rate, 1.0, now)),
            }
        };
        set(&mut self.tokens, allowed.tokens);
        set(&mut self.input, allowed.input);
        set(&mut self.output, allowed.output);
        self.allowed = allowed;
    }

    /// Takes one request and its tokens, or says how long to wait.
    pub(super) fn take(&mut self, need: Need, now: Instant) -> Result<(), Duration> {
        let waits = self.buckets(need).map(|(bucket, tokens)| bucket.wait(tokens, now));
        let wait = waits.max().unwrap_or_default();
        if !wait.is_zero() {
            return Err(wait);
        }
        if let Some(requests) = &self.requests {
            requests.take()?;
        }
        self.buckets(need).for_each(|(bucket, tokens)| bucket.take(tokens));
        Ok(())
    }

    /// Corrects what was reserved for a call to what it used.
    pub(super) fn settle(&mut self, reserved: Need, used: Need) {
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

    /// The provider says what is left of each kind of token.
    pub(super) fn at_most(&mut self, tokens: Option<u64>, input: Option<u64>, output: Option<u64>, now: Instant) {
        let kinds = [(&mut self.tokens, tokens), (&mut self.input, input), (&mut self.output, output)];
        for (bucket, remaining) in kinds {
            if let (Some(bucket), Some(remaining)) = (bucket.as_mut(), remaining) {
                bucket.at_most(remaining, now);
            }
        }
    }

    fn buckets(&mut self, need: Need) -> impl Iterator<Item = (&mut Bucket, u64)> {
        let all = [(&mut self.tokens, need.total()), (&mut self.input, need.input), (&mut self.output, need.output)];
        all.into_iter().filter_map(|(bucket, tokens)| Some((bucket.as_mut()?, tokens)))
    }
}
