//! Estimates a limit that was not declared, and keeps within a limit that a header announced.
//!
//! One estimator covers one kind of limit (requests, or a kind of token) of one limit group. Its owner passes the time in, and
//! sleeps. `docs/limits.md` explains the control law.
//!
//! 1. *Start*: the rate doubles every round trip. The first refusal slows it to one request at a time. Most refusals are
//!    noise, unless the next requests are refused too. A start in which nothing was accepted is repeated.
//! 2. *Hold*: the level is the amount accepted in the second before the limit showed. No second gets more than that;
//!    refused requests count too if the provider turns out to count them.
//! 3. *Raise* after a while without refusals. More refusals than the noise explains take the raise back.
//! 4. *Lower* when more is refused, to the accepted amount. If a much lower level changes nothing, refusals are noise.
//! 5. *At once*: what showed may be a limit of requests at once. As many as were in flight at the first refusal are, until
//!    fewer are refused or more are accepted. Then the level counts.
//! 6. *Probe*: after a refusal one request at a time. When four in a row are refused, all wait: until the provider says,
//!    or until a window ends. What fitted before and the time until a request passes are remembered as a [`Window`].
//!
//! What headers announce is a [`Budget`] on top, counted down with each request.

mod bucket;
mod history;
mod phase;

use bucket::Budget;
use history::{Sent, SentRequests, Tally, Window};
use phase::*;
use phase::{AtOnce, FirstRefusal, Probe, Probing, StartRate};

pub(crate) use bucket::{Bucket, Seconds};

/// The estimate of one limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    phase: Phase,
    /// When the phase began.
    since: Seconds,
    /// The requests of this phase.
    tally: Tally,

    start: StartRate,
    suspicion: Option<FirstRefusal>,
    /// Whether a single refusal may be noise.
    may_be_noise: bool,

    /// The amount per second that is sent.
    level: f64,
    /// The level at which refusals were last in excess.
    failed_level: f64,
    /// What the provider announced.
    budget: Option<Budget>,
    /// The level comes from the start: it was not lowered, and no raise of it failed.
    is_first: bool,
    /// A first level was raised early, and that failed.
    was_raised_early: bool,
    /// How long a level is held before it is raised, at least.
    hold: Seconds,
    /// The part of the level by which it is raised.
    step: f64,
    /// How much later than others some requests of the start arrived, because connections had to be opened.
    lag: Seconds,
    /// The share of requests that is refused whatever the rate.
    noise: f64,
    /// The share of requests that noise refuses during a raise.
    expected: f64,

    /// The requests that have not ended.
    in_flight: u32,
    /// `None` if nothing suggests a limit of requests at once, or something contradicts it.
    at_once: Option<AtOnce>,

    probing: Probing,
    blocked_until: Seconds,
    /// `None` before the first request.
    window: Option<Window>,
    /// When the first request was sent, until one is accepted.
    unaccepted_since: Option<Seconds>,

    history: SentRequests,
    next_id: u64,
    /// Requests before this one were sent before the last refusal was known.
    wave: u64,
    /// The provider counts refused requests too.
    counts_refused: bool,
    /// A level turned out too high. Others may use the limit, and may later leave more of it.
    may_be_shared: bool,
    last_sent: Option<Seconds>,
    /// Whether a request was ever answered.
    is_answered: bool,
    /// From a request to its refusal, smoothed; `None` before the first.
    round_trip: Option<Seconds>,
    /// The longest time from a request to its refusal, up to a second.
    slowest: Seconds,
    /// From a request to its reply, smoothed.
    latency: Seconds,
    /// The mean amount of a request, smoothed.
    mean: f64,
    /// Spreads requests evenly, with bursts of some milliseconds and at least one request.
    pacer: Bucket,
}

impl RateEstimator {
    /// For requests: starts slowly, or at once where the user declared a rate. A single refusal proves nothing.
    pub(crate) fn for_requests(is_declared: bool) -> RateEstimator {
        let first_rate = if is_declared {
            f64::INFINITY
        } else {
            START_RATE
        };
        RateEstimator::new(first_rate, true)
    }

