//! The state of an open store: appending to the newest pack, and the index of all of them.
//!
//! Frames go to the pack first, to the memory of the index second and, once the pack is synced, to the tree. After a failed
//! write to a pack nothing more is written. If the tree fails, the packs are read, the run goes on without the tree, and it
//! is rebuilt when the cache is opened next.

pub(super) mod active_pack;
mod recovery;
pub(super) mod writer;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::cache::entry::{FrameLocation, Record};
use crate::cache::error::{CacheError, IndexFault};
use crate::cache::index::Index;
use crate::cache::index::scan::{PackState, scan, watermark, watermarks};
use crate::cache::index::{OldIndex, replace_index, set_aside};
use crate::cache::packs::PackFiles;
use crate::cache::packs::folder::{FolderKind, Layout};
use crate::digest::ActionKey;
use active_pack::{ActivePack, cut, locate};
use base::files::is_at;
use recovery::{Opened, open_index, remove_leftovers};

/// A pack that reaches this length is closed and the next one is started.
const PACK_LIMIT: u64 = 128 << 20;

/// The tree is flushed after this many bytes of frames rather than after each batch: after a crash, what it lacks is
/// read from the end of the pack.
const TREE_LAG: u64 = 16 << 20;

/// The state that the store and its writer thread share.
#[derive(Debug)]
pub(crate) struct StoreInner {
    pub(super) layout: Layout,
    pub(super) packs: PackFiles,
    index: RwLock<Index>,
    /// Whether the items of the tree were counted.
    counted: AtomicBool,
    /// Every change on disk is made while holding this.
    active: Mutex<ActivePack>,
    fault: OnceLock<String>,
    notices: Mutex<Vec<String>>,
    /// The entries that the index had and the packs lack.
    pub(super) lost: Vec<Record>,
    /// Whether anything was written since the last sync.
    pending: AtomicBool,
}

impl StoreInner {
    /// Opens the folder for writing. The caller holds its lock.
    pub(super) fn open(layout: Layout, kind: FolderKind) -> Result<StoreInner, CacheError> {
        let mut notices = Vec::new();
        if kind == FolderKind::Unlabelled {
            notices.push(format!(
                "{}: the FORMAT file was missing or damaged and was written again",
                layout.root().display()
            ));
        }
        layout.create()?;
        remove_leftovers(&layout)?;
        let packs = PackFiles::new(layout.clone());
        let Opened {
            index,
            marks,
            active,
            lost,
        } = open_index(&layout, &packs, &mut notices)?;
        let store = StoreInner {
            layout,
            packs,
            index: RwLock::new(index),
            counted: AtomicBool::new(false),
            active: Mutex::new(active),
            fault: OnceLock::new(),
            notices: Mutex::new(notices),
            lost,
            pending: AtomicBool::new(false),
        };
        store.change(|index| index.write_tree(&marks));
        Ok(store)
    }

    pub(super) fn active(&self) -> MutexGuard<'_, ActivePack> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the index. Where its tree fails, it is read again without one.
    pub(super) fn read<T>(&self, read: impl Fn(&Index) -> T) -> T {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let found = read(&index);
        if index.fault().is_none() {
            return found;
        }
        drop(index);
        self.change(|index| read(index))
    }

