//! One action's life: work is put together, done, its raw output kept, read, and its reading noted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::budget::{Budget, BudgetReached, Purse};
use super::errand::Errand;
use super::program;
use super::shelf::{OutOfReach, Shelf};
use crate::action::{Computation, Digest, Request, RequestTurn, Work};
use crate::answer;
use crate::cache::{CacheError, Lookup, Meta, Reading, Record, Status, Store};
use crate::compress;
use crate::fixture::count_tokens;
use crate::judge::{self, CriterionScore};
use crate::lexical;
use crate::plan::{Action, Output, Preparer, READER, SelftestTask, completion};
use crate::provider::{
    AskFailure, Call, CallFailure, Client, Dialect, ErrorClass, ModelRef, Operation, Prices, RawReply, Turn,
    context_window, estimate, longest_reply,
};
use crate::results::{Blame, Failure};
use crate::transcript::Message;
use crate::units::{Tokens, Usage, Usd};

/// An output just made.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) out: Digest,
    pub(super) output: Output,
    pub(super) usage: Usage,
    /// `None` where no price is known; 0 where nobody was asked.
    pub(super) cost: Option<Usd>,
    /// Whether the last action in this place had the same output, from other inputs.
    pub(super) unchanged: bool,
    pub(super) warnings: Vec<String>,
}

/// Why an action has no output.
#[derive(Debug)]
pub(super) enum NoOutput {
    /// It failed; the run goes on.
    Failed(Box<Failure>),
    /// The budget does not allow it.
    OverBudget(BudgetReached),
    /// The store cannot keep anything more: the run ends.
    Store(CacheError),
}

impl From<CacheError> for NoOutput {
    fn from(error: CacheError) -> NoOutput {
        NoOutput::Store(error)
    }
}

/// What performing needs; shared by all actions under way.
pub struct Performer<'e> {
    /// Makes work of tasks.
    pub preparer: Preparer<'e>,
    /// Keeps what comes of it.
    pub store: &'e Store,
    /// Outputs within reach.
    pub shelf: &'e Shelf<'e, Store>,
    /// Asks models.
    pub client: &'e Client,
    /// What may be spent.
    pub budget: &'e Budget,
    /// What tokens cost.
    pub prices: &'e Prices,
}

/// A raw output with what is known of how it came.
struct Raw {
    body: Bytes,
    dialect: Option<Dialect>,
    model: Option<String>,
    usage: Usage,
    cost: Option<Usd>,
    latency_ms: u64,
    attempts: u32,
    request_id: Option<String>,
}

/// Now, in milliseconds since 1970 (UTC).
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

impl Raw {
    /// Something made here, by rules or by the user's program.
    fn local(body: Bytes, dialect: Option<Dialect>, began: Instant) -> Raw {
        let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (usage, cost) = (Usage::default(), Some(Usd(0.0)));
        Raw { body, dialect, model: None, usage, cost, latency_ms, attempts: 1, request_id: None }
    }
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

impl Performer<'_> {
    /// The grades of a self-test's case, if it was graded before.
    pub(super) fn cached_grades(&self, test: &SelftestTask) -> Option<Vec<CriterionScore>> {
        let record = self.store.find(&test.action.key).filter(Record::is_usable)?;
        let bytes = self.shelf.body(&record).ok()?;
        let reply = completion(record.dialect.unwrap_or(Dialect::Lexical), Operation::Generate, &bytes).ok()?;
        judge::read_reply(&reply.text, test.question.criteria()).ok()
    }

    /// Does the work of an action and keeps what comes of it.
    pub(super) async fn perform(&self, errand: &Errand, action: &Action) -> Result<Fresh, NoOutput> {
        let before = errand.earlier_output(self.store, action);
        let mut fresh = match &action.work {
            Work::Ask(request) if request.is_lexical() => self.apply_rules(errand, action, request).await,
            Work::Ask(request) => self.ask(errand, action, request).await,
            Work::Execute(program) => {
                let stdin = self.text(errand, action, &program.stdin)?;
                self.execute(errand, action, stdin).await
            }
            Work::Compute(computation) => self.compute(errand, action, computation).await,
        }?;
        fresh.unchanged = before.is_some_and(|(key, out)| key != action.key && out == fresh.out);
        Ok(fresh)
    }

