//! ShareGPT conversations, and Hermes' flavour of them with calls and reasoning as tags inside the text.

use serde_json::Value;

use super::super::content::{arguments, first_at, list_of, str_of, text_of};
use super::super::draft::{ConversationDraft, read_each};
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    read_each(records, read_conversation)
}

/// One conversation of either flavour.
pub(super) fn read_conversation(item: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(str_of(item, "model"));
    draft.set_tools(item.get("tools"));
    if !str_of(item, "system").is_empty() {
        draft.say(Role::System, str_of(item, "system"));
    }
    let turns = ["conversations", "conversation", "items"]
        .into_iter()
        .map(|key| list_of(item, key));
    for turn in turns.max_by_key(|turns| turns.len()).unwrap_or(&[]) {
        read_turn(turn, &mut draft);
    }
    draft
}

fn read_turn(turn: &Value, draft: &mut ConversationDraft) {
    let from = first_at(turn, &["/from", "/role"]);
    let value = ["value", "content", "text"]
        .into_iter()
        .find_map(|key| turn.get(key))
        .unwrap_or(&Value::Null);
    let value = text_of(value, draft);
    match from {
        "system" => draft.say(Role::System, value),
        "human" | "user" => draft.say(Role::User, value),
        "gpt" | "chatgpt" | "assistant" | "bard" | "bing" | "model" => read_reply(&value, draft),
        "function_call" | "tool_call" => {
            let calls = written_calls(&value, draft);
            if calls.is_empty() {
                draft.add_reply(value, calls)
            } else {
                draft.add_reply("", calls)
            }
        }
        "observation" | "tool" | "function_response" | "tool_response" => {
            read_results(&value, draft)
        }
        other => draft.count_unknown(format!("speaker `{other}`")),
    }
}

/// The assistant's text without `<think>` and `<tool_call>` blocks; the latter become calls.
fn read_reply(value: &str, draft: &mut ConversationDraft) {
    let (text, _) = without_blocks(value, "think");
    let (text, calls) = without_blocks(&text, "tool_call");
    let calls = calls
        .iter()
        .flat_map(|call| match written_calls(call, draft) {
            read if read.is_empty() => vec![call_as_written(call, draft)],
            read => read,
        });
    let calls = calls.collect();
    draft.add_reply(text.trim(), calls);
}

fn read_results(value: &str, draft: &mut ConversationDraft) {
    let (_, responses) = without_blocks(value, "tool_response");
    if responses.is_empty() {
        return draft.add_next_result(value);
    }
    for response in responses {
        let parsed: Option<Value> = serde_json::from_str(response.trim()).ok();
        let content = parsed.as_ref().and_then(|value| value.get("content"));
        match content {
            Some(Value::String(text)) => draft.add_next_result(text.as_str()),
            Some(other) => draft.add_next_result(other.to_string()),
            None => draft.add_next_result(response.trim()),
        }
    }
}

/// The calls that a JSON text stands for: one, or a list.
fn written_calls(text: &str, draft: &mut ConversationDraft) -> Vec<ToolCall> {
    let list = match serde_json::from_str(text.trim()) {
        Ok(Value::Array(list)) => list,
        Ok(one @ Value::Object(_)) => vec![one],
        _ => return Vec::new(),
    };
    let calls = list.iter().map(|call| {
        let name = Some(str_of(call, "name"))
            .filter(|name| !name.is_empty())
            .unwrap_or("unknown");
        ToolCall::new(
            draft.new_id(),
            name,
            arguments(call.get("arguments").or_else(|| call.get("parameters"))),
        )
    });
    calls.collect()
}

/// A call that is not JSON, such as Qwen's `<function=NAME>`: its arguments stay as written.
fn call_as_written(text: &str, draft: &mut ConversationDraft) -> ToolCall {
    let name = text
        .split_once("<function=")
        .and_then(|(_, rest)| rest.split(['>', '\n']).next());
    ToolCall::new(
        draft.new_id(),
        name.filter(|name| !name.is_empty()).unwrap_or("unknown"),
        text.trim(),
    )
}

/// The text without its `<tag>` blocks, and what was in them. A block that never ends is text.
fn without_blocks(text: &str, tag: &str) -> (String, Vec<String>) {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let (mut rest, mut kept, mut blocks) = (text, String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((inside, tail)) = after.split_once(&close) else {
            break;
        };
        kept.push_str(before);
        blocks.push(inside.to_owned());
        rest = tail;
    }
    kept.push_str(rest);
    (kept, blocks)
}
