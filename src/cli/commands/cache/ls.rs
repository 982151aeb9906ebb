//! `cache ls`: one line per entry, newest first, printed while the entries are read.

use std::path::Path;

use super::entry::{EntryJson, date_of, empty_cache, model_of, model_words, place_of, snapshot};
use super::filter::{CacheFilter, EntryFilter, EntryNames};
use super::totals::EntryTotals;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{
    Noun, age, count, cut, display_width, left, money, right, short_tokens, size,
};
use crate::cli::terminal::{Console, Pages, TextStyle, escape_json};
use crate::entries::{EntryLookup, EntryMeta};
use store::cache::{Day, EntryStatus, Lookup, Record, disk_bytes, now_ms};

pub(super) fn run(cache: &Path, args: &CacheFilter, console: &Console) -> Result<Exit, Failure> {
    let snapshot = snapshot(cache, console)?;
    let filter = EntryFilter::new(args.clone())?;
    let mut records: Vec<Record> = snapshot
        .records()
        .into_iter()
        .filter(|record| filter.admits(record))
        .collect();
    records.sort_by_key(|record| std::cmp::Reverse(record.created));
    let mut list = EntryList::new(console);
    let (mut names, mut damaged) = (EntryNames::default(), Vec::new());
    for record in &records {
        let day = snapshot.last_used(record);
        match snapshot.meta(record) {
            Ok(meta) => {
                if filter.names_anything() {
                    names.add(&meta);
                }
                if filter.admits_names(&meta) {
                    list.add(record, &meta, day);
                }
            }
            Err(damage) => damaged.push(damage),
        }
        if !list.is_read {
            break;
        }
    }
    list.end(filter.advice(&names), snapshot.is_empty(), cache);
    // only now, because a pager may have used the screen
    for damage in damaged {
        console.warn("cache:", damage);
    }
    Ok(Exit::Done)
}

/// Output is written in blocks of this size.
const BLOCK: usize = 32 << 10;

/// Columns before what an entry was made for, where that is on the same line.
const BEFORE_PLACE: usize = 100;
/// Columns that it needs there.
const LEAST_PLACE: usize = 30;
/// Columns before it on a line of its own.
const INDENT: usize = 2;
/// Columns between it and a fault.
const GAP: usize = 2;

struct EntryList<'c> {
    console: &'c Console,
    pages: Pages<'c>,
    /// False once the reader has closed the pager.
    is_read: bool,
    now: u64,
    block: String,
    totals: EntryTotals,
}

impl<'c> EntryList<'c> {
    fn new(console: &'c Console) -> EntryList<'c> {
        let pages = Pages::new(console);
        EntryList {
            console,
            pages,
            is_read: true,
            now: now_ms(),
            block: String::new(),
            totals: EntryTotals::default(),
        }
    }

    fn add(&mut self, record: &Record, meta: &EntryMeta, day: Day) {
        if self.console.is_json {
            self.block.push_str(if self.totals.entries == 0 {
                "[\n"
            } else {
                ",\n"
            });
            // serialising plain data to a string cannot fail
            let json =
                serde_json::to_string(&EntryJson::new(record, meta, day)).unwrap_or_default();
            self.block.push_str(&escape_json(&json));
        } else {
            if self.totals.entries == 0 {
                let head = if self.is_split() {
                    narrow_head()
                } else {
                    head()
                };
                self.block
                    .push_str(&self.console.paint(TextStyle::Strong, head));
                self.block.push('\n');
            }
            self.block.push_str(&self.line(record, meta, day));
            self.block.push('\n');
        }
        self.totals.add(record);
        if self.block.len() >= BLOCK {
            self.flush();
        }
    }

    /// Whether what an entry was made for is on a line of its own, because the terminal has no room for it beside the
    /// other columns.
    fn is_split(&self) -> bool {
        self.console
            .columns()
            .is_some_and(|columns| columns < BEFORE_PLACE + LEAST_PLACE)
    }

    fn line(&self, record: &Record, meta: &EntryMeta, day: Day) -> String {
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
            place_of(&meta.coordinate),
        );
        if let Some(columns) = self.console.columns() {
            let before = if self.is_split() {
                INDENT
            } else {
                BEFORE_PLACE
            };
            let after = fault.map_or(0, |(_, text)| GAP + display_width(text));
            place = cut(&place, columns.saturating_sub(before + after));
        }
        let (bytes, cost) = (size(record.stored_bytes()), money(meta.cost));
        let age = age(self.now.saturating_sub(record.created) / 1000);
        let line = if self.is_split() {
            format!(
                "{key:<12}  {stage:<8}  {bytes:>7}  {}  {}\n  {place}",
                right(&cost, 8),
                right(&age, 6)
            )
        } else {
            let (model, day) = (
                left(&cut(&model_words(&model_of(meta)), 22), 22),
                date_of(day),
            );
            let (cost, age) = (right(&cost, 8), right(&age, 6));
            format!(
                "{key:<12}  {stage:<8}  {model}  {bytes:>7}  {tokens:>11}  {cost}  {age}  {day:<10}  {place}"
            )
        };
        match fault {
            None => line,
            Some((style, text)) => format!("{line}  {}", self.console.paint(style, text)),
        }
    }

    fn flush(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.is_read = self.is_read && self.pages.write(&block);
    }

    fn end(mut self, advice: Option<String>, is_empty: bool, cache: &Path) {
        if self.console.is_json {
            self.block.push_str(if self.totals.entries == 0 {
                "[]\n"
            } else {
                "\n]\n"
            });
        }
        self.flush();
        self.pages.end();
        match (self.totals.entries, is_empty) {
            (0, true) => self.console.note(&empty_cache()),
            (0, false) => self
                .console
                .note(&advice.unwrap_or_else(|| "No entry matches.".to_owned())),
            // the sums are unknown if the reader left early
            (entries, _) if self.is_read => {
                self.console.note(&format!(
                    "{}, {}, which cost {}; the cache takes {} on disk",
                    count(entries, Noun::Entry),
                    size(self.totals.bytes),
                    self.totals.money(),
                    size(disk_bytes(cache))
                ));
            }
            _ => {}
        }
    }
}

fn head() -> &'static str {
    "key           stage     model                      size       tokens      cost     age  last use    made for"
}

fn narrow_head() -> &'static str {
    "key           stage        size      cost     age"
}
