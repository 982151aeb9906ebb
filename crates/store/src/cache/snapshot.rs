//! A read-only view of a cache. It scans the frame headers of the packs and never opens the index, so it works while
//! another process writes.

use std::path::Path;

use super::entry::{Day, EntryHeader, ModelNames, Record, RemovalReason};
use super::error::{CacheError, Damage};
use super::index::scan::scan;
use super::index::{Tables, last_used};
use super::lookup::{Lookup, StoredReply};
use super::maintenance::verify::{self, DamageReport};
use super::packs::PackFiles;
use super::packs::folder::{FolderKind, Layout};
use super::packs::frame::key_prefix;
use super::packs::journal_steps::{BatchNonce, BatchStep, StepLog};
use super::packs::packed::DecodedHeader;
use crate::digest::{ActionKey, Digest};
use base::guarded;

/// The cache as it was when the snapshot was taken. It locks nothing and writes nothing.
#[derive(Debug)]
pub struct CacheSnapshot {
    tables: Tables,
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
        let tables = match layout.inspect()? {
            FolderKind::Empty => Tables::default(),
            FolderKind::Cache | FolderKind::Unlabelled => scan(&layout, &packs)?.0,
        };
        Ok(CacheSnapshot {
            tables,
            packs,
            layout,
        })
    }

    /// The damage found by the scan, worded for the user.
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = self.tables.damage_notices().collect();
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
        verify::look(&self.layout, &self.packs, &self.tables)
    }

    /// Whether all fields of an entry are known. If its header cannot be read at all, the answer is yes: the error
    /// comes when it is read.
    pub(super) fn has_whole_header(&self, record: &Record) -> bool {
        !matches!(
            self.packs.decoded_header(record),
            Ok(DecodedHeader::FieldLost)
        )
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.tables.record_count()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Lookup for CacheSnapshot {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        self.tables.find(key)
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

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.tables.latest_at(place)
    }

    fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.tables.removed(key)
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        let at = self.tables.text(digest)?;
        String::from_utf8(self.packs.text(digest, at).ok()?.into()).ok()
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.tables.count(digest)
    }

    fn last_used(&self, record: &Record) -> Day {
        last_used(record, self.tables.day(&key_prefix(&record.key)))
    }

    fn records(&self) -> Vec<Record> {
        self.tables.all_records()
    }
}

impl StepLog for CacheSnapshot {
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)> {
        self.tables.journal.keys().copied().collect()
    }

    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage> {
        let at = self.tables.journal.get(&(nonce, step)).copied();
        at.map(|at| self.packs.step(at, decode)).transpose()
    }
}
