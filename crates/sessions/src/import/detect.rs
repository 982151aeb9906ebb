//! Detects the format of a log by its content; the name of the file only breaks ties.

use serde_json::Value;

use super::content::{first_at, list_of, str_of};
use super::format::Format;
use base::words::WordList;

/// How many records are read to detect a format.
pub(super) const LOOKED_AT: usize = 50;

/// How a log is divided into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogShape {
    /// One JSON value per line.
    Lines,
    /// One JSON value.
    Document,
    /// No JSON.
    Text,
}

/// The shape of a file, from its first bytes and its name.
pub(super) fn shape_of(head: &str, name: &str) -> LogShape {
    let text = head.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with(['{', '[']) {
        // A log whose first line is damaged still has JSON on its second.
        let json_follows = text
            .lines()
            .skip(1)
            .take(3)
            .any(|line| line.starts_with('{'));
        return if is_lines_name(name) || json_follows {
            LogShape::Lines
        } else {
            LogShape::Text
        };
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("");
    let second = lines.next();
    let complete = is_json(first);
    let second_opens = second.is_some_and(|line| line.starts_with('{') && line.len() > 1);
    // After a damaged first line comes a whole value; after the first line of a document, another part of it.
    let damaged = first.len() > 2 && second.is_some_and(is_json);
    if is_lines_name(name) && (complete || second.is_none())
        || second_opens && (complete || damaged)
    {
        LogShape::Lines
    } else {
        LogShape::Document
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn is_lines_name(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}

/// The format of a log's first records.
pub(super) fn detect(shape: LogShape, records: &[&Value]) -> Option<Format> {
    let first = *records.first()?;
    match shape {
        LogShape::Text => None,
        LogShape::Lines => detect_lines(records).or_else(|| detect_document(first)),
        LogShape::Document => detect_document(first).or_else(|| match first {
            Value::Array(items) => detect_lines(&items.iter().take(LOOKED_AT).collect::<Vec<_>>()),
            _ => detect_lines(records),
        }),
    }
}

fn has(record: &Value, key: &str) -> bool {
    record.get(key).is_some()
}

fn has_list(record: &Value, key: &str) -> bool {
    record.get(key).is_some_and(Value::is_array)
}

/// Whether a JSON value has the marks of a format.
type Marks = fn(&Value) -> bool;

/// JSON lines: one of this many first records must have the marks. The first row that matches decides, so a new row
/// must stand above the rows that would also match its records: `is_message` takes any line with a role and a text,
/// and `is_claude` any with a `sessionId` and a common `type`.
const OF_LINES: &[(usize, Marks, Format)] = &[
    (LOOKED_AT, is_codex, Format::Codex),
    (
        1,
        |r| !has(r, "type") && has(r, "timestamp") && (has(r, "instructions") || has(r, "git")),
        Format::Codex,
    ),
    (
        2,
        |r| str_of(r, "type") == "session" && has(r, "timestamp") && has(r, "cwd"),
        Format::Pi,
    ),
    (
        LOOKED_AT,
        |r| WordList("session.start assistant.message user.message").has(str_of(r, "type")),
        Format::CopilotCli,
    ),
    (LOOKED_AT, is_gemini, Format::Gemini),
    (
        2,
        |r| str_of(r, "type") == "session_start" && has(r, "id"),
        Format::Droid,
    ),
    (LOOKED_AT, is_pi_message, Format::Pi),
    (
        LOOKED_AT,
        |r| matches!(str_of(r, "type"), "thread.started" | "item.completed"),
        Format::Codex,
    ),
    (LOOKED_AT, is_gemini_stream, Format::Gemini),
    (
        LOOKED_AT,
        |r| has(r, "sessionId") && r.pointer("/message/parts").is_some(),
        Format::QwenCode,
    ),
    (
        LOOKED_AT,
        |r| str_of(r, "type") == "tool_call" && has(r, "tool_call"),
        Format::Cursor,
    ),
    (
        LOOKED_AT,
        |r| r.pointer("/message/payload").is_some() && r.pointer("/message/type").is_some(),
        Format::Kimi,
    ),
    (LOOKED_AT, is_claude, Format::ClaudeCode),
    (LOOKED_AT, is_trajectory, Format::Hermes),
    (LOOKED_AT, is_openhands_evaluation, Format::OpenHands),
    (
        LOOKED_AT,
        |r| str_of(r, "kind").ends_with("Event") && has(r, "source"),
        Format::OpenHands,
    ),
    (
        LOOKED_AT,
        |r| str_of(r, "role") == "session_meta" || has(r, "role") && has(r, "finish_reason"),
        Format::Hermes,
    ),
    (LOOKED_AT, is_atif, Format::Atif),
    (LOOKED_AT, is_message, Format::OpenAi),
];

/// One JSON document.
const OF_DOCUMENT: &[(Marks, Format)] = &[
    (
        |d| {
            has(d, "info")
                && list_of(d, "messages")
                    .first()
                    .is_some_and(|m| has(m, "info") && has(m, "parts"))
        },
        Format::OpenCode,
    ),
    (
        |d| has(d, "sessionId") && has(d, "projectHash") && has_list(d, "messages"),
        Format::Gemini,
    ),
    (is_mini, Format::MiniSweAgent),
    (|d| has_list(d, "trajectory"), Format::SweAgent),
    (is_atif, Format::Atif),
    (|d| has(d, "eval") && has(d, "version"), Format::Inspect),
    (
        |d| has(d, "session_id") && (has(d, "system_prompt") || has(d, "message_count")),
        Format::Hermes,
    ),
    (is_openhands_evaluation, Format::OpenHands),
    (|d| has_list(d, "history"), Format::Gemini),
    (is_trajectory, Format::Hermes),
    (
        |d| has_list(d, "messages") && has(d, "started_at"),
        Format::Hermes,
    ),
    (
        |d| has_list(d, "input") && (has(d, "model") || has(d, "instructions")),
        Format::OpenAi,
    ),
    (
        |d| has_list(d, "traj") || has_list(d, "simulations"),
        Format::OpenAi,
    ),
];

/// A document that is a list: what one of its first items looks like.
const OF_LIST: &[(Marks, Format)] = &[
    (
        |item| has(item, "role") && has(item, "parts"),
        Format::Gemini,
    ),
    (
        |item| has(item, "source") && (has(item, "action") || has(item, "observation")),
        Format::OpenHands,
    ),
    (is_gemini_stream, Format::Gemini),
    (is_codex, Format::Codex),
    (is_returncode, Format::MiniSweAgent),
    (is_atif, Format::Atif),
    (is_claude, Format::ClaudeCode),
    (|item| has_list(item, "traj"), Format::OpenAi),
    // Rows of its database.
    (
        |item| has(item, "role") && has(item, "compacted"),
        Format::Hermes,
    ),
    (is_message, Format::OpenAi),
];

fn detect_lines(records: &[&Value]) -> Option<Format> {
    let (.., format) = OF_LINES
        .iter()
        .find(|(first, marks, _)| any_of_first(*first, records, *marks))?;
    Some(match format {
        Format::OpenAi if any_of_first(LOOKED_AT, records, is_anthropic_message) => {
            Format::Anthropic
        }
        format => *format,
    })
}

fn any_of_first(count: usize, records: &[&Value], marks: Marks) -> bool {
    records.iter().take(count).any(|record| marks(record))
}

fn detect_document(document: &Value) -> Option<Format> {
    if let Value::Array(items) = document {
        return detect_list(items);
    }
    let found = OF_DOCUMENT
        .iter()
        .find(|(marks, _)| marks(document))
        .map(|(_, format)| *format);
    let messages = list_of(document, "messages");
    let has_speaker = messages.iter().any(|message| has(message, "role"));
    found.or_else(|| has_speaker.then(|| anthropic_or_openai(document, messages)))
}

fn detect_list(items: &[Value]) -> Option<Format> {
    let looked_at = items.get(..LOOKED_AT).unwrap_or(items);
    match OF_LIST
        .iter()
        .find(|(marks, _)| looked_at.iter().any(marks))
    {
        Some((_, Format::OpenAi)) => Some(anthropic_or_openai(&Value::Null, items)),
        Some((_, format)) => Some(*format),
        None if looked_at.iter().any(|item| has_list(item, "messages")) => {
            items.iter().find_map(detect_document)
        }
        None => None,
    }
}

/// Whether the log of a session that begins with this record lacks its beginning: the record that only the first can be.
/// Claude Code links its records, and so knows it itself.
pub(super) fn begins_midway(format: Format, first: &Value) -> bool {
    let kind = str_of(first, "type");
    match format {
        Format::Codex => !matches!(kind, "session_meta" | "thread.started" | ""),
        Format::CopilotCli | Format::QwenCode => {
            !first_at(first, &["/parentId", "/parentUuid"]).is_empty()
        }
        Format::Gemini => has(first, "id") && matches!(kind, "user" | "gemini"),
        Format::Pi => kind == "message",
        _ => false,
    }
}

/// A record of a rollout, or an item without its envelope.
fn is_codex(record: &Value) -> bool {
    match str_of(record, "type") {
        "session_meta" | "response_item" | "turn_context" | "event_msg" => {
            record.get("payload").is_some_and(Value::is_object)
        }
        "function_call" | "function_call_output" => has(record, "call_id"),
        _ => false,
    }
}

/// The header of a session, or a record that changes its list of messages.
fn is_gemini(record: &Value) -> bool {
    let is_header = has(record, "sessionId") && has(record, "projectHash") && !has(record, "type");
    is_header || has(record, "$set") || str_of(record, "type") == "gemini" && has(record, "id")
}

fn is_claude(record: &Value) -> bool {
    const KINDS: WordList = WordList(
        "user assistant summary system attachment progress file-history-snapshot mode permission-mode last-prompt \
        queue-operation ai-title",
    );
    let known = KINDS.has(str_of(record, "type"));
    let is_streamed = has(record, "session_id") && has(record, "uuid") && known;
    is_streamed
        || (has(record, "sessionId") && (known || has(record, "uuid") && has(record, "parentUuid")))
        || (known && has(record, "uuid") && has(record, "parentUuid"))
        || has(record, "parent_tool_use_id") && has(record, "message")
}

/// A message of pi's family in its envelope, where the header is missing.
fn is_pi_message(record: &Value) -> bool {
    str_of(record, "type") == "message" && record.pointer("/message/role").is_some()
}

/// A record of Gemini CLI's stream: those of a session have other kinds.
fn is_gemini_stream(record: &Value) -> bool {
    match str_of(record, "type") {
        "tool_use" => has(record, "tool_name"),
        "message" => has(record, "delta"),
        "init" => has(record, "session_id") && has(record, "model"),
        "result" => has(record, "status") && !has(record, "subtype"),
        "tool_result" => has(record, "tool_id"),
        _ => false,
    }
}

fn is_mini(document: &Value) -> bool {
    str_of(document, "trajectory_format").starts_with("mini-swe-agent")
        || document.pointer("/info/mini_version").is_some()
}

/// A trajectory as Hermes exports it.
fn is_trajectory(record: &Value) -> bool {
    has_list(record, "conversations") && has(record, "completed") && has(record, "timestamp")
}

fn is_openhands_evaluation(record: &Value) -> bool {
    has_list(record, "history") && (has(record, "instance_id") || has(record, "instruction"))
}

fn is_atif(record: &Value) -> bool {
    has_list(record, "steps") && str_of(record, "schema_version").starts_with("ATIF")
}

fn is_message(record: &Value) -> bool {
    has(record, "role") && (has(record, "content") || has(record, "tool_calls"))
}

fn is_returncode(item: &Value) -> bool {
    str_of(item, "role") == "user" && str_of(item, "content").starts_with("<returncode>")
}

/// Which of the two APIs a list of messages is for. Where both readings agree, OpenAI's.
fn anthropic_or_openai(document: &Value, messages: &[Value]) -> Format {
    let anthropic_tools = list_of(document, "tools")
        .iter()
        .any(|tool| has(tool, "input_schema"));
    if messages.iter().any(is_anthropic_message) {
        Format::Anthropic
    } else if messages.iter().any(is_openai_message) {
        Format::OpenAi
    } else if has(document, "system") || anthropic_tools {
        Format::Anthropic
    } else {
        Format::OpenAi
    }
}

fn is_openai_message(message: &Value) -> bool {
    has(message, "tool_calls") || matches!(str_of(message, "role"), "tool" | "system" | "function")
}

fn is_anthropic_message(message: &Value) -> bool {
    let mut kinds = list_of(message, "content")
        .iter()
        .map(|block| str_of(block, "type"));
    !has(message, "tool_calls")
        && kinds.any(|kind| matches!(kind, "tool_use" | "tool_result" | "thinking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_over_several_lines_is_not_json_lines() {
        let pretty = "{\"messages\":[\n{\"role\":\"user\",\"content\":\"hi\"},\n{\"role\":\"user\",\"content\":\"ho\"}]}\n";
        assert!(matches!(shape_of(pretty, "log.json"), LogShape::Document));
        assert!(matches!(
            shape_of("{\"a\":1}\n{\"a\":2}\n", "log.json"),
            LogShape::Lines
        ));
        assert!(
            matches!(
                shape_of("{\"a\":\n{\"a\":2}\n{\"a\":3}\n", "log"),
                LogShape::Lines
            ),
            "a damaged first line"
        );
    }
}
