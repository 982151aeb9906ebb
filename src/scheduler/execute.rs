//! The life of one action: it is executed, its raw output is stored and then read, and the store notes how it was read.
//! A model is asked again if its reply breaks the contract of the stage.
//!
//! Where the cache has an output already, because its stage is refreshed, a reply is read first and is not stored if it
//! cannot be used: an output is only replaced by another one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::breakers::CircuitBreakers;
use super::budget::{Budget, BudgetLease, BudgetReached, worst_case};
use super::options::{ExecutedOutput, ExecutionError, SchedulerOptions, StopRequest};
use super::program::{ProgramOutput, Programs};
use crate::action::{
    Computation, Digest, INSTRUCTIONS, InputValue, ModelRequest, Place, Prompt, RequestTurn, Stage,
    Work, at_paragraph,
};
use crate::answer;
use crate::compress::{self, CommandSpec, Strategy};
use crate::entries::{BodyFormat, EntryLookup, EntryMeta, EntryRecord, Refresh};
use crate::pipeline::Pipeline;
use crate::plan::{
    self, Action, Blame, FailedAction, Output, OutputCache, OutputUnavailable, PARSER_VERSION,
    Resolved, Task, Unreadable, read_output,
};
use crate::stand_in;
use base::units::{Tokens, Usage, Usd};
use models::{
    self, AskFailure, Call, CallFailure, CallResult, Client, Dialect, ErrorClass, HttpRequest,
    ModelRef, Operation, Prices, ProviderSpec, RawReply, Turn, context_window, estimate,
    longest_reply, truncated_call,
};
use sessions::transcript::{Message, Role, count_tokens};
use store::cache::{CacheError, Damage, EntryStatus, Lookup, Record, Store};
use store::remote::SharedCache;

/// Executes actions. All that are under way share one.
pub struct Executor<'e> {
    pub pipeline: &'e Pipeline,
    /// Where outputs are stored.
    pub store: &'e Store,
    pub outputs: &'e OutputCache<'e>,
    pub client: &'e Client,
    pub budget: &'e Budget,
    pub prices: &'e Prices,
    /// The programs of the user's methods.
    pub programs: Programs,
    /// The remote, where outputs are looked for that are not in the cache.
    pub shared: Option<&'e SharedCache>,
    pub options: &'e SchedulerOptions,
    pub breakers: CircuitBreakers,
    /// What the user asks for.
    pub stop: watch::Receiver<StopRequest>,
}

