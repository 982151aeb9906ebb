//! The Agent Trajectory Interchange Format, as Harbor and others write it: one document with steps.

use serde_json::Value;

use super::super::content::{
    arguments, first_at, list_at, list_of, str_of, text_of, time_of, tokens_at,
};
use super::super::draft::{ConversationDraft, read_each};
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};
use base::units::Usage;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    read_each(records, read_trajectory)
}

fn read_trajectory(document: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(first_at(document, &["/agent/model_name"]));
    for step in list_of(document, "steps") {
        read_step(step, &mut draft);
    }
    draft
}

fn read_step(step: &Value, draft: &mut ConversationDraft) {
    let text = text_of(step.get("message").unwrap_or(&Value::Null), draft);
    let results = list_at(step, "/observation/results");
    match str_of(step, "source") {
        "user" => draft.say(Role::User, text),
        "system" if text.trim().is_empty() && !results.is_empty() => {}
        "system" => draft.say(Role::System, text),
        "agent" => {
            draft.set_model(str_of(step, "model_name"));
            if let Some(metrics) = step.get("metrics") {
                draft.count_request(usage_of(metrics), time_of(step));
            }
            let calls = list_of(step, "tool_calls")
                .iter()
                .map(|call| read_call(call, draft))
                .collect();
            draft.add_reply(text, calls);
        }
        other => draft.count_unknown(format!("step of `{other}`")),
    }
    for result in results {
        read_result(result, draft);
    }
}

/// `prompt_tokens` include those that were read from the cache; what was written to it is an extra of some providers.
fn usage_of(metrics: &Value) -> Usage {
    Usage {
        input: tokens_at(metrics, "/prompt_tokens"),
        cached_input: tokens_at(metrics, "/cached_tokens"),
        cache_write: tokens_at(metrics, "/extra/cache_creation_input_tokens"),
        output: tokens_at(metrics, "/completion_tokens"),
        ..Usage::default()
    }
}

fn read_call(call: &Value, draft: &mut ConversationDraft) -> ToolCall {
    let id = str_of(call, "tool_call_id");
    let id = if id.is_empty() {
        draft.new_id()
    } else {
        id.to_owned()
    };
    ToolCall::new(
        id,
        str_of(call, "function_name"),
        arguments(call.get("arguments")),
    )
}

/// A result without the id of a call belongs to the oldest call that waits, or to something that the agent did itself.
fn read_result(result: &Value, draft: &mut ConversationDraft) {
    let text = text_of(result.get("content").unwrap_or(&Value::Null), draft);
    match str_of(result, "source_call_id") {
        "" if draft.waiting() > 0 => draft.add_next_result(text),
        "" => draft.count_bookkeeping("observation without a call"),
        id => draft.add_result(id, text),
    }
}
