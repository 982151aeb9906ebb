//! The life of one action: work is put together and done, its raw output stored, read, and the reading noted. A model
//! is asked again until its reply keeps the contract of its stage.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::breakers::CircuitBreakers;
use super::budget::{Budget, BudgetLease, BudgetReached, worst_case};
use super::job::Job;
use super::outputs::OutputCache;
use super::prefixes::SharedPrefixes;
use super::program::{ProgramOutput, Programs};
use crate::action::{Computation, Digest, INSTRUCTIONS, InputValue, ModelRequest, Prompt, RequestTurn, Stage, Work};
use crate::answer;
use crate::cache::{CacheError, Damage, EntryMeta, EntryStatus, Lookup, ParseResult, Record, Refresh, Store, now_ms};
use crate::compress::{self, CommandSpec};
use crate::lexical;
use crate::plan::{Output, PARSER_VERSION, Preparer, Unreadable};
use crate::remote::SharedCache;
use crate::results::{Blame, FailedAction};
use base::units::{Tokens, Usage, Usd};
use models::{
    self, AskFailure, Call, CallFailure, CallResult, Client, Dialect, ErrorClass, HttpRequest, Lane, ModelRef, Prices,
    ProviderSpec, RawReply, ReadFault, Turn, context_window, estimate, estimate_prefix, longest_reply, read_billing,
    reply_failure, truncated_call,
};
use sessions::transcript::{Message, Role, count_tokens};

#[derive(Debug)]
pub(super) struct ExecutedOutput {
    pub(super) out: Digest,
    pub(super) output: Output,
    pub(super) usage: Usage,
    /// `None` where no price is known; 0 where no provider was asked.
    pub(super) cost: Option<Usd>,
    /// Whether the last action in this place had the same output.
    pub(super) unchanged: bool,
    /// Input tokens that begin the request and that an earlier one of this run began with.
    pub(super) repeated: Tokens,
    pub(super) warnings: Vec<String>,
}

/// Why an action has no output.
#[derive(Debug)]
pub(super) enum ExecutionError {
    /// It failed; the run continues.
    Failed(Box<FailedAction>),
    /// The budget does not allow it.
    OverBudget(BudgetReached),
    /// It was not sent, or not again: the run is to end, or the breaker of its provider tripped.
    Cancelled,
    /// The store can write nothing more: the run ends.
    Store(CacheError),
}

impl From<FailedAction> for ExecutionError {
    fn from(failure: FailedAction) -> ExecutionError {
        ExecutionError::Failed(Box::new(failure))
    }
}

impl From<CacheError> for ExecutionError {
    fn from(error: CacheError) -> ExecutionError {
        ExecutionError::Store(error)
    }
}

/// What performing needs; shared by all actions under way.
pub struct Executor<'e> {
    pub preparer: Preparer<'e>,
    /// Stores what comes of it.
    pub store: &'e Store,
    pub outputs: &'e OutputCache<'e, Store>,
    pub client: &'e Client,
    pub budget: &'e Budget,
    pub prices: &'e Prices,
    pub prefixes: SharedPrefixes,
    /// The programs of the user's methods.
    pub programs: Programs,
    /// Where outputs are looked for that are not in the cache.
    pub shared: Option<&'e SharedCache>,
}

