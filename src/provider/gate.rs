//! The gate that requests pass at the provider's pace: first come, first served.
//!
//! Only the head of the queue looks at the limits, so thousands may wait for next to nothing and a large request is
//! not overtaken for ever. Two gates stand in a row: one for a model, which learns its limits from replies and holds
//! everyone back when the provider asks for it, and one for the account, which keeps what the user allowed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::api::ErrorClass;
use super::classify::{Fault, Pressure, Reach};
use super::headers::{Announced, Window};
use super::pace::Pace;
use super::rates::{Need, PerMinute, Rates};
use super::retry::Patience;
use super::standing::Waiting;
use super::tempo::Tempo;

/// A gate. All waiting is in `enter`; everything else returns at once.
#[derive(Debug)]
pub(super) struct Gate {
    /// The queue: tokio's mutex is fair.
    turn: tokio::sync::Mutex<()>,
    /// Rung when something changed that the head may wait for.
    changed: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pace: Pace,
    rates: Rates,
    /// What the provider told, or the user allowed.
    told: PerMinute,
    /// A guess where nothing was told, or where what was told is shared with others.
    tempo: Tempo,
    in_flight: u32,
    /// Someone waited for a place since the last answer.
    saturated: bool,
    paused_until: Option<Instant>,
    /// Failures in a row, whoever's.
    failures: u32,
    /// Whether the provider ever answered, whichever of its models.
    has_worked: Arc<AtomicBool>,
    /// Pauses in a row of our own choosing, without an answer between them.
    pauses: u32,
    /// Nothing gets through: one request at a time tries whether that is over.
    away: bool,
    /// Why the gate was closed last, in the provider's words.
    trouble: String,
    /// What the head of the queue waits for.
    head: Option<Obstacle>,
    sent: u64,
    answered: u64,
    used: Need,
}

/// What a gate tells of itself.
#[derive(Debug)]
pub(super) struct View {
    pub sent: u64,
    pub used: Need,
    pub in_flight: u32,
    pub allowed: PerMinute,
    pub waits: Option<Waiting>,
}

/// What the head of the queue has to wait for.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
    Pause(Duration),
    Rate(Duration),
    Place,
}

/// Leave to send one request; giving it back frees the place.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.gate.changed.notify_one();
    }
}

impl Gate {
    pub(super) fn new(pace: Pace, rates: PerMinute) -> Gate {
        let state = State {
            pace,
            rates: Rates::new(rates, Instant::now()),
            told: rates,
            tempo: Tempo::default(),
            in_flight: 0,
            saturated: false,
            paused_until: None,
            failures: 0,
            has_worked: Arc::default(),
            pauses: 0,
            away: false,
            trouble: String::new(),
            head: None,
            sent: 0,
            answered: 0,
            used: Need::default(),
        };
        Gate { turn: tokio::sync::Mutex::new(()), changed: Notify::new(), state: Mutex::new(state) }
    }

    /// The same for a model of a provider whose models share the knowledge that it works.
    pub(super) fn of_provider(self, has_worked: &Arc<AtomicBool>) -> Gate {
        self.state().has_worked = has_worked.clone();
        self
    }

    /// The same for a model whose rate nobody declared; `at_once` requests may be under way from the start.
    pub(super) fn beginning_carefully(self, at_once: u32) -> Gate {
        self.state().tempo = Tempo::careful(at_once);
        self
    }

    /// The failure that a call ends with, `waited` out or not. Where nothing gets through, what comes after would end
    /// the same way.
    pub(super) fn last_word(&self, fault: Fault, waited: bool) -> Fault {
        let state = self.state();
        let never = fault.reach == Reach::Unsent && !state.has_worked();
        let class =
            if fault.is_out() && (state.away && waited || never) { ErrorClass::Unreachable } else { fault.class };
        Fault { class, ..fault }
    }

    /// Requests that were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.state().answered
    }

    /// Whether nothing gets through.
    pub(super) fn is_away(&self) -> bool {
        self.state().away
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues here, then at `inner`, and gives leave to send. At most one request stands between the two.
    pub(super) async fn enter<'a>(&'a self, inner: &'a Gate, need: Need) -> (Pass<'a>, Pass<'a>) {
        let _turn = self.turn.lock().await;
        let pass = self.admit(need).await;
        let _inner_turn = inner.turn.lock().await;
        (pass, inner.admit(need).await)
    }

    async fn admit(&self, need: Need) -> Pass<'_> {
        loop {
            let obstacle = self.state().admit(need, Instant::now());
            match obstacle {
                Ok(()) => return Pass { gate: self },
                Err(Obstacle::Place) => self.changed.notified().await,
                Err(Obstacle::Pause(wait) | Obstacle::Rate(wait)) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.changed.notified() => {}
                    }
                }
            }
        }
    }

    /// A request was answered; `announced` are the limits its headers told.
    pub(super) fn served(&self, announced: &Announced) {
        let mut state = self.state();
        let saturated = std::mem::take(&mut state.saturated);
        state.pace.served(saturated);
        (state.failures, state.pauses, state.away) = (0, 0, false);
        state.answered += 1;
        state.has_worked.store(true, Ordering::Relaxed);
        let now = Instant::now();
        let is_short = matches!(state.head, Some(Obstacle::Rate(_)));
        state.tempo.served(now, is_short);
        state.learn(announced, now);
        drop(state);
        self.changed.notify_one();
    }

    /// A request that was sent at `sent` failed. Answers how long everyone is held back because of it, if at all.
    pub(super) fn failed(
        &self,
        fault: &Fault,
        sent: Instant,
        announced: &Announced,
        patience: &Patience,
    ) -> Option<Duration> {
        let mut state = self.state();
        let now = Instant::now();
        let too_fast = fault.pressure == Some(Pressure::TooFast);
        state.learn(announced, now);
        if too_fast {
            let is_told = state.told.requests.is_some();
            state.tempo.refused(sent, now, is_told);
            // The provider has nothing left for us, whatever our own count says.
            state.rates.at_most(Some(0), Some(0), Some(0), now);
        }
        if matches!(fault.pressure, Some(Pressure::TooMany | Pressure::Overloaded)) {
            state.pace.overloaded(sent, now);
        }
        let held = state.hold_back(fault, now, patience);
        drop(state);
        self.changed.notify_one();
        held
    }

    /// Corrects the tokens reserved for a request to those it used.
    pub(super) fn settle(&self, reserved: Need, used: Need) {
        let mut state = self.state();
        state.rates.settle(reserved, used);
        state.used = Need { input: state.used.input + used.input, output: state.used.output + used.output };
        drop(state);
        self.changed.notify_one();
    }

    /// How it is doing just now.
    pub(super) fn view(&self) -> View {
        let state = self.state();
        // What was told, also where it has to be shared.
        let allowed = PerMinute { requests: state.told.requests.or(state.tempo.per_minute()), ..state.told };
        View { sent: state.sent, used: state.used, in_flight: state.in_flight, allowed, waits: state.waits() }
    }
}

