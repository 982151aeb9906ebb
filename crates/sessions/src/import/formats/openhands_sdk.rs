//! Events of OpenHands' agent SDK, from the end of 2025 on.

use serde_json::Value;

use super::super::content::{arguments, content_of, str_at, str_of, text_of};
use super::super::draft::ConversationDraft;
use crate::transcript::{Role, ToolCall};

pub(super) fn event(event: &Value, draft: &mut ConversationDraft) {
    match str_of(event, "kind") {
        "SystemPromptEvent" => draft.say(Role::System, str_at(event, "/system_prompt/text")),
        "MessageEvent" => message(event, draft),
        "ActionEvent" => action(event, draft),
        "ObservationEvent" => {
            let content = event.pointer("/observation/content").or_else(|| event.pointer("/observation/output"));
            let text = text_of(content.unwrap_or(&Value::Null), draft);
            draft.result(str_of(event, "tool_call_id"), text);
        }
        "AgentErrorEvent" => draft.result(str_of(event, "tool_call_id"), str_of(event, "error")),
        "UserRejectObservation" => draft.result(str_of(event, "tool_call_id"), str_of(event, "rejection_reason")),
        "Condensation" => draft.compaction(Some(str_of(event, "summary")).filter(|summary| !summary.is_empty())),
        kind @ ("CondensationRequest"
        | "ConversationStateUpdateEvent"
        | "PauseEvent"
        | "InterruptEvent"
        | "TokenEvent"
        | "StreamingDeltaEvent"
        | "LLMCompletionLogEvent"
        | "HookExecutionEvent") => draft.bookkeeping(kind),
        kind => draft.unknown(kind),
    }
}

fn message(event: &Value, draft: &mut ConversationDraft) {
    let message = event.get("llm_message").unwrap_or(&Value::Null);
    let mut text = content_of(message, draft);
    let extended = text_of(event.get("extended_content").unwrap_or(&Value::Null), draft);
    if !extended.is_empty() {
        text.push('\n');
        text.push_str(&extended);
    }
    match str_of(message, "role") {
        "assistant" => draft.assistant(text, Vec::new()),
        "system" => draft.say(Role::System, text),
        _ => draft.say(Role::User, text),
    }
}

/// Actions of one reply of the model are one message; only the first carries the thought.
fn action(event: &Value, draft: &mut ConversationDraft) {
    let thought = text_of(event.get("thought").unwrap_or(&Value::Null), draft);
    let id = str_of(event, "tool_call_id");
    let given =
        [event.pointer("/tool_call/function/arguments"), event.pointer("/tool_call/arguments"), event.get("action")];
    let call = ToolCall::new(id, str_of(event, "tool_name"), arguments(given.into_iter().flatten().next()));
    match str_of(event, "llm_response_id") {
        "" => draft.assistant(thought, vec![call]),
        key => draft.piece(key, &thought, vec![call]),
    }
}
