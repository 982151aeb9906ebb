//! Keeps a cache small and sound: removes entries and the room that they take. `verify` finds damage.
//!
//! The tree goes first. Then one pack after the other that has something to remove is rewritten: its live frames are
//! appended to a new pack, and it is removed once they are on disk. So a full disk needs no more room than the live part
//! of one pack, and a process that is killed at any moment leaves frames that are stored twice, or entries that the next
//! prune removes. What is live is read from the packs.

pub(super) mod verify;

use std::collections::HashSet;
use std::io;

use crate::cache::entry::{FrameLocation, Record};
use crate::cache::error::CacheError;
use crate::cache::index::{Index, scan};
use crate::cache::packs::frame::{self, BatchNonce, BatchStep, FrameContent, FrameHeader};
use crate::cache::packs::{PackFiles, PackItem, PackScanner, read_frame};
use crate::cache::writing::{ActivePack, StoreInner};
use crate::digest::{ActionKey, Digest};
use base::guarded;

/// What a prune removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Entries.
    pub entries: u64,
    /// Their size in the packs.
    pub bytes: u64,
}

/// The number of frames that are appended at once.
const BATCH: usize = 512;
/// The bytes of memos that are kept for each byte of an entry: rows that were derived from small entries have eight.
const MEMOS: u64 = 16;

