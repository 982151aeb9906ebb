//! A guess at a rate that nobody tells: where a provider refuses with a bare 429, the pace at which it did answer is
//! the best clue. Cut once per episode, raised slowly while all goes well.

use std::time::Duration;

use tokio::time::Instant;

/// Over how long the pace of answers is averaged.
const MEMORY_S: f64 = 2.0;

const FIRST_CUT: f64 = 0.9;
const LATER_CUT: f64 = 0.85;
const DEEPEST_CUT: f64 = 0.4;
/// How long a refusal is remembered where a rate was told.
const DOUBT: Duration = Duration::from_secs(10);
const RAISE: f64 = 1.01;
const RAISE_EVERY: Duration = Duration::from_secs(1);

/// The pace of answers, and the guess made of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tempo {
    /// Sum of answers, fading with `MEMORY_S`, as it stood at `at`.
    recent: f64,
    begun: Option<Instant>,
    at: Option<Instant>,
    guess: Option<Guess>,
    /// When a rate that was told was met with a refusal.
    doubted: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Guess {
    per_minute: f64,
    cut: Instant,
    raised: Instant,
}

impl Tempo {
    /// Requests a minute to keep to, once there was reason to guess.
    pub(super) fn per_minute(&self) -> Option<u64> {
        self.guess.map(|guess| (guess.per_minute as u64).max(1))
    }

    /// A request was answered. Answers whether the guess changed.
    pub(super) fn served(&mut self, now: Instant) -> bool {
        self.recent = self.faded(now) + 1.0;
        self.at = Some(now);
        self.begun = self.begun.or(Some(now));
        match &mut self.guess {
            Some(guess) if now.duration_since(guess.raised) >= RAISE_EVERY => {
                guess.per_minute *= RAISE;
                guess.raised = now;
                true
            }
            _ => false,
        }
    }

    /// A request sent at `sent` came too fast. What was sent before the last cut belongs to the same episode. Where
    /// a rate was told it is kept to, so one refusal is no reason to doubt it; a second one soon after is: others
    /// take their share of it. Answers whether the guess changed.
    pub(super) fn refused(&mut self, sent: Instant, now: Instant, is_told: bool) -> bool {
        let doubted = self.doubted.filter(|first| now.duration_since(*first) <= DOUBT);
        if is_told && self.guess.is_none() && doubted.is_none_or(|first| sent <= first) {
            self.doubted = doubted.or(Some(now));
            return false;
        }
        let Some(answered) = self.pace(now).map(|per_minute| per_minute * FIRST_CUT) else {
            return false;
        };
        let per_minute = match self.guess {
            Some(guess) if sent <= guess.cut => return false,
            // The pace of answers counts the pauses too, so it is trusted only so far.
            Some(Guess { per_minute, .. }) => answered.clamp(per_minute * DEEPEST_CUT, per_minute * LATER_CUT),
            None => answered,
        };
        self.guess = Some(Guess { per_minute: per_minute.max(1.0), cut: now, raised: now });
        true
    }

    fn faded(&self, now: Instant) -> f64 {
        let passed = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.recent * (-passed.as_secs_f64() / MEMORY_S).exp()
    }

    /// Answers a minute of late, also where there was less time than the memory reaches back; `None` before any.
    fn pace(&self, now: Instant) -> Option<f64> {
        let passed = now.saturating_duration_since(self.begun?).max(Duration::from_millis(1)).as_secs_f64();
        Some(self.faded(now) / (MEMORY_S * (1.0 - (-passed / MEMORY_S).exp())) * 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `seconds` of answers at `per_second`, from `start`.
    fn answered(tempo: &mut Tempo, start: Instant, per_second: u32, seconds: u32) -> Instant {
        let step = Duration::from_secs(1) / per_second;
        (1..=per_second * seconds)
            .map(|n| start + step * n)
            .inspect(|now| _ = tempo.served(*now))
            .last()
            .unwrap_or(start)
    }

    #[test]
    fn the_first_refusal_sets_the_pace_just_below_what_was_answered() {
        for seconds in [1, 10] {
            let mut tempo = Tempo::default();
            let now = answered(&mut tempo, Instant::now(), 100, seconds);
            assert_eq!(tempo.per_minute(), None);
            assert!(tempo.refused(now, now, false));
            let guess = tempo.per_minute().unwrap();
            assert!((5200..5700).contains(&guess), "{guess} after {seconds} s at 6,000 a minute");
        }
    }

    #[test]
    fn an_episode_cuts_once_and_good_times_raise_slowly() {
        let mut tempo = Tempo::default();
        let now = answered(&mut tempo, Instant::now(), 100, 5);
        assert!(tempo.refused(now, now, false));
        assert!(!tempo.refused(now, now + Duration::from_millis(100), false));
        let first = tempo.per_minute().unwrap();
        let now = answered(&mut tempo, now, 90, 10);
        let raised = tempo.per_minute().unwrap() as f64 / first as f64;
        assert!((1.08..1.12).contains(&raised), "{raised} in ten seconds");
        assert!(tempo.refused(now, now, false));
    }

    #[test]
    fn without_any_answer_there_is_no_guess() {
        let mut tempo = Tempo::default();
        assert!(!tempo.refused(Instant::now(), Instant::now(), false));
        assert_eq!(tempo.per_minute(), None);
    }

    #[test]
    fn a_rate_that_was_told_is_doubted_at_the_second_refusal() {
        let mut tempo = Tempo::default();
        let now = answered(&mut tempo, Instant::now(), 50, 5);
        assert!(!tempo.refused(now, now, true));
        let soon = now + Duration::from_secs(1);
        assert!(!tempo.refused(now, soon, true), "the same episode");
        assert!(tempo.refused(soon, soon, true));
        let much_later = soon + Duration::from_secs(60);
        let mut tempo = Tempo::default();
        answered(&mut tempo, now, 50, 5);
        assert!(!tempo.refused(soon, soon, true));
        assert!(!tempo.refused(much_later, much_later, true), "the first is forgotten");
    }
}
