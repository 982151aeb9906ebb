//! Pruning: removes entries and rewrites packs without what is no longer needed, so that disk space is freed.
//!
//! A removal is a tombstone frame, which is on disk before any pack is changed. Then each pack with dead frames is
//! rewritten: the new file is written and synced beside the old one and renamed over it, and only then the index gets
//! the new locations. A crash before that last step is harmless: the pack's generation no longer matches the index,
//! which is rebuilt. Packs keep their numbers, so the order of frames stays.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::PoisonError;

use crate::action::{ActionKey, Digest};
use crate::cache::entry::{Day, EntryStatus, FrameLocation, ParsedBody, Record, RemovalReason};
use crate::cache::error::{CacheError, IndexFault};
use crate::cache::index::disk_index::DiskIndex;
use crate::cache::index::pack_index::{IndexQueries, IndexUpdates, PackState};
use crate::cache::packs::folder::disk_bytes;
use crate::cache::packs::frame::{self, FrameContent, FrameHeader, KeyPrefix, PackHeader};
use crate::cache::packs::journal_steps::{BatchNonce, JournalPlaces, JournalStep};
use crate::cache::packs::pack::{PackFiles, PackItem, PackScanner, read_frame, read_pack_header};
use crate::cache::packs::packed::{EntryOrigin, PortableFrame, pack};
use crate::cache::packs::shared_fields::FieldNumbers;
use crate::cache::writing::active_pack::{ActivePack, LocatedFrame};
use crate::cache::writing::inner::StoreInner;
use base::files::open_options;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    pub entries: u64,
    /// Their size in the packs.
    pub bytes: u64,
}

/// A smaller index is not rebuilt.
const SMALL_INDEX: u64 = 128 << 10;
/// An upper estimate of what a new index takes for one entry.
const INDEX_ENTRY: u64 = 300;
/// The number of entries in one tombstone frame.
const BATCH: usize = 512;
/// The number of removals that are remembered, so that `plan` can say that an action was pruned.
const REMEMBERED: usize = 2 * BATCH;

/// Removes entries and the texts that neither an entry nor `kept` names; unknown keys are ignored.
pub(in crate::cache) fn prune(
    store: &StoreInner,
    keys: &[ActionKey],
    kept: &HashSet<Digest>,
) -> Result<PruneCounts, CacheError> {
    let mut found = Vec::new();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        found.extend(store.try_query(&|tables| tables.find(key))?);
    }
    // the newest come last and are remembered longest
    found.sort_by_key(|record| record.created);
    store.exclusively(|active| {
        remove(store, active, &found, RemovalReason::Pruned)?;
        reclaim(store, active, &found, kept)
    })?;
    Ok(PruneCounts { entries: found.len() as u64, bytes: found.iter().map(Record::stored_bytes).sum() })
}

/// Writes tombstones, durably, and removes the records from the index.
pub(in crate::cache) fn remove(
    store: &StoreInner,
    active: &mut ActivePack,
    records: &[Record],
    why: RemovalReason,
) -> Result<(), CacheError> {
    for batch in records.chunks(BATCH) {
        let keys: Vec<_> = batch.iter().map(|record| (record.key, latest_place(store, record))).collect();
        let frame = frame::remove(why, &keys).map_err(|e| store.index_error(&e.to_string()))?;
        store.append(active, &[frame], true)?;
    }
    Ok(())
}

/// The coordinate at which a record is the latest; `None` if it is not, or its frame is damaged.
fn latest_place(store: &StoreInner, record: &Record) -> Option<Digest> {
    let coordinate = store.packs.coordinate(record).ok()?;
    let latest = store.with_index(|index| index.latest_at(&coordinate)).ok()?;
    (latest == Some(record.key)).then_some(coordinate)
}

fn reclaim(
    store: &StoreInner,
    active: &mut ActivePack,
    removed: &[Record],
    kept: &HashSet<Digest>,
) -> Result<(), CacheError> {
    let live = store.with_index(IndexQueries::records)?;
    let mut unused = unused_texts(store, &live)?;
    unused.retain(|(digest, _)| !kept.contains(digest));
    let mut ids = mostly_dead(store, &live)?;
    ids.extend(removed.iter().map(|record| record.location.pack));
    ids.extend(unused.iter().map(|(_, at)| at.pack));
    let done = store.with_index(|index| Ok(closed_records(&index.journal()?)))?;
    ids.extend(done.iter().map(|(_, at)| at.pack));
    store.with_index(|index| {
        unused.iter().try_for_each(|(digest, _)| index.forget_text(digest))?;
        done.iter().try_for_each(|(place, _)| index.forget_journal(place))
    })?;
    // an empty cache has nothing to remember
    let remember_from = if live.is_empty() { None } else { newest_removals(store)? };
    rewrite_packs(store, active, &ids, remember_from)?;
    // what is removed from it makes it larger at first
    store.flush_index(active)?;
    if disk_bytes(&store.layout.index()) > SMALL_INDEX + live.len() as u64 * INDEX_ENTRY {
        store.shrink_index(active)?;
    }
    Ok(())
}

