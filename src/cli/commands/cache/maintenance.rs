//! `cache verify`: the cache on disk, as a whole.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::{Console, TextStyle};
use base::locale::word;
use base::say;
use store::cache::{DamageReport, Lookup, Record};

pub(super) fn verify(cache: &Path, console: &Console) -> Result<Exit, Failure> {
    let store = open_store(cache, console)?;
    let reports = store.verify()?;
    let records = store.records();
    let bytes: u64 = records.iter().map(Record::stored_bytes).sum();
    let entries = records.len() as u64;
    let damaged: Vec<Value> = reports.iter().map(damage_json).collect();
    console.json(&json!({ "entries": entries, "bytes": bytes, "damaged": damaged }));
    for report in &reports {
        console.print(&console.labelled(TextStyle::Bad, word("damaged:", "损坏："), report));
    }
    let lost: u64 = reports.iter().map(|report| report.lost.len() as u64).sum();
    let places = count(reports.len() as u64, Noun::DamagedPlace);
    let were = if reports.len() == 1 { "was" } else { "were" };
    let sound = format!("{}, {}", count(entries, Noun::Entry), size(bytes));
    let verdict = match reports.is_empty() {
        true => console.paint(TextStyle::Good, &say!("No damage found: {sound}.", "未发现损坏：{sound}。")),
        false => say!(
            "{} {were} found and removed, {} lost; the rest is intact: {sound}.",
            "{}{were}，丢失 {}；其余完好：{sound}。",
            console.paint(TextStyle::Bad, &places),
            count(lost, Noun::Entry),
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
