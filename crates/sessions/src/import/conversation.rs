//! The result of an import: conversations, and an account of everything that did not become a message.
//!
//! Copies of one session: a log is often saved again when the session has gone on.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::format::Format;
use crate::transcript::{Message, NO_RESULT, Role};
use base::units::Usage;

/// What a log contains.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedLog {
    /// The log.
    pub file: PathBuf,
    /// The format it was read as.
    pub format: Format,
    /// The conversations, in the order of the file; sub-agents have their own.
    pub conversations: Vec<Conversation>,
    /// What could not be read.
    pub losses: Vec<ImportIssue>,
}

impl ImportedLog {
    /// Leaves out conversations without messages; their counts are added to those of the first that has some. The others
    /// are called `name`, and by their parts.
    pub(super) fn new(
        file: PathBuf,
        name: &str,
        format: Format,
        conversations: Vec<Conversation>,
        losses: Vec<ImportIssue>,
    ) -> Result<ImportedLog, ImportError> {
        let no_session = |file, why| ImportError::NoSession {
            file,
            format,
            why,
            better: None,
        };
        let (mut conversations, silent): (Vec<_>, Vec<_>) = conversations
            .into_iter()
            .partition(|conversation| !conversation.messages.is_empty());
        let Some(first) = conversations.first_mut() else {
            let why = format!(" and holds no messages{}", first_loss(&losses));
            return Err(no_session(file, why));
        };
        for (why, count) in silent
            .into_iter()
            .flat_map(|conversation| conversation.dropped)
        {
            *first.dropped.entry(why).or_default() += count;
        }
        name_all(&mut conversations, name);
        if let Some(why) = doubt(&conversations) {
            return Err(no_session(file, format!(", but {why}")));
        }
        Ok(ImportedLog {
            file,
            format,
            conversations,
            losses,
        })
    }

    /// How much was understood: messages, and calls with their results more than others.
    pub(super) fn understood(&self) -> usize {
        let messages = self.conversations.iter().flat_map(|one| &one.messages);
        messages
            .map(|message| match message.role {
                Role::Tool if message.content != NO_RESULT => 3,
                _ => 1,
            })
            .sum()
    }
}

/// Names the conversations of a log: by its name and the part of each, or a number where several have none.
fn name_all(conversations: &mut [Conversation], name: &str) {
    let nameless = conversations.iter().filter(|one| one.name_hint.is_empty());
    let are_numbered = nameless.count() > 1;
    let mut number = 0;
    for one in conversations {
        let part = std::mem::take(&mut one.name_hint);
        let is_numbered = are_numbered && part.is_empty();
        number += usize::from(is_numbered);
        one.name_hint = match part.as_str() {
            "" if is_numbered => format!("{name}-{number}"),
            "" => name.to_owned(),
            part => format!("{name}-{part}"),
        };
    }
}

/// Why what was read can hardly be a session in this format.
fn doubt(conversations: &[Conversation]) -> Option<String> {
    /// In fewer calls one that was interrupted weighs too much.
    const FEWEST_CALLS: usize = 3;
    let dropped = conversations.iter().flat_map(|one| &one.dropped);
    let (mut unknown, mut known) = (0, 0);
    let mut kinds = BTreeMap::new();
    for (why, count) in dropped {
        match why {
            DropReason::Unknown(kind) => {
                unknown += count;
                *kinds.entry(kind.as_str()).or_insert(0) += count;
            }
            // Of a message whose blocks are all unknown, nothing is left.
            DropReason::Empty => {}
            _ => known += count,
        }
    }
    let messages = conversations.iter().flat_map(|one| &one.messages);
    let messages: Vec<&Message> = messages.collect();
    known += messages.len();
    if unknown > known {
        let (kind, _) = kinds.iter().max_by_key(|(_, count)| **count)?;
        let all = unknown + known;
        return Some(format!(
            "{unknown} of {all} records are of unknown kinds, most of them `{kind}`"
        ));
    }
    let calls: usize = messages.iter().map(|one| one.tool_calls.len()).sum();
    let missing = conversations.iter();
    let missing: usize = missing
        .filter_map(|one| one.repairs.get(&RepairKind::NoResult))
        .sum();
    (calls >= FEWEST_CALLS && missing * 10 >= calls * 9)
        .then(|| format!("{missing} of {calls} calls have no result"))
}

