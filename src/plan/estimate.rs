//! Estimates: requests, tokens and money to come. Exact where sizes are known, else from what the cache saw.
//!
//! Where the inputs of an action are known, the size of its prompt is the sum of its parts as the cache counted them. A
//! text that was never counted is estimated; an output that was never counted makes the size unknown. An unknown size,
//! as of an action that waits for a stale one, is taken to be like those of the latest calls of the same stage and
//! model, or is assumed here. Replies are taken to be as long as the latest ones, no longer than their limit; their
//! variance gives the range of the price. One model without a price makes the sums of money unknown.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::prepare::Action;
use super::task::{AnswerTask, CompressTask, JudgeTask, Task};
use super::texts::FixtureTexts;
use crate::action::{
    ActionKey, BuiltInStrategy, Computation, Digest, InputValue, ModelRequest, RequestTurn, Stage,
    StageName, Work,
};
use crate::answer::{Answerer, Recovery};
use crate::compress::{self, MethodName, SpanText, Strategy};
use crate::entries::{EntryLookup, EntryRecord};
use crate::pipeline::{Pipeline, PointIx};
use base::tokens::count_tokens;
use base::units::{Tokens, Usage, Usd, add_known};
use models::{Lane, ModelRef, ModelUse, Prices, context_window, longest_reply};
use sessions::transcript::{Message, estimate_tokens};
use store::cache::{EntryStatus, Lookup};

/// Without replies in the cache, lengths are likely to be between these multiples of the assumed one, or up to the
/// declared one.
const LIKELY_UNSEEN: (f64, f64) = (0.5, 3.0);
/// Nine of ten sums are within this many standard deviations.
const LIKELY_DEVIATIONS: f64 = 1.645;
/// Input tokens assumed of a call where neither its texts nor earlier calls are known.
const USUAL_INPUT: f64 = 1000.0;
/// Bytes assumed of a token in the text around the values of a prompt.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Entries looked at to learn what a stage's replies are like.
const SAMPLE: usize = 400;

/// The requests, tokens and dollars of what is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    pub requests: u64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Dollars between which the run is likely to end: by how much the lengths of earlier replies vary, or else from half
    /// of the usual length to the length declared.
    pub usd_low: Option<Usd>,
    pub usd_high: Option<Usd>,
}

impl CostEstimate {
    /// The estimate where everything is cached.
    pub fn nothing() -> CostEstimate {
        let free = Some(Usd(0.0));
        CostEstimate {
            usd: free,
            usd_low: free,
            usd_high: free,
            ..CostEstimate::default()
        }
    }
}

/// Stale actions whose prompt is longer than their model takes: they would fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TooLong {
    pub stage: StageName,
    /// The method; `None` for the judges' self-tests.
    pub method: Option<String>,
    /// The model, as the pipeline names it.
    pub model: String,
    /// The most tokens it takes.
    pub window: u64,
    /// Tokens of the longest prompt.
    pub longest: u64,
    pub actions: u64,
}

/// Sums over calls that were made.
#[derive(Clone, Copy, Debug, Default)]
struct CallSums {
    calls: f64,
    input: f64,
    output: f64,
    /// The sum of the squares of the output tokens.
    squares: f64,
}

impl CallSums {
    /// How far the mean output of `calls` further calls is likely to be from the mean of these.
    fn likely_error(&self, calls: f64) -> f64 {
        let mean = self.output / self.calls;
        let variance = (self.squares / self.calls - mean * mean).max(0.0);
        LIKELY_DEVIATIONS * (variance * (1.0 / calls.max(1.0) + 1.0 / self.calls)).sqrt()
    }
}

/// Adds up what the stale and the blocked actions are expected to take.
pub(super) struct Estimator<'w, L> {
    pipeline: &'w Pipeline,
    lookup: &'w L,
    prices: &'w Prices,
    /// Tokens of texts that the cache has not counted: all methods and runs send the same span.
    estimated: HashMap<Digest, f64>,
    rule_contexts: RuleContexts,
    /// The calls that the cache has; read when first needed.
    past: Option<PastCalls>,
    /// Whether replies are expected of a model of which the cache has none at a stage.
    pub(super) assumes_lengths: bool,
    pub(super) total: CostEstimate,
}

