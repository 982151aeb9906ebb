//! One session: its compactions with their controls, and what is known about it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::actions::SessionActions;
use super::fetched::{ReferenceUses, reference_uses};
use super::window::{
    FEWEST_TURNS, ReRead, RepeatedFailure, SurroundedWindow, Window, WindowFigures, findings,
    placebos, surrounded,
};
use crate::import::{
    CompactionKind, Conversation, Fingerprint, Format, RecordedCompaction, RepairKind, scrub_texts,
};
use crate::references::SessionNoise;
use crate::transcript::Message;
use base::locale::Locale;
use base::named_enum;

/// A compaction, and what the session did in the window after it.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedCompaction {
    /// The name of the log.
    pub session: String,
    /// Its format.
    pub format: &'static str,
    /// The message that follows it, as in a fixture's points.
    pub at: usize,
    /// When it happened, as logged.
    pub time: Option<String>,
    /// `summary`, or `clearing` where only old tool results were cleared.
    pub kind: &'static str,
    /// Tokens of the context before it, as logged.
    pub tokens_before: Option<u64>,
    /// Tokens of the context after it, as logged.
    pub tokens_after: Option<u64>,
    /// The share of references from before it that were fetched again.
    pub fetched_again_share: Option<f64>,
    /// The share of old references whose use nothing in the log explains.
    pub unexplained: Option<f64>,
    /// `None` where the log has no readable summary.
    pub references: Option<ReferenceUses>,
    /// What happened in the window after it.
    #[serde(flatten)]
    pub figures: WindowFigures,
    /// The nearest window before it without a compaction; null where it does not have one on both sides.
    pub control_before: Option<WindowFigures>,
    /// The nearest such window after it, likewise.
    pub control_after: Option<WindowFigures>,
    /// Reads in the window that repeat earlier ones.
    pub re_read: Vec<ReRead>,
    /// Failures in the window that repeat earlier ones.
    pub repeated: Vec<RepeatedFailure>,
    /// Why it is listed and not counted.
    pub not_counted: Option<NotCounted>,
    /// The summary, where the log has one that can be read.
    #[serde(skip)]
    pub summary: Option<String>,
    /// The same in all copies of a session.
    #[serde(skip)]
    pub(super) identity: u64,
}

/// What was found in one session.
#[derive(Clone, Debug)]
pub struct SessionFindings {
    /// The name of the log.
    pub name: String,
    /// Its format.
    pub format: Format,
    /// Turns of the assistant.
    pub turns: usize,
    /// Its compactions, in order.
    pub compactions: Vec<ObservedCompaction>,
    /// Windows at which nothing happened, with their controls.
    pub placebos: Vec<SurroundedWindow>,
    /// Why there is little to see in it.
    pub note: Option<SessionNote>,
    /// Tells copies of the session.
    pub(super) fingerprint: Fingerprint,
}

/// Looks at one conversation of a log.
pub fn observe(conversation: &Conversation, format: Format) -> SessionFindings {
    let messages = &conversation.messages;
    let actions = SessionActions::from_messages(messages);
    let copied = conversation
        .repairs
        .get(&RepairKind::Copied)
        .copied()
        .unwrap_or(0);
    let borders: Vec<usize> = conversation
        .recorded
        .iter()
        .map(|one| actions.turn_at(one.message))
        .collect();
    let name = conversation.name_hint.clone();
    let start = actions.turn_at(copied);
    let fingerprint = Fingerprint::of(messages);
    let seed = fingerprint.seed();
    let session = Session {
        conversation,
        format,
        actions: &actions,
        borders: &borders,
        fingerprint: &fingerprint,
        start,
    };
    let mut compactions = session.compactions(
        conversation
            .recorded
            .iter()
            .filter(|one| one.message > copied),
    );
    scrub(messages, &mut compactions);
    SessionFindings {
        turns: actions.turns.len(),
        note: note(conversation, &actions),
        fingerprint,
        name,
        format,
        compactions,
        placebos: placebos(&actions, &borders, start, seed),
    }
}

