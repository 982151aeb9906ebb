//! Outputs: read from a body, and in memory. Reading is pure and repeated at every use, so a new reading rule costs no
//! request. Contexts are read once and shared by the cells that need them; the oldest are evicted, so that memory stays
//! flat.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::prepare::{PrepareError, judge_question};
use super::task::{AnswerTask, CompressTask, ResolvedContext, Task};
use crate::action::{ActionKey, BuiltInStrategy, Digest, StageName};
use crate::answer::{self, Answer, SearchRequest};
use crate::compress::{self, CompressFault, CompressOutput, Compressed, ProgramUsage, Strategy};
use crate::entries::{BodyFormat, EntryRecord};
use crate::judge::{self, CriterionScore, JudgeQuestion, ReplyFault};
use crate::pipeline::{
    CompressCell, FixtureIx, MethodIx, PLANTED_NEXT, Pipeline, PointIx, VariantIx,
};
use crate::planted;
use crate::probe::{ProbeCandidate, read_candidates};
use base::message::Message;
use lexical::ContextEntries;
use models::{Completion, Dialect, Operation, ReadFault};
use sessions::references::ReferenceIndex;
use sessions::transcript::fold_document;
use store::cache::{Damage, Lookup, ModelNames, Record, Store};

/// Contexts in memory: more than a run has open at once.
const CONTEXTS: usize = 96;
/// Answers in memory: they are needed again when their judge is asked, and for their row.
const ANSWERS: usize = 256;
/// The most bytes of contexts, and of answers, in memory. A single larger one is held nevertheless.
const BYTES: usize = 64 << 20;

/// The models that answered, as providers name them: by model as asked.
pub type ReportedModels = BTreeMap<String, BTreeSet<String>>;

/// The last few values that were put, bounded by number and by bytes.
#[derive(Debug)]
struct Recent<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<(K, usize)>,
    capacity: usize,
    bytes: usize,
}

impl<K: Copy + Eq + Hash, V: Clone> Recent<K, V> {
    fn new(capacity: usize) -> Recent<K, V> {
        Recent {
            values: HashMap::new(),
            order: VecDeque::new(),
            capacity,
            bytes: 0,
        }
    }

    fn get(&self, key: &K) -> Option<V> {
        self.values.get(key).cloned()
    }

    fn put(&mut self, key: K, value: V, bytes: usize) {
        if self.values.insert(key, value).is_none() {
            self.order.push_back((key, bytes));
            self.bytes += bytes;
        }
        while self.order.len() > self.capacity || self.bytes > BYTES && self.order.len() > 1 {
            let Some((oldest, bytes)) = self.order.pop_front() else {
                return;
            };
            self.values.remove(&oldest);
            self.bytes -= bytes;
        }
    }
}

/// A context with its texts.
#[derive(Debug)]
pub struct LoadedContext {
    pub compressed: Compressed,
    texts: Vec<(Digest, Arc<str>)>,
    folded: OnceCell<Option<String>>,
    folded_summary: OnceCell<Option<String>>,
    entries: OnceCell<Option<ContextEntries>>,
    /// Those that the method wrote; `None` if it wrote all.
    own_entries: OnceCell<Option<ContextEntries>>,
    /// Whether an exact token of a message occurs in the readable text, by the index of the message.
    pointers: RefCell<HashMap<usize, bool>>,
}

impl LoadedContext {
    fn new(compressed: Compressed) -> LoadedContext {
        let texts = compressed.texts();
        LoadedContext {
            compressed,
            texts,
            folded: OnceCell::new(),
            folded_summary: OnceCell::new(),
            entries: OnceCell::new(),
            own_entries: OnceCell::new(),
            pointers: RefCell::default(),
        }
    }

    /// The readable text, folded for the search of facts; `None` where only the provider can read it.
    pub fn folded(&self) -> Option<&str> {
        self.folded
            .get_or_init(|| {
                self.compressed
                    .context
                    .text()
                    .map(|text| fold_document(&text))
            })
            .as_deref()
    }