    /// For tokens: there is no limit until the provider names one.
    pub(crate) fn for_tokens() -> RateEstimator {
        RateEstimator::new(f64::INFINITY, false)
    }

    fn new(first_rate: f64, may_be_noise: bool) -> RateEstimator {
        RateEstimator {
            start: StartRate {
                first: first_rate,
                rate: first_rate,
                at: None,
            },
            may_be_noise,
            level: f64::INFINITY,
            is_first: true,
            hold: HOLD,
            step: STEP,
            latency: DOUBLING.1,
            mean: 1.0,
            ..RateEstimator::default()
        }
    }

    /// The estimated amount per second; `None` before a limit showed.
    #[cfg(test)]
    pub(crate) fn level(&self) -> Option<f64> {
        (self.phase != Phase::Start).then_some(self.level)
    }

    /// How long refusals still hold all requests back; `None` if they do not.
    pub(crate) fn blocked(&self, now: Seconds) -> Option<Seconds> {
        (now < self.blocked_until).then_some(self.blocked_until - now)
    }

    /// How long a request of this amount has to wait; 0 if it may be sent now.
    pub(crate) fn wait(&mut self, amount: f64, now: Seconds) -> Seconds {
        self.history.forget(now);
        let due = match self.phase {
            Phase::Start => self.due_in_start(amount, now),
            _ => self
                .due_at_once(amount, now)
                .unwrap_or_else(|| self.due_at_level(amount, now).max(self.blocked_until)),
        };
        let budget = self
            .budget
            .as_ref()
            .map_or(0.0, |budget| budget.left.wait(amount, now));
        (due - now).max(budget).max(0.0)
    }

    /// When a request may be sent at this even rate.
    fn spread(&mut self, rate: f64, amount: f64, now: Seconds) -> Seconds {
        self.pacer.set(rate, (rate * BURST).max(self.mean), now);
        now + self.pacer.wait(amount, now)
    }

    fn due_in_start(&mut self, amount: f64, now: Seconds) -> Seconds {
        let round_trip = self.round_trip.unwrap_or_default();
        if let Some(suspicion) = self
            .suspicion
            .filter(|suspicion| suspicion.sent >= LOOKED_AT)
        {
            let answered = suspicion.last + 1.5 * round_trip;
            if now < answered {
                return answered;
            }
            self.noise = self
                .most_noise()
                .min(self.noise.max(1.0 / f64::from(self.tally.sent.max(20))));
            self.suspicion = None;
            self.start.grow_from(self.start.rate, now);
        }
        if self.suspicion.is_none() {
            match self.last_sent {
                Some(last) if now - last > IDLE => self.start.grow_from(self.start.first, now),
                _ => self.start.grow(self.latency, now),
            }
        }
        let due = self.spread(self.start.rate, amount, now);
        match self.suspicion {
            Some(suspicion) if self.noise == 0.0 => {
                due.max(suspicion.last + 1.2 * round_trip).max(suspicion.at)
            }
            _ => due,
        }
    }

    /// When a request may be sent if the limit is one of requests at once; `None` if the level decides, as it does now and
    /// then where no slot is free: what is accepted then shows that it is not.
    fn due_at_once(&mut self, amount: f64, now: Seconds) -> Option<Seconds> {
        let at_once = self.at_once?;
        if self.in_flight < at_once.most {
            self.start.grow(self.latency, now);
            return Some(self.spread(self.start.rate, amount, now));
        }
        if self.in_flight > at_once.most && now >= self.last_sent? + self.refusal_time() {
            self.at_once = None;
        }
        // What is as good as over would let all through at once.
        Some(self.since + at_once.patience).filter(|until| now + 1e-6 < *until)
    }

    /// How long after a request its refusal would mostly have come.
    fn refusal_time(&self) -> Seconds {
        1.25 * self.round_trip.unwrap_or_default() + LATER
    }

