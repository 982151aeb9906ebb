//! The tables that the packs define, and the one function that applies a frame to them.
//!
//! `apply_frame` is written once over the trait `IndexUpdates`, so that tables built by a scan (`PackIndex`) and the
//! index on disk (`index`) cannot differ.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;

use crate::action::{ActionKey, Digest};
use crate::cache::entry::{Day, EntryStatus, FrameLocation, Record, RemovalReason};
use crate::cache::error::{CacheError, Damage, IndexFault};
use crate::cache::lookup::ModelNames;
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{FrameContent, FrameHeader, KeyPrefix};
use crate::cache::packs::journal_steps::{BatchNonce, JournalPlaces, JournalStep};
use crate::cache::packs::pack::{PackFiles, PackItem, PackScanner, read_pack_header, verify_checksum};

pub(in crate::cache) trait IndexUpdates {
    type Error;
    fn record(&mut self, key: &ActionKey) -> Result<Option<Record>, Self::Error>;
    fn set_record(&mut self, record: Record) -> Result<(), Self::Error>;
    /// Changes the record of a key, if there is one.
    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> Result<(), Self::Error>;
    fn remove(&mut self, key: &ActionKey, why: RemovalReason) -> Result<(), Self::Error>;
    fn latest(&mut self, coordinate: &Digest) -> Result<Option<ActionKey>, Self::Error>;
    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> Result<(), Self::Error>;
    fn set_text(&mut self, digest: Digest, at: FrameLocation) -> Result<(), Self::Error>;
    fn set_count(&mut self, digest: Digest, count: u64) -> Result<(), Self::Error>;
    fn set_day(&mut self, key: KeyPrefix, day: Day) -> Result<(), Self::Error>;
    fn set_journal(&mut self, place: (BatchNonce, JournalStep), at: FrameLocation) -> Result<(), Self::Error>;
}

/// Queries of the tables, on disk or in memory.
pub(in crate::cache) trait IndexQueries {
    fn find(&self, key: &ActionKey) -> Result<Option<Record>, IndexFault>;
    fn records(&self) -> Result<Vec<Record>, IndexFault>;
    fn removed(&self, key: &ActionKey) -> Result<Option<RemovalReason>, IndexFault>;
    fn latest_at(&self, coordinate: &Digest) -> Result<Option<ActionKey>, IndexFault>;
    fn text(&self, digest: &Digest) -> Result<Option<FrameLocation>, IndexFault>;
    fn count(&self, digest: &Digest) -> Result<Option<u64>, IndexFault>;
    fn day(&self, key: &KeyPrefix) -> Result<Option<Day>, IndexFault>;
    fn journal(&self) -> Result<JournalPlaces, IndexFault>;
}

/// Applies the frame at `at`. Frames are applied in the order of the packs: later ones replace earlier ones.
pub(in crate::cache) fn apply_frame<T: IndexUpdates>(
    tables: &mut T,
    at: FrameLocation,
    header: &FrameHeader,
) -> Result<(), T::Error> {
    let key = ActionKey(header.key);
    match &header.content {
        FrameContent::Reply(summary) => {
            header.record(at).map_or(Ok(()), |record| tables.set_record(record))?;
            tables.set_latest(summary.coordinate, key)
        }
        FrameContent::Failure { summary, .. } => {
            // a failed attempt to replace an output does not remove the output
            if tables.record(&key)?.is_some_and(|record| record.is_usable()) {
                return Ok(());
            }
            header.record(at).map_or(Ok(()), |record| tables.set_record(record))?;
            if tables.latest(&summary.coordinate)?.is_none() {
                tables.set_latest(summary.coordinate, key)
            } else {
                Ok(())
            }
        }
        FrameContent::ParseResult(reading) => tables.change(&key, |record| {
            if record.raw == header.digest && !record.is_failed() {
                record.status = EntryStatus::from(reading);
            }
        }),
        FrameContent::ParseResults(results) => results.iter().try_for_each(|parsed| {
            tables.change(&parsed.key, |record| {
                if parsed.is_of(record) && !record.is_failed() {
                    record.status = EntryStatus::from(&parsed.result);
                }
            })
        }),
        FrameContent::Text => tables.set_text(header.key, at),
        FrameContent::Counts(counts) => counts.iter().try_for_each(|(digest, count)| tables.set_count(*digest, *count)),
        FrameContent::Touch { day, keys } => keys.iter().try_for_each(|key| tables.set_day(*key, *day)),
        FrameContent::Remove { why, keys } => keys.iter().try_for_each(|(key, coordinate)| {
            tables.remove(key, *why)?;
            // the entry's own frame may be gone, so the tombstone repeats that it was the latest of its place
            coordinate.map_or(Ok(()), |coordinate| tables.set_latest(coordinate, *key))
        }),
        FrameContent::Latest(places) => places.iter().try_for_each(|(place, key)| tables.set_latest(*place, *key)),
        FrameContent::Journal(nonce, step) => tables.set_journal((*nonce, *step), at),
        FrameContent::Fields(_) | FrameContent::Unknown => Ok(()),
    }
}

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