    /// The summary without the rest of the context, folded in the same way; `None` if it is the whole context.
    pub fn folded_summary(&self) -> Option<&str> {
        self.folded_summary
            .get_or_init(|| self.compressed.summary.as_deref().map(fold_document))
            .as_deref()
    }

    /// The statements of the readable text; `None` where only the provider can read it.
    pub fn entries(&self) -> Option<&ContextEntries> {
        self.entries
            .get_or_init(|| {
                self.compressed
                    .context
                    .text()
                    .map(|text| ContextEntries::from_text(&text))
            })
            .as_ref()
    }

    /// The statements of what the method wrote: of the readable text without the `recorded` messages that it has word for
    /// word.
    pub fn own_entries(&self, recorded: &[Message]) -> Option<&ContextEntries> {
        let own = self.own_entries.get_or_init(|| {
            let text = self.compressed.context.text_beside(recorded);
            text.map(|text| ContextEntries::from_text(&text))
        });
        own.as_ref().or_else(|| self.entries())
    }

    /// Whether the readable text has an exact token of a message of the transcript, one of `distinctive_references`.
    pub fn points_to(
        &self,
        message: usize,
        distinctive_references: impl FnOnce() -> ReferenceIndex,
    ) -> bool {
        *self
            .pointers
            .borrow_mut()
            .entry(message)
            .or_insert_with(|| {
                let text = self.compressed.context.text();
                text.is_some_and(|text| !distinctive_references().occurrences_in(&text).is_empty())
            })
    }

    fn text(&self, digest: &Digest) -> Option<Arc<str>> {
        self.texts
            .iter()
            .find(|(name, _)| name == digest)
            .map(|(_, text)| text.clone())
    }
}

/// Reads the output of a task's action from any cache.
///
/// # Errors
/// The cache does not have it any more, or its body no longer reads.
pub fn read_entry<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    task: &Task,
    key: ActionKey,
) -> Result<Output, OutputUnavailable> {
    let record = lookup.find(&key).ok_or(OutputUnavailable::Gone(key))?;
    Ok(read_output(
        pipeline,
        task,
        record.body_format(),
        &lookup.body(&record)?,
    )?)
}

/// Why an output that the cache had cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OutputUnavailable {
    #[error("the cache entry {} is gone; run again to recreate it", _0.0.short())]
    Gone(ActionKey),
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Its body can no longer be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// No input of the action has this digest.
    #[error("the output {_0:?} belongs to no input of this action")]
    Unnamed(Digest),
    /// The row that was made from it cannot be written.
    #[error("its row cannot be written: {_0}")]
    Unwritable(#[from] serde_json::Error),
}

impl OutputUnavailable {
    /// What the user can do about it.
    pub fn remedy() -> &'static str {
        "run `compeval cache verify`, then run again"
    }
}

/// What is kept verbatim is part of a context but not of its action, so method, session and point are part of its id.
type ContextId = (ActionKey, FixtureIx, MethodIx, PointIx, Option<VariantIx>);

fn context_id(context: &ResolvedContext) -> ContextId {
    let CompressCell { chain, point } = context.cell;
    (
        context.key,
        chain.fixture,
        chain.method,
        point,
        chain.variant,
    )
}

pub struct OutputCache<'e> {
    pipeline: &'e Pipeline,
    store: &'e Store,
    contexts: RefCell<Recent<ContextId, Rc<LoadedContext>>>,
    answers: RefCell<Recent<ActionKey, Answer>>,
    models: RefCell<ReportedModels>,
}

