//! All in virtual time: tokio's clock stands still until every task waits.

use futures::future::join_all;

use super::super::headers::LimitWindow;
use super::*;
use crate::call::ErrorClass;
use crate::classify::classify;

const OPEN: RatesPerMinute = RatesPerMinute {
    requests: None,
    tokens: None,
    input: None,
    output: None,
};
const SMALL: TokenDemand = TokenDemand {
    input: 1,
    output: 0,
};
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

fn per_minute(requests: u64) -> RatesPerMinute {
    RatesPerMinute {
        requests: Some(requests),
        ..OPEN
    }
}

fn wide() -> RateLimiter {
    RateLimiter::new(ConcurrencyLimit::declared(10_000), OPEN)
}

fn fault(status: u16, wait: Option<Duration>) -> AttemptError {
    AttemptError {
        wait,
        ..classify(status, b"")
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Passes `count` requests that take `latency` each, all waiting at once; returns the time at which each was admitted.
async fn crowd(
    limiter: &RateLimiter,
    count: u32,
    need: TokenDemand,
    latency: Duration,
) -> Vec<Duration> {
    let start = Instant::now();
    let inner = wide();
    let request = async |_| {
        let permits = limiter.acquire(&inner, need, PATIENCE).await.unwrap();
        let at = start.elapsed();
        tokio::time::sleep(latency).await;
        drop(permits);
        limiter.succeeded(None, &AnnouncedLimits::default());
        at
    };
    join_all((0..count).map(request)).await
}

#[tokio::test(start_paused = true)]
async fn requests_are_spread_evenly_and_no_minute_holds_more_than_allowed() {
    let limiter = RateLimiter::new(ConcurrencyLimit::declared(10_000), per_minute(600));
    let times = crowd(&limiter, 1500, SMALL, Duration::ZERO).await;
    let last = times.iter().max().unwrap().as_secs_f64();
    assert!(
        (149.0..154.0).contains(&last),
        "1500 requests at 10/s took {last} s"
    );
    for begin in 0..90 {
        let minute = times
            .iter()
            .filter(|t| (seconds(begin)..seconds(begin + 60)).contains(*t))
            .count();
        assert!(minute <= 600, "{minute} in the minute from {begin}");
    }
}

#[tokio::test(start_paused = true)]
async fn unused_reserved_tokens_are_returned() {
    let rates = RatesPerMinute {
        input: Some(60_000),
        ..OPEN
    };
    let limiter = RateLimiter::new(ConcurrencyLimit::declared(10_000), rates);
    let need = TokenDemand {
        input: 2000,
        output: 500,
    };
    let start = Instant::now();
    for _ in 0..10 {
        drop(limiter.acquire(&wide(), need, PATIENCE).await.unwrap());
    }
    assert_eq!(
        start.elapsed().as_secs(),
        18,
        "20,000 tokens at 1,000/s, the last of them on credit"
    );
    limiter.settle(
        None,
        need,
        TokenDemand {
            input: 0,
            output: 0,
        },
    );
    let before = Instant::now();
    drop(limiter.acquire(&wide(), need, PATIENCE).await.unwrap());
    assert!(
        before.elapsed() < Duration::from_millis(5),
        "{:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_any_burst_is_admitted_in_order() {
    let limiter = RateLimiter::new(
        ConcurrencyLimit::declared(10_000),
        RatesPerMinute {
            tokens: Some(6000),
            ..OPEN
        },
    );
    let inner = wide();
    let order = Mutex::new(Vec::new());
    let acquire = async |name: u32, need: TokenDemand| {
        let _passes = limiter.acquire(&inner, need, PATIENCE).await.unwrap();
        order.lock().unwrap().push(name);
    };
    let large = TokenDemand {
        input: 5000,
        output: 5000,
    };
    let request = async |name| {
        acquire(
            name,
            if name == 3 {
                large
            } else {
                TokenDemand {
                    input: 50,
                    output: 0,
                }
            },
        )
        .await
    };
    join_all((0..8).map(request)).await;
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn slots_are_bounded_and_freed_even_by_cancelled_requests() {
    let limiter = RateLimiter::new(ConcurrencyLimit::declared(4), OPEN);
    let times = crowd(&limiter, 40, SMALL, seconds(1)).await;
    assert_eq!(times.iter().max().unwrap().as_secs(), 9);
    let inner = wide();
    {
        let held = join_all((0..4).map(|_| limiter.acquire(&inner, SMALL, PATIENCE))).await;
        let fifth =
            tokio::time::timeout(seconds(1), limiter.acquire(&inner, SMALL, PATIENCE)).await;
        assert!(fifth.is_err(), "a fifth was let in");
        drop(held);
    }
    assert_eq!(
        crowd(&limiter, 4, SMALL, seconds(1)).await.iter().max(),
        Some(&Duration::ZERO)
    );
}

/// A limiter with a limit group of its own, and a request that it admitted.
async fn grouped() -> (RateLimiter, Option<Ticket>) {
    let limiter = wide().within(Arc::new(LimitGroup::new(true, std::num::NonZeroU32::MIN)));
    let ticket = limiter
        .acquire(&wide(), SMALL, PATIENCE)
        .await
        .unwrap()
        .0
        .ticket();
    (limiter, ticket)
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_all_requests_and_pauses_do_not_add_up() {
    let limiter = wide();
    let policy = RetryPolicy::default();
    let sent = Instant::now();
    for _ in 0..50 {
        let overloaded = fault(529, Some(seconds(7)));
        let held = limiter
            .failed(
                &overloaded,
                None,
                sent,
                &AnnouncedLimits::default(),
                &policy,
            )
            .unwrap();
        assert!(held >= seconds(7) && held < seconds(8));
    }
    let times = crowd(&limiter, 20, SMALL, Duration::ZERO).await;
    assert!(times.iter().all(|t| t.as_secs() == 7), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_or_an_error_delays_no_other_request() {
    let ((limiter, ticket), policy) = (grouped().await, RetryPolicy::default());
    for error in [
        fault(500, None),
        fault(429, None),
        fault(429, Some(seconds(7))),
    ] {
        assert_eq!(
            limiter.failed(
                &error,
                ticket,
                Instant::now(),
                &AnnouncedLimits::default(),
                &policy
            ),
            None
        );
        assert_eq!(
            crowd(&limiter, 1, SMALL, Duration::ZERO).await,
            [Duration::ZERO]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_learned_from_headers() {
    let (limiter, ticket) = grouped().await;
    let requests = LimitWindow {
        limit: Some(600),
        remaining: Some(1),
        reset: Some(Duration::from_millis(59_900)),
    };
    limiter.succeeded(
        ticket,
        &AnnouncedLimits {
            requests,
            ..AnnouncedLimits::default()
        },
    );
    let last = crowd(&limiter, 100, SMALL, Duration::ZERO)
        .await
        .into_iter()
        .max()
        .unwrap();
    assert!(
        (9.0..11.0).contains(&last.as_secs_f64()),
        "{last:?} for 100 requests at 10/s"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_announced_to_be_left_is_sent_at_once() {
    let (limiter, ticket) = grouped().await;
    let requests = LimitWindow {
        limit: Some(600),
        remaining: Some(550),
        reset: Some(seconds(5)),
    };
    let announced = AnnouncedLimits {
        requests,
        ..AnnouncedLimits::default()
    };
    limiter.succeeded(ticket, &announced);
    let times = crowd(&limiter, 600, SMALL, Duration::ZERO).await;
    let at_once = times.iter().filter(|at| **at < seconds(1)).count();
    assert!(
        (550..565).contains(&at_once),
        "{at_once} in the first second"
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_answers_nobody_for_the_budget_ends_all_its_calls() {
    let limit = Duration::from_secs(600);
    for (error, sends) in [
        (fault(503, Some(Duration::ZERO)), 3..1300),
        (fault(429, None), 3..1300),
        (fault(429, Some(seconds(7))), 3..1300),
        (fault(429, Some(seconds(1_000_000_000))), 1..2),
        (fault(529, Some(seconds(1_000_000_000))), 1..2),
    ] {
        let (limiter, account, policy) = (grouped().await.0, wide(), RetryPolicy::default());
        let start = Instant::now();
        let sent = Mutex::new(0);
        let call = async |_| {
            while let Ok(permits) = limiter.acquire(&account, SMALL, policy.wait_budget).await {
                *sent.lock().unwrap() += 1;
                let (at, ticket) = (Instant::now(), permits.0.ticket());
                tokio::time::sleep(Duration::from_millis(10)).await;
                drop(permits);
                let announced = AnnouncedLimits::default();
                limiter.failed(&error, ticket, at, &announced, &policy);
                if limiter.is_given_up() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let (first, rest) = (call(0), join_all((1..20).map(call)));
        first.await;
        rest.await;
        let took = start.elapsed();
        assert!(took <= limit + seconds(65), "{error:?}: {took:?}");
        let sent = *sent.lock().unwrap();
        assert!(
            sends.contains(&sent),
            "{error:?}: {sent} requests in {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_long_ago_are_no_reason_to_give_up() {
    let (limiter, policy) = (wide(), RetryPolicy::default());
    let fail = || {
        let announced = AnnouncedLimits::default();
        limiter.failed(&fault(500, None), None, Instant::now(), &announced, &policy);
        limiter.is_given_up()
    };
    assert!(!fail());
    tokio::time::advance(seconds(3600)).await;
    assert!(!fail());
    for _ in 0..601 {
        tokio::time::advance(seconds(1)).await;
        _ = fail();
    }
    assert!(limiter.is_given_up());
    limiter.succeeded(None, &AnnouncedLimits::default());
    assert!(!limiter.is_given_up());
}

#[tokio::test(start_paused = true)]
async fn what_is_learned_never_exceeds_what_the_user_allowed() {
    let ((model, ticket), account) = (
        grouped().await,
        RateLimiter::new(ConcurrencyLimit::declared(10_000), per_minute(60)),
    );
    let generous = LimitWindow {
        limit: Some(600_000),
        remaining: Some(600_000),
        reset: None,
    };
    model.succeeded(
        ticket,
        &AnnouncedLimits {
            requests: generous,
            ..AnnouncedLimits::default()
        },
    );
    let start = Instant::now();
    for _ in 0..10 {
        drop(model.acquire(&account, SMALL, PATIENCE).await.unwrap());
    }
    assert!(start.elapsed() >= seconds(9), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_provider_is_probed_one_request_at_a_time_until_it_is_back() {
    let (limiter, inner, policy) = (wide(), wide(), RetryPolicy::default());
    let start = Instant::now();
    let back = start + seconds(300);
    limiter.succeeded(None, &AnnouncedLimits::default());
    let tries = Mutex::new(0);
    let request = async |_| {
        let mut charged = 0;
        loop {
            let permits = limiter.acquire(&inner, SMALL, PATIENCE).await.unwrap();
            *tries.lock().unwrap() += 1;
            let sent = Instant::now();
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(permits);
            if Instant::now() >= back {
                limiter.succeeded(None, &AnnouncedLimits::default());
                return charged;
            }
            let gone = AttemptError::new(ErrorClass::Transient, "connection refused");
            charged += u32::from(
                limiter
                    .failed(&gone, None, sent, &AnnouncedLimits::default(), &policy)
                    .is_none(),
            );
        }
    };
    let charged = join_all((0..50).map(request)).await;
    assert!(charged.iter().all(|charged| *charged <= 1), "{charged:?}");
    let tries = *tries.lock().unwrap();
    assert!(tries < 130, "{tries} requests for 50 answers");
    assert!(
        start.elapsed() < seconds(335),
        "back within one pause: {:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answered_is_not_waited_for() {
    let (limiter, policy) = (wide(), RetryPolicy::default());
    let gone = AttemptError::new(ErrorClass::Transient, "connection refused");
    let held = (0..50)
        .filter_map(|_| {
            limiter.failed(
                &gone,
                None,
                Instant::now(),
                &AnnouncedLimits::default(),
                &policy,
            )
        })
        .count();
    assert_eq!(held, 0);
}

#[tokio::test(start_paused = true)]
async fn overload_reduces_concurrency_and_a_plain_429_does_not() {
    let (limiter, policy) = (
        RateLimiter::new(ConcurrencyLimit::declared(10), OPEN),
        RetryPolicy::default(),
    );
    let most = async |limiter: &RateLimiter| {
        let times = crowd(limiter, 10, SMALL, seconds(100)).await;
        let first = *times.iter().min().unwrap();
        times.iter().filter(|t| **t < first + seconds(1)).count()
    };
    limiter.failed(
        &fault(429, Some(seconds(1))),
        None,
        Instant::now(),
        &AnnouncedLimits::default(),
        &policy,
    );
    assert_eq!(most(&limiter).await, 10);
    limiter.failed(
        &fault(529, None),
        None,
        Instant::now(),
        &AnnouncedLimits::default(),
        &policy,
    );
    assert_eq!(most(&limiter).await, 7);
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_requests_may_wait() {
    let limiter = RateLimiter::new(ConcurrencyLimit::declared(100), per_minute(600_000));
    let times = crowd(&limiter, 20_000, SMALL, Duration::from_millis(5)).await;
    let last = times.into_iter().max().unwrap().as_secs_f64();
    assert!(
        (1.5..1.7).contains(&last),
        "20,000 at 10,000/s, the first second's at once, took {last} s"
    );
}

#[tokio::test(start_paused = true)]
async fn concurrency_shrinks_until_the_provider_accepts_it() {
    let (limiter, inner, policy) = (
        RateLimiter::new(ConcurrencyLimit::declared(64), OPEN),
        wide(),
        RetryPolicy::default(),
    );
    limiter.succeeded(None, &AnnouncedLimits::default());
    let (start, busy) = (Instant::now(), Mutex::new(0));
    let too_many = || {
        classify(
            429,
            br#"{"error":{"message":"too many concurrent requests"}}"#,
        )
    };
    let request = async |_| {
        let mut charged = 0;
        loop {
            let permits = limiter.acquire(&inner, SMALL, PATIENCE).await.unwrap();
            *busy.lock().unwrap() += 1;
            let (sent, fits) = (Instant::now(), *busy.lock().unwrap() <= 5);
            tokio::time::sleep(Duration::from_millis(if fits { 200 } else { 1 })).await;
            *busy.lock().unwrap() -= 1;
            drop(permits);
            if fits {
                limiter.succeeded(None, &AnnouncedLimits::default());
                return charged;
            }
            charged += u32::from(
                limiter
                    .failed(
                        &too_many(),
                        None,
                        sent,
                        &AnnouncedLimits::default(),
                        &policy,
                    )
                    .is_none(),
            );
        }
    };
    let charged = join_all((0..400).map(request)).await;
    assert_eq!(charged.iter().max(), Some(&0));
    let ideal = 400.0 / 5.0 * 0.2;
    assert!(
        start.elapsed().as_secs_f64() < ideal * 3.0,
        "{:?} where {ideal} s would do",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_model_is_waited_for_where_its_provider_worked() {
    let has_worked = Arc::default();
    let (first, second) = (
        wide().sharing_history(&has_worked),
        wide().sharing_history(&has_worked),
    );
    first.succeeded(None, &AnnouncedLimits::default());
    let (gone, policy) = (
        AttemptError::new(ErrorClass::Transient, "connection refused"),
        RetryPolicy::default(),
    );
    let held = (0..50)
        .filter_map(|_| {
            second.failed(
                &gone,
                None,
                Instant::now(),
                &AnnouncedLimits::default(),
                &policy,
            )
        })
        .count();
    assert!(held >= 45, "{held}: all but those before it was clear");
    assert!(
        matches!(second.status().1, Some(WaitReason::Unavailable(..))),
        "{:?}",
        second.status()
    );
    second.succeeded(None, &AnnouncedLimits::default());
    assert!(
        !matches!(second.status().1, Some(WaitReason::Unavailable(..))),
        "{:?}",
        second.status()
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_before_an_error_are_no_outage() {
    let (limiter, policy) = (wide(), RetryPolicy::default());
    limiter.succeeded(None, &AnnouncedLimits::default());
    let fail = |status| {
        limiter.failed(
            &fault(status, None),
            None,
            Instant::now(),
            &AnnouncedLimits::default(),
            &policy,
        )
    };
    for status in [429, 429, 400, 429, 500, 500, 500, 500] {
        assert_eq!(fail(status), None, "{status}");
        assert!(!limiter.is_unavailable(), "{status}");
    }
    assert!(
        fail(500).is_some() && limiter.is_unavailable(),
        "five in a row"
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_calls_as_unreachable_and_other_errors_end_one_call() {
    let policy = RetryPolicy::default();
    let unsent = || AttemptError {
        delivery: Delivery::NotSent,
        ..AttemptError::new(ErrorClass::Transient, "connection refused")
    };
    let error = || AttemptError {
        delivery: Delivery::Rejected,
        ..AttemptError::new(ErrorClass::Transient, "HTTP 500")
    };
    let last = |limiter: &RateLimiter, fault: AttemptError| limiter.final_error(fault, true).class;
    let limiter = wide();
    assert_eq!(
        last(&limiter, unsent()),
        ErrorClass::Unreachable,
        "it never worked"
    );
    assert_eq!(
        last(&limiter, error()),
        ErrorClass::Transient,
        "it may be this request alone"
    );
    limiter.succeeded(None, &AnnouncedLimits::default());
    assert_eq!(
        last(&limiter, unsent()),
        ErrorClass::Transient,
        "it worked a moment ago"
    );
    (0..5).for_each(|_| {
        _ = limiter.failed(
            &unsent(),
            None,
            Instant::now(),
            &AnnouncedLimits::default(),
            &policy,
        )
    });
    assert_eq!(
        last(&limiter, unsent()),
        ErrorClass::Unreachable,
        "it is unavailable for longer than anyone waits"
    );
    assert_eq!(
        last(&limiter, AttemptError::new(ErrorClass::Malformed, "x")),
        ErrorClass::Malformed
    );
}

#[tokio::test(start_paused = true)]
async fn the_status_says_what_the_head_of_the_queue_waits_for() {
    let limiter = RateLimiter::new(ConcurrencyLimit::declared(1), per_minute(60));
    let inner = wide();
    let held = limiter.acquire(&inner, SMALL, PATIENCE).await.unwrap();
    assert_eq!((limiter.status().0, limiter.status().1), (1, None));
    let next = async {
        tokio::time::timeout(
            Duration::from_millis(5),
            limiter.acquire(&inner, SMALL, PATIENCE),
        )
        .await
        .is_err()
    };
    assert!(next.await);
    assert_eq!(limiter.status().1, Some(WaitReason::Replies));
    drop(held);
    assert!(
        tokio::time::timeout(
            Duration::from_millis(5),
            limiter.acquire(&inner, SMALL, PATIENCE)
        )
        .await
        .is_err()
    );
    assert_eq!(limiter.status().1, Some(WaitReason::Rate));
    limiter.failed(
        &fault(529, Some(seconds(7))),
        None,
        Instant::now(),
        &AnnouncedLimits::default(),
        &RetryPolicy::default(),
    );
    assert!(
        matches!(limiter.status().1, Some(WaitReason::Paused(left, why)) if left > seconds(6) && why.contains("529"))
    );
}
