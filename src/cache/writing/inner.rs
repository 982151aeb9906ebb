//! The state of an open store, on disk and in memory: appending to the newest pack, and keeping the index up to date.
//!
//! Frames go to the pack first and to the index second, and the index is flushed only from time to time, so the index
//! may lag behind the packs, never the reverse. After a failed write nothing more is written.
//!
//! A small intact cache needs no index: `VerifiedTables` reads it completely, and the index is opened when something is
//! written.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::active_pack::{ActivePack, locate};
use super::recovery::{
    RebuildReason, lacks_entries, open_current, pack_states, rebuilt, remove_leftovers, verify_small,
};
use crate::action::Digest;
use crate::cache::entry::FrameLocation;
use crate::cache::error::{CacheError, IndexFault};
use crate::cache::index::disk_index::DiskIndex;
use crate::cache::index::index_folder::{rebuild_index, remove_bad};
use crate::cache::index::pack_index::{IndexQueries, PackIndex, VerifiedTables};
use crate::cache::packs::folder::{FolderKind, Layout};
use crate::cache::packs::pack::PackFiles;
use crate::cache::packs::packed::{PackedFrames, PortableFrame, pack};
use crate::cache::packs::shared_fields::{FieldNumbers, SharedFields};
use base::files::is_at;

/// A pack that reaches this length is closed and the next one is started.
const PACK_LIMIT: u64 = 128 << 20;

/// The index is flushed after this many bytes of frames rather than after each batch: after a crash, what it lacks is
/// read from the end of the pack.
const INDEX_LAG: u64 = 16 << 20;

/// The state that the store and its writer thread share.
#[derive(Debug)]
pub(in crate::cache) struct StoreInner {
    pub(in crate::cache) layout: Layout,
    pub(in crate::cache) packs: PackFiles,
    /// `None` while `verified` answers queries, while the index is replaced, and if that failed.
    pub(in crate::cache) index: RwLock<Option<DiskIndex>>,
    /// The tables of a small cache, until something is written.
    pub(in crate::cache) verified: RwLock<Option<VerifiedTables>>,
    /// Every change on disk is made while holding this.
    active: Mutex<ActivePack>,
    fault: OnceLock<String>,
    notices: Mutex<Vec<String>>,
    /// Whether anything was written since the last sync.
    pending: AtomicBool,
    /// How often the index was rebuilt.
    pub(super) rebuilds: AtomicU64,
    /// Whether the index was compared with the packs.
    pub(in crate::cache) audited: AtomicBool,
}

impl StoreInner {
    pub(in crate::cache) fn new(
        layout: Layout,
        packs: PackFiles,
        (index, verified): (Option<DiskIndex>, Option<VerifiedTables>),
        active: ActivePack,
        notices: Vec<String>,
    ) -> StoreInner {
        StoreInner {
            layout,
            packs,
            index: RwLock::new(index),
            verified: RwLock::new(verified),
            active: Mutex::new(active),
            fault: OnceLock::new(),
            notices: Mutex::new(notices),
            pending: AtomicBool::new(false),
            rebuilds: AtomicU64::new(0),
            audited: AtomicBool::new(false),
        }
    }

    /// Opens the folder for writing. The caller holds its lock.
    pub(in crate::cache) fn open(layout: Layout, found: FolderKind) -> Result<StoreInner, CacheError> {
        let mut notices = Vec::new();
        if found == FolderKind::Unlabelled {
            notices.push(format!(
                "{}: the FORMAT file was missing or damaged and was written again",
                layout.root().display()
            ));
        }
        layout.create()?;
        remove_leftovers(&layout)?;
        let packs = PackFiles::new(layout.clone());
        if let Some(verified) = verify_small(&layout, &packs)? {
            let active = ActivePack::after_scan(&layout, &verified.tables.packs, &mut notices)?;
            return Ok(StoreInner::new(layout, packs, (None, Some(verified)), active, notices));
        }
        let on_disk = pack_states(&layout, &packs)?;
        let resumed = open_current(&layout, &packs, &on_disk).and_then(|(index, state)| {
            Ok((index, ActivePack::resume(&layout, state).map_err(|error| error.to_string())?))
        });
        let (index, active) = match resumed {
            Ok((index, active)) => (index, active),
            Err(reason) => {
                let (index, tables) = rebuild_index(&layout, &packs)?;
                let active = ActivePack::after_scan(&layout, &tables.packs, &mut notices)?;
                notices.extend(rebuilt(&layout, &reason, &tables));
                (index, active)
            }
        };
        Ok(StoreInner::new(layout, packs, (Some(index), None), active, notices))
    }