    /// The built-in stand-in for a model. It is given the values of the prompts, nothing else.
    async fn apply_rules(&self, errand: &Errand, action: &Action, request: &Request) -> Result<Fresh, NoOutput> {
        let mut values: BTreeMap<&'static str, Arc<str>> = BTreeMap::new();
        for turn in &request.turns {
            let RequestTurn::Text(_, prompt) = turn else { continue };
            for (name, material) in prompt.values() {
                values.insert(name, self.text(errand, action, material)?);
            }
        }
        let (task, began) = (errand.lexical_task(), Instant::now());
        let reply = self.aside(errand, action, move || lexical::reply(task, &values)).await?;
        self.finish(errand, action, Raw::local(reply.into(), Some(Dialect::Lexical), began)).await
    }

    async fn execute(&self, errand: &Errand, action: &Action, stdin: Arc<str>) -> Result<Fresh, NoOutput> {
        let began = Instant::now();
        let spec = errand.command(&self.preparer).ok_or_else(|| {
            self.failed(errand, action, Blame::Infrastructure, None, "no program is declared here".to_owned(), None)
        })?;
        match program::run(spec, Bytes::copy_from_slice(stdin.as_bytes())).await {
            Ok(stdout) => self.finish(errand, action, Raw::local(stdout, None, began)).await,
            Err(error) => {
                let message = error.to_string();
                let meta = self.meta(errand, action, &Raw::local(Bytes::new(), None, began));
                self.store.fail(action.key, &meta, "program", &message).await?;
                Err(self.failed(errand, action, Blame::Method, None, message, None))
            }
        }
    }

    async fn compute(&self, errand: &Errand, action: &Action, work: &Computation) -> Result<Fresh, NoOutput> {
        let (began, json) = (Instant::now(), self.text(errand, action, &work.messages)?);
        let work = work.clone();
        let computed = self.aside(errand, action, move || {
            let messages: Vec<Message> = serde_json::from_str(&json)?;
            Ok::<_, serde_json::Error>(compress::compute(&work, &messages, &count_tokens))
        });
        let bytes = computed.await?.map_err(|e| {
            self.failed(errand, action, Blame::Infrastructure, None, format!("the messages cannot be read: {e}"), None)
        })?;
        self.finish(errand, action, Raw::local(bytes.into(), None, began)).await
    }

    /// Runs something that takes processor time beside the loop.
    async fn aside<T: Send + 'static>(
        &self,
        errand: &Errand,
        action: &Action,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoOutput> {
        tokio::task::spawn_blocking(work).await.map_err(|e| {
            self.failed(errand, action, Blame::Infrastructure, None, format!("an internal rule failed: {e}"), None)
        })
    }

    /// Asks a model, again if its reply breaks the contract of the stage.
    async fn ask(&self, errand: &Errand, action: &Action, request: &Request) -> Result<Fresh, NoOutput> {
        let call = self.call(errand, action, request)?;
        let model = ModelRef { provider: request.provider.clone(), model: request.model.clone() };
        let expected @ (input, _) = estimate(&call);
        self.fits_window(errand, action, &model, input)?;
        let purse = Purse::new(self.budget, self.prices, &model, (input, self.longest_reply(&model, &call)));
        let mut attempt = 1;
        loop {
            let kept = &Cell::new(None);
            let keep = |reply: &RawReply| {
                let raw = self.raw_of(&model, reply);
                async move { self.keep(errand, action, &raw).await.map(|record| kept.set(Some(record))) }
            };
            let asked = self.client.ask(&request.provider, &call, expected, &purse, keep).await;
            let completion = match asked {
                Ok((_, completion)) => completion,
                Err(AskFailure::Keep(error)) => return Err(error.into()),
                Err(AskFailure::NotAdmitted) => return Err(NoOutput::OverBudget(purse.word())),
                Err(AskFailure::Call(failure)) => return Err(self.call_failed(errand, action, failure).await),
            };
            match errand.read_reply(&self.preparer, &completion) {
                Ok(output) => {
                    self.shelf.note_model(errand.requested_model(action), completion.model);
                    let cost = self.prices.cost(&model, &completion.usage);
                    return Ok(self.fresh(kept.take(), completion.usage, cost, output));
                }
                Err(fault) => {
                    self.note_unreadable(kept.take(), &fault.to_string());
                    if attempt >= errand.attempts {
                        let message = format!("{fault} ({attempt} replies)");
                        return Err(self.failed(errand, action, errand.blame_for(&fault), None, message, None));
                    }
                    attempt += 1;
                }
            }
        }
    }

