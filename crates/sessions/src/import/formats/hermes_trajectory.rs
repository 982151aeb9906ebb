//! Hermes' trajectories: turns of `from` and `value`, with calls, results and reasoning as tags inside the text.

use serde_json::Value;

use super::super::blocks::call_of;
use super::super::content::{first_at, list_of, str_of, text_of};
use super::super::draft::{CallResult, ConversationDraft};
use super::super::text_results::without_blocks;
use crate::transcript::{Role, ToolCall};

pub(super) fn read_conversation(item: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(str_of(item, "model"));
    draft.set_tools(item.get("tools"));
    for turn in list_of(item, "conversations") {
        let value = text_of(turn.get("value").unwrap_or(&Value::Null), &mut draft);
        match str_of(turn, "from") {
            "system" => draft.say(Role::System, value),
            "human" => draft.say(Role::User, value),
            "gpt" => read_reply(&value, &mut draft),
            "tool" => read_results(&value, &mut draft),
            other => draft.count_unknown(format!("speaker `{other}`")),
        }
    }
    draft
}

/// The assistant's text without `<think>` and `<tool_call>` blocks; the latter become calls.
fn read_reply(value: &str, draft: &mut ConversationDraft) {
    let (text, _) = without_blocks(value, "think");
    let (text, written) = without_blocks(&text, "tool_call");
    let calls = written.iter().map(|call| written_call(call, draft));
    let calls = calls.collect();
    draft.add_reply(text.trim(), calls);
}

/// All results of a turn are one text.
fn read_results(value: &str, draft: &mut ConversationDraft) {
    let (_, responses) = without_blocks(value, "tool_response");
    if responses.is_empty() {
        return draft.add_next_result(value);
    }
    for response in responses {
        let parsed: Value = serde_json::from_str(response.trim()).unwrap_or(Value::Null);
        let text = match parsed.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => response.trim().to_owned(),
        };
        draft.add_call_result(CallResult {
            id: String::new(),
            name: first_at(&parsed, &["/name"]).to_owned(),
            text,
        });
    }
}

/// A call as JSON; one that is not, such as Qwen's `<function=NAME>`, keeps its arguments as written.
fn written_call(text: &str, draft: &mut ConversationDraft) -> ToolCall {
    if let Ok(call @ Value::Object(_)) = serde_json::from_str(text.trim()) {
        return call_of(&call, draft);
    }
    let name = text
        .split_once("<function=")
        .and_then(|(_, rest)| rest.split(['>', '\n']).next());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("unknown");
    ToolCall::new(draft.new_id(), name, text.trim())
}
