//! Blocks of bytes in sled, in order of run and first key. Only this file uses sled.
//!
//! sled can panic on damaged files, so every call runs in `catch_panics`; a fault costs a rebuild from the packs and nothing
//! else. Its background flush is off: only `flush` writes, so that the index never gets ahead of the packs. Blocks, and not
//! entries, are its values: for entries, each of which it logs by itself and rewrites with its page, it takes half as much
//! disk again and four times as long.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

use super::error::IndexFault;
use crate::files::{close_files, create_private_folder};

type IndexResult<T> = Result<T, IndexFault>;

/// Two processes may open a cache shortly after one another.
const PATIENCE: Duration = Duration::from_secs(2);
/// Memory for sled's pages.
const CACHE: u64 = 8 << 20;
/// Space is reused by the segment: with sled's default of 512 KB, half of a small index is waste.
const SEGMENT: usize = 128 << 10;
/// Under this key, outside the tree of blocks, is what the owner says of them.
const HEADER: &str = "header";

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

/// The blocks of all runs, and a header.
#[derive(Clone, Debug)]
pub(super) struct BlockStore {
    db: sled::Db,
    tree: sled::Tree,
}

impl BlockStore {
    /// Whether there is one in `folder`, sound or not.
    pub(super) fn is_in(folder: &Path) -> bool {
        folder.join("db").exists()
    }

    /// Opens the one in `folder`, or creates an empty one.
    pub(super) fn open(folder: &Path) -> IndexResult<BlockStore> {
        create_private_folder(folder).map_err(IndexFault::broken)?;
        let began = Instant::now();
        loop {
            match BlockStore::try_open(folder) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(folder: &Path) -> IndexResult<BlockStore> {
        let config = sled::Config::new().path(folder).cache_capacity(CACHE).segment_size(SEGMENT).flush_every_ms(None);
        let db = catch_panics(|| config.open())?;
        close_files(folder);
        let tree = catch_panics(|| db.open_tree("blocks"))?;
        Ok(BlockStore { db, tree })
    }

    pub(super) fn header(&self) -> IndexResult<Option<Vec<u8>>> {
        Ok(catch_panics(|| self.db.get(HEADER))?.map(|bytes| bytes.to_vec()))
    }

    pub(super) fn set_header(&self, bytes: Vec<u8>) -> IndexResult<()> {
        catch_panics(|| self.db.insert(HEADER, bytes)).map(drop)
    }

    pub(super) fn put(&self, run: u32, first: &[u8], block: Vec<u8>) -> IndexResult<()> {
        catch_panics(|| self.tree.insert(name(run, first), block)).map(drop)
    }

    /// The block of a run that has a key, if any has: the last one that begins at or before it.
    pub(super) fn block_of(&self, run: u32, key: &[u8]) -> IndexResult<Option<Vec<u8>>> {
        Ok(self.last_until(run, key)?.map(|(_, block)| block.to_vec()))
    }

    /// The blocks of a run from the one that has a key.
    pub(super) fn blocks_from(
        &self,
        run: u32,
        key: &[u8],
    ) -> IndexResult<impl Iterator<Item = IndexResult<Vec<u8>>> + use<>> {
        let from = self.last_until(run, key)?.map_or_else(|| name(run, key), |(name, _)| name.to_vec());
        let mut blocks = self.tree.range(from..name(run.saturating_add(1), &[]));
        Ok(std::iter::from_fn(move || {
            let next = catch_panics(|| blocks.next().transpose());
            next.map(|next| next.map(|(_, block)| block.to_vec())).transpose()
        }))
    }

    fn last_until(&self, run: u32, key: &[u8]) -> IndexResult<Option<(sled::IVec, sled::IVec)>> {
        let above = [name(run, key), vec![0]].concat();
        let last = catch_panics(|| self.tree.get_lt(above))?;
        Ok(last.filter(|(name, _)| name.starts_with(&run.to_be_bytes())))
    }

    /// Removes the blocks of all runs but these.
    pub(super) fn retain(&self, runs: &[u32]) -> IndexResult<()> {
        let mut blocks = self.tree.iter().keys();
        while let Some(name) = catch_panics(|| blocks.next().transpose())? {
            let run = name.first_chunk().map(|run| u32::from_be_bytes(*run));
            match run.filter(|run| runs.contains(run)) {
                Some(run) => blocks = self.tree.range(self::name(run.saturating_add(1), &[])..).keys(),
                None => drop(catch_panics(|| self.tree.remove(name))?),
            }
        }
        Ok(())
    }

    /// Writes everything to disk. sled's flush does not survive a power failure; syncing its file does.
    pub(super) fn flush(&self, folder: &Path) -> IndexResult<()> {
        catch_panics(|| self.db.flush())?;
        let log = File::open(folder.join("db")).map_err(IndexFault::broken)?;
        log.sync_data().map_err(IndexFault::broken)
    }
}

/// The name of a block: sorted by run, then by first key.
fn name(run: u32, first: &[u8]) -> Vec<u8> {
    [&run.to_be_bytes(), first].concat()
}
