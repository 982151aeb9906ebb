//! A session as requests: how large each was, what the cache served, and how long after the one before it came.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::prices::{Dollars, ModelPrice, RequestTokens};
use crate::import::{Conversation, Format, ModelStep};
use stats::median;

/// Why the bill of a session cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// No request has counters.
    #[error("its log counts no tokens")]
    NoCounters,
    /// Some requests lack the count of the tokens that the cache served, or of the output.
    #[error("its log does not count cache reads and output of every request")]
    NoCacheCounters,
    /// One request has nothing before it that a cache could serve.
    #[error("it has fewer than 2 requests with counters")]
    TooShort,
    /// It is not known when the cache expired.
    #[error("its log has no times, so it is not known when the cache expired")]
    NoTimes,
    /// It is not known what a model costs.
    #[error("no price is known for `{0}`; price it as another with --price-as MODEL")]
    NoPrice(String),
    /// The log names no model.
    #[error("its log names no model; price it with --price-as MODEL")]
    NoModel,
}

impl Serialize for LeftOut {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub(super) tokens: RequestTokens,
    /// Seconds since the request before; `None` for the first, and where one of them has no time.
    pub(super) gap: Option<f64>,
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
        let mut before: Option<&ModelStep> = None;
        for step in &conversation.steps {
            let tokens = step.usage.cached_input.and_then(|_| RequestTokens::new(&step.usage));
            let tokens = tokens.ok_or(LeftOut::NoCacheCounters)?;
            let model = session.model_index(step.model.as_deref().ok_or(LeftOut::NoModel)?);
            let times = before.and_then(|before| before.time).zip(step.time);
            let gap = times.map(|(before, now)| now.duration_since(before).as_secs_f64().max(0.0));
            session.steps.push(Step { tokens, gap, model, identity: identity(step) });
            before = Some(step);
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
            first.gap = None;
        }
    }

    /// The prices of its models.
    ///
    /// # Errors
    /// A model without a price.
    pub(super) fn prices(&self, price_of: &dyn Fn(&str) -> Option<ModelPrice>) -> Result<Vec<ModelPrice>, LeftOut> {
        let price = |model: &String| price_of(model).ok_or_else(|| LeftOut::NoPrice(model.clone()));
        self.models.iter().map(price).collect()
    }

    /// The compaction before a request.
    pub(super) fn compaction_before(&self, step: usize) -> Option<&StepCompaction> {
        let at = self.compactions.binary_search_by_key(&step, |one| one.step).ok()?;
        self.compactions.get(at)
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
        let written = |model| {
            let mut of_model = steps.steps.iter().filter(|step| step.model == model);
            of_model.any(|step| step.tokens.written + step.tokens.written_hour > 0)
        };
        let writes = (0..prices.len()).map(written).collect();
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
    let is_start = |at: usize| at == 0 && !steps.begins_midway;
    let places = (0..steps.steps.len()).filter(|at| is_start(*at) || steps.compaction_before(*at).is_some());
    let reads = places.filter_map(|at| steps.steps.get(at)).map(|step| step.tokens.read);
    reads.filter(|read| *read > 0).map(|read| read as f64).collect()
}
