//! Finds the logs in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::conversation::ImportIssue;
use super::events::{event_number, is_event_file};

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