/// One conversation: calls and results are paired, ids are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// A name made from the file's, with a suffix where a file holds several; not yet unique. Before that, the suffix.
    pub name_hint: String,
    /// The messages; every result directly follows the message with its call.
    pub messages: Vec<Message>,
    /// The model that spoke last, as the log names it.
    pub model: Option<String>,
    /// The tools that the agent declared to its model, as the log has them.
    pub tools: Vec<Value>,
    /// What the log records of each compaction and of each clearing of old results.
    pub recorded: Vec<RecordedCompaction>,
    /// Messages that a compaction took out of what it and the later ones keep, each with the message that follows that
    /// compaction. A list of all kept messages for each compaction would take quadratic memory.
    pub forgotten: BTreeMap<usize, usize>,
    /// Requests to the model whose tokens the log counts, in the order of the log. Those on abandoned branches are among
    /// them: they were billed.
    pub steps: Vec<ModelStep>,
    /// Requests whose tokens the log does not count, where it counts those of others.
    pub uncounted: usize,
    /// The log begins in the middle of a session.
    pub begins_midway: bool,
    /// What was left out, and why, with counts.
    pub dropped: BTreeMap<DropReason, usize>,
    /// What was repaired, with counts of messages.
    pub repairs: BTreeMap<RepairKind, usize>,
}

impl Conversation {
    /// Where the agent itself compacted its history: indices into `messages`, never between call and result.
    pub fn compactions(&self) -> Vec<usize> {
        let summaries = self.recorded.iter();
        let summaries = summaries.filter(|one| one.kind == CompactionKind::Summary);
        let mut places: Vec<usize> = summaries.map(|one| one.message).collect();
        places.dedup();
        places
    }

    /// The messages before a compaction that stay in the context as they are. Results go with their calls.
    pub fn kept_at(&self, compaction: &RecordedCompaction) -> Vec<&Message> {
        let places = self.kept_places(compaction).into_iter().flatten();
        places.filter_map(|at| self.messages.get(at)).collect()
    }

    /// Their places: ranges in order.
    pub(super) fn kept_places(&self, compaction: &RecordedCompaction) -> Vec<Range<usize>> {
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut stays = true;
        for at in compaction.kept.iter().cloned().flatten() {
            let Some(message) = self.messages.get(at) else {
                break;
            };
            if message.role != Role::Tool {
                stays = self
                    .forgotten
                    .get(&at)
                    .is_none_or(|forgotten| *forgotten > compaction.message);
            }
            match kept.last_mut().filter(|last| last.end == at) {
                Some(last) if stays => last.end = at + 1,
                _ if stays => kept.push(at..at + 1),
                _ => {}
            }
        }
        kept
    }

    /// The history before the compaction with this number, and the one that replaced it: what the compaction before left
    /// and the messages since, and the summary with what is kept.
    pub fn histories_at(&self, nth: usize) -> (Vec<Message>, Vec<Message>) {
        // A head that is kept, such as the instructions, stays before the summary.
        let left = |compaction: &RecordedCompaction| {
            let summary = compaction.summary.iter().filter(|text| !text.is_empty());
            let summary = summary.map(|text| Message::text(Role::User, text.as_str()));
            let kept = self.kept_places(compaction);
            let head = usize::from(kept.first().is_some_and(|first| first.start == 0));
            let of = |ranges: &[Range<usize>]| {
                let places = ranges.iter().cloned().flatten();
                let messages = places.filter_map(|at| self.messages.get(at).cloned());
                messages.collect::<Vec<Message>>()
            };
            let (head, tail) = kept.split_at(head);
            [of(head), summary.collect(), of(tail)].concat()
        };
        let Some(compaction) = self.recorded.get(nth) else {
            return (Vec::new(), Vec::new());
        };
        let earlier = nth.checked_sub(1).and_then(|nth| self.recorded.get(nth));
        let mut before = earlier.map(left).unwrap_or_default();
        let since = earlier.map_or(0, |earlier| earlier.message);
        before.extend(
            self.messages
                .get(since..compaction.message)
                .into_iter()
                .flatten()
                .cloned(),
        );
        (before, left(compaction))
    }
}

/// A request to the model, with the tokens that the log counts for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelStep {
    /// The model, as the log names it.
    pub model: Option<Arc<str>>,
    /// When its reply was logged.
    pub time: Option<Timestamp>,
    /// Input, cache reads, cache writes and output, each `None` where the format does not count it.
    pub usage: Usage,
}

