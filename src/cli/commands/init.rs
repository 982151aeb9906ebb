//! `compeval init`: writes a project that runs.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use serde_json::json;

use clap::Args;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::folder;
use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::{list, starter_files, with_selftest_seed};
use base::files::{FileError, write_whole};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder of the new project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Leave out the sample session, which would count in the averages of your own
    #[arg(long)]
    pub(crate) empty: bool,
}

pub(crate) fn run(common: &Common, args: &InitArgs, console: &Console) -> Result<Exit, Failure> {
    let root = folder(common).join(&args.dir);
    let is_sample = |path: &str| path.starts_with("fixtures/") || path.starts_with("probes/");
    let files: Vec<_> = starter_files().into_iter().filter(|(path, _)| !(args.empty && is_sample(path))).collect();
    refuse_taken(&root)?;
    let mut written = Vec::new();
    for (path, text) in &files {
        let is_pipeline = *path == "pipeline.toml";
        let text = if is_pipeline { with_selftest_seed(text, random_seed()) } else { (*text).to_owned() };
        let path = root.join(path);
        write_whole(&path, &text).map_err(|error| undo(&written, error))?;
        written.push(path);
    }
    let names: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    let place = place_flag(common, &args.dir);
    let import = format!("compeval{place} fixture import LOG…");
    let next = if args.empty { import.clone() } else { format!("compeval{place} run") };
    console.json(&json!({ "folder": root.display().to_string(), "written": names, "next": next }));
    if !(console.is_json || console.is_quiet) {
        names.iter().for_each(|name| console.print(&format!("wrote {}", shown(&root.join(name)))));
        if !args.empty {
            console.print(&format!("\nRun it offline: {}", console.paint(TextStyle::Hint, &next)));
        }
        let then = if args.empty { "\nImport" } else { "Then import" };
        console.print(&format!("{then} your own sessions: {}", console.paint(TextStyle::Hint, &import)));
    }
    Ok(Exit::Done)
}

/// A number that is not known beforehand: the standard library seeds its hash maps by the system's random numbers.
fn random_seed() -> u64 {
    const BELOW: u64 = 1_000_000;
    RandomState::new().hash_one("selftest") % BELOW
}

/// Refuses to overwrite files.
fn refuse_taken(root: &Path) -> Result<(), Failure> {
    if root.exists() && !root.is_dir() {
        return Err(Failure::input(format!("{} is not a folder", shown(root)))
            .hinted("name a folder, or leave the argument out"));
    }
    // A dangling link counts too, so its target is not checked.
    let is_taken = |path: &&str| root.join(path).symlink_metadata().is_ok();
    let taken: Vec<&str> = starter_files().iter().map(|(path, _)| *path).filter(is_taken).collect();
    if taken.is_empty() {
        return Ok(());
    }
    let message = format!("{} already contains {}; nothing was written", shown(root), list(taken));
    Err(Failure::input(message).hinted("choose another folder: compeval init DIR"))
}

/// Removes the files already written: half a project is worse than none.
fn undo(written: &[PathBuf], error: FileError) -> Failure {
    for path in written {
        if let Err(fault) = std::fs::remove_file(path) {
            tracing::warn!("{} could not be removed: {fault}", path.display());
        }
    }
    error.into()
}

/// The flag that leads to the project from the current folder.
fn place_flag(common: &Common, dir: &Path) -> String {
    let plain = folder(common).join(dir);
    let parts: PathBuf = plain.components().filter(|part| *part != std::path::Component::CurDir).collect();
    if parts.as_os_str().is_empty() {
        return String::new();
    }
    let text = parts.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+~:\\".contains(c));
    if is_plain { format!(" -C {text}") } else { format!(" -C '{}'", text.replace('\'', "'\\''")) }
}

/// A path without `.` components; `.` for the current folder.
fn shown(path: &Path) -> String {
    let parts: PathBuf = path.components().filter(|part| *part != std::path::Component::CurDir).collect();
    if parts.as_os_str().is_empty() { ".".to_owned() } else { parts.display().to_string() }
}
