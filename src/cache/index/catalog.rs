//! The catalog of the index, a small sled database: the list of runs, and where the blocks of each run begin. Only this file
//! uses sled.
//!
//! The blocks themselves are in files (`blocks`). sled keeps in memory what it has read: it looks for pages to evict
//! after 64 accesses to one of 256 groups of pages, whatever its limit is. With the blocks in sled, a warm run held the
//! whole index in memory. Also, sled keeps what it rewrites in its log, so that the index took more space on disk.
//!
//! sled can panic on damaged files, so every call runs in `catch_panics`; a fault only causes a rebuild from the packs.
//! Its background flush is off: only `replace` writes, so that the index never gets ahead of the packs.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::cache::error::{IndexFault, IndexResult};
use base::files::{close_files, create_private_folder, sync_folder};

/// Two processes may open a cache shortly after one another.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of pages that sled may keep in memory: the catalog of a large cache has less.
const CACHE: u64 = 8 << 20;
/// Space is taken by the segment: with sled's default of 512 KB, a small index would be waste.
const SEGMENT: usize = 32 << 10;
/// The key of the list, which is shorter than the number of a run.
const LIST: &[u8] = b"l";

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

/// The fences of a run in blocks, as the catalog stores them. They are short: a page of sixteen must stay below the 8 KB
/// that sled puts into its log, since it does not sync the other files that it would write.
pub(in crate::cache) type FenceBlocks = Vec<Vec<u8>>;

#[derive(Debug)]
pub(in crate::cache) struct Catalog {
    folder: PathBuf,
    db: sled::Db,
}

impl Catalog {
    /// Whether there is a catalog in `folder`, sound or not.
    pub(in crate::cache) fn is_in(folder: &Path) -> bool {
        folder.join("db").exists()
    }

    /// Opens the catalog in `folder`, or creates an empty one.
    pub(in crate::cache) fn open(folder: &Path) -> IndexResult<Catalog> {
        create_private_folder(folder).map_err(IndexFault::broken)?;
        let began = Instant::now();
        let config = sled::Config::new().path(folder).cache_capacity(CACHE).segment_size(SEGMENT).flush_every_ms(None);
        loop {
            match catch_panics(|| config.open()) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(fault) => return Err(fault),
                Ok(db) => {
                    close_files(folder);
                    return Ok(Catalog { folder: folder.to_owned(), db });
                }
            }
        }
    }

    /// The list that was stored last; `None` of a new catalog.
    pub(in crate::cache) fn list(&self) -> IndexResult<Option<Vec<u8>>> {
        Ok(catch_panics(|| self.db.get(LIST))?.map(|list| list.to_vec()))
    }

    /// The fences of a run.
    pub(super) fn fences(&self, run: u32) -> IndexResult<FenceBlocks> {
        catch_panics(|| self.db.scan_prefix(run.to_be_bytes()).values().map(|block| Ok(block?.to_vec())).collect())
    }

    /// Replaces the list, and the fences of `removed` runs by those of `added` ones, at once and durably.
    pub(in crate::cache) fn replace(
        &self,
        list: &[u8],
        added: &[(u32, FenceBlocks)],
        removed: &[u32],
    ) -> IndexResult<()> {
        let mut batch = sled::Batch::default();
        batch.insert(LIST, list);
        // those of an added run are from before a power failure, if there are any
        for run in removed.iter().chain(added.iter().map(|(run, _)| run)) {
            for key in catch_panics(|| self.db.scan_prefix(run.to_be_bytes()).keys().collect::<sled::Result<Vec<_>>>())?
            {
                batch.remove(key);
            }
        }
        for (run, blocks) in added {
            for (number, block) in (0_u32..).zip(blocks) {
                batch.insert([run.to_be_bytes(), number.to_be_bytes()].concat(), block.as_slice());
            }
        }
        catch_panics(|| self.db.apply_batch(batch))?;
        self.sync()
    }

    /// Writes everything to disk. sled's flush does not survive a power failure; syncing its file does.
    fn sync(&self) -> IndexResult<()> {
        catch_panics(|| self.db.flush())?;
        // some systems sync only what is open for writing
        let log = File::options().write(true).open(self.folder.join("db")).map_err(IndexFault::broken)?;
        log.sync_data().map_err(IndexFault::broken)?;
        sync_folder(&self.folder).map_err(IndexFault::broken)?;
        close_files(&self.folder);
        Ok(())
    }
}
