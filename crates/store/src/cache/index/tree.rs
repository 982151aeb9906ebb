//! The sled tree `actions`: the record of each key, written behind the packs. Only this file uses sled.
//!
//! A batch is written after its frames are on disk. The tree is flushed when the store is synced, and then the file
//! `clean` says which packs it has all of. A tree that a killed process left lacks what came later: it is removed, and
//! filled again from the packs.
//!
//! sled can panic on damaged files and after failed writes, so every call runs in `catch_panics`; a fault only causes a
//! rebuild from the packs. Values are small, because sled rewrites a page of sixteen values when one of them changes.
//!
//! A record is stored under the key of its action and nothing else. The other items are in the same tree, under keys of
//! other lengths, because sled can change one tree atomically, but not several.
//!
//! ```text
//! 32: action key          record
//! 'p' place 8             key of the latest action there
//! 't' digest 32           where a text is
//! 'u' beginning of key 8  day of the last use
//! 'j' nonce 12, step      where a step of a batch is
//! ```

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::error::{IndexFault, IndexResult};
use crate::cache::packs::PackState;
use crate::cache::packs::folder::write_synced;
use crate::cache::packs::frame::KeyPrefix;
use crate::cache::packs::frame::{BatchNonce, BatchStep};
use crate::digest::{ActionKey, Digest};
use base::files::sync_folder;
use base::guarded;
use base::lock::has_no_locks;
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

/// The first bytes of the digest of a place. Explanations depend on what is stored under it, outputs do not.
pub(super) type PlacePrefix = [u8; 8];

/// The name of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemKey {
    Action(ActionKey),
    Place(PlacePrefix),
    Text(Digest),
    Use(KeyPrefix),
    Step(BatchNonce, BatchStep),
}

impl ItemKey {
    pub(super) fn encode(self) -> IndexResult<Vec<u8>> {
        Ok(match self {
            ItemKey::Action(key) => key.0.0.to_vec(),
            ItemKey::Place(place) => tagged(b'p', &place),
            ItemKey::Text(digest) => tagged(b't', &digest.0),
            ItemKey::Use(key) => tagged(b'u', &key),
            ItemKey::Step(nonce, step) => tagged(b'j', &encoded(&(nonce, step))?),
        })
    }

    fn decode(bytes: &[u8]) -> IndexResult<ItemKey> {
        let decode = || {
            if let Ok(key) = bytes.try_into() {
                return Some(ItemKey::Action(ActionKey(Digest(key))));
            }
            let (tag, rest) = bytes.split_first()?;
            Some(match tag {
                b'p' => ItemKey::Place(rest.try_into().ok()?),
                b't' => ItemKey::Text(Digest(rest.try_into().ok()?)),
                b'u' => ItemKey::Use(rest.try_into().ok()?),
                b'j' => {
                    let (nonce, step) = postcard::from_bytes(rest).ok()?;
                    ItemKey::Step(nonce, step)
                }
                _ => return None,
            })
        };
        decode().ok_or_else(|| IndexFault::broken("a key in it is unknown"))
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag], bytes].concat()
}

pub(super) fn encoded<T: Serialize>(value: &T) -> IndexResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(IndexFault::broken)
}

pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> IndexResult<T> {
    postcard::from_bytes(bytes).map_err(IndexFault::broken)
}

/// What a flushed tree has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CleanState {
    /// The packs whose frames are all in it.
    pub packs: Vec<PackState>,
    /// The number of its items.
    total: u64,
}

impl CleanState {
    /// The name of its file.
    const NAME: &str = "clean";

    /// The state of the tree in `folder` when it was last flushed; `None` if it never was.
    pub(crate) fn read(folder: &Path) -> Option<CleanState> {
        const LONGEST: u64 = 16 << 20;
        let bytes = guarded::read(&folder.join(CleanState::NAME), LONGEST).ok()?;
        decoded(&bytes).ok()
    }