impl<'w, L: Lookup> Estimator<'w, L> {
    pub(super) fn new(
        pipeline: &'w Pipeline,
        lookup: &'w L,
        prices: &'w Prices,
    ) -> Estimator<'w, L> {
        Estimator {
            pipeline,
            lookup,
            prices,
            estimated: HashMap::new(),
            rule_contexts: RuleContexts::default(),
            past: None,
            assumes_lengths: false,
            total: CostEstimate::nothing(),
        }
    }

    /// Adds an action whose input is known. Returns it as a group of one if its prompt is longer than its model takes.
    pub(super) fn add_stale(
        &mut self,
        stage: StageName,
        method: Option<&String>,
        action: &Action,
    ) -> Option<TooLong> {
        let Work::Ask(request) = &action.work else {
            return None;
        };
        let model = self.model_of(request)?;
        let input = self.input_tokens(request);
        self.add(stage, &model, input, 1);
        let (tokens, window) =
            input.zip(context_window(&model.provider, &model.reference.model))?;
        let (longest, window) = (tokens as u64, window.0);
        let (method, model) = (method.cloned(), model.reference.to_string());
        (longest > window).then_some(TooLong {
            stage,
            method,
            model,
            window,
            longest,
            actions: 1,
        })
    }

    /// Adds the step that is expected to follow the first one of an open-book answer.
    pub(super) fn add_later_step(&mut self, action: &Action) {
        let (Task::Answer(answer), Work::Ask(request)) = (&action.task, &action.work) else {
            return;
        };
        let Some((recovery, model)) = answer.recovery(self.pipeline).zip(self.model_of(request))
        else {
            return;
        };
        if answer.exchange.rounds.is_empty() {
            let input = self.input_tokens(request);
            self.add_steps(recovery, model, input, 1);
        }
    }

    /// Adds later steps of open-book answers.
    fn add_steps(
        &mut self,
        recovery: &Recovery,
        mut model: ModelUse,
        input: Option<f64>,
        expected: u64,
    ) {
        // The steps after the first wait for one another.
        model.lane = Lane::Live;
        let excerpts = recovery.excerpt_tokens.0 as f64 * f64::from(recovery.results);
        let input = input.map(|input| input + excerpts);
        self.add(StageName::Answer, &model, input, expected);
    }

    /// Adds cells of a stage whose input waits for this stale action.
    pub(super) fn add_blocked(&mut self, stage: StageName, cells: u64, action: &Action) {
        let task = &action.task;
        for (model, share) in self.models_of(stage, task) {
            let input = self.blocked_input(stage, action, &model);
            self.add(
                stage,
                &model,
                Some(input),
                (cells as f64 * share).round() as u64,
            );
        }
        if stage == StageName::Answer {
            self.add_blocked_steps(cells, action);
        }
    }

    /// Adds the later steps of open-book answers that are blocked.
    fn add_blocked_steps(&mut self, cells: u64, action: &Action) {
        let answerers = self.answerers(&action.task);
        let cells = cells as f64 / answerers.len().max(1) as f64;
        for answerer in answerers
            .into_iter()
            .filter(|answerer| answerer.model.is_asked())
        {
            let Some(recovery) = &answerer.recovery else {
                continue;
            };
            let input = self.blocked_input(StageName::Answer, action, &answerer.model);
            self.add_steps(
                recovery,
                answerer.model.clone(),
                Some(input),
                cells.round() as u64,
            );
        }
    }

    fn add(&mut self, stage: StageName, model: &ModelUse, input: Option<f64>, requests: u64) {
        let count = requests as f64;
        let seen = self.seen(stage, &model.reference);
        self.assumes_lengths |= seen.is_none() && requests > 0;
        let limit = model.settings.max_output_tokens;
        let longest = longest_reply(model.provider.dialect, &model.reference.model, limit);
        let output = seen
            .map_or(usual_output(stage), |seen| seen.output / seen.calls)
            .min(longest.0 as f64);
        let input = input
            .or(seen.map(|seen| seen.input / seen.calls))
            .unwrap_or(USUAL_INPUT);
        // The self-test of a judge is not batched.
        let lane = match model.lane {
            Lane::Batch if stage == StageName::Selftest => Lane::Live,
            lane => lane,
        };
        let (low, high) = match seen {
            Some(seen) => (
                output - seen.likely_error(count),
                output + seen.likely_error(count),
            ),
            None => (
                output * LIKELY_UNSEEN.0,
                limit.map_or(output * LIKELY_UNSEEN.1, |limit| limit.0 as f64),
            ),
        };
        let (low, high) = (low.max(0.0), high.clamp(output, longest.0.max(1) as f64));
        let expected = self.cost(model, lane, input, output, count);
        self.total.usd = add_known(self.total.usd, expected);
        self.total.usd_low = add_known(
            self.total.usd_low,
            self.cost(model, lane, input, low, count),
        );
        self.total.usd_high = add_known(
            self.total.usd_high,
            self.cost(model, lane, input, high, count),
        );
        self.total.requests += requests;
        self.total.input_tokens += input * count;
        self.total.output_tokens += output * count;
    }

    /// The cost of `requests` requests with `input` tokens each and replies of `output` tokens.
    fn cost(
        &self,
        model: &ModelUse,
        lane: Lane,
        input: f64,
        output: f64,
        requests: f64,
    ) -> Option<Usd> {
        let usage = Usage {
            input: whole_tokens(input),
            output: whole_tokens(output),
            ..Usage::default()
        };
        let live = self.prices.cost(&model.reference, &usage)?;
        let ratio = self.prices.lane_ratio(&model.reference, lane);
        Some(Usd(live.0 * ratio * requests))
    }

    /// The model that a request goes to, with the settings it goes with.
    fn model_of(&self, request: &ModelRequest) -> Option<ModelUse> {
        let provider = self.pipeline.providers.get(&request.provider)?.clone();
        let reference = request.model_ref();
        Some(ModelUse {
            reference,
            provider,
            settings: request.settings.clone(),
            lane: request.lane,
        })
    }

    /// The answerers that answer from the contexts of the task's method.
    fn answerers(&self, task: &Task) -> Vec<&'w Answerer> {
        let method = task.compression().map(|cell| cell.chain.method);
        let indices = method
            .and_then(|method| self.pipeline.method_answerers.get(method.0))
            .into_iter()
            .flatten();
        indices
            .map(|answerer| self.pipeline.answerer(*answerer))
            .collect()
    }

    /// The models to which cells of a stage below `task` are sent, each with its share of the cells.
    fn models_of(&self, stage: StageName, task: &Task) -> Vec<(ModelUse, f64)> {
        let models: Vec<&ModelUse> = match stage {
            StageName::Probes | StageName::Compress => task
                .method(self.pipeline)
                .and_then(|method| method.strategy.model())
                .into_iter()
                .collect(),
            StageName::Answer => self
                .answerers(task)
                .into_iter()
                .map(|answerer| &answerer.model)
                .collect(),
            StageName::Judge | StageName::Selftest | StageName::Regrade => self
                .pipeline
                .judges
                .iter()
                .map(|judge| &judge.model)
                .collect(),
        };
        let share = 1.0 / models.len().max(1) as f64;
        models
            .into_iter()
            .filter(|model| model.is_asked())
            .map(|model| (model.clone(), share))
            .collect()
    }

    /// The size of a request, from the counts of its parts: exact where the cache counted them.
    fn input_tokens(&mut self, request: &ModelRequest) -> Option<f64> {
        let mut total = 0.0;
        for turn in &request.turns {
            match turn {
                RequestTurn::Text(_, prompt) => {
                    total += prompt.literal_len() as f64 / BYTES_PER_TOKEN;
                    for (_, value) in prompt.used() {
                        total += self.value_tokens(value)?;
                    }
                }
                RequestTurn::Messages(value)
                | RequestTurn::Items(value)
                | RequestTurn::Reply(value)
                | RequestTurn::Results(value) => total += self.value_tokens(value)?,
            }
        }
        Some(total)
    }

    fn value_tokens(&mut self, value: &InputValue) -> Option<f64> {
        match value {
            InputValue::Text(digest, text) => Some(match self.lookup.tokens_of(digest) {
                Some(tokens) => tokens.0 as f64,
                None => *self
                    .estimated
                    .entry(*digest)
                    .or_insert_with(|| estimate_tokens(text).0 as f64),
            }),
            InputValue::Output(digest) => {
                self.lookup.tokens_of(digest).map(|tokens| tokens.0 as f64)
            }
            InputValue::Composed(pieces) => pieces
                .parts()
                .map(|(_, part)| self.value_tokens(part))
                .sum(),
        }
    }

    /// The input of a call below a stale action. What a rule keeps is known, from the cache or from the transcript, so it
    /// says more than earlier calls; else earlier calls of the stage do.
    fn blocked_input(&mut self, stage: StageName, action: &Action, model: &ModelUse) -> f64 {
        /// Tokens assumed of a question with its instructions.
        const QUESTION: f64 = 300.0;
        /// Tokens assumed of a judge's request without a context.
        const GRADING: f64 = 1500.0;
        let task = &action.task;
        let is_rule = task
            .method(self.pipeline)
            .is_some_and(|method| matches!(method.strategy, Strategy::Rule(_)));
        let usual = self
            .seen(stage, &model.reference)
            .map(|seen| seen.input / seen.calls);
        if let Some(usual) = usual.filter(|_| !is_rule) {
            return usual;
        }
        let cached = task.context().and_then(|context| context.reference.text());
        let known = cached.and_then(|text| self.value_tokens(&text));
        let known = known.or_else(|| self.rule_contexts.tokens(action, self.pipeline));
        let context = known.unwrap_or_else(|| self.context_tokens(task));
        match stage {
            StageName::Probes | StageName::Compress => {
                self.mean_over_points(task, FixtureTexts::span) + context + QUESTION
            }
            StageName::Answer => context + QUESTION,
            StageName::Judge | StageName::Selftest | StageName::Regrade => {
                GRADING
                    + if self.pipeline.settings.judge_context {
                        context
                    } else {
                        0.0
                    }
            }
        }
    }

    /// Tokens of the contexts that are still to be made for `task` and the points after it, their mean: all of the
    /// transcript, nothing, the size that was asked for, or a usual part of what is replaced.
    fn context_tokens(&mut self, task: &Task) -> f64 {
        /// The part of its span that a summary without a declared size usually has.
        const USUAL_PART: f64 = 0.15;
        let Some(method) = task.method(self.pipeline) else {
            return 0.0;
        };
        if matches!(method.strategy, Strategy::Rule(BuiltInStrategy::None)) {
            return 0.0;
        }
        let limit = method
            .strategy
            .model()
            .and_then(|model| model.settings.max_output_tokens);
        let target = method.target_tokens.or(limit).map(|tokens| tokens.0 as f64);
        let prefix = self.mean_over_points(task, FixtureTexts::prefix);
        match (&method.strategy, target) {
            (Strategy::Rule(BuiltInStrategy::Full), _) => prefix,
            (_, Some(target)) => target.min(prefix),
            (_, None) => USUAL_PART * prefix,
        }
    }

    /// Tokens of a text of the points: the mean over the point of `task` and those after it.
    fn mean_over_points(
        &mut self,
        task: &Task,
        text: fn(&FixtureTexts, PointIx) -> SpanText,
    ) -> f64 {
        let (texts, points) = match task {
            Task::Compress(CompressTask { cell, texts, .. }) => {
                (texts, cell.point.0..texts.loaded().points.len())
            }
            Task::Answer(AnswerTask { context, .. }) | Task::Judge(JudgeTask { context, .. }) => (
                &context.texts,
                context.cell.point.0..context.cell.point.0 + 1,
            ),
            Task::Side(_) | Task::Selftest(_) => return 0.0,
        };
        let sizes = points.filter_map(|point| self.value_tokens(&text(texts, PointIx(point)).text));
        let sizes: Vec<f64> = sizes.collect();
        sizes.iter().sum::<f64>() / sizes.len().max(1) as f64
    }

    fn seen(&mut self, stage: StageName, model: &ModelRef) -> Option<CallSums> {
        let lookup = self.lookup;
        let past = self.past.get_or_insert_with(|| past_calls(lookup));
        past.get(&(stage, model.to_string())).copied()
    }
}

