//! The start of the estimator, a rate that grows until a first refusal, and probes: after a refusal one request at a time
//! is sent, until one is not refused.

use super::bucket::Seconds;
use super::phase::{CONFIRMING, DOUBLING, FASTEST, NOTHING_LEFT, NOTICED};

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
