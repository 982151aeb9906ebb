//! The sled tree `actions`: the record of each key, written behind the packs. Only this file uses sled.
//!
//! Changes are written in one atomic batch together with how much of the packs the tree then has (`Watermark`). A batch is
//! written after its frames are on disk, so the tree may lag behind the packs, never the reverse. The tree is flushed now
//! and then: what a killed process had not flushed is read from the ends of the packs again.
//!
//! sled can panic on damaged files and after failed writes, so every call runs in `catch_panics`; a fault only causes a
//! rebuild from the packs. Values are small, because sled rewrites a page of sixteen values when one of them changes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::items::{ItemKey, Watermark, decoded, encoded};
use crate::cache::error::{IndexFault, IndexResult};
use base::files::{make_files_private, sync_folder};
use base::guarded;
use base::threads::check_available;

/// How long to wait for another process that is just closing the tree.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of pages that sled may keep in memory.
const CACHE: u64 = 64 << 20;
/// The unit in which sled allocates disk space: with its default of 512 KB, a small cache would be mostly empty space.
const SEGMENT: usize = 32 << 10;
const TREE: &str = "actions";
/// Threads that sled may start. If it cannot, it waits for their work for ever.
const THREADS: usize = 3;
/// Bytes that sled may allocate when it opens. It does not look whether it got them.
const MEMORY: usize = 32 << 20;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// How much of each pack the tree has.
pub(crate) type Watermarks = BTreeMap<u32, Watermark>;

/// The tree, open for writing.
#[derive(Debug)]
pub(crate) struct ActionTree {
    folder: PathBuf,
    /// Taken when this is dropped.
    open: Option<OpenTree>,
    /// The number of items that it should have.
    total: AtomicU64,
}

/// The database and the tree that sled has open.
#[derive(Debug)]
struct OpenTree {
    db: sled::Db,
    actions: sled::Tree,
}

impl Drop for ActionTree {
    /// sled writes once more when it is closed, and panics where that fails. What it could not write is in the packs.
    fn drop(&mut self) {
        let open = self.open.take();
        let _ = catch_panics(|| {
            drop(open);
            Ok(())
        });
    }
}

