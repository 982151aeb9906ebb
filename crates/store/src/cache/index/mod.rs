//! The tables: in memory, everything that the packs define. `Tables::apply` applies a frame to them.
//!
//! All reads of the cache go to these tables. The process that holds the lock fills them from the sled tree (`tree`),
//! all others from the headers of the packs (`scan`). They note what changed, so that the tree can be updated.

pub(super) mod index_folder;
pub(super) mod item_key;
pub(super) mod items;
pub(super) mod scan;
pub(super) mod tree;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::cache::entry::{
    Day, EntryStatus, FrameLocation, ParseResult, Record, RemovalReason, prefix_of,
};
use crate::cache::error::Damage;
use crate::cache::packs::frame::{FrameContent, FrameHeader, KeyPrefix};
use crate::cache::packs::journal_steps::{BatchNonce, BatchStep, JournalPlaces};
use crate::digest::{ActionKey, Digest};
use item_key::{ItemKey, PlacePrefix};

/// The day of an entry's last use: the recorded one, or the day it was made.
pub(super) fn last_used(record: &Record, recorded: Option<Day>) -> Day {
    recorded.unwrap_or_default().max(record.created_day())
}

/// Hashes a digest by its last eight bytes: they are already uniformly distributed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DigestHasher(u64);

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

pub(super) type DigestMap<K, V> = HashMap<K, V, BuildHasherDefault<DigestHasher>>;

/// A record as the tree has it: a third of the size of a [`Record`], of which a large matrix has hundreds of thousands.
#[derive(Debug)]
struct PackedRecord(Box<[u8]>);

impl PackedRecord {
    fn new(record: &Record) -> PackedRecord {
        PackedRecord(
            record
                .encode()
                .expect("encoding into memory cannot fail")
                .into(),
        )
    }

    fn unpack(&self, key: &ActionKey) -> Record {
        Record::decode(*key, &self.0).expect("a record that was encoded here")
    }
}

/// The current record of each key, and everything else that the frames define.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    records: DigestMap<ActionKey, PackedRecord>,
    latest: DigestMap<PlacePrefix, ActionKey>,
    removed: DigestMap<ActionKey, RemovalReason>,
    pub(super) texts: DigestMap<Digest, FrameLocation>,
    counts: DigestMap<Digest, u64>,
    days: DigestMap<KeyPrefix, Day>,
    pub(super) journal: JournalPlaces,
    /// The damage that was found while the tables were filled from the packs.
    pub(super) damage: Vec<Damage>,
    /// Changes that the sled tree does not have yet; `None` where there is no tree to update.
    changed: Option<HashSet<ItemKey>>,
}

impl Tables {
    /// Notes all changes from now on.
    pub(super) fn track_changes(&mut self) {
        self.changed = Some(HashSet::new());
    }