/// A compaction as the log records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCompaction {
    /// The index of the message that follows it.
    pub message: usize,
    /// The index of the first request after it, in [`Conversation::steps`].
    pub step: usize,
    /// How it was made.
    pub kind: CompactionKind,
    /// When it was made, as the log writes it.
    pub time: Option<String>,
    /// Tokens of the context before it, as logged.
    pub tokens_before: Option<u64>,
    /// Tokens of the context after it, as logged.
    pub tokens_after: Option<u64>,
    /// The summary as plain text; `None` if it is encrypted or not in the log.
    pub summary: Option<String>,
    /// Messages before it that stay in the context as they are, except those in [`Conversation::forgotten`]: ranges in
    /// order, none overlapping another. See [`Conversation::kept_at`].
    pub kept: Vec<Range<usize>>,
    /// Other readable text that the history was replaced by.
    pub replacement: String,
}

/// How a recorded compaction was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionKind {
    /// The history becomes a summary.
    #[default]
    Summary,
    /// Old tool results are cleared, and nothing is summarized.
    Clearing,
}

/// Why a piece of a log did not become a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum DropReason {
    /// A kind of record this program does not know.
    #[error("unknown record kind `{0}`")]
    Unknown(String),
    /// State of the tool that wrote the log; the model never saw it.
    #[error("bookkeeping `{0}`")]
    Bookkeeping(String),
    /// Text that the tool inserted, such as reminders.
    #[error("injected text `{0}`")]
    Injected(String),
    /// The same record or message again.
    #[error("repeated record")]
    Duplicate,
    /// A second copy made for the screen.
    #[error("copy for the screen")]
    DisplayCopy,
    /// On a branch that the person went back from.
    #[error("on an abandoned branch")]
    AbandonedBranch,
    /// A summary written at a compaction; see [`RecordedCompaction::summary`].
    #[error("summary of a compaction")]
    CompactSummary,
    /// An example from the prompt, not of this session.
    #[error("demonstration in the prompt")]
    Demonstration,
    /// A message that says nothing and calls nothing.
    #[error("empty message")]
    Empty,
    /// Reasoning that is encrypted or redacted.
    #[error("encrypted reasoning")]
    SealedReasoning,
}

impl DropReason {
    /// The reason without the log's own word for what was expected to be left out. What is unknown is named.
    pub fn group(&self) -> String {
        match self {
            DropReason::Bookkeeping(_) => "bookkeeping of the tool".to_owned(),
            DropReason::Injected(_) => "text that the tool injected".to_owned(),
            other => other.to_string(),
        }
    }
}

/// What is repaired in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepairKind {
    /// A call had no result; [`NO_RESULT`] takes its place.
    NoResult,
    /// A result had no call and was dropped.
    OrphanResult,
    /// The arguments of a call are not JSON; they are kept as written.
    BrokenArguments,
    /// The id of a call was in use already and got a suffix.
    RepeatedId,
    /// A result held only a note of the harness that it took the text out; [`CLEARED_RESULT`] takes its place.
    ClearedResult,
    /// The message belongs to the history of another session, from which this one was forked.
    Copied,
}

/// The line before a result whose call is not in the log.
pub const ORPHAN_HEAD: &str = "[result of a call that is not in the log]";

/// A place in a log that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportIssue {
    /// The log.
    pub file: PathBuf,
    /// The line, from 1; `None` where the whole file is meant.
    pub line: Option<u64>,
    /// What was wrong, what was expected, and how it was treated.
    pub message: String,
}

impl ImportIssue {
    /// A file that could not be read, or not as a whole.
    pub fn of_file(file: &Path, message: impl Into<String>) -> ImportIssue {
        ImportIssue {
            file: file.to_owned(),
            line: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for ImportIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file.display(), self.message),
            None => write!(f, "{}: {}", self.file.display(), self.message),
        }
    }
}

/// Why a file could not be imported at all.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("failed to read the log `{}`", file.display())]
    /// The file cannot be read.
    Io {
        /// The log.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is empty, broken, of another tool, or too large; the text says so, with the file.
    #[error("{0}")]
    Refused(String),
    #[error("`{}` is in no known format; it begins with `{start}`{}{}{}; name one with --format: {}",
        file.display(),
        found_keys(keys),
        readable(*better),
        first_loss(losses),
        Format::ALL.map(Format::name).join(", "))]
    /// No known format fits.
    UnknownFormat {
        /// The log.
        file: PathBuf,
        /// How the file begins.
        start: String,
        /// The keys of its first record.
        keys: Vec<String>,
        /// The format in which it can be read if that is named.
        better: Option<Format>,
        /// What could not be read.
        losses: Vec<ImportIssue>,
    },
    /// What was read is no session: most records are unknown, nearly all calls lack their results, or nobody speaks.
    #[error("`{}` was read as {format}{why}{}", file.display(), readable(*better))]
    NoSession {
        /// The log.
        file: PathBuf,
        /// The format it was read as.
        format: Format,
        /// What is wrong, with counts.
        why: String,
        /// The format in which it can be read.
        better: Option<Format>,
    },
}