    fn due_at_level(&mut self, amount: f64, now: Seconds) -> Seconds {
        // Below one request in a window, only the pace holds the level.
        let pace = self.level * if self.level < self.mean { 1.0 } else { PACED };
        let mut due = self.spread(pace, amount, now);
        let mut answered = self.refusal_time();
        if self.probing.found_nothing() {
            answered = answered.max(self.slowest) + MUCH_LATER;
        }
        if let Some(Probe::Sent(_, at)) = self.probing.probe
            && now >= at + answered
        {
            self.probe_passed(at, now);
        }
        match self.probing.probe {
            Some(Probe::Sent(_, at)) => return due.max(at + answered),
            // The level says nothing of when a window ends.
            Some(Probe::Due(at)) if self.probing.found_nothing() => return at,
            Some(Probe::Due(at)) => due = due.max(at),
            None => {}
        }
        if self.level >= self.mean {
            let second = (self.level, self.second(now));
            let with_refused = self.counts_refused && self.noise == 0.0;
            let until = self.history.full_until(amount, second, with_refused, now);
            due = due.max(until.unwrap_or(due));
        }
        match &self.window {
            Some(window) => due.max(window.due(amount, &self.history, now)),
            None => due,
        }
    }

    /// The probe that was sent at `at` was not refused in time: a refusal would mostly have come by now.
    fn probe_passed(&mut self, at: Seconds, now: Seconds) {
        let before = self.probing;
        (self.probing.probe, self.probing.streak) = (None, 0);
        let was = (before.began, before.last);
        if before.found_nothing()
            && let Some(window) = &mut self.window
            && window.passed(&self.history, was, at)
        {
            self.set_level(before.level);
            self.enter(Phase::Hold, now);
        }
    }

    /// The time in which the level may be sent. What was sent in the start may have arrived later.
    fn second(&self, now: Seconds) -> Seconds {
        let window = WINDOW + MARGIN + self.lag;
        if now - self.since < window {
            window
        } else {
            WINDOW + MARGIN
        }
    }

