//! The state of an open store: appending to the newest pack, the tables in memory, and the sled tree behind both.
//!
//! Frames go to the pack first, to the tables second and, once the pack is synced, to the tree. After a failed write to
//! a pack nothing more is written. If the tree fails, the run goes on without it, and it is rebuilt when the cache is
//! opened next.

pub(super) mod active_pack;
mod recovery;
pub(super) mod writer;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use crate::cache::entry::{FrameLocation, Record};
use crate::cache::error::{CacheError, IndexFault, IndexResult};
use crate::cache::index::Tables;
use crate::cache::index::index_folder::{OldIndex, replace_index, set_aside};
use crate::cache::index::scan::{PackState, scan, watermark, watermarks};
use crate::cache::index::tree::ActionTree;
use crate::cache::packs::PackFiles;
use crate::cache::packs::folder::{FolderKind, Layout};
use crate::cache::packs::packed::{PackedFrames, PortableFrame, pack};
use crate::cache::packs::shared_fields::{FieldNumbers, SharedFields};
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
    tables: RwLock<Tables>,
    /// `None` after it failed, or where it cannot be opened.
    tree: Mutex<Option<ActionTree>>,
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
            tables,
            tree,
            marks,
            active,
            lost,
        } = open_index(&layout, &packs, &mut notices)?;
        let store = StoreInner {
            layout,
            packs,
            tables: RwLock::new(tables),
            tree: Mutex::new(tree),
            active: Mutex::new(active),
            fault: OnceLock::new(),
            notices: Mutex::new(notices),
            lost,
            pending: AtomicBool::new(false),
        };
        store.with_tree(|tree| tree.update(&mut store.tables_mut(), &marks));
        Ok(store)
    }

    pub(super) fn active(&self) -> MutexGuard<'_, ActivePack> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> MutexGuard<'_, Option<ActionTree>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
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
        let frames = frames
            .iter()
            .map(|frame| PortableFrame::read(frame.clone(), &SharedFields::default()));
        self.append_portable(active, frames.collect(), durable)
    }

    pub(super) fn append_portable(
        &self,
        active: &mut ActivePack,
        frames: Vec<PortableFrame>,
        durable: bool,
    ) -> Result<Vec<FrameLocation>, CacheError> {
        if active.len >= PACK_LIMIT {
            self.start_next_pack(active)?;
        }
        let path = self.layout.pack(active.id);
        let packed = self.pack(active, frames)?;
        let located = locate(active, &packed.frames).map_err(CacheError::io("write to", &path))?;
        if let Err(e) = active.file.write_all(&packed.frames.concat()) {
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
        let mut tables = self.tables_mut();
        located
            .iter()
            .for_each(|(at, header)| tables.apply(*at, header));
        drop(tables);
        self.pending.store(true, Ordering::Release);
        if durable {
            self.update_tree(active);
        }
        if active.len - active.flushed > TREE_LAG {
            self.sync_pack(active)?;
            self.flush_tree(active);
        }
        Ok(packed
            .places
            .iter()
            .filter_map(|place| located.get(*place))
            .map(|(at, _)| *at)
            .collect())
    }

    /// Encodes frames for the active pack.
    fn pack(
        &self,
        active: &mut ActivePack,
        frames: Vec<PortableFrame>,
    ) -> Result<PackedFrames, CacheError> {
        let numbers = match &mut active.numbers {
            Some(numbers) => numbers,
            numbers => {
                let fields = self.packs.fields(active.id, active.len);
                let fields =
                    fields.map_err(CacheError::io("read", &self.layout.pack(active.id)))?;
                numbers.insert(FieldNumbers::from_shared(&fields))
            }
        };
        pack(frames, numbers).map_err(|error| self.poisoned(&error.to_string()))
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
        self.flush_tree(&mut active);
        Ok(())
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
        self.flush_tree(active);
        *active = ActivePack::create(&self.layout, active.id.saturating_add(1))?;
        Ok(())
    }

    /// Writes to the tree what changed in the tables. All of the active pack is synced.
    fn update_tree(&self, active: &ActivePack) {
        self.with_tree(|tree| {
            let mark =
                watermark(&active.file, active.nonce, active.len).map_err(IndexFault::broken)?;
            tree.update(&mut self.tables_mut(), &[(active.id, Some(mark))])
        });
    }

    /// As `update_tree`, and makes it durable.
    pub(super) fn flush_tree(&self, active: &mut ActivePack) {
        self.update_tree(active);
        self.with_tree(ActionTree::flush);
        active.flushed = active.len;
    }

    /// Writes to the tree that packs were removed, together with what changed in the tables.
    pub(super) fn forget_packs(&self, active: &ActivePack, ids: impl IntoIterator<Item = u32>) {
        let packs: Vec<_> = ids.into_iter().map(|id| (id, None)).collect();
        self.update_tree(active);
        self.with_tree(|tree| tree.update(&mut self.tables_mut(), &packs));
    }

    /// Uses the tree, if there is one. If it fails, it is set aside and not used any more.
    fn with_tree(&self, change: impl FnOnce(&ActionTree) -> IndexResult<()>) {
        let mut slot = self.tree();
        let Some(Err(fault)) = slot.as_ref().map(change) else {
            return;
        };
        // not dropped: after a panic, sled may panic again when it closes
        std::mem::forget(slot.take());
        let aside = set_aside(&self.layout)
            .err()
            .map(|error| format!("; {error}"))
            .unwrap_or_default();
        self.notice(format!("{}: the index failed ({}). Nothing is lost: it is made again from the packs when the cache is opened next{aside}",
            self.layout.root().display(),
            fault.text()));
    }

    /// Replaces the tree by one that takes no more space than its records need.
    pub(super) fn shrink_tree(&self, active: &ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        let states = self.states(active)?;
        let marks = watermarks(&states, &self.packs)
            .map_err(CacheError::io("read", &self.layout.packs()))?;
        let mut slot = self.tree();
        drop(slot.take());
        match replace_index(&self.layout, &self.tables(), &marks, OldIndex::Remove) {
            Ok(tree) => *slot = Some(tree),
            Err(fault) => {
                let root = self.layout.root().display();
                self.notice(format!(
                    "{root}: the index could not be made smaller: {}",
                    fault.text()
                ));
            }
        }
        Ok(())
    }

    /// The states of all packs. The tables have all of their frames.
    fn states(&self, active: &ActivePack) -> Result<Vec<PackState>, CacheError> {
        let mut states = scan(&self.layout, &self.packs)?.1;
        for state in &mut states {
            if state.id == active.id {
                *state = active.state();
            }
        }
        Ok(states)
    }

    /// Compares the tables with the packs, and rebuilds tables and tree if they differ. Returns whether they did.
    pub(super) fn check_tables(&self, active: &ActivePack) -> Result<bool, CacheError> {
        let (mut scanned, states) = scan(&self.layout, &self.packs)?;
        let agrees = self
            .tables()
            .agrees_with(&scanned, |record| self.packs.verify_body(record).is_ok());
        if agrees {
            return Ok(false);
        }
        let marks = watermarks(&states, &self.packs)
            .map_err(CacheError::io("read", &self.layout.pack(active.id)))?;
        let mut slot = self.tree();
        std::mem::forget(slot.take());
        scanned.damage.clear();
        *slot = replace_index(&self.layout, &scanned, &marks, OldIndex::SetAside).ok();
        scanned.track_changes();
        *self.tables_mut() = scanned;
        Ok(true)
    }
}
