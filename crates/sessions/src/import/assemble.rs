//! Makes a fixture of a conversation: scrubbed, named, with compression points and notes on how it was made.
//!
//! Compression points for a transcript: where the product itself compacted, at regular distances, at the end.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::conversation::{Conversation, RepairKind};
use super::format::Format;
use super::scrub::{ScrubReport, ScrubSettings, Suspicion, audit, record_scrubbing, scrub};
use super::source::{LONGEST_NAME, plain_name};
use crate::transcript::{
    Fixture, Message, RecordedContext, Role, ends_of_spans, is_boundary, points_at_shares, start_of,
};
use base::units::Tokens;

/// The note of a fixture that names the message in the person's own words. Whoever paraphrased it takes the note out.
pub const PARAPHRASE: &str = "paraphrase";

/// The user's settings for a new fixture.
#[derive(Clone, Debug, Default)]
pub struct FixtureOptions {
    /// Its name; from the log's file if not given.
    pub name: Option<String>,
    /// What to remove.
    pub scrub: ScrubSettings,
    /// The most tokens of the session that are used, without those of the system message; it ends with a whole turn.
    pub max_tokens: Option<Tokens>,
    /// The time of scrubbing to record.
    pub scrubbed_at: Option<String>,
    /// Where to put compression points.
    pub points: PointRules,
}

/// The number of messages to keep: the most whole turns within the limit, at least one. A turn ends after an
/// assistant message with its tool results.
fn end_within(
    max_tokens: Option<Tokens>,
    messages: &[Message],
    count: &dyn Fn(&Message) -> Tokens,
) -> usize {
    let (mut tokens, mut end) = (0, None);
    for (index, message) in messages.iter().enumerate() {
        let at = index + 1;
        tokens += if message.role == Role::System && index == 0 {
            0
        } else {
            count(message).0
        };
        let is_over = max_tokens.is_some_and(|most| tokens > most.0);
        if is_over && end.is_some() {
            break;
        }
        let is_turn =
            matches!(message.role, Role::Assistant | Role::Tool) && is_boundary(messages, at);
        let is_whole_session = at == messages.len() && !is_over;
        if is_turn && (message.role == Role::Tool || message.tool_calls.is_empty())
            || is_whole_session
        {
            end = Some(at);
        }
    }
    end.unwrap_or(messages.len())
}

/// A new fixture, and what was done to make it.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The fixture, scrubbed.
    pub fixture: Fixture,
    /// What was removed.
    pub report: ScrubReport,
    /// Texts that look like secrets and are still there.
    pub suspicions: Vec<Suspicion>,
}

/// Makes a fixture of a conversation; `count` counts the tokens of a message.
pub fn assemble(
    conversation: Conversation,
    format: Format,
    options: &FixtureOptions,
    count: &dyn Fn(&Message) -> Tokens,
) -> Assembled {
    let mut fixture = whole_fixture(conversation, format, options.name.as_deref());
    let report = scrub(&mut fixture, &options.scrub);
    if let Some(at) = &options.scrubbed_at {
        record_scrubbing(&mut fixture, at);
    }
    let end = end_within(options.max_tokens, &fixture.messages, count);
    if end < fixture.messages.len() {
        fixture.messages.truncate(end);
        fixture.truncated_to = Some(end as u64);
        fixture.compactions.retain(|at| *at <= end);
        fixture.recorded.retain(|one| one.at <= end);
    }
    if let (Some(index), Some(notes)) = (
        report.paraphrase.filter(|at| *at < end),
        fixture.notes.as_object_mut(),
    ) {
        notes.insert(PARAPHRASE.to_owned(), json!(index));
    }
    fixture.points = propose(
        &fixture.messages,
        &fixture.compactions,
        options.points,
        count,
    );
    let suspicions = audit(&fixture);
    Assembled {
        fixture,
        report,
        suspicions,
    }
}

/// The whole conversation as a fixture, not yet scrubbed and without points. Its name is from the log if none is given.
fn whole_fixture(conversation: Conversation, format: Format, name: Option<&str>) -> Fixture {
    let notes = notes_of(&conversation, format);
    let recorded = recorded_contexts(&conversation);
    let compactions = conversation.compactions();
    Fixture {
        name: plain_name(name.unwrap_or(&conversation.name_hint)),
        description: format!(
            "Imported from a log of {format}. Say in a sentence or two what happened in the session."
        ),
        model: conversation.model.unwrap_or_else(|| "unknown".to_owned()),
        context_length: None,
        tags: Vec::new(),
        points: Vec::new(),
        truncated_to: None,
        tools: conversation.tools,
        begins_midway: conversation.begins_midway,
        compactions,
        recorded,
        messages: conversation.messages,
        notes,
        extra: serde_json::Map::new(),
    }
}

