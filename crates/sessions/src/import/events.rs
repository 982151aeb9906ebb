//! OpenHands sessions kept in one file per event: `events/0.json` and so on, later `events/event-00012-ID.json`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::conversation::{ImportError, ImportIssue, ImportedLog};
use super::detect::LogShape;
use super::draft::ConversationDraft;
use super::format::Format;
use super::formats::EventView;
use super::source::{DOCUMENT_LIMIT, Records, plain_name};

/// The number of an event in its file's name.
pub(super) fn event_number(file: &Path) -> Option<u64> {
    let stem = file.file_name()?.to_str()?.strip_suffix(".json")?;
    let number = stem
        .strip_prefix("event-")
        .map_or(stem, |rest| rest.split('-').next().unwrap_or(rest));
    number
        .parse()
        .ok()
        .filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether `file` holds one event.
pub(super) fn is_event_file(file: &Path) -> bool {
    let (value, _) = read_document(file);
    value.is_some_and(|event| {
        event.get("source").is_some()
            && ["action", "observation", "kind"]
                .iter()
                .any(|key| event.get(*key).is_some())
    })
}

/// Reads the session whose events are `files`, in their order.
pub(super) fn read(folder: &Path, files: &[PathBuf]) -> Result<ImportedLog, ImportError> {
    // `.` and `events` alone do not say what the session is called.
    let whole = folder
        .canonicalize()
        .map_err(|e| ImportError::from_io(folder, e))?;
    let session = if whole.ends_with("events") {
        whole.parent().unwrap_or(&whole)
    } else {
        &whole
    };
    let name = session
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut draft = ConversationDraft::new(plain_name(&name));
    let (state, _) = read_document(&session.join("base_state.json"));
    let model = state
        .as_ref()
        .and_then(|state| state.pointer("/agent/llm/model")?.as_str());
    draft.model = model.map(Into::into);
    let (mut view, mut losses) = (EventView::default(), Vec::new());
    for file in files {
        let (event, lost) = read_document(file);
        losses.extend(lost);
        if let Some(event) = event {
            view.read_event(&event, &mut draft);
        }
    }
    ImportedLog::new(
        folder.to_owned(),
        Format::OpenHands,
        vec![draft.finish()],
        losses,
    )
}

/// The JSON in one file, and what could not be read of it.
fn read_document(file: &Path) -> (Option<Value>, Vec<ImportIssue>) {
    match open_event(file) {
        Ok(open) => {
            let mut records =
                Records::new(file, LogShape::Document, Box::new(BufReader::new(open)));
            let value = records.next();
            (value, records.into_losses())
        }
        Err(message) => (None, vec![ImportIssue::of_file(file, message)]),
    }
}

fn open_event(file: &Path) -> Result<File, String> {
    let opened = File::open(file).and_then(|open| Ok((open.metadata()?.len(), open)));
    match opened {
        Err(error) => Err(format!("it could not be read ({error})")),
        Ok((length, _)) if length > DOCUMENT_LIMIT => Err(format!(
            "the event is of more than {} MB; it was skipped",
            DOCUMENT_LIMIT >> 20
        )),
        Ok((_, open)) => Ok(open),
    }
}
