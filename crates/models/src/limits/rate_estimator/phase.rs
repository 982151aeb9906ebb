//! The phase of the estimator, and the constants of the control law.

use std::ops::RangeInclusive;

use super::pacer::Seconds;

/// The rate of the first requests, per second. It doubles in one round trip, but not in less or more time than this. A
/// faster start would send more in vain to a provider that accepts a few requests a second; a slower one costs short
/// runs more than a round trip.
pub(super) const START_RATE: f64 = 64.0;
pub(super) const DOUBLING: (Seconds, Seconds) = (0.01, 0.1);
pub(super) const FASTEST: f64 = 1e4;
/// After a pause of this length the start begins again.
pub(super) const IDLE: Seconds = 1.0;
/// After so few requests a second refusal in a row means a limit, because to look for more would cost a slow limit too
/// much.
pub(super) const SLOW: RangeInclusive<f64> = 0.5..=3.5;
/// Requests looked at after a first refusal. They mean a limit if so many of the first three that were sent after it was
/// known are refused, or more of all.
pub(super) const LOOKED_AT: u32 = 6;
pub(super) const CONFIRMING: u32 = 2;
/// How often the start continues above a first level that turned out too low.
pub(super) const RESTARTS: u32 = 3;

/// No more than the level is sent in this time, with a margin for the jitter of the network.
pub(super) const WINDOW: Seconds = 1.0;
pub(super) const MARGIN: Seconds = 0.01;
/// Requests are paced a little faster than the level, because the window holds it exactly; at an announced limit a
/// little slower, because nothing else holds that.
pub(super) const PACED: f64 = 1.02;
pub(super) const PACED_ANNOUNCED: f64 = 0.99;
/// How much later the requests of the start may have arrived than they were sent, at most.
pub(super) const LONGEST_LAG: Seconds = 0.25;
/// How long sent requests are remembered.
pub(super) const REMEMBERED: Seconds = 60.0;

/// The wait before a raise: the time that so many requests take, within these bounds. It doubles after each raise
/// that failed.
pub(super) const REQUESTS_PER_RAISE: f64 = 100.0;
pub(super) const HOLD: Seconds = 2.0;
pub(super) const LONGEST_WAIT: Seconds = 30.0;
pub(super) const LONGEST_HOLD: Seconds = 30.0;
pub(super) const LONGEST_SLOW_HOLD: Seconds = 60.0;
/// The same where refusals are noise, because a raise that failed by chance must not last, or where others may use the
/// limit, because what they leave must be found. Of fewer requests a second than this, too many would be refused so.
pub(super) const LONGEST_OFTEN_HOLD: Seconds = 8.0;
pub(super) const LEAST_OFTEN: f64 = 1.5;
/// For a first level: it may have been found too low.
pub(super) const LONGEST_FIRST_WAIT: Seconds = 10.0;
pub(super) const STEP: f64 = 0.04;
/// How long a changed level is watched before it is judged.
pub(super) const TRIAL: Seconds = 1.2;
/// So many requests at a lowered level, or so many refused, tell whether the level is still too high. Of fewer requests
/// none may be refused by chance.
pub(super) const TESTS: (u32, u32) = (60, 3);
/// A lowered level ended refusals if their share fell to this part of what it was, and had no influence on them if it is
/// still this part. The share before was noticed because it was large, so that by chance alone it is less afterwards.
pub(super) const ENDED: f64 = 0.2;
pub(super) const PERSISTED: f64 = 0.6;

/// One cut takes a level no lower than this share of it, and a little below what was accepted.
pub(super) const DEEPEST_CUT: f64 = 0.6;
pub(super) const CUT: f64 = 0.98;
/// A lowered level is tested at this share of it: were refusals still caused by the rate, they would end.
pub(super) const TESTED: f64 = 0.93;
/// A larger share of refusals is no noise.
pub(super) const MOST_NOISE: f64 = 0.08;
/// Of so many last requests, the share refused that lowers the level: without noise, and with it.
pub(super) const LAST: usize = 12;
pub(super) const NOTICED: f64 = 0.2;
pub(super) const NOTICED_IN_NOISE: f64 = 0.42;
/// So many requests at most are remembered until their fate is known.
pub(super) const MOST_UNANSWERED: usize = 1000;
/// The share, and number, that leaves no doubt: without noise, and with it.
pub(super) const CLEAR: f64 = 0.3;
pub(super) const CLEAR_IN_NOISE: f64 = 0.4;
pub(super) const CLEARLY_REFUSED: usize = 4;
/// Refused probes in a row after which nothing is left of the limit, and the wait that shows that its window is longer
/// than [`WINDOW`].
pub(super) const NOTHING_LEFT: u32 = 4;
pub(super) const LONG_WAIT: Seconds = 1.6;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Phase {
    #[default]
    Start,
    Hold,
    Raised {
        before: f64,
    },
    /// A test of whether a lower level ends the refusals.
    Lowered {
        before: f64,
        /// The level if it does.
        target: f64,
        /// The share that was refused before.
        share: f64,
    },
}

/// A first refusal in the start: is it a limit?
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstRefusal {
    pub id: u64,
    pub at: Seconds,
    /// Requests sent after it, the last of them when, and how many of them were refused.
    pub sent: u32,
    pub last: Seconds,
    pub refused: u32,
    /// The first request sent after it was known, and refusals among that and the next two.
    pub first_probe: u64,
    /// Few requests were accepted before it.
    pub is_slow: bool,
    /// The least and the most time that a refusal took.
    pub took: (Seconds, Seconds),
    pub refused_probes: u32,
}

impl FirstRefusal {
    /// How much later some requests arrive than others: those that opened a connection.
    pub(super) fn lag(&self) -> Seconds {
        (self.took.1 - self.took.0).min(LONGEST_LAG)
    }

    /// Counts a later refusal. Returns whether they mean a limit.
    pub(super) fn record_confirmation(&mut self, id: u64, took: Seconds) -> bool {
        self.took = (self.took.0.min(took), self.took.1.max(took));
        if id < self.id {
            return false;
        }
        self.refused += 1;
        self.refused_probes += u32::from(id >= self.first_probe && id < self.first_probe + 3);
        let most = CONFIRMING.max((NOTICED * f64::from(self.sent)) as u32);
        let is_slow = self.is_slow && id == self.first_probe;
        is_slow || self.refused > most || self.refused_probes >= CONFIRMING
    }
}

/// One request at a time, after a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrialRequest {
    /// Is sent at this time.
    Due(Seconds),
    /// Was sent as this request at this time.
    Sent(u64, Seconds),
}

/// Refused probes without an accepted one between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefusedRow {
    pub count: u32,
    pub began: Seconds,
    /// The level before it.
    pub level: f64,
}
