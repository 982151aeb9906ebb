//! Estimates: requests, tokens, money and time to come. Exact where sizes are known, else from what the cache saw.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::prepare::Action;
use super::task::Task;
use crate::action::{Digest, InputValue, ModelRequest, RequestTurn, StageName, Work};
use crate::cache::{EntryMeta, EntryStatus, Lookup};
use crate::pipeline::Pipeline;
use crate::provider::{Lane, Limits, ModelRef, ModelUse, Prices, ProviderSpec, context_window, longest_reply};
use crate::transcript::estimate_tokens;
use crate::units::{Tokens, Usage, Usd, add_known};

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostEstimate {
    pub requests: u64,
    /// Requests if every call takes all attempts, and every judge all the replies that it may give.
    pub requests_worst: u64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Dollars between which the run is likely to end: by how much the lengths of earlier replies vary, or else from half
    /// of the usual length to the length declared.
    pub usd_low: Option<Usd>,
    pub usd_high: Option<Usd>,
    /// Dollars of the worst requests if every reply is as long as it may be.
    pub usd_worst: Option<Usd>,
    /// Of those that are sent live.
    pub seconds: f64,
    /// What goes into batches.
    pub batched: BatchedEstimate,
    /// Requests that are exported to files.
    pub for_file: u64,
}

/// The part of an estimate that goes into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BatchedEstimate {
    pub requests: u64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// What the same would cost live.
    pub usd_live: Option<Usd>,
}

impl BatchedEstimate {
    const NOTHING: BatchedEstimate = BatchedEstimate { requests: 0, usd: Some(Usd(0.0)), usd_live: Some(Usd(0.0)) };

    fn add(&mut self, requests: u64, usd: Option<Usd>, usd_live: Option<Usd>) {
        self.requests += requests;
        self.usd = add_known(self.usd, usd);
        self.usd_live = add_known(self.usd_live, usd_live);
    }
}

impl CostEstimate {
    /// What is to come where all is cached.
    pub fn nothing() -> CostEstimate {
        let free = Some(Usd(0.0));
        CostEstimate {
            usd: free,
            usd_low: free,
            usd_high: free,
            usd_worst: free,
            batched: BatchedEstimate::NOTHING,
            ..CostEstimate::default()
        }
    }
}

/// Output tokens assumed of a reply where neither the cache nor a limit says more.
const USUAL_OUTPUT: [(StageName, f64); 4] =
    [(StageName::Compress, 900.0), (StageName::Answer, 200.0), (StageName::Selftest, 350.0), (StageName::Judge, 350.0)];
/// Without replies in the cache, lengths are likely to be between these multiples of the assumed one, or up to the
/// declared one.
const LIKELY_UNSEEN: (f64, f64) = (0.5, 3.0);
/// Nine of ten sums are within this many standard deviations.
const LIKELY_DEVIATIONS: f64 = 1.645;
/// Seconds assumed of a call to a model that was never asked.
pub const USUAL_LATENCY: f64 = 4.0;
/// Entries looked at to learn what a stage's replies are like.
const SAMPLE: usize = 400;

/// What the worst case of an [`CostEstimate`] assumes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorstCase {
    /// Attempts of each call, all of them billed.
    pub attempts: u32,
    /// Calls for each grade: all but the last are answered by a reply that breaks the judge's contract.
    pub replies: u32,
    /// Models asked without a `max_output_tokens`, with the longest reply they are taken to write.
    pub unlimited: BTreeMap<String, Tokens>,
    /// The worst case if no reply could exceed [`WorstCase::LIMIT`]; `None` where a price is unknown.
    pub usd_limited: Option<Usd>,
}

impl WorstCase {
    /// A limit that few stages need to exceed.
    pub const LIMIT: Tokens = Tokens(4096);
}

