//! The Agent Trajectory Interchange Format, as Harbor and others write it: one document with steps.

use serde_json::Value;

use super::super::blocks::{Speaker, add_blocks, message_blocks, result_of};
use super::super::content::{first_at, list_at, list_of, str_of, text_of};
use super::super::draft::ConversationDraft;
use super::super::source::{Records, read_each};
use crate::transcript::Role;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    read_each(records, read_trajectory)
}

fn read_trajectory(document: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(first_at(document, &["/agent/model_name"]));
    draft.set_tools(document.pointer("/agent/tool_definitions"));
    for step in list_of(document, "steps") {
        read_step(step, &mut draft);
    }
    draft
}

fn read_step(step: &Value, draft: &mut ConversationDraft) {
    let results = list_at(step, "/observation/results");
    let source = str_of(step, "source");
    let Some(speaker) = Speaker::of(source) else {
        return draft.count_unknown(format!("step of `{source}`"));
    };
    draft.set_model(str_of(step, "model_name"));
    let blocks = message_blocks(step, draft);
    let is_frame = blocks.text.trim().is_empty() && blocks.calls.is_empty();
    if !is_frame || results.is_empty() {
        add_blocks(speaker, blocks, draft);
    }
    for result in results {
        read_result(result, draft);
    }
    let whole = step.get("observation").filter(|whole| !whole.is_object());
    if let Some(whole) = whole {
        let text = text_of(whole, draft);
        answer(text, draft);
    }
}

/// A result without the id of a call belongs to the oldest call that waits. Agents without calls get the state of their
/// terminal as a message.
fn read_result(result: &Value, draft: &mut ConversationDraft) {
    let found = result_of(result, draft);
    if draft.has_called(&found.id) {
        draft.add_call_result(found);
    } else {
        answer(found.text, draft);
    }
}

fn answer(text: String, draft: &mut ConversationDraft) {
    if draft.waiting() > 0 {
        draft.add_next_result(text);
    } else {
        draft.say(Role::User, text);
    }
}
