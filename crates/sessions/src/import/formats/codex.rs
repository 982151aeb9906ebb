//! Codex CLI rollouts: items of the Responses API in envelopes, with copies of everything for the screen.

use jiff::Timestamp;
use serde_json::Value;

use super::super::blocks::{CALL_IDS, call_of, has_failed, output_of};
use super::super::content::{
    arguments, content_of, id_at, list_of, non_empty, number_at, result_text, str_at, str_of,
    time_of, tokens_at, usage_of,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::tables::CODEX_EXEC;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::default();
    let mut items = CodexItems::default();
    let mut fork = Fork::default();
    while let Some(record) = records.next_item() {
        if is_of_exec(&record) {
            CODEX_EXEC.read(&record, &mut draft);
            continue;
        }
        if fork.ends_before(&record) {
            items.flush(&mut draft);
            draft.mark_copied();
        }
        read_line(&record, &mut items, &mut draft);
    }
    items.flush(&mut draft);
    if fork.copied_at.is_some() {
        draft.mark_copied();
    }
    vec![draft]
}

/// Records of `codex exec --json` are items in envelopes of their own.
fn is_of_exec(record: &Value) -> bool {
    let kind = str_of(record, "type");
    ["thread.", "turn.", "item."]
        .iter()
        .any(|start| kind.starts_with(start))
}

/// A session that was forked begins with its own header, then the header and the whole history of the other session,
/// all written at the time of the fork. A resumed session repeats its own header, and copies nothing.
#[derive(Default)]
struct Fork {
    own_id: Option<String>,
    /// When the last copied record was written; `None` outside a copy.
    copied_at: Option<Timestamp>,
}

impl Fork {
    /// Whether the copy ended before this record: when its time continues.
    fn ends_before(&mut self, record: &Value) -> bool {
        /// A long history takes a moment to write.
        const BURST: i64 = 100;
        let time = time_of(record);
        if str_of(record, "type") == "session_meta" {
            let id = str_at(record, "/payload/id");
            if self.own_id.get_or_insert_with(|| id.to_owned()) != id {
                self.copied_at = time;
            }
            return false;
        }
        let (Some(before), Some(now)) = (self.copied_at, time) else {
            return false;
        };
        let ended = now.as_millisecond() - before.as_millisecond() > BURST;
        self.copied_at = Some(now).filter(|_| !ended);
        ended
    }
}

fn read_line(record: &Value, items: &mut CodexItems, draft: &mut ConversationDraft) {
    let Some(payload) = record.get("payload").filter(|payload| payload.is_object()) else {
        // Before the envelope: items at top level, the header without a type.
        return match str_of(record, "type") {
            "" => draft.count_bookkeeping("header"),
            _ => items.read_item(record, draft),
        };
    };
    match str_of(record, "type") {
        "response_item" => items.read_item(payload, draft),
        "turn_context" => {
            draft.count_bookkeeping("turn_context");
            draft.set_model(str_of(payload, "model"));
        }
        "compacted" => {
            items.flush(draft);
            draft.note_compaction(str_of(payload, "message"));
            let replacement = list_of(payload, "replacement_history").iter();
            let texts: Vec<String> = replacement.map(|item| content_of(item, draft)).collect();
            if let Some(last) = draft.last_compaction() {
                last.time = non_empty(str_of(record, "timestamp"));
                last.tokens_before = items.context_tokens.take();
                last.replacement = texts.join("\n");
            }
        }
        "event_msg" => {
            if let Some(info) = payload.get("info") {
                items.count_tokens(info, time_of(record), draft);
            }
            match str_of(payload, "type") {
                "user_message" | "agent_message" | "agent_reasoning" => {
                    draft.count(DropReason::DisplayCopy)
                }
                "thread_rolled_back" => {
                    items.flush(draft);
                    draft.drop_turns(number_at(payload, "/num_turns").unwrap_or_default());
                }
                kind => draft.count_bookkeeping(format!("event {kind}")),
            }
        }
        kind @ ("session_meta"
        | "world_state"
        | "inter_agent_communication"
        | "inter_agent_communication_metadata") => {
            draft.count_bookkeeping(kind);
        }
        kind => draft.count_unknown(kind),
    }
}

/// Items of the Responses API become messages: what the assistant says and calls up to the next answer or prompt is
/// one message.
#[derive(Default)]
pub(super) struct CodexItems {
    text: String,
    calls: Vec<ToolCall>,
    /// The size of the newest request, as far as the log reports it.
    context_tokens: Option<u64>,
    /// All tokens of the session so far, as it was last reported.
    session_tokens: Option<u64>,
}

