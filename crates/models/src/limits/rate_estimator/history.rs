//! The requests that were sent recently, how many of a phase were refused, and what they show of a window longer than a
//! second, often of a minute: what fits may be sent at once, then nothing passes until the window ends.

use std::collections::VecDeque;

use super::bucket::Seconds;
use super::phase::{
    ALWAYS_REMEMBERED, FIRST_TEST, LAST, LONG_WAIT, MINUTE, MOST_BEFORE_TEST, MOST_REMEMBERED,
    NOTHING_LEFT, REMEMBERED, WINDOW,
};

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub id: u64,
    pub at: Seconds,
    pub amount: f64,
    /// The requests in flight when it was sent.
    pub others: u32,
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

/// What refusals showed of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The amount that fits, and the period.
    known: Option<(f64, Seconds)>,
    /// When the first request was sent that the present window counts.
    began: Seconds,
    /// A request beyond the window that tests whether it holds more.
    test: Option<u64>,
    /// The requests sent since the last test, and how many there are before the next.
    since_test: u32,
    before_test: u32,
}

impl Window {
    /// Nothing is known; the first request is sent now.
    pub(super) fn new(now: Seconds) -> Window {
        Window {
            known: None,
            began: now,
            test: None,
            since_test: 0,
            before_test: FIRST_TEST,
        }
    }

    /// When the window has room for `amount`; `None` if it has now.
    fn full_until(&self, amount: f64, history: &SentRequests, now: Seconds) -> Option<Seconds> {
        history.full_until(amount, self.known?, false, now)
    }

    /// When a request may be sent: now, or when the window has room. Now and then one more is sent as a test.
    pub(super) fn due(&self, amount: f64, history: &SentRequests, now: Seconds) -> Seconds {
        let Some(until) = self.full_until(amount, history, now) else {
            return now;
        };
        let may_test = self.test.is_none() && self.since_test >= self.before_test;
        let is_worthwhile = self
            .known
            .is_some_and(|(_, period)| until - now > 0.2 * period);
        if may_test && is_worthwhile {
            now
        } else {
            until
        }
    }

    /// Records a request before it enters `history`.
    pub(super) fn sent(&mut self, id: u64, amount: f64, history: &SentRequests, now: Seconds) {
        self.since_test += 1;
        if self.full_until(amount, history, now).is_some() {
            (self.test, self.since_test) = (Some(id), 0);
        }
    }

    /// Records an answer. If it answers a test, there is no such window.
    pub(super) fn succeeded(&mut self, id: u64) {
        if self.test == Some(id) {
            *self = Window::new(self.began);
        }
    }

    /// Whether the refused request was a test; then its refusal says nothing else.
    pub(super) fn refused_test(&mut self, id: u64) -> bool {
        let is_test = self.test == Some(id);
        if is_test {
            self.test = None;
            self.before_test = (2 * self.before_test).min(MOST_BEFORE_TEST);
        }
        is_test
    }

    /// The first refusal after requests that passed: the present window began a period ago at the earliest, or a little
    /// before, as its first request has left it just now.
    pub(super) fn refused(&mut self, history: &SentRequests, now: Seconds) {
        let period = self.known.map_or(MINUTE, |(_, period)| period);
        if self.known.is_some() || now - self.began > period {
            let first = history.after(now - period - WINDOW, false).next();
            self.began = first.map_or(now, |sent| sent.at);
        }
    }

    /// How long to wait after a streak of refusals that shows that nothing is left. A provider that refuses again after
    /// the wait that it asked for counts longer than it says.
    pub(super) fn wait(
        &self,
        streak: u32,
        asked: Option<Seconds>,
        round_trip: Seconds,
        now: Seconds,
    ) -> Seconds {
        let asked = asked.map_or(0.0, |asked| asked * 1.005 + 0.002);
        let wait = if asked > 0.0 && streak <= NOTHING_LEFT + 1 {
            asked
        } else {
            asked.max(0.4 * (now - self.began)).max(round_trip)
        };
        let known = self.known.map(|(_, period)| period);
        let ends = [MINUTE]
            .into_iter()
            .chain(known)
            .map(|period| self.began + period - now);
        ends.filter(|left| *left > 0.0)
            .map(|left| left.max(asked).max(round_trip))
            .fold(wait, f64::min)
    }

    /// A request was accepted that was sent at `at`, after nothing was from `refused_from` to `refused_until`.
    /// Returns whether that shows a window.
    pub(super) fn passed(
        &mut self,
        history: &SentRequests,
        refused: (Seconds, Seconds),
        at: Seconds,
    ) -> bool {
        let (from, until) = refused;
        let period = at - self.began;
        let sent = history
            .after(self.began - 1e-9, false)
            .take_while(|sent| sent.at < at);
        let amount = sent.map(|sent| sent.amount).sum::<f64>();
        // Where nothing was accepted, nothing tells what fits.
        let is_window = amount > 0.0 && at - from > LONG_WAIT && period > LONG_WAIT;
        if is_window {
            let fits =
                |period_of: &Seconds| until - self.began < *period_of && *period_of < period + 0.01;
            let period = Some(MINUTE).filter(fits).unwrap_or(period);
            self.known = Some((amount, period));
            (self.test, self.since_test) = (None, 0);
        }
        self.began = at;
        is_window
    }
}
