//! Taking entries out, and giving their space back to the disk.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;

use super::error::CacheError;
use super::fold::Questions;
use super::frame::{self, Header, Note};
use super::index::Index;
use super::meta::Removal;
use super::pack::{PackHeader, Packs};
use super::record::{Location, Record};
use super::scanner::{Found, Scanner};
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
}

/// An index smaller than this is left as it is.
const SMALL_INDEX: u64 = 1 << 20;
/// What an index written anew takes for one entry, generously.
const INDEX_ENTRY: u64 = 1000;
/// Entries removed by one frame.
const BATCH: usize = 512;
/// The newest removals that are remembered: `plan` says of their actions that they were pruned.
const TOLD: usize = 2 * BATCH;

impl Store {
    /// Takes entries out; keys that are not there are passed over. With them go the texts that neither an entry nor
    /// `kept` names: rows and pages, which can be made again, and sources of results that are gone. The removal is on
    /// disk before any pack is touched, and a crash at any point loses nothing else.
    ///
    /// # Errors
    /// If the disk refuses; what was not pruned is good.
    pub fn prune(&self, keys: &[ActionKey], kept: &HashSet<Digest>) -> Result<Pruned, CacheError> {
        self.sync()?;
        let mut found = Vec::new();
        for key in keys.iter().collect::<BTreeSet<_>>() {
            found.extend(self.try_ask(&|tables| tables.find(key))?);
        }
        // the newest come last, to be told the longest
        found.sort_by_key(|record| record.created);
        self.forget_known_texts();
        let core = &self.core;
        let mut tail = core.tail();
        core.open_index(&mut tail).map_err(|error| core.fail(&error))?;
        core.remove(&mut tail, &found, Removal::Pruned).map_err(|error| core.fail(&error))?;
        core.reclaim(&mut tail, &found, kept).map_err(|error| core.fail(&error))?;
        Ok(Pruned { entries: found.len() as u64, bytes: found.iter().map(Record::stored_bytes).sum() })
    }

    /// Makes the index anew, so that it takes no more of the disk than its entries need.
    ///
    /// # Errors
    /// As `prune`.
    pub fn shrink_index(&self) -> Result<(), CacheError> {
        let core = &self.core;
        let mut tail = core.tail();
        core.open_index(&mut tail).and_then(|()| core.shrink_index(&mut tail)).map_err(|error| core.fail(&error))
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

    fn reclaim(&self, tail: &mut Tail, removed: &[Record], kept: &HashSet<Digest>) -> Result<(), CacheError> {
        let live = self.with_index(Questions::records)?;
        let mut unused = self.unused_texts(&live)?;
        unused.retain(|(digest, _)| !kept.contains(digest));
        let mut ids = self.mostly_dead(&live)?;
        ids.extend(removed.iter().map(|record| record.location.pack));
        ids.extend(unused.iter().map(|(_, at)| at.pack));
        self.with_index(|index| unused.iter().try_for_each(|(digest, _)| index.forget_text(digest)))?;
        // of a cache that was emptied, nothing is left to be told
        let told_from = if live.is_empty() { None } else { self.newest_removals()? };
        self.sweep_packs(tail, &ids, told_from)?;
        let index_bytes = self.with_index(|index| Ok(index.disk_bytes()))?;
        if index_bytes > SMALL_INDEX + live.len() as u64 * INDEX_ENTRY {
            self.shrink_index(tail)?;
        }
        Ok(())
    }

    /// Where the newest removals begin that can be told; `None` where nothing was removed.
    pub(super) fn newest_removals(&self) -> Result<Option<Location>, CacheError> {
        let mut removals = Vec::new();
        for id in self.layout.pack_ids()? {
            let found = removals_in(&self.packs, id);
            removals.extend(found.map_err(CacheError::io("read", &self.layout.pack(id)))?);
        }
        let mut told = 0;
        let newest = removals.iter().rev().take_while(|(_, keys)| {
            told += keys;
            told <= TOLD
        });
        Ok(newest.last().map(|(at, _)| *at))
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
}

/// The frames in a pack that say what was removed, and how many entries each names.
fn removals_in(packs: &Packs, id: u32) -> io::Result<Vec<(Location, usize)>> {
    let file = packs.file(id)?;
    let mut scanner = Scanner::new(id, &file, 0, file.metadata()?.len());
    let mut removals = Vec::new();
    while let Some(found) = scanner.next()? {
        if let Found::Frame(at, Header { note: Note::Remove { keys, .. }, .. }) = found {
            removals.push((at, keys.len()));
        }
    }
    Ok(removals)
}
