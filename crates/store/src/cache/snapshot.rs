//! A read-only view of a cache. It scans the frame headers of the packs and never opens the index, so it works while
//! another process writes.

use std::path::Path;

use super::entry::{Day, EntryHeader, ModelNames, Record};
use super::error::{CacheError, Damage};
use super::index::scan;
use super::index::{Index, last_used};
use super::lookup::{Lookup, StoredReply};
use super::maintenance::verify::{self, DamageReport};
use super::packs::PackFiles;
use super::packs::folder::{FolderKind, Layout};
use super::packs::frame::key_prefix;
use super::packs::frame::{BatchNonce, BatchStep, StepLog};
use crate::digest::{ActionKey, Digest};
use base::guarded;

/// The cache as it was when the snapshot was taken. It locks nothing and writes nothing.
#[derive(Debug)]
pub struct CacheSnapshot {
    index: Index,
    packs: PackFiles,
    pub(super) layout: Layout,
}

impl CacheSnapshot {
    /// Scans the cache in `dir`. A missing or empty folder is an empty cache.
    ///
    /// # Errors
    /// If the folder is not a cache, has a newer format, or cannot be read.
    pub fn open(dir: &Path) -> Result<CacheSnapshot, CacheError> {
        let layout = Layout::new(dir);
        let packs = PackFiles::new(layout.clone());
        let index = match layout.inspect()? {
            FolderKind::Empty => Index::default(),
            FolderKind::Cache | FolderKind::Unlabelled => scan(&layout, &packs)?.0,
        };
        Ok(CacheSnapshot {
            index,
            packs,
            layout,
        })
    }

    /// The damage found by the scan, worded for the user.
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = self.index.damage_notices().collect();
        let has_index = guarded::exists(&self.layout.index().join("db"));
        if has_index && self.layout.pack_ids().is_ok_and(|ids| ids.is_empty()) {
            notices.push(format!(
                "{}: its packs are missing; what they had is made and paid again when it is needed",
                self.layout.root().display()
            ));
        }
        notices
    }

    /// Verifies every entry, and removes nothing.
    ///
    /// # Errors
    /// If a pack cannot be read.
    pub fn verify(&self) -> Result<Vec<DamageReport>, CacheError> {
        verify::look(&self.layout, &self.packs, &self.index)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.index.records().len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Lookup for CacheSnapshot {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        self.index.find(key)
    }

    fn reply(&self, record: &Record) -> Result<StoredReply, Damage> {
        self.packs.reply(record)
    }

    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage> {
        self.packs.verify_body(record)
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.packs.header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        self.packs.whole_frame(record)
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.index.latest_at(place)
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        let at = self.index.text(digest)?;
        String::from_utf8(self.packs.text(digest, at).ok()?.into()).ok()
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.index.count(digest)
    }

    fn last_used(&self, record: &Record) -> Day {
        last_used(record, self.index.day(&key_prefix(&record.key)))
    }

    fn records(&self) -> Vec<Record> {
        self.index.records()
    }
}

impl StepLog for CacheSnapshot {
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)> {
        let steps = self.index.steps().into_iter();
        steps.map(|(step, _)| step).collect()
    }

    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage> {
        let at = self.index.step(nonce, step);
        at.map(|at| self.packs.step(at, decode)).transpose()
    }
}
