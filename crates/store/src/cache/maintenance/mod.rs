//! Keeps a cache small and sound. `verify` finds damage, and `without_room` prunes on a full disk.
//!
//! Pruning removes entries, and rewrites packs that have little live data, so that disk space is freed.
//!
//! A removal is a tombstone frame, which is on disk before any pack is changed. Then the live frames of each pack with
//! dead ones are appended to a new pack, and the old pack is removed once they are on disk (`remove_packs`). So a
//! process that is killed at any moment can only leave frames that are stored twice, which is harmless.

mod live_frames;
pub(super) mod verify;
pub(super) mod without_room;

use std::collections::{BTreeSet, HashSet};
use std::io;

use crate::cache::entry::{FrameLocation, Record, RemovalReason};
use crate::cache::error::CacheError;
use crate::cache::packs::frame::{self, FrameContent, FrameHeader};
use crate::cache::packs::journal_steps::{BatchNonce, BatchStep};
use crate::cache::packs::packed::{DecodedHeader, PortableFrame};
use crate::cache::packs::{PackFiles, PackItem, PackScanner, read_frame};
use crate::cache::writing::StoreInner;
use crate::cache::writing::active_pack::ActivePack;
use crate::digest::{ActionKey, Digest};
use base::guarded::{self, disk_bytes};
use live_frames::LiveFrames;

/// What a prune removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Entries.
    pub entries: u64,
    /// Their size in the packs.
    pub bytes: u64,
}

/// A smaller index is not rebuilt.
const SMALL_INDEX: u64 = 512 << 10;
/// An upper bound for the bytes of one entry in a new index.
const INDEX_ENTRY: u64 = 300;
/// The number of entries in one tombstone frame.
const BATCH: usize = 512;
/// The number of removals that are remembered, so that `plan` can say that an action was pruned.
const REMEMBERED: usize = 2 * BATCH;

/// Marks as damaged the entries that the index had and the packs lack.
pub(super) fn bury_lost(store: &StoreInner) -> Result<(), CacheError> {
    if store.lost.is_empty() {
        return Ok(());
    }
    store.exclusively(|active| remove(store, active, &store.lost, RemovalReason::Damaged))
}

/// Removes entries and the texts that neither an entry nor `kept` names; unknown keys are ignored.
pub(super) fn prune(
    store: &StoreInner,
    keys: &[ActionKey],
    kept: &HashSet<Digest>,
) -> Result<PruneCounts, CacheError> {
    let mut records = Vec::new();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        records.extend(store.tables().find(key));
    }
    // the newest come last and are remembered longest
    records.sort_by_key(|record| record.created);
    store.exclusively(|active| {
        remove(store, active, &records, RemovalReason::Pruned)?;
        reclaim(store, active, &records, kept)
    })?;
    Ok(PruneCounts {
        entries: records.len() as u64,
        bytes: records.iter().map(Record::stored_bytes).sum(),
    })
}

/// Writes tombstones, durably, and removes the records from the tables.
pub(super) fn remove(
    store: &StoreInner,
    active: &mut ActivePack,
    records: &[Record],
    why: RemovalReason,
) -> Result<(), CacheError> {
    for batch in records.chunks(BATCH) {
        let keys: Vec<_> = batch
            .iter()
            .map(|record| (record.key, latest_place(store, record)))
            .collect();
        let frame = frame::remove(why, &keys).map_err(|e| store.poisoned(&e.to_string()))?;
        store.append(active, &[frame], true)?;
    }
    Ok(())
}

/// The place of a record, if it is the latest there; `None` if it is not, or if its frame is damaged.
fn latest_place(store: &StoreInner, record: &Record) -> Option<Digest> {
    let place = store.packs.place(record).ok()?;
    let latest = store.tables().latest_at(&place);
    (latest == Some(record.key)).then_some(place)
}

