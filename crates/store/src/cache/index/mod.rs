//! What the packs define, in memory, and the one function that applies a frame to it.
//!
//! Whoever reads the cache reads these tables. The process that holds the lock fills them from the sled tree (`tree`),
//! everybody else from the headers of the packs (`scan`). For the tree they note what changed.

pub(super) mod item_key;
pub(super) mod items;
pub(super) mod index_folder;
pub(super) mod scan;
pub(super) mod tree;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::cache::entry::{Day, EntryStatus, FrameLocation, Record, RemovalReason, prefix_of};
use crate::cache::error::Damage;
use crate::cache::packs::frame::{FrameContent, FrameHeader, KeyPrefix};
use crate::cache::packs::journal_steps::{BatchNonce, BatchStep, JournalPlaces};
use crate::digest::{ActionKey, Digest};
use item_key::{ItemKey, PlacePrefix};

/// The day of an entry's last use: the recorded one, or the day it was made.
pub(in crate::cache) fn last_used(record: &Record, recorded: Option<Day>) -> Day {
    recorded.unwrap_or_default().max(record.created_day())
}

/// Hashes a digest by its last eight bytes: they are already uniformly distributed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cache) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 = u64::from_le_bytes(*last);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

pub(in crate::cache) type DigestMap<K, V> = HashMap<K, V, BuildHasherDefault<DigestHasher>>;

/// The current record of each key, and what else the frames of the packs say.
#[derive(Debug, Default)]
pub(in crate::cache) struct Tables {
    pub(in crate::cache) records: DigestMap<ActionKey, Box<Record>>,
    latest: DigestMap<PlacePrefix, ActionKey>,
    removed: DigestMap<ActionKey, RemovalReason>,
    pub(in crate::cache) texts: DigestMap<Digest, FrameLocation>,
    counts: DigestMap<Digest, u64>,
    days: DigestMap<KeyPrefix, Day>,
    pub(in crate::cache) journal: JournalPlaces,
    /// What was found damaged while they were filled from the packs.
    pub(in crate::cache) damage: Vec<Damage>,
    /// What the sled tree does not have yet; `None` where nobody writes one.
    changed: Option<HashSet<ItemKey>>,
}

impl Tables {
    /// From now on they note what changes.
    pub(in crate::cache) fn track_changes(&mut self) {
        self.changed = Some(HashSet::new());
    }