/// The state of a pack when it was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cache) struct PackState {
    pub(in crate::cache) id: u32,
    pub(in crate::cache) generation: u32,
    /// Where the last whole frame ends.
    pub(in crate::cache) good: u64,
    pub(in crate::cache) len: u64,
}

/// The tables in memory, built by scanning all packs.
#[derive(Debug, Default)]
pub(in crate::cache) struct PackIndex {
    pub(in crate::cache) records: DigestMap<ActionKey, Box<Record>>,
    pub(in crate::cache) latest: DigestMap<Digest, ActionKey>,
    pub(in crate::cache) removed: DigestMap<ActionKey, RemovalReason>,
    pub(in crate::cache) texts: DigestMap<Digest, FrameLocation>,
    pub(in crate::cache) counts: DigestMap<Digest, u64>,
    pub(in crate::cache) days: DigestMap<KeyPrefix, Day>,
    pub(in crate::cache) journal: JournalPlaces,
    pub(in crate::cache) packs: Vec<PackState>,
    pub(in crate::cache) damage: Vec<Damage>,
}

impl PackIndex {
    /// Scans the frame headers of all packs.
    pub(in crate::cache) fn scan(layout: &Layout, packs: &PackFiles) -> Result<PackIndex, CacheError> {
        let mut tables = PackIndex::default();
        let ids = layout.pack_ids()?;
        for id in &ids {
            let newest = ids.last() == Some(id);
            match tables.scan_pack(*id, newest, packs) {
                // a prune in another process may have emptied and removed it in the meantime
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                result => result.map_err(CacheError::io("read", &layout.pack(*id)))?,
            }
        }
        Ok(tables)
    }

    fn scan_pack(&mut self, id: u32, newest: bool, packs: &PackFiles) -> io::Result<()> {
        let file = packs.file(id)?;
        let len = file.metadata()?.len();
        let damage =
            |offset, what: &str| packs.damage(None, FrameLocation { pack: id, offset, head: 0, body: 0 }, what);
        let mut state = PackState { id, generation: 0, good: len, len };
        match read_pack_header(&file, len)? {
            Ok(header) => state.generation = header.generation,
            Err(what) => self.damage.push(damage(0, what)),
        }
        let mut scanner = PackScanner::new(id, &file, 0, len);
        while let Some(item) = scanner.next()? {
            match item {
                PackItem::Frame(at, header) => self.apply(at, &header),
                PackItem::Damaged { from, what, .. } => self.damage.push(damage(from, what)),
                PackItem::Torn { from, what } => {
                    state.good = from;
                    if !newest {
                        self.damage.push(damage(from, what));
                    }
                }
            }
        }
        self.packs.push(state);
        Ok(())
    }

    fn apply(&mut self, at: FrameLocation, header: &FrameHeader) {
        let Ok(()) = apply_frame(self, at, header);
    }
}

impl IndexQueries for PackIndex {
    fn find(&self, key: &ActionKey) -> Result<Option<Record>, IndexFault> {
        Ok(self.records.get(key).map(|record| Record::clone(record)))
    }

    fn records(&self) -> Result<Vec<Record>, IndexFault> {
        Ok(self.records.values().map(|record| Record::clone(record)).collect())
    }

    fn removed(&self, key: &ActionKey) -> Result<Option<RemovalReason>, IndexFault> {
        Ok(self.removed.get(key).copied())
    }

    fn latest_at(&self, coordinate: &Digest) -> Result<Option<ActionKey>, IndexFault> {
        Ok(self.latest.get(coordinate).copied())
    }

    fn text(&self, digest: &Digest) -> Result<Option<FrameLocation>, IndexFault> {
        Ok(self.texts.get(digest).copied())
    }

    fn count(&self, digest: &Digest) -> Result<Option<u64>, IndexFault> {
        Ok(self.counts.get(digest).copied())
    }

    fn day(&self, key: &KeyPrefix) -> Result<Option<Day>, IndexFault> {
        Ok(self.days.get(key).copied())
    }

    fn journal(&self) -> Result<JournalPlaces, IndexFault> {
        Ok(self.journal.clone())
    }
}

impl IndexUpdates for PackIndex {
    type Error = Infallible;

