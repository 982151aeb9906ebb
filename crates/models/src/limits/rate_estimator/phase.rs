//! The phases of the estimator and the constants of the control law. In the start the rate grows until a first refusal;
//! after a refusal probes are sent, one request at a time, until one is not refused.

use std::ops::RangeInclusive;

use super::bucket::Seconds;

/// The rate of the first requests, per second. A faster start would have more requests refused by a provider that
/// accepts a few of them a second; a slower one costs short runs more than a round trip.
pub(super) const START_RATE: f64 = 64.0;
/// The least and the most time in which the rate of the start doubles. Between these bounds it takes one round trip.
pub(super) const DOUBLING: (Seconds, Seconds) = (0.01, 0.1);
/// The highest rate of the start.
pub(super) const FASTEST: f64 = 1e4;
/// After a pause of this length the start begins again.
pub(super) const IDLE: Seconds = 1.0;
/// If only this many requests were accepted before a refusal, a second refusal in a row means a limit. Looking for more
/// refusals would cost too much at a slow limit.
pub(super) const SLOW: RangeInclusive<f64> = 0.5..=3.5;
/// The number of requests that are looked at after a first refusal.
pub(super) const LOOKED_AT: u32 = 6;
/// They mean a limit if this many of the first three that were sent after the refusal was known are refused, or more than
/// this of all.
pub(super) const CONFIRMING: u32 = 2;

/// The numbers of requests in flight at a first refusal that are tried as a limit of requests at once. For others, a rate is
/// more likely, and a wrong trial costs a refusal.
pub(super) const AT_ONCE: RangeInclusive<u32> = 4..=10;
/// How long no more than these are tried at first.
pub(super) const PATIENCE: Seconds = 0.1;
/// The number of requests after which one more at once is tried.
pub(super) const REQUESTS_PER_SLOT: u32 = 50;

/// If everything was refused for this long, the first request that is accepted repeats the start. In a shorter time, others
/// may have used up a limit that they share with us.
pub(super) const OUTAGE: Seconds = 0.8;

/// No more than the level is sent in this time, with a margin for the jitter of the network.
pub(super) const WINDOW: Seconds = 1.0;
pub(super) const MARGIN: Seconds = 0.01;
/// Requests are paced a little faster than the level, because the window holds the level exactly. At an announced limit
/// they are paced a little slower, because nothing else holds that.
pub(super) const PACED: f64 = 1.02;
/// Seconds of a rate that may be sent at once.
pub(super) const BURST: Seconds = 0.03;
/// How much later the requests of the start may have arrived than they were sent, at most.
pub(super) const LONGEST_LAG: Seconds = 0.25;
/// How long sent requests are remembered: a window may be long.
pub(super) const REMEMBERED: Seconds = 600.0;
/// More requests than this would take megabytes: of those, only the ones sent in [`ALWAYS_REMEMBERED`] are kept.
pub(super) const MOST_REMEMBERED: usize = 16_000;
pub(super) const ALWAYS_REMEMBERED: Seconds = 5.0;

/// The wait before a raise: the time that [`REQUESTS_PER_RAISE`] requests take, within these bounds. It doubles after each
/// raise that failed.
pub(super) const REQUESTS_PER_RAISE: f64 = 100.0;
pub(super) const HOLD: Seconds = 2.0;
pub(super) const LONGEST_WAIT: Seconds = 30.0;
pub(super) const LONGEST_HOLD: Seconds = 30.0;
pub(super) const LONGEST_SLOW_HOLD: Seconds = 60.0;
/// [`LONGEST_HOLD`] where refusals are noise, because a raise that failed by chance must not delay the next one for long, or
/// where others may use the limit, because what they leave must be found.
pub(super) const LONGEST_OFTEN_HOLD: Seconds = 8.0;
/// At fewer requests a second than this, raises are rarer, because too large a share would be refused.
pub(super) const LEAST_OFTEN: f64 = 1.5;
/// [`LONGEST_WAIT`] for a first level, which may be too low.
pub(super) const LONGEST_FIRST_WAIT: Seconds = 10.0;
/// The wait before a raise of a first level of at least [`FAST`] requests a second. A start into a small bucket leaves a
/// level that is much too low, and at such a rate, a raise that fails costs few refusals.
pub(super) const FAST_FIRST_WAIT: Seconds = 1.6;
pub(super) const FAST: f64 = 14.0;
/// The part of the level by which it is raised.
pub(super) const STEP: f64 = 0.04;
/// How long a changed level is watched before it is judged.
pub(super) const TRIAL: Seconds = 1.2;
/// The number of requests at a lowered level, or of refused ones, that tells whether the level is still too high. Among
/// fewer requests, chance may leave none refused.
pub(super) const TESTS: (u32, u32) = (60, 3);
/// A lowered level ended the refusals if their share fell to this part of the share before.
pub(super) const ENDED: f64 = 0.2;
/// A lowered level had no influence on the refusals if their share is still this part of the share before. It is less than
/// 1, because the share before was noticed for being large, so by chance alone it is smaller afterwards.
pub(super) const PERSISTED: f64 = 0.6;