    pub(in crate::cache) fn active(&self) -> MutexGuard<'_, ActivePack> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::cache) fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&text) {
            notices.push(text);
        }
    }

    pub(in crate::cache) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(in crate::cache) fn poisoned(&self, cause: &str) -> CacheError {
        CacheError::Poisoned { path: self.layout.root().to_owned(), cause: cause.to_owned() }
    }

    /// Records the first failure; nothing is written after it.
    pub(in crate::cache) fn fail(&self, error: &CacheError) -> CacheError {
        let cause = self.fault.get_or_init(|| match error {
            CacheError::Poisoned { cause, .. } => cause.clone(),
            CacheError::Removed { .. } => error.to_string(),
            other => format!("{other}. Everything stored before is intact; remove the cause and run again"),
        });
        self.poisoned(cause)
    }

    /// An error if an earlier write failed.
    pub(in crate::cache) fn check(&self) -> Result<(), CacheError> {
        self.fault.get().map_or(Ok(()), |cause| Err(self.poisoned(cause)))
    }

    /// Writes frames as one batch and indexes them. If `durable`, they are on disk when this returns.
    pub(in crate::cache) fn commit(&self, frames: &[Vec<u8>], durable: bool) -> Result<Vec<FrameLocation>, CacheError> {
        self.check()?;
        self.exclusively(|active| self.append(active, frames, durable))
    }

    /// Changes packs and index while nobody else does. After an error nothing more is written.
    pub(in crate::cache) fn exclusively<T>(
        &self,
        change: impl FnOnce(&mut ActivePack) -> Result<T, CacheError>,
    ) -> Result<T, CacheError> {
        let mut active = self.active();
        self.open_index(&mut active).and_then(|()| change(&mut active)).map_err(|error| self.fail(&error))
    }

    /// As `commit`, for a caller who holds the active pack and has opened the index.
    pub(in crate::cache) fn append(
        &self,
        active: &mut ActivePack,
        frames: &[Vec<u8>],
        durable: bool,
    ) -> Result<Vec<FrameLocation>, CacheError> {
        if active.len >= PACK_LIMIT {
            self.start_next_pack(active)?;
        }
        let path = self.layout.pack(active.id);
        let write_error = || CacheError::io("write to", &path);
        let packed = self.pack(active, frames)?;
        let located = locate(active, &packed.frames).map_err(write_error())?;
        if let Err(e) = active.file.write_all(&packed.frames.concat()) {
            // half a write is cut off now, or when the cache is opened next
            let _ = active.file.set_len(active.len);
            return Err(write_error()(e));
        }
        active.len = located.last().map_or(active.len, |(at, _)| at.end());
        if durable {
            active.file.sync_data().map_err(write_error())?;
            self.check_in_place(active)?;
        }
        let state = active.state();
        self.update(active, |index| index.append(&located, state))?;
        self.pending.store(true, Ordering::Release);
        if active.len - active.indexed > INDEX_LAG {
            self.sync_pack(active)?;
            self.flush_index(active)?;
        }
        Ok(packed.places.iter().filter_map(|place| located.get(*place)).map(|(at, _)| *at).collect())
    }

    /// Frames as the active pack gets them.
    fn pack(&self, active: &mut ActivePack, frames: &[Vec<u8>]) -> Result<PackedFrames, CacheError> {
        let numbers = match &mut active.numbers {
            Some(numbers) => numbers,
            numbers => {
                self.layout.admit_packed()?;
                let fields = self.packs.fields(active.id, active.len);
                let fields = fields.map_err(CacheError::io("read", &self.layout.pack(active.id)))?;
                numbers.insert(FieldNumbers::of(&fields))
            }
        };
        let frames = frames.iter().map(|frame| PortableFrame::read(frame.clone(), &SharedFields::default()));
        pack(frames.collect(), numbers).map_err(|error| self.poisoned(&error.to_string()))
    }

    /// Makes everything durable that was written without waiting.
    pub(in crate::cache) fn sync(&self) -> Result<(), CacheError> {
        self.check()?;
        let mut active = self.active();
        self.check_in_place(&active).map_err(|error| self.fail(&error))?;
        if !self.pending.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.sync_pack(&active).and_then(|()| self.flush_index(&mut active));
        synced.map_err(|error| self.fail(&error))
    }

    /// An error if the pack that is written is no longer the one in the folder.
    fn check_in_place(&self, active: &ActivePack) -> Result<(), CacheError> {
        let path = self.layout.pack(active.id);
        if is_at(&active.file, &path) {
            Ok(())
        } else {
            Err(CacheError::Removed { path: self.layout.root().to_owned() })
        }
    }

    pub(in crate::cache) fn sync_pack(&self, active: &ActivePack) -> Result<(), CacheError> {
        active.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(active.id)))
    }

    pub(in crate::cache) fn flush_index(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.update(active, DiskIndex::flush)?;
        active.indexed = active.len;
        Ok(())
    }

    /// Changes the index. The packs already contain the change, so if it fails the index is rebuilt from them.
    pub(in crate::cache) fn update(
        &self,
        active: &mut ActivePack,
        change: impl Fn(&DiskIndex) -> Result<(), IndexFault>,
    ) -> Result<(), CacheError> {
        self.try_index(change).or_else(|fault| self.rebuild(active, fault.text()))
    }

    /// Queries the index, without an attempt to repair it.
    pub(in crate::cache) fn with_index<T>(
        &self,
        query: impl FnOnce(&DiskIndex) -> Result<T, IndexFault>,
    ) -> Result<T, CacheError> {
        self.try_index(query).map_err(|fault| self.index_error(fault.text()))
    }

    pub(super) fn try_index<T>(
        &self,
        query: impl FnOnce(&DiskIndex) -> Result<T, IndexFault>,
    ) -> Result<T, IndexFault> {
        match &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => query(index),
            None => Err(IndexFault::broken("it is not open")),
        }
    }

    /// Removes the location of a damaged text, so that the text can be stored again.
    pub(in crate::cache) fn forget_text(&self, digest: &Digest) -> Result<(), CacheError> {
        let mut active = self.active();
        self.open_index(&mut active)?;
        self.update(&mut active, |index| index.forget_text(digest))
    }

    pub(in crate::cache) fn index_error(&self, what: &str) -> CacheError {
        CacheError::Index { path: self.layout.index(), what: what.to_owned() }
    }

    /// Closes the active pack and starts the next one. The index is flushed first: only the newest pack may be ahead of
    /// it.
    fn start_next_pack(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        self.flush_index(active)?;
        *active = ActivePack::create(&self.layout, active.id.saturating_add(1))?;
        Ok(())
    }

    /// Compares the index with the packs, once, at the first miss: a miss costs money, so it must be a real one. Rebuilds
    /// the index if entries are missing from it.
    pub(in crate::cache) fn audit(&self) -> Result<(), CacheError> {
        let mut active = self.active();
        self.open_index(&mut active)?;
        if self.audited.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let tables = PackIndex::scan(&self.layout, &self.packs)?;
        if self.try_index(|index| Ok(lacks_entries(index, &tables))).unwrap_or(true) {
            self.rebuild(&mut active, "entries are missing from it")?;
        }
        Ok(())
    }

    /// Opens the index, if verified tables were used instead so far. The caller holds the active pack, so nothing else is
    /// written.
    pub(super) fn open_index(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        let mut verified = self.verified.write().unwrap_or_else(PoisonError::into_inner);
        let Some(VerifiedTables { tables, .. }) = &*verified else { return Ok(()) };
        match open_current(&self.layout, &self.packs, &tables.packs) {
            Ok((index, state)) => {
                let is_good = state.good == active.len && !lacks_entries(&index, tables);
                *self.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index);
                if !is_good {
                    self.rebuild(active, "entries are missing from it")?;
                }
            }
            Err(RebuildReason(why)) => self.rebuild(active, why.as_deref().unwrap_or("it was missing"))?,
        }
        self.audited.store(true, Ordering::Release);
        *verified = None;
        Ok(())
    }

    /// Rebuilds the index while the store is open.
    pub(in crate::cache) fn rebuild(&self, active: &mut ActivePack, why: &str) -> Result<(), CacheError> {
        let entries = self.replace_index(active)?;
        self.notice(format!(
            "{}: the index was rebuilt from the packs, {entries} entries ({why})",
            self.layout.root().display()
        ));
        Ok(())
    }

    fn replace_index(&self, active: &mut ActivePack) -> Result<usize, CacheError> {
        self.sync_pack(active)?;
        let mut slot = self.index.write().unwrap_or_else(PoisonError::into_inner);
        // not dropped: after a panic, sled may panic again when it closes
        std::mem::forget(slot.take());
        let (index, tables) = rebuild_index(&self.layout, &self.packs)?;
        *slot = Some(index);
        self.rebuilds.fetch_add(1, Ordering::AcqRel);
        Ok(tables.records.len())
    }

    /// Rebuilds the index because it is much larger than its records need.
    pub(in crate::cache) fn shrink_index(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        let mut slot = self.index.write().unwrap_or_else(PoisonError::into_inner);
        drop(slot.take());
        let (index, _) = rebuild_index(&self.layout, &self.packs)?;
        *slot = Some(index);
        remove_bad(&self.layout)
    }

    /// Queries the tables. A broken index is rebuilt from the packs.
    pub(in crate::cache) fn try_query<T>(
        &self,
        query: &impl Fn(&dyn IndexQueries) -> Result<T, IndexFault>,
    ) -> Result<T, CacheError> {
        let rebuilds = self.rebuilds.load(Ordering::Acquire);
        let fault = match self.query_once(query) {
            Ok(result) => return Ok(result),
            Err(fault) => fault,
        };
        let mut active = self.active();
        if self.rebuilds.load(Ordering::Acquire) == rebuilds {
            self.rebuild(&mut active, fault.text())?;
        }
        drop(active);
        self.query_once(query).map_err(|fault| self.index_error(fault.text()))
    }

    fn query_once<T>(&self, query: &impl Fn(&dyn IndexQueries) -> Result<T, IndexFault>) -> Result<T, IndexFault> {
        if let Some(verified) = &*self.verified.read().unwrap_or_else(PoisonError::into_inner) {
            return query(&verified.tables);
        }
        self.try_index(|index| query(index))
    }
}
