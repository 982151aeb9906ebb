//! How entries are selected and shown: their coordinates, their provenance, their totals, and their outputs as their stages display
//! them.

use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::action::Stage;
use crate::cli::args::one_of;
use crate::cli::failure::Failure;
use crate::cli::format::{age, count, duration, money, short_tokens, size, with_fields};
use crate::cli::project::open_snapshot;
use crate::cli::terminal::Console;
use crate::entries::{BodyFormat, EntryMeta, EntryRecord};
use crate::pipeline::list;
use crate::report::{fitted, known};
use base::text::one_line;
use base::units::{Usd, add_known};
use models::{Lane, Operation};
use sessions::transcript::{Message, render};
use store::cache::{CacheSnapshot, Day, EntryStatus, Lookup, Record, now_ms};
use store::remote::RemoteUrl;

/// Opens a snapshot and reports damage found by its scan.
pub(crate) fn snapshot(
    cache: &std::path::Path,
    console: &Console,
) -> Result<CacheSnapshot, Failure> {
    let snapshot = open_snapshot(cache)?;
    for notice in snapshot.notices() {
        console.warn("cache:", notice);
    }
    Ok(snapshot)
}

/// Finds the entry whose key begins with `prefix`.
pub(super) fn find_entry(snapshot: &CacheSnapshot, prefix: &str) -> Result<Record, Failure> {
    let key = snapshot.resolve(prefix)?;
    snapshot
        .find(&key)
        .ok_or_else(|| Failure::error(format!("the entry {key} was removed")))
}

/// Who made an output: the requested model, a built-in rule, or a program.
pub(crate) fn model_of(meta: &EntryMeta) -> String {
    let rule = meta.inputs.input("rule");
    let rule = rule.and_then(|part| part.text.as_ref());
    match (&meta.summary.models.requested, rule) {
        (Some(name), _) => name.strip_prefix("lexical/").unwrap_or(name).to_owned(),
        (None, Some(rule)) => format!("rule {rule}"),
        (None, None) => known(meta.inputs.input("command"), |_| "program".to_owned()),
    }
}

/// The status of an entry in one word.
pub(crate) fn status_of(status: &EntryStatus) -> &'static str {
    match status {
        EntryStatus::Unparsed => "unread",
        EntryStatus::Output { .. } => "output",
        EntryStatus::Malformed { .. } => "unreadable",
        EntryStatus::Failed { .. } => "failed",
    }
}