    /// The changes since the last call.
    fn take_changes(&mut self) -> HashSet<ItemKey> {
        self.changed
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    fn note(&mut self, item: ItemKey) {
        if let Some(changed) = &mut self.changed {
            changed.insert(item);
        }
    }

    /// The number of items that these tables have in the sled tree.
    pub(super) fn item_count(&self) -> u64 {
        let maps = [
            self.records.len(),
            self.removed.len(),
            self.latest.len(),
            self.texts.len(),
            self.counts.len(),
        ];
        (maps.iter().sum::<usize>() + self.days.len() + self.journal.len()) as u64
    }

    /// The keys of all these items.
    fn item_keys(&self) -> impl Iterator<Item = ItemKey> {
        let actions = self
            .records
            .keys()
            .chain(self.removed.keys())
            .map(|key| ItemKey::Action(*key));
        let places = self.latest.keys().map(|place| ItemKey::Place(*place));
        let texts = self.texts.keys().map(|digest| ItemKey::Text(*digest));
        let counts = self.counts.keys().map(|digest| ItemKey::Count(*digest));
        let days = self.days.keys().map(|key| ItemKey::Use(*key));
        let steps = self
            .journal
            .keys()
            .map(|(nonce, step)| ItemKey::Step(*nonce, *step));
        actions
            .chain(places)
            .chain(texts)
            .chain(counts)
            .chain(days)
            .chain(steps)
    }

    /// Applies the frame at `at`. Frames are applied in the order of the packs: later ones replace earlier ones.
    pub(super) fn apply(&mut self, at: FrameLocation, header: &FrameHeader) {
        let key = ActionKey(header.key);
        match &header.content {
            FrameContent::Reply(summary) => {
                if let Some(record) = header.record(at) {
                    self.set_record(record);
                }
                self.set_latest(prefix_of(&summary.place), key);
            }
            FrameContent::Failure { summary, .. } => {
                // a failed attempt to replace an output does not remove the output
                if self.find(&key).is_some_and(|record| record.is_usable()) {
                    return;
                }
                if let Some(record) = header.record(at) {
                    self.set_record(record);
                }
                if self.latest_at(&summary.place).is_none() {
                    self.set_latest(prefix_of(&summary.place), key);
                }
            }
            FrameContent::ParseResult(result) => {
                self.set_parse_result(&key, result, |record| record.raw == header.digest);
            }
            FrameContent::ParseResults(results) => {
                for parsed in results {
                    self.set_parse_result(&parsed.key, &parsed.result, |record| {
                        parsed.is_result_for(record)
                    });
                }
            }
            FrameContent::Text | FrameContent::Memo => self.set_text(header.key, at),
            FrameContent::Counts(counts) => counts
                .iter()
                .for_each(|(digest, count)| self.set_count(*digest, *count)),
            FrameContent::Touch { day, keys } => {
                keys.iter().for_each(|key| self.set_day(*key, *day))
            }
            FrameContent::Remove { why, keys } => {
                for (key, place) in keys {
                    self.remove(key, *why);
                    // the frame of the entry may be gone, so the tombstone repeats that it was the latest of its place
                    if let Some(place) = place {
                        self.set_latest(prefix_of(place), *key);
                    }
                }
            }
            FrameContent::Latest(places) => {
                places
                    .iter()
                    .for_each(|(place, key)| self.set_latest(prefix_of(place), *key));
            }
            FrameContent::Journal(nonce, step) => self.set_step(*nonce, *step, at),
            FrameContent::Fields(_) | FrameContent::Unknown => {}
        }
    }

    pub(super) fn set_record(&mut self, record: Record) {
        let key = record.key;
        self.removed.remove(&key);
        self.records.insert(key, PackedRecord::new(&record));
        self.note(ItemKey::Action(key));
    }

    /// Sets the status of the record of a key, if its body is the one that was parsed.
    fn set_parse_result(
        &mut self,
        key: &ActionKey,
        result: &ParseResult,
        is_of: impl Fn(&Record) -> bool,
    ) {
        if let Some(record) = self
            .find(key)
            .filter(|record| is_of(record) && !record.is_failed())
        {
            self.set_record(Record {
                status: EntryStatus::from(result),
                ..record
            });
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
    pub(super) fn forget_text(&mut self, digest: &Digest) {
        self.texts.remove(digest);
        self.note(ItemKey::Text(*digest));
    }

    /// Forgets the place of a record of a batch that is damaged or no longer needed.
    pub(super) fn forget_step(&mut self, nonce: BatchNonce, step: BatchStep) {
        self.journal.remove(&(nonce, step));
        self.note(ItemKey::Step(nonce, step));
    }

    pub(super) fn find(&self, key: &ActionKey) -> Option<Record> {
        self.records.get(key).map(|record| record.unpack(key))
    }

    /// Takes out a record, as if it had never been.
    pub(super) fn forget_record(&mut self, key: &ActionKey) -> Option<Record> {
        self.note(ItemKey::Action(*key));
        self.records.remove(key).map(|record| record.unpack(key))
    }

    /// The number of records.
    pub(super) fn record_count(&self) -> usize {
        self.records.len()
    }

    /// All records, in no order.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.records.iter().map(|(key, record)| record.unpack(key))
    }

    /// All records, in their order in the packs.
    pub(super) fn all_records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.records().collect();
        records.sort_unstable_by_key(|record| record.location);
        records
    }

    /// The damage that was found, worded for the user.
    pub(super) fn damage_notices(&self) -> impl Iterator<Item = String> {
        self.damage
            .iter()
            .map(|damage| format!("{damage}. `compeval cache verify` removes it"))
    }

    pub(super) fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.removed.get(key).copied()
    }

    pub(super) fn latest_at(&self, place: &Digest) -> Option<ActionKey> {
        self.latest_of(&prefix_of(place))
    }

    fn latest_of(&self, place: &PlacePrefix) -> Option<ActionKey> {
        self.latest.get(place).copied()
    }

    pub(super) fn text(&self, digest: &Digest) -> Option<FrameLocation> {
        self.texts.get(digest).copied()
    }

    pub(super) fn count(&self, digest: &Digest) -> Option<u64> {
        self.counts.get(digest).copied()
    }

    pub(super) fn day(&self, key: &KeyPrefix) -> Option<Day> {
        self.days.get(key).copied()
    }

    /// Whether these tables refer to anything in a pack.
    fn uses(&self, pack: u32) -> bool {
        let mut places = self.texts.values().chain(self.journal.values());
        self.records().any(|record| record.location.pack == pack)
            || places.any(|at| at.pack == pack)
    }

    /// The outputs that these tables have, and that neither are in `scanned` nor were removed there.
    pub(super) fn lost_in(&self, scanned: &Tables) -> Vec<Record> {
        let mut lost = self.all_records();
        lost.retain(|record| {
            let key = &record.key;
            record.is_usable() && scanned.find(key).is_none() && scanned.removed(key).is_none()
        });
        lost
    }

    /// Whether these tables, which may come from the tree, agree with `scanned`, which were read from the packs. A prune
    /// that was killed leaves frames in two packs, and some that the tree has forgotten already: either place is right if
    /// `is_sound` finds the record there.
    pub(super) fn agrees_with(&self, scanned: &Tables, is_sound: impl Fn(&Record) -> bool) -> bool {
        let is_known = |record: Record| {
            scanned.find(&record.key).is_some_and(|known| {
                let kind = std::mem::discriminant(&record.status);
                record.raw == known.raw
                    && kind == std::mem::discriminant(&known.status)
                    && (record.location == known.location || is_sound(&record))
            })
        };
        let steps = &scanned.journal;
        self.records.len() == scanned.records.len()
            && self.records().all(is_known)
            && self
                .texts
                .keys()
                .all(|name| scanned.texts.contains_key(name))
            && self.journal.keys().all(|step| steps.contains_key(step))
    }
}
