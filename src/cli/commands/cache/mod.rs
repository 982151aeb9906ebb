//! `compeval cache`: list, show, compare, prune and verify entries.
//!
//! `verify` is here; each other command has a file. Commands that only read use a snapshot and can run beside a writer;
//! the others open the store exclusively.

mod diff;
mod entry;
mod filter;
mod ls;
mod prune;
mod show;

use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count, size};
use crate::cli::notices::print_notice;
use crate::cli::project::{print_notices, project_paths_of};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{self, EvaluationError, Event, Listening};
use filter::CacheFilter;
use prune::PruneArgs;
use store::cache::{DamageReport, Lookup, Record};

pub(crate) use entry::{EntryJson, output_of, provenance, snapshot};
pub(crate) use show::input_lines;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List entries, with their totals
    #[command(
        after_help = "Examples:\n  compeval cache ls --stage judge\n  compeval cache ls --method anchored --older-than 30d"
    )]
    Ls(CacheFilter),
    /// Show one entry, output and provenance; or compare two, input by input
    #[command(
        after_help = "Examples:\n  compeval cache show 3f2a --inputs\n  compeval cache show 3f2a 91bc    what differs"
    )]
    Show {
        /// A unique prefix of its key
        key: String,
        /// The entry to compare it with
        other: Option<String>,
        /// Print only the stored bytes
        #[arg(long, conflicts_with = "other")]
        raw: bool,
        /// Also list the inputs
        #[arg(long, conflicts_with = "other")]
        inputs: bool,
    },
    /// Remove entries and free their space
    #[command(
        after_help = "Examples:\n  compeval cache prune --unreachable --dry-run\n  compeval cache prune --older-than 30d"
    )]
    Prune(PruneArgs),
    /// Check the hash of every entry
    #[command(after_help = "Examples:\n  compeval cache verify")]
    Verify,
}

pub(crate) fn run(
    common: &Common,
    command: &CacheCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    match command {
        CacheCommand::Ls(filter) => ls::run(&project_paths_of(common)?.cache, filter, console),
        CacheCommand::Show {
            key,
            other: Some(other),
            ..
        } => diff::run(
            &snapshot(&project_paths_of(common)?.cache, console)?,
            key,
            other,
            console,
        ),
        CacheCommand::Show {
            key,
            other: None,
            raw,
            inputs,
        } => show::run(
            &snapshot(&project_paths_of(common)?.cache, console)?,
            key,
            *raw,
            *inputs,
            console,
        ),
        CacheCommand::Prune(args) => prune::run(common, &project_paths_of(common)?, args, console),
        CacheCommand::Verify => verify(&project_paths_of(common)?.cache, console),
    }
}

/// Checks the hash of every entry, and removes those that are damaged, unless the cache can only be read.
fn verify(cache: &Path, console: &Console) -> Result<Exit, Failure> {
    let listener = &mut |event: &Event<'_>| print_notice(event, console);
    match evaluation::open_store(cache, &Listening::new(listener)) {
        Err(EvaluationError::Cache(error)) if error.is_read_only() => {
            let cache = snapshot(cache, console)?;
            Ok(report_damage(
                &cache.verify()?,
                &cache.records(),
                "not removed: the cache can only be read",
                console,
            ))
        }
        opened => {
            let store = opened?;
            let reports = store.verify()?;
            let exit = report_damage(&reports, &store.records(), "removed", console);
            print_notices(&store, console);
            store.close()?;
            Ok(exit)
        }
    }
}

fn report_damage(
    reports: &[DamageReport],
    records: &[Record],
    fate: &str,
    console: &Console,
) -> Exit {
    let bytes: u64 = records.iter().map(Record::stored_bytes).sum();
    let entries = records.len() as u64;
    let damaged: Vec<Value> = reports.iter().map(damage_json).collect();
    console.json(&json!({ "entries": entries, "bytes": bytes, "damaged": damaged }));
    for report in reports {
        console.print(&console.labelled(TextStyle::Bad, "damaged:", report));
    }
    let lost: u64 = reports.iter().map(|report| report.lost.len() as u64).sum();
    let places = count(reports.len() as u64, Noun::DamagedPlace);
    let were = if reports.len() == 1 { "was" } else { "were" };
    let sound = format!("{}, {}", count(entries, Noun::Entry), size(bytes));
    let verdict = match reports.is_empty() {
        true => console.paint(TextStyle::Good, &format!("No damage found: {sound}.")),
        false => format!(
            "{} {were} found and {fate}, {} lost; the rest is intact: {sound}.",
            console.paint(TextStyle::Bad, &places),
            count(lost, Noun::Entry)
        ),
    };
    console.print(&verdict);
    if reports.is_empty() {
        Exit::Done
    } else {
        Exit::Error
    }
}

fn damage_json(report: &DamageReport) -> Value {
    let DamageReport {
        damage,
        lost,
        set_aside,
    } = report;
    json!({
        "path": damage.path.display().to_string(),
        "offset": damage.offset,
        "what": damage.what,
        "lost": lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "set_aside": set_aside.as_ref().map(|path| path.display().to_string()),
    })
}