/// A cut lowers a level to no less than this part of it.
pub(super) const DEEPEST_CUT: f64 = 0.6;
/// A cut lowers a level to no more than this part of it.
pub(super) const CUT: f64 = 0.98;
/// A lowered level is tested at this part of it: if the rate caused the refusals, they end there.
pub(super) const TESTED: f64 = 0.93;
/// Refusals are noise only if they persist at this part of the level: where others use the limit, a smaller cut takes too
/// little off the rate of all to end the refusals.
pub(super) const LOWEST_TESTED: f64 = 0.75;
/// A larger share of refusals is not noise.
pub(super) const MOST_NOISE: f64 = 0.08;
/// The number of last requests of which the refused share is looked at.
pub(super) const LAST: usize = 12;
/// The refused share of the last requests that lowers the level, without noise and with it.
pub(super) const NOTICED: f64 = 0.2;
pub(super) const NOTICED_IN_NOISE: f64 = 0.42;
/// The refused share of the last requests that leaves no doubt, without noise and with it.
pub(super) const CLEAR: f64 = 0.3;
pub(super) const CLEAR_IN_NOISE: f64 = 0.4;
/// The least number of refused requests that leaves no doubt.
pub(super) const CLEARLY_REFUSED: usize = 4;
/// The number of refused probes in a row after which nothing is left of the limit.
pub(super) const NOTHING_LEFT: u32 = 4;
/// The wait that shows that the window of the limit is longer than [`WINDOW`].
pub(super) const LONG_WAIT: Seconds = 1.6;

/// How much longer than usual a refusal may take.
pub(super) const LATER: Seconds = 0.005;
/// How much later than the slowest refusal one may come, where a refusal that is taken for an answer costs a window.
pub(super) const MUCH_LATER: Seconds = 0.25;
/// The period of a window that is tried first, with a margin.
pub(super) const MINUTE: Seconds = 60.05;
/// How many requests are sent before a window is tested, at first and at most.
pub(super) const FIRST_TEST: u32 = 10;
pub(super) const MOST_BEFORE_TEST: u32 = 40;

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
        /// The level to hold if it does.
        target: f64,
        /// The share that was refused before.
        share: f64,
    },
}

/// The part by which a first level is raised, which may be far too low.
pub(super) const FIRST_STEP: f64 = 0.25;
/// [`FIRST_STEP`] at [`FAST`] requests a second and more.
pub(super) const FAST_FIRST_STEP: f64 = 0.36;

/// The rate of the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartRate {
    /// The rate with which the start begins; infinite for no start at all.
    pub first: f64,
    pub rate: f64,
    /// When it had this rate; `None` before it grew for the first time.
    pub at: Option<Seconds>,
}

impl StartRate {
    /// Doubles the rate for every `latency` that passed, within bounds.
    pub(super) fn grow(&mut self, latency: Seconds, now: Seconds) {
        let passed = now - self.at.replace(now).unwrap_or(now);
        let doublings = passed / latency.clamp(DOUBLING.0, DOUBLING.1);
        self.rate = (self.rate * doublings.exp2()).min(FASTEST.max(self.first));
    }

