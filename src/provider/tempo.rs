//! A guess at a rate that nobody tells, for providers that refuse with a bare 429.
//!
//! A provider refuses when nothing is left. So between two such moments it let through exactly what it allows, and
//! the requests that passed in that stretch of time are the measure of its rate, whatever it lets come at once. The
//! stretch up to the first refusal tells less, since the provider began with a reserve: a part of its pace is taken.
//! After a cut the guess is raised slowly, then faster, and all the slower the more often a limit was confirmed.

use std::time::Duration;

use tokio::time::Instant;

use super::bucket::Bucket;

/// A careful beginning: besides those that may be under way at once, at most this many requests go out in the first
/// second, evenly, so that not too many are under way when the first is refused.
const AT_FIRST: f64 = 250.0;
const FIRST: Duration = Duration::from_secs(1);
/// After such a gap an unmeasured stretch begins anew.
const IDLE: Duration = Duration::from_secs(2);

/// Seconds of the guess that may go out at once.
const BURST_S: f64 = 0.1;
/// Refusals this soon after a cut belong to its episode; a shorter stretch would measure nothing.
const EPISODE: Duration = Duration::from_secs(1);
/// Of what was measured this much is used.
const USED_SHARE: f64 = 0.98;
const DEEPEST_CUT: f64 = 0.4;
/// Seconds of its rate that a provider is taken to hold in reserve at first.
const RESERVE_S: f64 = 1.0;
/// A shorter stretch measures badly: the pause at its beginning may have been longer than the provider saves up for.
const LONG_S: f64 = 5.0;
/// A cut to no less than this confirms the limit that was known.
const CONFIRMING: f64 = 0.8;
/// How long a refusal is remembered where a rate was told.
const DOUBT: Duration = Duration::from_secs(10);

/// The first raise after a measured cut, and after one that was not.
const CAREFUL_RAISE: f64 = 0.001;
const SEARCHING_RAISE: f64 = 0.03;
/// Every raise is larger than the one before, up to the last.
const RAISE_GROWTH: f64 = 1.2;
const LARGEST_RAISE: f64 = 0.08;
const RAISE_EVERY: Duration = Duration::from_secs(1);
const RAISE_AT_LEAST_EVERY: Duration = Duration::from_secs(8);

/// What passed, and the guess made of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tempo {
    /// For a careful beginning: requests that may go out at once.
    careful: Option<u32>,
    /// Since the last cut, or since the first request.
    stretch: Option<Stretch>,
    guess: Option<Guess>,
    /// Spreads what the provider says is left, where that is less than its rate: others use it up too.
    left: Option<Bucket>,
    /// When a rate that was told was met with a refusal.
    doubted: Option<Instant>,
}

/// Time in which requests passed.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    began: Instant,
    /// When the last request went out.
    last: Instant,
    /// Requests that went out and were not refused.
    passed: f64,
}

#[derive(Clone, Debug)]
struct Guess {
    per_second: f64,
    /// Keeps to it.
    bucket: Bucket,
    cut: Cut,
    raised: Instant,
    raise: f64,
    raise_every: Duration,
}

/// What the guess was made of; more refusals of the same episode correct it.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: Instant,
    /// The stretch that it ended.
    stretch: Stretch,
    /// The guess before.
    before: Option<f64>,
}

impl Tempo {
    /// For a provider whose rate is not known; `at_once` requests may be under way from the start.
    pub(super) fn careful(at_once: u32) -> Tempo {
        Tempo { careful: Some(at_once), ..Tempo::default() }
    }

    /// Requests a minute to keep to, once there was reason to guess.
    pub(super) fn per_minute(&self) -> Option<u64> {
        self.guess.as_ref().map(|guess| ((guess.per_second * 60.0) as u64).max(1))
    }

    /// How long the next request has to wait; zero if it may go. `is_told` if a rate is known without a guess.
    pub(super) fn wait(&mut self, now: Instant, is_told: bool) -> Duration {
        let is_open = !is_told && self.guess.is_none();
        match self.stretch.zip(self.careful) {
            Some((stretch, at_once)) if is_open && now < stretch.began + FIRST => {
                let more = (stretch.passed - f64::from(at_once)).max(0.0);
                let due = stretch.began + Duration::from_secs_f64(more / AT_FIRST);
                due.saturating_duration_since(now)
            }
            _ => self.buckets().map(|bucket| bucket.wait(1, now)).max().unwrap_or_default(),
        }
    }

