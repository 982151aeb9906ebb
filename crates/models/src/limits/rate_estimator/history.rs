//! The requests that were sent recently, and how many requests of a phase were refused.

use std::collections::VecDeque;

use super::bucket::Seconds;
use super::phase::{ALWAYS_REMEMBERED, LAST, MOST_REMEMBERED, REMEMBERED};

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub id: u64,
    pub at: Seconds,
    pub amount: f64,
    pub is_refused: bool,
}

/// Requests in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(super) struct SentRequests(VecDeque<Sent>);

impl SentRequests {
    pub(super) fn push(&mut self, sent: Sent) {
        self.0.push_back(sent);
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Sent> {
        let at = self.position(id)?;
        self.0.get_mut(at)
    }

    /// Marks a request as refused and returns it.
    pub(super) fn refuse(&mut self, id: u64) -> Option<Sent> {
        let sent = self.get_mut(id)?;
        sent.is_refused = true;
        Some(*sent)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Sent> {
        self.position(id).and_then(|at| self.0.remove(at))
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.0.binary_search_by_key(&id, |sent| sent.id).ok()
    }

    /// The requests that were sent after `time`; refused ones only `with_refused`.
    pub(super) fn after(
        &self,
        time: Seconds,
        with_refused: bool,
    ) -> impl Iterator<Item = &Sent> + Clone {
        let sent = self
            .0
            .iter()
            .skip(self.0.partition_point(|sent| sent.at <= time));
        sent.filter(move |sent| with_refused || !sent.is_refused)
    }

    /// When `amount` more may be sent if a period allows `most`, or one request that is larger; `None` if it may be now.
    pub(super) fn full_until(
        &self,
        amount: f64,
        (most, period): (f64, Seconds),
        with_refused: bool,
        now: Seconds,
    ) -> Option<Seconds> {
        let recent = self.after(now - period, with_refused);
        let sum: f64 = recent.clone().map(|sent| sent.amount).sum();
        let mut excess = sum + amount - most.max(amount) * (1.0 + 1e-6);
        let mut until = None;
        for sent in recent {
            if excess <= 0.0 {
                break;
            }
            excess -= sent.amount;
            until = Some(sent.at + period + 1e-4);
        }
        until
    }

    /// The requests that were sent after this one and not refused.
    pub(super) fn after_id(&self, id: u64) -> impl Iterator<Item = &Sent> {
        let from = self.0.partition_point(|sent| sent.id <= id);
        self.0.iter().skip(from).filter(|sent| !sent.is_refused)
    }

    /// Of the last requests since `first` whose fate was known at this time: how many were refused, and their share.
    pub(super) fn last_refused(&self, first: u64, known: Seconds) -> (usize, f64) {
        let last = self.0.iter().rev().take_while(|sent| sent.id >= first);
        let last = last.skip_while(|sent| sent.at > known).take(LAST);
        let refused = last.clone().filter(|sent| sent.is_refused).count();
        (refused, refused as f64 / last.count().max(LAST / 2) as f64)
    }

    /// Forgets the requests that nothing needs any more.
    pub(super) fn forget(&mut self, now: Seconds) {
        while self.0.front().is_some_and(|sent| {
            let is_one_too_many = self.0.len() > MOST_REMEMBERED;
            now - sent.at
                >= if is_one_too_many {
                    ALWAYS_REMEMBERED
                } else {
                    REMEMBERED
                }
        }) {
            self.0.pop_front();
        }
    }
}

/// Counts the requests of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// The first request of the phase. Refusals of earlier ones say nothing about its level.
    pub first: u64,
    pub sent: u32,
    pub refused: u32,
}

impl Tally {
    /// The share refused.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.sent.max(1))
    }
}