/// Removes entries and the texts that neither an entry nor `kept` names; unknown keys are ignored.
pub(super) fn prune(
    store: &StoreInner,
    keys: &[ActionKey],
    kept: &HashSet<Digest>,
) -> Result<PruneCounts, CacheError> {
    let mut counts = PruneCounts::default();
    let prune = |active: &mut ActivePack| {
        let (mut index, _) = scan(&store.layout, &store.packs)?;
        let mut gone = HashSet::new();
        for key in keys {
            let Some(record) = index.find(key) else {
                continue;
            };
            counts.entries += 1;
            counts.bytes += record.stored_bytes();
            index.forget_record(key);
            gone.insert(*key);
        }
        for (digest, _) in unused_texts(&store.packs, &index, kept) {
            index.forget_text(&digest);
        }
        for (nonce, step) in removable_steps(&index) {
            index.forget_step(nonce, step);
        }
        let packs = worth_rewriting(store, &index, &gone)?;
        if packs.is_empty() {
            return Ok(());
        }
        rewrite(store, active, &index, &packs)
    };
    store.exclusively(prune)?;
    Ok(counts)
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

/// The steps of closed batches that can be removed. The closing of a batch is removed by a later prune than its other
/// steps: without it, the batch would be open again. `index` has each step that any frame records.
fn removable_steps(index: &Index) -> Vec<(BatchNonce, BatchStep)> {
    let has = |nonce, step| index.step(nonce, step).is_some();
    let opened = |nonce| has(nonce, BatchStep::Intent) || has(nonce, BatchStep::Submitted);
    let is_removable = |(nonce, step): &(BatchNonce, BatchStep)| {
        has(*nonce, BatchStep::Closed) && !(*step == BatchStep::Closed && opened(*nonce))
    };
    let steps = index.steps().into_iter().map(|(step, _)| step);
    steps.filter(is_removable).collect()
}

/// The packs that have something that must go, or are mostly dead; that with the least to keep is the first. What is dead
/// because something later took its place may stay: it is never found.
fn worth_rewriting(
    store: &StoreInner,
    index: &Index,
    gone: &HashSet<ActionKey>,
) -> Result<Vec<u32>, CacheError> {
    let mut packs = Vec::new();
    for id in store.layout.pack_ids()? {
        let (mut must_go, mut dead, mut live) = (false, 0, 0);
        each_frame(store, id, |at, header| {
            if is_live(index, &[], at, header) {
                live += at.len();
                return;
            }
            dead += at.len();
            must_go |= match header.content {
                FrameContent::Reply(_) | FrameContent::Failure { .. } => {
                    gone.contains(&ActionKey(header.key))
                }
                FrameContent::Text | FrameContent::Memo => index.text(&header.key).is_none(),
                FrameContent::Journal(nonce, step) => index.step(nonce, step).is_none(),
                _ => false,
            };
        })?;
        if must_go || dead > live {
            packs.push((live, id));
        }
    }
    packs.sort_unstable();
    Ok(packs.into_iter().map(|(_, id)| id).collect())
}

fn each_frame(
    store: &StoreInner,
    id: u32,
    mut visit: impl FnMut(FrameLocation, &FrameHeader),
) -> Result<(), CacheError> {
    let path = store.layout.pack(id);
    let read = || CacheError::io("read", &path);
    let file = store.packs.file(id).map_err(read())?;
    let len = file.metadata().map_err(read())?.len();
    let mut scanner = PackScanner::new(id, &file, 0, len);
    while let Some(item) = scanner.next().map_err(read())? {
        if let PackItem::Frame(at, header) = item {
            visit(at, &header);
        }
    }
    Ok(())
}

/// Appends the live frames of each of these packs to a new one and removes it. Then the tree is made again.
fn rewrite(
    store: &StoreInner,
    active: &mut ActivePack,
    index: &Index,
    packs: &[u32],
) -> Result<(), CacheError> {
    store.remove_tree()?;
    if !packs.is_empty() {
        // the new frames come after all others
        store.start_next_pack(active)?;
    }
    for id in packs {
        append_live(store, active, *id, index, packs)?;
        store.sync_pack(active)?;
        let path = store.layout.pack(*id);
        guarded::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        store.layout.sync_folder(&store.layout.packs())?;
        store.packs.close(*id);
    }
    store.make_tree(active)
}

/// Appends the live frames of a pack.
fn append_live(
    store: &StoreInner,
    active: &mut ActivePack,
    id: u32,
    index: &Index,
    going: &[u32],
) -> Result<(), CacheError> {
    const BYTES: usize = 4 << 20;
    let mut live = Vec::new();
    each_frame(store, id, |at, header| {
        if is_live(index, going, at, header) {
            live.push((at, header.clone()));
        }
    })?;
    let path = store.layout.pack(id);
    let file = store
        .packs
        .file(id)
        .map_err(CacheError::io("read", &path))?;
    let (mut frames, mut bytes) = (Vec::new(), 0);
    for (at, header) in live {
        let read = read_frame(&file, at).and_then(|frame| with_what_follows(index, &header, frame));
        for frame in read.map_err(CacheError::io("read", &path))? {
            bytes += frame.len();
            frames.push(frame);
        }
        if bytes >= BYTES || frames.len() >= BATCH {
            store.append(active, &std::mem::take(&mut frames), false)?;
            bytes = 0;
        }
    }
    store.append(active, &frames, false).map(drop)
}

/// Whether anything needs a frame. `going` are the packs that are rewritten, with all that belongs to their entries.
fn is_live(index: &Index, going: &[u32], at: FrameLocation, header: &FrameHeader) -> bool {
    let record = || index.find(&ActionKey(header.key));
    match &header.content {
        FrameContent::Reply(_) | FrameContent::Failure { .. } => {
            record().is_some_and(|record| record.location == at)
        }
        FrameContent::ParseResult(result) => record().is_some_and(|record| {
            record.raw == header.digest
                && record.status == *result
                && !going.contains(&record.location.pack)
        }),
        FrameContent::Text | FrameContent::Memo => index.text(&header.key) == Some(at),
        FrameContent::Journal(nonce, step) => index.step(*nonce, *step) == Some(at),
        FrameContent::Unknown => true,
        FrameContent::Touch { day, keys } => keys.iter().any(|key| index.day(key) == Some(*day)),
        FrameContent::Latest(place) => {
            record().is_some_and(|record| index.latest_at(place) == Some(record.key))
        }
    }
}

/// A live frame with the frames that follow it at its new place. A reply is followed by its parse result, which would
/// otherwise come before it, and by the latest action of its place, because the reply would otherwise become the latest.
fn with_what_follows(
    index: &Index,
    header: &FrameHeader,
    frame: Vec<u8>,
) -> io::Result<Vec<Vec<u8>>> {
    let mut frames = vec![frame];
    let record = index.find(&ActionKey(header.key));
    if let (FrameContent::Reply(summary), Some(record)) = (&header.content, record) {
        if record.status.is_parsed() {
            let parsed = frame::parse_result(record.key, record.raw, &record.status);
            frames.push(parsed.map_err(io::Error::other)?);
        }
        let latest = index.latest_at(&summary.place);
        if let Some(latest) = latest.filter(|latest| *latest != record.key) {
            let latest = frame::latest(&summary.place, latest);
            frames.push(latest.map_err(io::Error::other)?);
        }
    }
    Ok(frames)
}
