//! A session as requests: how large each was, what the cache served, and how long after the one before it came.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::prices::{Dollars, ModelPrice, RequestTokens};
use super::reasons::LeftOut;
use crate::import::{Conversation, Format, ModelStep};
use stats::median;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub(super) tokens: RequestTokens,
    /// Seconds since the request before, never below 0; `None` for the first, and where the times do not say.
    pub(super) gap: Option<f64>,
    /// Whether the times do not say because the clock went back, or came back after it had.
    pub(super) is_clock_off: bool,
    /// The place of its model among those of the session.
    pub(super) model: usize,
    /// The same in all copies of the session.
    pub(super) identity: u64,
}

/// A compaction between two requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepCompaction {
    /// The request that follows it.
    pub(super) step: usize,
    /// The message that follows it.
    pub(super) at: usize,
    pub(super) time: Option<String>,
    /// The size of the context that it left, as the log records it; otherwise that of the next request.
    pub(super) recorded_after: Option<u64>,
    /// A rough count of the summary's tokens; `None` where it cannot be read.
    pub(super) summary: Option<u64>,
}

/// The requests of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSteps {
    /// The name of the log.
    pub session: String,
    /// Its format.
    pub format: Format,
    pub(super) steps: Vec<Step>,
    pub(super) compactions: Vec<StepCompaction>,
    pub(super) begins_midway: bool,
    /// The models' names.
    pub(super) models: Vec<String>,
}

impl SessionSteps {
    /// The requests of a conversation.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn new(conversation: &Conversation, format: Format) -> Result<SessionSteps, LeftOut> {
        if conversation.steps.is_empty() {
            return Err(LeftOut::NoCounters);
        }
        check_times(&conversation.steps)?;
        let mut session = SessionSteps {
            session: conversation.name_hint.clone(),
            format,
            steps: Vec::with_capacity(conversation.steps.len()),
            compactions: compactions(conversation),
            begins_midway: conversation.begins_midway,
            models: Vec::new(),
        };
        let mut clock = Clock::default();
        for step in &conversation.steps {
            let tokens = step.usage.cached_input.and_then(|_| RequestTokens::new(&step.usage));
            let tokens = tokens.ok_or(LeftOut::NoCacheCounters)?;
            let model = session.model_index(step.model.as_deref().ok_or(LeftOut::NoModel)?);
            let gap = clock.gap(step.time);
            let is_clock_off = gap == Some(Gap::ClockOff);
            let gap = gap.and_then(Gap::seconds);
            session.steps.push(Step { tokens, gap, is_clock_off, model, identity: identity(step) });
        }
        if session.steps.len() < 2 { Err(LeftOut::TooShort) } else { Ok(session) }
    }

    fn model_index(&mut self, model: &str) -> usize {
        let known = self.models.iter().position(|known| known == model);
        known.unwrap_or_else(|| {
            self.models.push(model.to_owned());
            self.models.len() - 1
        })
    }

    /// Drops the first `count` requests, which are another log's.
    pub(super) fn skip(&mut self, count: usize) {
        self.steps.drain(..count.min(self.steps.len()));
        self.begins_midway |= count > 0;
        self.compactions.retain(|one| one.step > count);
        self.compactions.iter_mut().for_each(|one| one.step -= count);
        if let Some(first) = self.steps.first_mut() {
            (first.gap, first.is_clock_off) = (None, false);
        }
    }

    /// Requests whose distance from the one before is unknown because the clock went back.
    pub(super) fn clock_faults(&self) -> usize {
        self.steps.iter().filter(|step| step.is_clock_off).count()
    }

    /// The prices of its models.
    ///
    /// # Errors
    /// A model without a price.
    pub(super) fn prices(&self, price_of: &dyn Fn(&str) -> Option<ModelPrice>) -> Result<Vec<ModelPrice>, LeftOut> {
        let models = self.models.iter();
        models.map(|model| price_of(model).ok_or_else(|| LeftOut::NoPrice(model.clone()))).collect()
    }

    /// The compaction before a request.
    pub(super) fn compaction_before(&self, step: usize) -> Option<&StepCompaction> {
        let at = self.compactions.binary_search_by_key(&step, |one| one.step).ok()?;
        self.compactions.get(at)
    }
}

/// What the times of two requests say of the time between them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gap {
    Seconds(f64),
    /// The clock was set back, or came back to where it had been: either makes a difference that never passed.
    ClockOff,
}

