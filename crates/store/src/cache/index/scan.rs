//! Fills an index from the frame headers of the packs: from all of them if there is no sled tree to ask, else from those
//! that the tree does not have yet.

use std::fs::File;
use std::io;

use super::Index;
use super::items::Watermark;
use super::tree::Watermarks;
use crate::cache::error::CacheError;
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::PackHeader;
use crate::cache::packs::{PackFiles, PackItem, PackScanner, read_at, read_pack_header};

/// A pack as it was when it was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackState {
    pub id: u32,
    pub nonce: u64,
    /// Where the last whole frame ends.
    pub good: u64,
    pub len: u64,
}

/// Scans the frame headers of all packs.
pub(crate) fn scan(
    layout: &Layout,
    packs: &PackFiles,
) -> Result<(Index, Vec<PackState>), CacheError> {
    /// A prune in another process may remove packs during the scan, after it has copied their live frames to a new one.
    const ATTEMPTS: usize = 5;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut index = Index::default();
        match scan_all(&mut index, &layout.pack_ids()?, packs) {
            Err((_, e)) if e.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
            Err((id, e)) => return Err(CacheError::io("read", &layout.pack(id))(e)),
            Ok(states) => return Ok((index, states)),
        }
    }
}

fn scan_all(
    index: &mut Index,
    ids: &[u32],
    packs: &PackFiles,
) -> Result<Vec<PackState>, (u32, io::Error)> {
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        let is_newest = ids.last() == Some(id);
        states.push(
            scan_pack(index, *id, PackHeader::LEN as u64, is_newest, packs)
                .map_err(|error| (*id, error))?,
        );
    }
    Ok(states)
}

/// Applies the frames of a pack from an offset on. A cut-off end is damage, but in the newest pack, where it is an
/// interrupted write.
fn scan_pack(
    index: &mut Index,
    id: u32,
    from: u64,
    is_newest: bool,
    packs: &PackFiles,
) -> io::Result<PackState> {
    let file = packs.file(id)?;
    let len = file.metadata()?.len();
    let mut state = PackState {
        id,
        nonce: 0,
        good: len,
        len,
    };
    match read_pack_header(&file, len)? {
        Ok(header) => state.nonce = header.nonce,
        Err(what) => index.damage.push(packs.damage_at(id, 0, what)),
    }
    let mut scanner = PackScanner::new(id, &file, from, len);
    while let Some(item) = scanner.next()? {
        match item {
            PackItem::Frame(at, header) => index.apply(at, &header),
            PackItem::Damaged { from, what, .. } => {
                index.damage.push(packs.damage_at(id, from, what))
            }
            PackItem::Torn { from, what } => {
                state.good = from;
                if !is_newest {
                    index.damage.push(packs.damage_at(id, from, what));
                }
            }
        }
    }
    Ok(state)
}

/// The watermark of a pack if the tree has all of its frames before `good`.
pub(crate) fn watermark(file: &File, nonce: u64, good: u64) -> io::Result<Watermark> {
    const TAIL: u64 = 64;
    let covered = good.min(TAIL);
    let mut bytes = vec![0; covered as usize];
    read_at(file, &mut bytes, good - covered)?;
    Ok(Watermark {
        nonce,
        good,
        tail: crc32fast::hash(&bytes),
    })
}

/// The watermarks of packs whose frames are all in the index.
pub(crate) fn watermarks(states: &[PackState], packs: &PackFiles) -> io::Result<Watermarks> {
    let marks = states.iter().map(|state| {
        Ok((
            state.id,
            watermark(&*packs.file(state.id)?, state.nonce, state.good)?,
        ))
    });
    marks.collect()
}

/// Adds the frames of the packs that the tree did not have. Returns the states of the packs; the error says why the
/// tree does not belong to these packs.
pub(crate) fn catch_up(
    index: &mut Index,
    marks: &Watermarks,
    ids: &[u32],
    packs: &PackFiles,
) -> Result<Vec<PackState>, String> {
    if let Some((id, _)) = marks
        .iter()
        .find(|(id, _)| !ids.contains(id) && index.uses(**id))
    {
        return Err(format!("pack {id} is missing"));
    }
    let newest_mark = marks.keys().next_back().copied().unwrap_or(0);
    let mut states = Vec::new();
    for id in ids {
        let from = match marks.get(id) {
            Some(mark) => {
                if !is_built_from(mark, *id, packs).map_err(|e| e.to_string())? {
                    return Err("it was built from other packs".into());
                }
                mark.good
            }
            None if *id > newest_mark => PackHeader::LEN as u64,
            None => return Err("it was built from other packs".into()),
        };
        let is_newest = ids.last() == Some(id);
        states.push(scan_pack(index, *id, from, is_newest, packs).map_err(|e| e.to_string())?);
    }
    Ok(states)
}

/// Whether the tree was built from this pack.
fn is_built_from(mark: &Watermark, id: u32, packs: &PackFiles) -> io::Result<bool> {
    let file = packs.file(id)?;
    let len = file.metadata()?.len();
    match read_pack_header(&file, len)? {
        Ok(header) if mark.good <= len && header.nonce == mark.nonce => {
            Ok(*mark == watermark(&file, mark.nonce, mark.good)?)
        }
        _ => Ok(false),
    }
}
