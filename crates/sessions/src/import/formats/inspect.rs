//! Inspect AI logs as JSON: one conversation a sample.

use serde_json::Value;

use super::super::content::{content_of, list_of, openai_calls, str_at, str_of};
use super::super::draft::ConversationDraft;
use super::super::source::{Records, plain_name};
use super::openai;
use base::text::each_string;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(log) = records.next_item() {
        let stem = records.stem();
        let samples = list_of(&log, "samples");
        if samples.is_empty() {
            records
                .lose("the log is a header without samples; export the full log with `inspect log convert --to json`");
        }
        for sample in samples {
            drafts.push(read_sample(sample, str_at(&log, "/eval/model"), &stem, samples.len() > 1));
        }
    }
    drafts
}

fn sample_name(sample: &Value) -> String {
    let id = sample.get("id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    let epoch = sample.get("epoch").and_then(Value::as_u64).unwrap_or(1);
    let id = plain_name(&id.unwrap_or_default());
    if epoch > 1 { format!("{id}-epoch-{epoch}") } else { id }
}

/// One sample; its own name is part of the draft's if the log holds others.
pub(in super::super) fn read_sample(sample: &Value, model: &str, stem: &str, has_siblings: bool) -> ConversationDraft {
    let mut draft =
        ConversationDraft::new(if has_siblings { format!("{stem}-{}", sample_name(sample)) } else { stem.to_owned() });
    draft.set_model(model);
    let attachments = sample.get("attachments").unwrap_or(&Value::Null);
    let mut compactions: Vec<&Value> = events(sample).filter(|event| str_of(event, "event") == "compaction").collect();
    for message in list_of(sample, "messages") {
        let mut message = message.clone();
        attach(&mut message, attachments);
        read_message(&message, &mut draft);
    }
    // The messages are the final state; where in them the history was cut, the log does not say.
    if compactions.pop().is_some() {
        draft.compaction(None);
    }
    draft
}

fn events(sample: &Value) -> impl Iterator<Item = &Value> {
    let older = sample.pointer("/transcript/events").and_then(Value::as_array);
    list_of(sample, "events").iter().chain(older.into_iter().flatten())
}

fn read_message(message: &Value, draft: &mut ConversationDraft) {
    let error = str_at(message, "/error/message");
    match str_of(message, "role") {
        "assistant" => {
            let text = content_of(message, draft);
            let calls = openai_calls(message, draft);
            draft.assistant(text, calls);
        }
        "tool" if !error.is_empty() => {
            let text = content_of(message, draft);
            let separator = if text.is_empty() { "" } else { "\n" };
            draft.result(str_of(message, "tool_call_id"), format!("{text}{separator}Error: {error}"));
        }
        _ => openai::message(message, draft),
    }
}

/// Puts attached texts where they are referred to.
fn attach(message: &mut Value, attachments: &Value) {
    each_string(message, &mut |text| {
        let hash = text.strip_prefix("attachment://");
        if let Some(attached) = hash.and_then(|hash| attachments.get(hash)).and_then(Value::as_str) {
            *text = attached.to_owned();
        }
    });
}