impl CodexItems {
    /// Counts the tokens of the newest request. They are reported again when limits change; then their total is the
    /// same.
    fn count_tokens(
        &mut self,
        info: &Value,
        time: Option<Timestamp>,
        draft: &mut ConversationDraft,
    ) {
        let Some(input) = tokens_at(info, "/last_token_usage/input_tokens") else {
            return;
        };
        self.context_tokens = Some(input.0).filter(|tokens| *tokens > 0);
        let total = number_at(info, "/total_token_usage/total_tokens");
        if total.is_none() || total != self.session_tokens {
            let usage = info.get("last_token_usage").unwrap_or(&Value::Null);
            draft.count_request(usage_of(usage), time);
        }
        self.session_tokens = total;
    }

    /// Reads one item. Call [`CodexItems::flush`] after the last.
    pub(super) fn read_item(&mut self, item: &Value, draft: &mut ConversationDraft) {
        match str_of(item, "type") {
            "message" | "" => self.read_message(item, draft),
            "reasoning" => read_reasoning(item, draft),
            "function_call" => {
                let call = call_of(item, draft);
                self.calls.push(call);
            }
            "custom_tool_call" => {
                let input = serde_json::json!({"input": str_of(item, "input")}).to_string();
                self.add_call(item, str_of(item, "name"), input);
            }
            "local_shell_call" => {
                self.add_call(item, "local_shell", arguments(item.get("action")));
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.flush(draft);
                let output = result_text(output_of(item, draft), has_failed(item));
                draft.add_result(&id_at(item, &CALL_IDS).unwrap_or_default(), output);
            }
            "agent_message" => {
                self.flush(draft);
                let text = content_of(item, draft);
                draft.say(
                    Role::User,
                    format!("[message of agent {}]\n{text}", str_of(item, "author")),
                );
            }
            "compaction" | "compaction_summary" | "context_compaction" => {
                self.flush(draft);
                draft.note_compaction("");
            }
            kind @ ("web_search_call" | "ghost_snapshot") => draft.count_bookkeeping(kind),
            kind => draft.count_unknown(format!("item {kind}")),
        }
    }

    fn read_message(&mut self, item: &Value, draft: &mut ConversationDraft) {
        let text = content_of(item, draft);
        match str_of(item, "role") {
            "assistant" => {
                // Text after a call begins a new message.
                if !self.calls.is_empty() || !self.text.is_empty() {
                    self.flush(draft);
                }
                self.text = text;
            }
            "user" => {
                self.flush(draft);
                let role = if is_scaffolding(&text) {
                    Role::System
                } else {
                    Role::User
                };
                draft.say(role, request_of(&text));
            }
            "developer" | "system" => {
                self.flush(draft);
                draft.say(Role::System, text);
            }
            other => draft.count_unknown(format!("role `{other}`")),
        }
    }

    fn add_call(&mut self, item: &Value, name: &str, arguments: String) {
        let id = id_at(item, &CALL_IDS).unwrap_or_default();
        self.calls.push(ToolCall::new(id, name, arguments));
    }

    /// Ends the message of the assistant, if one has begun.
    pub(super) fn flush(&mut self, draft: &mut ConversationDraft) {
        if !self.text.is_empty() || !self.calls.is_empty() {
            draft.add_reply(
                std::mem::take(&mut self.text),
                std::mem::take(&mut self.calls),
            );
        }
    }
}

fn read_reasoning(item: &Value, draft: &mut ConversationDraft) {
    let mut parts = list_of(item, "summary")
        .iter()
        .chain(list_of(item, "content"));
    if parts.all(|part| str_of(part, "text").is_empty()) {
        draft.count(DropReason::SealedReasoning);
    }
}

/// Texts that the program sends in the person's name.
fn is_scaffolding(text: &str) -> bool {
    const STARTS: [&str; 7] = [
        "<environment_context>",
        "# AGENTS.md instructions",
        "<user_instructions>",
        "<INSTRUCTIONS>",
        "<recommended_plugins>",
        "<subagent_notification>",
        "<turn_aborted>",
    ];
    STARTS
        .iter()
        .any(|start| text.trim_start().starts_with(start))
}

/// The person's own words in a prompt that an editor has prefixed with context.
fn request_of(text: &str) -> &str {
    match text.split_once("## My request for Codex:") {
        Some((before, request)) if before.trim_start().starts_with("# ") => request.trim(),
        _ => text,
    }
}