    /// Refuses early what the model's window cannot hold.
    fn fits_window(&self, errand: &Errand, action: &Action, model: &ModelRef, input: Tokens) -> Result<(), NoOutput> {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        match provider.and_then(|provider| context_window(provider, &model.model)) {
            Some(window) if input > window => {
                let message =
                    format!("about {} tokens are to be sent, and {model} takes {} at most", input.0, window.0);
                let hint = "compress harder, move the point, or use a model with a larger window".to_owned();
                Err(self.failed(errand, action, Blame::Method, Some(ErrorClass::TooLong), message, Some(hint)))
            }
            _ => Ok(()),
        }
    }

    /// The tokens that the reply to a call takes at most.
    fn longest_reply(&self, model: &ModelRef, call: &Call) -> Tokens {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        let dialect = provider.map_or(Dialect::OpenaiChat, |provider| provider.dialect);
        longest_reply(dialect, &model.model, call.settings.max_output_tokens)
    }

    fn call(&self, errand: &Errand, action: &Action, request: &Request) -> Result<Call, NoOutput> {
        let resolve = |digest: &Digest| errand.resolve(self.shelf, digest);
        let out_of_reach = |error: OutOfReach| self.out_of_reach(errand, action, &error);
        let mut turns = Vec::new();
        for turn in &request.turns {
            let turn = match turn {
                RequestTurn::Text(role, prompt) => {
                    let (text, shared) = prompt.text_until(answer::QUESTION, &resolve).map_err(out_of_reach)?;
                    let (shared, own) = at_paragraph(&text, shared);
                    turns.extend(shared.map(|text| Turn::Text { role: *role, text: text.into() }));
                    Turn::Text { role: *role, text: own.into() }
                }
                RequestTurn::Items(material) => Turn::Items(material.text(&resolve).map_err(out_of_reach)?),
                RequestTurn::Messages(material) => {
                    let json = material.text(&resolve).map_err(out_of_reach)?;
                    let messages: Vec<Message> = serde_json::from_str(&json).map_err(|e| {
                        let message = format!("the messages cannot be read: {e}");
                        self.failed(errand, action, Blame::Infrastructure, None, message, None)
                    })?;
                    Turn::Messages(messages.into())
                }
            };
            turns.push(turn);
        }
        let instructions = match &request.instructions {
            Some(prompt) => Some(prompt.text(&resolve).map_err(out_of_reach)?),
            None => None,
        };
        Ok(Call {
            model: request.model.clone(),
            operation: request.operation,
            turns,
            instructions,
            settings: request.settings.clone(),
            schema: request.schema.as_ref().map(|shape| shape.schema().clone()),
        })
    }

    fn text(&self, errand: &Errand, action: &Action, material: &crate::action::Material) -> Result<Arc<str>, NoOutput> {
        let resolve = |digest: &Digest| errand.resolve(self.shelf, digest);
        material.text(&resolve).map_err(|error| self.out_of_reach(errand, action, &error))
    }

