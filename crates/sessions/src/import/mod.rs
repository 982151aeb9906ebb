//! Makes fixtures from the logs of real sessions: reading, scrubbing, audit, compression points, statistics.
//!
//! A log is recognised by its content and read into conversations whose calls and results are paired. Nothing is lost
//! silently: a record that is not a message is counted with its reason ([`DropReason`]), and one that could not be read
//! is reported with file and line ([`ImportIssue`]). Scrubbing is deterministic and idempotent, and the same string
//! gets the same replacement everywhere in one fixture. Nothing here knows probes (facts are passed as plain strings)
//! or providers, or writes files.

mod assemble;
mod blocks;
mod content;
mod conversation;
mod detect;
mod draft;
mod folder;
mod format;
mod formats;
mod pairing;
mod placeholder;
mod scrub;
mod source;
mod text_results;
mod written_call;

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use serde_json::Value;

pub use crate::transcript::NO_RESULT;
pub use assemble::{
    Assembled, FEWEST_MESSAGES, FEWEST_TOKENS, FixtureOptions, PARAPHRASE, PointRules, assemble,
    is_too_short, propose, unique_name,
};
use conversation::expect_format;
pub use conversation::{
    CompactionKind, Conversation, DropReason, Fingerprint, ImportError, ImportIssue, ImportedLog,
    ModelStep, ORPHAN_HEAD, RecordedCompaction, RepairKind,
};
use detect::LogShape;
pub use folder::{Log, log_files};
pub use format::Format;
pub use scrub::{
    Replacement, SCRUBBED_AT, SYSTEM_PLACEHOLDER, ScrubReport, ScrubSettings, Suspicion,
    SuspicionKind, audit, has_secret, record_scrubbing, scrub, scrub_texts,
};
use source::{DOCUMENT_LIMIT, Records, stem_of};

/// Bytes of a file that are read to detect how it is divided into records.
const HEAD: u64 = 64 << 10;

/// Reads a log that was found by [`log_files`], as `format` or as the format that is detected.
///
/// # Errors
/// As for [`read_log`].
pub fn read(log: &Log, format: Option<Format>) -> Result<ImportedLog, ImportError> {
    match log {
        Log::File(path) => read_log(path, format),
        Log::Events { folder, files } => {
            expect_format(folder, "a folder of events", Format::OpenHands, format)?;
            folder::read_events(folder, files)
        }
    }
}

/// Reads the log at `path`, as `format` or as the format that is detected. JSON lines are streamed: memory holds the
/// messages and one line.
///
/// # Errors
/// If the file cannot be read, is empty, is in no known format, or contains no message. Damage inside a log is not an
/// error: the sound part is imported and the loss counted in [`ImportedLog::losses`].
pub fn read_log(path: &Path, format: Option<Format>) -> Result<ImportedLog, ImportError> {
    let file = File::open(path).map_err(|e| ImportError::from_io(path, e))?;
    let length = file
        .metadata()
        .map_err(|e| ImportError::from_io(path, e))?
        .len();
    let mut read = read_from(path, BufReader::new(file), length, format);
    if let Err(error) = &mut read
        && let Some(better) = error.better_mut()
    {
        *better = format_that_reads(path, length);
    }
    read
}

/// The format that is detected, or in which the file holds the most messages and results.
fn format_that_reads(path: &Path, length: u64) -> Option<Format> {
    if length > LARGEST_SESSION {
        return None;
    }
    let read = |format: Option<Format>| {
        let file = File::open(path).ok()?;
        read_from(path, BufReader::new(file), length, format).ok()
    };
    if let Some(log) = read(None) {
        return Some(log.format);
    }
    let understood = |format: Format| Some((read(Some(format))?.understood(), format));
    let all = Format::ALL.into_iter().rev().filter_map(understood);
    all.max_by_key(|(count, _)| *count)
        .map(|(_, format)| format)
}

/// The largest document that is read to find out whether it is a session.
const LARGEST_SESSION: u64 = 32 << 20;

/// Reads the session at `path` as `given`, or if its format is observed; `None` if it is anything else. Of large
/// documents, and of files that are no JSON, only the beginning is read.
///
/// # Errors
/// As for [`read_log`], for files that are JSON lines.
pub fn read_session(
    path: &Path,
    given: Option<Format>,
) -> Result<Option<ImportedLog>, ImportError> {
    if given.is_some() {
        return read_log(path, given).map(Some);
    }
    let opened = File::open(path).map_err(|e| ImportError::from_io(path, e))?;
    let mut reader = BufReader::with_capacity(1 << 20, opened);
    let head = read_head(path, &mut reader)?;
    refuse_container(path, &head)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let shape = shape_of(path, &text);
    let may_be_session = match shape {
        LogShape::Lines => true,
        LogShape::Document => {
            let length = reader.get_ref().metadata();
            length.is_ok_and(|found| found.len() <= LARGEST_SESSION)
        }
        LogShape::Text => false,
    };
    if !may_be_session {
        return Ok(None);
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(is_empty(path));
    }
    let mut records = Records::new(path, shape, Box::new(Cursor::new(head).chain(reader)));
    match detect_format(&mut records) {
        Some(format) if format.is_observed() => import(format, records).map(Some),
        Some(_) => Ok(None),
        None if shape == LogShape::Document => Ok(None),
        None => Err(unknown(path, &text, records)),
    }
}

