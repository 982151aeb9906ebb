//! `cache ls`: a line an entry, newest first, written as it is read.

use super::super::args::CacheFilter;
use super::super::console::{Console, Meaning};
use super::super::failure::{Exit, Failure};
use super::super::words::{age, count, money, short, size};
use super::entry::{EntryJson, date_of, model_of, place_of};
use super::filter::{Filter, Names, now_ms};
use crate::cache::{Day, Lookup, Meta, Record, Snapshot, Status};

pub(super) fn run(snapshot: &Snapshot, args: &CacheFilter, console: &Console) -> Result<Exit, Failure> {
    let filter = Filter::new(args)?;
    let mut records: Vec<Record> = snapshot.records().into_iter().filter(|record| filter.admits(record)).collect();
    records.sort_by_key(|record| std::cmp::Reverse(record.created));
    let mut list = List::begin(console);
    let mut names = Names::default();
    for record in &records {
        let day = snapshot.last_used(record);
        match snapshot.meta(record) {
            Ok(meta) => {
                if filter.names_anything() {
                    names.note(&meta);
                }
                if filter.admits_names(&meta) {
                    list.add(record, &meta, day);
                }
            }
            Err(damage) => console.tell(&format!("{} {damage}", console.paint(Meaning::Warning, "cache:"))),
        }
    }
    list.end(filter.advice(&names), snapshot.is_empty());
    Ok(Exit::Done)
}

/// What is collected before it is written.
const BLOCK: usize = 32 << 10;

/// The list, written block by block.
struct List<'c> {
    console: &'c Console,
    now: u64,
    block: String,
    entries: u64,
    bytes: u64,
}

impl<'c> List<'c> {
    fn begin(console: &'c Console) -> List<'c> {
        List { console, now: now_ms(), block: String::new(), entries: 0, bytes: 0 }
    }

    fn add(&mut self, record: &Record, meta: &Meta, day: Day) {
        if self.console.is_json() {
            self.block.push_str(if self.entries == 0 { "[\n" } else { ",\n" });
            // An entry is plain data: there is nothing in it that could fail.
            self.block.push_str(&serde_json::to_string(&EntryJson::new(record, meta, day)).unwrap_or_default());
        } else {
            if self.entries == 0 {
                self.block.push_str(&self.console.paint(Meaning::Strong, HEAD));
                self.block.push('\n');
            }
            self.block.push_str(&self.line(record, meta, day));
            self.block.push('\n');
        }
        self.entries += 1;
        self.bytes += record.stored_bytes();
        if self.block.len() >= BLOCK {
            self.flush();
        }
    }

    fn line(&self, record: &Record, meta: &Meta, day: Day) -> String {
        let tokens = match (meta.usage.input, meta.usage.output) {
            (None, None) => "–".to_owned(),
            (input, output) => format!("{}+{}", short(input.map(|t| t.0)), short(output.map(|t| t.0))),
        };
        let line = format!(
            "{:<12}  {:<8}  {:<22}  {:>7}  {:>11}  {:>8}  {:>6}  {:<10}  {}",
            record.key.0.short(),
            record.stage.name(),
            cut(&model_of(meta), 22),
            size(record.stored_bytes()),
            tokens,
            money(meta.cost),
            age(self.now.saturating_sub(record.created) / 1000),
            date_of(day),
            place_of(&meta.coordinate),
        );
        match record.status {
            Status::Output { .. } | Status::Unread => line,
            Status::Unreadable { .. } => format!("{line}  {}", self.console.paint(Meaning::Warning, "unreadable")),
            Status::Failed { .. } => format!("{line}  {}", self.console.paint(Meaning::Bad, "failed")),
        }
    }

    fn flush(&mut self) {
        let block = std::mem::take(&mut self.block);
        let block = self.console.for_output(&block);
        self.console.raw(block.as_bytes());
    }

    fn end(mut self, advice: Option<String>, is_empty: bool) {
        if self.console.is_json() {
            self.block.push_str(if self.entries == 0 { "[]\n" } else { "\n]\n" });
        }
        self.flush();
        match (self.entries, is_empty) {
            (0, true) => self.console.remark("The cache is empty; `compeval run` fills it."),
            (0, false) => self.console.remark(&advice.unwrap_or_else(|| "No entry is like that.".to_owned())),
            (entries, _) => {
                let noun = if entries == 1 { "1 entry".to_owned() } else { count(entries, "entrie") };
                self.console.remark(&format!("{noun}, {}", size(self.bytes)));
            }
        }
    }
}

const HEAD: &str =
    "key           stage     model                      size       tokens      cost     age  last use    made for";

/// The beginning of a text that is too long for its column.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}
