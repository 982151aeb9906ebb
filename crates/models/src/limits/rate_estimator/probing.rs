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
    streak: u32,
    /// When the streak began.
    pub began: Seconds,
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
        if let Some(Probe::Sent(probe, _)) = self.probe
            && id >= probe
        {
            self.streak += 1;
            let round_trips = f64::from(1_u32 << self.streak.min(10));
            self.probe = Some(Probe::Due(now + round_trip * round_trips));
        }
    }

    /// Ends the probing if the probe was sent `answered` ago: a refusal would have come by now.
    pub(super) fn end_if_accepted(&mut self, answered: Seconds, now: Seconds) {
        if let Some(Probe::Sent(_, at)) = self.probe
            && now >= at + answered
        {
            (self.probe, self.streak) = (None, 0);
        }
    }

    /// Whether so many were refused that nothing is left of the limit.
    pub(super) fn found_nothing(&self) -> bool {
        self.streak >= NOTHING_LEFT
    }
}