/// The compactions whose summaries can be read, each with what was kept beside it.
fn recorded_contexts(conversation: &Conversation) -> Vec<RecordedContext> {
    let readable = conversation.recorded.iter().filter_map(|one| {
        let kept = conversation.kept_places(one).into_iter();
        Some(RecordedContext {
            at: one.message,
            summary: one.summary.clone()?,
            kept: kept.map(|range| [range.start, range.end]).collect(),
        })
    });
    readable.collect()
}

fn notes_of(conversation: &Conversation, format: Format) -> Value {
    // A reason may name a word of the log, and only values are scrubbed, not keys.
    let dropped: Vec<String> = conversation
        .dropped
        .iter()
        .map(|(why, count)| format!("{why}: {count}"))
        .collect();
    let mut notes = Map::new();
    notes.insert("source".to_owned(), json!(format!("a log of {format}")));
    if !dropped.is_empty() {
        notes.insert("left_out".to_owned(), json!(dropped));
    }
    if let Some(copied) = conversation.repairs.get(&RepairKind::Copied) {
        notes.insert("copied_messages".to_owned(), json!(copied));
    }
    Value::Object(notes)
}

/// `name`, or `name-2` and so on until it is free.
pub fn unique_name(name: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let mut unique = name.to_owned();
    let mut number = 2_u64;
    while is_taken(&unique) {
        let suffix = format!("-{number}");
        let room = LONGEST_NAME.saturating_sub(suffix.len());
        unique = name.chars().take(room).chain(suffix.chars()).collect();
        number += 1;
    }
    unique
}

/// Where compression points are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointRules {
    /// A point whenever this many tokens have come since the one before.
    pub every_tokens: Option<Tokens>,
    /// A point wherever the log itself was compacted.
    pub at_compactions: bool,
    /// Whether the end of the session is a point.
    pub at_end: bool,
    /// This many points, at the ends of spans of about equal tokens.
    pub spans: Option<u32>,
}

/// The least share of the messages, and turns of the assistant, after the last point, so that a compression can be
/// judged by what the session used later.
const TAIL: (f64, usize) = (0.15, 10);
/// The shares of the tokens before the points of a transcript for which no rule is given.
const SHARES: [f64; 2] = [0.4, 0.7];

/// The points that `rules` ask for: exclusive message indices in rising order, none between a call and its result and
/// none before there is something to compress. Without a rule they are after 40% and 70% of the tokens. Points leave
/// a tail, unless only one at the end was asked for, or none would be left. None at all is read as one at the end.
pub fn propose(
    messages: &[Message],
    compactions: &[usize],
    rules: PointRules,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let start = start_of(messages);
    if rules == PointRules::default() {
        return points_at_shares(messages, start, SHARES, count)
            .into_iter()
            .filter(|at| may_be_point(messages, start, *at) && leaves_tail(messages, *at))
            .collect();
    }
    if let Some(spans) = rules.spans {
        return ends_of_spans(messages, start, spans, count);
    }
    let marked: HashSet<usize> = compactions
        .iter()
        .copied()
        .filter(|_| rules.at_compactions)
        .collect();
    let mut points = Vec::new();
    let mut since = 0;
    for (index, message) in messages.iter().enumerate().skip(start) {
        since += count(message).0;
        let at = index + 1;
        let full = rules
            .every_tokens
            .is_some_and(|every| since >= every.0.max(1));
        if may_be_point(messages, start, at) && (full || marked.contains(&at)) {
            points.push(at);
            since = 0;
        }
    }
    let early = points.partition_point(|at| leaves_tail(messages, *at));
    if early > 0 {
        points.truncate(early);
    }
    let end = messages.len();
    if rules.at_end && may_be_point(messages, start, end) && points.last() != Some(&end) {
        points.push(end);
    }
    points
}

/// Whether there is something to compress between `start` and `at`, and no call is separated from its result.
fn may_be_point(messages: &[Message], start: usize, at: usize) -> bool {
    at > start && at <= messages.len() && is_boundary(messages, at)
}

/// The fewest messages, without the system message, of a session in which a compression can leave anything out.
pub const FEWEST_MESSAGES: usize = 5;
/// The fewest tokens of such a session: a summary of a shorter one is about as long.
pub const FEWEST_TOKENS: u64 = 1000;

/// Whether there is nothing to compress: fewer messages or tokens than [`FEWEST_MESSAGES`] and [`FEWEST_TOKENS`].
pub fn is_too_short(messages: &[Message], count: &dyn Fn(&Message) -> Tokens) -> bool {
    let session = messages.get(start_of(messages)..).unwrap_or_default();
    let tokens: Tokens = session.iter().map(count).sum();
    session.len() < FEWEST_MESSAGES || tokens < Tokens(FEWEST_TOKENS)
}

