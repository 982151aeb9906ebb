//! `compeval cache`: list, show, compare, prune and verify entries.
//!
//! `ls` and `verify` are here; each other command has a file. Commands that only read use a snapshot and can run beside a
//! writer; the others open the store exclusively.

mod entry;
mod prune;
mod show;

pub(crate) use entry::{entry_json, input_values, output_of, provenance, snapshot};

use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{age, count, money, size};
use crate::cli::project::{print_notices, project_paths_of};
use crate::cli::screen::print_notice;
use crate::cli::terminal::{Console, TextStyle, labelled, page, paint};
use crate::entries::{EntryLookup, EntryMeta};
use crate::evaluation::{self, EvaluationError, Event, Listening};
use crate::report::TextTable;
use entry::{CacheFilter, EntryTotals};
use prune::PruneArgs;
use store::cache::{DamageReport, Day, EntryStatus, Lookup, Record, disk_bytes, now_ms};

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List entries, with their totals
    #[command(
        after_help = "Examples:\n  compeval cache ls --stage judge\n  compeval cache ls --method anchored --older-than 30d"
    )]
    Ls(CacheFilter),
    /// Show one entry, output and provenance; or compare two, input by input
    #[command(
        after_help = "Examples:\n  compeval cache show 3f2a\n  compeval cache show 3f2a 91bc    what differs"
    )]
    Show {
        /// A unique prefix of its key
        key: String,
        /// The entry to compare it with
        other: Option<String>,
        /// Print only the stored bytes
        #[arg(long, conflicts_with = "other")]
        raw: bool,
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
    let paths = project_paths_of(common)?;
    let cache = &paths.cache;
    match command {
        CacheCommand::Ls(filter) => list(cache, filter, console),
        CacheCommand::Show { key, other, raw } => {
            let snapshot = snapshot(cache, console)?;
            match other {
                Some(other) => show::compare(&snapshot, key, other, console),
                None => show::run(&snapshot, key, *raw, console),
            }
        }
        CacheCommand::Prune(args) => prune::run(common, &paths, args, console),
        CacheCommand::Verify => verify(cache, console),
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
        console.print(&labelled(TextStyle::Bad, "damaged:", report));
    }
    let lost: u64 = reports.iter().map(|report| report.lost.len() as u64).sum();
    // Of a pack that is gone nobody knows what was in it.
    let lost = match lost {
        0 => String::new(),
        lost => format!(", {} lost", count(lost, "entry")),
    };
    let places = count(reports.len() as u64, "damaged place");
    let were = if reports.len() == 1 { "was" } else { "were" };
    let sound = format!("{}, {}", count(entries, "entry"), size(bytes));
    let verdict = match reports.is_empty() {
        true => paint(TextStyle::Good, &format!("No damage found: {sound}.")),
        false => format!(
            "{} {were} found and {fate}{lost}; the rest is intact: {sound}.",
            paint(TextStyle::Bad, &places),
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
    let DamageReport { damage, lost } = report;
    json!({
        "path": damage.path.display().to_string(),
        "offset": damage.offset,
        "what": damage.what,
        "lost": lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// An entry that is listed, with the day of its last use.
type ListedEntry = (Record, EntryMeta, Day);

fn list(cache: &Path, args: &CacheFilter, console: &Console) -> Result<Exit, Failure> {
    let snapshot = snapshot(cache, console)?;
    let mut records = snapshot.records();
    records.retain(|record| args.admits(record));
    records.sort_by_key(|record| std::cmp::Reverse(record.summary.created));
    let mut listed = Vec::new();
    for record in records {
        match snapshot.meta(&record) {
            Ok(meta) if args.admits_names(&meta) => {
                let day = snapshot.last_used(&record);
                listed.push((record, meta, day));
            }
            Ok(_) => {}
            Err(damage) => console.warn("cache:", damage),
        }
    }
    if console.is_json {
        let entries = listed.iter();
        let entries = entries.map(|(record, meta, day)| entry_json(record, meta, *day));
        console.json(&entries.collect::<Vec<_>>());
    } else if !listed.is_empty() {
        page(console, &table(&listed).render(console.whole_width()));
    }
    let totals = EntryTotals::of(listed.iter().map(|(record, ..)| record));
    console.note(&match (totals.entries, snapshot.is_empty()) {
        (0, true) => "The cache is empty; `compeval run` fills it.".to_owned(),
        (0, false) => args.refusal(),
        _ => format!(
            "{totals}; the cache takes {} on disk",
            size(disk_bytes(cache))
        ),
    });
    Ok(Exit::Done)
}

fn table(listed: &[ListedEntry]) -> TextTable {
    let rows = listed.iter().map(|(record, meta, _)| {
        let fault = match record.status {
            EntryStatus::Output { .. } | EntryStatus::Unparsed => (TextStyle::Plain, ""),
            EntryStatus::Malformed { .. } => (TextStyle::Warning, "unreadable"),
            EntryStatus::Failed { .. } => (TextStyle::Bad, "failed"),
        };
        let texts = [
            record.key.0.short(),
            meta.inputs.stage.to_string(),
            size(record.stored_bytes()),
            money(meta.summary.cost),
            age(now_ms().saturating_sub(record.summary.created) / 1000),
        ];
        let fault = (fault.0, fault.1.to_owned());
        let place = (TextStyle::Plain, meta.place.to_string());
        let texts = texts.map(|text| (TextStyle::Plain, text)).into_iter();
        let cells = texts.chain([fault, place]);
        cells.map(|cell| vec![cell]).collect()
    });
    let header = ["key", "stage", "size", "cost", "age", "", "made for"];
    TextTable {
        words: vec![1, 5, 6],
        cuts_last: true,
        ..TextTable::new(header, rows)
    }
}
