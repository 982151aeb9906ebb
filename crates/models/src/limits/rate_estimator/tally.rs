//! How many requests were sent in a phase, and how many of them were refused.

use std::collections::VecDeque;

use super::pacer::Seconds;
use super::phase::{LAST, MOST_UNANSWERED};

/// Whether a request was refused; unknown until a round trip after it was sent.
#[derive(Clone, Copy, Debug)]
struct RequestFate {
    id: u64,
    at: Seconds,
    is_refused: bool,
}

/// Counts the requests of a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// The first request of the phase. Refusals of earlier ones say nothing about its level.
    pub first: u64,
    pub sent: u32,
    pub refused: u32,
    last: VecDeque<RequestFate>,
}

impl Tally {
    /// Of a phase that begins with this request.
    pub(super) fn from(first: u64) -> Tally {
        Tally { first, ..Tally::default() }
    }

    pub(super) fn count(&mut self, id: u64, at: Seconds) {
        self.sent += 1;
        if self.last.len() == MOST_UNANSWERED {
            self.last.pop_front();
        }
        self.last.push_back(RequestFate { id, at, is_refused: false });
    }

    /// Marks a request among the last ones as refused; whether it counts for the phase is up to the owner.
    pub(super) fn mark_refused(&mut self, id: u64) {
        if let Some(fate) = self.last.iter_mut().find(|fate| fate.id == id) {
            fate.is_refused = true;
        }
    }

    /// The share refused.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.sent.max(1))
    }

    /// Whether more was refused than this share of noise explains.
    pub(super) fn exceeds(&self, noise: f64, slack: f64) -> bool {
        let expected = noise * f64::from(self.sent);
        f64::from(self.refused) > expected + 2.0 * expected.sqrt() + slack
    }

    /// Of the last requests whose fate is known: how many were refused, and their share.
    pub(super) fn last_refused(&self, now: Seconds, round_trip: Seconds) -> (usize, f64) {
        let known = now - 0.9 * round_trip;
        let last = self.last.iter().rev().skip_while(|fate| fate.at > known).take(LAST);
        let count =
            |(count, refused): (usize, usize), fate: &RequestFate| (count + 1, refused + usize::from(fate.is_refused));
        let (count, refused) = last.fold((0, 0), count);
        (refused, refused as f64 / count.max(LAST / 2) as f64)
    }
}
