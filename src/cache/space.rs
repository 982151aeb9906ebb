//! What a cache takes on disk.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;

use serde::Serialize;

use super::lookup::Lookup;
use super::record::Record;
use super::snapshot::Snapshot;
use crate::action::Digest;

/// What a cache takes on disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// All of its folder, as `du` counts it.
    pub total: u64,
    /// Entries in the packs.
    pub entries: u64,
    /// Rows and pages in the packs: runs make them again by themselves.
    pub derived: u64,
    /// The index, which is made again from the packs.
    pub index: u64,
    /// The rest: notes on entries, the texts they were made from, and what was replaced.
    pub other: u64,
}

impl Snapshot {
    /// What the cache takes on disk. `named` are the digests of texts that entries and results were made from
    /// (`Meta::texts`).
    pub fn space(&self, named: &HashSet<Digest>) -> Space {
        let derived = self.texts().filter(|(digest, _)| !named.contains(digest));
        let derived = derived.map(|(_, at)| at.len()).sum();
        let entries = self.records().iter().map(Record::stored_bytes).sum();
        let (total, index) = (disk_bytes(self.layout.root()), disk_bytes(&self.layout.index()));
        Space { total, entries, derived, index, other: total.saturating_sub(entries + derived + index) }
    }
}

/// Bytes that a folder takes on disk as `du` counts them: whole blocks, and folders too. What is not there, or may not
/// be looked at, counts as nothing.
pub fn disk_bytes(folder: &Path) -> u64 {
    let found = walkdir::WalkDir::new(folder).into_iter().flatten();
    found.filter_map(|entry| entry.metadata().ok()).map(|meta| occupied(&meta)).sum()
}

#[cfg(unix)]
fn occupied(meta: &Metadata) -> u64 {
    const BLOCK: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(meta) * BLOCK
}

#[cfg(not(unix))]
fn occupied(meta: &Metadata) -> u64 {
    meta.len()
}