/// Sums over the latest calls in the cache, by stage and model as asked.
type PastCalls = HashMap<(StageName, String), CallSums>;

fn past_calls<L: Lookup>(lookup: &L) -> PastCalls {
    let mut past = PastCalls::default();
    let mut taken: BTreeMap<Stage, usize> = BTreeMap::new();
    for record in lookup.records().into_iter().rev() {
        let (Some(stage), Some(input), Some(output)) = (
            record.stage(),
            record.summary.usage.input,
            record.summary.usage.output,
        ) else {
            continue;
        };
        let count = taken.entry(stage).or_default();
        if *count >= SAMPLE || matches!(record.status, EntryStatus::Failed { .. }) {
            continue;
        }
        *count += 1;
        let Some(model) = record.summary.models.requested else {
            continue;
        };
        let entry = past.entry((stage.into(), model)).or_default();
        let (input, output) = (input.0 as f64, output.0 as f64);
        entry.calls += 1.0;
        entry.input += input;
        entry.output += output;
        entry.squares += output.powi(2);
    }
    past
}

/// Output tokens assumed of a reply where neither the cache nor a limit says more. Infinity means as many as allowed.
fn usual_output(stage: StageName) -> f64 {
    match stage {
        StageName::Compress => 900.0,
        StageName::Answer => 200.0,
        StageName::Selftest | StageName::Judge => 350.0,
        StageName::Probes | StageName::Regrade => f64::INFINITY,
    }
}

