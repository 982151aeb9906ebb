//! The state of an open store, on disk and in memory: appending to the newest pack, keeping the index up to date, and
//! recovering both when a cache is opened.
//!
//! Frames go to the pack first and to the index second, and the index is flushed only from time to time, so the index
//! may lag behind the packs, never the reverse. When a cache is opened, the frames after the indexed ones are indexed;
//! if index and packs disagree in any other way, the index is rebuilt from the packs. An interrupted write at the end
//! of the newest pack is cut off. After a failed write nothing more is written.
//!
//! A small intact cache needs none of this: `VerifiedTables` reads it completely, and the index is opened when something
//! is written.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::entry::FrameLocation;
use super::error::{CacheError, IndexFault};
use super::folder::{FolderKind, Layout};
use super::frame::{FrameHeader, PackHeader};
use super::index::DiskIndex;
use super::index_folder::{fresh_index, is_older_index, rebuild_index, remove_bad, remove_folder};
use super::pack::{PackFiles, PackItem, PackScanner, read_pack_header};
use super::pack_index::{IndexQueries, PackIndex, PackState, VerifiedTables};
use super::packed::{PackedFrames, PortableFrame, pack};
use super::shared_fields::{FieldNumbers, SharedFields};
use crate::action::Digest;
use crate::files::{create_private_folder, is_at, open_options};

/// A pack that reaches this length is closed and the next one is started.
const PACK_LIMIT: u64 = 128 << 20;

/// The index is flushed after this many bytes of frames rather than after each batch: after a crash, what it lacks is
/// read from the end of the pack.
const INDEX_LAG: u64 = 16 << 20;

/// A frame's place and its header.
pub(super) type LocatedFrame = (FrameLocation, FrameHeader);

/// The pack that is being written.
#[derive(Debug)]
pub(super) struct ActivePack {
    pub(super) file: File,
    pub(super) id: u32,
    pub(super) generation: u32,
    pub(super) len: u64,
    /// How much of it the flushed index covers.
    pub(super) indexed: u64,
    /// The numbers of its shared fields; `None` until something is written.
    pub(super) numbers: Option<FieldNumbers>,
}

/// The state that the store and its writer thread share.
#[derive(Debug)]
pub(super) struct StoreInner {
    pub(super) layout: Layout,
    pub(super) packs: PackFiles,
    /// `None` while `verified` answers queries, while the index is replaced, and if that failed.
    pub(super) index: RwLock<Option<DiskIndex>>,
    /// The tables of a small cache, until something is written.
    pub(super) verified: RwLock<Option<VerifiedTables>>,
    /// Every change on disk is made while holding this.
    active: Mutex<ActivePack>,
    fault: OnceLock<String>,
    notices: Mutex<Vec<String>>,
    /// Whether anything was written since the last sync.
    pending: AtomicBool,
    /// How often the index was rebuilt.
    pub(super) rebuilds: AtomicU64,
    /// Whether the index was compared with the packs.
    pub(super) audited: AtomicBool,
}

impl StoreInner {
    pub(super) fn new(
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

    pub(super) fn active(&self) -> MutexGuard<'_, ActivePack> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
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
        CacheError::Poisoned { path: self.layout.root().to_owned(), cause: cause.to_owned() }
    }

    /// Records the first failure; nothing is written after it.
    pub(super) fn fail(&self, error: &CacheError) -> CacheError {
        let cause = self.fault.get_or_init(|| match error {
            CacheError::Poisoned { cause, .. } => cause.clone(),
            CacheError::Removed { .. } => error.to_string(),
            other => format!("{other}. Everything stored before is intact; remove the cause and run again"),
        });
        self.poisoned(cause)
    }