struct Session<'s> {
    conversation: &'s Conversation,
    format: Format,
    actions: &'s SessionActions,
    /// The turns that follow compactions, rising.
    borders: &'s [usize],
    fingerprint: &'s Fingerprint,
    /// The first turn that was not copied from another session.
    start: usize,
}

impl ObservedCompaction {
    /// Its window with both controls; `None` if it is not counted or lacks a control.
    pub(super) fn surrounded(&self) -> Option<SurroundedWindow> {
        let is_counted = self.not_counted.is_none();
        let (before, after) = self
            .control_before
            .zip(self.control_after)
            .filter(|_| is_counted)?;
        Some(SurroundedWindow {
            window: self.figures,
            before,
            after,
        })
    }
}

impl Session<'_> {
    fn compactions<'c>(
        &self,
        recorded: impl Iterator<Item = &'c RecordedCompaction>,
    ) -> Vec<ObservedCompaction> {
        let mut recorded = recorded.peekable();
        if recorded.peek().is_none() {
            return Vec::new();
        }
        let noise = SessionNoise::from_messages(&self.conversation.messages);
        recorded.map(|one| self.compaction(one, &noise)).collect()
    }

    fn compaction(
        &self,
        recorded: &RecordedCompaction,
        noise: &SessionNoise,
    ) -> ObservedCompaction {
        let from = self.actions.turn_at(recorded.message);
        let window = Window::new(from, self.borders, self.actions.turns.len());
        let findings = findings(self.actions, window);
        let controls = surrounded(self.actions, window, self.borders, self.start);
        let references = reference_uses(self.conversation, self.actions, recorded, window, noise);
        let mut hasher = DefaultHasher::new();
        (
            self.fingerprint.before(recorded.message),
            &recorded.summary,
            recorded.tokens_before,
        )
            .hash(&mut hasher);
        ObservedCompaction {
            session: self.conversation.name_hint.clone(),
            format: self.format.name(),
            at: recorded.message,
            time: recorded.time.clone(),
            kind: match recorded.kind {
                CompactionKind::Summary => "summary",
                CompactionKind::Clearing => "clearing",
            },
            tokens_before: recorded.tokens_before,
            tokens_after: recorded.tokens_after,
            fetched_again_share: references.and_then(ReferenceUses::fetched_again_share),
            unexplained: references.and_then(ReferenceUses::unexplained_share),
            references,
            figures: findings.figures,
            control_before: controls.map(|controls| controls.before),
            control_after: controls.map(|controls| controls.after),
            re_read: findings.re_read,
            repeated: findings.repeated,
            not_counted: self.reason_not_to_count(recorded, findings.figures),
            summary: recorded.summary.clone(),
            identity: hasher.finish(),
        }
    }

    /// A rough count of the tokens since the summary before message `at`: four characters per token.
    fn tokens_since_summary(&self, at: usize) -> u64 {
        let summaries = self
            .conversation
            .recorded
            .iter()
            .filter(|one| one.kind == CompactionKind::Summary && one.message < at);
        let start = summaries.map(|one| one.message).max().unwrap_or(0);
        let since = self.conversation.messages.get(start..at);
        let characters: usize = since.into_iter().flatten().map(characters_of).sum();
        characters as u64 / 4
    }

    fn reason_not_to_count(
        &self,
        recorded: &RecordedCompaction,
        figures: WindowFigures,
    ) -> Option<NotCounted> {
        /// A log that holds less than one part in this many of the recorded tokens lacks most of what was compacted.
        const PARTS: u64 = 10;
        if recorded.kind == CompactionKind::Clearing {
            Some(NotCounted::Clearing)
        } else if self.conversation.begins_midway {
            Some(NotCounted::BeginsMidway)
        } else if recorded
            .tokens_before
            .is_some_and(|before| self.tokens_since_summary(recorded.message) * PARTS < before)
        {
            Some(NotCounted::MostMissing)
        } else if figures.turns < FEWEST_TURNS {
            Some(NotCounted::FewTurns)
        } else if figures.reads.is_none() {
            Some(NotCounted::UnknownCalls)
        } else {
            None
        }
    }
}

