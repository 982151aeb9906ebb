//! `cache export` and `cache import`: entries on their way to another machine.

use std::path::Path;

use serde::Serialize;

use super::failure;
use super::verify::entries_of;
use crate::action::ActionKey;
use crate::cache::{Lookup, Snapshot, Status, export as write};
use crate::cli::command_line::CommandLine;
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::format::size;
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::{Console, Meaning};
use crate::results::{Manifest, ResultsFolder};

#[derive(Debug, Serialize)]
struct ExportedJson {
    file: String,
    label: Option<String>,
    entries: u64,
    bytes: u64,
}

pub(super) fn export(
    snapshot: &Snapshot,
    results: &Path,
    file: &Path,
    label: Option<&str>,
    console: &Console,
) -> Result<Exit, Failure> {
    let keys = match label {
        Some(label) => keys_of(&manifest(results, label)?)?,
        None => all(snapshot),
    };
    if keys.is_empty() {
        return Err(Failure::input("there is nothing to export: the cache is empty").hinted("`compeval run` fills it"));
    }
    let exported = write(snapshot, &keys, file).map_err(failure)?;
    let (entries, bytes) = (exported.entries, exported.bytes);
    let (shown, label) = (file.display().to_string(), label.map(str::to_owned));
    console.print(&format!("Wrote {} ({}) to {shown}.", entries_of(entries), size(bytes)));
    console.note(&format!("{} compeval cache import {shown}   (elsewhere)", console.paint(Meaning::Hint, "next:")));
    console.json(&ExportedJson { file: shown, label, entries, bytes });
    Ok(Exit::Done)
}

fn all(snapshot: &Snapshot) -> Vec<ActionKey> {
    let records = snapshot.records().into_iter();
    records.filter(|record| !matches!(record.status, Status::Failed { .. })).map(|record| record.key).collect()
}

/// The manifest of a label.
pub(super) fn manifest(results: &Path, label: &str) -> Result<Manifest, Failure> {
    let opened = ResultsFolder::open(results, label).and_then(|folder| folder.manifest());
    opened.map_err(|error| Failure::input(chain(&error)))
}

/// What a result stands on. A run that has not ended has not said yet.
fn keys_of(manifest: &Manifest) -> Result<Vec<ActionKey>, Failure> {
    if manifest.keys.is_empty() {
        let message = format!("the result set `{}` does not say which entries it stands on", manifest.label);
        return Err(Failure::input(message).hinted(format!("run it again: compeval run --label {}", manifest.label)));
    }
    Ok(manifest.keys.iter().copied().collect())
}

#[derive(Debug, Serialize)]
struct ImportedJson {
    added: u64,
    present: u64,
}

pub(super) fn import(cache: &Path, file: &Path, console: &Console) -> Result<Exit, Failure> {
    if file.is_dir() {
        return Err(Failure::input(format!("{} is a folder, not a file of `cache export`", file.display())));
    }
    if !file.is_file() {
        return Err(Failure::input(format!("there is no file {}", file.display())));
    }
    let store = open_store(cache, console)?;
    let imported = store.import(file).map_err(failure)?;
    print_notices(&store, console);
    store.close()?;
    let (added, present) = (imported.added, imported.present);
    let there = if present == 0 { String::new() } else { format!("; {} were there already", entries_of(present)) };
    console.print(&format!("Added {}{there}.", entries_of(added)));
    let next = CommandLine::current().of_project().with("offline", "--offline").command("run");
    console.note(&format!("{} {next}", console.paint(Meaning::Hint, "next:")));
    console.json(&ImportedJson { added, present });
    Ok(Exit::Done)
}