fn whole_tokens(tokens: f64) -> Option<Tokens> {
    Some(Tokens(tokens.round() as u64))
}

/// The most times that a forecast applies rules. In a larger matrix, the mean of a method stands for its other
/// contexts.
const MOST_APPLIED: usize = 100;

/// Sizes of the contexts that rules make. A rule needs no request, so a forecast applies it, and knows what answers and
/// judges will read.
#[derive(Debug, Default)]
struct RuleContexts {
    tokens: HashMap<ActionKey, f64>,
    /// The number of contexts of a method, and their tokens.
    sums: HashMap<MethodName, (f64, f64)>,
}

impl RuleContexts {
    /// Tokens of the context of an action; `None` if no rule makes it, or the rule has none for these messages.
    fn tokens(&mut self, action: &Action, pipeline: &Pipeline) -> Option<f64> {
        if let Some(known) = self.tokens.get(&action.key) {
            return Some(*known);
        }
        let Work::Compute(computation) = &action.work else {
            return None;
        };
        let method = &action.task.method(pipeline)?.name;
        if self.tokens.len() >= MOST_APPLIED {
            return self
                .sums
                .get(method)
                .map(|(contexts, tokens)| tokens / contexts);
        }
        let tokens = apply(computation)?;
        self.tokens.insert(action.key, tokens);
        let (contexts, sum) = self.sums.entry(method.clone()).or_default();
        (*contexts, *sum) = (*contexts + 1.0, *sum + tokens);
        Some(tokens)
    }
}

fn apply(computation: &Computation) -> Option<f64> {
    let Computation::Strategy {
        rule,
        messages: InputValue::Text(_, json),
        target_tokens,
    } = computation
    else {
        return None;
    };
    let messages: Vec<Message> = serde_json::from_str(json).ok()?;
    let context = compress::compute(*rule, *target_tokens, &messages, &count_tokens);
    let context: Vec<Message> = serde_json::from_slice(&context).ok()?;
    Some(
        context
            .iter()
            .map(|message| count_tokens(&message.countable_text()).0 as f64)
            .sum(),
    )
}