/// Reads a log that is in memory; `name` stands for its file.
///
/// # Errors
/// As for [`read_log`].
pub fn read_bytes(
    name: &Path,
    bytes: Vec<u8>,
    format: Option<Format>,
) -> Result<ImportedLog, ImportError> {
    let length = bytes.len() as u64;
    read_from(name, Cursor::new(bytes), length, format)
}

fn read_from(
    file: &Path,
    mut reader: impl BufRead + Seek + 'static,
    length: u64,
    format: Option<Format>,
) -> Result<ImportedLog, ImportError> {
    let head = read_head(file, &mut reader)?;
    if head.starts_with(b"PK\x03\x04") {
        reader.rewind().map_err(|e| ImportError::from_io(file, e))?;
        return formats::read_archive(file, reader, format);
    }
    refuse_container(file, &head)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    if text.trim_start_matches('\u{feff}').trim().is_empty()
        && head.len() as u64 == length.min(HEAD)
    {
        return Err(is_empty(file));
    }
    let shape = shape_of(file, &text);
    if shape == LogShape::Document && length > DOCUMENT_LIMIT {
        return Err(ImportError::Refused(format!(
            "`{}` is one JSON document of more than {} MB; split it or export it as JSON lines",
            file.display(),
            DOCUMENT_LIMIT >> 20
        )));
    }
    let mut records = Records::new(file, shape, Box::new(Cursor::new(head).chain(reader)));
    let format = format.or_else(|| detect_format(&mut records));
    match format {
        Some(format) => import(format, records),
        None => Err(unknown(file, &text, records)),
    }
}

fn is_empty(file: &Path) -> ImportError {
    ImportError::Refused(format!("the log `{}` is empty", file.display()))
}

/// The beginning of a file, which tells how it is divided into records.
fn read_head(file: &Path, reader: &mut impl Read) -> Result<Vec<u8>, ImportError> {
    let mut head = Vec::new();
    let read = reader.take(HEAD).read_to_end(&mut head);
    read.map_err(|e| ImportError::from_io(file, e))?;
    Ok(head)
}

fn shape_of(file: &Path, head: &str) -> LogShape {
    let name = file.file_name().unwrap_or_default();
    detect::shape_of(head, &name.to_string_lossy().to_lowercase())
}

fn detect_format(records: &mut Records) -> Option<Format> {
    let (shape, found) = records.look_ahead(detect::LOOKED_AT);
    detect::detect(shape, &found)
}

fn import(format: Format, mut records: Records) -> Result<ImportedLog, ImportError> {
    let (_, first) = records.look_ahead(1);
    let begins_midway = first
        .first()
        .is_some_and(|first| detect::begins_midway(format, first));
    let mut drafts = formats::read(format, &mut records);
    if let Some(main) = drafts.first_mut() {
        main.made.begins_midway |= begins_midway;
    }
    let file = records.file.clone();
    let losses = records.into_losses();
    let conversations = drafts
        .into_iter()
        .map(draft::ConversationDraft::finish)
        .collect();
    let name = stem_of(&file);
    ImportedLog::new(file, &name, format, conversations, losses)
}

fn unknown(file: &Path, head: &str, mut records: Records) -> ImportError {
    let (shape, found) = records.look_ahead(1);
    let first = found.first().map(|record| record.get(0).unwrap_or(record));
    let keys = first
        .and_then(Value::as_object)
        .map(|object| object.keys().take(20).cloned().collect());
    if first.is_none() && shape != LogShape::Text {
        let more = records.loss_count().saturating_sub(1);
        let Some(first) = records.into_losses().into_iter().next() else {
            return is_empty(file);
        };
        let more = match more {
            0 => String::new(),
            more => format!("; so with {more} more places, and nothing was left to read"),
        };
        return ImportError::Refused(format!("{first}{more}"));
    }
    let start = head
        .trim()
        .chars()
        .take(200)
        .collect::<String>()
        .replace(['\n', '\r'], " ");
    ImportError::UnknownFormat {
        file: file.to_owned(),
        start,
        keys: keys.unwrap_or_default(),
        better: None,
        losses: records.into_losses(),
    }
}

fn refuse_container(file: &Path, head: &[u8]) -> Result<(), ImportError> {
    let (what, advice) = if head.starts_with(b"SQLite format 3\0") {
        ("a SQLite database", database_advice(head))
    } else if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        (
            "compressed",
            "decompress it first with `gunzip` or `unzstd`",
        )
    } else if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        (
            "UTF-16 text, as PowerShell's > writes it",
            "save it as UTF-8",
        )
    } else {
        return Ok(());
    };
    let file = file.display();
    Err(ImportError::Refused(format!(
        "`{file}` is {what}; {advice}"
    )))
}

/// The command that turns a database into a log. The SQL that created its tables is in its first page.
fn database_advice(head: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(head);
    match (
        creates_table(&text, "part"),
        creates_table(&text, "sessions"),
    ) {
        (true, false) => {
            "it is OpenCode's: run `opencode export SESSION > log.json`, then import that"
        }
        (false, true) => "it is Hermes': run `hermes sessions export log.jsonl`, then import that",
        _ => {
            "run `opencode export SESSION` or `hermes sessions export`, then import what it writes"
        }
    }
}

/// Whether a text creates a table of this name.
fn creates_table(text: &str, name: &str) -> bool {
    let quoted = ["", "`", "\"", "'"].map(|quote| format!("{quote}{name}{quote} ("));
    quoted
        .iter()
        .any(|form| text.contains(form) || text.contains(&form.replace(" (", "(")))
}
