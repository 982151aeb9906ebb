//! Keeps a cache small and sound. `verify` finds damage, and `without_room` prunes on a full disk.
//!
//! A removal is a tombstone frame, which is on disk before any pack is changed. Then the live frames of each pack that has
//! dead ones are appended to a new pack, and the old pack is removed once they are on disk (`remove_packs`). So a process
//! that is killed at any moment can only leave frames that are stored twice, which is harmless. What is live is read from
//! the packs, and not from the tree.

mod live_frames;
pub(super) mod verify;
pub(super) mod without_room;

use std::collections::{BTreeSet, HashSet};
use std::io;

use crate::cache::entry::{FrameLocation, Record, RemovalReason};
use crate::cache::error::CacheError;
use crate::cache::index::Index;
use crate::cache::index::scan::scan;
use crate::cache::packs::frame::{self, FrameContent, FrameHeader};
use crate::cache::packs::frame::{BatchNonce, BatchStep};
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
/// The number of entries in one tombstone frame, and of frames that are appended at once.
const BATCH: usize = 512;
/// The bytes of memos that are kept for each byte of an entry: rows that were derived from small entries have eight.
const MEMOS: u64 = 16;
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
    let keys: BTreeSet<&ActionKey> = keys.iter().collect();
    let mut records: Vec<Record> = keys.into_iter().filter_map(|key| store.find(key)).collect();
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

/// Writes tombstones, durably.
fn remove(
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
    let latest = store.read(|index| index.latest_at(&place));
    (latest == Some(record.key)).then_some(place)
}

fn reclaim(
    store: &StoreInner,
    active: &mut ActivePack,
    removed: &[Record],
    kept: &HashSet<Digest>,
) -> Result<(), CacheError> {
    let (mut index, _) = scan(&store.layout, &store.packs)?;
    let unused = unused_texts(&store.packs, &index, kept);
    let found = survey(store, &index)?;
    let done = removable_steps(&found.steps);
    let mut ids = found.mostly_dead;
    ids.extend(removed.iter().map(|record| record.location.pack));
    ids.extend(unused.iter().map(|(_, at)| at.pack));
    ids.extend(done.iter().map(|(_, pack)| pack));
    if ids.is_empty() {
        return Ok(());
    }
    let forget = |index: &mut Index| {
        unused
            .iter()
            .for_each(|(digest, _)| index.forget_text(digest));
        done.iter()
            .for_each(|((nonce, step), _)| index.forget_step(*nonce, *step));
    };
    forget(&mut index);
    store.change(forget);
    let entries = index.records().len() as u64;
    // an empty cache has nothing to remember
    let remember_from = newest(&found.removals).filter(|_| entries > 0);
    remove_packs(store, active, &index, &ids, remember_from)?;
    // removals make the tree larger at first
    store.flush_tree(active, &[])?;
    if disk_bytes(&store.layout.index()) > SMALL_INDEX + entries * INDEX_ENTRY {
        store.shrink_tree(active)?;
    }
    Ok(())
}

/// The texts that neither an entry nor `kept` names, and the oldest memos, if all of them take many times the room of the
/// entries.
fn unused_texts(
    packs: &PackFiles,
    index: &Index,
    kept: &HashSet<Digest>,
) -> Vec<(Digest, FrameLocation)> {
    let live = index.records();
    let mut used = kept.clone();
    for record in &live {
        match packs.header(record) {
            Ok(header) => used.extend(header.texts),
            // the sources of a damaged entry are unknown, so every text is kept
            Err(_) => return Vec::new(),
        }
    }
    let mut unused = index.texts();
    unused.retain(|(digest, _)| !used.contains(digest));
    unused.sort_unstable_by_key(|(_, at)| std::cmp::Reverse(*at));
    let entries: u64 = live.iter().map(Record::stored_bytes).sum();
    let mut room = entries.saturating_mul(MEMOS);
    unused.retain(|(_, at)| {
        let left = room.checked_sub(at.len());
        let is_kept = packs.is_memo(*at) && left.is_some();
        room = left.filter(|_| is_kept).unwrap_or(room);
        !is_kept
    });
    unused
}

/// A step of a batch, and a pack that has it.
type StoredStep = ((BatchNonce, BatchStep), u32);

/// What a pass over all frames finds.
#[derive(Default)]
struct Survey {
    /// The packs of which more than half is dead.
    mostly_dead: BTreeSet<u32>,
    /// A killed prune may have left the same step in two packs.
    steps: Vec<StoredStep>,
    /// The tombstones, each with the number of its entries.
    removals: Vec<(usize, FrameLocation)>,
}

