//! Upgrading: writes packs of an older format as packed frames, which take half the space.

use std::collections::BTreeSet;
use std::io;

use super::error::CacheError;
use super::frame::{FrameContent, MAGIC};
use super::inner::{ActivePack, StoreInner};
use super::pack::{PackItem, PackScanner};
use super::store::Store;

impl Store {
    /// Rewrites the packs that have entries or results of parsing in frames of version 1, as a prune rewrites packs: a
    /// crash at any point loses nothing, and the next upgrade continues. Returns the number of packs rewritten.
    ///
    /// # Errors
    /// If a pack cannot be read or written; the packs that were not rewritten are as they were.
    pub fn upgrade(&self) -> Result<usize, CacheError> {
        self.sync()?;
        let inner = &self.inner;
        let mut active = inner.active();
        inner.open_index(&mut active).map_err(|error| inner.fail(&error))?;
        inner.upgrade(&mut active).map_err(|error| inner.fail(&error))
    }
}

impl StoreInner {
    fn upgrade(&self, active: &mut ActivePack) -> Result<usize, CacheError> {
        let mut older = BTreeSet::new();
        for id in self.layout.pack_ids()? {
            if self.is_older(id).map_err(CacheError::io("read", &self.layout.pack(id)))? {
                older.insert(id);
            }
        }
        if !older.is_empty() {
            self.rewrite_packs(active, &older, self.newest_removals()?)?;
        }
        Ok(older.len())
    }

    /// Whether a pack has frames that are packed since format 3.
    fn is_older(&self, id: u32) -> io::Result<bool> {
        let file = self.packs.file(id)?;
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
}
