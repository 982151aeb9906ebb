//! The Agent Trajectory Interchange Format, as Harbor and others write it: one document with steps.

use serde_json::Value;

use super::super::content::{arguments, first_at, list_at, list_of, str_of, text_of, time_of};
use super::super::draft::{ConversationDraft, one_each};
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};
use base::units::{Tokens, Usage};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    one_each(records, trajectory)
}

fn trajectory(document: &Value, name: String) -> ConversationDraft {
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
                draft.step(usage_of(metrics), time_of(step));
            }
            let calls = list_of(step, "tool_calls").iter().map(|call| read_call(call, draft)).collect();
            draft.assistant(text, calls);
        }
        other => draft.unknown(format!("step of `{other}`")),
    }
    for result in results {
        read_result(result, draft);
    }
}

/// `prompt_tokens` include those that were read from the cache; what was written to it is an extra of some providers.
fn usage_of(metrics: &Value) -> Usage {
    let number = |pointer: &str| metrics.pointer(pointer).and_then(Value::as_u64).map(Tokens);
    Usage {
        input: number("/prompt_tokens"),
        cached_input: number("/cached_tokens"),
        cache_write: number("/extra/cache_creation_input_tokens"),
        output: number("/completion_tokens"),
        ..Usage::default()
    }
}

fn read_call(call: &Value, draft: &mut ConversationDraft) -> ToolCall {
    let id = str_of(call, "tool_call_id");
    let id = if id.is_empty() { draft.new_id() } else { id.to_owned() };
    ToolCall::new(id, str_of(call, "function_name"), arguments(call.get("arguments")))
}

/// A result without the id of a call belongs to the oldest call that waits, or to something that the agent did itself.
fn read_result(result: &Value, draft: &mut ConversationDraft) {
    let text = text_of(result.get("content").unwrap_or(&Value::Null), draft);
    match str_of(result, "source_call_id") {
        "" if draft.waiting() > 0 => draft.next_result(text),
        "" => draft.bookkeeping("observation without a call"),
        id => draft.result(id, text),
    }
}
