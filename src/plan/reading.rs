//! Reads an output from a body. Pure and repeated at every use, so a new reading rule costs no request.

use crate::action::{Digest, StageName};
use crate::answer::{self, Answer, Excerpt, SearchFault, SearchProtocol, SearchRequest};
use crate::compress::{
    self, CompressFault, CompressOutput, Compressed, Context, ProgramUsage, Strategy, Warning,
};
use crate::entries::BodyFormat;
use crate::judge::{self, CriterionScore, JudgeQuestion, ReplyFault};
use crate::pipeline::PLANTED_NEXT;
use crate::planted;
use crate::probe::{ProbeCandidate, read_candidates};
use base::message::Message;
use base::tokens::count_tokens;
use models::{Completion, Dialect, Operation, ReadFault};

use super::prepare::{PrepareError, Preparer};
use super::task::{AnswerTask, CompressTask, Task};

/// The version of the reading rules. Raised when a body would be read to another output.
pub const PARSER_VERSION: u16 = 12;

#[derive(Clone, Debug)]
pub enum Output {
    Context(Box<Compressed>),
    Answer(Answer),
    /// A step of an open-book answer that asks for searches.
    Search(SearchRequest),
    /// What a search by a program returned.
    Excerpts(Vec<Excerpt>),
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
            Output::Excerpts(excerpts) => answer::excerpts_digest(excerpts),
            Output::Grades(grades) => Digest::of_json(grades),
            Output::Probes { candidates, .. } => Digest::of_json(candidates),
        }
    }

    /// Whether it is an answer that the token limit cut off.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Output::Answer(answer) if answer.truncated)
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
    /// A search by a program.
    #[error(transparent)]
    Search(#[from] SearchFault),
    /// The matrix does not fit the pipeline.
    #[error(transparent)]
    Place(#[from] PrepareError),
}

/// Reads the body that the action of a task produced.
pub fn read_output(
    preparer: &Preparer<'_>,
    task: &Task,
    format: BodyFormat,
    body: &[u8],
) -> Result<Output, Unreadable> {
    match (format, task) {
        (BodyFormat::Reply(dialect), _) => {
            let reply = models::read(dialect, operation(preparer, task), body, None)?;
            read_reply(preparer, task, dialect, &reply)
        }
        (BodyFormat::Local, Task::Compress(task)) => {
            read_context(preparer, task, CompressOutput::Bytes(body))
        }
        (BodyFormat::Local, Task::Answer(task)) => read_excerpts(preparer, task, body),
        (BodyFormat::Local | BodyFormat::Unknown, _) => {
            Err(ReadFault::Malformed("no model's reply".to_owned()).into())
        }
    }
}

/// Reads a model's reply to a task.
pub fn read_reply(
    preparer: &Preparer<'_>,
    task: &Task,
    dialect: Dialect,
    reply: &Completion,
) -> Result<Output, Unreadable> {
    match task {
        Task::Answer(task) => read_answer(preparer, task, dialect, reply),
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
        Task::Compress(task) => read_context(preparer, task, CompressOutput::Reply(reply)),
        Task::Judge(task) => {
            let question =
                preparer.judge_question(&task.context.texts, &task.cell.answer, task.cell.judge)?;
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
    preparer: &Preparer<'_>,
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
    let Some(recovery) = task.recovery(preparer.pipeline()) else {
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

/// Reads what a search by the user's own program returned.
fn read_excerpts(
    preparer: &Preparer<'_>,
    task: &AnswerTask,
    stdout: &[u8],
) -> Result<Output, Unreadable> {
    let recovery = task
        .recovery(preparer.pipeline())
        .ok_or(PrepareError::Coordinate)?;
    Ok(Output::Excerpts(answer::read_excerpts(
        recovery,
        task.context.archive(),
        stdout,
    )?))
}

fn operation(preparer: &Preparer<'_>, task: &Task) -> Operation {
    match task {
        Task::Compress(task) => match preparer.pipeline().method(task.cell.chain.method).strategy {
            Strategy::Opaque { .. } => Operation::Compact,
            Strategy::ProviderCompaction { .. } => Operation::Summarize,
            _ => Operation::Generate,
        },
        Task::Answer(task) => match task
            .recovery(preparer.pipeline())
            .map(|recovery| recovery.protocol)
        {
            Some(SearchProtocol::Tool) => Operation::UseTools,
            _ => Operation::Generate,
        },
        Task::Side(_) | Task::Selftest(_) | Task::Judge(_) => Operation::Generate,
    }
}

fn read_context(
    preparer: &Preparer<'_>,
    task: &CompressTask,
    output: CompressOutput<'_>,
) -> Result<Output, Unreadable> {
    let method = preparer.pipeline().method(task.cell.chain.method);
    let kept = task.texts.kept(method, task.cell.point);
    let mut compressed = compress::read(method, output, kept.as_deref())?;
    if matches!(output, CompressOutput::Reply(_)) && method.strategy.declares_tools() {
        let is_stub =
            task.texts.loaded().fixture.tools.is_empty() && task.texts.tool_offer().is_some();
        compressed
            .warnings
            .extend(is_stub.then_some(Warning::StubTools));
    }
    if matches!(method.strategy, Strategy::Command(_)) {
        let replaced = task.texts.prefix_messages(task.cell.point);
        let is_whole = is_whole(&compressed, replaced);
        if is_whole {
            compressed.warnings.push(Warning::NotCompressed);
        } else if compressed.is_unchanged {
            compressed.warnings.push(Warning::NotWhole);
        }
        compressed.is_unchanged = is_whole;
        compressed
            .warnings
            .extend(larger(replaced, &compressed.context));
    }
    Ok(Output::Context(Box::new(compressed)))
}

/// Whether a program's context has all that it replaces. Programs that compress nothing below some size seldom say so.
/// If one says so, messages may be joined or have other roles. Its word alone is not enough: contexts in which nothing
/// was compressed are in no figure, so a lost history would not be seen.
fn is_whole(compressed: &Compressed, replaced: &[Message]) -> bool {
    compressed.context.has_all(replaced)
        || compressed.is_unchanged && compressed.context.says_all(replaced)
}

/// The warning about a context that is larger than the messages it replaces.
fn larger(replaced: &[Message], context: &Context) -> Option<Warning> {
    /// Bytes per token differ by less than this factor from one text of a session to another.
    const SPREAD: usize = 3;
    let text = context.text()?;
    let texts: Vec<String> = replaced.iter().map(Message::countable_text).collect();
    if text.len() * SPREAD < texts.iter().map(String::len).sum() {
        return None;
    }
    let replaced = texts.iter().map(|text| count_tokens(text).0).sum();
    let context = count_tokens(&text).0;
    (context > replaced).then_some(Warning::Larger { context, replaced })
}