/// A raw output with what is known of how it came.
struct RawOutput {
    body: Bytes,
    dialect: Option<Dialect>,
    lane: Lane,
    model: Option<String>,
    usage: Usage,
    cost: Option<Usd>,
    latency_ms: u64,
    attempts: u32,
    request_id: Option<String>,
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl RawOutput {
    /// Something made here, by rules or by the user's program.
    fn local(body: Bytes, dialect: Option<Dialect>, began: Instant) -> RawOutput {
        let latency_ms = milliseconds(began.elapsed());
        let (usage, cost) = (Usage::default(), Some(Usd(0.0)));
        let lane = Lane::Live;
        RawOutput { body, dialect, lane, model: None, usage, cost, latency_ms, attempts: 1, request_id: None }
    }

    fn of_reply(reply: &RawReply, cost: Option<Usd>) -> RawOutput {
        RawOutput {
            body: reply.body.clone(),
            dialect: Some(reply.dialect),
            lane: reply.lane,
            model: reply.model.clone(),
            usage: reply.usage,
            cost,
            latency_ms: milliseconds(reply.latency),
            attempts: reply.attempts,
            request_id: reply.request_id.clone(),
        }
    }

    /// Describes the entry of a job's action.
    fn meta(&self, job: &Job) -> EntryMeta {
        EntryMeta {
            stage: job.action.stage,
            created: now_ms(),
            dialect: self.dialect,
            model: self.model.clone(),
            requested_model: job.action.work.requested_model(),
            usage: self.usage,
            cost: self.cost,
            latency_ms: self.latency_ms,
            attempts: self.attempts,
            request_id: self.request_id.clone(),
            coordinate: job.coordinate.clone(),
            inputs: job.action.inputs(),
            sources: job.sources.clone(),
            imported: None,
            lane: self.lane,
        }
    }
}

impl Executor<'_> {
    /// The output of a job outside of the matrix, if it is in the cache and reads.
    pub(super) fn cached_output(&self, job: &Job, refresh: &Refresh) -> Option<Output> {
        let is_good = |record: &Record| record.is_usable() && !refresh.replaces(record);
        let record = self.store.find(&job.action.key).filter(is_good)?;
        let bytes = self.outputs.body(&record).ok()?;
        let output = job.read_body(&self.preparer, record.dialect, &bytes).ok()?;
        self.store.touch(&record);
        Some(output)
    }

    /// Makes sure that the output of a cached action can be read when it is needed, without reading it, and notes that
    /// it is used. Where it had to be read to be named, the name is noted.
    pub(super) fn verify(&self, record: &Record, reread: Option<&Output>) -> Result<(), Damage> {
        if let Some(output) = reread {
            self.store.note(record, &ParseResult::Output { out: output.digest(), state: None, parser: PARSER_VERSION });
        }
        self.outputs.verify(record)?;
        self.store.touch(record);
        Ok(())
    }

    /// Does the work of a job and stores what comes of it.
    pub(super) async fn execute(
        &self,
        job: &Job,
        breakers: &CircuitBreakers,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let before = job.earlier_output(self.store);
        let mut fresh = match &job.action.work {
            Work::Ask(request) => self.ask(job, request, breakers).await,
            Work::Execute(program) => self.run_program(job, self.text(job, &program.stdin)?).await,
            Work::Compute(computation) => self.compute(job, computation).await,
        }?;
        fresh.unchanged = before == Some(fresh.out);
        Ok(fresh)
    }

    async fn run_program(&self, job: &Job, stdin: Arc<str>) -> Result<ExecutedOutput, ExecutionError> {
        let undeclared = || job.failure(Blame::Infrastructure, "no program is declared here");
        let spec = job.command(&self.preparer).ok_or_else(undeclared)?;
        self.budget.check().map_err(ExecutionError::OverBudget)?;
        let began = Instant::now();
        match self.programs.run(spec, Bytes::copy_from_slice(stdin.as_bytes())).await {
            Ok(output) => self.store_program_output(job, spec, output).await,
            Err(error) => {
                let message = error.to_string();
                let meta = RawOutput::local(Bytes::new(), None, began).meta(job);
                self.store.fail(job.action.key, &meta, "program", &message).await?;
                Err(job.failure(job.blame_of_program(), message).into())
            }
        }
    }

    /// Stores what a program returned, with what its requests cost: as it says, else by the price of its model. Where
    /// neither is known, the cost is unknown.
    async fn store_program_output(
        &self,
        job: &Job,
        spec: &CommandSpec,
        ProgramOutput { stdout, elapsed, .. }: ProgramOutput,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let raw = RawOutput { latency_ms: milliseconds(elapsed), ..RawOutput::local(stdout, None, Instant::now()) };
        let output = job.read_body(&self.preparer, None, &raw.body);
        let reported = output.as_ref().ok().and_then(Output::usage);
        let usage = reported.unwrap_or_default();
        let model = || ModelRef::parse(spec.model.as_deref()?);
        let cost = usage.cost.or_else(|| self.prices.cost(&model()?, &usage.tokens));
        if reported.is_some() || spec.model.is_some() || !spec.secrets.is_empty() {
            self.budget.charge(usage.calls.unwrap_or(0), usage.tokens, cost);
        }
        let raw = RawOutput { usage: usage.tokens, cost, ..raw };
        let record = self.store(job, &raw).await?;
        self.note_read(job, record, output, &raw)
    }

