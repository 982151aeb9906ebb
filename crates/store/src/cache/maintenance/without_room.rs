//! Pruning on a full disk: needs no more space than removing the index frees.
//!
//! The index is removed first, since it can be built again from the packs. Then each pack with dead frames is emptied
//! from its end: the live frames of its last part are appended to a new pack and synced, and the part is cut off. So
//! each step frees at least what it takes, and a crash between the two leaves frames twice, which is harmless. No
//! tombstones are written: after a crash, a pack that was not emptied yet still has its entries, and the next prune
//! removes them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::live_frames::LiveFrames;
use super::{PruneCounts, unused_texts};
use crate::cache::entry::FrameLocation;
use crate::cache::error::CacheError;
use crate::cache::index::scan::scan;
use crate::cache::index::{fresh_index, ready_index, remove_bad, remove_folder};
use crate::cache::packs::folder::{self, FolderKind, Layout};
use crate::cache::packs::frame::{FrameHeader, PackHeader};
use crate::cache::packs::{PackFiles, PackItem, PackScanner, read_frame};
use crate::cache::writing::active_pack::cut;
use crate::digest::{ActionKey, Digest};
use base::files::{is_out_of_space, open_options, sync_folder};
use base::guarded;

/// Bytes of live frames that are moved at once; less where there is less room.
const PART: u64 = 1 << 20;

/// Removes entries from the cache in `dir` without an index and almost without room. Unlike
/// [`crate::cache::Store::prune`], it remembers no removals. The index is built again when the cache is opened next.
///
/// # Errors
/// If another process has the cache open, or there is no room for a single frame; everything that was not pruned is
/// intact.
pub fn prune_without_room(
    dir: &Path,
    command: &str,
    keys: &[ActionKey],
    kept: &HashSet<Digest>,
) -> Result<PruneCounts, CacheError> {
    let layout = Layout::new(dir);
    if layout.inspect()? == FolderKind::Empty {
        return Ok(PruneCounts::default());
    }
    let _lock = folder::lock(&layout.lock(), dir, command)?;
    for folder in [layout.index(), fresh_index(&layout), ready_index(&layout)] {
        remove_folder(&folder)?;
    }
    remove_bad(&layout)?;
    let packs = PackFiles::new(layout.clone());
    let (mut index, _) = scan(&layout, &packs)?;
    let mut counts = PruneCounts::default();
    for key in keys {
        if let Some(record) = index.find(key) {
            counts.entries += 1;
            counts.bytes += record.stored_bytes();
            index.forget_record(key);
        }
    }
    for (digest, _) in unused_texts(&packs, &index, kept) {
        index.forget_text(&digest);
    }
    let ids = layout.pack_ids()?;
    let id = ids.last().map_or(1, |id| id + 1);
    let mut target = CompactedPack {
        layout: &layout,
        id,
        file: None,
        len: 0,
    };
    let gone = ids.iter().copied().collect();
    let live = LiveFrames {
        index: &index,
        gone: &gone,
        older_go: true,
        remember_from: None,
    };
    for id in ids {
        empty_pack(&layout, &packs, id, &live, &mut target)?;
    }
    layout.sync_folder(&layout.packs())?;
    Ok(counts)
}

/// The new pack, which exists once a frame was moved.
struct CompactedPack<'l> {
    layout: &'l Layout,
    id: u32,
    file: Option<File>,
    len: u64,
}

impl CompactedPack<'_> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write(bytes);
        if written.is_err() && self.file.is_some() {
            cut(&self.layout.pack(self.id), self.len)?;
        }
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let path = self.layout.pack(self.id);
                let mut options = open_options(&path);
                options.read(true).append(true).create(true);
                let mut file = guarded::open_with(&mut options, &path)?;
                let header = PackHeader::new(self.id)?.encode();
                // An attempt before this one may have left a part of a header.
                cut(&path, 0)?;
                file.write_all(&header)?;
                // The frames that are moved into it are removed elsewhere, so its name must last, too.
                sync_folder(&self.layout.packs()).map_err(io::Error::other)?;
                self.len = header.len() as u64;
                self.file.insert(file)
            }
        };
        file.write_all(bytes)?;
        file.sync_all()?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Moves the live frames of a pack, if it has dead ones, and removes it.
fn empty_pack(
    layout: &Layout,
    packs: &PackFiles,
    id: u32,
    live: &LiveFrames<'_>,
    target: &mut CompactedPack<'_>,
) -> Result<(), CacheError> {
    let path = layout.pack(id);
    let file = packs.file(id).map_err(CacheError::io("read", &path))?;
    let len = file
        .metadata()
        .map_err(CacheError::io("read", &path))?
        .len();
    let mut scanner = PackScanner::new(id, &file, 0, len);
    let mut frames = Vec::new();
    while let Some(item) = scanner.next().map_err(CacheError::io("read", &path))? {
        if let PackItem::Frame(at, header) = item {
            frames.push((at, header));
        }
    }
    if !frames.iter().any(|(at, header)| live.is_dead(*at, header)) {
        return Ok(());
    }
    let shrinking = guarded::open_with(File::options().write(true), &path)
        .map_err(CacheError::io("open", &path))?;
    let mut most = PART;
    while !frames.is_empty() {
        let from = last_part(&frames, most);
        let (_, moved) = frames.split_at(from);
        let size: u64 = moved.iter().map(|(at, _)| at.len()).sum();
        let mut part = Vec::new();
        for (at, header) in moved {
            let taken = live.take_over(*at, header, || read_frame(&file, *at));
            part.extend(taken.map_err(CacheError::io("read", &path))?.concat());
        }
        if !part.is_empty()
            && let Err(error) = target.append(&part)
        {
            if !is_out_of_space(&error) || moved.len() == 1 {
                return Err(CacheError::io("write to", &layout.pack(target.id))(error));
            }
            most = size / 2;
            continue;
        }
        let start = frames.get(from).map_or(0, |(at, _)| at.offset);
        shrinking
            .set_len(start)
            .map_err(CacheError::io("shorten", &path))?;
        frames.truncate(from);
    }
    packs.close(id);
    guarded::remove_file(&path).map_err(CacheError::io("remove", &path))
}

/// The index of the first of the last frames that have at most `most` bytes together. There is at least one of them.
fn last_part(frames: &[(FrameLocation, FrameHeader)], most: u64) -> usize {
    let (mut size, mut from) = (0, frames.len());
    for (index, (at, _)) in frames.iter().enumerate().rev() {
        size += at.len();
        if size > most && from < frames.len() {
            break;
        }
        from = index;
    }
    from
}
