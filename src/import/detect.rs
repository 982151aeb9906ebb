//! Detects the format of a log by its content; the name of the file only breaks ties.

use crate::named::named_enum;
use serde_json::Value;

named_enum! {
    /// The formats that can be read.
    pub enum Format {
        ClaudeCode = "claude-code",
        Codex = "codex",
        /// Gemini CLI: single JSON, JSONL, checkpoints.
        Gemini = "gemini-cli",
        Pi = "pi",
        /// `opencode export`.
        OpenCode = "opencode",
        /// Hermes: gateway transcript, session log, session export, trajectories.
        Hermes = "hermes",
        SweAgent = "swe-agent",
        MiniSweAgent = "mini-swe-agent",
        /// OpenHands: event lists, evaluation output, agent SDK events.
        OpenHands = "openhands",
        Aider = "aider",
        CopilotCli = "copilot-cli",
        Inspect = "inspect",
        /// Messages as OpenAI's API has them.
        OpenAi = "openai-messages",
        /// Messages as Anthropic's API has them.
        Anthropic = "anthropic-messages",
        ShareGpt = "sharegpt",
        LangSmith = "langsmith",
    }
}

impl Format {
    /// The names of all formats.
    pub fn names() -> Vec<&'static str> {
        Format::ALL.map(Format::name).to_vec()
    }

    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// How many records are looked at.
pub(super) const LOOKED_AT: usize = 50;

/// How the bytes are to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogShape {
    /// One JSON value a line.
    Lines,
    Document,
    Text,
}

/// How the bytes of a file are to be cut, from its first ones and its name.
pub(super) fn shape_of(head: &str, name: &str) -> LogShape {
    let text = head.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with(['{', '[']) {
        // A log whose first line is damaged still has JSON on its second.
        let json_follows = text.lines().skip(1).take(3).any(|line| line.starts_with('{'));
        return if is_lines_name(name) || json_follows { LogShape::Lines } else { LogShape::Text };
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("");
    let second = lines.next();
    let is_whole = |line: &str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
    let complete = is_whole(first);
    let second_opens = second.is_some_and(|line| line.starts_with('{') && line.len() > 1);
    // Behind a damaged first line stands a whole value; behind the first line of a document, a part of it.
    let damaged = first.len() > 2 && second.is_some_and(is_whole);
    if is_lines_name(name) && (complete || second.is_none()) || second_opens && (complete || damaged) {
        LogShape::Lines
    } else {
        LogShape::Document
    }
}

/// Whether a text has the head of a chat as Aider writes it: the first thing in the file, or outside all fences and
/// followed by a line of Aider's own. A page that shows such a head is no log.
pub(super) fn is_aider(head: &str) -> bool {
    let mut lines = head.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()).peekable();
    let is_head = |line: &str| {
        let time = line.strip_prefix("# aider chat started at ").unwrap_or("").as_bytes();
        time.len() >= 19
            && time
                .iter()
                .zip(b"0000-00-00 00:00:00")
                .all(|(byte, form)| byte == form || *form == b'0' && byte.is_ascii_digit())
    };
    if lines.peek().is_some_and(|line| is_head(line)) {
        return true;
    }
    let mut fenced = false;
    while let Some(line) = lines.next() {
        fenced ^= line.starts_with("```");
        if !fenced && is_head(line) && lines.peek().is_some_and(|next| next.starts_with(['>', '#'])) {
            return true;
        }
    }
    false
}

fn is_lines_name(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}

/// The format of a log's first records.
pub(super) fn detect(shape: LogShape, records: &[&Value]) -> Option<Format> {
    let first = *records.first()?;
    match shape {
        LogShape::Text => None,
        LogShape::Lines => of_lines(records).or_else(|| of_document(first)),
        LogShape::Document => of_document(first).or_else(|| match first {
            Value::Array(items) => of_lines(&items.iter().take(LOOKED_AT).collect::<Vec<_>>()),
            _ => of_lines(records),
        }),
    }
}