    async fn compute(&self, job: &Job, work: &Computation) -> Result<ExecutedOutput, ExecutionError> {
        let began = Instant::now();
        let (body, dialect) = match work {
            Computation::Strategy { rule, messages, target_tokens } => {
                let (rule, target, json) = (*rule, *target_tokens, self.text(job, messages)?);
                let computed = on_blocking_pool(job, move || {
                    let messages: Vec<Message> = serde_json::from_str(&json)?;
                    Ok::<_, serde_json::Error>(compress::compute(rule, target, &messages, &count_tokens))
                });
                let computed = computed.await?.map_err(|error| unreadable_messages(job, &error))?;
                (computed.map_err(|fault| job.failure(Blame::Method, fault.to_string()))?, None)
            }
            Computation::StandIn(request) => (self.stand_in(job, request).await?.into_bytes(), Some(Dialect::Lexical)),
        };
        self.store_and_read(job, RawOutput::local(body.into(), dialect, began)).await
    }

    /// The reply of the stand-in for a model. It gets the values of the prompts, and a judge's instructions, nothing else.
    async fn stand_in(&self, job: &Job, request: &ModelRequest) -> Result<String, ExecutionError> {
        let mut values: BTreeMap<&'static str, Arc<str>> = BTreeMap::new();
        for turn in &request.turns {
            let RequestTurn::Text(_, prompt) = turn else { continue };
            for (name, material) in prompt.values() {
                values.insert(name, self.text(job, material)?);
            }
        }
        let stage = job.action.stage;
        if let (Stage::Judge, Some(RequestTurn::Text(Role::System, prompt))) = (stage, request.turns.first()) {
            values.insert(INSTRUCTIONS, self.prompt_text(job, prompt)?);
        }
        on_blocking_pool(job, move || lexical::reply(stage, &values)).await
    }

    /// Asks a model, again if its reply breaks the contract of the stage.
    async fn ask(
        &self,
        job: &Job,
        request: &ModelRequest,
        breakers: &CircuitBreakers,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let call = self.call(job, request)?;
        let repeated = self.repeated_prefix(&call);
        let model = request.model_ref();
        let expected @ (input, _) = estimate(&call);
        self.fits_window(job, &model, input)?;
        let tokens = (input, self.longest_reply(&model, &call));
        let lane = self.dearest_lane(&call, &model);
        let lease = BudgetLease::new(self.budget, self.prices, (job.stage, &model, lane), tokens);
        let lease = lease.until_blocked(breakers, request);
        let mut attempt = 1;
        loop {
            let stored = &Cell::new(None);
            let store = |reply: &RawReply| {
                let raw = RawOutput::of_reply(reply, self.prices.cost_in(reply.lane, &model, &reply.usage));
                async move { self.store(job, &raw).await.map(|record| stored.set(Some(record))) }
            };
            let asked = match self.client.ask(&request.provider, &call, expected, &lease, store).await {
                Ok((reply, completion)) if completion.truncated && !job.takes_truncated() => {
                    Err(AskFailure::Call(truncated_call(&reply, &call)))
                }
                asked => asked,
            };
            let (reply, completion) = match asked {
                Ok(answered) => answered,
                Err(failure) => return Err(self.not_answered(job, (request, breakers), failure, &lease).await),
            };
            match job.read_reply(&self.preparer, reply.dialect, &completion) {
                Ok(output) => {
                    self.outputs.note_model(job.action.work.requested_model(), reply.model);
                    let cost = self.prices.cost_in(reply.lane, &model, &reply.usage);
                    let mut fresh = self.fresh(stored.take(), reply.usage, cost, output);
                    fresh.repeated = repeated;
                    fresh.warnings.extend(reply.usage_warning.map(|warning| format!("`{model}` {warning}")));
                    return Ok(fresh);
                }
                Err(fault) => {
                    self.note_unreadable(stored.take(), &fault.to_string());
                    if attempt >= job.attempts {
                        return Err(job.unreadable(&fault, format!("{fault} ({attempt} replies)")).into());
                    }
                    attempt += 1;
                }
            }
        }
    }

