//! Probes: after a refusal one request at a time is sent, until one is not refused.

use super::bucket::Seconds;
use super::phase::NOTHING_LEFT;

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