fn text<'a>(record: &'a Value, key: &str) -> Option<&'a str> {
    record.get(key).and_then(Value::as_str)
}

fn has(record: &Value, key: &str) -> bool {
    record.get(key).is_some()
}

fn has_list(record: &Value, key: &str) -> bool {
    record.get(key).is_some_and(Value::is_array)
}

fn of_lines(records: &[&Value]) -> Option<Format> {
    let first = records.first()?;
    let any = |rule: fn(&Value) -> bool| records.iter().any(|record| rule(record));
    if any(is_codex) {
        return Some(Format::Codex);
    }
    if !has(first, "type") && has(first, "timestamp") && (has(first, "instructions") || has(first, "git")) {
        return Some(Format::Codex);
    }
    if records.iter().take(2).any(|r| text(r, "type") == Some("session") && has(r, "timestamp") && has(r, "cwd")) {
        return Some(Format::Pi);
    }
    if any(|r| text(r, "type") == Some("session.start") || text(r, "type") == Some("assistant.message")) {
        return Some(Format::CopilotCli);
    }
    if has(first, "sessionId") && has(first, "projectHash") && !has(first, "type") {
        return Some(Format::Gemini);
    }
    if any(is_claude) {
        return Some(Format::ClaudeCode);
    }
    of_conversation_lines(&any)
}

fn of_conversation_lines(any: &impl Fn(fn(&Value) -> bool) -> bool) -> Option<Format> {
    if any(|r| has_list(r, "conversations")) {
        return Some(if any(|r| has(r, "completed") && has(r, "timestamp")) {
            Format::Hermes
        } else {
            Format::ShareGpt
        });
    }
    if any(|r| has_list(r, "history") && (has(r, "instance_id") || has(r, "instruction"))) {
        return Some(Format::OpenHands);
    }
    if any(|r| text(r, "kind").is_some_and(|kind| kind.ends_with("Event")) && has(r, "source")) {
        return Some(Format::OpenHands);
    }
    if any(|r| text(r, "role") == Some("session_meta") || has(r, "role") && has(r, "finish_reason")) {
        return Some(Format::Hermes);
    }
    if any(|r| has(r, "run_type")) {
        return Some(Format::LangSmith);
    }
    if any(|r| has(r, "role") && has(r, "content") || has(r, "role") && has(r, "tool_calls")) {
        return Some(if any(is_anthropic_message) { Format::Anthropic } else { Format::OpenAi });
    }
    None
}

fn is_codex(record: &Value) -> bool {
    matches!(text(record, "type"), Some("session_meta" | "response_item" | "turn_context" | "event_msg"))
        && record.get("payload").is_some_and(Value::is_object)
}

fn is_claude(record: &Value) -> bool {
    const KINDS: [&str; 12] = [
        "user", "assistant", "summary", "system", "attachment", "progress", "file-history-snapshot", "mode",
        "permission-mode", "last-prompt", "queue-operation", "ai-title",
    ];
    let known = text(record, "type").is_some_and(|kind| KINDS.contains(&kind));
    (has(record, "sessionId") && (known || has(record, "uuid") && has(record, "parentUuid")))
        || (known && has(record, "uuid") && has(record, "parentUuid"))
}

fn of_document(document: &Value) -> Option<Format> {
    if let Value::Array(items) = document {
        return of_list(items);
    }
    if !document.is_object() {
        return None;
    }
    let messages = document.get("messages").and_then(Value::as_array);
    let first = messages.and_then(|messages| messages.first());
    if has(document, "info") && first.is_some_and(|m| has(m, "info") && has(m, "parts")) {
        return Some(Format::OpenCode);
    }
    if has(document, "sessionId") && has(document, "projectHash") && messages.is_some() {
        return Some(Format::Gemini);
    }
    let format = text(document, "trajectory_format").is_some_and(|name| name.starts_with("mini-swe-agent"));
    if format || document.pointer("/info/mini_version").is_some() {
        return Some(Format::MiniSweAgent);
    }
    if has_list(document, "trajectory") {
        return Some(Format::SweAgent);
    }
    if has(document, "eval") && has(document, "version") {
        return Some(Format::Inspect);
    }
    if has(document, "session_id") && (has(document, "system_prompt") || has(document, "message_count")) {
        return Some(Format::Hermes);
    }
    of_other_document(document, messages)
}