/// A time in milliseconds since 1970 as RFC 3339, to the second.
pub(crate) fn time_of(ms: u64) -> String {
    let time = i64::try_from(ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    known(time, |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

pub(crate) fn date_of(day: Day) -> String {
    time_of(u64::from(day.0) * 86_400_000)
        .chars()
        .take(10)
        .collect()
}

/// An entry in JSON, as `ls`, `show` and `why` give it.
pub(crate) fn entry_json(record: &Record, meta: &EntryMeta, last_used: Day) -> Value {
    let mut entry = json!({
        "key": record.key.to_string(),
        "stage": meta.inputs.stage,
        "status": status_of(&record.status),
        "model": meta.summary.models.answered,
        "requested_model": meta.summary.models.requested,
        "bytes": record.stored_bytes(),
        "usage": meta.summary.usage,
        "usd": meta.summary.cost,
        "latency_ms": meta.summary.latency_ms,
        "attempts": meta.attempts,
        "lane": meta.lane,
        "request_id": meta.request_id,
        "created": time_of(record.summary.created),
        "last_used": date_of(last_used),
        "repetition": meta.inputs.repetition,
    });
    if let Some(fault) = fault_of(record) {
        entry["fault"] = fault.into();
    }
    if let Some(remote) = &meta.imported {
        entry["remote"] = remote.as_str().into();
    }
    with_fields(&meta.place, entry)
}

/// Why an entry has no output.
pub(crate) fn fault_of(record: &Record) -> Option<String> {
    match &record.status {
        EntryStatus::Malformed { fault, .. } => Some(fault.to_string()),
        EntryStatus::Failed { class, message } => Some(format!("{class}: {message}")),
        EntryStatus::Unparsed | EntryStatus::Output { .. } => None,
    }
}

/// The status of an entry, with the reason if it has no output.
pub(crate) fn status_line(record: &Record) -> String {
    let status = status_of(&record.status);
    fault_of(record).map_or_else(|| status.to_owned(), |fault| format!("{status}: {fault}"))
}

/// Who made an entry, when, from what, and at what cost, each after a word.
pub(crate) fn provenance(record: &Record, meta: &EntryMeta) -> Vec<(String, String)> {
    let mut values = vec![
        ("made by", maker(meta)),
        ("made", making(record, meta)),
        ("took", consumption(record, meta)),
    ];
    if meta.lane != Lane::Live {
        values.push(("lane", meta.lane.to_string()));
    }
    values.extend(meta.request_id.as_ref().map(|id| ("request", id.clone())));
    let remote = meta.imported.as_ref();
    values.extend(remote.map(|remote| ("pulled", format!("from {remote}"))));
    values.extend(meta.inputs.sources.iter().map(|source| {
        let made_from = format!("{} as of {}", source.label(), source.digest.short());
        ("from", made_from)
    }));
    let values = values.into_iter();
    values
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The inputs of an entry by name: the digest of each, and the value if it is short.
pub(crate) fn input_values(meta: &EntryMeta) -> impl Iterator<Item = (String, String)> {
    meta.inputs.inputs.iter().map(|input| {
        let text = match input.text.as_deref() {
            Some("") => "(empty)".to_owned(),
            text => fitted(&text.map(one_line).unwrap_or_default(), LONGEST_VALUE),
        };
        let value = format!("{}  {text}", input.digest.short());
        (input.name.to_string(), value.trim_end().to_owned())
    })
}

/// Columns of an input that are shown.
const LONGEST_VALUE: usize = 60;

/// Who made an output: what was asked for, and the model that answered if it has another name.
fn maker(meta: &EntryMeta) -> String {
    let answered = meta
        .summary
        .models
        .answered
        .as_ref()
        .filter(|model| meta.summary.models.requested.as_ref() != Some(*model));
    let answered = answered.map(|name| format!(" (answered by {name})"));
    model_of(meta) + &answered.unwrap_or_default()
}

/// When an output was made, in how long and at which attempt.
fn making(record: &Record, meta: &EntryMeta) -> String {
    let seconds = now_ms().saturating_sub(record.summary.created) / 1000;
    let retried = if meta.attempts > 1 {
        format!(" at attempt {}", meta.attempts)
    } else {
        String::new()
    };
    format!(
        "{} ({} ago) in {}{retried}",
        time_of(record.summary.created),
        age(seconds),
        duration(meta.summary.latency_ms as f64 / 1000.0)
    )
}

/// The tokens, the money and the space that an output took.
fn consumption(record: &Record, meta: &EntryMeta) -> String {
    let cached = meta
        .summary
        .usage
        .cached_input
        .map(|tokens| format!(", {} from the prompt cache", short_tokens(Some(tokens))));
    let tokens = format!(
        "{} in, {} out{}",
        short_tokens(meta.summary.usage.input),
        short_tokens(meta.summary.usage.output),
        cached.unwrap_or_default()
    );
    format!(
        "{tokens}; {}; {} on disk",
        money(meta.summary.cost),
        size(record.stored_bytes())
    )
}

/// Totals over entries.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct EntryTotals {
    pub(super) entries: u64,
    bytes: u64,
    /// Null if a price is unknown.
    usd: Option<Usd>,
}

impl EntryTotals {
    pub(super) fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> EntryTotals {
        let mut totals = EntryTotals {
            entries: 0,
            bytes: 0,
            usd: Some(Usd(0.0)),
        };
        for record in records {
            totals.entries += 1;
            totals.bytes += record.stored_bytes();
            totals.usd = add_known(totals.usd, record.summary.cost);
        }
        totals
    }
}

impl fmt::Display for EntryTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = count(self.entries, "entry");
        let cost = money(self.usd);
        write!(f, "{entries}, {}, which cost {cost}", size(self.bytes))
    }
}

/// A body as text, for display and comparison, as far as that is possible without the pipeline; JSON in lines.
pub(crate) fn output_of(record: &Record, meta: &EntryMeta, bytes: &[u8]) -> String {
    let lossy = || String::from_utf8_lossy(bytes).into_owned();
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return local_output(bytes).unwrap_or_else(lossy);
    };
    let operation = match meta.inputs.input("operation") {
        Some(part) if part.text.as_deref() == Some("Compact") => Operation::Compact,
        Some(_) => Operation::Summarize,
        None => Operation::Generate,
    };
    let Ok(reply) = models::read(dialect, operation, bytes, None) else {
        return lossy();
    };
    if reply.text.is_empty() && reply.items.is_some() {
        let bytes = size(bytes.len() as u64);
        return format!("({bytes} that only its provider can read)");
    }
    match serde_json::from_str::<Value>(&reply.text) {
        Ok(json) => format!("{json:#}"),
        Err(_) => reply.text,
    }
}