    fn buckets(&mut self) -> impl Iterator<Item = &mut Bucket> {
        self.guess.iter_mut().map(|guess| &mut guess.bucket).chain(&mut self.left)
    }

    /// The provider says that `remaining` requests are left until `reset`, of `per_minute`.
    pub(super) fn left(&mut self, remaining: u64, reset: Duration, per_minute: u64, now: Instant) {
        let rate = 2.0 * remaining as f64 / reset.as_secs_f64().max(0.001) * 60.0;
        if rate >= per_minute as f64 {
            self.left = None;
        } else {
            self.left.get_or_insert_with(|| Bucket::new(rate, BURST_S, now)).set_rate(rate, now);
        }
    }

    /// A request goes out.
    pub(super) fn sent(&mut self, now: Instant) {
        self.buckets().for_each(|bucket| bucket.take(1));
        let is_idle = |stretch: &Stretch| self.guess.is_none() && now.duration_since(stretch.last) > IDLE;
        let stretch = self.stretch.filter(|stretch| !is_idle(stretch));
        let Stretch { began, passed, .. } = stretch.unwrap_or(Stretch { began: now, last: now, passed: 0.0 });
        self.stretch = Some(Stretch { began, last: now, passed: passed + 1.0 });
    }

    /// A request was answered; `is_short` if others wait for the rate.
    pub(super) fn served(&mut self, now: Instant, is_short: bool) {
        if let Some(guess) = &mut self.guess
            && is_short
            && now.duration_since(guess.raised) >= guess.raise_every
        {
            guess.set(guess.per_second * (1.0 + guess.raise), now);
            guess.raise = (guess.raise * RAISE_GROWTH).min(LARGEST_RAISE);
            guess.raised = now;
        }
    }

    /// A request sent at `sent` came too fast. Where a rate was told it is kept to, so one refusal is no reason to
    /// doubt it; a second one soon after is: others take their share of it.
    pub(super) fn refused(&mut self, sent: Instant, now: Instant, is_told: bool) {
        if let Some(guess) = self.guess.as_mut().filter(|guess| sent <= guess.cut.at) {
            guess.cut.stretch.passed -= 1.0;
            guess.set(guess.cut.guess(), now);
            return;
        }
        let Some(stretch) = &mut self.stretch else { return };
        stretch.passed -= 1.0;
        let doubted = self.doubted.filter(|first| now.duration_since(*first) <= DOUBT);
        if is_told && self.guess.is_none() && doubted.is_none_or(|first| sent <= first) {
            self.doubted = doubted.or(Some(now));
            return;
        }
        let same_episode = |guess: &Guess| stretch.passed < 1.0 || now.duration_since(guess.cut.at) < EPISODE;
        if self.guess.as_ref().is_some_and(same_episode) {
            return;
        }
        let cut = Cut { at: now, stretch: *stretch, before: self.guess.as_ref().map(|guess| guess.per_second) };
        self.guess = Some(Guess::after(cut, self.guess.as_ref().map(|guess| guess.raise_every)));
        self.stretch = Some(Stretch { began: now, last: now, passed: 0.0 });
    }
}

impl Cut {
    fn seconds(&self) -> f64 {
        self.at.duration_since(self.stretch.began).as_secs_f64().max(0.001)
    }

    /// What passed a second, from the beginning of the stretch to the cut.
    fn measured(&self) -> f64 {
        self.stretch.passed.max(1.0) / self.seconds()
    }

    fn guess(&self) -> f64 {
        match self.before {
            Some(before) => (self.measured() * USED_SHARE).clamp(before * DEEPEST_CUT, before * USED_SHARE),
            None => self.measured() * (self.seconds() / (self.seconds() + RESERVE_S)).max(0.5),
        }
    }
}

