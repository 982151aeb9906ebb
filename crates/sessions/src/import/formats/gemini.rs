//! Gemini CLI: a session in one JSON document, a session in JSON lines that change a list of messages, and checkpoints.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::super::content::{
    arguments, content_of, is_true, list_of, non_empty, result_text, say_content, str_of, text_of,
    time_of, tokens_at,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};
use base::units::Usage;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::new(records.stem());
    let mut session = GeminiSession::default();
    let mut open = HashMap::new();
    while let Some(item) = records.next_item() {
        if item.get("parts").is_some() {
            read_checkpoint(&item, &mut open, &mut draft);
        } else if item.get("history").is_some() {
            list_of(&item, "history")
                .iter()
                .for_each(|content| read_checkpoint(content, &mut open, &mut draft));
        } else {
            session.apply(item, &mut draft);
        }
    }
    session.write(&mut draft);
    vec![draft]
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
        if let Some(messages) = item
            .get_mut("messages")
            .filter(|m| m.is_array())
            .map(Value::take)
        {
            return self.extend(messages, draft);
        }
        if item.get("type").is_none() {
            return draft.count_bookkeeping("header");
        }
        self.put(item, draft);
    }

    fn extend(&mut self, messages: Value, draft: &mut ConversationDraft) {
        if let Value::Array(messages) = messages {
            messages
                .into_iter()
                .for_each(|message| self.put(message, draft));
        }
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
            let text = content_of(message, &mut ConversationDraft::new(""));
            text.contains("<state_snapshot>").then_some(text)
        });
        if let Some(summary) = &snapshot {
            self.compactions
                .push((self.messages.len(), Some(summary.clone())));
        }
        for message in messages {
            let text = content_of(&message, &mut ConversationDraft::new(""));
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
                draft.note_compaction(summary.as_deref());
            }
            write_message(message, draft);
        }
        compactions.for_each(|(_, summary)| draft.note_compaction(summary.as_deref()));
    }
}

fn write_message(message: &Value, draft: &mut ConversationDraft) {
    match str_of(message, "type") {
        "user" => say_content(Role::User, message, draft),
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
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for call in list_of(message, "toolCalls") {
        let id = non_empty(str_of(call, "id")).unwrap_or_else(|| draft.new_id());
        results.extend(result_of(call, draft).map(|result| (id.clone(), result)));
        calls.push(ToolCall::new(
            id,
            str_of(call, "name"),
            arguments(call.get("args")),
        ));
    }
    draft.add_reply(text, calls);
    for (id, result) in results {
        draft.add_result(&id, result);
    }
}

/// `input` includes what was read from the cache; `output` does not include what the model thought.
fn usage_of(tokens: &Value) -> Usage {
    let thoughts = tokens_at(tokens, "/thoughts");
    Usage {
        input: tokens_at(tokens, "/input"),
        cached_input: tokens_at(tokens, "/cached"),
        output: tokens_at(tokens, "/output").map(|output| output + thoughts.unwrap_or_default()),
        reasoning: thoughts,
        ..Usage::default()
    }
}

/// The result of a call, as the model got it.
fn result_of(call: &Value, draft: &mut ConversationDraft) -> Option<String> {
    let parts: Vec<String> = list_of(call, "result")
        .iter()
        .map(|part| response_text(part, draft))
        .collect();
    let shown = call.get("resultDisplay").and_then(Value::as_str);
    let text = if parts.is_empty() {
        shown?.to_owned()
    } else {
        parts.join("\n")
    };
    Some(result_text(text, str_of(call, "status") == "error"))
}

fn response_text(part: &Value, draft: &mut ConversationDraft) -> String {
    let Some(response) = part.pointer("/functionResponse/response") else {
        return text_of(part, draft);
    };
    let known = ["output", "error", "content"]
        .into_iter()
        .find_map(|key| response.get(key)?.as_str());
    known.map_or_else(|| response.to_string(), str::to_owned)
}

/// Reads an entry of a checkpoint. Calls and results pair by name and order where ids are missing: `open` has the ids of
/// the calls without a result, by name.
fn read_checkpoint(
    content: &Value,
    open: &mut HashMap<String, VecDeque<String>>,
    draft: &mut ConversationDraft,
) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for part in list_of(content, "parts") {
        if let Some(call) = part.get("functionCall") {
            let id = non_empty(str_of(call, "id")).unwrap_or_else(|| draft.new_id());
            open.entry(str_of(call, "name").to_owned())
                .or_default()
                .push_back(id.clone());
            calls.push(ToolCall::new(
                id,
                str_of(call, "name"),
                arguments(call.get("args")),
            ));
        } else if let Some(response) = part.get("functionResponse") {
            let queued = open
                .get_mut(str_of(response, "name"))
                .and_then(VecDeque::pop_front);
            let id = non_empty(str_of(response, "id")).or(queued);
            let text = response_text(part, draft);
            draft.add_result(&id.unwrap_or_default(), text);
        } else if !is_true(part, "thought") {
            texts.push(text_of(part, draft));
        }
    }
    let text = texts.join("\n");
    if str_of(content, "role") == "model" {
        draft.add_reply(text, calls);
    } else if text.contains("<state_snapshot>") && draft.len() > 0 {
        draft.note_compaction(Some(&text));
    } else if !text.is_empty() {
        draft.say(Role::User, text);
    }
}
