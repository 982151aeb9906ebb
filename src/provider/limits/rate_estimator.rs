//! Estimates a rate limit that no header announces, for providers that refuse with a bare 429.
//!
//! A provider refuses when nothing is left of its limit. Between two refusals it therefore let through exactly what it
//! allows, and the requests that passed in that period measure its rate, whatever burst it permits. The period up to
//! the first refusal measures less well, because the provider began with a full reserve; so only a part of that rate
//! is used. After a cut the estimate is raised slowly at first, then faster, and the more rarely the more often a
//! limit was confirmed.

use std::time::Duration;

use tokio::time::Instant;

use super::buckets::TokenBucket;

/// Slow start: besides those that may be in flight from the start, at most this many requests are sent in the first
/// second, evenly, so that not too many are in flight when the first is refused.
const SLOW_START_RATE: f64 = 250.0;
const SLOW_START: Duration = Duration::from_secs(1);
/// After such a gap the period up to the first refusal starts again.
const IDLE: Duration = Duration::from_secs(2);

/// Seconds of the estimated rate that may be sent as one burst.
const BURST_S: f64 = 0.1;
/// Refusals this soon after a cut belong to its episode; a shorter period would measure nothing.
const EPISODE: Duration = Duration::from_secs(1);
/// The share of a measured rate that is used.
const USED_SHARE: f64 = 0.98;
const DEEPEST_CUT: f64 = 0.4;
/// Seconds of its rate that a provider is assumed to hold in reserve at first.
const RESERVE_S: f64 = 1.0;
/// A shorter period measures badly: the pause at its start may have been longer than the provider accumulates its rate for.
const RELIABLE_S: f64 = 5.0;
/// A cut to no less than this share confirms the previous estimate.
const CONFIRMING: f64 = 0.8;
/// How long a refusal is remembered where a rate was announced.
const DOUBT: Duration = Duration::from_secs(10);

/// The first raise after a measured cut, and after one that was not.
const CAREFUL_RAISE: f64 = 0.001;
const SEARCHING_RAISE: f64 = 0.03;
/// Every raise is larger than the one before, up to the last.
const RAISE_GROWTH: f64 = 1.2;
const LARGEST_RAISE: f64 = 0.08;
const RAISE_EVERY: Duration = Duration::from_secs(1);
const RAISE_AT_LEAST_EVERY: Duration = Duration::from_secs(8);

/// Counts what passed, and derives an estimate from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    /// For a slow start: requests that may be in flight from the start.
    slow_start: Option<u32>,
    /// Since the last cut, or since the first request.
    period: Option<MeasurementPeriod>,
    estimate: Option<RateEstimate>,
    /// Spreads what remains of an announced limit where that is less than its rate, because other clients use it too.
    remaining: Option<TokenBucket>,
    /// When a request at an announced rate was refused.
    doubted: Option<Instant>,
}

/// Time in which requests passed.
#[derive(Clone, Copy, Debug)]
struct MeasurementPeriod {
    began: Instant,
    /// When the last request was sent.
    last: Instant,
    /// Requests sent and not refused.
    passed: f64,
}

#[derive(Clone, Debug)]
struct RateEstimate {
    per_second: f64,
    /// Enforces it.
    bucket: TokenBucket,
    cut: RateCut,
    raised: Instant,
    raise: f64,
    raise_every: Duration,
}

/// What an estimate was derived from; further refusals of the same episode correct it.
#[derive(Clone, Copy, Debug)]
struct RateCut {
    at: Instant,
    /// The measurement period that it ended.
    period: MeasurementPeriod,
    /// The previous estimate.
    before: Option<f64>,
}

impl RateEstimator {
    /// For a provider whose rate is unknown; `initial` requests may be in flight from the start.
    pub(crate) fn with_slow_start(initial: u32) -> RateEstimator {
        RateEstimator { slow_start: Some(initial), ..RateEstimator::default() }
    }

    /// The estimated requests per minute; `None` before the first refusal.
    pub(crate) fn per_minute(&self) -> Option<u64> {
        self.estimate.as_ref().map(|estimate| ((estimate.per_second * 60.0) as u64).max(1))
    }

    /// How long the next request has to wait; zero if it may be sent. `is_reported`: the provider announced a rate.
    pub(crate) fn wait(&mut self, now: Instant, is_reported: bool) -> Duration {
        let is_open = !is_reported && self.estimate.is_none();
        match self.period.zip(self.slow_start) {
            Some((period, initial)) if is_open && now < period.began + SLOW_START => {
                let more = (period.passed - f64::from(initial)).max(0.0);
                let due = period.began + Duration::from_secs_f64(more / SLOW_START_RATE);
                due.saturating_duration_since(now)
            }
            _ => self.buckets().map(|bucket| bucket.wait(1, now)).max().unwrap_or_default(),
        }
    }