fn reclaim(
    store: &StoreInner,
    active: &mut ActivePack,
    removed: &[Record],
    kept: &HashSet<Digest>,
) -> Result<(), CacheError> {
    let live = store.tables().all_records();
    let mut unused = unused_texts(store, &live);
    unused.retain(|(digest, _)| !kept.contains(digest));
    let room: u64 = live.iter().map(Record::stored_bytes).sum();
    let mut size = 0;
    unused.sort_unstable_by_key(|(_, at)| std::cmp::Reverse(*at));
    unused.retain(|(_, at)| {
        let is_memo = store.packs.is_memo(*at);
        size += if is_memo { at.len() } else { 0 };
        !is_memo || size > room
    });
    let mut ids = mostly_dead(store)?;
    ids.extend(removed.iter().map(|record| record.location.pack));
    ids.extend(unused.iter().map(|(_, at)| at.pack));
    let done = removable_steps(stored_steps(store)?);
    ids.extend(done.iter().map(|stored| stored.pack));
    if ids.is_empty() {
        return Ok(());
    }
    let mut tables = store.tables_mut();
    unused
        .iter()
        .for_each(|(digest, _)| tables.forget_text(digest));
    done.iter()
        .for_each(|stored| tables.forget_step(stored.nonce, stored.step));
    drop(tables);
    // an empty cache has nothing to remember
    let remember_from = if live.is_empty() {
        None
    } else {
        newest_removals(store)?
    };
    remove_packs(store, active, &ids, remember_from)?;
    // removals make the tree larger at first
    store.flush_tree(active);
    if disk_bytes(&store.layout.index()) > SMALL_INDEX + live.len() as u64 * INDEX_ENTRY {
        store.shrink_tree(active)?;
    }
    Ok(())
}

/// The first of the remembered removals; `None` if nothing was removed.
fn newest_removals(store: &StoreInner) -> Result<Option<FrameLocation>, CacheError> {
    let removals = find_frames(store, |content| match content {
        FrameContent::Remove { keys, .. } => Some(keys.len()),
        _ => None,
    })?;
    let mut count = 0;
    let newest = removals.iter().rev().take_while(|(keys, _)| {
        count += keys;
        count <= REMEMBERED
    });
    Ok(newest.last().map(|(_, at)| *at))
}

/// The texts that no entry was made from.
fn unused_texts(store: &StoreInner, live: &[Record]) -> Vec<(Digest, FrameLocation)> {
    // the sources of a damaged entry are unknown, so every text is kept
    let Some(used) = used_texts(&store.packs, live) else {
        return Vec::new();
    };
    let tables = store.tables();
    tables
        .texts
        .iter()
        .filter(|(digest, _)| !used.contains(digest))
        .map(|(digest, at)| (*digest, *at))
        .collect()
}

/// The texts that entries were made from; `None` if a header cannot be read.
fn used_texts<'r>(
    packs: &PackFiles,
    records: impl IntoIterator<Item = &'r Record>,
) -> Option<HashSet<Digest>> {
    let mut used = HashSet::new();
    for record in records {
        match packs.decoded_header(record).ok()? {
            DecodedHeader::Whole(header) => used.extend(header.texts()),
            // nothing can read a text that no entry names any more
            DecodedHeader::FieldLost => {}
        }
    }
    Some(used)
}

/// The packs of which more than half is dead.
fn mostly_dead(store: &StoreInner) -> Result<BTreeSet<u32>, CacheError> {
    let tables = store.tables();
    let live = LiveFrames {
        tables: &tables,
        older_go: false,
        remember_from: None,
    };
    let mut mostly_dead = BTreeSet::new();
    for id in store.layout.pack_ids()? {
        let frames = find_frames_in(&store.packs, id, |at, header| {
            let dead = if live.is_dead(at, header) {
                at.len()
            } else {
                0
            };
            Some((dead, at.len()))
        });
        let frames = frames.map_err(CacheError::io("read", &store.layout.pack(id)))?;
        let (dead, all) = frames
            .iter()
            .fold((0, 0), |(dead, all), ((d, a), _)| (dead + d, all + a));
        if dead * 2 > all {
            mostly_dead.insert(id);
        }
    }
    Ok(mostly_dead)
}

/// A step of a batch that a pack has.
struct StoredStep {
    nonce: BatchNonce,
    step: BatchStep,
    pack: u32,
}

/// The steps of batches in the packs. A step that the tables have no more may still be in a pack that a killed prune has
/// left, and an index that is built from the packs would have it again.
fn stored_steps(store: &StoreInner) -> Result<Vec<StoredStep>, CacheError> {
    if store.tables().journal.is_empty() {
        return Ok(Vec::new());
    }
    let steps = find_frames(store, |content| match content {
        FrameContent::Journal(nonce, step) => Some((*nonce, *step)),
        _ => None,
    })?;
    Ok(steps
        .into_iter()
        .map(|((nonce, step), at)| StoredStep {
            nonce,
            step,
            pack: at.pack,
        })
        .collect())
}

