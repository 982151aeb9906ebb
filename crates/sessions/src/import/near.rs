//! A log that is in no known format: which one it comes closest to, and what it lacks.

use serde_json::Value;

use super::detect::Format;

/// The fields that distinguish the records of each format.
const SIGNS: &[(Format, &[&str])] = &[
    (Format::ClaudeCode, &["type", "sessionId", "uuid", "message"]),
    (Format::Codex, &["type", "timestamp", "payload"]),
    (Format::Gemini, &["sessionId", "projectHash", "messages"]),
    (Format::Pi, &["type", "id", "timestamp", "cwd"]),
    (Format::OpenCode, &["info", "messages"]),
    (Format::Hermes, &["session_id", "system_prompt", "messages"]),
    (Format::SweAgent, &["trajectory", "history"]),
    (Format::MiniSweAgent, &["trajectory_format", "messages"]),
    (Format::OpenHands, &["source", "action"]),
    (Format::OpenHands, &["instance_id", "history"]),
    (Format::CopilotCli, &["type", "data", "parentId"]),
    (Format::Inspect, &["eval", "version", "samples"]),
    (Format::OpenAi, &["role", "content"]),
    (Format::OpenAi, &["messages"]),
    (Format::ShareGpt, &["conversations"]),
    (Format::ShareGpt, &["from", "value"]),
    (Format::LangSmith, &["run_type", "inputs"]),
    (Format::Atif, &["schema_version", "agent", "steps"]),
    (Format::OpenTelemetry, &["traceId", "spanId", "attributes"]),
];

/// The format that `record` comes closest to, in words, with what is missing; `None` if it is like none.
pub(super) fn nearest(record: &Value) -> Option<String> {
    let object = record.as_object()?;
    let present = |keys: &[&str]| keys.iter().filter(|key| object.contains_key(**key)).count();
    let scored = SIGNS.iter().map(|(format, keys)| (present(keys) * 12 / keys.len(), present(keys), *format, *keys));
    let (share, _, format, keys) =
        scored.rev().filter(|(share, ..)| *share >= 6).max_by_key(|(share, count, ..)| (*share, *count))?;
    let quoted = |keys: Vec<&&str>| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let missing: Vec<&&str> = keys.iter().filter(|key| !object.contains_key(**key)).collect();
    Some(if share < 12 {
        format!("it is most like {format}, but has no {}", quoted(missing))
    } else {
        let what = quoted(keys.iter().collect());
        format!("it is most like {format}, but {what} do not hold what they hold there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_near_format_lacks_is_named() {
        let near = |record: Value| nearest(&record).unwrap_or_default();
        assert_eq!(
            near(json!({"role": "user", "text": "hi"})),
            "it is most like openai-messages, but has no `content`"
        );
        let claude = near(json!({"type": "user", "uuid": "u", "message": {}}));
        assert_eq!(claude, "it is most like claude-code, but has no `sessionId`");
        let codex = near(json!({"type": "user", "timestamp": "t", "payload": {}}));
        assert!(codex.starts_with("it is most like codex, but `type`, `timestamp`, `payload` do not hold"), "{codex}");
        assert_eq!(near(json!({"dialogue": [], "kind": "chat"})), "");
    }
}
