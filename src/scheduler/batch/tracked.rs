//! What the batch lane keeps: batches that are open, and what came of their lines.

use std::time::Duration;

use crate::entries::OpenBatch;
use crate::plan::Action;
use crate::scheduler::budget::Reservation;
use crate::scheduler::execute::{ExecutedOutput, ExecutionError};
use base::locale::word;
use models::Limits;

/// An action that waits for a batch no longer.
pub(in crate::scheduler) struct EndedLine {
    pub(in crate::scheduler) action: Action,
    pub(in crate::scheduler) end: LineEnd,
}

#[expect(clippy::large_enum_variant, reason = "few at a time, and taken apart at once")]
pub(in crate::scheduler) enum LineEnd {
    /// It has an output, or none.
    Executed(Result<ExecutedOutput, ExecutionError>),
    /// It is begun again: in the next batch, or live where the task says so.
    Again { live: bool },
}

/// A batch that is not closed, as this process follows it.
pub(super) struct Tracked {
    pub(super) batch: OpenBatch,
    /// What the budget holds for it.
    pub(super) reservations: Vec<Reservation>,
    /// Its last known status, for people.
    pub(super) note: String,
    pub(super) was_polled: bool,
    /// Whether waiting cannot help: its results are gone, or belong to another key.
    pub(super) is_stuck: bool,
}

impl Tracked {
    pub(super) fn new(batch: OpenBatch, reservations: Vec<Reservation>) -> Tracked {
        let note =
            if batch.id.is_some() { "submitted" } else { word("not confirmed by the provider", "服务商未确认") };
        Tracked { batch, reservations, note: note.to_owned(), was_polled: false, is_stuck: false }
    }
}

/// The times of polling, all in proportion to the first wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollTimes(pub(super) Duration);

impl PollTimes {
    pub(super) fn from_limits(limits: Option<&Limits>) -> PollTimes {
        PollTimes(limits.map_or(Limits::BATCH_POLL, |limits| limits.batch_poll))
    }

    /// The wait before a poll, longer with each; at last 10 minutes where the first is 15 seconds.
    pub(super) fn wait(self, polls: u32) -> Duration {
        self.0.mul_f64(1.5_f64.powi(i32::try_from(polls.min(20)).unwrap_or(20))).min(self.0 * 40)
    }

    /// How long a batch may still turn up whose creation was not confirmed: an hour where only its results would name
    /// it, else 10 minutes.
    pub(super) fn confirmation(self, has_metadata: bool) -> Duration {
        self.0 * if has_metadata { 40 } else { 240 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_become_rare_and_never_stop() {
        let times = PollTimes::from_limits(None);
        assert_eq!((times.wait(0).as_secs(), times.wait(3).as_secs()), (15, 50));
        assert_eq!([times.wait(12), times.wait(1000)], [Duration::from_secs(600); 2]);
        assert_eq!([true, false].map(|known| times.confirmation(known).as_secs()), [600, 3600]);
    }
}
