//! A session as requests: how large each was, what the cache served, and how long after the one before it came.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::prices::{Dollars, ModelPrice, RequestTokens};
use super::reasons::{LeftOut, LeftOutSession};
use crate::import::{Conversation, Format, ModelStep};
use stats::median;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub(super) tokens: RequestTokens,
    /// Seconds since the request before, never below 0; `None` for the first request, and where it is unknown.
    pub(super) gap: Option<f64>,
    /// Whether the gap is unknown because the clock was set back, or had returned from that.
    pub(super) is_clock_off: bool,
    /// The index of its model among those of the session.
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
    /// The log, as the caller names it.
    pub file: String,
    /// The session.
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
    /// The requests of a conversation in the log `file`.
    ///
    /// # Errors
    /// If the requests cannot be priced; the reason says why.
    pub fn new(
        file: &str,
        conversation: &Conversation,
        format: Format,
    ) -> Result<SessionSteps, LeftOutSession> {
        let mut session = SessionSteps {
            file: file.to_owned(),
            session: conversation.name_hint.clone(),
            format,
            steps: Vec::with_capacity(conversation.steps.len()),
            compactions: compactions(conversation),
            begins_midway: conversation.begins_midway,
            models: Vec::new(),
        };
        match session.add_steps(conversation) {
            Ok(()) => Ok(session),
            Err(why) => Err(session.left_out(why)),
        }
    }

    fn add_steps(&mut self, conversation: &Conversation) -> Result<(), LeftOut> {
        if conversation.steps.is_empty() {
            return Err(LeftOut::NoCounters);
        }
        check_times(&conversation.steps)?;
        let mut clock = Clock::default();
        for step in &conversation.steps {
            let tokens = step
                .usage
                .cached_input
                .and_then(|_| RequestTokens::new(&step.usage));
            let tokens = tokens.ok_or(LeftOut::NoCacheCounters)?;
            let model = self.model_index(step.model.as_deref().ok_or(LeftOut::NoModel)?);
            let gap = clock.gap(step.time);
            self.steps.push(Step {
                tokens,
                gap,
                is_clock_off: clock.is_off,
                model,
                identity: identity(step),
            });
        }
        if self.steps.len() < 2 {
            Err(LeftOut::TooShort)
        } else {
            Ok(())
        }
    }

    /// This session, left out.
    pub(super) fn left_out(self, why: LeftOut) -> LeftOutSession {
        LeftOutSession {
            file: self.file,
            session: self.session,
            why,
        }
    }

    fn model_index(&mut self, model: &str) -> usize {
        let known = self.models.iter().position(|known| known == model);
        known.unwrap_or_else(|| {
            self.models.push(model.to_owned());
            self.models.len() - 1
        })
    }

    /// Drops the first `count` requests, which belong to another log. A compaction with which that log ended is seen here
    /// alone.
    pub(super) fn skip(&mut self, count: usize) {
        self.steps.drain(..count.min(self.steps.len()));
        self.begins_midway |= count > 0;
        self.compactions
            .retain(|compaction| compaction.step >= count);
        self.compactions
            .iter_mut()
            .for_each(|compaction| compaction.step -= count);
        if let Some(first) = self.steps.first_mut() {
            (first.gap, first.is_clock_off) = (None, false);
        }
    }

    /// The number of requests whose gap is unknown because the clock was set back.
    pub(super) fn clock_faults(&self) -> usize {
        self.steps.iter().filter(|step| step.is_clock_off).count()
    }

    /// The prices of its models.
    ///
    /// # Errors
    /// If a model has no price.
    pub(super) fn prices(
        &self,
        price_of: &dyn Fn(&str) -> Option<ModelPrice>,
    ) -> Result<Vec<ModelPrice>, LeftOut> {
        let models = self.models.iter();
        models
            .map(|model| price_of(model).ok_or_else(|| LeftOut::NoPrice(model.clone())))
            .collect()
    }

    /// The compaction before a request.
    pub(super) fn compaction_before(&self, step: usize) -> Option<&StepCompaction> {
        let at = self
            .compactions
            .binary_search_by_key(&step, |compaction| compaction.step)
            .ok()?;
        self.compactions.get(at)
    }
}

