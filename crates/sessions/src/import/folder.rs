//! Finds the logs in a folder, and reads OpenHands sessions that are kept in one file per event: `events/0.json` and so
//! on, later `events/event-00012-ID.json`.

use std::collections::{BTreeMap, BTreeSet};
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
use base::files::open_regular;

/// Endings of files that may be logs; in a folder all others are skipped.
const ENDINGS: [&str; 7] = ["jsonl", "json", "ndjson", "traj", "md", "eval", "log"];

/// How many numbered files are read to find out whether they are events: the first may be damaged.
const PROBED: usize = 3;

/// One log: a file, or a folder that keeps a session in one file per event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// One file.
    File(PathBuf),
    /// The events of one OpenHands session, in the order of their numbers.
    Events {
        /// The folder they lie in.
        folder: PathBuf,
        /// Its files, in order.
        files: Vec<PathBuf>,
    },
}

impl Log {
    /// The file, or the folder of the files.
    pub fn path(&self) -> &Path {
        match self {
            Log::File(path) | Log::Events { folder: path, .. } => path,
        }
    }
}

/// The logs under `path`, in order, and the files that were skipped though they look like logs. A `path` that is a file
/// is the only log, whatever its name. Links are not followed: a target inside the folder is found anyway, and one
/// outside is not the user's choice. Projects below the folder are skipped: they have fixtures, not logs.
pub fn log_files(path: &Path) -> (Vec<Log>, Vec<ImportIssue>) {
    if !path.is_dir() {
        return (vec![Log::File(path.to_owned())], Vec::new());
    }
    let (mut folders, mut losses): (BTreeMap<PathBuf, Vec<PathBuf>>, _) =
        (BTreeMap::new(), Vec::new());
    for entry in walkdir::WalkDir::new(path)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !is_project(entry))
    {
        match entry {
            Ok(entry) if entry.file_type().is_symlink() => losses.push(link(path, entry.path())),
            Ok(entry) if entry.file_type().is_file() && is_candidate(entry.path()) => {
                let folder = entry.path().parent().unwrap_or(path).to_owned();
                folders.entry(folder).or_default().push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => {
                let file = error.path().unwrap_or(path);
                let message = format!("the folder could not be read: {error}");
                losses.push(ImportIssue::of_file(file, message));
            }
        }
    }
    (gather_logs(folders, &mut losses), losses)
}

fn is_project(entry: &walkdir::DirEntry) -> bool {
    entry.depth() > 0 && entry.path().join("pipeline.toml").is_file()
}

/// Makes one log of the events of a session. The files beside the events are part of the session too.
fn gather_logs(
    mut folders: BTreeMap<PathBuf, Vec<PathBuf>>,
    losses: &mut Vec<ImportIssue>,
) -> Vec<Log> {
    let mut logs = Vec::new();
    for (folder, files) in &mut folders {
        let numbered = files
            .iter()
            .filter_map(|file| Some((event_number(file)?, file.clone())));
        let mut events: Vec<(u64, PathBuf)> = numbered.collect();
        events.sort();
        if events
            .iter()
            .take(PROBED)
            .any(|(_, file)| is_event_file(file))
        {
            files.retain(|file| event_number(file).is_none());
            let files = events.into_iter().map(|(_, file)| file).collect();
            logs.push(Log::Events {
                folder: folder.clone(),
                files,
            });
        }
    }
    let sessions: BTreeSet<PathBuf> = logs
        .iter()
        .filter_map(|log| log.path().parent().map(Path::to_owned))
        .collect();
    for (folder, files) in folders {
        let is_cache = folder.ends_with("event_cache")
            && folder.parent().is_some_and(|p| sessions.contains(p));
        for file in files {
            let is_state = file.ends_with("base_state.json") && sessions.contains(&folder);
            if is_cache || is_state {
                let message = "it goes with the events beside it, which are read as one session";
                losses.push(ImportIssue::of_file(&file, message));
            } else {
                logs.push(Log::File(file));
            }
        }
    }
    logs.sort_by(|a, b| a.path().cmp(b.path()));
    logs
}

fn is_candidate(path: &Path) -> bool {
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn link(folder: &Path, link: &Path) -> ImportIssue {
    let inside = match (link.canonicalize(), folder.canonicalize()) {
        (Ok(target), Ok(folder)) => target.starts_with(folder),
        _ => false,
    };
    let message = if inside {
        "a link inside the folder; its target is read where it lies"
    } else {
        "a link out of the folder was not followed; name its target to import it"
    };
    ImportIssue::of_file(link, message)
}

/// The number of an event in its file's name.
fn event_number(file: &Path) -> Option<u64> {
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
fn is_event_file(file: &Path) -> bool {
    let (value, _) = read_document(file);
    value.is_some_and(|event| {
        event.get("source").is_some()
            && ["action", "observation", "kind"]
                .iter()
                .any(|key| event.get(*key).is_some())
    })
}

/// Reads the session whose events are `files`, in their order.
pub(super) fn read_events(folder: &Path, files: &[PathBuf]) -> Result<ImportedLog, ImportError> {
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
    let mut draft = ConversationDraft::default();
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
        &plain_name(&name),
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
    let opened = open_regular(file).and_then(|open| Ok((open.metadata()?.len(), open)));
    match opened {
        Err(error) => Err(format!("it could not be read ({error})")),
        Ok((length, _)) if length > DOCUMENT_LIMIT => Err(format!(
            "the event is of more than {} MB; it was skipped",
            DOCUMENT_LIMIT >> 20
        )),
        Ok((_, open)) => Ok(open),
    }
}
