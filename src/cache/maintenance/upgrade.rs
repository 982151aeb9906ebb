//! Upgrading: writes packs of an older format as packed frames, which take half the space.

use std::collections::BTreeSet;
use std::io;

use super::prune::{newest_removals, rewrite_packs};
use crate::cache::error::CacheError;
use crate::cache::packs::frame::{FrameContent, MAGIC};
use crate::cache::packs::pack::{PackItem, PackScanner};
use crate::cache::writing::active_pack::ActivePack;
use crate::cache::writing::inner::StoreInner;

/// Rewrites the packs that have entries or results of parsing in frames of version 1. Returns how many.
pub(in crate::cache) fn upgrade(store: &StoreInner, active: &mut ActivePack) -> Result<usize, CacheError> {
    let mut older = BTreeSet::new();
    for id in store.layout.pack_ids()? {
        if is_older(store, id).map_err(CacheError::io("read", &store.layout.pack(id)))? {
            older.insert(id);
        }
    }
    if !older.is_empty() {
        rewrite_packs(store, active, &older, newest_removals(store)?)?;
    }
    Ok(older.len())
}

/// Whether a pack has frames that are packed since format 3.
fn is_older(store: &StoreInner, id: u32) -> io::Result<bool> {
    let file = store.packs.file(id)?;
    let mut scanner = PackScanner::new(id, &file, 0, file.metadata()?.len());
    while let Some(found) = scanner.next()? {
        let PackItem::Frame(at, header) = found else { continue };
        match header.content {
            FrameContent::ParseResult(_) => return Ok(true),
            FrameContent::Reply(_) | FrameContent::Failure { .. } if scanner.frame(at)?.starts_with(&MAGIC) => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}
