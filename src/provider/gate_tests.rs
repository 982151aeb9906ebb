//! All in virtual time: tokio's clock stands still until everyone waits.

use futures::future::join_all;

use super::*;
use crate::provider::api::ErrorClass;
use crate::provider::classify::classify;

const OPEN: PerMinute = PerMinute { requests: None, tokens: None, input: None, output: None };
const SMALL: Need = Need { input: 1, output: 0 };

fn per_minute(requests: u64) -> PerMinute {
    PerMinute { requests: Some(requests), ..OPEN }
}

fn wide() -> Gate {
    Gate::new(Pace::declared(10_000), OPEN)
}

fn fault(status: u16, wait: Option<Duration>) -> Fault {
    Fault { wait, ..classify(status, b"") }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Passes `count` requests that take `latency` each, all waiting at once; answers the time each was let through.
async fn crowd(gate: &Gate, count: u32, need: Need, latency: Duration) -> Vec<Duration> {
    let start = Instant::now();
    let inner = wide();
    let one = async |_| {
        let passes = gate.enter(&inner, need).await;
        let at = start.elapsed();
        tokio::time::sleep(latency).await;
        drop(passes);
        gate.served(&Announced::default());
        at
    };
    join_all((0..count).map(one)).await
}

#[tokio::test(start_paused = true)]
async fn requests_are_spread_evenly_and_no_minute_holds_more_than_allowed() {
    let gate = Gate::new(Pace::declared(10_000), per_minute(600));
    let times = crowd(&gate, 1500, SMALL, Duration::ZERO).await;
    let last = times.iter().max().unwrap().as_secs_f64();
    assert!((149.0..154.0).contains(&last), "1500 requests at 10/s took {last} s");
    for begin in 0..90 {
        let minute = times.iter().filter(|t| (seconds(begin)..seconds(begin + 60)).contains(*t)).count();
        assert!(minute <= 600, "{minute} in the minute from {begin}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_and_what_was_not_used_comes_back() {
    let rates = PerMinute { input: Some(60_000), ..OPEN };
    let gate = Gate::new(Pace::declared(10_000), rates);
    let need = Need { input: 2000, output: 500 };
    let start = Instant::now();
    for _ in 0..10 {
        drop(gate.enter(&wide(), need).await);
    }
    assert_eq!(start.elapsed().as_secs(), 18, "20,000 tokens at 1,000/s, the last of them on credit");
    gate.settle(need, Need { input: 0, output: 0 });
    let before = Instant::now();
    drop(gate.enter(&wide(), need).await);
    assert!(before.elapsed() < Duration::from_millis(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_any_burst_is_served_and_overtaken_by_no_one() {
    let gate = Gate::new(Pace::declared(10_000), PerMinute { tokens: Some(6000), ..OPEN });
    let inner = wide();
    let order = Mutex::new(Vec::new());
    let enter = async |name: u32, need: Need| {
        let _passes = gate.enter(&inner, need).await;
        order.lock().unwrap().push(name);
    };
    let large = Need { input: 5000, output: 5000 };
    let one = async |name| enter(name, if name == 3 { large } else { Need { input: 50, output: 0 } }).await;
    join_all((0..8).map(one)).await;
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn places_are_bounded_and_given_back_even_by_those_who_leave() {
    let gate = Gate::new(Pace::declared(4), OPEN);
    let times = crowd(&gate, 40, SMALL, seconds(1)).await;
    assert_eq!(times.iter().max().unwrap().as_secs(), 9);
    let inner = wide();
    {
        let held = join_all((0..4).map(|_| gate.enter(&inner, SMALL))).await;
        let fifth = tokio::time::timeout(seconds(1), gate.enter(&inner, SMALL)).await;
        assert!(fifth.is_err(), "a fifth was let in");
        drop(held);
    }
    assert_eq!(crowd(&gate, 4, SMALL, seconds(1)).await.iter().max(), Some(&Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn one_pause_holds_everyone_and_is_not_summed_up() {
    let gate = wide();
    let patience = Patience::default();
    let sent = Instant::now();
    for _ in 0..50 {
        let held = gate.failed(&fault(429, Some(seconds(7))), sent, &Announced::default(), &patience).unwrap();
        assert!(held >= seconds(7) && held < seconds(8));
    }
    let times = crowd(&gate, 20, SMALL, Duration::ZERO).await;
    assert!(times.iter().all(|t| t.as_secs() == 7), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_429_slows_all_a_500_one() {
    let (gate, patience) = (wide(), Patience::default());
    assert_eq!(gate.failed(&fault(500, None), Instant::now(), &Announced::default(), &patience), None);
    assert_eq!(crowd(&gate, 3, SMALL, Duration::ZERO).await.iter().max(), Some(&Duration::ZERO));
    gate.failed(&fault(429, None), Instant::now(), &Announced::default(), &patience);
    assert!(*crowd(&gate, 3, SMALL, Duration::ZERO).await.iter().min().unwrap() >= patience.first_wait);
}

#[tokio::test(start_paused = true)]
async fn limits_are_learned_from_headers() {
    let gate = wide();
    let told = |limit, remaining, reset| Announced {
        requests: Window { limit: Some(limit), remaining: Some(remaining), reset: Some(reset) },
        ..Announced::default()
    };
    gate.served(&told(600, 599, seconds(1)));
    let last = crowd(&gate, 100, SMALL, Duration::ZERO).await.into_iter().max().unwrap();
    assert!((9.0..11.0).contains(&last.as_secs_f64()), "{last:?} for 100 requests at 10/s");
    gate.served(&told(600, 0, seconds(5)));
    let times = crowd(&gate, 1, SMALL, Duration::ZERO).await;
    assert!(times[0] >= seconds(5), "used up: wait before the provider refuses");
}

#[tokio::test(start_paused = true)]
async fn what_is_learned_never_exceeds_what_the_user_allowed() {
    let (lane, account) = (wide(), Gate::new(Pace::declared(10_000), per_minute(60)));
    let generous = Window { limit: Some(600_000), remaining: Some(600_000), reset: None };
    lane.served(&Announced { requests: generous, ..Announced::default() });
    let start = Instant::now();
    for _ in 0..10 {
        drop(lane.enter(&account, SMALL).await);
    }
    assert!(start.elapsed() >= seconds(9), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_away_is_tried_one_at_a_time_until_it_is_back() {
    let (gate, inner, patience) = (wide(), wide(), Patience::default());
    let start = Instant::now();
    let back = start + seconds(300);
    gate.served(&Announced::default());
    let tries = Mutex::new(0);
    let one = async |_| {
        let mut charged = 0;
        loop {
            let passes = gate.enter(&inner, SMALL).await;
            *tries.lock().unwrap() += 1;
            let sent = Instant::now();
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(passes);
            if Instant::now() >= back {
                gate.served(&Announced::default());
                return charged;
            }
            let gone = Fault::new(ErrorClass::Transient, "connection refused");
            charged += u32::from(gate.failed(&gone, sent, &Announced::default(), &patience).is_none());
        }
    };
    let charged = join_all((0..50).map(one)).await;
    assert!(charged.iter().all(|charged| *charged <= 1), "{charged:?}");
    let tries = *tries.lock().unwrap();
    assert!(tries < 130, "{tries} requests for 50 answers");
    assert!(start.elapsed() < seconds(335), "back within one pause: {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answered_is_not_waited_for() {
    let (gate, patience) = (wide(), Patience::default());
    let gone = Fault::new(ErrorClass::Transient, "connection refused");
    let held = (0..50).filter_map(|_| gate.failed(&gone, Instant::now(), &Announced::default(), &patience)).count();
    assert_eq!(held, 0);
}

#[tokio::test(start_paused = true)]
async fn overload_takes_places_away_and_a_plain_429_does_not() {
    let (gate, patience) = (Gate::new(Pace::declared(10), OPEN), Patience::default());
    let most = async |gate: &Gate| {
        let times = crowd(gate, 10, SMALL, seconds(100)).await;
        let first = *times.iter().min().unwrap();
        times.iter().filter(|t| **t < first + seconds(1)).count()
    };
    gate.failed(&fault(429, Some(seconds(1))), Instant::now(), &Announced::default(), &patience);
    assert_eq!(most(&gate).await, 10);
    gate.failed(&fault(529, None), Instant::now(), &Announced::default(), &patience);
    assert_eq!(most(&gate).await, 7);
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_may_wait() {
    let gate = Gate::new(Pace::declared(100), per_minute(600_000));
    let times = crowd(&gate, 20_000, SMALL, Duration::from_millis(5)).await;
    let last = times.into_iter().max().unwrap().as_secs_f64();
    assert!((1.9..2.3).contains(&last), "20,000 at 10,000/s took {last} s");
}

#[tokio::test(start_paused = true)]
async fn too_many_at_once_are_thinned_out_until_they_fit() {
    let (gate, inner, patience) = (Gate::new(Pace::declared(64), OPEN), wide(), Patience::default());
    gate.served(&Announced::default());
    let (start, busy) = (Instant::now(), Mutex::new(0));
    let too_many = || classify(429, br#"{"error":{"message":"too many concurrent requests"}}"#);
    let one = async |_| {
        let mut charged = 0;
        loop {
            let passes = gate.enter(&inner, SMALL).await;
            *busy.lock().unwrap() += 1;
            let (sent, fits) = (Instant::now(), *busy.lock().unwrap() <= 5);
            tokio::time::sleep(Duration::from_millis(if fits { 200 } else { 1 })).await;
            *busy.lock().unwrap() -= 1;
            drop(passes);
            if fits {
                gate.served(&Announced::default());
                return charged;
            }
            charged += u32::from(gate.failed(&too_many(), sent, &Announced::default(), &patience).is_none());
        }
    };
    let charged = join_all((0..400).map(one)).await;
    assert_eq!(charged.iter().max(), Some(&0));
    let ideal = 400.0 / 5.0 * 0.2;
    assert!(start.elapsed().as_secs_f64() < ideal * 3.0, "{:?} where {ideal} s would do", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_was_never_asked_is_waited_for_where_its_provider_worked() {
    let has_worked = Arc::default();
    let (first, second) = (wide().of_provider(&has_worked), wide().of_provider(&has_worked));
    first.served(&Announced::default());
    let (gone, patience) = (Fault::new(ErrorClass::Transient, "connection refused"), Patience::default());
    let held = (0..50).filter_map(|_| second.failed(&gone, Instant::now(), &Announced::default(), &patience)).count();
    assert!(held >= 45, "{held}: all but those before it was clear");
    assert!(matches!(second.view().waits, Some(Waiting::Away(..))), "{:?}", second.view());
    second.served(&Announced::default());
    assert!(!matches!(second.view().waits, Some(Waiting::Away(..))), "{:?}", second.view());
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_for_all_where_nothing_gets_through_and_for_itself_elsewhere() {
    let patience = Patience::default();
    let unsent = || Fault { reach: Reach::Unsent, ..Fault::new(ErrorClass::Transient, "connection refused") };
    let error = || Fault { reach: Reach::TurnedAway, ..Fault::new(ErrorClass::Transient, "HTTP 500") };
    let last = |gate: &Gate, fault: Fault| gate.last_word(fault, true).class;
    let gate = wide();
    assert_eq!(last(&gate, unsent()), ErrorClass::Unreachable, "it never worked");
    assert_eq!(last(&gate, error()), ErrorClass::Transient, "it may be this request alone");
    gate.served(&Announced::default());
    assert_eq!(last(&gate, unsent()), ErrorClass::Transient, "it worked a moment ago");
    (0..5).for_each(|_| _ = gate.failed(&unsent(), Instant::now(), &Announced::default(), &patience));
    assert_eq!(last(&gate, unsent()), ErrorClass::Unreachable, "it is away for longer than anyone waits");
    assert_eq!(last(&gate, Fault::new(ErrorClass::Malformed, "x")), ErrorClass::Malformed);
}

#[tokio::test(start_paused = true)]
async fn what_the_head_of_the_queue_waits_for_can_be_seen() {
    let gate = Gate::new(Pace::declared(1), per_minute(60));
    let inner = wide();
    let held = gate.enter(&inner, SMALL).await;
    assert_eq!((gate.view().sent, gate.view().in_flight, gate.view().waits), (1, 1, None));
    let next = async { tokio::time::timeout(Duration::from_millis(5), gate.enter(&inner, SMALL)).await.is_err() };
    assert!(next.await);
    assert_eq!(gate.view().waits, Some(Waiting::Replies));
    drop(held);
    assert!(tokio::time::timeout(Duration::from_millis(5), gate.enter(&inner, SMALL)).await.is_err());
    assert_eq!(gate.view().waits, Some(Waiting::Rate));
    gate.failed(&fault(429, Some(seconds(7))), Instant::now(), &Announced::default(), &Patience::default());
    assert!(matches!(gate.view().waits, Some(Waiting::Pause(left, why)) if left > seconds(6) && why.contains("429")));
}