/// A prompt that is longer than its model takes.
pub(super) struct WindowOverflow {
    pub(super) model: String,
    pub(super) window: Tokens,
    pub(super) tokens: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ObservedCalls {
    calls: f64,
    input: f64,
    output: f64,
    /// The sum of the squares of the output tokens.
    squares: f64,
    seconds: f64,
}

impl ObservedCalls {
    /// How far the mean output of so many further calls is likely to be from the mean of these.
    fn likely_error(&self, calls: f64) -> f64 {
        let mean = self.output / self.calls;
        let variance = (self.squares / self.calls - mean * mean).max(0.0);
        LIKELY_DEVIATIONS * (variance * (1.0 / calls.max(1.0) + 1.0 / self.calls)).sqrt()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    requests: f64,
    input: f64,
    output: f64,
    seconds: f64,
}

impl Load {
    fn plus(self, other: &Load) -> Load {
        Load {
            requests: self.requests + other.requests,
            input: self.input + other.input,
            output: self.output + other.output,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// What one stage is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageDuration {
    pub requests: f64,
    /// Under the limits that the user declared.
    pub seconds: f64,
}

/// All that an [`Estimator`] comes to.
pub(super) struct Estimates {
    pub(super) total: CostEstimate,
    pub(super) worst: WorstCase,
    pub(super) durations: BTreeMap<StageName, StageDuration>,
    pub(super) assumes_latency: bool,
}

/// Adds up what is to come.
pub(super) struct Estimator<'w, L> {
    pipeline: &'w Pipeline,
    lookup: &'w L,
    prices: &'w Prices,
    /// Tokens of texts that the cache has not counted: all methods and runs send the same span.
    estimated: HashMap<Digest, f64>,
    /// What the cache saw, by stage and model as asked; made when first needed.
    seen: Option<HashMap<(StageName, String), ObservedCalls>>,
    /// By provider and stage.
    loads: BTreeMap<(String, StageName), (ProviderSpec, Load)>,
    /// Compressions that wait for each other, at most.
    longest_chain: f64,
    /// Whether calls are to come of which no cached one says how long they take.
    assumes_latency: bool,
    total: CostEstimate,
    worst: WorstCase,
}

impl<'w, L: Lookup> Estimator<'w, L> {
    pub(super) fn new(pipeline: &'w Pipeline, lookup: &'w L, prices: &'w Prices) -> Estimator<'w, L> {
        let worst = WorstCase { usd_limited: Some(Usd(0.0)), ..WorstCase::default() };
        Estimator {
            pipeline,
            lookup,
            prices,
            estimated: HashMap::new(),
            seen: None,
            loads: BTreeMap::new(),
            longest_chain: 1.0,
            assumes_latency: false,
            total: CostEstimate::nothing(),
            worst,
        }
    }

    /// An action whose input is known. Says so if its prompt is longer than its model takes.
    pub(super) fn add_stale(&mut self, stage: StageName, action: &Action) -> Option<WindowOverflow> {
        let Work::Ask(request) = &action.work else { return None };
        let model = self.model_of(request).filter(|model| !model.is_lexical())?;
        let input = self.input_tokens(request);
        self.add(stage, &model, input, 1);
        let (tokens, window) = input.zip(context_window(&model.provider, &model.reference.model))?;
        let excess = WindowOverflow { model: model.reference.to_string(), window, tokens: tokens as u64 };
        (excess.tokens > window.0).then_some(excess)
    }

    /// Cells whose input waits for a stale action above them.
    pub(super) fn add_blocked(&mut self, stage: StageName, cells: u64, task: &Task) {
        if stage == StageName::Compress {
            self.longest_chain = self.longest_chain.max(cells as f64 + 1.0);
        }
        for (model, share) in self.models_of(stage, task) {
            if model.is_lexical() {
                continue;
            }
            let usual = self.seen(stage, &model.reference).map(|seen| seen.input / seen.calls);
            let input = usual.unwrap_or_else(|| self.unseen_input(stage, task));
            self.add(stage, &model, Some(input), (cells as f64 * share).round() as u64);
        }
    }

    fn add(&mut self, stage: StageName, model: &ModelUse, input: Option<f64>, requests: u64) {
        let count = requests as f64;
        let seen = self.seen(stage, &model.reference);
        let limit = model.settings.max_output_tokens;
        let longest = longest_reply(model.provider.dialect, &model.reference.model, limit);
        let usual = USUAL_OUTPUT.iter().find(|(s, _)| *s == stage).map_or(f64::INFINITY, |(_, tokens)| *tokens);
        let output = seen.map_or(usual, |seen| seen.output / seen.calls).min(longest.0 as f64);
        let input = input.or(seen.map(|seen| seen.input / seen.calls)).unwrap_or(1000.0);
        let latency = seen.map(|seen| seen.seconds / seen.calls).or_else(|| self.latency_elsewhere(&model.reference));
        let spec = &model.provider;
        let (attempts, replies) = (spec.limits.max_attempts, self.replies(stage, &model.reference));
        let worst_requests = requests * u64::from(attempts) * u64::from(replies);
        let usage = |output: f64| Usage {
            input: Some(Tokens(input.round() as u64)),
            output: Some(Tokens(output.round() as u64)),
            ..Usage::default()
        };
        // The self-test of a judge is not batched.
        let lane = match model.lane {
            Lane::Batch if stage == StageName::Selftest => Lane::Live,
            lane => lane,
        };
        let price = |output: f64, times: f64| {
            let usd = self.prices.cost_in(lane, &model.reference, &usage(output));
            usd.map(|usd| Usd(usd.0 * times))
        };
        let (expected, worst) = (price(output, count), price(longest.0 as f64, worst_requests as f64));
        let (low, high) = match seen {
            Some(seen) => (output - seen.likely_error(count), output + seen.likely_error(count)),
            None => (output * LIKELY_UNSEEN.0, limit.map_or(output * LIKELY_UNSEEN.1, |limit| limit.0 as f64)),
        };
        let (low, high) = (low.max(0.0), high.clamp(output, longest.0.max(1) as f64));
        self.total.usd = add_known(self.total.usd, expected);
        self.total.usd_low = add_known(self.total.usd_low, price(low, count));
        self.total.usd_high = add_known(self.total.usd_high, price(high, count));
        self.total.usd_worst = add_known(self.total.usd_worst, worst);
        let limited = price(longest.min(WorstCase::LIMIT).0 as f64, worst_requests as f64);
        self.worst.usd_limited = add_known(self.worst.usd_limited, limited);
        self.worst.attempts = self.worst.attempts.max(attempts);
        self.worst.replies = self.worst.replies.max(replies);
        if limit.is_none() && requests > 0 {
            self.worst.unlimited.insert(model.reference.to_string(), longest);
        }
        self.total.requests += requests;
        self.total.requests_worst += worst_requests;
        self.total.input_tokens += input * count;
        self.total.output_tokens += output * count;
        if lane == Lane::Batch {
            let live = self.prices.cost(&model.reference, &usage(output)).map(|usd| Usd(usd.0 * count));
            return self.total.batched.add(requests, expected, live);
        }
        if lane == Lane::File {
            self.total.for_file += requests;
            return;
        }
        self.assumes_latency |= latency.is_none() && requests > 0;
        let latency = latency.unwrap_or(USUAL_LATENCY);
        let place = (spec.name.to_string(), stage);
        let (_, load) = self.loads.entry(place).or_insert_with(|| ((**spec).clone(), Load::default()));
        load.requests += count;
        load.input += input * count;
        load.output += output * count;
        load.seconds += latency * count;
    }

    /// Providers work side by side: the slowest one decides, or the longest sequence of calls that wait for each other.
    pub(super) fn finish(self) -> Estimates {
        let mut providers: BTreeMap<&str, (&ProviderSpec, Load)> = BTreeMap::new();
        let mut durations: BTreeMap<StageName, StageDuration> = BTreeMap::new();
        let mut latencies: BTreeMap<StageName, f64> = BTreeMap::new();
        for ((provider, stage), (spec, load)) in &self.loads {
            let (_, sum) = providers.entry(provider.as_str()).or_insert_with(|| (spec, Load::default()));
            *sum = sum.plus(load);
            let latency = latencies.entry(*stage).or_default();
            *latency = latency.max(load.seconds / load.requests.max(1.0));
            let duration = durations.entry(*stage).or_default();
            duration.requests += load.requests;
            duration.seconds = duration.seconds.max(seconds_under(&spec.limits, load));
        }
        let in_sequence = |(stage, latency): (&StageName, &f64)| match stage {
            StageName::Compress => latency * self.longest_chain,
            // They run beside everything else.
            StageName::Selftest => 0.0,
            StageName::Probes | StageName::Answer | StageName::Judge => *latency,
        };
        let least = latencies.iter().map(in_sequence).sum();
        let seconds = providers.values().map(|(spec, load)| seconds_under(&spec.limits, load)).fold(least, f64::max);
        let (total, worst) = (CostEstimate { seconds, ..self.total }, self.worst);
        Estimates { total, worst, durations, assumes_latency: self.assumes_latency }
    }

    /// The model that a request goes to, with the settings it goes with.
    fn model_of(&self, request: &ModelRequest) -> Option<ModelUse> {
        let provider = self.pipeline.providers.get(&request.provider)?.clone();
        let reference = request.model_ref();
        Some(ModelUse { reference, provider, settings: request.settings.clone(), lane: request.lane })
    }

    /// Calls that a model may be made for one action: a judge is asked again where a reply breaks its contract.
    fn replies(&self, stage: StageName, model: &ModelRef) -> u32 {
        let judges = match stage {
            StageName::Judge | StageName::Selftest => self.pipeline.judges.as_slice(),
            StageName::Probes | StageName::Compress | StageName::Answer => &[],
        };
        judges.iter().filter(|judge| judge.model.reference == *model).map(|judge| judge.attempts).max().unwrap_or(1)
    }

    /// The models to which cells of a stage below `task` are sent, each with its share of the cells.
    fn models_of(&self, stage: StageName, task: &Task) -> Vec<(ModelUse, f64)> {
        let models: Vec<ModelUse> = match stage {
            StageName::Probes | StageName::Compress => {
                task.method(self.pipeline).and_then(|m| m.strategy.model()).cloned().into_iter().collect()
            }
            StageName::Answer => self.pipeline.answerers.iter().map(|a| a.model.clone()).collect(),
            StageName::Judge | StageName::Selftest => self.pipeline.judges.iter().map(|j| j.model.clone()).collect(),
        };
        let share = 1.0 / models.len().max(1) as f64;
        models.into_iter().map(|model| (model, share)).collect()
    }

    /// The size of a request, from the counts of its parts: exact where the cache counted them.
    fn input_tokens(&mut self, request: &ModelRequest) -> Option<f64> {
        let mut total = 0.0;
        for turn in &request.turns {
            match turn {
                RequestTurn::Text(_, prompt) => {
                    total += prompt.literal_len() as f64 / 4.0;
                    for (_, material) in prompt.used() {
                        total += self.material_tokens(material)?;
                    }
                }
                RequestTurn::Messages(material) | RequestTurn::Items(material) => {
                    total += self.material_tokens(material)?
                }
            }
        }
        Some(total)
    }

    fn material_tokens(&mut self, material: &InputValue) -> Option<f64> {
        match material {
            InputValue::Text(digest, text) => Some(match self.lookup.count(digest) {
                Some(count) => count as f64,
                None => *self.estimated.entry(*digest).or_insert_with(|| estimate_tokens(text).0 as f64),
            }),
            InputValue::Output(digest) => self.lookup.count(digest).map(|count| count as f64),
            InputValue::Composed(pieces) => pieces.parts().map(|(_, part)| self.material_tokens(part)).sum(),
        }
    }

    /// The input of a call like none before: a context of the size asked for, and its question.
    fn unseen_input(&self, stage: StageName, task: &Task) -> f64 {
        const QUESTION: f64 = 300.0;
        const GRADING: f64 = 1500.0;
        let asked = task.method(self.pipeline).and_then(|m| {
            let limit = m.strategy.model().and_then(|model| model.settings.max_output_tokens);
            m.target_tokens.or(limit).map(|tokens| tokens.0 as f64)
        });
        let context = asked.unwrap_or(1500.0);
        match stage {
            StageName::Probes | StageName::Compress => 8000.0,
            StageName::Answer => context + QUESTION,
            StageName::Judge | StageName::Selftest => context + GRADING,
        }
    }

    fn seen(&mut self, stage: StageName, model: &ModelRef) -> Option<ObservedCalls> {
        self.all_seen().get(&(stage, model.to_string())).copied().filter(|seen| seen.calls > 0.0)
    }

    /// The mean latency of a model in all stages.
    fn latency_elsewhere(&mut self, model: &ModelRef) -> Option<f64> {
        let name = model.to_string();
        let of_model = self.all_seen().iter().filter(|((_, seen), _)| *seen == name);
        let (calls, seconds) = of_model.fold((0.0, 0.0), |sum, (_, seen)| (sum.0 + seen.calls, sum.1 + seen.seconds));
        (calls > 0.0).then(|| seconds / calls)
    }

    fn all_seen(&mut self) -> &HashMap<(StageName, String), ObservedCalls> {
        let lookup = self.lookup;
        self.seen.get_or_insert_with(|| average_past_calls(lookup))
    }
}

/// What the latest calls of each stage and model were like.
fn average_past_calls<L: Lookup>(lookup: &L) -> HashMap<(StageName, String), ObservedCalls> {
    let mut seen: HashMap<(StageName, String), ObservedCalls> = HashMap::new();
    let mut taken: BTreeMap<crate::action::Stage, usize> = BTreeMap::new();
    for record in lookup.records().into_iter().rev() {
        let (Some(input), Some(output)) = (record.usage.input, record.usage.output) else { continue };
        let count = taken.entry(record.stage).or_default();
        if *count >= SAMPLE || matches!(record.status, EntryStatus::Failed { .. }) {
            continue;
        }
        *count += 1;
        let Ok(EntryMeta { requested_model: Some(model), lane, .. }) = lookup.meta(&record) else { continue };
        // A batch took as long as the vendor, or the user, let it wait.
        let seconds =
            if matches!(lane, Lane::Batch | Lane::File) { USUAL_LATENCY } else { record.latency_ms as f64 / 1000.0 };
        let entry = seen.entry((record.stage.into(), model)).or_default();
        entry.calls += 1.0;
        entry.input += input.0 as f64;
        entry.output += output.0 as f64;
        entry.squares += (output.0 as f64).powi(2);
        entry.seconds += seconds;
    }
    seen
}

fn seconds_under(limits: &Limits, load: &Load) -> f64 {
    let minutes = |amount: f64, rate: Option<f64>| rate.map_or(0.0, |rate| amount / rate.max(1.0) * 60.0);
    let in_flight = f64::from(limits.max_in_flight.unwrap_or(Limits::DEFAULT_IN_FLIGHT)).min(load.requests.max(1.0));
    [
        minutes(load.requests, limits.requests_per_minute.map(f64::from)),
        minutes(load.input + load.output, limits.tokens_per_minute.map(|n| n as f64)),
        minutes(load.input, limits.input_tokens_per_minute.map(|n| n as f64)),
        minutes(load.output, limits.output_tokens_per_minute.map(|n| n as f64)),
        load.seconds / in_flight,
    ]
    .into_iter()
    .fold(0.0, f64::max)
}
