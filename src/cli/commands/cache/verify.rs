//! `cache verify`: every byte is hashed again.

use std::path::Path;

use serde::Serialize;

use crate::cache::{DamageReport, Lookup, Record};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::{Console, Meaning};

#[derive(Debug, Serialize)]
struct VerifiedJson {
    entries: u64,
    bytes: u64,
    damaged: Vec<DamageJson>,
}

#[derive(Debug, Serialize)]
struct DamageJson {
    path: String,
    offset: u64,
    what: String,
    lost: Vec<String>,
    set_aside: Option<String>,
}

impl From<&DamageReport> for DamageJson {
    fn from(report: &DamageReport) -> DamageJson {
        DamageJson {
            path: report.damage.path.display().to_string(),
            offset: report.damage.offset,
            what: report.damage.what.clone(),
            lost: report.lost.iter().map(ToString::to_string).collect(),
            set_aside: report.set_aside.as_ref().map(|path| path.display().to_string()),
        }
    }
}

pub(super) fn run(cache: &Path, console: &Console) -> Result<Exit, Failure> {
    let store = open_store(cache, console)?;
    let reports = store.verify()?;
    let records = store.records();
    let bytes = records.iter().map(Record::stored_bytes).sum();
    let entries = records.len() as u64;
    console.json(&VerifiedJson { entries, bytes, damaged: reports.iter().map(DamageJson::from).collect() });
    for report in &reports {
        console.print(&format!("{} {report}", console.paint(Meaning::Bad, "damaged:")));
    }
    let lost: u64 = reports.iter().map(|report| report.lost.len() as u64).sum();
    let places = count(reports.len() as u64, "damaged place");
    let were = if reports.len() == 1 { "was" } else { "were" };
    let sound = format!("{}, {}", entries_of(entries), size(bytes));
    let verdict = match reports.is_empty() {
        true => console.paint(Meaning::Good, &format!("All is well: {sound}.")),
        false => format!(
            "{} {were} found and set aside, {} lost; what is left is sound: {sound}.",
            console.paint(Meaning::Bad, &places),
            entries_of(lost),
        ),
    };
    console.print(&verdict);
    print_notices(&store, console);
    store.close()?;
    Ok(if reports.is_empty() { Exit::Done } else { Exit::Error })
}

/// `1 entry`, `2 entries`.
pub(super) fn entries_of(number: u64) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") }
}