impl Gap {
    fn seconds(self) -> Option<f64> {
        match self {
            Gap::Seconds(seconds) => Some(seconds),
            Gap::ClockOff => None,
        }
    }
}

/// The clock of a log, read request by request.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    before: Option<Timestamp>,
    /// The latest time that it has shown.
    latest: Option<Timestamp>,
}

impl Clock {
    /// Records that overlap are written in another order than they happened, by less than this.
    const JITTER: f64 = 1.0;

    /// The gap before a request; `None` where it or the one before has no time.
    fn gap(&mut self, now: Option<Timestamp>) -> Option<Gap> {
        let before = std::mem::replace(&mut self.before, now)?;
        let (now, latest) = (now?, self.latest.unwrap_or(before).max(before));
        self.latest = Some(latest.max(now));
        let seconds = now.duration_since(before).as_secs_f64();
        let is_behind = latest.duration_since(before).as_secs_f64() > Clock::JITTER;
        let has_returned = is_behind && now >= latest;
        let is_off = seconds < -Clock::JITTER || has_returned;
        Some(if is_off { Gap::ClockOff } else { Gap::Seconds(seconds.max(0.0)) })
    }
}

/// Nearly all requests must have a time.
fn check_times(steps: &[ModelStep]) -> Result<(), LeftOut> {
    const PARTS: usize = 10;
    let without = steps.iter().filter(|step| step.time.is_none()).count();
    if without * PARTS > steps.len() { Err(LeftOut::NoTimes) } else { Ok(()) }
}

/// One compaction a request: several that follow each other are one rewrite.
fn compactions(conversation: &Conversation) -> Vec<StepCompaction> {
    const CHARACTERS: usize = 4;
    let mut found: Vec<StepCompaction> = Vec::new();
    for one in conversation.recorded.iter().filter(|one| (1..conversation.steps.len()).contains(&one.step)) {
        let next = conversation.steps.get(one.step).and_then(|step| step.usage.input).map(|input| input.0);
        let compaction = StepCompaction {
            step: one.step,
            at: one.message,
            time: one.time.clone(),
            recorded_after: one.tokens_after.filter(|after| next.is_some_and(|next| *after < next)),
            summary: one.summary.as_ref().map(|summary| (summary.chars().count() / CHARACTERS) as u64),
        };
        match found.last_mut().filter(|last| last.step == one.step) {
            Some(last) => *last = compaction,
            None => found.push(compaction),
        }
    }
    found.sort_by_key(|one| one.step);
    found
}

fn identity(step: &ModelStep) -> u64 {
    let mut hasher = DefaultHasher::new();
    let tokens = [step.usage.input, step.usage.cached_input, step.usage.output].map(|count| count.map(|n| n.0));
    (tokens, step.time.map(|time| time.as_nanosecond())).hash(&mut hasher);
    hasher.finish()
}

/// A session whose models have prices.
#[derive(Clone, Debug)]
pub struct PricedSession {
    pub(super) steps: SessionSteps,
    pub(super) prices: Vec<ModelPrice>,
    /// Whether each model's provider charges for writes to the cache.
    pub(super) writes: Vec<bool>,
    /// Tokens of system prompt and tools: what the cache still served after compactions or at the start. 0 if unknown.
    pub(super) fixed: u64,
}

impl PricedSession {
    /// A session at the prices of its models, in their order.
    pub(super) fn new(steps: SessionSteps, prices: Vec<ModelPrice>) -> PricedSession {
        let mut writes = vec![false; prices.len()];
        for step in steps.steps.iter().filter(|step| step.tokens.written + step.tokens.written_hour > 0) {
            if let Some(writes) = writes.get_mut(step.model) {
                *writes = true;
            }
        }
        let fixed = median(&fixed_reads(&steps)).unwrap_or(0.0) as u64;
        PricedSession { steps, prices, writes, fixed }
    }

    /// What a request costs.
    pub(super) fn cost(&self, model: usize, tokens: RequestTokens) -> Dollars {
        self.prices.get(model).map_or_else(Dollars::default, |price| price.cost(tokens))
    }
}

/// What the cache served after compactions, and at the start of a session that the log has from its start.
fn fixed_reads(steps: &SessionSteps) -> Vec<f64> {
    let places = (0..steps.steps.len())
        .filter(|at| (*at == 0 && !steps.begins_midway) || steps.compaction_before(*at).is_some());
    let reads = places.filter_map(|at| steps.steps.get(at)).map(|step| step.tokens.read);
    reads.filter(|read| *read > 0).map(|read| read as f64).collect()
}
