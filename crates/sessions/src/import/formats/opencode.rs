//! `opencode export`: messages with parts, where a tool part is a call and its result in one.

use jiff::Timestamp;
use serde_json::Value;

use super::super::content::{
    arguments, by_program, is_true, list_of, non_empty, placeholder, result_text, str_at, str_of,
    usage_of,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(session) = records.next_item() {
        let mut draft = ConversationDraft::default();
        // What was undone is removed with the next prompt.
        let undone = str_at(&session, "/info/revert/messageID");
        let mut start = None;
        for message in list_of(&session, "messages") {
            if !undone.is_empty() && str_at(message, "/info/id") == undone {
                start = Some(draft.len());
            }
            read_message(message, &mut draft);
        }
        if let Some(start) = start {
            draft.drop_from(start);
        }
        drafts.push(draft);
    }
    drafts
}

fn read_message(message: &Value, draft: &mut ConversationDraft) {
    let info = message.get("info").unwrap_or(&Value::Null);
    let parts = list_of(message, "parts");
    if str_of(info, "role") == "user" {
        return read_user(parts, draft);
    }
    draft.set_model(str_of(info, "modelID"));
    if let Some(tokens) = info.get("tokens") {
        let millisecond = info.pointer("/time/completed").and_then(Value::as_i64);
        draft.count_request(
            usage_of(tokens),
            millisecond.and_then(|time| Timestamp::from_millisecond(time).ok()),
        );
    }
    if is_true(info, "summary") {
        draft.note_request_of_compaction();
        let texts: Vec<&str> = parts
            .iter()
            .map(|part| str_of(part, "text"))
            .filter(|text| !text.is_empty())
            .collect();
        return draft.add_summary(&texts.join("\n"));
    }
    read_assistant(parts, draft);
}

fn read_user(parts: &[Value], draft: &mut ConversationDraft) {
    let mut texts = Vec::new();
    for part in parts {
        match str_of(part, "type") {
            "text" if is_true(part, "ignored") => draft.count_bookkeeping("part ignored"),
            "text" if is_true(part, "synthetic") => texts.push(by_program(str_of(part, "text"))),
            "text" => texts.push(str_of(part, "text").to_owned()),
            "file" => texts.push(file(part)),
            "compaction" => draft.note_compaction(""),
            kind => draft.count_bookkeeping(format!("part {kind}")),
        }
    }
    if !texts.is_empty() {
        draft.say(Role::User, texts.join("\n"));
    }
}

fn file(part: &Value) -> String {
    let url = str_of(part, "url");
    let name = str_of(part, "filename");
    if url.starts_with("data:") {
        placeholder(name, str_of(part, "mime"), url)
    } else {
        format!("[file: {name}]")
    }
}

/// Text and reasoning before a tool part belong to the message that makes the call; text after tool parts begins a new
/// one.
fn read_assistant(parts: &[Value], draft: &mut ConversationDraft) {
    let mut turn = OpencodeTurn::default();
    let mut has_replied = false;
    for part in parts {
        match str_of(part, "type") {
            "text" => {
                if !turn.calls.is_empty() {
                    has_replied |= turn.flush(draft);
                }
                turn.texts.push(str_of(part, "text").to_owned());
            }
            "reasoning" => {}
            "tool" => turn.tool(part, draft),
            "file" => turn.texts.push(file(part)),
            kind @ ("step-start" | "step-finish" | "snapshot" | "patch" | "agent" | "subtask"
            | "retry") => {
                draft.count_bookkeeping(format!("part {kind}"));
            }
            kind => draft.count_unknown(format!("part {kind}")),
        }
    }
    if !turn.flush(draft) && !has_replied {
        draft.count(DropReason::Empty);
    }
}

#[derive(Default)]
struct OpencodeTurn {
    texts: Vec<String>,
    calls: Vec<ToolCall>,
    results: Vec<(String, String)>,
}

impl OpencodeTurn {
    fn tool(&mut self, part: &Value, draft: &mut ConversationDraft) {
        let id = non_empty(str_of(part, "callID")).unwrap_or_else(|| draft.new_id());
        self.calls.push(ToolCall::new(
            id.clone(),
            str_of(part, "tool"),
            arguments(part.pointer("/state/input")),
        ));
        match str_at(part, "/state/status") {
            "completed" => self
                .results
                .push((id, str_at(part, "/state/output").to_owned())),
            "error" => self.results.push((
                id,
                result_text(str_at(part, "/state/error").to_owned(), true),
            )),
            _ => {}
        }
    }

    fn flush(&mut self, draft: &mut ConversationDraft) -> bool {
        self.texts.retain(|text| !text.trim().is_empty());
        if self.texts.is_empty() && self.calls.is_empty() {
            return false;
        }
        draft.add_reply(
            std::mem::take(&mut self.texts).join("\n"),
            std::mem::take(&mut self.calls),
        );
        for (id, result) in self.results.drain(..) {
            draft.add_result(&id, result);
        }
        true
    }
}
