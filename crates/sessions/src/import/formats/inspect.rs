//! Inspect AI logs as JSON: one conversation per sample.

use serde_json::Value;

use super::super::blocks::read_message;
use super::super::content::{list_of, number_at, plain_text, str_at, str_of};
use super::super::draft::ConversationDraft;
use super::super::source::{DOCUMENT_LIMIT, Records, plain_name};
use base::text::each_string;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(log) = records.next_item() {
        let stem = records.stem();
        let samples = list_of(&log, "samples");
        if samples.is_empty() {
            records.note_loss("the log is a header without samples; export the full log with `inspect log convert --to json`");
        }
        for sample in samples {
            drafts.push(read_sample(
                sample,
                str_at(&log, "/eval/model"),
                &stem,
                samples.len() > 1,
            ));
        }
    }
    drafts
}

fn sample_name(sample: &Value) -> String {
    let id = plain_name(&sample.get("id").map(plain_text).unwrap_or_default());
    let epoch = number_at(sample, "/epoch").unwrap_or(1);
    if epoch > 1 {
        format!("{id}-epoch-{epoch}")
    } else {
        id
    }
}

/// Reads one sample; its name is part of the draft's if the log has others.
pub(crate) fn read_sample(
    sample: &Value,
    model: &str,
    stem: &str,
    has_siblings: bool,
) -> ConversationDraft {
    let mut draft = ConversationDraft::new(if has_siblings {
        format!("{stem}-{}", sample_name(sample))
    } else {
        stem.to_owned()
    });
    draft.set_model(model);
    let attachments = sample.get("attachments").unwrap_or(&Value::Null);
    // All attachments of a log fit once.
    let mut room = DOCUMENT_LIMIT as usize;
    for message in list_of(sample, "messages") {
        let mut message = message.clone();
        attach(&mut message, attachments, &mut room, &mut draft);
        read_message(&message, "", &mut draft);
    }
    // The messages are the final state; the log does not say where in them the history was cut.
    if events(sample).any(|event| str_of(event, "event") == "compaction") {
        draft.note_compaction("");
    }
    draft
}

fn events(sample: &Value) -> impl Iterator<Item = &Value> {
    let older = sample
        .pointer("/transcript/events")
        .and_then(Value::as_array);
    list_of(sample, "events")
        .iter()
        .chain(older.into_iter().flatten())
}

/// Puts attached texts where they are referred to, as long as there is `room` for their bytes: one text that is referred
/// to a thousand times would need a thousand times its memory.
fn attach(
    message: &mut Value,
    attachments: &Value,
    room: &mut usize,
    draft: &mut ConversationDraft,
) {
    each_string(message, &mut |text| {
        let hash = text.strip_prefix("attachment://");
        let Some(attached) = hash
            .and_then(|hash| attachments.get(hash))
            .and_then(Value::as_str)
        else {
            return;
        };
        match room.checked_sub(attached.len()) {
            Some(left) => {
                *room = left;
                *text = attached.to_owned();
            }
            None => draft.count_unknown("attachment beyond 128 MB"),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::super::conversation::DropReason;
    use super::*;
    use serde_json::json;

    #[test]
    fn an_attachment_is_put_in_only_as_often_as_there_is_room() {
        let attachments = json!({"h": "12345"});
        let mut message =
            json!({"content": ["attachment://h", "attachment://h", "attachment://other"]});
        let (mut room, mut draft) = (9, ConversationDraft::new("x"));
        attach(&mut message, &attachments, &mut room, &mut draft);
        assert_eq!(
            message["content"],
            json!(["12345", "attachment://h", "attachment://other"])
        );
        let reason = DropReason::Unknown("attachment beyond 128 MB".to_owned());
        assert_eq!(draft.finish().dropped.get(&reason), Some(&1));
    }
}
