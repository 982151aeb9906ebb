//! Events of OpenHands' agent SDK, from the end of 2025 on.

use serde_json::Value;

use super::super::blocks::{Speaker, add_blocks, message_blocks};
use super::super::content::{arguments, result_text, str_at, str_of, text_of};
use super::super::draft::ConversationDraft;
use crate::transcript::{Role, ToolCall, recorded_exit_code};

pub(super) fn read_event(event: &Value, draft: &mut ConversationDraft) {
    match str_of(event, "kind") {
        "SystemPromptEvent" => {
            draft.set_tools(event.get("tools"));
            draft.say(Role::System, str_at(event, "/system_prompt/text"));
        }
        "MessageEvent" => read_message(event, draft),
        "ActionEvent" => read_action(event, draft),
        "ObservationEvent" => {
            let content = event
                .pointer("/observation/content")
                .or_else(|| event.pointer("/observation/output"));
            let text = text_of(content.unwrap_or(&Value::Null), draft);
            let code = ["/observation/metadata/exit_code", "/observation/exit_code"];
            let code = code
                .into_iter()
                .find_map(|path| event.pointer(path)?.as_i64());
            let text = with_exit_code(text, code);
            let is_marked = event
                .pointer("/observation/is_error")
                .and_then(Value::as_bool)
                != Some(true)
                || text.starts_with("[An error occurred");
            let text = if is_marked {
                text
            } else {
                format!("[An error occurred during execution.]\n{text}")
            };
            draft.add_result(str_of(event, "tool_call_id"), text);
        }
        "AgentErrorEvent" => {
            let error = result_text(str_of(event, "error").to_owned(), true);
            draft.add_result(str_of(event, "tool_call_id"), error);
        }
        "UserRejectObservation" => draft.add_result(
            str_of(event, "tool_call_id"),
            str_of(event, "rejection_reason"),
        ),
        "Condensation" => draft.note_compaction(str_of(event, "summary")),
        kind @ ("CondensationRequest"
        | "ConversationStateUpdateEvent"
        | "PauseEvent"
        | "InterruptEvent"
        | "TokenEvent"
        | "StreamingDeltaEvent"
        | "LLMCompletionLogEvent"
        | "HookExecutionEvent") => draft.count_bookkeeping(kind),
        kind => draft.count_unknown(kind),
    }
}

/// The output of a command with its exit code, which the model is told and the log keeps apart.
pub(super) fn with_exit_code(output: String, code: Option<i64>) -> String {
    match code.filter(|code| *code > 0 && recorded_exit_code(&output) != Some(*code)) {
        Some(code) => format!("{output}\n[Command finished with exit code {code}]"),
        None => output,
    }
}

fn read_message(event: &Value, draft: &mut ConversationDraft) {
    let message = event.get("llm_message").unwrap_or(&Value::Null);
    let mut blocks = message_blocks(message, draft);
    let extended = text_of(event.get("extended_content").unwrap_or(&Value::Null), draft);
    if !extended.is_empty() {
        blocks.text.push('\n');
        blocks.text.push_str(&extended);
    }
    let speaker = Speaker::of(str_of(message, "role")).unwrap_or(Speaker::User);
    add_blocks(speaker, blocks, draft);
}

/// Actions of one reply of the model are one message; only the first carries the thought.
fn read_action(event: &Value, draft: &mut ConversationDraft) {
    let thought = text_of(event.get("thought").unwrap_or(&Value::Null), draft);
    let id = str_of(event, "tool_call_id");
    let given = [
        event.pointer("/tool_call/function/arguments"),
        event.pointer("/tool_call/arguments"),
        event.get("action"),
    ];
    let call = ToolCall::new(
        id,
        str_of(event, "tool_name"),
        arguments(given.into_iter().flatten().next()),
    );
    match str_of(event, "llm_response_id") {
        "" => draft.add_reply(thought, vec![call]),
        key => draft.add_piece(key, &thought, vec![call]),
    }
}