impl<'e> OutputCache<'e> {
    pub fn new(pipeline: &'e Pipeline, store: &'e Store) -> OutputCache<'e> {
        let (contexts, answers) = (
            RefCell::new(Recent::new(CONTEXTS)),
            RefCell::new(Recent::new(ANSWERS)),
        );
        OutputCache {
            pipeline,
            store,
            contexts,
            answers,
            models: RefCell::default(),
        }
    }

    /// The models whose replies were read here.
    pub fn models(&self) -> ReportedModels {
        self.models.borrow().clone()
    }

    /// Notes which model replied to a call.
    pub fn note_models(&self, call: ModelNames) {
        if let (Some(asked), Some(answered)) = (call.requested, call.answered) {
            self.models
                .borrow_mut()
                .entry(asked)
                .or_default()
                .insert(answered);
        }
    }

    /// The context, read from the store unless it is in memory.
    pub fn context(
        &self,
        context: &Rc<ResolvedContext>,
    ) -> Result<Rc<LoadedContext>, OutputUnavailable> {
        let id = context_id(context);
        if let Some(loaded) = self.contexts.borrow().get(&id) {
            return Ok(loaded);
        }
        let task = context.task();
        match self.read(&task, &context.key)? {
            Output::Context(compressed) => {
                let loaded = Rc::new(LoadedContext::new(*compressed));
                let bytes = loaded.texts.iter().map(|(_, text)| text.len()).sum();
                self.contexts.borrow_mut().put(id, loaded.clone(), bytes);
                Ok(loaded)
            }
            _ => Err(OutputUnavailable::Gone(context.key)),
        }
    }

    /// Puts an answer that was just made into memory.
    pub fn put_answer(&self, key: ActionKey, answer: Answer) {
        let bytes = answer.text.len();
        self.answers.borrow_mut().put(key, answer, bytes);
    }

    /// An answer, read from the store unless it is in memory.
    ///
    /// # Errors
    /// As [`OutputCache::context`].
    pub fn answer(&self, task: &Task, key: &ActionKey) -> Result<Answer, OutputUnavailable> {
        if let Some(answer) = self.answers.borrow().get(key) {
            return Ok(answer);
        }
        match self.read(task, key)? {
            Output::Answer(answer) => Ok(answer),
            _ => Err(OutputUnavailable::Gone(*key)),
        }
    }

    /// Reads the output of a task's action from the store.
    ///
    /// # Errors
    /// As [`OutputCache::context`].
    pub fn read(&self, task: &Task, key: &ActionKey) -> Result<Output, OutputUnavailable> {
        let record = self.store.find(key).ok_or(OutputUnavailable::Gone(*key))?;
        self.read_record(task, &record)
    }

    /// Reads the output of a record.
    ///
    /// # Errors
    /// As [`OutputCache::context`].
    pub fn read_record(&self, task: &Task, record: &Record) -> Result<Output, OutputUnavailable> {
        Ok(read_output(
            self.pipeline,
            task,
            record.body_format(),
            &self.body(record)?,
        )?)
    }

    /// The body of a record; notes the model that replied.
    fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        let body = self.store.body(record)?;
        self.note_models(record.summary.models.clone());
        Ok(body)
    }

    /// Warnings about a context that is used all the same.
    ///
    /// # Errors
    /// As [`OutputCache::context`].
    pub fn warnings(
        &self,
        context: &Rc<ResolvedContext>,
    ) -> Result<Vec<String>, OutputUnavailable> {
        Ok(self.context(context)?.compressed.warnings.clone())
    }

    /// Verifies that the body can be read, without decompressing it; notes the model that replied.
    pub fn verify(&self, record: &Record) -> Result<(), Damage> {
        self.store.verify_body(record)?;
        self.note_models(record.summary.models.clone());
        Ok(())
    }

    /// The text that a digest among a task's inputs stands for.
    ///
    /// # Errors
    /// As [`OutputCache::context`]; also if no input of the task has the digest.
    pub fn text_of(&self, task: &Task, digest: &Digest) -> Result<Arc<str>, OutputUnavailable> {
        let context = match task {
            Task::Side(_) | Task::Selftest(_) => None,
            Task::Compress(task) => task.before.as_ref(),
            Task::Answer(task) => Some(&task.context),
            Task::Judge(judge) if judge.answer.out == *digest => {
                return Ok(self.answer(&judge.answer_task(), &judge.answer.key)?.text);
            }
            Task::Judge(judge) => Some(&judge.context),
        };
        let context = context.ok_or(OutputUnavailable::Unnamed(*digest))?;
        self.context(context)?
            .text(digest)
            .ok_or(OutputUnavailable::Unnamed(*digest))
    }
}

