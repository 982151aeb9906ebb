//! `cache ls`: one line per entry, newest first, and their totals.

use std::path::Path;

use super::entry::{EntryJson, EntryTotals, date_of, model_of, snapshot};
use super::filter::{CacheFilter, EntryFilter, EntryNames};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{
    Noun, age, count, cut, display_width, left, money, right, short_tokens, size,
};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use store::cache::{Day, EntryStatus, Lookup, Record, disk_bytes, now_ms};

/// An entry that is listed, with the day of its last use.
type ListedEntry = (Record, EntryMeta, Day);

pub(super) fn run(cache: &Path, args: &CacheFilter, console: &Console) -> Result<Exit, Failure> {
    let snapshot = snapshot(cache, console)?;
    let filter = EntryFilter::new(args.clone())?;
    let mut records = snapshot.records();
    records.retain(|record| filter.admits(record));
    records.sort_by_key(|record| std::cmp::Reverse(record.created));
    let (mut listed, mut names, mut totals) =
        (Vec::new(), EntryNames::default(), EntryTotals::default());
    for record in records {
        match snapshot.meta(&record) {
            Ok(meta) => {
                if filter.admits_names(&meta) {
                    totals.add(&record);
                    let day = snapshot.last_used(&record);
                    listed.push((record, meta, day));
                } else if listed.is_empty() {
                    names.add(&meta);
                }
            }
            Err(damage) => console.warn("cache:", damage),
        }
    }
    if console.is_json {
        let entries = listed.iter();
        let entries = entries.map(|(record, meta, day)| EntryJson::new(record, meta, *day));
        console.json(&entries.collect::<Vec<_>>());
    } else if !listed.is_empty() {
        page(console, &table(&listed, console));
    }
    console.note(&match (totals.entries, snapshot.is_empty()) {
        (0, true) => "The cache is empty; `compeval run` fills it.".to_owned(),
        (0, false) => {
            let advice = filter.advice(&names);
            advice.unwrap_or_else(|| "No entry matches.".to_owned())
        }
        (entries, _) => format!(
            "{}, {}, which cost {}; the cache takes {} on disk",
            count(entries, Noun::Entry),
            size(totals.bytes),
            totals.money(),
            size(disk_bytes(cache))
        ),
    });
    Ok(Exit::Done)
}

/// Columns before what an entry was made for, where that is on the same line.
const BEFORE_PLACE: usize = 100;
/// Columns that it needs there.
const LEAST_PLACE: usize = 30;
/// Columns before it on a line of its own.
const INDENT: usize = 2;
/// Columns between it and a fault.
const GAP: usize = 2;

fn table(listed: &[ListedEntry], console: &Console) -> String {
    // What an entry was made for is on a line of its own if there is no room for it beside the other columns.
    let is_split = console
        .columns()
        .is_some_and(|columns| columns < BEFORE_PLACE + LEAST_PLACE);
    let head = if is_split {
        "key           stage        size      cost     age"
    } else {
        "key           stage     model                      size       tokens      cost     age  last use    made for"
    };
    let mut lines = vec![console.paint(TextStyle::Strong, head)];
    lines.extend(listed.iter().map(|entry| line(entry, is_split, console)));
    lines.join("\n")
}

fn line((record, meta, day): &ListedEntry, is_split: bool, console: &Console) -> String {
    let fault = match record.status {
        EntryStatus::Output { .. } | EntryStatus::Unparsed => None,
        EntryStatus::Malformed { .. } => Some((TextStyle::Warning, "unreadable")),
        EntryStatus::Failed { .. } => Some((TextStyle::Bad, "failed")),
    };
    let tokens = match (meta.usage.input, meta.usage.output) {
        (None, None) => "–".to_owned(),
        (input, output) => format!("{}+{}", short_tokens(input), short_tokens(output)),
    };
    let (key, stage, mut place) = (
        record.key.0.short(),
        meta.inputs.stage.name(),
        meta.place.to_string(),
    );
    if let Some(columns) = console.columns() {
        let before = if is_split { INDENT } else { BEFORE_PLACE };
        let after = fault.map_or(0, |(_, text)| GAP + display_width(text));
        place = cut(&place, columns.saturating_sub(before + after));
    }
    let bytes = size(record.stored_bytes());
    let cost = right(&money(meta.cost), 8);
    let age = right(&age(now_ms().saturating_sub(record.created) / 1000), 6);
    let line = if is_split {
        format!("{key:<12}  {stage:<8}  {bytes:>7}  {cost}  {age}\n  {place}")
    } else {
        let (model, day) = (left(&cut(&model_of(meta), 22), 22), date_of(*day));
        format!(
            "{key:<12}  {stage:<8}  {model}  {bytes:>7}  {tokens:>11}  {cost}  {age}  {day:<10}  {place}"
        )
    };
    match fault {
        None => line,
        Some((style, text)) => format!("{line}  {}", console.paint(style, text)),
    }
}
