//! Reads an output from a body. Pure and repeated at every use, so a new reading rule costs no request.

use crate::action::Digest;
use crate::answer::{self, Answer, TruncatedReplies};
use crate::compress::{self, CompressFault, Compressed, Method, Strategy};
use crate::judge::{self, CriterionScore, ReplyFault};
use crate::probe::ProbeCandidate;
use crate::provider::{self, Completion, Dialect, Operation, ReadFault};
use crate::units::Usage;

use super::prepare::{PrepareError, Preparer};
use super::task::{CompressTask, Task};

/// The version of the reading rules. Raised when a body would be read to another output.
pub const PARSER_VERSION: u16 = 3;

#[derive(Clone, Debug)]
pub enum Output {
    Context(Box<Compressed>),
    Answer(Answer),
    Grades(Vec<CriterionScore>),
    /// Of the generation of probes.
    Probes {
        candidates: Vec<ProbeCandidate>,
        /// Entries that are no proposals.
        unreadable: usize,
    },
}

impl Output {
    pub fn digest(&self) -> Digest {
        match self {
            Output::Context(compressed) => compressed.out,
            Output::Answer(answer) => answer.out,
            Output::Grades(grades) => {
                // Scores serialise to plain JSON; there is nothing in them that could fail.
                Digest::of(serde_json::to_vec(grades).unwrap_or_default())
            }
            // Likewise.
            Output::Probes { candidates, .. } => Digest::of(serde_json::to_vec(candidates).unwrap_or_default()),
        }
    }

    /// What is unusual about it, though it is used.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Output::Context(compressed) => compressed.warnings.iter().map(ToString::to_string).collect(),
            Output::Answer(_) | Output::Grades(_) | Output::Probes { .. } => Vec::new(),
        }
    }

    /// What a program says it used; models say it in their replies.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Output::Context(compressed) => compressed.usage,
            Output::Answer(_) | Output::Grades(_) | Output::Probes { .. } => None,
        }
    }
}

/// Why a body is no output.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The reply is no answer of a model.
    #[error(transparent)]
    Reply(#[from] ReadFault),
    #[error(transparent)]
    Context(#[from] CompressFault),
    #[error("the judge broke its contract: {0}")]
    Grades(#[from] ReplyFault),
    /// The matrix does not fit the pipeline.
    #[error(transparent)]
    Place(#[from] PrepareError),
}

/// A body as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct RawBody<'b> {
    /// The dialect of a reply; `None` of a program's output or a computed result.
    pub dialect: Option<Dialect>,
    pub bytes: &'b [u8],
}

/// A model's reply, read without regard to what it was asked for.
pub fn completion(dialect: Dialect, operation: Operation, bytes: &[u8]) -> Result<Completion, ReadFault> {
    match dialect {
        // The built-in rules write their words as they are.
        Dialect::Lexical => {
            let text = std::str::from_utf8(bytes).map_err(|e| ReadFault::Malformed(e.to_string()))?;
            Ok(Completion {
                text: text.to_owned(),
                items: None,
                model: None,
                usage: Usage::default(),
                truncated: false,
            })
        }
        dialect => provider::read(dialect, operation, bytes, None),
    }
}

impl Preparer<'_> {
    /// Reads the body that a task's action put out.
    pub fn read(&self, task: &Task, body: RawBody<'_>) -> Result<Output, Unreadable> {
        match (body.dialect, task) {
            (Some(dialect), _) => {
                let reply = completion(dialect, self.operation(task), body.bytes)?;
                self.read_reply(task, &reply)
            }
            (None, Task::Compress(task)) => self.read_context(task, compress::CompressOutput::Bytes(body.bytes)),
            (None, _) => Err(ReadFault::Malformed("no model's reply".to_owned()).into()),
        }
    }

    /// Reads a model's reply to a task.
    pub fn read_reply(&self, task: &Task, reply: &Completion) -> Result<Output, Unreadable> {
        match task {
            Task::Answer(_) => Ok(Output::Answer(answer::read(&reply.text, reply.truncated)?)),
            _ if reply.truncated => Err(ReadFault::Truncated.into()),
            Task::Compress(task) => self.read_context(task, compress::CompressOutput::Reply(reply)),
            Task::Judge(task) => {
                let question = self.judge_question(&task.context.texts, &task.cell.answer, task.cell.judge)?;
                Ok(Output::Grades(judge::read_reply(&reply.text, question.criteria())?))
            }
        }
    }

    /// Whether a task's output fails its cell if the token limit cut it off: of an answerer that takes no such answer.
    pub fn fails_truncated(&self, task: &Task) -> bool {
        let Task::Answer(task) = task else { return false };
        let answerer = self.pipeline().answerers.get(task.cell.answerer.0);
        answerer.is_some_and(|answerer| answerer.truncated_replies == TruncatedReplies::Fail)
    }

    fn method(&self, task: &CompressTask) -> Result<&Method, PrepareError> {
        self.pipeline().methods.get(task.cell.chain.method.0).ok_or(PrepareError::Coordinate)
    }

    fn operation(&self, task: &Task) -> Operation {
        let Task::Compress(task) = task else { return Operation::Generate };
        match self.method(task).map(|method| &method.strategy) {
            Ok(Strategy::Opaque { .. }) => Operation::Compact,
            Ok(Strategy::ProviderCompaction { .. }) => Operation::Summarize,
            _ => Operation::Generate,
        }
    }

    fn read_context(&self, task: &CompressTask, output: compress::CompressOutput<'_>) -> Result<Output, Unreadable> {
        let method = self.method(task)?;
        let index = task.texts.index_text(method, task.cell.point);
        Ok(Output::Context(Box::new(compress::read(method, output, &index)?)))
    }
}
