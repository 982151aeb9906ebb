//! Whether index and packs agree when a cache is opened, and the repair of what an interrupted write left.
//!
//! The frames after the indexed ones are indexed; if index and packs disagree in any other way, the index is rebuilt from
//! the packs. An interrupted write at the end of the newest pack is cut off.

use std::fs;
use std::io;

use crate::cache::error::CacheError;
use crate::cache::index::disk_index::DiskIndex;
use crate::cache::index::index_folder::{fresh_index, is_older_index, remove_folder};
use crate::cache::index::pack_index::{IndexQueries, PackIndex, PackState, VerifiedTables};
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::PackHeader;
use crate::cache::packs::pack::{PackFiles, PackItem, PackScanner, read_pack_header};

/// Reads and verifies a small cache, if it has an index to continue with. On a read error the index decides.
pub(super) fn verify_small(layout: &Layout, packs: &PackFiles) -> Result<Option<VerifiedTables>, CacheError> {
    if !DiskIndex::is_in(&layout.index()) {
        return Ok(None);
    }
    Ok(VerifiedTables::read(&layout.pack_ids()?, packs).unwrap_or(None))
}

/// Why the index must be rebuilt; `None` for a new cache and one of an older version, where there is nothing to report.
pub(in crate::cache) struct RebuildReason(pub(in crate::cache) Option<String>);

impl<T: Into<String>> From<T> for RebuildReason {
    fn from(text: T) -> RebuildReason {
        RebuildReason(Some(text.into()))
    }
}

/// The index, if it agrees with the packs except for what was appended last, and the state of the newest pack. What
/// was appended is indexed.
pub(super) fn open_current(
    layout: &Layout,
    packs: &PackFiles,
    on_disk: &[PackState],
) -> Result<(DiskIndex, PackState), RebuildReason> {
    if !DiskIndex::is_in(&layout.index()) {
        let is_new = on_disk.is_empty() || is_older_index(&layout.index());
        return Err(if is_new { RebuildReason(None) } else { "it was missing".into() });
    }
    let index = DiskIndex::open(&layout.index()).map_err(|fault| fault.text().to_owned())?;
    let known = index.packs();
    let Some((newest, older)) = on_disk.split_last() else { return Err("the packs are missing".into()) };
    let (last_known, older_known) = match known.split_last() {
        Some((last, rest)) if last.id == newest.id => (*last, rest),
        // the newest pack was created, and nothing of it is indexed yet
        _ => (PackState { good: PackHeader::LEN as u64, ..*newest }, known.as_slice()),
    };
    let agree = |a: &PackState, b: &PackState| a.id == b.id && a.generation == b.generation && a.good == b.len;
    let older_agree = older.len() == older_known.len() && older_known.iter().zip(older).all(|(a, b)| agree(a, b));
    let grown = last_known.generation == newest.generation && last_known.good <= newest.len;
    if !older_agree || !grown {
        return Err("it was built from other packs".into());
    }
    let good = replay(&index, packs, last_known, newest.len)?;
    Ok((index, PackState { good, ..*newest }))
}

/// Indexes the frames after those that are indexed. Returns where the last whole one ends.
fn replay(index: &DiskIndex, packs: &PackFiles, known: PackState, len: u64) -> Result<u64, RebuildReason> {
    if known.good == len {
        return Ok(len);
    }
    let file = packs.file(known.id).map_err(|e| e.to_string())?;
    let mut scanner = PackScanner::new(known.id, &file, known.good, len);
    let mut frames = Vec::new();
    let mut good = known.good;
    while let Some(found) = scanner.next().map_err(|e| e.to_string())? {
        match found {
            PackItem::Frame(at, header) => {
                good = at.end();
                frames.push((at, header));
            }
            PackItem::Damaged { what, .. } => return Err(what.into()),
            PackItem::Torn { .. } => {}
        }
    }
    let state = PackState { good, ..known };
    index.append(&frames, state).and_then(|()| index.flush()).map_err(|fault| fault.text().to_owned())?;
    Ok(good)
}

/// The packs on disk. If the newest pack has no complete header, its creation was interrupted: it is removed and
/// created again.
pub(super) fn pack_states(layout: &Layout, packs: &PackFiles) -> Result<Vec<PackState>, CacheError> {
    let mut states = Vec::new();
    for id in layout.pack_ids()? {
        let read = || {
            let file = packs.file(id)?;
            let len = file.metadata()?.len();
            let header = read_pack_header(&file, len)?;
            // this generation agrees with no index, so that a pack with a damaged header is scanned
            let generation = header.map_or(u32::MAX, |header| header.generation);
            io::Result::Ok(PackState { id, generation, good: len, len })
        };
        states.push(read().map_err(CacheError::io("read", &layout.pack(id)))?);
    }
    if let Some(last) = states.last().filter(|last| last.len < PackHeader::LEN as u64).copied() {
        states.pop();
        let path = layout.pack(last.id);
        packs.close(last.id);
        fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
    }
    Ok(states)
}

/// Removes what an interrupted rewrite or rebuild left behind.
pub(super) fn remove_leftovers(layout: &Layout) -> Result<(), CacheError> {
    remove_folder(&fresh_index(layout))?;
    let folder = layout.packs();
    for entry in fs::read_dir(&folder).map_err(CacheError::io("list", &folder))? {
        let path = entry.map_err(CacheError::io("list", &folder))?.path();
        if path.extension().is_some_and(|extension| extension == "rewrite") {
            fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Whether the index lacks any entry of the packs.
pub(super) fn lacks_entries(index: &DiskIndex, tables: &PackIndex) -> bool {
    let lacks_record = tables.records.values().any(|record| match index.find(&record.key) {
        Ok(Some(found)) => found.location != record.location,
        Ok(None) | Err(_) => true,
    });
    lacks_record || !index.journal().is_ok_and(|journal| journal == tables.journal)
}

/// What is to be reported of an index that was rebuilt when the cache was opened.
pub(in crate::cache) fn rebuilt(layout: &Layout, reason: &RebuildReason, tables: &PackIndex) -> Vec<String> {
    let why = reason.0.iter().map(|why| {
        let (root, entries) = (layout.root().display(), tables.records.len());
        format!("{root}: the index was rebuilt from the packs, {entries} entries ({why})")
    });
    let damage = tables.damage.iter().map(|damage| format!("{damage}. `compeval cache verify` removes it"));
    why.chain(damage).collect()
}
