//! Taking entries out, and giving their space back to the disk.

use std::collections::{BTreeMap, BTreeSet};

use super::error::CacheError;
use super::frame;
use super::index::Index;
use super::meta::Removal;
use super::pack::PackHeader;
use super::record::{Location, Record};
use super::store::Store;
use super::writer::{Core, Tail};
use crate::action::{ActionKey, Digest};

/// What a prune did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Entries taken out.
    pub entries: u64,
    /// Bytes they took in their packs.
    pub bytes: u64,
    /// Bytes by which the cache's files are smaller now.
    pub freed: u64,
}

/// An index smaller than this is left as it is.
const SMALL_INDEX: u64 = 4 << 20;
/// What an index written anew takes for one entry, generously.
const INDEX_ENTRY: u64 = 1000;
/// Entries removed by one frame.
const BATCH: usize = 8192;

impl Store {
    /// Takes entries out; keys that are not there are passed over. With them goes what no entry names, and can be made
    /// again: rows, and texts of the page. The removal is on disk before any pack is touched, and a crash at any point
    /// loses nothing else.
    ///
    /// # Errors
    /// If the disk refuses; what was not pruned is good.
    pub fn prune(&self, keys: &[ActionKey]) -> Result<Pruned, CacheError> {
        self.sync()?;
        let mut found = Vec::new();
        for key in keys.iter().collect::<BTreeSet<_>>() {
            found.extend(self.try_ask(&|index| index.find(key))?);
        }
        self.forget_known_texts();
        let core = &self.core;
        let mut tail = core.tail();
        let before = core.disk_bytes()?;
        core.remove(&mut tail, &found, Removal::Pruned).map_err(|error| core.fail(&error))?;
        core.reclaim(&mut tail, &found).map_err(|error| core.fail(&error))?;
        let freed = before.saturating_sub(core.disk_bytes()?);
        Ok(Pruned { entries: found.len() as u64, bytes: found.iter().map(Record::stored_bytes).sum(), freed })
    }
}

impl Core {
    /// Writes tombstones, durably, and takes the records out of the index.
    pub(super) fn remove(&self, tail: &mut Tail, records: &[Record], why: Removal) -> Result<(), CacheError> {
        for batch in records.chunks(BATCH) {
            let keys: Vec<_> = batch.iter().map(|record| (record.key, self.latest_place(record))).collect();
            let frame = frame::remove(why, &keys).map_err(|e| self.index_error(&e.to_string()))?;
            self.append(tail, &[frame], true)?;
        }
        Ok(())
    }

    /// The coordinate at which a record is the latest; `None` if it is not, or its frame is damaged.
    fn latest_place(&self, record: &Record) -> Option<Digest> {
        let coordinate = self.packs.coordinate(record).ok()?;
        let latest = self.with_index(|index| index.latest_at(&coordinate)).ok()?;
        (latest == Some(record.key)).then_some(coordinate)
    }

    fn reclaim(&self, tail: &mut Tail, removed: &[Record]) -> Result<(), CacheError> {
        let live = self.with_index(Index::records)?;
        let unused = self.unused_texts(&live)?;
        let mut ids = self.mostly_dead(&live)?;
        ids.extend(removed.iter().map(|record| record.location.pack));
        ids.extend(unused.iter().map(|(_, at)| at.pack));
        self.with_index(|index| unused.iter().try_for_each(|(digest, _)| index.forget_text(digest)))?;
        self.sweep_packs(tail, &ids)?;
        let index_bytes = self.with_index(|index| Ok(index.disk_bytes()))?;
        if index_bytes > SMALL_INDEX + live.len() as u64 * INDEX_ENTRY {
            self.shrink_index(tail)?;
        }
        Ok(())
    }

    /// The texts that no entry was made from.
    fn unused_texts(&self, live: &[Record]) -> Result<Vec<(Digest, Location)>, CacheError> {
        let mut texts = self.with_index(Index::texts)?;
        let mut used = BTreeSet::new();
        for record in live {
            // what a damaged entry was made from is not known: then every text is kept
            let Ok(meta) = self.packs.meta(record) else { return Ok(Vec::new()) };
            used.extend(meta.texts());
        }
        texts.retain(|(digest, _)| !used.contains(digest));
        Ok(texts)
    }

    /// The packs of which less than half is alive, whatever made the rest dead.
    fn mostly_dead(&self, live: &[Record]) -> Result<BTreeSet<u32>, CacheError> {
        let mut alive: BTreeMap<u32, u64> = BTreeMap::new();
        for record in live {
            *alive.entry(record.location.pack).or_default() += record.stored_bytes();
        }
        let mut dead = BTreeSet::new();
        for id in self.layout.pack_ids()? {
            let path = self.layout.pack(id);
            let bytes = std::fs::metadata(&path).map_err(CacheError::io("read", &path))?.len();
            if alive.get(&id).copied().unwrap_or(0) * 2 < bytes && bytes > PackHeader::LEN as u64 {
                dead.insert(id);
            }
        }
        Ok(dead)
    }

    /// Bytes of packs and index on disk.
    fn disk_bytes(&self) -> Result<u64, CacheError> {
        let mut bytes = 0;
        for folder in [self.layout.packs(), self.layout.index()] {
            let entries = std::fs::read_dir(&folder).map_err(CacheError::io("list", &folder))?;
            let files = entries.flatten().filter_map(|entry| entry.metadata().ok()).filter(|m| m.is_file());
            bytes += files.map(|meta| meta.len()).sum::<u64>();
        }
        Ok(bytes)
    }
}