/// The first of the remembered removals; `None` if nothing was removed.
pub(super) fn newest_removals(store: &StoreInner) -> Result<Option<FrameLocation>, CacheError> {
    let mut removals = Vec::new();
    for id in store.layout.pack_ids()? {
        let found = removals_in(&store.packs, id);
        removals.extend(found.map_err(CacheError::io("read", &store.layout.pack(id)))?);
    }
    let mut count = 0;
    let newest = removals.iter().rev().take_while(|(_, keys)| {
        count += keys;
        count <= REMEMBERED
    });
    Ok(newest.last().map(|(at, _)| *at))
}

/// The texts that no entry was made from.
fn unused_texts(store: &StoreInner, live: &[Record]) -> Result<Vec<(Digest, FrameLocation)>, CacheError> {
    let mut texts = store.with_index(DiskIndex::texts)?;
    let mut used = BTreeSet::new();
    for record in live {
        // the sources of a damaged entry are unknown, so every text is kept
        match store.packs.explained(record) {
            Ok(EntryOrigin::Known(meta)) => used.extend(meta.texts()),
            // nothing can read a text that no entry names any more
            Ok(EntryOrigin::Lost) => {}
            Err(_) => return Ok(Vec::new()),
        }
    }
    texts.retain(|(digest, _)| !used.contains(digest));
    Ok(texts)
}

/// The packs of which less than half is live.
fn mostly_dead(store: &StoreInner, live: &[Record]) -> Result<BTreeSet<u32>, CacheError> {
    let mut alive: BTreeMap<u32, u64> = BTreeMap::new();
    for record in live {
        *alive.entry(record.location.pack).or_default() += record.stored_bytes();
    }
    let mut dead = BTreeSet::new();
    for id in store.layout.pack_ids()? {
        let path = store.layout.pack(id);
        let bytes = std::fs::metadata(&path).map_err(CacheError::io("read", &path))?.len();
        if alive.get(&id).copied().unwrap_or(0) * 2 < bytes && bytes > PackHeader::LEN as u64 {
            dead.insert(id);
        }
    }
    Ok(dead)
}

/// The records of closed batches that can go: first what opened a batch, and its closing at a later prune. Were the
/// closing gone first, the batch would be open again.
fn closed_records(places: &JournalPlaces) -> Vec<((BatchNonce, JournalStep), FrameLocation)> {
    let is_closed = |nonce: BatchNonce| places.contains_key(&(nonce, JournalStep::Closed));
    let has_intent = |nonce: BatchNonce| places.contains_key(&(nonce, JournalStep::Intent));
    let is_done = |(nonce, step): &(BatchNonce, JournalStep)| {
        is_closed(*nonce) && (*step != JournalStep::Closed || !has_intent(*nonce))
    };
    places.iter().filter(|(place, _)| is_done(place)).map(|(place, at)| (*place, *at)).collect()
}

/// The tombstone frames of a pack, with the number of entries in each.
fn removals_in(packs: &PackFiles, id: u32) -> io::Result<Vec<(FrameLocation, usize)>> {
    let file = packs.file(id)?;
    let mut scanner = PackScanner::new(id, &file, 0, file.metadata()?.len());
    let mut removals = Vec::new();
    while let Some(found) = scanner.next()? {
        if let PackItem::Frame(at, FrameHeader { content: FrameContent::Remove { keys, .. }, .. }) = found {
            removals.push((at, keys.len()));
        }
    }
    Ok(removals)
}

/// Decides which frames of a pack are live, by the index.
pub(in crate::cache) struct LiveFrames<'a> {
    pub(in crate::cache) index: &'a dyn IndexQueries,
    /// Whether all older packs were rewritten, so that no dead frame is left for a tombstone to cover.
    pub(super) older_rewritten: bool,
    /// Removals from here on are remembered.
    pub(super) remember_from: Option<FrameLocation>,
}

/// What happens to a frame when its pack is rewritten.
pub(in crate::cache) enum FrameAction {
    Copy,
    Replace(Vec<u8>),
    Drop,
    /// It is made again from the frames that are copied.
    Remake,
}

/// Rewrites the packs in `ids`, oldest first, without dead frames and without tombstones before `remember_from` that
/// no longer cover anything.
pub(super) fn rewrite_packs(
    store: &StoreInner,
    active: &mut ActivePack,
    ids: &BTreeSet<u32>,
    remember_from: Option<FrameLocation>,
) -> Result<(), CacheError> {
    store.sync_pack(active)?;
    store.layout.admit_packed()?;
    let mut older_rewritten = true;
    for id in store.layout.pack_ids()? {
        if ids.contains(&id) {
            rewrite_pack(store, active, id, older_rewritten, remember_from)?;
        } else {
            older_rewritten = false;
        }
    }
    Ok(())
}