    /// Changes the index. If its tree fails, it is replaced by what the packs say, and not used any more.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.fault().is_some() {
            self.leave_tree(&mut index);
        }
        let changed = change(&mut index);
        if index.fault().is_some() {
            self.leave_tree(&mut index);
        }
        changed
    }

    fn leave_tree(&self, index: &mut Index) {
        let why = index.fault().map_or("", IndexFault::text).to_owned();
        // not dropped: after a panic, sled may panic again when it closes
        std::mem::forget(index.take_tree());
        let aside = set_aside(&self.layout)
            .err()
            .map(|error| format!("; {error}"))
            .unwrap_or_default();
        let root = self.layout.root().display();
        self.notice(format!("{root}: the index failed ({why}). Nothing is lost: it is made again from the packs when the cache is opened next{aside}"));
        *index = match scan(&self.layout, &self.packs) {
            Ok((scanned, _)) => scanned,
            Err(error) => {
                self.notice(self.fail(&error).to_string());
                Index::default()
            }
        };
    }

    /// The current record of a key.
    pub(super) fn find(&self, key: &ActionKey) -> Option<Record> {
        let found = self.read(|index| index.find(key));
        if found.is_some() || self.counted.swap(true, Ordering::AcqRel) {
            return found;
        }
        // before anything is made and paid because the tree lacks it
        self.read(|index| {
            index.check_whole();
            index.find(key)
        })
    }

    pub(super) fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&text) {
            notices.push(text);
        }
    }

    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn poisoned(&self, cause: &str) -> CacheError {
        CacheError::Poisoned {
            path: self.layout.root().to_owned(),
            cause: cause.to_owned(),
        }
    }

    /// Records the first failure; nothing is written after it.
    pub(super) fn fail(&self, error: &CacheError) -> CacheError {
        let cause = self.fault.get_or_init(|| match error {
            CacheError::Poisoned { cause, .. } => cause.clone(),
            CacheError::Removed { .. } => error.to_string(),
            other => format!(
                "{other}. Everything stored before is intact; remove the cause and run again"
            ),
        });
        self.poisoned(cause)
    }

    /// An error if an earlier write failed.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        self.fault
            .get()
            .map_or(Ok(()), |cause| Err(self.poisoned(cause)))
    }

    /// Writes frames as one batch and notes them in the tables. If `durable`, they are on disk when this returns.
    pub(super) fn commit(
        &self,
        frames: &[Vec<u8>],
        durable: bool,
    ) -> Result<Vec<FrameLocation>, CacheError> {
        self.check()?;
        self.exclusively(|active| self.append(active, frames, durable))
    }

    /// Changes packs and tables while nobody else does. After an error nothing more is written.
    pub(super) fn exclusively<T>(
        &self,
        change: impl FnOnce(&mut ActivePack) -> Result<T, CacheError>,
    ) -> Result<T, CacheError> {
        change(&mut self.active()).map_err(|error| self.fail(&error))
    }

    /// As `commit`, for a caller who holds the active pack.
    pub(super) fn append(
        &self,
        active: &mut ActivePack,
        frames: &[Vec<u8>],
        durable: bool,
    ) -> Result<Vec<FrameLocation>, CacheError> {
        if active.len >= PACK_LIMIT {
            self.start_next_pack(active)?;
        }
        let path = self.layout.pack(active.id);
        let located = locate(active, frames).map_err(CacheError::io("write to", &path))?;
        if let Err(e) = active.file.write_all(&frames.concat()) {
            // half a write is cut off now, or when the cache is opened next
            if is_at(&active.file, &path) {
                let _ = cut(&path, active.len);
            }
            return Err(CacheError::io("write to", &path)(e));
        }
        active.len = located.last().map_or(active.len, |(at, _)| at.end());
        if durable {
            self.sync_pack(active)?;
            self.check_in_place(active)?;
        }
        self.change(|index| {
            located
                .iter()
                .for_each(|(at, header)| index.apply(*at, header));
        });
        self.pending.store(true, Ordering::Release);
        if durable {
            self.update_tree(active, &[])?;
        }
        if active.len - active.flushed > TREE_LAG {
            self.sync_pack(active)?;
            self.flush_tree(active, &[])?;
        }
        Ok(located.into_iter().map(|(at, _)| at).collect())
    }

    /// Makes everything durable that was written without waiting.
    pub(super) fn sync(&self) -> Result<(), CacheError> {
        self.check()?;
        let mut active = self.active();
        self.check_in_place(&active)
            .map_err(|error| self.fail(&error))?;
        if !self.pending.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.sync_pack(&active).map_err(|error| self.fail(&error))?;
        self.flush_tree(&mut active, &[])
    }

    /// An error if the pack that is written is no longer the one in the folder.
    fn check_in_place(&self, active: &ActivePack) -> Result<(), CacheError> {
        let path = self.layout.pack(active.id);
        if is_at(&active.file, &path) {
            Ok(())
        } else {
            Err(CacheError::Removed {
                path: self.layout.root().to_owned(),
            })
        }
    }

    pub(super) fn sync_pack(&self, active: &ActivePack) -> Result<(), CacheError> {
        active
            .file
            .sync_data()
            .map_err(CacheError::io("write to", &self.layout.pack(active.id)))
    }

    /// Closes the active pack and starts the next one. The tree has all of it first.
    pub(super) fn start_next_pack(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        self.flush_tree(active, &[])?;
        *active = ActivePack::create(&self.layout, active.id.saturating_add(1))?;
        Ok(())
    }

    /// Writes to the tree what it lacks, together with the packs that were removed. All of the active pack is synced.
    fn update_tree(&self, active: &ActivePack, gone: &[u32]) -> Result<(), CacheError> {
        let mark = watermark(&active.file, active.nonce, active.len);
        let mark = mark.map_err(CacheError::io("read", &self.layout.pack(active.id)))?;
        let mut marks = vec![(active.id, Some(mark))];
        marks.extend(gone.iter().map(|id| (*id, None)));
        self.change(|index| index.write_tree(&marks));
        Ok(())
    }

    /// As `update_tree`, and makes it durable.
    pub(super) fn flush_tree(
        &self,
        active: &mut ActivePack,
        gone: &[u32],
    ) -> Result<(), CacheError> {
        self.update_tree(active, gone)?;
        self.change(|index| index.flush_tree());
        active.flushed = active.len;
        Ok(())
    }

    /// Replaces the tree by one that takes no more space than its records need.
    pub(super) fn shrink_tree(&self, active: &ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        let (scanned, states) = scan(&self.layout, &self.packs)?;
        self.replace_tree(&scanned, &states, OldIndex::Remove)
    }

    /// Fills a new tree with what was scanned.
    fn replace_tree(
        &self,
        scanned: &Index,
        states: &[PackState],
        old: OldIndex,
    ) -> Result<(), CacheError> {
        let marks = watermarks(states, &self.packs)
            .map_err(CacheError::io("read", &self.layout.packs()))?;
        let replace = |index: &mut Index| {
            match old {
                OldIndex::Remove => drop(index.take_tree()),
                // not dropped: after a panic, sled may panic again when it closes
                OldIndex::SetAside => std::mem::forget(index.take_tree()),
            }
            match replace_index(&self.layout, scanned, &marks, old) {
                Ok(tree) => *index = Index::of_tree(tree),
                Err(fault) => index.give_up(fault),
            }
        };
        self.change(replace);
        Ok(())
    }

    /// Compares the index with the packs, and rebuilds it if they differ. Returns whether they did.
    pub(super) fn check_index(&self) -> Result<bool, CacheError> {
        let (scanned, states) = scan(&self.layout, &self.packs)?;
        let is_sound = |record: &Record| self.packs.verify_body(record).is_ok();
        if self.read(|index| index.agrees_with(&scanned, is_sound)) {
            return Ok(false);
        }
        self.replace_tree(&scanned, &states, OldIndex::SetAside)?;
        Ok(true)
    }
}
