//! The sled tree `actions`: the record of each key, written behind the packs. Only this file uses sled.
//!
//! Changes of the tables are written in one atomic batch together with how much of the packs the tree then has
//! (`Watermark`). A batch is written after its frames are on disk, so the tree may lag behind the packs, never the
//! reverse. The tree is flushed now and then: what a killed process had not flushed is read from the ends of the packs
//! again.
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
use std::time::{Duration, Instant};

use super::Tables;
use super::item_key::{Item, ItemKey, Watermark, decoded, encoded};
use super::items::{add_item, item};
use crate::cache::error::{IndexFault, IndexResult};
use base::files::{make_files_private, sync_folder};
use base::guarded;
use base::threads::check_available;

/// How long to wait for another process that is just closing the tree.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of pages that sled may keep in memory: few, because the tree is read once, in order.
const CACHE: u64 = 8 << 20;
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
        })
    }

    fn open_tree(&self) -> IndexResult<&OpenTree> {
        self.open
            .as_ref()
            .ok_or_else(|| IndexFault::broken("it is closed"))
    }

    /// Reads the whole tree, in order.
    pub(crate) fn load(&self) -> IndexResult<(Tables, Watermarks)> {
        let (mut tables, mut packs, mut total) = (Tables::default(), Watermarks::new(), None);
        let mut items = self.open_tree()?.actions.iter();
        while let Some((key, value)) = catch_panics(|| items.next().transpose())? {
            let key = ItemKey::decode(&key)
                .ok_or_else(|| IndexFault::broken("a key in it is unknown"))?;
            match key {
                ItemKey::Total => total = Some(decoded::<u64>(&value)?),
                ItemKey::Pack(id) => {
                    packs.insert(id, decoded(&value)?);
                }
                key => add_item(&mut tables, key, &value)?,
            }
        }
        if total != Some(tables.item_count()) {
            return Err(IndexFault::broken("entries are missing from it"));
        }
        Ok((tables, packs))
    }

    /// Writes all of `tables` into an empty tree.
    pub(crate) fn fill(&self, tables: &Tables, packs: &Watermarks) -> IndexResult<()> {
        const BATCH: usize = 2048;
        let mut items = tables
            .item_keys()
            .map(|key| item(tables, key))
            .collect::<IndexResult<Vec<_>>>()?;
        items.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            self.apply(items.by_ref().take(BATCH))?;
        }
        let marks = packs
            .iter()
            .map(|(id, mark)| mark_of(*id, Some(mark)))
            .collect::<IndexResult<Vec<_>>>()?;
        self.apply(marks.into_iter().chain([item(tables, ItemKey::Total)?]))?;
        self.flush()
    }

    /// Writes the changes of `tables` together with the new watermarks of packs; `None` for a pack that is gone.
    pub(crate) fn update(
        &self,
        tables: &mut Tables,
        packs: &[(u32, Option<Watermark>)],
    ) -> IndexResult<()> {
        let changes = tables.take_changes().into_iter().chain([ItemKey::Total]);
        let mut items = changes
            .map(|key| item(tables, key))
            .collect::<IndexResult<Vec<_>>>()?;
        for (id, mark) in packs {
            items.push(mark_of(*id, mark.as_ref())?);
        }
        self.apply(items)
    }

    fn apply(&self, items: impl IntoIterator<Item = Item>) -> IndexResult<()> {
        let mut batch = sled::Batch::default();
        for Item { key, value } in items {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        let open = self.open_tree()?;
        catch_panics(|| open.actions.apply_batch(batch))
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

/// Removes the snapshots of its log that sled had not finished when the process was killed: it would take one for a damaged
/// snapshot, and it needs none.
fn remove_half_snapshots(folder: &Path) -> io::Result<()> {
    let mut paths = guarded::list(folder)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "generating"));
    paths.iter().try_for_each(|path| guarded::remove_file(path))
}

fn mark_of(id: u32, mark: Option<&Watermark>) -> IndexResult<Item> {
    Ok(Item {
        key: ItemKey::Pack(id).encode()?,
        value: mark.map(encoded).transpose()?,
    })
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