    /// An error if an earlier write failed.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        self.fault.get().map_or(Ok(()), |cause| Err(self.poisoned(cause)))
    }

    /// Writes frames as one batch and indexes them. If `durable`, they are on disk when this returns.
    pub(super) fn commit(&self, frames: &[Vec<u8>], durable: bool) -> Result<Vec<FrameLocation>, CacheError> {
        self.check()?;
        let mut active = self.active();
        let written = self.open_index(&mut active).and_then(|()| self.append(&mut active, frames, durable));
        written.map_err(|error| self.fail(&error))
    }

    /// As `commit`, for a caller who holds the active pack and has opened the index.
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
    pub(super) fn sync(&self) -> Result<(), CacheError> {
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

    pub(super) fn sync_pack(&self, active: &ActivePack) -> Result<(), CacheError> {
        active.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(active.id)))
    }

    pub(super) fn flush_index(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.update(active, DiskIndex::flush)?;
        active.indexed = active.len;
        Ok(())
    }

    /// Changes the index. The packs already contain the change, so if it fails the index is rebuilt from them.
    pub(super) fn update(
        &self,
        active: &mut ActivePack,
        change: impl Fn(&DiskIndex) -> Result<(), IndexFault>,
    ) -> Result<(), CacheError> {
        self.try_index(change).or_else(|fault| self.rebuild(active, fault.text()))
    }

    /// Queries the index, without an attempt to repair it.
    pub(super) fn with_index<T>(
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
    pub(super) fn forget_text(&self, digest: &Digest) -> Result<(), CacheError> {
        let mut active = self.active();
        self.open_index(&mut active)?;
        self.update(&mut active, |index| index.forget_text(digest))
    }

    pub(super) fn index_error(&self, what: &str) -> CacheError {
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
    pub(super) fn audit(&self) -> Result<(), CacheError> {
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
}

/// Whether the index lacks any entry of the packs.
pub(super) fn lacks_entries(index: &DiskIndex, tables: &PackIndex) -> bool {
    let lacks_record = tables.records.values().any(|record| match index.find(&record.key) {
        Ok(Some(found)) => found.location != record.location,
        Ok(None) | Err(_) => true,
    });
    lacks_record || !index.journal().is_ok_and(|journal| journal == tables.journal)
}

/// Where frames will be once they are appended.
fn locate(active: &ActivePack, frames: &[Vec<u8>]) -> io::Result<Vec<LocatedFrame>> {
    let mut offset = active.len;
    let mut located = Vec::with_capacity(frames.len());
    for frame in frames {
        let header = FrameHeader::decode(frame).map_err(|_| io::Error::other("a frame is malformed"))?;
        located.push((header.location(active.id, offset), header));
        offset += frame.len() as u64;
    }
    Ok(located)
}

impl ActivePack {
    pub(super) fn state(&self) -> PackState {
        PackState { id: self.id, generation: self.generation, good: self.len, len: self.len }
    }

    pub(super) fn create(layout: &Layout, id: u32) -> Result<ActivePack, CacheError> {
        let path = layout.pack(id);
        let make = || {
            let mut file = open_options(&path).read(true).append(true).create(true).open(&path)?;
            file.set_len(0)?;
            file.write_all(&PackHeader { id, generation: 0 }.encode())?;
            file.sync_data()?;
            Ok(file)
        };
        let file = make().map_err(CacheError::io("create", &path))?;
        layout.sync_folder(&layout.packs())?;
        let len = PackHeader::LEN as u64;
        Ok(ActivePack { file, id, generation: 0, len, indexed: len, numbers: None })
    }

    /// Continues a pack after its last whole frame; what follows is cut off.
    pub(super) fn resume(layout: &Layout, state: PackState) -> Result<ActivePack, CacheError> {
        let path = layout.pack(state.id);
        let open = || {
            let file = File::options().read(true).append(true).open(&path)?;
            if file.metadata()?.len() > state.good {
                file.set_len(state.good)?;
                file.sync_data()?;
            }
            Ok(file)
        };
        let file = open().map_err(CacheError::io("open", &path))?;
        let PackState { id, generation, good: len, .. } = state;
        Ok(ActivePack { file, id, generation, len, indexed: len, numbers: None })
    }
}

/// Opens the folder for writing. The caller holds its lock.
pub(super) fn open(layout: Layout, found: FolderKind) -> Result<StoreInner, CacheError> {
    let mut notices = Vec::new();
    if found == FolderKind::Unlabelled {
        notices
            .push(format!("{}: the FORMAT file was missing or damaged and was written again", layout.root().display()));
    }
    layout.create()?;
    remove_leftovers(&layout)?;
    let packs = PackFiles::new(layout.clone());
    if let Some(verified) = verify_small(&layout, &packs)? {
        let active = ActivePack::after_scan(&layout, &verified.tables.packs, &mut notices)?;
        return Ok(StoreInner::new(layout, packs, (None, Some(verified)), active, notices));
    }
    let on_disk = pack_states(&layout, &packs)?;
    let resumed = open_current(&layout, &packs, &on_disk)
        .and_then(|(index, state)| Ok((index, ActivePack::resume(&layout, state).map_err(|error| error.to_string())?)));
    let (index, active) = match resumed {
        Ok((index, active)) => (index, active),
        Err(reason) => {
            let (index, tables) = rebuild_index(&layout, &packs)?;
            let active = ActivePack::after_scan(&layout, &tables.packs, &mut notices)?;
            add_notices(&layout, &reason, &tables, &mut notices);
            (index, active)
        }
    };
    Ok(StoreInner::new(layout, packs, (Some(index), None), active, notices))
}

/// Reads and verifies a small cache, if it has an index to continue with. On a read error the index decides.
fn verify_small(layout: &Layout, packs: &PackFiles) -> Result<Option<VerifiedTables>, CacheError> {
    if !DiskIndex::is_in(&layout.index()) {
        return Ok(None);
    }
    Ok(VerifiedTables::read(&layout.pack_ids()?, packs).unwrap_or(None))
}

/// Why the index must be rebuilt; `None` for a new cache and one of an older version, where there is nothing to report.
struct RebuildReason(Option<String>);

impl<T: Into<String>> From<T> for RebuildReason {
    fn from(text: T) -> RebuildReason {
        RebuildReason(Some(text.into()))
    }
}

/// The index, if it agrees with the packs except for what was appended last, and the state of the newest pack. What
/// was appended is indexed.
fn open_current(
    layout: &Layout,
    packs: &PackFiles,
    on_disk: &[PackState],
) -> Result<(DiskIndex, PackState), RebuildReason> {
    if !DiskIndex::is_in(&layout.index()) {
        let is_new = on_disk.is_empty() || is_older_index(&layout.index());
        return Err(if is_new { RebuildReason(None) } else { "it was missing".into() });
    }
    let index = DiskIndex::open(&layout.index()).map_err(|fault| fault.text().to_owned())?;
    let known = index.packs();
    let Some((newest, older)) = on_disk.split_last() else { return Err("the packs are missing".into()) };
    let (last_known, older_known) = match known.split_last() {
        Some((last, rest)) if last.id == newest.id => (*last, rest),
        // the newest pack was created, and nothing of it is indexed yet
        _ => (PackState { good: PackHeader::LEN as u64, ..*newest }, known.as_slice()),
    };
    let agree = |a: &PackState, b: &PackState| a.id == b.id && a.generation == b.generation && a.good == b.len;
    let older_agree = older.len() == older_known.len() && older_known.iter().zip(older).all(|(a, b)| agree(a, b));
    let grown = last_known.generation == newest.generation && last_known.good <= newest.len;
    if !older_agree || !grown {
        return Err("it was built from other packs".into());
    }
    let good = replay(&index, packs, last_known, newest.len)?;
    Ok((index, PackState { good, ..*newest }))
}

/// Indexes the frames after those that are indexed. Returns where the last whole one ends.
fn replay(index: &DiskIndex, packs: &PackFiles, known: PackState, len: u64) -> Result<u64, RebuildReason> {
    if known.good == len {
        return Ok(len);
    }
    let file = packs.file(known.id).map_err(|e| e.to_string())?;
    let mut scanner = PackScanner::new(known.id, &file, known.good, len);
    let mut frames = Vec::new();
    let mut good = known.good;
    while let Some(found) = scanner.next().map_err(|e| e.to_string())? {
        match found {
            PackItem::Frame(at, header) => {
                good = at.end();
                frames.push((at, header));
            }
            PackItem::Damaged { what, .. } => return Err(what.into()),
            PackItem::Torn { .. } => {}
        }
    }
    let state = PackState { good, ..known };
    index.append(&frames, state).and_then(|()| index.flush()).map_err(|fault| fault.text().to_owned())?;
    Ok(good)
}

/// The packs on disk. If the newest pack has no complete header, its creation was interrupted: it is removed and
/// created again.
fn pack_states(layout: &Layout, packs: &PackFiles) -> Result<Vec<PackState>, CacheError> {
    let mut states = Vec::new();
    for id in layout.pack_ids()? {
        let read = || {
            let file = packs.file(id)?;
            let len = file.metadata()?.len();
            let header = read_pack_header(&file, len)?;
            // this generation agrees with no index, so that a pack with a damaged header is scanned
            let generation = header.map_or(u32::MAX, |header| header.generation);
            io::Result::Ok(PackState { id, generation, good: len, len })
        };
        states.push(read().map_err(CacheError::io("read", &layout.pack(id)))?);
    }
    if let Some(last) = states.last().filter(|last| last.len < PackHeader::LEN as u64).copied() {
        states.pop();
        let path = layout.pack(last.id);
        packs.close(last.id);
        fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
    }
    Ok(states)
}

/// Removes what an interrupted rewrite or rebuild left behind.
fn remove_leftovers(layout: &Layout) -> Result<(), CacheError> {
    remove_folder(&fresh_index(layout))?;
    let folder = layout.packs();
    for entry in fs::read_dir(&folder).map_err(CacheError::io("list", &folder))? {
        let path = entry.map_err(CacheError::io("list", &folder))?.path();
        if path.extension().is_some_and(|extension| extension == "rewrite") {
            fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn add_notices(layout: &Layout, reason: &RebuildReason, tables: &PackIndex, notices: &mut Vec<String>) {
    if let Some(why) = &reason.0 {
        notices.push(format!(
            "{}: the index was rebuilt from the packs, {} entries ({why})",
            layout.root().display(),
            tables.records.len()
        ));
    }
    let damage = tables.damage.iter();
    notices.extend(damage.map(|damage| format!("{damage}. `compeval cache verify` removes it")));
}

impl ActivePack {
    /// The pack to continue with after a scan.
    fn after_scan(layout: &Layout, packs: &[PackState], notices: &mut Vec<String>) -> Result<ActivePack, CacheError> {
        let Some(last) = packs.last() else { return ActivePack::create(layout, 1) };
        if last.good < last.len {
            let kept = copy_damaged(layout, last.id, last.good, last.len)?;
            notices.push(format!(
                "{}: the last {} bytes are not a whole entry and were cut off (a copy is in {})",
                layout.pack(last.id).display(),
                last.len - last.good,
                kept.display()
            ));
        }
        ActivePack::resume(layout, *last)
    }
}

/// Copies a range of a pack into the folder for damaged data.
pub(super) fn copy_damaged(layout: &Layout, id: u32, from: u64, to: u64) -> Result<PathBuf, CacheError> {
    let folder = layout.damaged();
    create_private_folder(&folder)?;
    let path = folder.join(format!("{id:08}-{from}.bin"));
    let copy = || {
        let mut source = File::open(layout.pack(id))?;
        source.seek(SeekFrom::Start(from))?;
        let mut target = open_options(&path).write(true).create(true).truncate(true).open(&path)?;
        io::copy(&mut source.take(to.saturating_sub(from)), &mut target)?;
        target.sync_data()
    };
    copy().map_err(CacheError::io("write", &path))?;
    Ok(path)
}

impl StoreInner {
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
    pub(super) fn rebuild(&self, active: &mut ActivePack, why: &str) -> Result<(), CacheError> {
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
    pub(super) fn shrink_index(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        let mut slot = self.index.write().unwrap_or_else(PoisonError::into_inner);
        drop(slot.take());
        let (index, _) = rebuild_index(&self.layout, &self.packs)?;
        *slot = Some(index);
        remove_bad(&self.layout)
    }
}