/// The output of a rule or a program: messages or a summary.
fn local_output(bytes: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    if let Some(summary) = value.get("summary") {
        return summary.as_str().map(str::to_owned);
    }
    let messages = value.get("messages").unwrap_or(&value).clone();
    let messages: Vec<Message> = serde_json::from_value(messages).ok()?;
    Some(render(&messages))
}

/// Which entries; all conditions must hold.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheFilter {
    /// Only entries of this stage
    #[arg(long, value_parser = one_of(&Stage::ALL, Stage::name))]
    pub(crate) stage: Option<Stage>,
    /// Only entries made for this method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Only entries made for this fixture
    #[arg(long)]
    pub(crate) fixture: Option<String>,
    #[command(flatten)]
    pub(crate) origin: OriginFilter,
}

/// Which entries by when and where they were made.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OriginFilter {
    /// Only entries pulled from this remote
    #[arg(long, value_name = "URL")]
    pub(crate) remote: Option<RemoteUrl>,
    /// Only entries older than this (30d, 12h)
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,
}

impl CacheFilter {
    /// Whether a record meets the conditions that need no meta.
    pub(super) fn admits(&self, record: &Record) -> bool {
        let is_old = |age: Duration| {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            record.summary.created < now_ms().saturating_sub(age)
        };
        self.stage.is_none_or(|stage| Some(stage) == record.stage())
            && self.origin.older_than.is_none_or(is_old)
    }

    /// That no entry meets the conditions, with the names that were required.
    pub(super) fn refusal(&self) -> String {
        let names = [&self.method, &self.fixture].into_iter().flatten();
        match list(names.map(String::as_str)) {
            none if none.is_empty() => "No entry matches.".to_owned(),
            names => format!("No entry matches {names}."),
        }
    }

    /// Whether an entry has the required names.
    pub(super) fn admits_names(&self, meta: &EntryMeta) -> bool {
        let remote = self.origin.remote.as_ref().map(ToString::to_string);
        let method = meta.place.cell().map(|cell| &*cell.method);
        let names = [
            (&self.method, method),
            (&self.fixture, meta.place.fixture()),
            (&remote, meta.imported.as_deref()),
        ];
        names
            .into_iter()
            .all(|(wanted, name)| wanted.is_none() || wanted.as_deref() == name)
    }
}

/// An age: a number and a unit, such as `30d`.
///
/// # Errors
/// What was expected.
fn parse_age(text: &str) -> Result<Duration, String> {
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*seconds)
    });
    seconds.map(Duration::from_secs).ok_or_else(|| {
        format!("`{text}` is not an age: expected a number and a unit (s, m, h, d, w), such as 30d or 12h")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ages_are_parsed() {
        let ages = ["30d", "12h", "90m", "2w", "0s"];
        let seconds = ages.map(|age| parse_age(age).unwrap().as_secs());
        assert_eq!(seconds, [2_592_000, 43_200, 5400, 1_209_600, 0]);
    }

    #[test]
    fn a_wrong_age_gets_an_example() {
        for bad in ["", "30", "d", "-3d", "1e3d", "infd", "nand", "30x", "3d4h"] {
            assert!(
                parse_age(bad).unwrap_err().contains("30d or 12h"),
                "{bad:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_a_user_types_panics(text in "\\PC{0,12}") {
            let _ = parse_age(&text);
        }
    }
}
