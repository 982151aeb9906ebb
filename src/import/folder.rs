//! Folders of logs.

use std::path::{Path, PathBuf};

use super::conversation::Loss;

/// Endings of files that may be logs; in a folder all others are passed over.
const ENDINGS: [&str; 7] = ["jsonl", "json", "ndjson", "traj", "md", "eval", "log"];

/// The files under `path` that may be logs, in order, and what was passed over though it looked like one. A file is
/// itself, whatever its name. Links are not followed: what they lead to inside the folder is found there, and what
/// lies outside is not the user's choice.
pub fn log_files(path: &Path) -> (Vec<PathBuf>, Vec<Loss>) {
    if !path.is_dir() {
        return (vec![path.to_owned()], Vec::new());
    }
    let (mut files, mut losses) = (Vec::new(), Vec::new());
    for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_symlink() => losses.push(link(path, entry.path())),
            Ok(entry) if entry.file_type().is_file() && is_candidate(entry.path()) => files.push(entry.into_path()),
            Ok(_) => {}
            Err(error) => {
                let file = error.path().unwrap_or(path).to_owned();
                losses.push(Loss { file, line: None, message: format!("the folder could not be read: {error}") });
            }
        }
    }
    (files, losses)
}

fn is_candidate(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn link(folder: &Path, link: &Path) -> Loss {
    let inside = match (link.canonicalize(), folder.canonicalize()) {
        (Ok(target), Ok(folder)) => target.starts_with(folder),
        _ => false,
    };
    let message = if inside {
        "a link inside the folder; its target is read where it lies"
    } else {
        "a link out of the folder was not followed; name its target to import it"
    };
    Loss { file: link.to_owned(), line: None, message: message.to_owned() }
}
