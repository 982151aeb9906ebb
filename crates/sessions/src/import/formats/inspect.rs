//! Inspect AI logs as JSON: one conversation per sample.
//!
//! Inspect's `.eval` logs: ZIP archives with one JSON entry per sample. Entries are read in memory one at a time,
//! within limits; nothing is unpacked to disk, and an entry's name is never used as a path.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use serde_json::Value;
use zip::ZipArchive;

use super::super::blocks::read_message;
use super::super::content::{list_of, non_empty, number_at, plain_text, str_at, str_of};
use super::super::conversation::{ImportError, ImportIssue, ImportedLog, expect_format};
use super::super::detect::LogShape;
use super::super::draft::ConversationDraft;
use super::super::format::Format;
use super::super::source::{DOCUMENT_LIMIT, Records, plain_name, stem_of};
use base::text::each_string;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(log) = records.next_item() {
        let samples = list_of(&log, "samples");
        if samples.is_empty() {
            records.note_loss("the log is a header without samples; export the full log with `inspect log convert --to json`");
        }
        let model = str_at(&log, "/eval/model");
        drafts.extend(samples.iter().map(|sample| read_sample(sample, model)));
    }
    drafts
}

/// The id and the epoch of a sample; empty for one without an id in its first epoch.
fn sample_name(sample: &Value) -> String {
    let id = sample
        .get("id")
        .map(plain_text)
        .and_then(|id| non_empty(&id));
    let epoch = number_at(sample, "/epoch").filter(|epoch| *epoch > 1);
    let parts = [
        id.map(|id| plain_name(&id)),
        epoch.map(|epoch| format!("epoch-{epoch}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

/// Reads one sample.
fn read_sample(sample: &Value, model: &str) -> ConversationDraft {
    let mut draft = ConversationDraft::new(sample_name(sample));
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

/// The most bytes that the entries of one archive may unpack to. A larger log is read up to there.
const ARCHIVE_LIMIT: u64 = 8 << 30;
/// The most bytes of memory that the messages of one archive may take.
const KEPT_LIMIT: usize = 512 << 20;

/// Reads the archive `file`, one conversation per sample.
///
/// # Errors
/// If the archive is damaged, is not an Inspect log or has no messages, or if another format than Inspect's was asked
/// for. A sample that cannot be read is a loss.
pub(crate) fn read_archive(
    file: &Path,
    bytes: impl Read + Seek,
    format: Option<Format>,
) -> Result<ImportedLog, ImportError> {
    let opened = ZipArchive::new(bytes);
    let zip = opened.map_err(|reason| {
        ImportError::Refused(format!(
            "`{}` is a ZIP archive that cannot be opened ({reason}); copy it again, or make JSON of it with \
             `inspect log convert --to json`",
            file.display()
        ))
    })?;
    let mut archive = Archive {
        file,
        zip,
        unpacked: 0,
        losses: Vec::new(),
    };
    let names: Vec<String> = archive.zip.file_names().map(str::to_owned).collect();
    let samples: Vec<&String> = names.iter().filter(|name| is_sample(name)).collect();
    let Some(header) = ["header.json", "_journal/start.json"]
        .into_iter()
        .find(|head| names.iter().any(|n| n == head))
    else {
        return Err(ImportError::Refused(format!(
            "`{}` is a ZIP archive; unpack it and import the logs inside; only Inspect's .eval archives are read as they are",
            file.display()
        )));
    };
    expect_format(file, "an archive of samples", Format::Inspect, format)?;
    let model = archive
        .value(header)
        .and_then(|header| Some(header.pointer("/eval/model")?.as_str()?.to_owned()));
    let mut conversations = Vec::new();
    let mut kept = 0;
    for (index, name) in samples.iter().enumerate() {
        if archive.unpacked > ARCHIVE_LIMIT || kept > KEPT_LIMIT {
            archive.note_loss(format!(
                "the log is too large to be held; its last {} samples were left",
                samples.len() - index
            ));
            break;
        }
        let Some(sample) = archive.value(name) else {
            continue;
        };
        let model = model.as_deref().unwrap_or("");
        let conversation = read_sample(&sample, model).finish();
        kept += conversation
            .messages
            .iter()
            .map(|message| message.countable_text().len())
            .sum::<usize>();
        conversations.push(conversation);
    }
    ImportedLog::new(
        file.to_owned(),
        &stem_of(file),
        Format::Inspect,
        conversations,
        archive.losses,
    )
}

/// Whether an entry is a sample: `samples/NAME.json`.
fn is_sample(name: &str) -> bool {
    name.strip_prefix("samples/")
        .is_some_and(|rest| rest.ends_with(".json"))
}

struct Archive<'f, R> {
    file: &'f Path,
    zip: ZipArchive<R>,
    unpacked: u64,
    losses: Vec<ImportIssue>,
}

impl<R: Read + Seek> Archive<'_, R> {
    fn note_loss(&mut self, message: String) {
        self.losses.push(ImportIssue::of_file(self.file, message));
    }

    /// The JSON of one entry. Damage in it is counted, and everything before the damage is read.
    fn value(&mut self, name: &str) -> Option<Value> {
        let mut text = Vec::new();
        let read = self
            .zip
            .by_name(name)
            .map_err(|error| error.to_string())
            .and_then(|entry| {
                // The size that the archive states cannot be trusted.
                entry
                    .take(DOCUMENT_LIMIT + 1)
                    .read_to_end(&mut text)
                    .map_err(|error| error.to_string())
            });
        self.unpacked += text.len() as u64;
        if let Err(reason) = read {
            self.note_loss(format!(
                "the entry `{name}` cannot be unpacked ({reason}); it was skipped"
            ));
            return None;
        }
        if text.len() as u64 > DOCUMENT_LIMIT {
            let limit = DOCUMENT_LIMIT >> 20;
            self.note_loss(format!(
                "the entry `{name}` is of more than {limit} MB; it was skipped"
            ));
            return None;
        }
        let mut records = Records::new(
            &self.file.join(name),
            LogShape::Document,
            Box::new(Cursor::new(text)),
        );
        let value = records.next();
        self.losses.extend(records.into_losses());
        value
    }
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
        let (mut room, mut draft) = (9, ConversationDraft::default());
        attach(&mut message, &attachments, &mut room, &mut draft);
        assert_eq!(
            message["content"],
            json!(["12345", "attachment://h", "attachment://other"])
        );
        let reason = DropReason::Unknown("attachment beyond 128 MB".to_owned());
        assert_eq!(draft.finish().dropped.get(&reason), Some(&1));
    }
}
