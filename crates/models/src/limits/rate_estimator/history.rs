//! The requests that were sent recently.

use std::collections::VecDeque;

use super::pacer::Seconds;

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

    /// What was sent after this time, and what was refused of it only if asked for.
    pub(super) fn after(&self, time: Seconds, with_refused: bool) -> impl Iterator<Item = &Sent> + Clone {
        let sent = self.0.iter().skip(self.0.partition_point(|sent| sent.at <= time));
        sent.filter(move |sent| with_refused || !sent.is_refused)
    }

    /// Forgets what was sent until this time.
    pub(super) fn forget(&mut self, time: Seconds) {
        while self.0.front().is_some_and(|sent| sent.at <= time) {
            self.0.pop_front();
        }
    }
}