fn of_other_document(document: &Value, messages: Option<&Vec<Value>>) -> Option<Format> {
    if has_list(document, "history") {
        let evaluation = has(document, "instance_id") || has(document, "instruction");
        return Some(if evaluation { Format::OpenHands } else { Format::Gemini });
    }
    if has(document, "run_type") || has_list(document, "post") || has_list(document, "patch") {
        return Some(Format::LangSmith);
    }
    if has_list(document, "conversations") {
        return Some(Format::ShareGpt);
    }
    if messages.is_some() && has(document, "started_at") {
        return Some(Format::Hermes);
    }
    if has_list(document, "input") && (has(document, "model") || has(document, "instructions")) {
        return Some(Format::OpenAi);
    }
    let messages = messages?;
    if messages.iter().any(|m| has_list(m, "conversations")) {
        return Some(Format::ShareGpt);
    }
    messages.iter().any(|m| has(m, "role")).then(|| anthropic_or_openai(document, messages))
}

fn of_list(items: &[Value]) -> Option<Format> {
    let any = |rule: fn(&Value) -> bool| items.iter().take(LOOKED_AT).any(rule);
    if any(|item| has(item, "role") && has(item, "parts")) {
        return Some(Format::Gemini);
    }
    if any(|item| has(item, "source") && (has(item, "action") || has(item, "observation"))) {
        return Some(Format::OpenHands);
    }
    if any(|item| has_list(item, "conversations")) {
        return Some(Format::ShareGpt);
    }
    if any(|item| text(item, "role") == Some("user") && text(item, "content").is_some_and(is_returncode)) {
        return Some(Format::MiniSweAgent);
    }
    if any(|item| has(item, "role") && (has(item, "content") || has(item, "tool_calls"))) {
        return Some(anthropic_or_openai(&Value::Null, items));
    }
    if any(|item| has_list(item, "messages")) {
        return items.iter().find_map(of_document);
    }
    None
}

fn is_returncode(text: &str) -> bool {
    text.starts_with("<returncode>")
}

/// Which of the two APIs a list of messages is for. Where both readings agree, OpenAI's.
fn anthropic_or_openai(document: &Value, messages: &[Value]) -> Format {
    let openai = |m: &Value| has(m, "tool_calls") || matches!(text(m, "role"), Some("tool" | "system" | "function"));
    let tools = document.get("tools").and_then(Value::as_array);
    let anthropic_tools = tools.is_some_and(|tools| tools.iter().any(|tool| has(tool, "input_schema")));
    if messages.iter().any(is_anthropic_message) {
        Format::Anthropic
    } else if messages.iter().any(openai) {
        Format::OpenAi
    } else if has(document, "system") || anthropic_tools {
        Format::Anthropic
    } else {
        Format::OpenAi
    }
}

fn is_anthropic_message(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    let own = |block: &Value| matches!(text(block, "type"), Some("tool_use" | "tool_result" | "thinking"));
    !has(message, "tool_calls") && blocks.is_some_and(|blocks| blocks.iter().any(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_breaks_its_lines_is_no_list_of_lines() {
        let pretty =
            "{\"messages\":[\n{\"role\":\"user\",\"content\":\"hi\"},\n{\"role\":\"user\",\"content\":\"ho\"}]}\n";
        assert!(matches!(shape_of(pretty, "log.json"), LogShape::Document));
        assert!(matches!(shape_of("{\"a\":1}\n{\"a\":2}\n", "log.json"), LogShape::Lines));
        assert!(matches!(shape_of("{\"a\":\n{\"a\":2}\n{\"a\":3}\n", "log"), LogShape::Lines), "a damaged first line");
    }
}