/// Failures in a row after which a provider that once worked counts as away.
const AWAY_AFTER: u32 = 5;

impl State {
    /// Lets a request through, or says what it has to wait for.
    fn admit(&mut self, need: Need, now: Instant) -> Result<(), Obstacle> {
        let admitted = self.find_way(need, now);
        self.head = admitted.err();
        if admitted.is_ok() {
            self.sent += 1;
            self.tempo.sent(now);
        }
        admitted
    }

    fn find_way(&mut self, need: Need, now: Instant) -> Result<(), Obstacle> {
        if let Some(left) = self.closed_for(now) {
            return Err(Obstacle::Pause(left));
        }
        // After a pause one request tries whether it is over.
        let places = if self.away || self.pauses > 0 { 1 } else { self.pace.limit() };
        if self.in_flight >= places {
            self.saturated = true;
            return Err(Obstacle::Place);
        }
        let wait = self.tempo.wait(now, self.told.requests.is_some());
        if !wait.is_zero() {
            return Err(Obstacle::Rate(wait));
        }
        self.rates.take(need, now).map_err(Obstacle::Rate)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Closes the gate if `fault` gives reason to. The pause is nobody's failed attempt: the provider asked for it, or
    /// it worked before and will again. One that never answered gets no such credit.
    fn hold_back(&mut self, fault: &Fault, now: Instant, patience: &Patience) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        self.trouble.clone_from(&fault.message);
        let asked = fault.wait.filter(|wait| fault.pressure.is_some() && *wait <= patience.wait_budget);
        // Somewhat later than asked, so that a clock that runs a little behind does not cost another refusal.
        let asked = asked.map(|wait| wait.mul_f64(1.02) + Duration::from_millis(1));
        self.away |= self.nothing_passes(fault);
        let own = matches!(fault.pressure, Some(Pressure::TooFast | Pressure::TooMany)) || self.away;
        let hold = asked.or_else(|| own.then(|| self.own_pause(now, patience)))?;
        let until = self.paused_until.map_or(now + hold, |until| until.max(now + hold));
        self.paused_until = Some(until);
        (asked.is_some() || self.has_worked()).then(|| until - now)
    }

    fn has_worked(&self) -> bool {
        self.has_worked.load(Ordering::Relaxed)
    }

    fn nothing_passes(&self, fault: &Fault) -> bool {
        self.has_worked() && self.failures >= AWAY_AFTER && fault.is_out()
    }

    /// Doubles with each pause in a row; what fails while the gate is closed anyway opens no new one.
    fn own_pause(&mut self, now: Instant, patience: &Patience) -> Duration {
        if let Some(left) = self.closed_for(now) {
            return left;
        }
        self.pauses = self.pauses.saturating_add(1);
        patience.back_off(self.pauses, 0.0)
    }

    fn closed_for(&self, now: Instant) -> Option<Duration> {
        self.paused_until?.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn waits(&self) -> Option<Waiting> {
        let trouble = || self.trouble.clone();
        match (self.closed_for(Instant::now()), self.head) {
            (left, _) if self.away => Some(Waiting::Away(left.unwrap_or_default(), trouble())),
            (Some(left), _) => Some(Waiting::Pause(left, trouble())),
            (None, Some(Obstacle::Rate(_))) => Some(Waiting::Rate),
            (None, Some(Obstacle::Place)) => Some(Waiting::Replies),
            (None, Some(Obstacle::Pause(_)) | None) => None,
        }
    }

    fn learn(&mut self, announced: &Announced, now: Instant) {
        let Announced { requests, tokens, input, output } = announced;
        let known = |old: Option<u64>, window: &Window| window.limit.filter(|limit| *limit > 0).or(old);
        let told = PerMinute {
            requests: known(self.told.requests, requests),
            tokens: known(self.told.tokens, tokens),
            input: known(self.told.input, input),
            output: known(self.told.output, output),
        };
        if told != self.told {
            self.told = told;
            self.rates.set(told, now);
        }
        self.rates.at_most(tokens.remaining, input.remaining, output.remaining, now);
        match *requests {
            Window { remaining: Some(0), reset: Some(reset), .. } => {
                self.paused_until = self.paused_until.max(Some(now + reset));
            }
            Window { remaining: Some(remaining), reset: Some(reset), limit: Some(limit) } => {
                self.tempo.left(remaining, reset, limit, now);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gate_trials.rs"]
mod trials;
