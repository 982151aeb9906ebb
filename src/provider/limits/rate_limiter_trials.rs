//! How well the limiter uses a rate that it has to find out, in virtual time.

use std::sync::Mutex;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::*;
use crate::provider::classify::classify;

const OPEN: RatesPerMinute = RatesPerMinute { requests: None, tokens: None, input: None, output: None };
const SMALL: TokenDemand = TokenDemand { input: 1, output: 0 };

/// A provider that lets `per_second` through, and `reserve` at once.
struct RateLimitedProvider {
    per_second: f64,
    reserve: f64,
    /// Whether its headers say so.
    announces: bool,
    level: Mutex<(f64, Instant)>,
}

impl RateLimitedProvider {
    fn new(per_second: f64, reserve: f64) -> RateLimitedProvider {
        RateLimitedProvider { per_second, reserve, announces: false, level: Mutex::new((reserve, Instant::now())) }
    }

    /// Whether a request passes, and what the headers of its reply say.
    fn takes(&self) -> (bool, AnnouncedLimits) {
        let mut level = self.level.lock().unwrap();
        let now = Instant::now();
        let filled = level.0 + (now - level.1).as_secs_f64() * self.per_second;
        let passes = filled >= 1.0;
        *level = (filled.min(self.reserve) - f64::from(u8::from(passes)), now);
        let reset = Duration::from_secs_f64((self.reserve - level.0) / self.per_second);
        let (limit, remaining) = ((self.per_second * 60.0) as u64, level.0 as u64);
        let requests = LimitWindow { limit: Some(limit), remaining: Some(remaining), reset: Some(reset) };
        (
            passes,
            if self.announces {
                AnnouncedLimits { requests, ..AnnouncedLimits::default() }
            } else {
                AnnouncedLimits::default()
            },
        )
    }

    /// Sends requests through `limiters` in turn. Returns the share of the allowed rate that was used, and the share of requests
    /// that were refused.
    async fn crowd(&self, limiters: &[RateLimiter], calls: u32, latency: Duration) -> (f64, f64) {
        let (account, policy, refused) =
            (RateLimiter::new(ConcurrencyLimit::declared(64), OPEN), RetryPolicy::default(), Mutex::new(0));
        let start = Instant::now();
        let one = async |index: u32| {
            let limiter = &limiters[index as usize % limiters.len()];
            loop {
                let permits = limiter.acquire(&account, SMALL).await;
                let sent = Instant::now();
                let (is_let_through, announced) = self.takes();
                tokio::time::sleep(if is_let_through { latency } else { latency.min(Duration::from_millis(200)) })
                    .await;
                drop(permits);
                if is_let_through {
                    return limiter.succeeded(&announced);
                }
                *refused.lock().unwrap() += 1;
                let wait = self.announces.then(|| Duration::from_secs_f64(1.0 / self.per_second));
                limiter.failed(&AttemptError { wait, ..classify(429, b"") }, sent, &announced, &policy);
            }
        };
        join_all((0..calls).map(one)).await;
        let refused = f64::from(*refused.lock().unwrap());
        (f64::from(calls) / self.per_second / start.elapsed().as_secs_f64(), refused / (f64::from(calls) + refused))
    }
}

fn unknown(slots: u32) -> RateLimiter {
    RateLimiter::new(ConcurrencyLimit::declared(slots), OPEN).with_slow_start(slots)
}

const SOON: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn a_rate_that_nobody_announces_is_found_at_the_price_of_a_few_refusals() {
    for (per_second, calls) in [(100.0, 1600), (100.0, 4800), (300.0, 10_000), (600.0, 10_000)] {
        // What is declared goes out at once, and costs a few refusals more.
        let open = RateLimiter::new(ConcurrencyLimit::undeclared(64), OPEN).with_slow_start(0);
        for (limiter, most) in [(unknown(64), 0.02), (open, 0.01)] {
            let (rate, refused) = RateLimitedProvider::new(per_second, per_second).crowd(&[limiter], calls, SOON).await;
            assert!(rate >= 0.95 && refused < most, "{calls} calls at {per_second}/s: {rate} of it, {refused} refused");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_found_whatever_burst_the_provider_allows() {
    let (rate, refused) = RateLimitedProvider::new(100.0, 10.0).crowd(&[unknown(64)], 4800, SOON).await;
    assert!(rate >= 0.75 && refused < 0.02, "{rate} of it, {refused} refused");
    let (rate, refused) = RateLimitedProvider::new(100.0, 6000.0).crowd(&[unknown(64)], 20_000, SOON).await;
    assert!(rate >= 1.3 && refused < 0.01, "{rate} of it, {refused} refused");
}

#[tokio::test(start_paused = true)]
async fn slow_replies_and_quick_refusals_do_not_mislead_the_estimate() {
    let provider = RateLimitedProvider::new(1.0, 50.0);
    let (rate, refused) = provider.crowd(&[unknown(64)], 1000, Duration::from_secs(10)).await;
    assert!(rate >= 0.95 && refused < 0.07, "{rate} of it, {refused} refused");
}

#[tokio::test(start_paused = true)]
async fn models_that_share_an_announced_rate_are_not_refused() {
    for models in 1..=3 {
        let limiters: Vec<RateLimiter> = (0..models).map(|_| unknown(64)).collect();
        let provider = RateLimitedProvider { announces: true, ..RateLimitedProvider::new(100.0, 100.0) };
        let (rate, refused) = provider.crowd(&limiters, 1600, SOON).await;
        assert!(rate >= 0.95 && refused < 0.01, "{models} models: {rate} of it, {refused} refused");
    }
}
