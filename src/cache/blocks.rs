//! The blocks of a sorted run, by number, in a sled database of the run's own. Only this file uses sled.
//!
//! sled can panic on damaged files, so every call runs in `catch_panics`; a fault costs a rebuild from the packs and nothing
//! else. Its background flush is off: only `finish` writes, so that the index never gets ahead of the packs.
//!
//! What sled appends and later rewrites stays in its log and in files that it forgets: with all runs in one database, and
//! entries or blocks inserted as they come, it took two to three times the space of what it held. So a run's database is
//! written once and removed with its folder, and no page of it is ever rewritten: the names of blocks go in ahead of them,
//! with nothing under them, so that pages are split while they are empty; a page then gets eight blocks, which is less than
//! what sled merges into a new page.

use std::cell::Cell;
use std::fs::File;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::error::{IndexFault, IndexResult};
use crate::files::{close_files, create_private_folder, sync_folder};

/// A block is not longer than this, unless a single entry is. Eight of them fill a segment, and a page.
pub(super) const BLOCK: usize = 4000;
/// Two processes may open a cache shortly after one another.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of pages that sled keeps in memory. Keys are digests, so any block may be the next. Less would save nothing: sled
/// looks for pages to evict after 64 accesses to one of 256 groups of pages, so that it keeps as much as this in any case;
/// it would only read the pages again, which doubled the time of a warm run of 300,000 cells.
const CACHE: u64 = 512 << 20;
/// Space is taken by the segment: with sled's default of 512 KB, a small index would be waste.
const SEGMENT: usize = 32 << 10;
/// Names ahead of the block that is written: more than the sixteen at which sled splits a page.
const AHEAD: u32 = 24;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls sled; a panic becomes a fault and is not printed.
fn catch_panics<T>(call: impl FnOnce() -> sled::Result<T>) -> IndexResult<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    QUIET.set(was);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(fault(&error)),
        Err(_) => Err(IndexFault::broken("sled stopped on damaged data")),
    }
}

fn fault(error: &sled::Error) -> IndexFault {
    let text = error.to_string();
    let text = text.split_once(" backtrace").map_or(text.as_str(), |(text, _)| text).to_owned();
    if text.contains("could not acquire lock") { IndexFault::Locked(text) } else { IndexFault::Broken(text) }
}

fn try_open(folder: &Path) -> IndexResult<sled::Db> {
    let config = sled::Config::new().path(folder).cache_capacity(CACHE).segment_size(SEGMENT).flush_every_ms(None);
    let db = catch_panics(|| config.open())?;
    close_files(folder);
    Ok(db)
}

/// The blocks of a run, which do not change any more.
#[derive(Clone, Debug)]
pub(super) struct Blocks(sled::Db);

impl Blocks {
    /// Opens those in `folder`.
    pub(super) fn open(folder: &Path) -> IndexResult<Blocks> {
        if !folder.join("db").exists() {
            return Err(IndexFault::broken("a part of it is missing"));
        }
        let began = Instant::now();
        loop {
            match try_open(folder) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result.map(Blocks),
            }
        }
    }

    /// A block; `None` behind the last one.
    pub(super) fn get(&self, number: u32) -> IndexResult<Option<Block>> {
        let block = catch_panics(|| self.0.get(number.to_be_bytes()))?;
        Ok(block.filter(|block| !block.is_empty()).map(Block))
    }
}

/// A block in sled's memory.
#[derive(Debug)]
pub(super) struct Block(sled::IVec);

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes the blocks of a run.
pub(super) struct BlocksWriter {
    folder: PathBuf,
    db: sled::Db,
    named: u32,
    written: u32,
}

impl BlocksWriter {
    /// Begins anew in `folder`.
    pub(super) fn create(folder: &Path) -> IndexResult<BlocksWriter> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(IndexFault::broken)?;
        }
        create_private_folder(folder).map_err(IndexFault::broken)?;
        Ok(BlocksWriter { folder: folder.to_owned(), db: try_open(folder)?, named: 0, written: 0 })
    }

    pub(super) fn push(&mut self, block: Vec<u8>) -> IndexResult<()> {
        while self.named < self.written.saturating_add(AHEAD) {
            catch_panics(|| self.db.insert(self.named.to_be_bytes(), &[]))?;
            self.named += 1;
        }
        catch_panics(|| self.db.insert(self.written.to_be_bytes(), block))?;
        self.written += 1;
        Ok(())
    }

    /// Writes everything to disk. sled's flush does not survive a power failure; syncing its file does.
    pub(super) fn finish(self) -> IndexResult<Blocks> {
        catch_panics(|| self.db.flush())?;
        let log = File::open(self.folder.join("db")).map_err(IndexFault::broken)?;
        log.sync_data().map_err(IndexFault::broken)?;
        sync_folder(&self.folder).map_err(IndexFault::broken)?;
        close_files(&self.folder);
        Ok(Blocks(self.db))
    }
}