    fn record(&mut self, key: &ActionKey) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(key).map(|record| Record::clone(record)))
    }

    fn set_record(&mut self, record: Record) -> Result<(), Infallible> {
        self.removed.remove(&record.key);
        self.records.insert(record.key, Box::new(record));
        Ok(())
    }

    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> Result<(), Infallible> {
        if let Some(record) = self.records.get_mut(key) {
            change(record);
        }
        Ok(())
    }

    fn remove(&mut self, key: &ActionKey, why: RemovalReason) -> Result<(), Infallible> {
        self.records.remove(key);
        self.removed.insert(*key, why);
        Ok(())
    }

    fn latest(&mut self, coordinate: &Digest) -> Result<Option<ActionKey>, Infallible> {
        Ok(self.latest.get(coordinate).copied())
    }

    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> Result<(), Infallible> {
        self.latest.insert(coordinate, key);
        Ok(())
    }

    fn set_text(&mut self, digest: Digest, at: FrameLocation) -> Result<(), Infallible> {
        self.texts.insert(digest, at);
        Ok(())
    }

    fn set_count(&mut self, digest: Digest, count: u64) -> Result<(), Infallible> {
        self.counts.insert(digest, count);
        Ok(())
    }

    fn set_day(&mut self, key: KeyPrefix, day: Day) -> Result<(), Infallible> {
        let recorded = self.days.entry(key).or_default();
        *recorded = day.max(*recorded);
        Ok(())
    }

    fn set_journal(&mut self, place: (BatchNonce, JournalStep), at: FrameLocation) -> Result<(), Infallible> {
        self.journal.insert(place, at);
        Ok(())
    }
}

/// The tables of a small cache of which every byte was verified. They answer all queries until something is written;
/// only then is the index opened.
#[derive(Debug, Default)]
pub(in crate::cache) struct VerifiedTables {
    pub(in crate::cache) tables: PackIndex,
    /// The distinct pairs of models, and which of them each action has.
    models: Vec<ModelNames>,
    models_of: DigestMap<ActionKey, usize>,
}

impl VerifiedTables {
    /// Reads all packs. `None` if there are none, if they are large, or if anything is damaged: then the index decides
    /// what is lost.
    pub(in crate::cache) fn read(ids: &[u32], packs: &PackFiles) -> io::Result<Option<VerifiedTables>> {
        const MAX_BYTES: u64 = 32 << 20;
        /// Few entries are smaller; used to reserve memory.
        const MIN_ENTRY_BYTES: u64 = 1 << 9;
        let lengths = ids.iter().map(|id| Ok(packs.file(*id)?.metadata()?.len()));
        let bytes: u64 = lengths.sum::<io::Result<u64>>()?;
        if ids.is_empty() || bytes > MAX_BYTES {
            return Ok(None);
        }
        let (mut verified, entries) = (VerifiedTables::default(), (bytes / MIN_ENTRY_BYTES) as usize);
        verified.tables.records.reserve(entries);
        verified.tables.latest.reserve(entries);
        verified.models_of.reserve(entries);
        for id in ids {
            if !verified.read_pack(*id, packs)? {
                return Ok(None);
            }
        }
        Ok(Some(verified))
    }

    /// Returns whether the whole pack is intact.
    fn read_pack(&mut self, id: u32, packs: &PackFiles) -> io::Result<bool> {
        let file = packs.file(id)?;
        let len = file.metadata()?.len();
        let Ok(pack) = read_pack_header(&file, len)? else { return Ok(false) };
        let mut scanner = PackScanner::new(id, &file, 0, len);
        while let Some(item) = scanner.next()? {
            let PackItem::Frame(at, header) = item else { return Ok(false) };
            let frame = scanner.frame(at)?;
            let intact = frame.get(at.head as usize..).is_some_and(|body| verify_checksum(&header, body).is_ok());
            if !intact || !self.add_models(&header, frame) {
                return Ok(false);
            }
            self.tables.apply(at, &header);
        }
        self.tables.packs.push(PackState { id, generation: pack.generation, good: len, len });
        Ok(pack.id == id)
    }

    /// Records the models of a reply; false if they cannot be decoded.
    fn add_models(&mut self, header: &FrameHeader, frame: &[u8]) -> bool {
        if !matches!(header.content, FrameContent::Reply(_)) {
            return true;
        }
        let Some(models) = header.models(frame) else { return false };
        let place = self.models.iter().rposition(|known| *known == models).unwrap_or_else(|| {
            self.models.push(models);
            self.models.len() - 1
        });
        self.models_of.insert(ActionKey(header.key), place);
        true
    }

    /// The models of a record, if it is current.
    pub(in crate::cache) fn models(&self, record: &Record) -> Option<ModelNames> {
        let is_current = self.tables.records.get(&record.key).is_some_and(|known| known.location == record.location);
        let models = self.models.get(*self.models_of.get(&record.key)?)?;
        is_current.then(|| models.clone())
    }
}
