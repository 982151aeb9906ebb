//! How many requests may be under way at once: grows while it is used up and all goes well, shrinks once per episode
//! of overload, and never below one.

use std::time::Duration;

use tokio::time::Instant;

/// Where an undeclared limit starts.
const SLOW_START: f64 = 8.0;

/// Cuts at most this often, however many requests of one episode fail.
const EPISODE: Duration = Duration::from_secs(1);

/// Adaptive concurrency.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    ceiling: f64,
    limit: f64,
    slow_start: bool,
    last_cut: Option<Instant>,
}

impl Pace {
    /// The user's own number, used from the first call.
    pub(super) fn declared(ceiling: u32) -> Pace {
        let ceiling = f64::from(ceiling.max(1));
        Pace { ceiling, limit: ceiling, slow_start: false, last_cut: None }
    }

    /// A careful start towards `ceiling`, doubling each round trip until something gives.
    pub(super) fn undeclared(ceiling: u32) -> Pace {
        let ceiling = f64::from(ceiling.max(1));
        Pace { ceiling, limit: SLOW_START.min(ceiling), slow_start: true, last_cut: None }
    }

    /// Requests that may be under way.
    pub(super) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// A request was answered; `saturated` if others had to wait for its place.
    pub(super) fn served(&mut self, saturated: bool) {
        if saturated {
            let step = if self.slow_start { 1.0 } else { 1.0 / self.limit };
            self.limit = (self.limit + step).min(self.ceiling);
        }
    }

    /// A request that was sent at `sent` met an overloaded provider. What was sent before the last cut belongs to
    /// the same episode.
    pub(super) fn overloaded(&mut self, sent: Instant, now: Instant) {
        let same_episode = self.last_cut.is_some_and(|cut| sent <= cut || now.duration_since(cut) < EPISODE);
        if !same_episode {
            self.limit = (self.limit * 0.7).max(1.0);
            self.slow_start = false;
            self.last_cut = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_declared_number_is_used_from_the_first_call() {
        assert_eq!(Pace::declared(64).limit(), 64);
        assert_eq!(Pace::declared(0).limit(), 1);
        assert_eq!(Pace::undeclared(64).limit(), 8);
    }

    #[test]
    fn slow_start_doubles_each_round_and_growth_needs_saturation() {
        let mut pace = Pace::undeclared(64);
        (0..8).for_each(|_| pace.served(true));
        assert_eq!(pace.limit(), 16);
        (0..1000).for_each(|_| pace.served(false));
        assert_eq!(pace.limit(), 16);
    }

    #[test]
    fn an_episode_cuts_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::declared(100);
        (0..50).for_each(|_| pace.overloaded(at(0), at(10)));
        assert_eq!(pace.limit(), 70);
        pace.overloaded(at(5), at(5000));
        assert_eq!(pace.limit(), 70, "sent before the cut");
        pace.overloaded(at(4000), at(5000));
        assert_eq!(pace.limit(), 49);
        (0..49).for_each(|_| pace.served(true));
        assert_eq!(pace.limit(), 49);
        (0..2).for_each(|_| pace.served(true));
        assert_eq!(pace.limit(), 50, "one more for a whole round of answers");
    }

    proptest! {
        #[test]
        fn never_below_one_nor_above_the_ceiling(ceiling in 1u32..200, events in proptest::collection::vec(0u8..3, 0..500)) {
            let start = Instant::now();
            let mut pace = Pace::undeclared(ceiling);
            for (index, event) in events.iter().enumerate() {
                let now = start + Duration::from_secs(2 * index as u64);
                match event {
                    0 => pace.served(true),
                    1 => pace.served(false),
                    _ => pace.overloaded(now, now),
                }
                prop_assert!((1..=ceiling).contains(&pace.limit()));
            }
        }
    }
}
