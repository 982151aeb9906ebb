//! How entries are shown: their coordinates, their provenance, their totals, and their outputs as their stages display
//! them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::action::Stage;
use crate::cli::failure::{Failure, import_failure};
use crate::cli::format::{age, duration, left, money, short_tokens, size, with_fields};
use crate::cli::project::open_snapshot;
use crate::cli::terminal::{Console, TextStyle};
use crate::entries::{BodyFormat, EntryMeta, EntryRecord};
use base::units::{Usd, add_known};
use models::{Lane, Operation};
use sessions::transcript::{Message, render};
use store::cache::{CacheSnapshot, Day, EntryStatus, Lookup, Record, now_ms};

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
    let key = snapshot.resolve(prefix).map_err(import_failure)?;
    snapshot
        .find(&key)
        .ok_or_else(|| Failure::error(format!("the entry {key} was removed")))
}

/// Who made an output: the requested model, a built-in rule, or a program.
pub(crate) fn model_of(meta: &EntryMeta) -> String {
    if let Some(name) = &meta.requested_model {
        return name.strip_prefix("lexical/").unwrap_or(name).to_owned();
    }
    if let Some(rule) = meta
        .inputs
        .input("rule")
        .and_then(|part| part.text.as_ref())
    {
        return format!("rule {rule}");
    }
    let is_program = meta.inputs.input("command").is_some();
    if is_program {
        "program".to_owned()
    } else {
        "–".to_owned()
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
    time.map_or_else(
        || "–".to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
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
        "model": meta.model,
        "requested_model": meta.requested_model,
        "bytes": record.stored_bytes(),
        "usage": meta.usage,
        "usd": meta.cost,
        "latency_ms": meta.latency_ms,
        "attempts": meta.attempts,
        "lane": meta.lane,
        "request_id": meta.request_id,
        "created": time_of(record.created),
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

/// Who made an entry, when, from what, and at what cost: one line each.
pub(crate) fn provenance(console: &Console, record: &Record, meta: &EntryMeta) -> Vec<String> {
    let mut lines = vec![
        ("made by", maker(meta)),
        ("made", making(record, meta)),
        ("took", consumption(record, meta)),
    ];
    if meta.lane != Lane::Live {
        lines.push(("lane", meta.lane.to_string()));
    }
    lines.extend(meta.request_id.as_ref().map(|id| ("request", id.clone())));
    lines.extend(
        meta.imported
            .as_ref()
            .map(|remote| ("pulled", format!("from {remote}"))),
    );
    for source in &meta.inputs.sources {
        let made_from = format!("{} as of {}", source.label(), source.digest.short());
        lines.push(("from", made_from));
    }
    lines
        .into_iter()
        .map(|(name, value)| format!("{}{value}", console.paint(TextStyle::Dim, &left(name, 9))))
        .collect()
}

/// Who made an output: what was asked for, and the model that answered if it has another name.
fn maker(meta: &EntryMeta) -> String {
    let answered = meta
        .model
        .as_ref()
        .filter(|model| meta.requested_model.as_ref() != Some(*model));
    let answered = answered.map(|name| format!(" (answered by {name})"));
    model_of(meta) + &answered.unwrap_or_default()
}

/// When an output was made, in how long and at which attempt.
fn making(record: &Record, meta: &EntryMeta) -> String {
    let seconds = now_ms().saturating_sub(record.created) / 1000;
    let retried = if meta.attempts > 1 {
        format!(" at attempt {}", meta.attempts)
    } else {
        String::new()
    };
    format!(
        "{} ({} ago) in {}{retried}",
        time_of(record.created),
        age(seconds),
        duration(meta.latency_ms as f64 / 1000.0)
    )
}

/// The tokens, the money and the space that an output took.
fn consumption(record: &Record, meta: &EntryMeta) -> String {
    let cached = meta
        .usage
        .cached_input
        .map(|tokens| format!(", {} from the prompt cache", short_tokens(Some(tokens))));
    let tokens = format!(
        "{} in, {} out{}",
        short_tokens(meta.usage.input),
        short_tokens(meta.usage.output),
        cached.unwrap_or_default()
    );
    format!(
        "{tokens}; {}; {} on disk",
        money(meta.cost),
        size(record.stored_bytes())
    )
}

/// Totals over entries. One unknown price makes `usd` unknown; `usd_known` is the sum of the known ones.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct EntryTotals {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Null if a price is unknown.
    usd: Option<Usd>,
    usd_known: Usd,
    /// Entries with an unknown price.
    unpriced: u64,
}

impl Default for EntryTotals {
    fn default() -> EntryTotals {
        EntryTotals {
            entries: 0,
            bytes: 0,
            usd: Some(Usd(0.0)),
            usd_known: Usd(0.0),
            unpriced: 0,
        }
    }
}

impl EntryTotals {
    pub(super) fn add(&mut self, record: &Record) {
        self.entries += 1;
        self.bytes += record.stored_bytes();
        self.usd = add_known(self.usd, record.cost);
        self.usd_known += record.cost.unwrap_or_default();
        self.unpriced += u64::from(record.cost.is_none());
    }

    /// The cost, with the number of unpriced entries.
    pub(super) fn money(&self) -> String {
        match self.unpriced {
            0 => money(self.usd),
            n if n == self.entries => money(None),
            n => format!("{} + {n} unpriced", money(Some(self.usd_known))),
        }
    }
}

/// An output as its stage displays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryOutput {
    /// A context, an answer or any other text.
    Text(String),
    /// Grades: criterion, score, reason.
    Grades(Vec<(String, String, String)>),
    /// Data that only its provider can read.
    Opaque(usize),
}

/// Parses a body for display, as far as that is possible without the pipeline.
pub(crate) fn output_of(record: &Record, meta: &EntryMeta, bytes: &[u8]) -> EntryOutput {
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return EntryOutput::Text(local_output(bytes).unwrap_or_else(|| lossy_text(bytes)));
    };
    let operation = match meta.inputs.input("operation") {
        Some(part) if part.text.as_deref() == Some("Compact") => Operation::Compact,
        Some(_) => Operation::Summarize,
        None => Operation::Generate,
    };
    let Ok(reply) = models::read(dialect, operation, bytes, None) else {
        return EntryOutput::Text(lossy_text(bytes));
    };
    if reply.text.is_empty() && reply.items.is_some() {
        return EntryOutput::Opaque(bytes.len());
    }
    let grades = if meta.inputs.stage == Stage::Judge {
        grades_of(&reply.text)
    } else {
        None
    };
    grades.map_or(EntryOutput::Text(reply.text), EntryOutput::Grades)
}

fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a rule or a program: messages or a summary.
fn local_output(bytes: &[u8]) -> Option<String> {
    if let Ok(messages) = serde_json::from_slice::<Vec<Message>>(bytes) {
        return Some(render(&messages));
    }
    let object: Value = serde_json::from_slice(bytes).ok()?;
    match (object.get("summary"), object.get("messages")) {
        (Some(summary), _) => summary.as_str().map(str::to_owned),
        (None, Some(messages)) => serde_json::from_value::<Vec<Message>>(messages.clone())
            .ok()
            .map(|m| render(&m)),
        (None, None) => None,
    }
}

/// The grades in a judge's reply.
fn grades_of(text: &str) -> Option<Vec<(String, String, String)>> {
    let object: Value = serde_json::from_str(text.get(text.find('{')?..=text.rfind('}')?)?).ok()?;
    let results = object.get("criterionResults")?.as_array()?.iter();
    Some(
        results
            .map(|entry| {
                ["criterionId", "score", "reasoning"]
                    .map(|name| member_text(entry, name))
                    .into()
            })
            .collect(),
    )
}

fn member_text(object: &Value, name: &str) -> String {
    match object.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "–".to_owned(),
    }
}

impl EntryOutput {
    /// As text, for display and comparison.
    pub(crate) fn text(&self) -> String {
        match self {
            EntryOutput::Text(text) => text.clone(),
            EntryOutput::Grades(grades) => {
                let lines = grades
                    .iter()
                    .map(|(criterion, score, reason)| format!("{criterion}  {score}  {reason}"));
                lines.collect::<Vec<_>>().join("\n")
            }
            EntryOutput::Opaque(bytes) => {
                format!("({} that only its provider can read)", size(*bytes as u64))
            }
        }
    }
}
