//! `cache export` and `cache import`.

use std::path::Path;

use serde_json::json;

use crate::action::{ActionKey, Digest};
use crate::cache::{CacheSnapshot, ExportCounts, Lookup, export as write};
use crate::cli::command_line::CommandLine;
use crate::cli::failure::{Exit, Failure, import_failure};
use crate::cli::format::{count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::Console;
use crate::results::open_results;

pub(super) fn export(
    snapshot: &CacheSnapshot,
    results: &Path,
    file: &Path,
    label: Option<&str>,
    console: &Console,
) -> Result<Exit, Failure> {
    let keys = keys_to_share(snapshot, results, label)?;
    let ExportCounts { entries, unexplained, bytes, digest } = write(snapshot, &keys, file).map_err(import_failure)?;
    let shown = file.display().to_string();
    console.print(&format!("Wrote {} ({}) to {shown}.", count(entries, "entry"), size(bytes)));
    if unexplained > 0 {
        let left_out = count(unexplained, "entry");
        console.warn("export:", format_args!("{left_out} left out: what they were made from was lost to damage"));
    }
    console.print(&format!("digest: {digest}"));
    console.next(format_args!("compeval cache import {shown}   (elsewhere)"));
    console.json(&json!({
        "file": shown, "label": label, "entries": entries, "unexplained": unexplained, "bytes": bytes, "digest": digest,
    }));
    Ok(Exit::Done)
}

/// What a result set needs, or everything.
pub(super) fn keys_to_share(
    snapshot: &CacheSnapshot,
    results: &Path,
    label: Option<&str>,
) -> Result<Vec<ActionKey>, Failure> {
    let keys = match label {
        Some(label) => keys_of(results, label)?,
        None => all(snapshot),
    };
    if keys.is_empty() {
        return Err(Failure::input("there is nothing to export: the cache is empty").hinted("`compeval run` fills it"));
    }
    Ok(keys)
}

fn all(snapshot: &CacheSnapshot) -> Vec<ActionKey> {
    let records = snapshot.records().into_iter();
    records.filter(|record| !record.is_failed()).map(|record| record.key).collect()
}

/// The entries of a result set. They are recorded when its run ends.
fn keys_of(results: &Path, label: &str) -> Result<Vec<ActionKey>, Failure> {
    let folder = open_results(results, label)?;
    let (manifest, keys) = (folder.manifest()?, folder.keys()?);
    if keys.is_empty() {
        let message = format!("the result set `{}` does not list its entries", manifest.label);
        return Err(Failure::input(message).hinted(format!("run it again: compeval run --label {}", manifest.label)));
    }
    Ok(keys.into_iter().collect())
}

pub(super) fn import(
    cache: &Path,
    file: &Path,
    expected_digest: Option<&Digest>,
    console: &Console,
) -> Result<Exit, Failure> {
    if file.is_dir() {
        return Err(Failure::input(format!("{} is a folder, not a file written by `cache export`", file.display())));
    }
    if !file.is_file() {
        return Err(Failure::input(format!("there is no file {}", file.display())));
    }
    let store = open_store(cache, console)?;
    let imported = store.import(file, expected_digest).map_err(import_failure)?;
    print_notices(&store, console);
    store.close()?;
    let (added, present) = (imported.added, imported.present);
    let there =
        if present == 0 { String::new() } else { format!("; {} were in the cache already", count(present, "entry")) };
    console.print(&format!("Added {}{there}.", count(added, "entry")));
    console.next(CommandLine::current().of_project().with("offline", "--offline").command("run"));
    console.json(&json!({ "added": added, "present": present }));
    Ok(Exit::Done)
}