/// The characters of a message and of the arguments of its calls.
fn characters_of(message: &Message) -> usize {
    let calls: usize = message
        .tool_calls
        .iter()
        .map(|call| call.function.arguments.len())
        .sum();
    message.content.chars().count() + calls
}

fn note(conversation: &Conversation, actions: &SessionActions) -> Option<SessionNote> {
    let calls: usize = actions.calls.iter().map(|(made, _)| made).sum();
    match actions.turns.len() {
        0 => Some(SessionNote::NoTurn),
        1 => Some(SessionNote::OneTurn),
        _ if calls == 0 => Some(SessionNote::NoCalls),
        _ if conversation.begins_midway => Some(SessionNote::BeginsMidway),
        _ => None,
    }
}

/// Scrubs all texts that are shown. What is a secret anywhere in the session is replaced in them too.
fn scrub(messages: &[Message], compactions: &mut [ObservedCompaction]) {
    if compactions.is_empty() {
        return;
    }
    let mut places: Vec<&mut String> = compactions.iter_mut().flat_map(texts_of).collect();
    let mut texts: Vec<String> = places
        .iter_mut()
        .map(|place| std::mem::take(*place))
        .collect();
    scrub_texts(messages, &mut texts);
    for (place, text) in places.into_iter().zip(texts) {
        *place = text;
    }
}

fn texts_of(compaction: &mut ObservedCompaction) -> impl Iterator<Item = &mut String> {
    let reads = compaction.re_read.iter_mut().map(|read| &mut read.path);
    let failures = compaction
        .repeated
        .iter_mut()
        .flat_map(|one| [&mut one.command, &mut one.error]);
    compaction.summary.iter_mut().chain(reads).chain(failures)
}

named_enum! {
    /// Why a compaction is listed but not counted.
    pub enum NotCounted {
        /// Only old tool results were cleared.
        Clearing = "cleared old tool results, no summary",
        /// What came before it is not in the log.
        BeginsMidway = "the log begins in the middle of the session",
        /// Most of what was compacted is not in the log.
        MostMissing = "the log holds less than a tenth of the tokens that were compacted",
        /// The window is too short.
        FewTurns = "fewer than 10 turns follow",
        /// The calls of the window cannot be read.
        UnknownCalls = "it is not known what the calls after it do",
    }
}

named_enum! {
    /// Why there is little to see in a session.
    pub enum SessionNote {
        /// Nothing was answered.
        NoTurn = "there is no turn of the assistant in it",
        /// One turn has nothing after it.
        OneTurn = "it has only one turn of the assistant",
        /// Nothing can have been read again.
        NoCalls = "it has no tool calls",
        /// What came before is not in the log.
        BeginsMidway = "it begins in the middle of a session",
    }
}

impl NotCounted {
    /// The reason in words.
    pub fn message(self, locale: Locale) -> &'static str {
        let chinese = match self {
            NotCounted::Clearing => "只清除了旧的工具结果，没有摘要",
            NotCounted::BeginsMidway => "日志从会话中途开始",
            NotCounted::MostMissing => "日志所含不足被压缩词元的十分之一",
            NotCounted::FewTurns => "其后不足 10 轮",
            NotCounted::UnknownCalls => "不知其后的调用做了什么",
        };
        locale.pick(self.name(), chinese)
    }
}

impl SessionNote {
    /// The reason in words.
    pub fn message(self, locale: Locale) -> &'static str {
        let chinese = match self {
            SessionNote::NoTurn => "其中没有助手的轮次",
            SessionNote::OneTurn => "助手只有一轮",
            SessionNote::NoCalls => "没有工具调用",
            SessionNote::BeginsMidway => "从会话中途开始",
        };
        locale.pick(self.name(), chinese)
    }
}