fn survey(store: &StoreInner, index: &Index) -> Result<Survey, CacheError> {
    let live = LiveFrames {
        index,
        gone: &BTreeSet::new(),
        older_go: false,
        remember_from: None,
    };
    let mut found = Survey::default();
    for id in store.layout.pack_ids()? {
        let (mut dead, mut all) = (0, 0);
        let visited = each_frame(&store.packs, id, |at, header| {
            all += at.len();
            dead += if live.is_dead(at, header) {
                at.len()
            } else {
                0
            };
            match &header.content {
                FrameContent::Journal(nonce, step) => found.steps.push(((*nonce, *step), id)),
                FrameContent::Remove { keys, .. } => found.removals.push((keys.len(), at)),
                _ => {}
            }
        });
        visited.map_err(CacheError::io("read", &store.layout.pack(id)))?;
        if dead * 2 > all {
            found.mostly_dead.insert(id);
        }
    }
    Ok(found)
}

/// The first of the remembered removals; `None` if nothing was removed.
fn newest(removals: &[(usize, FrameLocation)]) -> Option<FrameLocation> {
    let mut count = 0;
    let newest = removals.iter().rev().take_while(|(keys, _)| {
        count += keys;
        count <= REMEMBERED
    });
    newest.last().map(|(_, at)| *at)
}

/// The steps of closed batches that can be removed. The closing of a batch is removed by a later prune than its other
/// steps: without it, the batch would be open again.
fn removable_steps(steps: &[StoredStep]) -> Vec<StoredStep> {
    let is_closing = |step: &StoredStep| step.0.1 == BatchStep::Closed;
    let nonces = |closing: bool| -> BTreeSet<BatchNonce> {
        let those = steps.iter().filter(|step| is_closing(step) == closing);
        those.map(|((nonce, _), _)| *nonce).collect()
    };
    let (closed, opened) = (nonces(true), nonces(false));
    let is_removable = |step: &&StoredStep| {
        let ((nonce, _), _) = step;
        closed.contains(nonce) && !(is_closing(step) && opened.contains(nonce))
    };
    steps.iter().filter(is_removable).copied().collect()
}

fn each_frame(
    packs: &PackFiles,
    id: u32,
    mut visit: impl FnMut(FrameLocation, &FrameHeader),
) -> io::Result<()> {
    let file = packs.file(id)?;
    let mut scanner = PackScanner::new(id, &file, 0, file.metadata()?.len());
    while let Some(item) = scanner.next()? {
        if let PackItem::Frame(at, header) = item {
            visit(at, &header);
        }
    }
    Ok(())
}

/// Appends the live frames of the packs in `ids` to a new pack, then removes these packs. Tombstones before
/// `remember_from` that no longer cover anything are dropped.
fn remove_packs(
    store: &StoreInner,
    active: &mut ActivePack,
    index: &Index,
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
    let mut live = LiveFrames {
        index,
        gone: ids,
        older_go: true,
        remember_from,
    };
    for id in all {
        if ids.contains(&id) {
            append_live(store, active, id, &live)?;
        } else {
            live.older_go = false;
        }
    }
    store.sync_pack(active)?;
    store.flush_tree(active, &[])?;
    // oldest first, so that a tombstone is removed after what it covers
    for id in &gone {
        let path = store.layout.pack(*id);
        guarded::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        store.layout.sync_folder(&store.layout.packs())?;
        store.packs.close(*id);
    }
    store.flush_tree(active, &gone)
}

/// Appends the live frames of a pack.
fn append_live(
    store: &StoreInner,
    active: &mut ActivePack,
    id: u32,
    live: &LiveFrames<'_>,
) -> Result<(), CacheError> {
    const BYTES: usize = 4 << 20;
    let path = store.layout.pack(id);
    let read = || CacheError::io("read", &path);
    let file = store.packs.file(id).map_err(read())?;
    let len = file.metadata().map_err(read())?.len();
    let mut scanner = PackScanner::new(id, &file, 0, len);
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while let Some(item) = scanner.next().map_err(read())? {
        let PackItem::Frame(at, header) = item else {
            continue;
        };
        let taken = live.take_over(at, &header, || read_frame(&file, at));
        for frame in taken.map_err(read())? {
            bytes += frame.len();
            frames.push(frame);
        }
        if bytes >= BYTES || frames.len() >= BATCH {
            store.append(active, &std::mem::take(&mut frames), false)?;
            bytes = 0;
        }
    }
    if frames.is_empty() {
        return Ok(());
    }
    store.append(active, &frames, false).map(drop)
}