impl Guess {
    fn after(cut: Cut, raised_every: Option<Duration>) -> Guess {
        let per_second = cut.guess();
        let is_confirmed = cut.before.is_some_and(|before| per_second >= before * CONFIRMING);
        let raise_every = match raised_every {
            Some(every) if is_confirmed => (every * 2).min(RAISE_AT_LEAST_EVERY),
            _ => RAISE_EVERY,
        };
        let raise = if cut.before.is_some() && cut.seconds() >= LONG_S { CAREFUL_RAISE } else { SEARCHING_RAISE };
        let bucket = Bucket::new(per_second * 60.0, BURST_S, cut.at);
        Guess { per_second, bucket, cut, raised: cut.at, raise, raise_every }
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
    fn passed(tempo: &mut Tempo, start: Instant, per_second: u32, seconds: u32) -> Instant {
        let step = Duration::from_secs(1) / per_second;
        let times = (1..=per_second * seconds).map(|n| start + step * n);
        times.inspect(|now| tempo.sent(*now)).last().unwrap_or(start)
    }

    fn refused(tempo: &mut Tempo, now: Instant) {
        tempo.sent(now);
        tempo.refused(now, now, false);
    }

    #[test]
    fn the_first_refusal_allows_for_a_reserve_and_the_second_measures() {
        let (mut tempo, start) = (Tempo::default(), Instant::now());
        let now = passed(&mut tempo, start, 300, 1);
        assert_eq!(tempo.per_minute(), None);
        refused(&mut tempo, now);
        assert!((8900..9100).contains(&tempo.per_minute().unwrap()), "half of 300/s: {:?}", tempo.per_minute());
        let now = passed(&mut tempo, now, 100, 6);
        refused(&mut tempo, now);
        assert!((5800..5900).contains(&tempo.per_minute().unwrap()), "98% of 100/s: {:?}", tempo.per_minute());
    }

    #[test]
    fn an_episode_cuts_once_and_its_other_refusals_correct_the_cut() {
        let mut tempo = Tempo::default();
        let now = passed(&mut tempo, Instant::now(), 300, 1);
        refused(&mut tempo, now);
        let first = tempo.per_minute().unwrap();
        (0..150).for_each(|_| tempo.refused(now, now, false));
        assert_eq!(tempo.per_minute().unwrap(), first / 2, "half of what seemed to pass did not");
        refused(&mut tempo, now + Duration::from_millis(600));
        assert_eq!(tempo.per_minute().unwrap(), first / 2, "nothing passed since");
    }

    #[test]
    fn a_guess_is_raised_only_while_it_is_short_and_more_rarely_once_confirmed() {
        let mut tempo = Tempo::default();
        let mut now = passed(&mut tempo, Instant::now(), 300, 1);
        let mut raised = |is_short: bool| {
            refused(&mut tempo, now);
            let before = tempo.per_minute().unwrap();
            now = passed(&mut tempo, now, 100, 10);
            (1..=10).rev().for_each(|ago| tempo.served(now - Duration::from_secs(ago - 1), is_short));
            tempo.per_minute().unwrap() - before
        };
        assert_eq!(raised(false), 0);
        let raises: Vec<u64> = (0..4).map(|_| raised(true)).collect();
        assert!(raises[1] > raises[2] && raises[2] > raises[3] && raises[3] > 0, "{raises:?}");
    }

    #[test]
    fn without_any_request_there_is_no_guess() {
        let mut tempo = Tempo::default();
        tempo.refused(Instant::now(), Instant::now(), false);
        assert_eq!(tempo.per_minute(), None);
    }

    #[test]
    fn a_rate_that_was_told_is_doubted_at_the_second_refusal() {
        let told = |later: Duration| {
            let mut tempo = Tempo::default();
            let now = passed(&mut tempo, Instant::now(), 50, 5);
            tempo.refused(now, now, true);
            let soon = now + Duration::from_secs(1);
            tempo.refused(now, soon, true);
            assert_eq!(tempo.per_minute(), None, "the same episode");
            tempo.sent(now + later);
            tempo.refused(now + later, now + later, true);
            tempo.per_minute()
        };
        assert!(told(Duration::from_secs(1)).is_some());
        assert_eq!(told(Duration::from_secs(60)), None, "the first is forgotten");
    }

    #[test]
    fn what_is_left_is_spread_where_others_use_it_up_too() {
        let (mut tempo, now) = (Tempo::default(), Instant::now());
        tempo.left(90, Duration::from_secs(1), 6000, now);
        assert_eq!(tempo.wait(now, true), Duration::ZERO);
        tempo.left(5, Duration::from_secs(1), 6000, now);
        tempo.sent(now);
        assert_eq!(tempo.wait(now, true), Duration::from_millis(100), "twice five a second");
        tempo.left(90, Duration::from_secs(1), 6000, now);
        assert_eq!(tempo.wait(now, true), Duration::ZERO);
    }
}