    fn write(&self, folder: &Path) -> IndexResult<()> {
        let path = folder.join(CleanState::NAME);
        write_synced(&path, &encoded(self)?).map_err(IndexFault::broken)?;
        sync_folder(folder).map_err(IndexFault::broken)
    }
}

/// Removes the tree in `folder`. From now on, and until a new one is flushed, the folder says that it has nothing of the
/// packs.
pub(crate) fn remove_tree(folder: &Path) -> IndexResult<()> {
    guarded::create_folder(folder).map_err(IndexFault::broken)?;
    let state = folder.join(CleanState::NAME);
    if CleanState::default().write(folder).is_err() {
        // the disk is full
        guarded::remove_file(&state).map_err(IndexFault::broken)?;
    }
    let paths = guarded::list(folder).map_err(IndexFault::broken)?;
    for path in paths.iter().filter(|path| **path != state) {
        let removed = match path.is_dir() {
            true => guarded::remove_folder(path),
            false => guarded::remove_file(path),
        };
        removed.map_err(IndexFault::broken)?;
    }
    Ok(())
}

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
        Ok(ActionTree {
            folder: folder.to_owned(),
            open: Some(OpenTree { db, actions }),
            total: AtomicU64::new(0),
        })
    }

    /// Opens the tree in `folder`, which was flushed in this state.
    pub(crate) fn open_clean(folder: &Path, state: &CleanState) -> IndexResult<ActionTree> {
        if !folder.join("db").exists() {
            return Err(IndexFault::broken("it was missing"));
        }
        let tree = ActionTree::open(folder)?;
        tree.total.store(state.total, Ordering::Relaxed);
        let open = tree.open_tree()?;
        if state.total > 0 && catch_panics(|| Ok(open.actions.is_empty()))? {
            return Err(IndexFault::broken("entries are missing from it"));
        }
        Ok(tree)
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
        self.each(b"", |_, _| {
            found += 1;
            Ok(())
        })?;
        if found == self.total.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(IndexFault::broken("entries are missing from it"))
        }
    }

    /// Writes items, of which those without a value are removed.
    pub(super) fn update<'i>(
        &self,
        items: impl Iterator<Item = (ItemKey, Option<&'i [u8]>)>,
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
        catch_panics(|| open.actions.apply_batch(batch))?;
        self.total.store(total, Ordering::Relaxed);
        Ok(())
    }

    /// Writes everything to disk, and that it has all of these packs. sled's flush does not survive a power failure;
    /// syncing its file does.
    pub(crate) fn flush(&self, packs: Vec<PackState>) -> IndexResult<()> {
        let open = self.open_tree()?;
        catch_panics(|| open.db.flush())?;
        // some systems sync only what is open for writing
        let log = guarded::open_with(File::options().write(true), &self.folder.join("db"))
            .map_err(IndexFault::broken)?;
        log.sync_data().map_err(IndexFault::broken)?;
        sync_folder(&self.folder).map_err(IndexFault::broken)?;
        let total = self.total.load(Ordering::Relaxed);
        CleanState { packs, total }.write(&self.folder)?;
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
    // A file system without locks will not have them in a moment.
    let is_without_locks = text
        .rsplit_once("Os { code: ")
        .and_then(|(_, rest)| rest.split_once(',')?.0.parse().ok())
        .is_some_and(|code| has_no_locks(&io::Error::from_raw_os_error(code)));
    if text.contains("could not acquire lock") && !is_without_locks {
        IndexFault::Locked(message)
    } else {
        IndexFault::Broken(message)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_not_waited_for() {
        for (code, is_held) in [(11, true), (37, false), (95, false)] {
            let error = io::Error::from_raw_os_error(code);
            let text = format!("could not acquire lock on \"db\": {error:?}");
            let fault = fault(&sled::Error::Io(io::Error::other(text)));
            assert_eq!(matches!(fault, IndexFault::Locked(_)), is_held, "{fault:?}");
        }
    }
}
