//! A run where there is no project: a folder of session logs can become one.

use std::path::{Path, PathBuf};

use crate::cli::args::Common;
use crate::cli::failure::Failure;
use crate::cli::project::folder;
use crate::import::read_log;
use crate::pipeline::find_pipeline;

/// Logs that are tried: the first that can be read is enough.
const TRIED: usize = 20;

/// The commands that make a project of the logs in this folder; `None` if there is a project, or no log.
pub(super) fn offer_of_logs(common: &Common) -> Option<Failure> {
    let here = folder(common);
    if common.config.is_some() || find_pipeline(&here, None).is_ok() {
        return None;
    }
    let ends_like_a_log = |path: &&PathBuf| path.extension().is_some_and(|end| end == "jsonl" || end == "json");
    let files = list_folder(&here);
    let log = files.iter().filter(ends_like_a_log).take(TRIED).find_map(|path| read_log(path, None).ok())?;
    Some(Failure::input(format!("there is no project here, but logs of sessions ({})", log.format.name())).hinted(
        "make a project of them:\n  compeval init eval --empty\n  compeval -C eval fixture import .. --every-tokens 20000\n  \
         compeval -C eval probes generate\n  compeval -C eval run",
    ))
}

fn list_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}