/// The clock of a log, read request by request.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    before: Option<Timestamp>,
    /// The latest time that it has shown.
    latest: Option<Timestamp>,
    /// Whether the newest gap is unknown because the clock was set back, or returned to where it had been: either makes
    /// a difference of times that never passed.
    is_off: bool,
}

impl Clock {
    /// Records that overlap are written in another order than they happened, by less than this.
    const JITTER: f64 = 1.0;

    /// Seconds between a request and the one before; `None` where one of them has no time, or the clock is off.
    fn gap(&mut self, now: Option<Timestamp>) -> Option<f64> {
        self.is_off = false;
        let before = std::mem::replace(&mut self.before, now)?;
        let (now, latest) = (now?, self.latest.unwrap_or(before).max(before));
        self.latest = Some(latest.max(now));
        let seconds = now.duration_since(before).as_secs_f64();
        let is_behind = latest.duration_since(before).as_secs_f64() > Clock::JITTER;
        let has_returned = is_behind && now >= latest;
        self.is_off = seconds < -Clock::JITTER || has_returned;
        (!self.is_off).then_some(seconds.max(0.0))
    }
}

/// Returns an error unless nearly all requests have a time.
fn check_times(steps: &[ModelStep]) -> Result<(), LeftOut> {
    /// At most one request in this many may lack its time.
    const PARTS: usize = 10;
    let without = steps.iter().filter(|step| step.time.is_none()).count();
    if without * PARTS > steps.len() {
        Err(LeftOut::NoTimes)
    } else {
        Ok(())
    }
}

/// The recorded compactions, at most one before each request: several in a row are one rewrite.
fn compactions(conversation: &Conversation) -> Vec<StepCompaction> {
    /// Characters per token, roughly.
    const CHARACTERS: usize = 4;
    let mut compactions: Vec<StepCompaction> = Vec::new();
    for recorded in &conversation.recorded {
        if !(1..conversation.steps.len()).contains(&recorded.step) {
            continue;
        }
        let next = conversation
            .steps
            .get(recorded.step)
            .and_then(|step| step.usage.input)
            .map(|input| input.0);
        let compaction = StepCompaction {
            step: recorded.step,
            at: recorded.message,
            time: recorded.time.clone(),
            recorded_after: recorded
                .tokens_after
                .filter(|after| next.is_some_and(|next| *after < next)),
            summary: recorded
                .summary
                .as_ref()
                .map(|summary| (summary.chars().count() / CHARACTERS) as u64),
        };
        match compactions
            .last_mut()
            .filter(|last| last.step == recorded.step)
        {
            Some(last) => *last = compaction,
            None => compactions.push(compaction),
        }
    }
    compactions.sort_by_key(|compaction| compaction.step);
    compactions
}

fn identity(step: &ModelStep) -> u64 {
    let mut hasher = DefaultHasher::new();
    let tokens = [step.usage.input, step.usage.cached_input, step.usage.output]
        .map(|count| count.map(|n| n.0));
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
        for step in steps
            .steps
            .iter()
            .filter(|step| step.tokens.written + step.tokens.written_hour > 0)
        {
            if let Some(writes) = writes.get_mut(step.model) {
                *writes = true;
            }
        }
        let fixed = median(&fixed_reads(&steps)).unwrap_or(0.0) as u64;
        PricedSession {
            steps,
            prices,
            writes,
            fixed,
        }
    }

    /// What a request costs.
    pub(super) fn cost(&self, model: usize, tokens: RequestTokens) -> Dollars {
        self.prices
            .get(model)
            .map_or_else(Dollars::default, |price| price.cost(tokens))
    }
}

/// What the cache served after compactions, and at the start of the session if the log has it.
fn fixed_reads(steps: &SessionSteps) -> Vec<f64> {
    let places = (0..steps.steps.len())
        .filter(|at| (*at == 0 && !steps.begins_midway) || steps.compaction_before(*at).is_some());
    let reads = places
        .filter_map(|at| steps.steps.get(at))
        .map(|step| step.tokens.read);
    reads
        .filter(|read| *read > 0)
        .map(|read| read as f64)
        .collect()
}
