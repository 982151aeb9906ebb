//! GitHub Copilot CLI: events, one per line, in a chain.

use std::collections::HashSet;

use serde_json::Value;

use super::super::content::{
    arguments, first_at, list_of, non_empty, number_at, result_text, str_at, str_of, text_of,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::new(records.stem());
    let mut asked = HashSet::new();
    while let Some(record) = records.next_item() {
        let requests = record
            .get("data")
            .map_or(&[] as &[Value], |data| list_of(data, "toolRequests"));
        asked.extend(
            requests
                .iter()
                .map(|call| str_of(call, "toolCallId").to_owned()),
        );
        if str_of(&record, "type") == "tool.execution_start" {
            read_tool_start(
                record.get("data").unwrap_or(&Value::Null),
                &mut asked,
                &mut draft,
            );
        } else {
            read_event(&record, &mut draft);
        }
    }
    vec![draft]
}

/// Reads the start of a tool. If no message asked for it, this is the only record of the call.
fn read_tool_start(data: &Value, asked: &mut HashSet<String>, draft: &mut ConversationDraft) {
    let id = str_of(data, "toolCallId");
    if !asked.insert(id.to_owned()) {
        return draft.count_bookkeeping("tool.execution_start");
    }
    draft.add_reply(
        "",
        vec![ToolCall::new(
            id,
            str_of(data, "toolName"),
            arguments(data.get("arguments")),
        )],
    );
}

fn read_event(record: &Value, draft: &mut ConversationDraft) {
    let kind = str_of(record, "type");
    let data = record.get("data").unwrap_or(&Value::Null);
    match kind {
        "system.message" => draft.say(Role::System, str_of(data, "content")),
        "user.message" => draft.say(
            Role::User,
            first_at(data, &["/content", "/transformedContent"]),
        ),
        "assistant.message" => read_assistant(data, draft),
        "tool.execution_complete" => {
            let result = data
                .get("result")
                .or_else(|| data.get("error"))
                .unwrap_or(&Value::Null);
            let text = match str_of(result, "content") {
                "" => text_of(result.get("message").unwrap_or(result), draft),
                content => content.to_owned(),
            };
            let has_failed = data.get("success").and_then(Value::as_bool) == Some(false);
            draft.add_result(str_of(data, "toolCallId"), result_text(text, has_failed));
        }
        "session.model_change" => {
            draft.set_model(str_of(data, "newModel"));
            draft.count_bookkeeping(kind);
        }
        "session.compaction_complete" => {
            let has_succeeded = data.get("success").and_then(Value::as_bool) != Some(false);
            let summary =
                Some(str_at(data, "/summaryContent")).filter(|summary| !summary.is_empty());
            if !has_succeeded {
                return draft.count_bookkeeping(kind);
            }
            draft.note_compaction(summary);
            if let Some(last) = draft.last_compaction() {
                last.time = non_empty(str_of(record, "timestamp"));
                last.tokens_before = number_at(data, "/preCompactionTokens");
                last.tokens_after = number_at(data, "/postCompactionTokens");
            }
        }
        _ if [
            "session.",
            "hook.",
            "permission.",
            "assistant.turn",
            "tool.",
            "system.",
        ]
        .iter()
        .any(|start| kind.starts_with(start)) =>
        {
            draft.count_bookkeeping(kind);
        }
        _ => draft.count_unknown(kind),
    }
}

fn read_assistant(data: &Value, draft: &mut ConversationDraft) {
    if !str_of(data, "reasoningOpaque").is_empty() || !str_of(data, "encryptedContent").is_empty() {
        draft.count(DropReason::SealedReasoning);
    }
    let calls = list_of(data, "toolRequests").iter().map(|call| {
        ToolCall::new(
            str_of(call, "toolCallId"),
            str_of(call, "name"),
            arguments(call.get("arguments")),
        )
    });
    draft.add_reply(str_of(data, "content"), calls.collect());
}