    /// Why a request has no answer.
    async fn not_answered(
        &self,
        job: &Job,
        asked: (&ModelRequest, &CircuitBreakers),
        failure: AskFailure<CacheError>,
        lease: &BudgetLease<'_>,
    ) -> ExecutionError {
        match failure {
            AskFailure::Store(error) => error.into(),
            AskFailure::BudgetExhausted => ExecutionError::OverBudget(lease.refusal()),
            AskFailure::Cancelled => ExecutionError::Cancelled,
            AskFailure::Call(failure) => self.call_failed(job, asked, failure).await,
        }
    }

    /// The request of a job as a line of a batch has it, with its input as estimated and the most that it may cost.
    pub(super) fn batch_request(
        &self,
        job: &Job,
        request: &ModelRequest,
        spec: &ProviderSpec,
    ) -> Result<(HttpRequest, Tokens, Option<Usd>), ExecutionError> {
        let call = self.call(job, request)?;
        let model = request.model_ref();
        let (input, _) = estimate(&call);
        self.fits_window(job, &model, input)?;
        let tokens = (input, self.longest_reply(&model, &call));
        let built = models::request(spec, &call).map_err(|fault| {
            let class = Some(ErrorClass::Invalid);
            FailedAction { class, ..job.failure(Blame::Infrastructure, fault.to_string()) }
        })?;
        Ok((built, input, worst_case(self.prices, (&model, request.lane), tokens)))
    }

    /// Reads the stored reply to a request of a batch as that to a live one is read; `None` if it is to be asked again.
    pub(super) async fn read_stored(
        &self,
        job: &Job,
        breakers: &CircuitBreakers,
    ) -> Option<Result<ExecutedOutput, ExecutionError>> {
        let Work::Ask(request) = &job.action.work else { return None };
        let record = self.store.find(&job.action.key)?;
        let body = self.store.body(&record).ok()?;
        let dialect = record.dialect.unwrap_or(Dialect::OpenaiChat);
        let completion = match models::read(dialect, request.operation, &body, None) {
            Ok(completion) if completion.truncated && !job.takes_truncated() => Err(ReadFault::Truncated),
            read => read,
        };
        let fault = match completion.map(|completion| job.read_reply(&self.preparer, dialect, &completion)) {
            Ok(Ok(output)) => {
                self.outputs.note_model(job.action.work.requested_model(), read_billing(dialect, &body).model);
                let (usage, cost) = (record.usage, record.cost);
                return Some(Ok(self.fresh(Some(record), usage, cost, output)));
            }
            Ok(Err(fault)) => {
                self.note_unreadable(Some(record), &fault.to_string());
                let failure = || job.unreadable(&fault, fault.to_string());
                return (job.attempts <= 1).then(|| Err(ExecutionError::from(failure())));
            }
            Err(fault) => fault,
        };
        let limit = request.settings.max_output_tokens;
        let (failure, is_retryable) = reply_failure(fault, &record.usage, limit, 1);
        if is_retryable {
            self.note_unreadable(Some(record), &failure.message);
            return None;
        }
        Some(Err(self.call_failed(job, (request, breakers), failure).await))
    }

    /// Refuses early what the model's window cannot hold.
    fn fits_window(&self, job: &Job, model: &ModelRef, input: Tokens) -> Result<(), ExecutionError> {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        match provider.and_then(|provider| context_window(provider, &model.model)) {
            Some(window) if input > window => {
                let message =
                    format!("about {} tokens are to be sent, and {model} takes {} at most", input.0, window.0);
                let hint = Some("compress harder, move the point, or use a model with a larger window".to_owned());
                let class = Some(ErrorClass::TooLong);
                Err(FailedAction { class, hint, ..job.failure(Blame::Method, message) }.into())
            }
            _ => Ok(()),
        }
    }

