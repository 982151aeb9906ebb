//! One action's life: work is put together, done, its raw output kept, read, and its reading noted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::budget::{Budget, BudgetReached};
use super::doors::Doors;
use super::errand::Errand;
use super::program;
use super::shelf::{OutputCache, OutputUnavailable};
use crate::action::{Computation, Digest, Request, RequestTurn, Work};
use crate::cache::{CacheError, Lookup, Meta, Reading, Record, Store};
use crate::compress;
use crate::judge::{self, CriterionScore};
use crate::lexical;
use crate::plan::{Action, Output, Preparer, READER, SelftestTask, completion};
use crate::provider::{Client, Dialect, ErrorClass, Operation, Prices};
use crate::results::{Blame, Failure};
use crate::transcript::{Message, count_tokens};
use crate::units::{Usage, Usd};

/// An output just made.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) out: Digest,
    pub(super) output: Output,
    pub(super) usage: Usage,
    /// `None` where no price is known; 0 where nobody was asked.
    pub(super) cost: Option<Usd>,
    /// Whether the last action in this place had the same output.
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
    /// It was not sent, or not again: the run is to end, or nobody asks its provider any more.
    CalledOff,
    /// The store cannot keep anything more: the run ends.
    Store(CacheError),
}

impl From<Failure> for NoOutput {
    fn from(failure: Failure) -> NoOutput {
        NoOutput::Failed(Box::new(failure))
    }
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
    pub outputs: &'e OutputCache<'e, Store>,
    /// Asks models.
    pub client: &'e Client,
    /// What may be spent.
    pub budget: &'e Budget,
    /// What tokens cost.
    pub prices: &'e Prices,
}

/// A raw output with what is known of how it came.
pub(super) struct Raw {
    pub(super) body: Bytes,
    pub(super) dialect: Option<Dialect>,
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    pub(super) latency_ms: u64,
    pub(super) attempts: u32,
    pub(super) request_id: Option<String>,
}

/// Now, in milliseconds since 1970 (UTC).
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

impl Raw {
    /// Something made here, by rules or by the user's program.
    pub(super) fn local(body: Bytes, dialect: Option<Dialect>, began: Instant) -> Raw {
        let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (usage, cost) = (Usage::default(), Some(Usd(0.0)));
        Raw { body, dialect, model: None, usage, cost, latency_ms, attempts: 1, request_id: None }
    }
}

impl Performer<'_> {
    /// The grades of a self-test's case, if it was graded before.
    pub(super) fn cached_grades(&self, test: &SelftestTask) -> Option<Vec<CriterionScore>> {
        let record = self.store.find(&test.action.key).filter(Record::is_usable)?;
        let bytes = self.outputs.body(&record).ok()?;
        let reply = completion(record.dialect.unwrap_or(Dialect::Lexical), Operation::Generate, &bytes).ok()?;
        let grades = judge::read_reply(&reply.text, test.question.criteria()).ok()?;
        self.store.touch(&record);
        Some(grades)
    }

    /// Does the work of an action and keeps what comes of it.
    pub(super) async fn perform(&self, errand: &Errand, action: &Action, doors: &Doors) -> Result<Fresh, NoOutput> {
        let before = errand.earlier_output(self.store, action);
        let mut fresh = match &action.work {
            Work::Ask(request) if request.is_lexical() => self.apply_rules(errand, action, request).await,
            Work::Ask(request) => self.ask(errand, action, request, doors).await,
            Work::Execute(program) => {
                let stdin = self.text(errand, action, &program.stdin)?;
                self.execute(errand, action, stdin).await
            }
            Work::Compute(computation) => self.compute(errand, action, computation).await,
        }?;
        fresh.unchanged = before == Some(fresh.out);
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
            self.failure(errand, action, Blame::Infrastructure, None, "no program is declared here".to_owned(), None)
        })?;
        match program::run(spec, Bytes::copy_from_slice(stdin.as_bytes())).await {
            Ok(stdout) => self.finish(errand, action, Raw::local(stdout, None, began)).await,
            Err(error) => {
                let message = error.to_string();
                let meta = self.meta(errand, action, &Raw::local(Bytes::new(), None, began));
                self.store.fail(action.key, &meta, "program", &message).await?;
                Err(self.failure(errand, action, Blame::Method, None, message, None).into())
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
            self.failure(errand, action, Blame::Infrastructure, None, format!("the messages cannot be read: {e}"), None)
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
            self.failure(errand, action, Blame::Infrastructure, None, format!("an internal rule failed: {e}"), None)
                .into()
        })
    }

    fn text(&self, errand: &Errand, action: &Action, material: &crate::action::Material) -> Result<Arc<str>, NoOutput> {
        let resolve = |digest: &Digest| errand.resolve(self.outputs, digest);
        material.text(&resolve).map_err(|error| self.output_unavailable(errand, action, &error))
    }

    /// Puts a raw output on disk. What is taken from it for the entry's description is a glance that cannot fail:
    /// the reply itself is read only afterwards.
    pub(super) async fn keep(&self, errand: &Errand, action: &Action, raw: &Raw) -> Result<Record, CacheError> {
        self.store.put_reply(action.key, &self.meta(errand, action, raw), raw.body.clone()).await
    }

    async fn finish(&self, errand: &Errand, action: &Action, raw: Raw) -> Result<Fresh, NoOutput> {
        let record = self.keep(errand, action, &raw).await?;
        match errand.read_body(&self.preparer, raw.dialect, &raw.body) {
            Ok(output) => Ok(self.fresh(Some(record), raw.usage, raw.cost, output)),
            Err(fault) => {
                self.note_unreadable(Some(record), &fault.to_string());
                Err(self.failure(errand, action, errand.blame_for(&fault), None, fault.to_string(), None).into())
            }
        }
    }

    pub(super) fn fresh(&self, record: Option<Record>, usage: Usage, cost: Option<Usd>, output: Output) -> Fresh {
        let out = output.digest();
        if let Some(record) = record {
            self.store.note(&record, &Reading::Output { out, state: None, reader: READER });
        }
        let usage = output.usage().unwrap_or(usage);
        let warnings = output.warnings();
        Fresh { out, output, usage, cost, unchanged: false, warnings }
    }

    pub(super) fn note_unreadable(&self, record: Option<Record>, fault: &str) {
        if let Some(record) = record {
            self.store.note(&record, &Reading::Unreadable { reader: READER, fault: fault.to_owned() });
        }
    }

    pub(super) fn meta(&self, errand: &Errand, action: &Action, raw: &Raw) -> Meta {
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

    pub(super) fn output_unavailable(&self, errand: &Errand, action: &Action, error: &OutputUnavailable) -> NoOutput {
        let hint = Some(OutputUnavailable::REMEDY.to_owned());
        self.failure(errand, action, Blame::Infrastructure, None, error.to_string(), hint).into()
    }

    pub(super) fn failure(
        &self,
        errand: &Errand,
        action: &Action,
        blame: Blame,
        class: Option<ErrorClass>,
        message: String,
        hint: Option<String>,
    ) -> Failure {
        let (place, stage, key) = (errand.place.clone(), errand.stage, Some(action.key));
        Failure { place, stage, key, blame, class, message, hint }
    }
}