    /// What changed since this was asked last.
    fn take_changes(&mut self) -> HashSet<ItemKey> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, item: ItemKey) {
        if let Some(changed) = &mut self.changed {
            changed.insert(item);
        }
    }

    /// The number of items that the sled tree has of these tables.
    pub(in crate::cache) fn items(&self) -> u64 {
        let maps = [self.records.len(), self.removed.len(), self.latest.len(), self.texts.len(), self.counts.len()];
        (maps.iter().sum::<usize>() + self.days.len() + self.journal.len()) as u64
    }

    /// The keys of all these items.
    fn item_keys(&self) -> impl Iterator<Item = ItemKey> {
        let actions = self.records.keys().chain(self.removed.keys()).map(|key| ItemKey::Action(*key));
        let places = self.latest.keys().map(|place| ItemKey::Place(*place));
        let texts = self.texts.keys().map(|digest| ItemKey::Text(*digest));
        let counts = self.counts.keys().map(|digest| ItemKey::Count(*digest));
        let days = self.days.keys().map(|key| ItemKey::Use(*key));
        let steps = self.journal.keys().map(|(nonce, step)| ItemKey::Step(*nonce, *step));
        actions.chain(places).chain(texts).chain(counts).chain(days).chain(steps)
    }

    /// Applies the frame at `at`. Frames are applied in the order of the packs: later ones replace earlier ones.
    pub(in crate::cache) fn apply(&mut self, at: FrameLocation, header: &FrameHeader) {
        let key = ActionKey(header.key);
        match &header.content {
            FrameContent::Reply(summary) => {
                header.record(at).into_iter().for_each(|record| self.set_record(record));
                self.set_latest(prefix_of(&summary.place), key);
            }
            FrameContent::Failure { summary, .. } => {
                // a failed attempt to replace an output does not remove the output
                if self.records.get(&key).is_some_and(|record| record.is_usable()) {
                    return;
                }
                header.record(at).into_iter().for_each(|record| self.set_record(record));
                if self.latest_at(&summary.place).is_none() {
                    self.set_latest(prefix_of(&summary.place), key);
                }
            }
            FrameContent::ParseResult(reading) => {
                self.set_status(&key, |record| record.raw == header.digest, || EntryStatus::from(reading));
            }
            FrameContent::ParseResults(results) => {
                for parsed in results {
                    self.set_status(&parsed.key, |record| parsed.is_of(record), || EntryStatus::from(&parsed.result));
                }
            }
            FrameContent::Text => self.set_text(header.key, at),
            FrameContent::Counts(counts) => counts.iter().for_each(|(digest, count)| self.set_count(*digest, *count)),
            FrameContent::Touch { day, keys } => keys.iter().for_each(|key| self.set_day(*key, *day)),
            FrameContent::Remove { why, keys } => {
                for (key, place) in keys {
                    self.remove(key, *why);
                    // the entry's own frame may be gone, so the tombstone repeats that it was the latest of its place
                    place.iter().for_each(|place| self.set_latest(prefix_of(place), *key));
                }
            }
            FrameContent::Latest(places) => {
                places.iter().for_each(|(place, key)| self.set_latest(prefix_of(place), *key));
            }
            FrameContent::Journal(nonce, step) => self.set_step(*nonce, *step, at),
            FrameContent::Fields(_) | FrameContent::Unknown => {}
        }
    }

    pub(in crate::cache) fn set_record(&mut self, record: Record) {
        let key = record.key;
        self.removed.remove(&key);
        self.records.insert(key, Box::new(record));
        self.note(ItemKey::Action(key));
    }

    /// Gives the record of a key a status, if its body is the one that was read.
    fn set_status(&mut self, key: &ActionKey, is_of: impl Fn(&Record) -> bool, status: impl Fn() -> EntryStatus) {
        if let Some(record) = self.records.get_mut(key).filter(|record| is_of(record) && !record.is_failed()) {
            record.status = status();
            self.note(ItemKey::Action(*key));
        }
    }

    fn remove(&mut self, key: &ActionKey, why: RemovalReason) {
        self.records.remove(key);
        self.removed.insert(*key, why);
        self.note(ItemKey::Action(*key));
    }

    fn set_latest(&mut self, place: PlacePrefix, key: ActionKey) {
        if self.latest.insert(place, key) != Some(key) {
            self.note(ItemKey::Place(place));
        }
    }

    fn set_text(&mut self, digest: Digest, at: FrameLocation) {
        self.texts.insert(digest, at);
        self.note(ItemKey::Text(digest));
    }

    fn set_count(&mut self, digest: Digest, count: u64) {
        if self.counts.insert(digest, count) != Some(count) {
            self.note(ItemKey::Count(digest));
        }
    }

    fn set_day(&mut self, key: KeyPrefix, day: Day) {
        let recorded = self.days.entry(key).or_default();
        if *recorded < day {
            *recorded = day;
            self.note(ItemKey::Use(key));
        }
    }

    fn set_step(&mut self, nonce: BatchNonce, step: BatchStep, at: FrameLocation) {
        self.journal.insert((nonce, step), at);
        self.note(ItemKey::Step(nonce, step));
    }

    /// Forgets the place of a text that is damaged or unused.
    pub(in crate::cache) fn forget_text(&mut self, digest: &Digest) {
        self.texts.remove(digest);
        self.note(ItemKey::Text(*digest));
    }

    /// Forgets the place of a record of a batch that is damaged or no longer needed.
    pub(in crate::cache) fn forget_step(&mut self, nonce: BatchNonce, step: BatchStep) {
        self.journal.remove(&(nonce, step));
        self.note(ItemKey::Step(nonce, step));
    }

    pub(in crate::cache) fn find(&self, key: &ActionKey) -> Option<Record> {
        self.records.get(key).map(|record| Record::clone(record))
    }

    /// All records, in their order in the packs.
    pub(in crate::cache) fn all_records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.records.values().map(|record| Record::clone(record)).collect();
        records.sort_unstable_by_key(|record| record.location);
        records
    }

    pub(in crate::cache) fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.removed.get(key).copied()
    }

    pub(in crate::cache) fn latest_at(&self, place: &Digest) -> Option<ActionKey> {
        self.latest_of(&prefix_of(place))
    }

    fn latest_of(&self, place: &PlacePrefix) -> Option<ActionKey> {
        self.latest.get(place).copied()
    }

    pub(in crate::cache) fn text(&self, digest: &Digest) -> Option<FrameLocation> {
        self.texts.get(digest).copied()
    }

    pub(in crate::cache) fn count(&self, digest: &Digest) -> Option<u64> {
        self.counts.get(digest).copied()
    }

    pub(in crate::cache) fn day(&self, key: &KeyPrefix) -> Option<Day> {
        self.days.get(key).copied()
    }

    /// Whether anything in these tables is in a pack.
    fn uses(&self, pack: u32) -> bool {
        let mut places = self.texts.values().chain(self.journal.values());
        self.records.values().any(|record| record.location.pack == pack) || places.any(|at| at.pack == pack)
    }

    /// Whether these tables, which may come from the tree, say the same as others that were read from the packs.
    pub(in crate::cache) fn agrees_with(&self, found: &Tables) -> bool {
        self.records.len() == found.records.len()
            && self.records.values().all(|record| found.has_alike(record))
            && self.texts == found.texts
            && self.journal == found.journal
    }

    /// Whether the record of this key has the same body at the same place, and the same kind of status.
    fn has_alike(&self, record: &Record) -> bool {
        self.records.get(&record.key).is_some_and(|own| {
            let known = (own.location, own.raw, std::mem::discriminant(&own.status));
            known == (record.location, record.raw, std::mem::discriminant(&record.status))
        })
    }
}