    /// The dearest lane that a call may be billed in: one that may fall back can cost the live price.
    fn dearest_lane(&self, call: &Call, model: &ModelRef) -> Lane {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        if provider.is_some_and(|provider| provider.limits.flex_fallback) { Lane::Live } else { call.lane }
    }

    /// The tokens that the reply to a call takes at most.
    fn longest_reply(&self, model: &ModelRef, call: &Call) -> Tokens {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        let dialect = provider.map_or(Dialect::OpenaiChat, |provider| provider.dialect);
        longest_reply(dialect, &model.model, call.settings.max_output_tokens)
    }

    fn call(&self, job: &Job, request: &ModelRequest) -> Result<Call, ExecutionError> {
        let text_of = |digest: &Digest| job.text_of(self.outputs, digest);
        let mut turns = Vec::new();
        for turn in &request.turns {
            let turn = match turn {
                RequestTurn::Text(role, prompt) => {
                    let text = prompt.text_until(answer::QUESTION, &text_of);
                    let (text, shared) = text.map_err(|error| job.unavailable(&error))?;
                    let (shared, own) = at_paragraph(&text, shared);
                    turns.extend(shared.map(|text| Turn::Text { role: *role, text: text.into() }));
                    Turn::Text { role: *role, text: own.into() }
                }
                RequestTurn::Items(material) => Turn::Items(self.text(job, material)?),
                RequestTurn::Said(role, material) => Turn::Text { role: *role, text: self.text(job, material)? },
                RequestTurn::Reply(material) => Turn::Reply(self.text(job, material)?),
                RequestTurn::Results(material) => {
                    let results: Vec<CallResult> = serde_json::from_str(&self.text(job, material)?)
                        .map_err(|error| unreadable_messages(job, &error))?;
                    Turn::Results(results.into())
                }
                RequestTurn::Messages(material) => {
                    let messages: Vec<Message> = serde_json::from_str(&self.text(job, material)?)
                        .map_err(|error| unreadable_messages(job, &error))?;
                    Turn::Messages(messages.into())
                }
            };
            turns.push(turn);
        }
        let model = request.model_ref();
        let prefix_uses = job.prefix_uses(&self.preparer);
        let instructions = request.instructions.as_ref().map(|prompt| prompt.text(&text_of)).transpose();
        Ok(Call {
            model: request.model.clone(),
            operation: request.operation,
            turns,
            instructions: instructions.map_err(|error| job.unavailable(&error))?,
            settings: request.settings.clone(),
            schema: request.schema.as_ref().map(|shape| shape.schema().clone()),
            tools: request.tools.clone(),
            lane: request.lane.of_one(),
            prefix_uses,
            cache_ttl: self.prefixes.ttl(job.stage, &model, prefix_uses, self.client),
        })
    }

    /// The tokens of the beginning that the call shares with others, if one of them was made in this run.
    fn repeated_prefix(&self, call: &Call) -> Tokens {
        let is_first = call.prefix_id().is_none_or(|prefix| self.prefixes.is_new(prefix));
        if is_first { Tokens(0) } else { estimate_prefix(call) }
    }

    async fn call_failed(
        &self,
        job: &Job,
        (request, breakers): (&ModelRequest, &CircuitBreakers),
        failure: CallFailure,
    ) -> ExecutionError {
        // A reply that arrived and is no answer stays to be looked at. Read by itself it might pass for one: that its
        // prompt was cut, for one, shows only beside the request.
        let stored = self.store.find(&job.action.key).filter(|record| record.status == EntryStatus::Unparsed);
        self.note_unreadable(stored, &failure.message);
        let mut raw = RawOutput::local(Bytes::new(), None, Instant::now());
        (raw.attempts, raw.cost) = (failure.attempts, None);
        let CallFailure { class, message, hint, .. } = failure;
        let blame = if class == ErrorClass::TooLong { Blame::Method } else { Blame::Infrastructure };
        let failure = FailedAction { class: Some(class), hint, ..job.failure(blame, message) };
        // before anything is waited for: what waits for its turn would fail alike
        breakers.record(request, &failure);
        match self.store.fail(job.action.key, &raw.meta(job), class.name(), &failure.message).await {
            Ok(_) => failure.into(),
            Err(error) => error.into(),
        }
    }