fn rewrite_pack(
    store: &StoreInner,
    active: &mut ActivePack,
    id: u32,
    older_rewritten: bool,
    remember_from: Option<FrameLocation>,
) -> Result<(), CacheError> {
    let path = store.layout.pack(id);
    let fresh = store.layout.rewrite(id);
    let newest = id == active.id;
    let (state, moved) = {
        let guard = store.index.read().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = &*guard else { return Err(store.index_error("it is not open")) };
        let live = LiveFrames { index, older_rewritten, remember_from };
        copy_live(store, id, &live, &fresh)?
    };
    if moved.is_empty() && !newest {
        fs::remove_file(&fresh).map_err(CacheError::io("remove", &fresh))?;
        fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
    } else {
        fs::rename(&fresh, &path).map_err(CacheError::io("replace", &path))?;
    }
    store.layout.sync_folder(&store.layout.packs())?;
    store.packs.close(id);
    if newest {
        *active = ActivePack::resume(&store.layout, state)?;
    }
    let is_removed = moved.is_empty() && !newest;
    store.update(active, |index| {
        moved.iter().try_for_each(|(at, header)| set_location(index, *at, header))?;
        if is_removed {
            index.remove_pack(id)?
        } else {
            index.set_pack(state)?
        }
        index.flush()
    })
}

/// Copies the live frames of a pack to `fresh`.
fn copy_live(
    store: &StoreInner,
    id: u32,
    live: &LiveFrames<'_>,
    fresh: &Path,
) -> Result<(PackState, Vec<LocatedFrame>), CacheError> {
    let path = store.layout.pack(id);
    let read = CacheError::io("read", &path);
    let opened = store.packs.file(id).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (len, file) = match opened {
        Ok(opened) => opened,
        Err(e) => return Err(read(e)),
    };
    let old = read_pack_header(&file, len).map_err(CacheError::io("read", &path))?;
    let generation = old.map_or(0, |header| header.generation).wrapping_add(1) & 0x7FFF_FFFF;
    let mut rewrite = PackRewrite::create(id, generation, fresh).map_err(CacheError::io("write", fresh))?;
    let shared = store.packs.fields(id, len).map_err(CacheError::io("read", &path))?;
    let mut scanner = PackScanner::new(id, &file, 0, len);
    while let Some(found) = scanner.next().map_err(CacheError::io("read", &path))? {
        let PackItem::Frame(at, header) = found else { continue };
        let fate = live.fate(at, &header).map_err(|fault| store.index_error(fault.text()))?;
        let bytes = match fate {
            FrameAction::Drop | FrameAction::Remake => continue,
            FrameAction::Replace(bytes) => bytes,
            FrameAction::Copy => read_frame(&file, at).map_err(CacheError::io("read", &path))?,
        };
        rewrite.add(PortableFrame::read(bytes, &shared)).map_err(CacheError::io("write", fresh))?;
    }
    rewrite.finish().map_err(CacheError::io("write", fresh))
}

/// Stores the new location of a frame in the index.
fn set_location(index: &DiskIndex, to: FrameLocation, header: &FrameHeader) -> Result<(), IndexFault> {
    let mut tables = index;
    match header.content {
        FrameContent::Reply(_) | FrameContent::Failure { .. } => match index.find(&ActionKey(header.key))? {
            Some(record) => tables.set_record(Record { location: to, ..record }),
            None => Ok(()),
        },
        FrameContent::Text => tables.set_text(header.key, to),
        FrameContent::Journal(nonce, step) => tables.set_journal((nonce, step), to),
        _ => Ok(()),
    }
}

/// The new file of a pack that is being rewritten.
struct PackRewrite {
    file: BufWriter<File>,
    state: PackState,
    moved: Vec<LocatedFrame>,
    numbers: FieldNumbers,
    /// Frames that are packed together.
    waiting: Vec<PortableFrame>,
}

impl PackRewrite {
    fn create(id: u32, generation: u32, fresh: &Path) -> io::Result<PackRewrite> {
        let mut file =
            BufWriter::with_capacity(1 << 20, open_options(fresh).write(true).create(true).truncate(true).open(fresh)?);
        file.write_all(&PackHeader { id, generation }.encode())?;
        let len = PackHeader::LEN as u64;
        let state = PackState { id, generation, good: len, len };
        Ok(PackRewrite { file, state, moved: Vec::new(), numbers: FieldNumbers::default(), waiting: Vec::new() })
    }

