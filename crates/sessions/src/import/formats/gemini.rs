//! Gemini CLI: a session in one JSON document, a session in JSON lines that change a list of messages, checkpoints, and
//! the stream of a run without a screen.

use std::collections::HashMap;

use serde_json::Value;

use super::super::blocks::{call_of, has_failed, message_blocks, output_of, read_message};
use super::super::content::{content_of, list_of, result_text, str_of, time_of, usage_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::tables::GEMINI_STREAM;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::default();
    let mut session = GeminiSession::default();
    while let Some(item) = records.next_item() {
        if is_of_stream(&item) {
            GEMINI_STREAM.read(&item, &mut draft);
        } else if item.get("parts").is_some() {
            read_checkpoint(&item, &mut draft);
        } else if item.get("history").is_some() {
            list_of(&item, "history")
                .iter()
                .for_each(|content| read_checkpoint(content, &mut draft));
        } else {
            session.apply(item, &mut draft);
        }
    }
    session.write(&mut draft);
    vec![draft]
}

/// Records of a session have ids; those of a stream have kinds of their own.
fn is_of_stream(item: &Value) -> bool {
    matches!(
        str_of(item, "type"),
        "init" | "message" | "tool_use" | "tool_result" | "result"
    ) || str_of(item, "type") == "error" && item.get("id").is_none()
}

/// The list of messages that the lines of a session build up.
#[derive(Default)]
struct GeminiSession {
    messages: Vec<Value>,
    /// The place of each message, by its id.
    known: HashMap<String, usize>,
    /// Compactions: how many messages were before each, and its summary.
    compactions: Vec<(usize, Option<String>)>,
}

impl GeminiSession {
    fn apply(&mut self, mut item: Value, draft: &mut ConversationDraft) {
        if let Some(id) = item.get("$rewindTo").and_then(Value::as_str) {
            return self.rewind(id, draft);
        }
        if let Some(messages) = item.pointer_mut("/$set/messages").map(Value::take) {
            return self.replace(messages, draft);
        }
        if let Some(messages) = item.get_mut("messages").and_then(Value::as_array_mut) {
            let messages = messages.drain(..);
            return messages.for_each(|message| self.put(message, draft));
        }
        if item.get("type").is_none() {
            return draft.count_bookkeeping("header");
        }
        self.put(item, draft);
    }

    /// Adds a message. One with a known id replaces the earlier one, which was written without its calls.
    fn put(&mut self, message: Value, draft: &mut ConversationDraft) {
        let id = str_of(&message, "id");
        if let Some(old) = self.known.get(id).and_then(|at| self.messages.get_mut(*at)) {
            *old = message;
            return draft.count(DropReason::Duplicate);
        }
        if !id.is_empty() {
            self.known.insert(id.to_owned(), self.messages.len());
        }
        self.messages.push(message);
    }

    /// A shorter list with a snapshot is a compaction: the history continues, the snapshot is its summary.
    fn replace(&mut self, messages: Value, draft: &mut ConversationDraft) {
        let Value::Array(messages) = messages else {
            return draft.count_unknown("`$set` without a list of messages");
        };
        let snapshot = messages.iter().find_map(|message| {
            let text = content_of(message, &mut ConversationDraft::default());
            text.contains("<state_snapshot>").then_some(text)
        });
        if let Some(summary) = &snapshot {
            self.compactions
                .push((self.messages.len(), Some(summary.clone())));
        }
        for message in messages {
            let text = content_of(&message, &mut ConversationDraft::default());
            if text.contains("<state_snapshot>") {
                continue;
            }
            if text.starts_with("Got it. Thanks for the additional context") {
                draft.count(DropReason::Injected("reply to a summary".to_owned()));
            } else if self.known.contains_key(str_of(&message, "id")) {
                draft.count(DropReason::Duplicate);
            } else {
                self.put(message, draft);
            }
        }
    }

    /// Goes back to a message. An unknown one clears the session, as it does in Gemini CLI.
    fn rewind(&mut self, id: &str, draft: &mut ConversationDraft) {
        let at = self.known.get(id).copied().unwrap_or(0);
        for message in self.messages.drain(at..) {
            self.known.remove(str_of(&message, "id"));
            draft.count(DropReason::AbandonedBranch);
        }
        // They are in order.
        self.compactions.truncate(
            self.compactions
                .partition_point(|(before, _)| *before <= at),
        );
    }

    fn write(self, draft: &mut ConversationDraft) {
        let mut compactions = self.compactions.into_iter().peekable();
        for (index, message) in self.messages.iter().enumerate() {
            while let Some((_, summary)) = compactions.next_if(|(before, _)| *before == index) {
                draft.note_compaction(summary.as_deref().unwrap_or_default());
            }
            write_message(message, draft);
        }
        compactions
            .for_each(|(_, summary)| draft.note_compaction(summary.as_deref().unwrap_or_default()));
    }
}

fn write_message(message: &Value, draft: &mut ConversationDraft) {
    match str_of(message, "type") {
        "user" => read_message(message, "user", draft),
        "gemini" => read_reply(message, draft),
        kind @ ("info" | "error" | "warning") => draft.count_bookkeeping(format!("screen {kind}")),
        kind => draft.count_unknown(format!("message {kind}")),
    }
}

fn read_reply(message: &Value, draft: &mut ConversationDraft) {
    draft.set_model(str_of(message, "model"));
    if let Some(tokens) = message.get("tokens") {
        draft.count_request(usage_of(tokens), time_of(message));
    }
    let text = content_of(message, draft);
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for call in list_of(message, "toolCalls") {
        let made = call_of(call, draft);
        results.extend(result_of_call(call, draft).map(|result| (made.id.clone(), result)));
        calls.push(made);
    }
    draft.add_reply(text, calls);
    for (id, result) in results {
        draft.add_result(&id, result);
    }
}

/// The result of a call, as the model got it.
fn result_of_call(call: &Value, draft: &mut ConversationDraft) -> Option<String> {
    let parts = list_of(call, "result").iter().map(|part| {
        let response = part.get("functionResponse");
        output_of(response.unwrap_or(part), draft)
    });
    let parts: Vec<String> = parts.collect();
    let text = match call.get("resultDisplay").and_then(Value::as_str) {
        Some(shown) if parts.is_empty() => shown.to_owned(),
        None if parts.is_empty() => return None,
        _ => parts.join("\n"),
    };
    let responses = list_of(call, "result").iter();
    let mut responses = responses.filter_map(|part| part.get("functionResponse"));
    let is_error = has_failed(call) || responses.any(has_failed);
    Some(result_text(text, is_error))
}

/// Reads an entry of a checkpoint.
fn read_checkpoint(content: &Value, draft: &mut ConversationDraft) {
    let text = message_blocks(content, &mut ConversationDraft::default()).text;
    if text.contains("<state_snapshot>") && str_of(content, "role") != "model" && draft.len() > 0 {
        draft.note_compaction(&text);
    } else {
        read_message(content, "", draft);
    }
}