/// The steps of closed batches that can be removed. The closing of a batch is removed by a later prune than its other
/// steps: without it, the batch would be open again.
fn removable_steps(steps: Vec<StoredStep>) -> Vec<StoredStep> {
    let (mut closed, mut opened) = (BTreeSet::new(), BTreeSet::new());
    for StoredStep { nonce, step, .. } in &steps {
        let nonces = if *step == BatchStep::Closed {
            &mut closed
        } else {
            &mut opened
        };
        nonces.insert(*nonce);
    }
    let removable = steps.into_iter().filter(|StoredStep { nonce, step, .. }| {
        closed.contains(nonce) && (*step != BatchStep::Closed || !opened.contains(nonce))
    });
    removable.collect()
}

/// What `pick` takes from the frames of all packs, in their order, each with its place.
fn find_frames<T>(
    store: &StoreInner,
    pick: impl Fn(&FrameContent) -> Option<T>,
) -> Result<Vec<(T, FrameLocation)>, CacheError> {
    let mut found = Vec::new();
    for id in store.layout.pack_ids()? {
        let picked = find_frames_in(&store.packs, id, |_, header| pick(&header.content))
            .map_err(CacheError::io("read", &store.layout.pack(id)))?;
        found.extend(picked);
    }
    Ok(found)
}

fn find_frames_in<T>(
    packs: &PackFiles,
    id: u32,
    pick: impl Fn(FrameLocation, &FrameHeader) -> Option<T>,
) -> io::Result<Vec<(T, FrameLocation)>> {
    let file = packs.file(id)?;
    let mut scanner = PackScanner::new(id, &file, 0, file.metadata()?.len());
    let mut found = Vec::new();
    while let Some(item) = scanner.next()? {
        if let PackItem::Frame(at, header) = item {
            found.extend(pick(at, &header).map(|picked| (picked, at)));
        }
    }
    Ok(found)
}

/// Appends the live frames of the packs in `ids` to a new pack, then removes these packs. Tombstones before
/// `remember_from` that no longer cover anything are dropped.
fn remove_packs(
    store: &StoreInner,
    active: &mut ActivePack,
    ids: &BTreeSet<u32>,
    remember_from: Option<FrameLocation>,
) -> Result<(), CacheError> {
    let all = store.layout.pack_ids()?;
    let gone: Vec<u32> = all.iter().copied().filter(|id| ids.contains(id)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    // the new frames come after all others
    store.start_next_pack(active)?;
    let mut older_go = true;
    for id in &all {
        if ids.contains(id) {
            append_live(store, active, *id, older_go, remember_from)?;
        } else {
            older_go = false;
        }
    }
    store.sync_pack(active)?;
    store.flush_tree(active);
    // oldest first, so that a tombstone is removed after what it covers
    for id in &gone {
        let path = store.layout.pack(*id);
        guarded::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        store.layout.sync_folder(&store.layout.packs())?;
        store.packs.close(*id);
    }
    store.forget_packs(active, gone);
    Ok(())
}

/// Appends the live frames of a pack. `older_go` says whether all older packs are removed, too.
fn append_live(
    store: &StoreInner,
    active: &mut ActivePack,
    id: u32,
    older_go: bool,
    remember_from: Option<FrameLocation>,
) -> Result<(), CacheError> {
    const BYTES: u64 = 4 << 20;
    let path = store.layout.pack(id);
    let file = store
        .packs
        .file(id)
        .map_err(CacheError::io("read", &path))?;
    let len = file
        .metadata()
        .map_err(CacheError::io("read", &path))?
        .len();
    let shared = store
        .packs
        .fields(id, len)
        .map_err(CacheError::io("read", &path))?;
    let mut scanner = PackScanner::new(id, &file, 0, len);
    loop {
        let (mut frames, mut bytes, mut is_end): (Vec<PortableFrame>, u64, bool) =
            (Vec::new(), 0, false);
        // held for a part of the pack at a time, because appending changes the tables
        let tables = store.tables();
        let live = LiveFrames {
            tables: &tables,
            older_go,
            remember_from,
        };
        while bytes < BYTES && frames.len() < BATCH {
            match scanner.next().map_err(CacheError::io("read", &path))? {
                None => {
                    is_end = true;
                    break;
                }
                Some(PackItem::Frame(at, header)) => {
                    let taken = live.take_over(at, &header, || read_frame(&file, at), &shared);
                    frames.extend(taken.map_err(CacheError::io("read", &path))?);
                    bytes += at.len();
                }
                Some(PackItem::Damaged { .. } | PackItem::Torn { .. }) => {}
            }
        }
        drop(tables);
        if !frames.is_empty() {
            store.append_portable(active, frames, false)?;
        }
        if is_end {
            return Ok(());
        }
    }
}