    fn add(&mut self, frame: PortableFrame) -> io::Result<()> {
        self.waiting.push(frame);
        if self.waiting.len() < BATCH { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> io::Result<()> {
        let packed = pack(std::mem::take(&mut self.waiting), &mut self.numbers).map_err(io::Error::other)?;
        for bytes in packed.frames {
            self.file.write_all(&bytes)?;
            let header = FrameHeader::decode(&bytes).map_err(|_| io::Error::other("a frame is malformed"))?;
            self.moved.push((header.location(self.state.id, self.state.len), header));
            self.state.len += bytes.len() as u64;
            self.state.good = self.state.len;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<(PackState, Vec<LocatedFrame>)> {
        self.write()?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok((self.state, self.moved))
    }
}

impl LiveFrames<'_> {
    pub(super) fn fate(&self, at: FrameLocation, header: &FrameHeader) -> Result<FrameAction, IndexFault> {
        let key = ActionKey(header.key);
        let alive = match &header.content {
            FrameContent::Reply(_) | FrameContent::Failure { .. } => {
                self.index.find(&key)?.is_some_and(|r| r.location == at)
            }
            FrameContent::ParseResult(reading) => self
                .index
                .find(&key)?
                .is_some_and(|record| record.raw == header.digest && record.status == EntryStatus::from(reading)),
            FrameContent::Text => self.index.text(&header.key)? == Some(at),
            FrameContent::Journal(nonce, step) => self.index.journal()?.get(&(*nonce, *step)) == Some(&at),
            FrameContent::Counts(_) | FrameContent::Unknown => true,
            FrameContent::Fields(_) => return Ok(FrameAction::Remake),
            FrameContent::ParseResults(results) => return self.results(results),
            FrameContent::Touch { day, keys } => return self.touches(*day, keys),
            FrameContent::Remove { why, keys } => return self.tombstones(at, *why, keys),
            FrameContent::Latest(places) => return self.latest(places),
        };
        Ok(if alive { FrameAction::Copy } else { FrameAction::Drop })
    }

    /// Keeps the results that entries have.
    fn results(&self, results: &[ParsedBody]) -> Result<FrameAction, IndexFault> {
        let has = |parsed: &ParsedBody, record: &Record| {
            parsed.is_of(record) && record.status == EntryStatus::from(&parsed.result)
        };
        let is_kept =
            |parsed: &ParsedBody| Ok(self.index.find(&parsed.key)?.is_some_and(|record| has(parsed, &record)));
        shortened(results, is_kept, frame::parse_results)
    }

    /// Keeps only the last use of each entry.
    fn touches(&self, day: Day, keys: &[KeyPrefix]) -> Result<FrameAction, IndexFault> {
        shortened(keys, |key| Ok(self.index.day(key)? == Some(day)), |last| frame::touch(day, last))
    }

    /// Keeps what is in use at a place while its entry exists.
    fn latest(&self, places: &[(Digest, ActionKey)]) -> Result<FrameAction, IndexFault> {
        let is_kept = |(place, key): &(Digest, ActionKey)| {
            Ok(self.index.latest_at(place)? == Some(*key) && self.index.find(key)?.is_some())
        };
        shortened(places, is_kept, frame::latest)
    }

    /// Keeps a tombstone while an older pack may contain its entry, or while it is remembered and was the latest of its
    /// place.
    fn tombstones(
        &self,
        at: FrameLocation,
        why: RemovalReason,
        keys: &[(ActionKey, Option<Digest>)],
    ) -> Result<FrameAction, IndexFault> {
        let is_remembered = self.remember_from.is_some_and(|from| at >= from);
        let is_kept = |(key, coordinate): &(ActionKey, Option<Digest>)| {
            let is_back = self.index.find(key)?.is_some();
            let explains = match coordinate.filter(|_| is_remembered) {
                Some(coordinate) => self.index.latest_at(&coordinate)? == Some(*key),
                None => false,
            };
            Ok(!is_back && (explains || !self.older_rewritten))
        };
        shortened(keys, is_kept, |kept| frame::remove(why, kept))
    }
}

/// The fate of a frame of `items`, of which some are kept.
fn shortened<T: Clone>(
    items: &[T],
    is_kept: impl Fn(&T) -> Result<bool, IndexFault>,
    frame: impl FnOnce(&[T]) -> Result<Vec<u8>, postcard::Error>,
) -> Result<FrameAction, IndexFault> {
    let mut kept = Vec::new();
    for item in items {
        if is_kept(item)? {
            kept.push(item.clone());
        }
    }
    Ok(match kept.len() {
        0 => FrameAction::Drop,
        len if len == items.len() => FrameAction::Copy,
        // if the shorter list cannot be encoded, the longer one does no harm
        _ => frame(&kept).map_or(FrameAction::Copy, FrameAction::Replace),
    })
}
