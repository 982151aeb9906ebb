//! Messages as OpenAI's API has them: a body, a list, one message or one body per line; Responses bodies too.

use serde_json::Value;

use super::super::content::{
    arguments, content_of, first_at, list_at, list_of, openai_calls, say_content, str_of,
};
use super::super::conversation::DropReason;
use super::super::detect::LogShape;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::codex::CodexItems;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = ConversationDraft::new(records.stem());
    let lines = records.shape == LogShape::Lines;
    while let Some(items) = records.next_items() {
        let several = lines || items.len() > 1;
        for item in items {
            if item.get("messages").is_some() || item.get("input").is_some_and(Value::is_array) {
                let stem = records.stem();
                drafts.push(read_body(
                    &item,
                    if several {
                        format!("{stem}-{}", drafts.len() + 1)
                    } else {
                        stem
                    },
                ));
            } else {
                read_message(&item, &mut loose);
            }
        }
    }
    drafts.push(loose);
    drafts
}

/// A request body, with its response where one is logged.
pub(super) fn read_body(body: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(first_at(
        body,
        &["/model", "/kwargs/model", "/response/model"],
    ));
    draft.set_tools(body.get("tools").or_else(|| body.pointer("/kwargs/tools")));
    let instructions = first_at(body, &["/instructions", "/system"]);
    if !instructions.is_empty() {
        draft.say(Role::System, instructions);
    }
    let mut items = CodexItems::default();
    let lists = [
        list_of(body, "input"),
        list_at(body, "/response/output"),
        list_of(body, "output"),
    ];
    for item in lists.into_iter().flatten() {
        items.read_item(item, &mut draft);
    }
    items.flush(&mut draft);
    for item in list_of(body, "messages") {
        read_message(item, &mut draft);
    }
    if let Some(reply) = body
        .pointer("/response/choices/0/message")
        .or_else(|| body.pointer("/choices/0/message"))
    {
        read_message(reply, &mut draft);
    }
    draft
}

/// One message, in the current shape or the older one with `function_call`.
pub(super) fn read_message(item: &Value, draft: &mut ConversationDraft) {
    match str_of(item, "role") {
        "assistant" => read_assistant(item, draft),
        "tool" => {
            let text = content_of(item, draft);
            match str_of(item, "tool_call_id") {
                "" => draft.add_next_result(text),
                id => draft.add_result(id, text),
            }
        }
        "function" => {
            let text = content_of(item, draft);
            draft.add_next_result(text);
        }
        "user" => say_content(Role::User, item, draft),
        "system" | "developer" => say_content(Role::System, item, draft),
        other => draft.count_unknown(format!("role `{other}`")),
    }
}

fn read_assistant(item: &Value, draft: &mut ConversationDraft) {
    for _ in list_of(item, "thinking_blocks")
        .iter()
        .filter(|block| str_of(block, "thinking").trim().is_empty())
    {
        draft.count(DropReason::SealedReasoning);
    }
    let mut text = content_of(item, draft);
    if text.is_empty() {
        text = str_of(item, "refusal").to_owned();
    }
    let mut calls = openai_calls(item, draft);
    if let Some(call) = item.get("function_call").filter(|call| call.is_object()) {
        calls.push(ToolCall::new(
            draft.new_id(),
            str_of(call, "name"),
            arguments(call.get("arguments")),
        ));
    }
    draft.add_reply(text, calls);
}
