//! `cache verify`: the cache on disk, as a whole.

use std::path::Path;

use serde_json::{Value, json};

use crate::cache::{DamageReport, Lookup, Record};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::{Console, TextStyle};

pub(super) fn verify(cache: &Path, console: &Console) -> Result<Exit, Failure> {
    let store = open_store(cache, console)?;
    let reports = store.verify()?;
    let records = store.records();
    let bytes: u64 = records.iter().map(Record::stored_bytes).sum();
    let entries = records.len() as u64;
    let damaged: Vec<Value> = reports.iter().map(damage_json).collect();
    console.json(&json!({ "entries": entries, "bytes": bytes, "damaged": damaged }));
    for report in &reports {
        console.print(&console.labelled(TextStyle::Bad, "damaged:", report));
    }
    let lost: u64 = reports.iter().map(|report| report.lost.len() as u64).sum();
    let places = count(reports.len() as u64, "damaged place");
    let were = if reports.len() == 1 { "was" } else { "were" };
    let sound = format!("{}, {}", count(entries, "entry"), size(bytes));
    let verdict = match reports.is_empty() {
        true => console.paint(TextStyle::Good, &format!("No damage found: {sound}.")),
        false => format!(
            "{} {were} found and removed, {} lost; the rest is intact: {sound}.",
            console.paint(TextStyle::Bad, &places),
            count(lost, "entry"),
        ),
    };
    console.print(&verdict);
    print_notices(&store, console);
    store.close()?;
    Ok(if reports.is_empty() { Exit::Done } else { Exit::Error })
}

fn damage_json(report: &DamageReport) -> Value {
    let DamageReport { damage, lost, set_aside } = report;
    json!({
        "path": damage.path.display().to_string(),
        "offset": damage.offset,
        "what": damage.what,
        "lost": lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "set_aside": set_aside.as_ref().map(|path| path.display().to_string()),
    })
}