    /// From now on the rate grows from this one.
    pub(super) fn grow_from(&mut self, rate: f64, now: Seconds) {
        (self.rate, self.at) = (rate, Some(now));
    }
}

/// A first refusal in the start, which may mean a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstRefusal {
    pub id: u64,
    pub at: Seconds,
    /// The number of requests sent after it.
    pub sent: u32,
    /// When the last of them was sent.
    pub last: Seconds,
    /// How many of them were refused.
    pub refused: u32,
    /// The first request that was sent after the refusal was known.
    pub first_probe: u64,
    /// How many of that request and the next two were refused.
    pub refused_probes: u32,
    /// The requests in flight when it was sent.
    pub others: u32,
    /// Few requests were accepted before it.
    pub is_slow: bool,
    /// The least and the most time that a refusal took.
    pub took: (Seconds, Seconds),
}

impl FirstRefusal {
    /// Counts a later refusal. Returns whether the refusals mean a limit.
    pub(super) fn record_refusal(&mut self, id: u64, took: Seconds) -> bool {
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

/// A limit on the number of requests at once, as long as nothing contradicts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    /// The number that may be in flight.
    pub most: u32,
    /// The number that fitted before it was raised.
    pub fitted: u32,
    /// How long no more are tried.
    pub patience: Seconds,
}

impl AtOnce {
    /// `None` for a number that no such limit would have: others use the limit up, or it is a rate.
    pub(super) fn new(fitted: u32) -> Option<AtOnce> {
        AT_ONCE.contains(&fitted).then_some(AtOnce {
            most: fitted,
            fitted,
            patience: PATIENCE,
        })
    }

    /// Allows one more.
    pub(super) fn raised(self) -> AtOnce {
        AtOnce {
            most: self.most + 1,
            fitted: self.most,
            ..self
        }
    }

    /// Whether the limit explains the refusal of a request that was sent beside `others`. During a raise, it may have arrived
    /// after one that was sent later.
    pub(super) fn explains(self, others: u32) -> bool {
        others + (self.most - self.fitted) >= self.fitted
    }

    /// More than fitted were refused: no more are tried for a while.
    pub(super) fn lowered(self) -> AtOnce {
        AtOnce {
            most: self.fitted,
            patience: (2.0 * self.patience).min(LONGEST_HOLD),
            ..self
        }
    }
}

/// The one request that may be under way after a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probe {
    /// It is due at this time.
    Due(Seconds),
    /// It was sent with this id at this time.
    Sent(u64, Seconds),
}

/// The probe, and the refusals in a row before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    pub probe: Option<Probe>,
    pub streak: u32,
    /// When the streak began, and when its last request was sent.
    pub began: Seconds,
    pub last: Seconds,
    /// The level before the streak.
    pub level: f64,
}

impl Probing {
    /// Begins with a first refusal, at this level.
    pub(super) fn new(level: f64, now: Seconds) -> Probing {
        Probing {
            probe: Some(Probe::Due(now)),
            streak: 1,
            began: now,
            last: now,
            level,
        }
    }

    /// Records that a request is sent: the probe, if it is due.
    pub(super) fn sent(&mut self, id: u64, now: Seconds) {
        if let Some(Probe::Due(_)) = self.probe {
            self.probe = Some(Probe::Sent(id, now));
        }
    }

    /// Records that the probe, or a request after it, was refused. Earlier ones say nothing.
    pub(super) fn refused(&mut self, id: u64, round_trip: Seconds, now: Seconds) {
        if let Some(Probe::Sent(probe, at)) = self.probe
            && id >= probe
        {
            self.last = at;
            self.streak += 1;
            // Once nothing is left, the owner decides how long to wait.
            let round_trips = if self.found_nothing() {
                0.0
            } else {
                f64::from(1_u32 << self.streak)
            };
            self.probe = Some(Probe::Due(now + round_trip * round_trips));
        }
    }

    /// Whether so many were refused that nothing is left of the limit.
    pub(super) fn found_nothing(&self) -> bool {
        self.streak >= NOTHING_LEFT
    }
}