/// Whether enough of the session is after a point.
fn leaves_tail(messages: &[Message], at: usize) -> bool {
    let (share, turns) = TAIL;
    let tail = messages.get(at..).unwrap_or_default();
    let spoken = tail
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .count();
    tail.len() as f64 >= share * messages.len() as f64 && spoken >= turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::RecordedCompaction;

    #[test]
    fn a_name_never_takes_anothers_place_and_compactions_move_with_the_messages() {
        let conversation = Conversation {
            name_hint: "a b".into(),
            messages: vec![
                Message::text(Role::System, "one"),
                Message::text(Role::System, "two"),
                Message::text(Role::User, "mail j@corp.io"),
                Message::text(Role::Assistant, "ok"),
            ],
            recorded: vec![RecordedCompaction {
                message: 3,
                summary: Some("j@corp.io wants mail".into()),
                ..RecordedCompaction::default()
            }],
            ..Conversation::default()
        };
        let points = PointRules {
            at_compactions: true,
            ..PointRules::default()
        };
        let options = FixtureOptions {
            points,
            ..FixtureOptions::default()
        };
        let made = assemble(conversation, Format::Pi, &options, &|_| Tokens(1));
        assert_eq!(
            unique_name(&made.fixture.name, |name| name == "a-b"),
            "a-b-2"
        );
        assert_eq!(
            (made.fixture.messages.len(), made.fixture.points.as_slice()),
            (3, [2].as_slice())
        );
        assert_eq!(
            made.fixture.recorded[0].summary,
            "contributor@example.com wants mail"
        );
        assert_eq!(
            made.fixture.notes[PARAPHRASE], 1,
            "the first message of the person is marked"
        );
        assert_eq!(made.suspicions, []);
    }
}

#[cfg(test)]
mod points_tests {
    use super::*;
    use crate::transcript::ToolCall;

    fn transcript() -> Vec<Message> {
        let mut call = Message::text(Role::Assistant, "xx");
        call.tool_calls.push(ToolCall::new("1", "run", "{}"));
        vec![
            Message::text(Role::System, "s"),
            Message::text(Role::User, "xx"),
            call,
            Message::result("1", "xx"),
            Message::text(Role::Assistant, "xx"),
            Message::text(Role::User, "x"),
        ]
    }

    fn points(rules: PointRules) -> Vec<usize> {
        propose(&transcript(), &[2, 3], rules, &|message| {
            Tokens(message.content.len() as u64)
        })
    }

    #[test]
    fn points_never_part_a_call_from_its_result() {
        let every = |n| PointRules {
            every_tokens: Some(Tokens(n)),
            ..PointRules::default()
        };
        assert_eq!(points(every(3)), [4, 6]);
        assert_eq!(points(every(4)), [4]);
        assert_eq!(
            points(PointRules {
                at_compactions: true,
                ..PointRules::default()
            }),
            [2]
        );
        assert_eq!(
            points(PointRules {
                at_end: true,
                ..every(6)
            }),
            [4, 6]
        );
        assert_eq!(points(PointRules::default()), [0_usize; 0]);
    }

    fn long(turns: usize) -> Vec<Message> {
        (0..turns)
            .map(|_| Message::text(Role::Assistant, "xx"))
            .collect()
    }

    #[test]
    fn a_session_of_few_messages_or_tokens_is_too_short() {
        let is_short = |turns, tokens| is_too_short(&long(turns), &|_| Tokens(tokens));
        assert!(is_short(4, 9000) && is_short(5, 199) && !is_short(5, 200));
        let mut with_system = vec![Message::text(Role::System, "s")];
        with_system.extend(long(4));
        assert!(
            is_too_short(&with_system, &|_| Tokens(9000)),
            "the system message does not count"
        );
        assert!(is_too_short(&[], &|_| Tokens(1)));
    }

    #[test]
    fn points_leave_a_tail_where_the_session_is_long_enough() {
        let at = |turns, rules| propose(&long(turns), &[], rules, &|_| Tokens(1));
        assert_eq!(at(100, PointRules::default()), [40, 70]);
        assert_eq!(
            at(30, PointRules::default()),
            [12],
            "fewer than ten turns follow a point at 70%"
        );
        assert_eq!(at(12, PointRules::default()), [0_usize; 0]);
        let every = PointRules {
            every_tokens: Some(Tokens(30)),
            ..PointRules::default()
        };
        assert_eq!(
            at(100, every),
            [30, 60],
            "only 10 of 100 messages follow a point at 90"
        );
        assert_eq!(
            at(
                100,
                PointRules {
                    at_end: true,
                    ..every
                }
            ),
            [30, 60, 100]
        );
        assert_eq!(
            at(
                9,
                PointRules {
                    every_tokens: Some(Tokens(4)),
                    ..every
                }
            ),
            [4, 8],
            "else none would be left"
        );
    }
}