    fn buckets(&mut self) -> impl Iterator<Item = &mut TokenBucket> {
        self.estimate.iter_mut().map(|estimate| &mut estimate.bucket).chain(&mut self.remaining)
    }

    /// The provider announced that `remaining` requests of `per_minute` are left until `reset`.
    pub(crate) fn remaining(&mut self, remaining: u64, reset: Duration, per_minute: u64, now: Instant) {
        let rate = 2.0 * remaining as f64 / reset.as_secs_f64().max(0.001) * 60.0;
        if rate >= per_minute as f64 {
            self.remaining = None;
        } else {
            self.remaining.get_or_insert_with(|| TokenBucket::new(rate, BURST_S, now)).set_rate(rate, now);
        }
    }

    /// Records that a request is sent.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.buckets().for_each(|bucket| bucket.take(1));
        let is_idle = |period: &MeasurementPeriod| self.estimate.is_none() && now.duration_since(period.last) > IDLE;
        let period = self.period.filter(|period| !is_idle(period));
        let MeasurementPeriod { began, passed, .. } =
            period.unwrap_or(MeasurementPeriod { began: now, last: now, passed: 0.0 });
        self.period = Some(MeasurementPeriod { began, last: now, passed: passed + 1.0 });
    }

    /// Records a reply; `is_rate_bound` if requests wait for the rate.
    pub(crate) fn succeeded(&mut self, now: Instant, is_rate_bound: bool) {
        if let Some(estimate) = &mut self.estimate
            && is_rate_bound
            && now.duration_since(estimate.raised) >= estimate.raise_every
        {
            estimate.set(estimate.per_second * (1.0 + estimate.raise), now);
            estimate.raise = (estimate.raise * RAISE_GROWTH).min(LARGEST_RAISE);
            estimate.raised = now;
        }
    }

    /// Records that a request sent at `sent` exceeded the rate. An announced rate is obeyed, so one refusal is no reason
    /// to doubt it; a second one soon after is, because other clients take their share of it.
    pub(crate) fn refused(&mut self, sent: Instant, now: Instant, is_reported: bool) {
        if let Some(estimate) = self.estimate.as_mut().filter(|estimate| sent <= estimate.cut.at) {
            estimate.cut.period.passed -= 1.0;
            estimate.set(estimate.cut.estimate(), now);
            return;
        }
        let Some(period) = &mut self.period else { return };
        period.passed -= 1.0;
        let doubted = self.doubted.filter(|first| now.duration_since(*first) <= DOUBT);
        if is_reported && self.estimate.is_none() && doubted.is_none_or(|first| sent <= first) {
            self.doubted = doubted.or(Some(now));
            return;
        }
        let same_episode =
            |estimate: &RateEstimate| period.passed < 1.0 || now.duration_since(estimate.cut.at) < EPISODE;
        if self.estimate.as_ref().is_some_and(same_episode) {
            return;
        }
        let cut =
            RateCut { at: now, period: *period, before: self.estimate.as_ref().map(|estimate| estimate.per_second) };
        self.estimate = Some(RateEstimate::after(cut, self.estimate.as_ref().map(|estimate| estimate.raise_every)));
        self.period = Some(MeasurementPeriod { began: now, last: now, passed: 0.0 });
    }
}

impl RateCut {
    fn seconds(&self) -> f64 {
        self.at.duration_since(self.period.began).as_secs_f64().max(0.001)
    }

    /// Requests per second from the beginning of the period to the cut.
    fn measured(&self) -> f64 {
        self.period.passed.max(1.0) / self.seconds()
    }

    fn estimate(&self) -> f64 {
        match self.before {
            Some(before) => (self.measured() * USED_SHARE).clamp(before * DEEPEST_CUT, before * USED_SHARE),
            None => self.measured() * (self.seconds() / (self.seconds() + RESERVE_S)).max(0.5),
        }
    }
}

impl RateEstimate {
    fn after(cut: RateCut, raise_interval: Option<Duration>) -> RateEstimate {
        let per_second = cut.estimate();
        let is_confirmed = cut.before.is_some_and(|before| per_second >= before * CONFIRMING);
        let raise_every = match raise_interval {
            Some(every) if is_confirmed => (every * 2).min(RAISE_AT_LEAST_EVERY),
            _ => RAISE_EVERY,
        };
        let raise = if cut.before.is_some() && cut.seconds() >= RELIABLE_S { CAREFUL_RAISE } else { SEARCHING_RAISE };
        let bucket = TokenBucket::new(per_second * 60.0, BURST_S, cut.at);
        RateEstimate { per_second, bucket, cut, raised: cut.at, raise, raise_every }
    }