    fn raw_of(&self, model: &ModelRef, reply: &RawReply) -> Raw {
        let usage = reply.usage;
        Raw {
            body: reply.body.clone(),
            dialect: Some(reply.dialect),
            model: reply.model.clone(),
            usage,
            cost: self.prices.cost(model, &usage),
            latency_ms: u64::try_from(reply.latency.as_millis()).unwrap_or(u64::MAX),
            attempts: reply.attempts,
            request_id: reply.request_id.clone(),
        }
    }

    /// Puts a raw output on disk. What is taken from it for the entry's description is a glance that cannot fail:
    /// the reply itself is read only afterwards.
    async fn keep(&self, errand: &Errand, action: &Action, raw: &Raw) -> Result<Record, CacheError> {
        self.store.put_reply(action.key, &self.meta(errand, action, raw), raw.body.clone()).await
    }

    async fn finish(&self, errand: &Errand, action: &Action, raw: Raw) -> Result<Fresh, NoOutput> {
        let record = self.keep(errand, action, &raw).await?;
        match errand.read_body(&self.preparer, raw.dialect, &raw.body) {
            Ok(output) => Ok(self.fresh(Some(record), raw.usage, raw.cost, output)),
            Err(fault) => {
                self.note_unreadable(Some(record), &fault.to_string());
                Err(self.failed(errand, action, errand.blame_for(&fault), None, fault.to_string(), None))
            }
        }
    }

    fn fresh(&self, record: Option<Record>, usage: Usage, cost: Option<Usd>, output: Output) -> Fresh {
        let out = output.digest();
        if let Some(record) = record {
            self.store.note(&record, &Reading::Output { out, state: None, reader: READER });
        }
        let usage = output.usage().unwrap_or(usage);
        let warnings = output.warnings();
        Fresh { out, output, usage, cost, unchanged: false, warnings }
    }

    fn note_unreadable(&self, record: Option<Record>, fault: &str) {
        if let Some(record) = record {
            self.store.note(&record, &Reading::Unreadable { reader: READER, fault: fault.to_owned() });
        }
    }

    fn meta(&self, errand: &Errand, action: &Action, raw: &Raw) -> Meta {
        Meta {
            stage: action.stage,
            created: now_ms(),
            dialect: raw.dialect,
            model: raw.model.clone(),
            requested_model: errand.requested_model(action),
            usage: raw.usage,
            cost: raw.cost,
            latency_ms: raw.latency_ms,
            attempts: raw.attempts,
            request_id: raw.request_id.clone(),
            coordinate: errand.coordinate.clone(),
            inputs: action.inputs(),
            sources: errand.sources.clone(),
        }
    }

    async fn call_failed(&self, errand: &Errand, action: &Action, failure: CallFailure) -> NoOutput {
        // A reply that arrived and is no answer stays to be looked at. Read by itself it might pass for one: that its
        // prompt was cut, for one, shows only beside the request.
        let kept = self.store.find(&action.key).filter(|record| record.status == Status::Unread);
        self.note_unreadable(kept, &failure.message);
        let mut raw = Raw::local(Bytes::new(), None, Instant::now());
        (raw.attempts, raw.cost) = (failure.attempts, None);
        let class = failure.class.name();
        if let Err(error) = self.store.fail(action.key, &self.meta(errand, action, &raw), class, &failure.message).await
        {
            return error.into();
        }
        let blame = if failure.class == ErrorClass::TooLong { Blame::Method } else { Blame::Infrastructure };
        self.failed(errand, action, blame, Some(failure.class), failure.message, failure.hint)
    }

    fn out_of_reach(&self, errand: &Errand, action: &Action, error: &OutOfReach) -> NoOutput {
        let hint = Some(OutOfReach::REMEDY.to_owned());
        self.failed(errand, action, Blame::Infrastructure, None, error.to_string(), hint)
    }

    fn failed(
        &self,
        errand: &Errand,
        action: &Action,
        blame: Blame,
        class: Option<ErrorClass>,
        message: String,
        hint: Option<String>,
    ) -> NoOutput {
        let (place, stage, key) = (errand.place.clone(), errand.stage, Some(action.key));
        NoOutput::Failed(Box::new(Failure { place, stage, key, blame, class, message, hint }))
    }
}
