//! `cache upgrade`.

use std::path::Path;

use serde_json::json;

use crate::cache::disk_bytes;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::terminal::Console;

pub(super) fn run(cache: &Path, console: &Console) -> Result<Exit, Failure> {
    let before = disk_bytes(cache);
    let store = open_store(cache, console)?;
    let packs = store.upgrade()?;
    print_notices(&store, console);
    store.close()?;
    let after = disk_bytes(cache);
    console.print(&match packs {
        0 => format!("The cache is of this version already ({}).", size(after)),
        _ => format!("Rewrote {}: {} before, {} now.", count(packs as u64, "pack"), size(before), size(after)),
    });
    console.json(&json!({ "packs": packs, "disk_before": before, "disk": after }));
    Ok(Exit::Done)
}