    fn set(&mut self, per_second: f64, now: Instant) {
        self.per_second = per_second;
        self.bucket.set_rate(per_second * 60.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of `seconds` at `per_second`, from `start`, all of which pass.
    fn passed(estimator: &mut RateEstimator, start: Instant, per_second: u32, seconds: u32) -> Instant {
        let step = Duration::from_secs(1) / per_second;
        let times = (1..=per_second * seconds).map(|n| start + step * n);
        times.inspect(|now| estimator.sent(*now)).last().unwrap_or(start)
    }

    fn refused(estimator: &mut RateEstimator, now: Instant) {
        estimator.sent(now);
        estimator.refused(now, now, false);
    }

    #[test]
    fn the_first_refusal_allows_for_a_reserve_and_the_second_measures() {
        let (mut estimator, start) = (RateEstimator::default(), Instant::now());
        let now = passed(&mut estimator, start, 300, 1);
        assert_eq!(estimator.per_minute(), None);
        refused(&mut estimator, now);
        assert!((8900..9100).contains(&estimator.per_minute().unwrap()), "half of 300/s: {:?}", estimator.per_minute());
        let now = passed(&mut estimator, now, 100, 6);
        refused(&mut estimator, now);
        assert!((5800..5900).contains(&estimator.per_minute().unwrap()), "98% of 100/s: {:?}", estimator.per_minute());
    }

    #[test]
    fn an_episode_cuts_once_and_its_other_refusals_correct_the_cut() {
        let mut estimator = RateEstimator::default();
        let now = passed(&mut estimator, Instant::now(), 300, 1);
        refused(&mut estimator, now);
        let first = estimator.per_minute().unwrap();
        (0..150).for_each(|_| estimator.refused(now, now, false));
        assert_eq!(estimator.per_minute().unwrap(), first / 2, "half of what seemed to pass did not");
        refused(&mut estimator, now + Duration::from_millis(600));
        assert_eq!(estimator.per_minute().unwrap(), first / 2, "nothing passed since");
    }

    #[test]
    fn an_estimate_is_raised_only_while_requests_wait_and_more_rarely_once_confirmed() {
        let mut estimator = RateEstimator::default();
        let mut now = passed(&mut estimator, Instant::now(), 300, 1);
        let mut raised = |is_rate_bound: bool| {
            refused(&mut estimator, now);
            let before = estimator.per_minute().unwrap();
            now = passed(&mut estimator, now, 100, 10);
            (1..=10).rev().for_each(|ago| estimator.succeeded(now - Duration::from_secs(ago - 1), is_rate_bound));
            estimator.per_minute().unwrap() - before
        };
        assert_eq!(raised(false), 0);
        let raises: Vec<u64> = (0..4).map(|_| raised(true)).collect();
        assert!(raises[1] > raises[2] && raises[2] > raises[3] && raises[3] > 0, "{raises:?}");
    }

    #[test]
    fn without_any_request_there_is_no_estimate() {
        let mut estimator = RateEstimator::default();
        estimator.refused(Instant::now(), Instant::now(), false);
        assert_eq!(estimator.per_minute(), None);
    }

    #[test]
    fn an_announced_rate_is_doubted_at_the_second_refusal() {
        let announced = |later: Duration| {
            let mut estimator = RateEstimator::default();
            let now = passed(&mut estimator, Instant::now(), 50, 5);
            estimator.refused(now, now, true);
            let soon = now + Duration::from_secs(1);
            estimator.refused(now, soon, true);
            assert_eq!(estimator.per_minute(), None, "the same episode");
            estimator.sent(now + later);
            estimator.refused(now + later, now + later, true);
            estimator.per_minute()
        };
        assert!(announced(Duration::from_secs(1)).is_some());
        assert_eq!(announced(Duration::from_secs(60)), None, "the first is forgotten");
    }

    #[test]
    fn the_remainder_is_spread_where_other_clients_use_it_too() {
        let (mut estimator, now) = (RateEstimator::default(), Instant::now());
        estimator.remaining(90, Duration::from_secs(1), 6000, now);
        assert_eq!(estimator.wait(now, true), Duration::ZERO);
        estimator.remaining(5, Duration::from_secs(1), 6000, now);
        estimator.sent(now);
        assert_eq!(estimator.wait(now, true), Duration::from_millis(100), "twice five a second");
        estimator.remaining(90, Duration::from_secs(1), 6000, now);
        assert_eq!(estimator.wait(now, true), Duration::ZERO);
    }
}
