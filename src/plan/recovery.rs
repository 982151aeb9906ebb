//! What follows from an output: an answer goes to its judges; a step that asks for searches goes on with what they return.
//! Only this file searches, for everything that walks the matrix. It also finds all that a pipeline reaches.

use std::collections::HashSet;
use std::rc::Rc;

use super::frontier::Frontier;
use super::outputs::Output;
use super::outputs::{OutputUnavailable, read_entry};
use super::prepare::{Action, PrepareError};
use super::status::look_up;
use super::task::{AnswerTask, Resolved, ResolvedContext, Task, TaskOutcome};
use crate::action::{ActionKey, Stage};
use crate::answer::{Excerpt, Exchange, Recovery};
use crate::entries::{EntryRecord, Refresh};
use crate::pipeline::Pipeline;
use lexical::search::excerpt;
use sessions::transcript::{Message, estimate_tokens};
use store::cache::{Lookup, Record};

/// What follows from the output of an action, and its record, if it is in the cache and can be read. An output that cannot
/// be read is made again by a run.
pub fn cached_outcome<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
    refresh: &Refresh,
) -> Option<(TaskOutcome, Record)> {
    let cached = look_up(lookup, pipeline, action, refresh)?;
    let outcome = follow(lookup, pipeline, &action.task, cached.resolved, None);
    Some((outcome.ok()?, cached.record))
}

/// What follows from the output of a task. `output` is that output if it was just read; otherwise it is read, but only
/// if the answerer may search.
///
/// # Errors
/// An output, or the context of the answer, that the cache does not have any more.
pub fn follow<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    task: &Task,
    resolved: Resolved,
    output: Option<&Output>,
) -> Result<TaskOutcome, OutputUnavailable> {
    let Task::Answer(answer) = task else {
        return Ok(TaskOutcome::Resolved(resolved));
    };
    let Some(recovery) = answer.recovery(pipeline) else {
        return Ok(TaskOutcome::Resolved(resolved));
    };
    let read;
    let output = match output {
        Some(output) => output,
        None => {
            read = read_entry(lookup, pipeline, task, resolved.key)?;
            &read
        }
    };
    let Output::Search(request) = output else {
        return Ok(TaskOutcome::Resolved(resolved));
    };
    let exchange = answer
        .exchange
        .after(resolved.key, resolved.cost, request.clone());
    let exchange = search(lookup, pipeline, answer, recovery, exchange)?;
    Ok(TaskOutcome::Searched(Rc::new(exchange)))
}

/// Makes all searches that are pending.
fn search<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    task: &AnswerTask,
    recovery: &Recovery,
    mut exchange: Exchange,
) -> Result<Exchange, OutputUnavailable> {
    let context = &task.context;
    if exchange.pending().is_none() {
        return Ok(exchange);
    }
    let Output::Context(compressed) = read_entry(lookup, pipeline, &context.task(), context.key)?
    else {
        return Ok(exchange);
    };
    let text = compressed.context.text().unwrap_or_default();
    while let Some(query) = exchange.pending() {
        let excerpts = found(context, &text, recovery, query);
        exchange = exchange.returned(recovery, excerpts);
    }
    Ok(exchange)
}

/// What a search finds in the messages that a context replaced: only those that it does not have word for word.
fn found(context: &ResolvedContext, text: &str, recovery: &Recovery, query: &str) -> Vec<Excerpt> {
    let fixture = &context.texts.loaded().fixture;
    let replaced = fixture.start()..context.texts.end(context.cell.point);
    let ranking = context.texts.search_index().rank(query, replaced);
    let places = ranking.positions.iter();
    let hidden = places.filter_map(|at| Some((*at, fixture.messages.get(*at)?)));
    let hidden = hidden.filter(|(_, message)| !is_verbatim_in(message, text));
    let limit = recovery.excerpt_tokens.0;
    let excerpts = hidden
        .take(recovery.results as usize)
        .map(|(at, message)| Excerpt {
            label: format!("message {} · {}", at + 1, message.role.name()),
            // Estimated: the lines of a long message are too many for the tokenizer.
            text: excerpt(&message.countable_text(), &ranking, limit, |part| {
                estimate_tokens(part).0
            }),
            message: at,
        });
    excerpts.collect()
}

/// Whether a message, its calls included, is in a context word for word.
fn is_verbatim_in(message: &Message, context: &str) -> bool {
    let mut texts = message.texts();
    texts.all(|part| context.contains(part.trim()))
}

/// The entries that the current pipeline reaches.
#[derive(Debug, Default)]
pub struct ReachableEntries {
    /// All actions whose inputs are known, whether or not they have an output.
    pub keys: HashSet<ActionKey>,
    /// Actions without an output that can be read: what depends on them is unknown until they have run.
    pub stale: u64,
}

impl ReachableEntries {
    /// Whether an entry is reached. All proposed probes are: what asks for them is in no matrix.
    pub fn contains(&self, record: &Record) -> bool {
        self.keys.contains(&record.key) || record.stage() == Some(Stage::Probes)
    }
}

/// Walks the pipeline over the cache, as a run would.
pub fn reachable<L: Lookup>(
    pipeline: &Pipeline,
    lookup: &L,
) -> Result<ReachableEntries, PrepareError> {
    let mut reachable = ReachableEntries::default();
    let refresh = Refresh::default();
    let mut frontier = Frontier::new(pipeline);
    while let Some(task) = frontier.next_ready() {
        let action = Action::prepare(pipeline, &task)?;
        let is_new = reachable.keys.insert(action.key);
        let outcome = match cached_outcome(lookup, pipeline, &action, &refresh) {
            Some((outcome, record)) => {
                // A reply that is reused under a higher limit has a key of its own.
                reachable.keys.insert(record.key);
                outcome
            }
            None => {
                reachable.stale += u64::from(is_new);
                TaskOutcome::Unresolved
            }
        };
        frontier.resolve(&task, outcome);
    }
    Ok(reachable)
}