/// The version of the reading rules. Raised when a body would be read to another output.
pub const PARSER_VERSION: u16 = 14;

#[derive(Clone, Debug)]
pub enum Output {
    Context(Box<Compressed>),
    Answer(Answer),
    /// A step of an open-book answer that asks for searches.
    Search(SearchRequest),
    Grades(Vec<CriterionScore>),
    /// Proposed probes.
    Probes {
        candidates: Vec<ProbeCandidate>,
        /// Entries of the reply that are not proposals.
        unreadable: usize,
    },
}

impl Output {
    pub fn digest(&self) -> Digest {
        match self {
            Output::Context(compressed) => compressed.out,
            Output::Answer(answer) => answer.out,
            Output::Search(request) => request.digest(),
            Output::Grades(grades) => Digest::of_json(grades),
            Output::Probes { candidates, .. } => Digest::of_json(candidates),
        }
    }

    /// What a program says it used; models say it in their replies.
    pub fn usage(&self) -> Option<ProgramUsage> {
        match self {
            Output::Context(compressed) => compressed.usage,
            _ => None,
        }
    }
}

/// Why a body is not an output.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The reply is not an answer of a model.
    #[error(transparent)]
    Reply(#[from] ReadFault),
    #[error(transparent)]
    Context(#[from] CompressFault),
    #[error("the judge broke its contract: {_0}")]
    Grades(#[from] ReplyFault),
    #[error("about planted items: {_0}")]
    Planted(#[from] planted::ReplyFault),
    /// The matrix does not fit the pipeline.
    #[error(transparent)]
    Place(#[from] PrepareError),
}

/// Reads the body that the action of a task produced.
pub fn read_output(
    pipeline: &Pipeline,
    task: &Task,
    format: BodyFormat,
    body: &[u8],
) -> Result<Output, Unreadable> {
    match (format, task) {
        (BodyFormat::Reply(dialect), _) => {
            let reply = models::read(dialect, operation(pipeline, task), body, None)?;
            read_reply(pipeline, task, dialect, &reply)
        }
        (BodyFormat::Local, Task::Compress(task)) => {
            read_context(pipeline, task, CompressOutput::Bytes(body))
        }
        (BodyFormat::Local | BodyFormat::Unknown, _) => {
            Err(ReadFault::Malformed("no model's reply".to_owned()).into())
        }
    }
}

/// Reads a model's reply to a task.
pub fn read_reply(
    pipeline: &Pipeline,
    task: &Task,
    dialect: Dialect,
    reply: &Completion,
) -> Result<Output, Unreadable> {
    match task {
        Task::Answer(task) => read_answer(pipeline, task, dialect, reply),
        _ if reply.truncated => Err(ReadFault::Truncated.into()),
        Task::Side(task) => match (&task.judged, task.stage) {
            (Some((_, question)), _) => read_grades(reply, question),
            (None, StageName::Probes) => {
                let (candidates, unreadable) = read_candidates(&reply.text)?;
                Ok(Output::Probes {
                    candidates,
                    unreadable,
                })
            }
            (None, _) => Ok(Output::Answer(answer::read(&reply.text, false)?)),
        },
        Task::Selftest(task) => read_grades(reply, &task.question),
        Task::Compress(task) => read_context(pipeline, task, CompressOutput::Reply(reply)),
        Task::Judge(task) => {
            let question = judge_question(
                pipeline,
                &task.context.texts,
                &task.cell.answer,
                task.cell.judge,
            )?;
            read_grades(reply, &question)
        }
    }
}

fn read_grades(reply: &Completion, question: &JudgeQuestion) -> Result<Output, Unreadable> {
    let grades = judge::read_reply(&reply.text, question.criteria())?;
    Ok(Output::Grades(grades))
}

/// Reads an answer, or what a step towards one asks for.
fn read_answer(
    pipeline: &Pipeline,
    task: &AnswerTask,
    dialect: Dialect,
    reply: &Completion,
) -> Result<Output, Unreadable> {
    if let Some(variant) = task.context.variant() {
        if reply.truncated {
            return Err(ReadFault::Truncated.into());
        }
        if task.cell.probe == PLANTED_NEXT {
            planted::grade_next(variant, &reply.text)?;
        } else {
            planted::grade_states(variant, &reply.text)?;
        }
    }
    let Some(recovery) = task.recovery(pipeline) else {
        return Ok(Output::Answer(answer::read(&reply.text, reply.truncated)?));
    };
    if let Some(request) = answer::read_request(recovery, &task.exchange, dialect, reply)? {
        return Ok(Output::Search(request));
    }
    let is_call = reply.text.trim().is_empty() && !reply.calls.is_empty();
    let text = if is_call {
        recovery.no_answer()
    } else {
        &reply.text
    };
    Ok(Output::Answer(answer::read(text, reply.truncated)?))
}

fn operation(pipeline: &Pipeline, task: &Task) -> Operation {
    match task {
        Task::Compress(task) => match pipeline.method(task.cell.chain.method).strategy {
            Strategy::Opaque { .. } => Operation::Compact,
            Strategy::ProviderCompaction { .. } => Operation::Summarize,
            _ => Operation::Generate,
        },
        Task::Answer(task) if task.recovery(pipeline).is_some() => Operation::UseTools,
        Task::Answer(_) | Task::Side(_) | Task::Selftest(_) | Task::Judge(_) => Operation::Generate,
    }
}

const STUB_TOOLS: &str =
    "the fixture records no tool schemas: the request declares tools made of its calls";
const NOT_COMPRESSED: &str = "nothing was compressed: the context is the history as it is";
const NOT_WHOLE: &str = "the program says `compressed: false`, but its context lacks some of the history: it is scored as usual";

fn read_context(
    pipeline: &Pipeline,
    task: &CompressTask,
    output: CompressOutput<'_>,
) -> Result<Output, Unreadable> {
    let method = pipeline.method(task.cell.chain.method);
    let kept = task.texts.kept(method, task.cell.point);
    let mut compressed = compress::read(method, output, kept.as_deref())?;
    if matches!(output, CompressOutput::Reply(_)) && method.strategy.declares_tools() {
        let is_stub =
            task.texts.loaded().fixture.tools.is_empty() && task.texts.tool_offer().is_some();
        compressed
            .warnings
            .extend(is_stub.then(|| STUB_TOOLS.to_owned()));
    }
    // The log of an agent may have no summary that can be read.
    let is_recorded = matches!(method.strategy, Strategy::Rule(BuiltInStrategy::Recorded));
    if is_recorded || matches!(method.strategy, Strategy::Command(_)) {
        let replaced = task.texts.prefix_messages(task.cell.point);
        let is_whole = is_whole(&compressed, replaced);
        if is_whole {
            compressed.warnings.push(NOT_COMPRESSED.to_owned());
        } else if compressed.is_unchanged {
            compressed.warnings.push(NOT_WHOLE.to_owned());
        }
        compressed.is_unchanged = is_whole;
    }
    Ok(Output::Context(Box::new(compressed)))
}

/// Whether a context has all that it replaces. Programs that compress nothing below some size seldom say so.
/// If one says so, messages may be joined or have other roles. Its word alone is not enough: contexts in which nothing
/// was compressed are in no figure, so a lost history would not be seen.
fn is_whole(compressed: &Compressed, replaced: &[Message]) -> bool {
    compressed.context.has_all(replaced)
        || compressed.is_unchanged && compressed.context.says_all(replaced)
}