impl ActionTree {
    /// Whether there is a tree in `folder`, sound or not.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join("db").exists()
    }

    /// Opens the tree in `folder`, or creates an empty one.
    pub(crate) fn open(folder: &Path) -> IndexResult<ActionTree> {
        guarded::create_folder(folder).map_err(IndexFault::broken)?;
        guarded::check_tree(folder).map_err(IndexFault::broken)?;
        check_lengths(folder)?;
        remove_half_snapshots(folder).map_err(IndexFault::broken)?;
        check_available(THREADS).map_err(IndexFault::broken)?;
        check_memory()?;
        let began = Instant::now();
        let config = sled::Config::new()
            .path(folder)
            .cache_capacity(CACHE)
            .segment_size(SEGMENT)
            .flush_every_ms(None);
        let db = loop {
            match catch_panics(|| config.open()) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        let actions = catch_panics(|| db.open_tree(TREE))?;
        make_files_private(folder);
        Ok(ActionTree {
            folder: folder.to_owned(),
            open: Some(OpenTree { db, actions }),
            total: AtomicU64::new(0),
        })
    }

    /// Opens the tree in `folder`, which has been filled.
    pub(crate) fn open_filled(folder: &Path) -> IndexResult<(ActionTree, Watermarks)> {
        let tree = ActionTree::open(folder)?;
        match tree.read_marks() {
            Ok(marks) => Ok((tree, marks)),
            Err(fault) => {
                // not dropped: after a panic, sled may panic again when it closes
                std::mem::forget(tree);
                Err(fault)
            }
        }
    }

    fn read_marks(&self) -> IndexResult<Watermarks> {
        let total = self
            .get(ItemKey::Total)?
            .ok_or_else(|| IndexFault::broken("it was not filled"))?;
        self.total.store(decoded(&total)?, Ordering::Relaxed);
        let mut marks = Watermarks::new();
        self.each(b"w", |key, value| {
            if let ItemKey::Pack(id) = key {
                marks.insert(id, decoded(value)?);
            }
            Ok(())
        })?;
        Ok(marks)
    }

    fn open_tree(&self) -> IndexResult<&OpenTree> {
        self.open
            .as_ref()
            .ok_or_else(|| IndexFault::broken("it is closed"))
    }

    /// The value of an item.
    pub(super) fn get(&self, key: ItemKey) -> IndexResult<Option<sled::IVec>> {
        let key = key.encode()?;
        let open = self.open_tree()?;
        catch_panics(|| open.actions.get(key))
    }

    /// Visits the items whose encoded keys begin with `prefix`, in order.
    pub(super) fn each(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(ItemKey, &[u8]) -> IndexResult<()>,
    ) -> IndexResult<()> {
        let mut items = self.open_tree()?.actions.scan_prefix(prefix);
        while let Some((key, value)) = catch_panics(|| items.next().transpose())? {
            visit(ItemKey::decode(&key)?, &value)?;
        }
        Ok(())
    }

    /// Whether it has as many items as were written to it.
    pub(super) fn check_whole(&self) -> IndexResult<()> {
        let mut found = 0;
        self.each(b"", |key, _| {
            found += u64::from(is_counted(key));
            Ok(())
        })?;
        if found == self.total.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(IndexFault::broken("entries are missing from it"))
        }
    }

    /// Fills an empty tree.
    pub(super) fn fill<'i>(
        &self,
        items: impl Iterator<Item = (ItemKey, &'i [u8])>,
        marks: &Watermarks,
    ) -> IndexResult<()> {
        const BATCH: usize = 2048;
        let mut encoded = items
            .map(|(key, value)| Ok((key.encode()?, value)))
            .collect::<IndexResult<Vec<_>>>()?;
        encoded.sort_unstable();
        let open = self.open_tree()?;
        for items in encoded.chunks(BATCH) {
            let mut batch = sled::Batch::default();
            for (key, value) in items {
                batch.insert(key.as_slice(), *value);
            }
            catch_panics(|| open.actions.apply_batch(batch))?;
        }
        self.total.store(encoded.len() as u64, Ordering::Relaxed);
        let marks: Vec<_> = marks.iter().map(|(id, mark)| (*id, Some(*mark))).collect();
        self.update(std::iter::empty(), &marks)?;
        self.flush()
    }

    /// Writes items, of which those without a value are removed, together with the new watermarks of packs; `None` for a
    /// pack that is gone.
    pub(super) fn update<'i>(
        &self,
        items: impl Iterator<Item = (ItemKey, Option<&'i [u8]>)>,
        marks: &[(u32, Option<Watermark>)],
    ) -> IndexResult<()> {
        let open = self.open_tree()?;
        let mut batch = sled::Batch::default();
        let mut total = self.total.load(Ordering::Relaxed);
        for (key, value) in items {
            let key = key.encode()?;
            let is_there = catch_panics(|| open.actions.contains_key(&key))?;
            total = match (is_there, value) {
                (false, Some(_)) => total + 1,
                (true, None) => total.saturating_sub(1),
                _ => total,
            };
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        for (id, mark) in marks {
            let key = ItemKey::Pack(*id).encode()?;
            match mark {
                Some(mark) => batch.insert(key, encoded(mark)?),
                None => batch.remove(key),
            }
        }
        batch.insert(ItemKey::Total.encode()?, encoded(&total)?);
        catch_panics(|| open.actions.apply_batch(batch))?;
        self.total.store(total, Ordering::Relaxed);
        Ok(())
    }

    /// Writes everything to disk. sled's flush does not survive a power failure; syncing its file does.
    pub(crate) fn flush(&self) -> IndexResult<()> {
        let open = self.open_tree()?;
        catch_panics(|| open.db.flush())?;
        // some systems sync only what is open for writing
        let log = guarded::open_with(File::options().write(true), &self.folder.join("db"))
            .map_err(IndexFault::broken)?;
        log.sync_data().map_err(IndexFault::broken)?;
        sync_folder(&self.folder).map_err(IndexFault::broken)?;
        make_files_private(&self.folder);
        Ok(())
    }
}

fn check_memory() -> IndexResult<()> {
    let mut memory = Vec::<u8>::new();
    let reserved = memory.try_reserve_exact(MEMORY);
    // An allocation that nobody uses would be optimised away.
    std::hint::black_box(&memory);
    reserved.map_err(|_| IndexFault::broken("there is not enough memory to open it"))
}

/// Refuses a file that is longer than an index can be: sled would read it to its end.
fn check_lengths(folder: &Path) -> IndexResult<()> {
    const LONGEST: u64 = 4 << 30;
    for path in guarded::list(folder).map_err(IndexFault::broken)? {
        let found = guarded::metadata(&path).map_err(IndexFault::broken)?;
        if found.is_some_and(|found| found.len() > LONGEST) {
            return Err(IndexFault::broken("it is longer than an index can be"));
        }
    }
    Ok(())
}

/// Removes the snapshots of its log that sled had not finished when the process was killed: it would take one for a damaged
/// snapshot, and it needs none.
fn remove_half_snapshots(folder: &Path) -> io::Result<()> {
    let mut paths = guarded::list(folder)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "generating"));
    paths.iter().try_for_each(|path| guarded::remove_file(path))
}

/// Whether an item is one of those that are counted.
fn is_counted(key: ItemKey) -> bool {
    !matches!(key, ItemKey::Pack(_) | ItemKey::Total)
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
    let text = text
        .split_once(" backtrace")
        .map_or(text.as_str(), |(text, _)| text)
        .to_owned();
    // The system's message is within the debug text of its error.
    let quoted = text
        .split_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(message, _)| message);
    let message = quoted.unwrap_or(&text).to_owned();
    if text.contains("could not acquire lock") {
        IndexFault::Locked(message)
    } else {
        IndexFault::Broken(message)
    }
}