impl ImportError {
    /// Where to note the format in which the log can be read, if that may help.
    pub(super) fn better_mut(&mut self) -> Option<&mut Option<Format>> {
        match self {
            ImportError::UnknownFormat { better, .. } | ImportError::NoSession { better, .. } => {
                Some(better)
            }
            ImportError::Io { .. } | ImportError::Refused(_) => None,
        }
    }

    pub(super) fn from_io(file: &Path, source: std::io::Error) -> ImportError {
        ImportError::Io {
            file: file.to_owned(),
            source,
        }
    }
}

fn readable(better: Option<Format>) -> String {
    better.map_or_else(String::new, |format| {
        format!("; `--format {}` reads it", format.name())
    })
}

fn found_keys(keys: &[String]) -> String {
    if keys.is_empty() {
        String::new()
    } else {
        format!(" (keys: {})", keys.join(", "))
    }
}

fn first_loss(losses: &[ImportIssue]) -> String {
    losses
        .first()
        .map(|loss| format!(" ({loss})"))
        .unwrap_or_default()
}

/// Returns an error if another format was given than the only one in which a log can be read.
pub(super) fn expect_format(
    file: &Path,
    what: &str,
    expected: Format,
    given: Option<Format>,
) -> Result<(), ImportError> {
    match given.filter(|given| *given != expected) {
        Some(given) => Err(ImportError::Refused(format!(
            "`{}` is {what}: expected {expected}, found `--format {given}`; leave --format out, or say {expected}",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// What tells the messages of a session from those of another, one number each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    messages: Vec<u64>,
}

/// Fewer messages that are alike may be the same greeting.
const FEWEST: usize = 3;
/// So many messages at the end of the shorter copy may differ: a call in it had no result yet.
const UNFINISHED: usize = 2;

impl Fingerprint {
    /// The fingerprint of a session.
    pub fn of(messages: &[Message]) -> Fingerprint {
        let of_one = |message: &Message| {
            let mut hasher = DefaultHasher::new();
            message.content.hash(&mut hasher);
            for call in &message.tool_calls {
                call.function.arguments.hash(&mut hasher);
            }
            hasher.finish()
        };
        Fingerprint {
            messages: messages.iter().map(of_one).collect(),
        }
    }

    /// Whether `other` is the same session, saved at the same time or later.
    pub fn is_copied_in(&self, other: &Fingerprint) -> bool {
        let [short, long] = [&self.messages, &other.messages];
        if short == long {
            return !short.is_empty();
        }
        let sure = short.len().saturating_sub(UNFINISHED);
        // Of a few messages all have to be alike.
        let compared = if sure > FEWEST { sure } else { short.len() };
        short.len() <= long.len()
            && compared >= FEWEST
            && short
                .get(..compared)
                .is_some_and(|start| long.starts_with(start))
    }

    /// The hashes of the last messages before `at`: the same in every copy of the session.
    pub(crate) fn before(&self, at: usize) -> &[u64] {
        const BEFORE: usize = 20;
        let last = self.messages.get(at.saturating_sub(BEFORE)..at);
        last.unwrap_or_default()
    }

    /// A number that is the same for equal sessions.
    pub(crate) fn seed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.messages.hash(&mut hasher);
        hasher.finish()
    }

    /// Fingerprints of copies are alike in this.
    pub fn start(&self) -> &[u64] {
        self.messages.get(..FEWEST).unwrap_or(&self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Role;

    #[test]
    fn a_session_that_went_on_is_the_same_and_a_fork_is_another() {
        let of = |texts: &str| {
            let messages = texts.chars().map(|c| Message::text(Role::User, c));
            Fingerprint::of(&messages.collect::<Vec<_>>())
        };
        assert!(of("abcdef").is_copied_in(&of("abcdefgh")) && of("ab").is_copied_in(&of("ab")));
        assert!(
            of("abcdxx").is_copied_in(&of("abcdefgh")),
            "it was not finished"
        );
        assert!(of("abc").is_copied_in(&of("abcdefgh")) && of("abc").start() == of("abcd").start());
        assert!(!of("abx").is_copied_in(&of("abcdefgh")));
        assert!(!of("abcxyz1").is_copied_in(&of("abcdefgh")));
        assert!(
            !of("ab").is_copied_in(&of("abcdefgh")),
            "too little to tell"
        );
    }
}