impl Executor<'_> {
    /// Describes the entry of an action that rules or the user's program executed: it used no tokens and cost nothing.
    pub(super) fn describe(&self, action: &Action, latency: Duration) -> EntryMeta {
        let inputs = action.inputs(self.pipeline);
        let mut meta = EntryMeta::new(self.place(action), inputs, action.work.requested_model());
        meta.summary.latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        meta.summary.cost = Some(Usd(0.0));
        meta
    }

    /// Describes the entry of an action that a provider replied to.
    fn describe_reply(&self, action: &Action, reply: &RawReply, cost: Option<Usd>) -> EntryMeta {
        let mut meta = EntryMeta {
            attempts: reply.attempts,
            request_id: reply.request_id.clone(),
            ..self.describe(action, reply.latency)
        };
        meta.summary.models.answered.clone_from(&reply.model);
        (meta.summary.usage, meta.summary.cost) = (reply.usage, cost);
        meta.in_dialect(reply.dialect)
    }

    /// The place by which the cache finds the latest action.
    pub(super) fn place(&self, action: &Action) -> Place {
        action.task.place(self.pipeline)
    }

    /// An action that has no output.
    pub(super) fn failure(
        &self,
        action: &Action,
        blame: Blame,
        message: impl Into<String>,
    ) -> FailedAction {
        let (place, stage) = (self.place(action), action.task.stage());
        FailedAction {
            blame,
            ..FailedAction::new(place, stage, Some(action.key), message)
        }
    }

    /// The failure for an output that cannot be read. If the method made the output, it is the method's fault.
    pub(super) fn unreadable(
        &self,
        action: &Action,
        fault: &Unreadable,
        message: String,
    ) -> FailedAction {
        let blame = if matches!(fault, Unreadable::Context(_)) {
            Blame::Method
        } else {
            Blame::Infrastructure
        };
        self.failure(action, blame, message)
    }

    /// An input that cannot be read from the cache.
    pub(super) fn unavailable(&self, action: &Action, error: &OutputUnavailable) -> FailedAction {
        let hint = Some(OutputUnavailable::remedy().to_owned());
        FailedAction {
            hint,
            ..self.failure(action, Blame::Infrastructure, error.to_string())
        }
    }

    /// Does work that takes processor time, beside the event loop.
    async fn on_blocking_pool<T: Send + 'static>(
        &self,
        action: &Action,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ExecutionError> {
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            let message = format!("an internal rule failed: {error}");
            self.failure(action, Blame::Infrastructure, message).into()
        })
    }

    /// The output of a task, if it is in the cache and can be read.
    pub(super) fn cached_output(&self, task: &Task) -> Option<Output> {
        let key = Action::prepare(self.pipeline, task).ok()?.key;
        let record = self.store.find_usable(&key)?;
        self.outputs.read_record(task, &record).ok()
    }

    /// Whether the cache has an output of an action, which a refresh ignores.
    pub(super) fn has_output(&self, action: &Action) -> bool {
        plan::look_up(self.store, self.pipeline, action, &Refresh::default()).is_some()
    }

    /// Verifies that the output of a cached action can be read when it is needed, without reading it, and notes that it
    /// is used. If it had to be read to compute its digest, that is noted, too.
    pub(super) fn verify(&self, record: &Record, reread: Option<&Output>) -> Result<(), Damage> {
        if let Some(output) = reread {
            self.note_parsed(record, output.digest());
        }
        self.outputs.verify(record)?;
        self.store.touch(record);
        Ok(())
    }

    /// Does the work of an action and stores the output.
    pub(super) async fn execute(&self, action: &Action) -> Result<ExecutedOutput, ExecutionError> {
        let before = plan::earlier_output(self.store, &self.place(action), action);
        let made = match &action.work {
            Work::Ask(request) => self.ask(action, request).await,
            Work::Execute(program) => self.run_program(action, &program.stdin).await,
            Work::Compute(computation) => self.compute(action, computation).await,
        };
        let mut fresh = made?;
        fresh.resolved.unchanged = before == Some(fresh.resolved.out);
        Ok(fresh)
    }

    async fn compute(
        &self,
        action: &Action,
        work: &Computation,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let began = Instant::now();
        let (body, dialect) = match work {
            Computation::Strategy {
                rule,
                messages,
                target_tokens,
            } => {
                let (rule, target) = (*rule, *target_tokens);
                let messages = self.read_input(action, messages)?;
                let computed: Result<Vec<u8>, serde_json::Error> = self
                    .on_blocking_pool(action, move || {
                        let messages: Vec<Message> = serde_json::from_str(&messages)?;
                        Ok(compress::compute(rule, target, &messages, &count_tokens))
                    })
                    .await?;
                let computed = computed.map_err(|error| self.unreadable_list(action, &error))?;
                (computed, None)
            }
            Computation::StandIn(request) => {
                let reply = self.stand_in(action, request).await?;
                (reply.into_bytes(), Some(Dialect::Lexical))
            }
        };
        let body = Bytes::from(body);
        let mut meta = self.describe(action, began.elapsed());
        if let Some(dialect) = dialect {
            meta = meta.in_dialect(dialect);
        }
        let record = self
            .store
            .put_reply(action.key, &meta.header(), body.clone())
            .await?;
        let read = read_output(self.pipeline, &action.task, record.body_format(), &body);
        self.note_read(action, Some(record), read)
    }

    async fn run_program(
        &self,
        action: &Action,
        stdin: &InputValue,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let method = action.task.method(self.pipeline);
        let Some(Strategy::Command(spec)) = method.map(|method| &method.strategy) else {
            let missing = "no program is declared here";
            return Err(self.failure(action, Blame::Infrastructure, missing).into());
        };
        // While this call waited for a worker, the run may have been stopped, or have spent its budget.
        let turn = self.programs.turn(spec).await;
        if self.breakers.is_cancelled() {
            return Err(ExecutionError::Cancelled);
        }
        self.budget.check().map_err(ExecutionError::OverBudget)?;
        self.check_inputs(action, spec)?;
        let stdin = Bytes::copy_from_slice(self.read_input(action, stdin)?.as_bytes());
        let began = Instant::now();
        match self.programs.run(spec, stdin, turn).await {
            Ok(output) => self.store_program_output(action, spec, output).await,
            Err(message) => {
                self.check_inputs(action, spec)?;
                let meta = self.describe(action, began.elapsed());
                self.store
                    .fail(action.key, &meta.header(), "program", &message)
                    .await?;
                Err(self.failure(action, Blame::Method, message).into())
            }
        }
    }

    /// Refuses what a program makes, or made, after one of its inputs was changed: its key names what was hashed.
    fn check_inputs(&self, action: &Action, spec: &CommandSpec) -> Result<(), ExecutionError> {
        let Some(path) = spec.changed_input() else {
            return Ok(());
        };
        let message = format!("{path}, one of the program's `inputs`, was changed during the run");
        Err(self.failure(action, Blame::Infrastructure, message).into())
    }

    /// Stores what a program returned, with what its requests cost: as it says, else by the price of its model. Where
    /// neither is known, the cost is unknown.
    async fn store_program_output(
        &self,
        action: &Action,
        spec: &CommandSpec,
        ProgramOutput {
            stdout, elapsed, ..
        }: ProgramOutput,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let output = read_output(self.pipeline, &action.task, BodyFormat::Local, &stdout);
        let reported = output
            .as_ref()
            .map_or_else(|_| compress::reported_usage(&stdout), Output::usage);
        let usage = reported.unwrap_or_default();
        let cost = usage.cost.or_else(|| {
            self.prices
                .cost(&ModelRef::parse(spec.model.as_deref()?)?, &usage.tokens)
        });
        if reported.is_some() || spec.model.is_some() || !spec.secrets.is_empty() {
            self.budget
                .charge(usage.calls.unwrap_or(0), usage.tokens, cost);
        }
        self.check_inputs(action, spec)?;
        if output.is_err() && self.has_output(action) {
            return self.note_read(action, None, output);
        }
        let mut meta = self.describe(action, elapsed);
        (meta.summary.usage, meta.summary.cost) = (usage.tokens, cost);
        let record = self
            .store
            .put_reply(action.key, &meta.header(), stdout)
            .await?;
        self.note_read(action, Some(record), output)
    }

    /// The reply of the stand-in for a model. It gets the values of the prompts, and a judge's instructions, nothing else.
    async fn stand_in(
        &self,
        action: &Action,
        request: &ModelRequest,
    ) -> Result<String, ExecutionError> {
        let mut values: BTreeMap<&'static str, Arc<str>> = BTreeMap::new();
        for turn in &request.turns {
            let RequestTurn::Text(_, prompt) = turn else {
                continue;
            };
            for (name, value) in prompt.values() {
                values.insert(name, self.read_input(action, value)?);
            }
        }
        let stage = action.stage;
        if let (Stage::Judge, Some(RequestTurn::Text(Role::System, prompt))) =
            (stage, request.turns.first())
        {
            values.insert(INSTRUCTIONS, self.read_prompt(action, prompt)?);
        }
        self.on_blocking_pool(action, move || stand_in::reply(stage, &values))
            .await
    }

    /// Asks a model, again if its reply breaks the contract of the stage.
    async fn ask(
        &self,
        action: &Action,
        request: &ModelRequest,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let call = self.make_call(action, request)?;
        let model = request.model_ref();
        let expected @ (input, _) = estimate(&call);
        self.fits_window(action, &model, input)?;
        let has_output = self.has_output(action);
        let before = if has_output {
            action.unusable
        } else {
            self.store.unusable_in_batch(&action.key)
        };
        let lease = BudgetLease {
            budget: self.budget,
            prices: self.prices,
            stage: action.task.stage(),
            model: &model,
            input,
            longest: self.longest_reply(&model, &call),
            unusable_before: before,
            breakers: Some((&self.breakers, request)),
        };
        let mut attempt = 1 + before;
        loop {
            let stored = &Cell::new(None);
            let store = |reply: &RawReply| {
                let meta =
                    self.describe_reply(action, reply, self.prices.cost(&model, &reply.usage));
                let body = reply.body.clone();
                let is_kept =
                    !has_output || self.is_output(action, request.operation, reply, input);
                async move {
                    if is_kept {
                        stored.set(Some(
                            self.store
                                .put_reply(action.key, &meta.header(), body)
                                .await?,
                        ));
                    }
                    Ok::<(), CacheError>(())
                }
            };
            let asked = match self
                .client
                .ask(&request.provider, &call, expected, &lease, store)
                .await
            {
                Ok((reply, completion)) if completion.truncated && !takes_truncated(action) => {
                    Err(AskFailure::Call(truncated_call(&reply, &call)))
                }
                asked => asked,
            };
            let (reply, completion) = match asked {
                Ok(answered) => answered,
                Err(failure) => {
                    return Err(self
                        .not_answered(action, request, stored.take(), failure)
                        .await);
                }
            };
            match plan::read_reply(self.pipeline, &action.task, reply.dialect, &completion) {
                Ok(output) => {
                    let warning = reply.usage_warning;
                    return Ok(ExecutedOutput {
                        usage_warning: warning.map(|warning| format!("`{model}` {warning}")),
                        ..self.note_output(action, stored.take(), output)
                    });
                }
                Err(fault) => self.note_unusable(action, stored.take(), &fault, attempt)?,
            }
            attempt += 1;
        }
    }

    /// Notes that a reply, the attempt with this number, is not an output. After the last attempt that is an error.
    fn note_unusable(
        &self,
        action: &Action,
        record: Option<Record>,
        fault: &Unreadable,
        attempt: u32,
    ) -> Result<(), ExecutionError> {
        self.note_unreadable(record, &fault.to_string());
        if attempt < action.attempts {
            return Ok(());
        }
        let message = format!("{fault} ({attempt} replies)");
        Err(self.unreadable(action, fault, message).into())
    }

    /// Whether the reply to a request of about `input` tokens is an output.
    fn is_output(
        &self,
        action: &Action,
        operation: Operation,
        reply: &RawReply,
        input: Tokens,
    ) -> bool {
        let read = models::read(reply.dialect, operation, &reply.body, Some(input));
        read.is_ok_and(|read| {
            plan::read_reply(self.pipeline, &action.task, reply.dialect, &read).is_ok()
        })
    }

    /// The error of an action whose request has no answer. `stored` is its last reply, if there is one.
    async fn not_answered(
        &self,
        action: &Action,
        request: &ModelRequest,
        stored: Option<Record>,
        failure: AskFailure<CacheError, BudgetReached>,
    ) -> ExecutionError {
        match failure {
            AskFailure::Store(error) => error.into(),
            AskFailure::OverBudget(reached) => ExecutionError::OverBudget(reached),
            AskFailure::Cancelled => ExecutionError::Cancelled,
            AskFailure::Call(failure) => {
                // A reply that arrived and is no answer is kept for inspection. It is marked, because read without its
                // request it might pass for an answer: that its prompt was cut, for example, shows only beside the
                // request.
                self.note_unreadable(stored, &failure.message);
                self.fail(
                    action,
                    request,
                    self.failed_call(action, &failure),
                    failure.attempts,
                )
                .await
            }
        }
    }

    /// The request of an action for a line of a batch, with its estimated input and the most that it may cost.
    pub(super) fn batch_request(
        &self,
        action: &Action,
        request: &ModelRequest,
        spec: &ProviderSpec,
    ) -> Result<(HttpRequest, Option<Usd>), ExecutionError> {
        let call = self.make_call(action, request)?;
        let model = request.model_ref();
        let (input, _) = estimate(&call);
        self.fits_window(action, &model, input)?;
        let longest = self.longest_reply(&model, &call);
        let built = models::request(spec, &call).map_err(|fault| {
            let class = Some(ErrorClass::Invalid);
            FailedAction {
                class,
                ..self.failure(action, Blame::Infrastructure, fault.to_string())
            }
        })?;
        Ok((
            built,
            worst_case(self.prices, &model, request.lane, input, longest),
        ))
    }

    /// Refuses early what the model's window cannot hold.
    fn fits_window(
        &self,
        action: &Action,
        model: &ModelRef,
        input: Tokens,
    ) -> Result<(), ExecutionError> {
        let provider = self.pipeline.providers.get(&model.provider);
        match provider.and_then(|provider| context_window(provider, &model.model)) {
            Some(window) if input > window => {
                let message = format!(
                    "the request has about {} tokens, but {model} accepts at most {}",
                    input.0, window.0
                );
                let hint = "compress harder, move the point, or use a model with a larger window";
                let failure = CallFailure {
                    class: ErrorClass::TooLong,
                    message,
                    hint: Some(hint.to_owned()),
                    attempts: 0,
                };
                Err(self.failed_call(action, &failure).into())
            }
            _ => Ok(()),
        }
    }

    /// The tokens that the reply to a call takes at most.
    fn longest_reply(&self, model: &ModelRef, call: &Call) -> Tokens {
        let provider = self.pipeline.providers.get(&model.provider);
        let dialect = provider.map_or(Dialect::OpenaiChat, |provider| provider.dialect);
        longest_reply(dialect, &model.model, call.settings.max_output_tokens)
    }

    fn make_call(&self, action: &Action, request: &ModelRequest) -> Result<Call, ExecutionError> {
        let mut turns = Vec::new();
        for turn in &request.turns {
            let turn = match turn {
                RequestTurn::Text(role, prompt) => {
                    let (text, shared) = prompt
                        .text_until(answer::QUESTION, &|digest: &Digest| {
                            self.outputs.text_of(&action.task, digest)
                        })
                        .map_err(|error| self.unavailable(action, &error))?;
                    let (shared, own) = at_paragraph(&text, shared);
                    turns.extend(shared.map(|text| Turn::Text {
                        role: *role,
                        text: text.into(),
                    }));
                    Turn::Text {
                        role: *role,
                        text: own.into(),
                    }
                }
                RequestTurn::Items(value) => Turn::Items(self.read_input(action, value)?),
                RequestTurn::Reply(value) => Turn::Reply(self.read_input(action, value)?),
                RequestTurn::Results(value) => {
                    Turn::Results(self.read_list::<CallResult>(action, value)?.into())
                }
                RequestTurn::Messages(value) => {
                    Turn::Messages(self.read_list::<Message>(action, value)?.into())
                }
            };
            turns.push(turn);
        }
        let prefix_uses = action.task.prefix_uses(self.pipeline);
        let instructions = request
            .instructions
            .as_ref()
            .map(|prompt| self.read_prompt(action, prompt));
        Ok(Call {
            model: request.model.clone(),
            operation: request.operation,
            turns,
            instructions: instructions.transpose()?,
            settings: request.settings.clone(),
            schema: request.schema.as_ref().map(|shape| shape.schema().clone()),
            tools: request.tools.clone(),
            prefix_uses,
        })
    }

    /// An action whose call failed. The method answers for what is too long, and for an empty compression.
    pub(super) fn failed_call(&self, action: &Action, failure: &CallFailure) -> FailedAction {
        let blame = match (failure.class, &action.task) {
            (ErrorClass::TooLong, _) | (ErrorClass::Empty, Task::Compress(_)) => Blame::Method,
            _ => Blame::Infrastructure,
        };
        FailedAction {
            class: Some(failure.class),
            hint: failure.hint.clone(),
            ..self.failure(action, blame, &*failure.message)
        }
    }

    /// Records that an action failed, in the store if its call did.
    pub(super) async fn fail(
        &self,
        action: &Action,
        request: &ModelRequest,
        failure: FailedAction,
        attempts: u32,
    ) -> ExecutionError {
        // before any await: requests that wait for their turn would fail in the same way
        self.breakers.record(request, &failure);
        let Some(class) = failure.class else {
            return failure.into();
        };
        let mut meta = self.describe(action, Duration::ZERO);
        (meta.attempts, meta.summary.cost) = (attempts, None);
        let noted = self
            .store
            .fail(action.key, &meta.header(), class.name(), &failure.message)
            .await;
        noted.map_or_else(ExecutionError::from, |_| failure.into())
    }

    /// The text of an input, from the cache where it is another action's output.
    fn read_input(&self, action: &Action, value: &InputValue) -> Result<Arc<str>, ExecutionError> {
        let text = value.text(&|digest: &Digest| self.outputs.text_of(&action.task, digest));
        text.map_err(|error| self.unavailable(action, &error).into())
    }

    fn read_list<T: DeserializeOwned>(
        &self,
        action: &Action,
        value: &InputValue,
    ) -> Result<Vec<T>, ExecutionError> {
        let list = serde_json::from_str(&self.read_input(action, value)?);
        list.map_err(|error| self.unreadable_list(action, &error))
    }

    fn unreadable_list(&self, action: &Action, error: &serde_json::Error) -> ExecutionError {
        let message = format!("the messages cannot be read: {error}");
        self.failure(action, Blame::Infrastructure, message).into()
    }

    fn read_prompt(&self, action: &Action, prompt: &Prompt) -> Result<Arc<str>, ExecutionError> {
        let text = prompt.text(&|digest: &Digest| self.outputs.text_of(&action.task, digest));
        text.map_err(|error| self.unavailable(action, &error).into())
    }

    /// Notes how an output was read, in its `record` if it is stored.
    fn note_read(
        &self,
        action: &Action,
        record: Option<Record>,
        read: Result<Output, Unreadable>,
    ) -> Result<ExecutedOutput, ExecutionError> {
        match read {
            Ok(output) => Ok(self.note_output(action, record, output)),
            Err(fault) => {
                self.note_unreadable(record, &fault.to_string());
                Err(self.unreadable(action, &fault, fault.to_string()).into())
            }
        }
    }

    /// Notes how an output was read, and returns it with the usage and cost in its `record`.
    pub(super) fn note_output(
        &self,
        action: &Action,
        record: Option<Record>,
        output: Output,
    ) -> ExecutedOutput {
        let out = output.digest();
        let (usage, cost) = record.as_ref().map_or((Usage::default(), None), |record| {
            (record.summary.usage, record.summary.cost)
        });
        if let Some(record) = record {
            self.note_parsed(&record, out);
            self.outputs.note_models(record.summary.models);
        }
        let usage = output.usage().map_or(usage, |reported| reported.tokens);
        let resolved = Resolved {
            key: action.key,
            out,
            cost,
            unchanged: false,
        };
        ExecutedOutput {
            resolved,
            output,
            usage,
            usage_warning: None,
        }
    }

    /// Notes that a record holds an output with this digest.
    fn note_parsed(&self, record: &Record, out: Digest) {
        let parser = PARSER_VERSION;
        self.store
            .note(record, &EntryStatus::Output { out, parser });
    }

    pub(super) fn note_unreadable(&self, record: Option<Record>, fault: &str) {
        if let Some(record) = record {
            self.store
                .note(&record, &EntryStatus::malformed(PARSER_VERSION, fault));
        }
    }
}

/// Whether a reply that the token limit cut off is an output. An answer is one; whether it is graded is a setting of its
/// answerer.
fn takes_truncated(action: &Action) -> bool {
    matches!(action.task, Task::Answer(_))
}
