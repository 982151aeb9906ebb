//! Probes: after a refusal one request at a time is sent, until one is not refused.

use super::pacer::Seconds;
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

/// A probe that was taken for accepted because no refusal had come, and the probing before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub id: u64,
    pub at: Seconds,
    pub before: Probing,
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

    /// Ends the probing if the probe was sent `answered` ago: a refusal would mostly have come by now.
    pub(super) fn end_if_accepted(&mut self, answered: Seconds, now: Seconds) -> Option<Passed> {
        let Some(Probe::Sent(id, at)) = self.probe else {
            return None;
        };
        if now < at + answered {
            return None;
        }
        let passed = Passed {
            id,
            at,
            before: *self,
        };
        (self.probe, self.streak) = (None, 0);
        Some(passed)
    }

    /// Whether so many were refused that nothing is left of the limit.
    pub(super) fn found_nothing(&self) -> bool {
        self.streak >= NOTHING_LEFT
    }
}
