//! How many requests may be in flight: grows while the limit is used up and requests succeed, shrinks once per episode
//! of overload, never below one.

use std::time::Duration;

use tokio::time::Instant;

/// Where an undeclared limit starts.
const SLOW_START: f64 = 8.0;

/// The least time between two cuts, however many requests of one episode fail.
const EPISODE: Duration = Duration::from_secs(1);

/// An adaptive limit on concurrent requests (additive increase, multiplicative decrease).
#[derive(Clone, Debug, Default)]
pub(crate) struct ConcurrencyLimit {
    ceiling: f64,
    limit: f64,
    slow_start: bool,
    last_cut: Option<Instant>,
}

impl ConcurrencyLimit {
    /// The limit that the user declared, used from the first call.
    pub(crate) fn declared(ceiling: u32) -> ConcurrencyLimit {
        let ceiling = f64::from(ceiling.max(1));
        ConcurrencyLimit {
            ceiling,
            limit: ceiling,
            slow_start: false,
            last_cut: None,
        }
    }

    /// A slow start towards `ceiling`, doubling each round trip until the provider is overloaded.
    pub(crate) fn undeclared(ceiling: u32) -> ConcurrencyLimit {
        let limit = ConcurrencyLimit::declared(ceiling);
        ConcurrencyLimit {
            limit: SLOW_START.min(limit.ceiling),
            slow_start: true,
            ..limit
        }
    }

    /// Requests that may be in flight.
    pub(crate) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// Records a reply; `saturated` if other requests had to wait for its slot.
    pub(crate) fn succeeded(&mut self, saturated: bool) {
        if saturated {
            let step = if self.slow_start {
                1.0
            } else {
                1.0 / self.limit
            };
            self.limit = (self.limit + step).min(self.ceiling);
        }
    }

    /// Records that a request that was sent at `sent` met an overloaded provider. Requests sent before the last cut belong
    /// to the same episode.
    pub(crate) fn overloaded(&mut self, sent: Instant, now: Instant) {
        let same_episode = self
            .last_cut
            .is_some_and(|cut| sent <= cut || now.duration_since(cut) < EPISODE);
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
        assert_eq!(ConcurrencyLimit::declared(64).limit(), 64);
        assert_eq!(ConcurrencyLimit::declared(0).limit(), 1);
        assert_eq!(ConcurrencyLimit::undeclared(64).limit(), 8);
    }

    #[test]
    fn slow_start_doubles_each_round_and_growth_needs_saturation() {
        let mut limit = ConcurrencyLimit::undeclared(64);
        (0..8).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 16);
        (0..1000).for_each(|_| limit.succeeded(false));
        assert_eq!(limit.limit(), 16);
    }

    #[test]
    fn one_episode_of_overload_cuts_the_limit_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limit = ConcurrencyLimit::declared(100);
        (0..50).for_each(|_| limit.overloaded(at(0), at(10)));
        assert_eq!(limit.limit(), 70);
        limit.overloaded(at(5), at(5000));
        assert_eq!(limit.limit(), 70, "sent before the cut");
        limit.overloaded(at(4000), at(5000));
        assert_eq!(limit.limit(), 49);
        (0..49).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 49);
        (0..2).for_each(|_| limit.succeeded(true));
        assert_eq!(limit.limit(), 50, "one more for a whole round of answers");
    }

    proptest! {
        #[test]
        fn never_below_one_nor_above_the_ceiling(ceiling in 1u32..200, events in proptest::collection::vec(0u8..3, 0..500)) {
            let start = Instant::now();
            let mut limit = ConcurrencyLimit::undeclared(ceiling);
            for (index, event) in events.iter().enumerate() {
                let now = start + Duration::from_secs(2 * index as u64);
                match event {
                    0 => limit.succeeded(true),
                    1 => limit.succeeded(false),
                    _ => limit.overloaded(now, now),
                }
                prop_assert!((1..=ceiling).contains(&limit.limit()));
            }
        }
    }
}