    fn text(&self, job: &Job, material: &InputValue) -> Result<Arc<str>, ExecutionError> {
        let text = material.text(&|digest: &Digest| job.text_of(self.outputs, digest));
        text.map_err(|error| job.unavailable(&error).into())
    }

    fn prompt_text(&self, job: &Job, prompt: &Prompt) -> Result<Arc<str>, ExecutionError> {
        let text = prompt.text(&|digest: &Digest| job.text_of(self.outputs, digest));
        text.map_err(|error| job.unavailable(&error).into())
    }

    /// Puts a raw output on disk. What is taken from it for the entry's description is a glance that cannot fail:
    /// the reply itself is read only afterwards.
    async fn store(&self, job: &Job, raw: &RawOutput) -> Result<Record, CacheError> {
        self.store.put_reply(job.action.key, &raw.meta(job), raw.body.clone()).await
    }

    async fn store_and_read(&self, job: &Job, raw: RawOutput) -> Result<ExecutedOutput, ExecutionError> {
        let record = self.store(job, &raw).await?;
        self.note_read(job, record, job.read_body(&self.preparer, raw.dialect, &raw.body), &raw)
    }

    /// Notes how a stored output was read.
    fn note_read(
        &self,
        job: &Job,
        record: Record,
        read: Result<Output, Unreadable>,
        raw: &RawOutput,
    ) -> Result<ExecutedOutput, ExecutionError> {
        match read {
            Ok(output) => Ok(self.fresh(Some(record), raw.usage, raw.cost, output)),
            Err(fault) => {
                self.note_unreadable(Some(record), &fault.to_string());
                Err(job.unreadable(&fault, fault.to_string()).into())
            }
        }
    }

    fn fresh(&self, record: Option<Record>, usage: Usage, cost: Option<Usd>, output: Output) -> ExecutedOutput {
        let out = output.digest();
        if let Some(record) = record {
            self.store.note(&record, &ParseResult::Output { out, state: None, parser: PARSER_VERSION });
        }
        let usage = output.usage().map_or(usage, |reported| reported.tokens);
        let warnings = output.warnings();
        ExecutedOutput { out, output, usage, cost, unchanged: false, repeated: Tokens(0), warnings }
    }

    fn note_unreadable(&self, record: Option<Record>, fault: &str) {
        if let Some(record) = record {
            self.store.note(&record, &ParseResult::Malformed { parser: PARSER_VERSION, fault: fault.to_owned() });
        }
    }
}

fn unreadable_messages(job: &Job, error: &serde_json::Error) -> FailedAction {
    job.failure(Blame::Infrastructure, format!("the messages cannot be read: {error}"))
}

/// Runs something that takes processor time beside the event loop.
async fn on_blocking_pool<T: Send + 'static>(
    job: &Job,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ExecutionError> {
    let failed = |error: tokio::task::JoinError| {
        job.failure(Blame::Infrastructure, format!("an internal rule failed: {error}")).into()
    };
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Splits a text where dialects join turns of one speaker again: at the last blank line of what requests share, its
/// first `shared` bytes. A provider's prompt cache ends at a turn.
fn at_paragraph(text: &str, shared: usize) -> (Option<&str>, &str) {
    const BLANK_LINE: &str = "\n\n";
    let end = text.get(..shared).filter(|shared| shared.len() < text.len()).and_then(|text| text.rfind(BLANK_LINE));
    match end.map(|end| (&text[..end], &text[end + BLANK_LINE.len()..])) {
        Some((before, after)) if !before.trim().is_empty() => (Some(before), after),
        _ => (None, text),
    }
}
