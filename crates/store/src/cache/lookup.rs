//! Reading a cache: one trait for an open store and for a snapshot, so that `run`, `plan` and `why` use the same code, and two
//! caches read as one.
//!
//! A snapshot is a read-only view. It scans the frame headers of the packs and never opens the index, so it works while
//! another process writes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;

use super::entry::{Day, EntryHeader, Record};
use super::error::{CacheError, Damage};
use super::index::{Index, last_used, scan};
use super::maintenance::verify::{self, DamageReport};
use super::packs::PackFiles;
use super::packs::folder::{FolderKind, Layout};
use super::packs::frame::{BatchNonce, BatchStep, key_prefix};
use crate::digest::{ActionKey, Digest};
use base::guarded;
use base::threads::lock;

/// A cache that can be read.
pub trait Lookup {
    /// The current entry of a key: an output, an unusable reply or a failure.
    fn find(&self, key: &ActionKey) -> Option<Record>;

    /// The current entry of a key, if it has a body that can be used as an output.
    fn find_usable(&self, key: &ActionKey) -> Option<Record> {
        self.find(key).filter(Record::is_usable)
    }

    /// The body of an entry, verified by its digest.
    ///
    /// # Errors
    /// `Damage` if the entry differs from what was written: treat it as missing.
    fn body(&self, record: &Record) -> Result<Bytes, Damage>;

    /// Verifies the body of an entry without decompressing it.
    ///
    /// # Errors
    /// As `body`.
    fn verify_body(&self, record: &Record) -> Result<(), Damage>;

    /// All that is known of an entry.
    ///
    /// # Errors
    /// As `body`.
    fn header(&self, record: &Record) -> Result<EntryHeader, Damage>;

    /// An entry as another cache takes it: its frame, verified.
    ///
    /// # Errors
    /// As `body`.
    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage>;

    /// Whether an entry is only in a remote, from which a run pulls it.
    fn is_remote(&self, _: &Record) -> bool {
        false
    }

    /// The latest action of a place, even if its entry was removed.
    fn latest(&self, place: &Digest) -> Option<ActionKey>;

    /// The bytes of the text or memo stored under a name.
    fn read_memo(&self, name: &Digest) -> Option<Bytes>;

    /// The text stored under a digest.
    fn read_text(&self, digest: &Digest) -> Option<String> {
        String::from_utf8(self.read_memo(digest)?.into()).ok()
    }

    /// The day of its last use.
    fn last_used(&self, record: &Record) -> Day;

    /// All records, in their order on disk.
    fn records(&self) -> Vec<Record>;

    /// The key that begins with `prefix` (hexadecimal digits).
    fn resolve(&self, prefix: &str) -> Result<ActionKey, CacheError> {
        const SHOWN: usize = 8;
        let lower = prefix.to_ascii_lowercase();
        let refused = |what: String| CacheError::Prefix {
            prefix: prefix.to_owned(),
            what,
        };
        if !(1..=64).contains(&lower.len()) || !lower.bytes().all(|b| b.is_ascii_hexdigit()) {
            let what =
                "is not a key: keys are hexadecimal digits, at most 64; `cache ls` lists them";
            return Err(refused(what.to_owned()));
        }
        let keys = self.records().into_iter().map(|record| record.key);
        let mut candidates: Vec<ActionKey> =
            keys.filter(|key| key.0.hex().starts_with(&lower)).collect();
        candidates.sort_unstable();
        match candidates.as_slice() {
            [] => Err(refused(
                "is the beginning of no key; `cache ls` lists the keys".to_owned(),
            )),
            [key] => Ok(*key),
            several => {
                let shown = several.iter().take(SHOWN).map(|key| key.0.short());
                let more = several.len().saturating_sub(SHOWN);
                let more = (more > 0).then(|| format!("and {more} more"));
                let shown: Vec<String> = shown.chain(more).collect();
                Err(refused(format!(
                    "is the beginning of several keys: {}; write more digits",
                    shown.join(", ")
                )))
            }
        }
    }
}

/// A cache that has steps of batches.
pub trait StepLog {
    /// All steps that are recorded.
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)>;

    /// What a step recorded, decoded; `None` if there is no such step.
    ///
    /// # Errors
    /// A record that is damaged or cannot be decoded.
    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage>;
}