    /// Records that a request is sent, and numbers it.
    pub(crate) fn sent(&mut self, amount: f64, now: Seconds) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if id == 0 {
            self.unaccepted_since = Some(now);
        }
        self.mean += (amount - self.mean) * if id == 0 { 1.0 } else { 0.1 };
        self.take(amount, now);
        let sent = Sent {
            id,
            at: now,
            amount,
            others: self.in_flight,
            is_refused: false,
        };
        if self.probing.probe.is_none() {
            self.window.get_or_insert_with(|| Window::new(now)).sent(
                id,
                amount,
                &self.history,
                now,
            );
        }
        self.history.push(sent);
        self.in_flight += 1;
        self.tally.sent += 1;
        self.last_sent = Some(now);
        if let Some(suspicion) = &mut self.suspicion {
            (suspicion.sent, suspicion.last) = (suspicion.sent + 1, now);
        }
        self.probing.sent(id, now);
        id
    }

    /// Takes an amount, or gives some back.
    fn take(&mut self, amount: f64, now: Seconds) {
        self.pacer.take(amount, now);
        if let Some(budget) = &mut self.budget {
            budget.left.take(amount, now);
        }
    }

    /// Records what the headers of the reply to a request announced: the amount per minute, and what is left of it with the
    /// time until it is whole again; `part` of both is ours.
    pub(crate) fn announced(
        &mut self,
        id: u64,
        limit: f64,
        rest: Option<(f64, Seconds)>,
        part: f64,
        now: Seconds,
    ) {
        if self.budget.is_none() {
            self.noise = 0.0;
        }
        let later = self.history.after_id(id).map(|sent| sent.amount).sum();
        let budget = Budget::new(id, limit, rest, part, later, now);
        let before = self.budget.as_ref();
        if before.is_none_or(|before| before.is_replaced_by(&budget)) {
            self.budget = Some(budget);
        }
    }

    /// Records that a request ended, for another reason than an answer or a refusal by this limit.
    pub(crate) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records that a request was answered.
    pub(crate) fn succeeded(&mut self, id: u64, now: Seconds) {
        self.ended();
        let first = self.history.after(Seconds::NEG_INFINITY, false).next();
        let refused_for = first
            .zip(self.unaccepted_since.take())
            .map_or(0.0, |(first, since)| first.at - since);
        if refused_for > OUTAGE && self.phase != Phase::Start && self.budget.is_none() {
            self.start_again(now);
        }
        if let Some(sent) = self.history.get_mut(id) {
            let weight = if self.is_answered { 0.3 } else { 1.0 };
            self.is_answered = true;
            self.latency += ((now - sent.at) - self.latency) * weight;
        }
        if let Some(window) = &mut self.window {
            window.succeeded(id);
        }
        self.judge(now);
    }

    /// Corrects the reserved amount of a request to the used one.
    pub(crate) fn settle(&mut self, id: u64, reserved: f64, used: f64) {
        self.take(used - reserved, Seconds::NEG_INFINITY);
        if let Some(sent) = self.history.get_mut(id) {
            sent.amount = used;
        }
    }

    /// Records that another limit refused the request, so that it took nothing of this one.
    pub(crate) fn withdrawn(&mut self, id: u64) {
        if let Some(sent) = self.history.remove(id) {
            self.take(-sent.amount, Seconds::NEG_INFINITY);
        }
    }

    /// Records that this limit refused a request; `asked` is how long the provider asks to wait.
    pub(crate) fn refused(&mut self, id: u64, now: Seconds, asked: Option<Seconds>) {
        self.ended();
        let Some(sent) = self.history.refuse(id) else {
            return;
        };
        let before = self.round_trip.unwrap_or(now - sent.at);
        self.round_trip = Some(before + 0.2 * (now - sent.at - before));
        self.slowest = self.slowest.max((now - sent.at).min(WINDOW));
        if self.phase == Phase::Start {
            return self.refused_in_start(sent, now);
        }
        if self
            .window
            .as_mut()
            .is_some_and(|window| window.refused_test(id))
        {
            return;
        }
        if let Some(at_once) = self.at_once.filter(|_| id >= self.wave) {
            return self.refused_at_once(at_once, sent.others, now);
        }
        self.refused_probe(id, now, asked);
        if self.probing.found_nothing() {
            return;
        }
        // Without noise, refusals that come together have one cause.
        let is_late = id < self.wave;
        if !is_late {
            self.wave = self.next_id;
        }
        if id < self.tally.first || is_late && self.noise == 0.0 {
            if self.phase == Phase::Hold && self.is_first && now - self.since < 3.0 * before {
                self.set_level(self.level - sent.amount);
            }
            return;
        }
        if self.is_explained_by_refused(sent) {
            self.counts_refused = true;
            return;
        }
        self.tally.refused += 1;
        self.refused_at_level(now);
    }

    /// Whether a refusal at the level proves only that the provider counts refused requests too.
    fn is_explained_by_refused(&self, refused: Sent) -> bool {
        let is_new = self.phase == Phase::Hold && !self.counts_refused && self.noise == 0.0;
        let until_it = self
            .history
            .after(refused.at - WINDOW, true)
            .take_while(|sent| sent.id <= refused.id);
        is_new && until_it.map(|sent| sent.amount).sum::<f64>() > self.level
    }

    fn refused_in_start(&mut self, Sent { id, at, others, .. }: Sent, now: Seconds) {
        let took = now - at;
        if let Some(suspicion) = &mut self.suspicion {
            if suspicion.record_refusal(id, took) {
                self.begin_holding(now);
            }
        } else if self.may_be_noise {
            let is_slow = self.noise == 0.0 && SLOW.contains(&(self.accepted(now) / self.mean));
            self.suspicion = Some(FirstRefusal {
                id,
                at: now,
                sent: u32::try_from(self.next_id - id - 1).unwrap_or(u32::MAX),
                last: self.last_sent.unwrap_or(now),
                refused: 0,
                first_probe: self.next_id,
                refused_probes: 0,
                others,
                is_slow,
                took: (took, took),
            });
        } else {
            self.begin_holding(now);
        }
    }

    /// A limit showed: it allows the amount that was accepted in the last window. If that is nothing, others have used the
    /// limit up, and it says nothing about the rate.
    fn begin_holding(&mut self, now: Seconds) {
        self.set_level(self.accepted(now).max(self.mean / WINDOW));
        let first = self.suspicion.take();
        let took = first.map(|first| first.took);
        // How much later than others those requests arrive that open a connection.
        self.lag = took.map_or(0.0, |(least, most)| (most - least).min(LONGEST_LAG));
        (self.wave, self.is_first) = (self.next_id, true);
        self.at_once = first
            .filter(|_| self.noise == 0.0)
            .and_then(|first| AtOnce::new(first.others));
        // At first so slowly that a refusal is known before two more are sent.
        self.start.grow_from(0.5 / self.refusal_time(), now);
        self.enter(Phase::Hold, now);
    }

    /// A refusal beyond the number that fitted takes a raise back. Another one shows that the number is not what is limited.
    fn refused_at_once(&mut self, at_once: AtOnce, others: u32, now: Seconds) {
        self.wave = self.next_id;
        self.at_once = at_once.explains(others).then(|| at_once.lowered());
        self.enter(Phase::Hold, now);
    }

    /// Allows one more at once after enough requests, if all slots are used.
    fn raise_at_once(&mut self, at_once: AtOnce, now: Seconds) {
        if self.tally.sent >= REQUESTS_PER_SLOT && self.in_flight + 1 >= at_once.most {
            self.at_once = Some(at_once.raised());
            self.enter(Phase::Hold, now);
        }
    }

    fn refused_probe(&mut self, id: u64, now: Seconds, asked: Option<Seconds>) {
        if self.probing.probe.is_some() {
            self.probing
                .refused(id, self.round_trip.unwrap_or_default(), now);
        } else if id >= self.wave && self.noise == 0.0 {
            self.probing = Probing::new(self.level, now);
            if let Some(window) = &mut self.window {
                window.refused(&self.history, now);
            }
        }
        if let Some(window) = self.window.filter(|_| self.probing.found_nothing()) {
            let round_trip = self.round_trip.unwrap_or_default();
            let wait = window.wait(self.probing.streak, asked, round_trip, now);
            self.blocked_until = self.blocked_until.max(now + wait);
        }
    }

    fn refused_at_level(&mut self, now: Seconds) {
        match self.phase {
            Phase::Raised { before }
                if self.is_excess(if self.noise == 0.0 { 0.5 } else { 1.5 }) =>
            {
                self.failed_level = before * (1.0 + STEP);
                self.set_level(before);
                self.settle_down(now);
            }
            Phase::Hold
                if self.is_excess(1.5) || self.share_of_last(now) > self.noticed_share() =>
            {
                self.failed_level = self.level;
                let share = f64::from(self.tally.refused) / f64::from(self.tally.sent.max(12));
                let share = share.max(self.share_of_last(now));
                if self.is_clear(now) {
                    let passing = (1.0 - self.share_of_last(now)).max(DEEPEST_CUT);
                    let most = if self.noise == 0.0 { passing } else { 1.0 };
                    self.set_level(self.cut(now).min(self.level * most));
                    self.enter(Phase::Hold, now);
                } else {
                    self.test_lower(self.level, share, now);
                }
                (self.is_first, self.step, self.may_be_shared) = (false, STEP, true);
            }
            Phase::Lowered { .. } if self.is_clear(now) => {
                // Where nothing was accepted, others or a window took all, and it says nothing about the rate.
                let (most, accepted) = (self.level * DEEPEST_CUT, self.accepted(now));
                self.set_level(if accepted > 0.0 {
                    accepted.min(most)
                } else {
                    most
                });
                self.enter(Phase::Hold, now);
            }
            Phase::Lowered { before, .. } => {
                let share = self.share_of_last(now);
                if self.tally.sent >= 8 && share > self.noticed_share() {
                    self.test_lower(before, share, now);
                }
            }
            _ => {}
        }
    }

    /// The next lower level: the accepted amount, within bounds.
    fn cut(&self, now: Seconds) -> f64 {
        self.accepted(now)
            .clamp(self.level * DEEPEST_CUT, self.level * CUT)
    }

    fn test_lower(&mut self, before: f64, share: f64, now: Seconds) {
        let target = self
            .cut(now)
            .max(self.level * (1.0 - share).clamp(DEEPEST_CUT, CUT));
        self.set_level(target * TESTED);
        self.enter(
            Phase::Lowered {
                before,
                target,
                share,
            },
            now,
        );
    }

    /// The level is known better now: the next raise waits longer.
    fn settle_down(&mut self, now: Seconds) {
        if self.is_fast_first() {
            // Few requests tell little.
            self.was_raised_early = true;
            return self.enter(Phase::Hold, now);
        }
        self.hold = (self.hold * 2.0).min(self.longest_hold());
        (self.is_first, self.step) = (false, STEP);
        self.enter(Phase::Hold, now);
    }

    /// Ends the phase if it has lasted long enough. Called at each reply.
    fn judge(&mut self, now: Seconds) {
        let lasted = now - self.since;
        let has_tested = self.tally.sent >= TESTS.0 || self.tally.refused >= TESTS.1;
        match self.phase {
            Phase::Raised { .. } if lasted >= TRIAL && self.tally.sent >= 3 => {
                if self.level > 1.1 * self.failed_level {
                    self.step = (self.step * 2.0).min(1.0);
                    self.hold = (self.hold / 2.0).max(HOLD);
                }
                self.raise(now);
            }
            Phase::Lowered {
                before,
                target,
                share,
            } if lasted >= self.longest_hold() || lasted >= TRIAL && has_tested => {
                self.judge_lowered(before, target, share, now);
            }
            Phase::Hold if lasted >= self.time_to_raise() => {
                if let Some(at_once) = self.at_once {
                    return self.raise_at_once(at_once, now);
                }
                self.learn_noise();
                self.raise(now);
            }
            _ => {}
        }
    }

    /// Judges whether a lower level ended the refusals. If it only made them fewer, it is still too high. If it changed
    /// nothing, the lowest tested level tells whether they are noise; if so, the level before all tests is restored.
    fn judge_lowered(&mut self, before: f64, target: f64, share: f64, now: Seconds) {
        let (seen, lowest) = (self.tally.share(), before * LOWEST_TESTED);
        let persists = seen >= PERSISTED * share && seen <= MOST_NOISE;
        if seen <= ENDED * share {
            self.learn_noise();
            self.set_level(target);
            self.settle_down(now);
        } else if persists && self.noise == 0.0 && self.level > lowest {
            self.set_level(lowest);
            self.enter(
                Phase::Lowered {
                    before,
                    target,
                    share: seen,
                },
                now,
            );
        } else if persists {
            self.noise = self.most_noise().min(self.noise.max(seen));
            self.set_level(before);
            self.enter(Phase::Hold, now);
        } else {
            self.test_lower(before, seen, now);
        }
    }

    /// Forgets what refusals showed while nothing was accepted: they say nothing about the rate.
    fn start_again(&mut self, now: Seconds) {
        *self = RateEstimator {
            history: std::mem::take(&mut self.history),
            pacer: self.pacer,
            next_id: self.next_id,
            wave: self.next_id,
            mean: self.mean,
            round_trip: self.round_trip,
            latency: self.latency,
            last_sent: self.last_sent,
            ..RateEstimator::new(self.start.first, self.may_be_noise)
        };
        self.start.grow_from(self.start.first, now);
        self.enter(Phase::Start, now);
    }

    /// Whether a failed raise says little: refusals may be chance, or others use the limit now and stop later.
    fn is_raised_often(&self) -> bool {
        self.noise > 0.0 || self.may_be_shared && self.level >= LEAST_OFTEN * self.mean
    }

    fn longest_hold(&self) -> Seconds {
        if self.is_raised_often() {
            LONGEST_OFTEN_HOLD
        } else {
            LONGEST_HOLD
        }
    }

    fn time_to_raise(&self) -> Seconds {
        let held = self.hold / HOLD;
        if self.is_raised_often() {
            return if held <= 1.0 && self.noise > 0.0 {
                0.5
            } else {
                self.hold
            };
        }
        if self.is_fast_first() {
            return FAST_FIRST_WAIT;
        }
        if self.is_first && self.was_raised_early {
            return LONGEST_FIRST_WAIT;
        }
        let longest = if self.is_first {
            LONGEST_FIRST_WAIT
        } else {
            LONGEST_WAIT
        };
        let wait = (REQUESTS_PER_RAISE * self.mean / self.level).min(longest) * held;
        self.hold.max(wait.min(LONGEST_SLOW_HOLD))
    }

    /// Whether the level is a first one that is raised early.
    fn is_fast_first(&self) -> bool {
        self.is_first && !self.was_raised_early && self.level >= FAST * self.mean
    }

    /// Tries a higher level if this one is used.
    fn raise(&mut self, now: Seconds) {
        let before = self.level;
        let is_used = self.accepted(now) >= 0.8 * before - self.mean;
        let step = match self.is_first {
            true if self.is_fast_first() => self.step.max(FAST_FIRST_STEP),
            true => self.step.max(FIRST_STEP),
            false => self.step,
        };
        let raised = before + (step * before).max(self.mean.min(before));
        if !is_used || raised <= before {
            return self.enter(Phase::Hold, now);
        }
        let seen = if self.tally.sent >= 20 {
            self.tally.share().min(self.most_noise())
        } else {
            0.0
        };
        self.expected = if self.noise == 0.0 {
            0.0
        } else {
            self.noise.max(seen)
        };
        self.set_level(raised);
        self.enter(Phase::Raised { before }, now);
    }

    fn enter(&mut self, phase: Phase, now: Seconds) {
        (self.phase, self.since) = (phase, now);
        self.tally = Tally {
            first: self.next_id,
            ..Tally::default()
        };
    }

    /// Sets the level to at least one request a minute.
    fn set_level(&mut self, level: f64) {
        let least = self.mean / 60.0;
        self.level = level.max(least);
    }

    /// The largest share of refusals that may be noise: none at an announced limit, because others use that too.
    fn most_noise(&self) -> f64 {
        if self.budget.is_some() {
            0.0
        } else {
            MOST_NOISE
        }
    }

    /// The refused share of the last requests that lowers the level.
    fn noticed_share(&self) -> f64 {
        if self.noise == 0.0 {
            NOTICED
        } else {
            NOTICED_IN_NOISE
        }
    }

    /// Whether more was refused in this phase than the noise explains.
    fn is_excess(&self, slack: f64) -> bool {
        let noise = if matches!(self.phase, Phase::Raised { .. }) {
            self.expected
        } else {
            self.noise
        };
        let expected = noise * f64::from(self.tally.sent);
        f64::from(self.tally.refused) > expected + 2.0 * expected.sqrt() + slack
    }

    /// How many of the last requests of this phase were refused, and their share.
    fn last_refused(&self, now: Seconds) -> (usize, f64) {
        let known = now - 0.9 * self.round_trip.unwrap_or_default();
        self.history.last_refused(self.tally.first, known)
    }

    fn share_of_last(&self, now: Seconds) -> f64 {
        self.last_refused(now).1
    }

    /// Whether so many of the last requests were refused that it cannot be noise.
    fn is_clear(&self, now: Seconds) -> bool {
        let (refused, share) = self.last_refused(now);
        let clear = if self.noise == 0.0 {
            CLEAR
        } else {
            CLEAR_IN_NOISE
        };
        refused >= CLEARLY_REFUSED && share > clear
    }

    /// Corrects known noise by the share refused in this phase.
    fn learn_noise(&mut self) {
        let sent = f64::from(self.tally.sent);
        if self.noise > 0.0 {
            self.noise += (self.tally.share() - self.noise) * sent / (sent + 100.0);
        }
        self.noise = self.noise.min(self.most_noise());
    }

    /// The amount accepted per second. At a slow rate it is measured over the time of a few requests.
    fn accepted(&self, now: Seconds) -> f64 {
        let is_fast = self.level >= 2.0 * self.mean;
        let horizon = if is_fast {
            WINDOW
        } else {
            (4.0 * self.mean / self.level).min(60.0)
        };
        let margin = if is_fast { MARGIN } else { 0.0 };
        self.history
            .after(now - horizon - margin, false)
            .map(|sent| sent.amount)
            .sum::<f64>()
            / horizon
    }
}
