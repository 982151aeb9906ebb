//! Makes a fixture of a conversation: scrubbed, named, with compression points and notes on how it was made.

use serde_json::{Map, Value, json};

use super::conversation::{Conversation, RepairKind};
use super::format::Format;
use super::points::{PointRules, propose};
use super::scrub::{ScrubReport, ScrubSettings, Suspicion, audit, record_scrubbing, scrub};
use super::source::plain_name;
use crate::transcript::{Fixture, Message, RecordedContext, Role, is_boundary};
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
    let mut messages = conversation.messages;
    for (at, references) in conversation.attached {
        let next = at.min(messages.len().saturating_sub(1));
        if let Some(message) = messages.get_mut(next) {
            message.attached_references.extend(references);
        }
    }
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
        reference_patterns: None,
        tools: conversation.tools,
        begins_midway: conversation.begins_midway,
        compactions: conversation.compactions,
        recorded,
        messages,
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
        unique = format!("{name}-{number}");
        number += 1;
    }
    unique
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
            compactions: vec![3],
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