/// The parts of a cache that is read.
pub(super) trait CacheParts {
    /// Reads the index.
    fn index<T>(&self, read: impl Fn(&Index) -> T) -> T;

    fn packs(&self) -> &PackFiles;

    /// The current record of a key.
    fn record(&self, key: &ActionKey) -> Option<Record> {
        self.index(|index| index.find(key))
    }

    /// The bytes of a text or memo.
    fn named(&self, name: &Digest) -> Option<Bytes> {
        let at = self.index(|index| index.text(name))?;
        self.packs().text(name, at).ok()
    }

    /// Notices damage that was met.
    fn met(&self, _: &Damage) {}
}

impl<C: CacheParts> Lookup for C {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        self.record(key)
    }

    fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        let body = self.packs().body(record);
        body.inspect_err(|damage| self.met(damage))
    }

    fn verify_body(&self, record: &Record) -> Result<(), Damage> {
        let verified = self.packs().verify_body(record);
        verified.inspect_err(|damage| self.met(damage))
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.packs().header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        let frame = self.packs().whole_frame(record);
        frame.inspect_err(|damage| self.met(damage))
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.index(|index| index.latest_at(place))
    }

    fn read_memo(&self, name: &Digest) -> Option<Bytes> {
        self.named(name)
    }

    fn last_used(&self, record: &Record) -> Day {
        let key = key_prefix(&record.key);
        last_used(record, self.index(|index| index.day(&key)))
    }

    fn records(&self) -> Vec<Record> {
        self.index(Index::records)
    }
}

impl<C: CacheParts> StepLog for C {
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)> {
        let steps = self.index(Index::steps).into_iter();
        steps.map(|(step, _)| step).collect()
    }

    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage> {
        let at = self.index(|index| index.step(nonce, step));
        at.map(|at| self.packs().step(at, decode)).transpose()
    }
}

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

impl CacheParts for CacheSnapshot {
    fn index<T>(&self, read: impl Fn(&Index) -> T) -> T {
        read(&self.index)
    }

    fn packs(&self) -> &PackFiles {
        &self.packs
    }
}

/// Two caches as one: an entry is read from the lower one if the upper one has no usable entry.
#[derive(Debug)]
pub struct Layered<'c, A, B> {
    /// The one that is read first.
    pub upper: &'c A,
    /// The one that has what the other lacks.
    pub lower: &'c B,
    /// Of a lower one that has what was pulled from a remote so far: the keys that neither has.
    pub missed: Option<&'c Mutex<BTreeSet<ActionKey>>>,
}

impl<A: Lookup, B: Lookup> Layered<'_, A, B> {
    /// Records of both with the same key, location and digest have the same content.
    fn is_upper(&self, record: &Record) -> bool {
        let known = self.upper.find(&record.key);
        known.is_some_and(|known| (known.location, known.raw) == (record.location, record.raw))
    }

    /// The cache that a record is from.
    fn cache_of(&self, record: &Record) -> &dyn Lookup {
        if self.is_upper(record) {
            self.upper
        } else {
            self.lower
        }
    }
}

impl<A: Lookup, B: Lookup> Lookup for Layered<'_, A, B> {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let upper = self.upper.find(key);
        if upper.as_ref().is_some_and(Record::is_usable) {
            return upper;
        }
        let lower = self.lower.find_usable(key);
        if let Some(missed) = self.missed.filter(|_| lower.is_none()) {
            lock(missed).insert(*key);
        }
        lower.or(upper)
    }

    fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        self.cache_of(record).body(record)
    }

    fn verify_body(&self, record: &Record) -> Result<(), Damage> {
        self.cache_of(record).verify_body(record)
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.cache_of(record).header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        self.cache_of(record).packed(record)
    }

    fn is_remote(&self, record: &Record) -> bool {
        self.missed.is_some() && !self.is_upper(record)
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.upper
            .latest(place)
            .or_else(|| self.lower.latest(place))
    }

    fn read_memo(&self, name: &Digest) -> Option<Bytes> {
        self.upper
            .read_memo(name)
            .or_else(|| self.lower.read_memo(name))
    }

    fn last_used(&self, record: &Record) -> Day {
        self.cache_of(record).last_used(record)
    }

    fn records(&self) -> Vec<Record> {
        let mut records = self.lower.records();
        records.retain(|record| self.upper.find(&record.key).is_none());
        records.extend(self.upper.records());
        records
    }
}
