//! The state of an open store: appending to the newest pack, and the index of all of them.
//!
//! Frames go to the pack first, to the memory of the index second and, once the pack is synced, to the tree. After a failed
//! write to a pack nothing more is written. If the tree fails, the packs are read, and the run goes on without the tree.
//!
//! When a store is opened, a tree that does not have all of the packs is filled again from them. That is silent after a kill,
//! when the packs are longer than the tree knows; the rest of an interrupted write at their end is cut off.
//!
//! The writer thread takes all requests that are waiting, writes them as one batch with one sync, and then acknowledges them;
//! it never waits for a batch to fill up.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::cache::entry::{FrameLocation, Record};
use crate::cache::error::{CacheError, Damage, IndexFault};
use crate::cache::index::tree::{ActionTree, CleanState, remove_tree};
use crate::cache::index::{Index, scan};
use crate::cache::packs::folder::{FolderKind, Layout};
use crate::cache::packs::frame::{FrameHeader, PackHeader};
use crate::cache::packs::{PackFiles, PackState};
use crate::digest::ActionKey;
use base::files::{is_at, open_options};
use base::guarded;
use base::threads::lock;

/// A pack that reaches this length is closed and the next one is started.
const PACK_LIMIT: u64 = 128 << 20;

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
    /// The pack that the flushed tree has and the folder does not, until it is reported.
    pub(super) lost_pack: Mutex<Option<Damage>>,
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
        for name in ["FORMAT.new", "CACHEDIR.new"] {
            base::files::remove_if_there(&layout.root().join(name))?;
        }
        let packs = PackFiles::new(layout.clone());
        let ids = usable_packs(&layout)?;
        let states = ids.iter().map(|id| PackState::of_whole(*id, &packs));
        let states: Vec<PackState> = states
            .collect::<Result<_, _>>()
            .map_err(CacheError::io("read", &layout.packs()))?;
        let opened = open_tree(&layout, &states);
        let is_flushed = opened.is_ok();
        let lost_pack = match &opened {
            Err(RebuildReason::PackLost(id)) => Some(packs.damage_at(
                *id,
                0,
                "it is missing or has been replaced; the next run recreates its contents",
            )),
            _ => None,
        };
        let (index, newest) = match opened {
            Ok(tree) => (Index::of_tree(tree), states.last().copied()),
            Err(reason) => rebuilt(&layout, &packs, &reason, &mut notices)?,
        };
        let active = match newest {
            Some(newest) => ActivePack::resume(&layout, newest)?,
            None => ActivePack::create(&layout, 1)?,
        };
        let store = StoreInner {
            layout,
            packs,
            index: RwLock::new(index),
            counted: AtomicBool::new(false),
            active: Mutex::new(active),
            fault: OnceLock::new(),
            notices: Mutex::new(notices),
            lost_pack: Mutex::new(lost_pack),
            pending: AtomicBool::new(false),
        };
        if !is_flushed {
            store.flush_tree(&store.active())?;
        }
        Ok(store)
    }

    pub(super) fn active(&self) -> MutexGuard<'_, ActivePack> {
        lock(&self.active)
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
        let root = self.layout.root().display();
        self.notice(format!("{root}: the index failed ({why}). Nothing is lost: it is made again from the packs when the cache is opened next"));
        // not dropped: after a panic, sled may panic again when it closes
        std::mem::forget(index.take_tree());
        let _ = remove_tree(&self.layout.index());
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
        let mut notices = lock(&self.notices);
        if !notices.contains(&text) {
            notices.push(text);
        }
    }

    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices))
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

    /// Writes frames as one batch and notes them in the index. If `durable`, they are on disk when this returns.
    pub(super) fn commit(
        &self,
        frames: &[Vec<u8>],
        durable: bool,
    ) -> Result<Vec<FrameLocation>, CacheError> {
        self.check()?;
        self.exclusively(|active| self.append(active, frames, durable))
    }

    /// Changes packs and index while nobody else does. After an error nothing more is written.
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
        if active.state.len >= PACK_LIMIT {
            self.start_next_pack(active)?;
        }
        let path = self.layout.pack(active.state.id);
        let located = locate(active, frames).map_err(CacheError::io("write to", &path))?;
        if let Err(e) = active.file.write_all(&frames.concat()) {
            // half a write is cut off now, or when the cache is opened next
            if is_at(&active.file, &path) {
                let _ = cut(&path, active.state.len);
            }
            return Err(CacheError::io("write to", &path)(e));
        }
        active.state.len = located.last().map_or(active.state.len, |(at, _)| at.end());
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
            self.change(Index::write_tree);
        }
        Ok(located.into_iter().map(|(at, _)| at).collect())
    }

    /// Makes everything durable that was written without waiting.
    pub(super) fn sync(&self) -> Result<(), CacheError> {
        self.check()?;
        let active = self.active();
        self.check_in_place(&active)
            .map_err(|error| self.fail(&error))?;
        if !self.pending.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.sync_pack(&active).map_err(|error| self.fail(&error))?;
        self.flush_tree(&active)
    }

    /// An error if the pack that is written is no longer the one in the folder.
    fn check_in_place(&self, active: &ActivePack) -> Result<(), CacheError> {
        let path = self.layout.pack(active.state.id);
        if is_at(&active.file, &path) {
            Ok(())
        } else {
            Err(CacheError::Removed {
                path: self.layout.root().to_owned(),
            })
        }
    }

    pub(super) fn sync_pack(&self, active: &ActivePack) -> Result<(), CacheError> {
        active.file.sync_data().map_err(CacheError::io(
            "write to",
            &self.layout.pack(active.state.id),
        ))
    }

    /// Closes the active pack and starts the next one.
    pub(super) fn start_next_pack(&self, active: &mut ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        *active = ActivePack::create(&self.layout, active.state.id.saturating_add(1))?;
        Ok(())
    }

    /// Writes to the tree what it lacks and makes it durable. All packs are synced.
    fn flush_tree(&self, active: &ActivePack) -> Result<(), CacheError> {
        let mut states = Vec::new();
        for id in self.layout.pack_ids()? {
            states.push(match id == active.state.id {
                true => active.state,
                false => PackState::of_whole(id, &self.packs)
                    .map_err(CacheError::io("read", &self.layout.pack(id)))?,
            });
        }
        self.change(|index| {
            index.write_tree();
            index.flush_tree(states);
        });
        Ok(())
    }

    /// Reads the index from the packs, and goes on without a tree, which is removed.
    pub(super) fn remove_tree(&self) -> Result<(), CacheError> {
        let (scanned, _) = scan(&self.layout, &self.packs)?;
        self.change(|index| {
            drop(index.take_tree());
            *index = scanned;
            if let Err(fault) = remove_tree(&self.layout.index()) {
                self.notice(without_index(&self.layout, &fault));
            }
        });
        Ok(())
    }

    /// Makes a tree again, of all that the packs have.
    pub(super) fn make_tree(&self, active: &ActivePack) -> Result<(), CacheError> {
        self.sync_pack(active)?;
        let (scanned, _) = scan(&self.layout, &self.packs)?;
        self.change(|index| {
            *index = scanned;
            if let Err(fault) = index.fill_tree(&self.layout) {
                self.notice(without_index(&self.layout, &fault));
            }
        });
        self.flush_tree(active)
    }
}

/// Why the tree is filled again.
enum RebuildReason {
    /// A killed process has not flushed it.
    Killed,
    /// There is none, as in a new cache.
    Missing,
    /// It has this pack, which is missing or another one.
    PackLost(u32),
    /// It is not what was flushed.
    Damaged(String),
}

/// The tree, if it has all of these packs.
fn open_tree(layout: &Layout, states: &[PackState]) -> Result<ActionTree, RebuildReason> {
    let Some(clean) = CleanState::read(&layout.index()) else {
        return Err(RebuildReason::Missing);
    };
    if clean.packs == states && !states.is_empty() {
        let opened = ActionTree::open_clean(&layout.index(), &clean);
        return opened.map_err(|fault| RebuildReason::Damaged(fault.text().to_owned()));
    }
    let is_longer = |known: &PackState| {
        states
            .iter()
            .any(|now| (now.id, now.nonce) == (known.id, known.nonce) && now.len >= known.len)
    };
    match clean.packs.iter().find(|known| !is_longer(known)) {
        None => Err(RebuildReason::Killed),
        Some(lost) => Err(RebuildReason::PackLost(lost.id)),
    }
}

/// The index that is read from the packs, with a new tree, and the newest pack.
fn rebuilt(
    layout: &Layout,
    packs: &PackFiles,
    reason: &RebuildReason,
    notices: &mut Vec<String>,
) -> Result<(Index, Option<PackState>), CacheError> {
    let (mut index, states) = scan(layout, packs)?;
    let root = layout.root().display();
    let entries = index.records().len();
    let why = match reason {
        RebuildReason::Killed => None,
        RebuildReason::Missing if entries == 0 && index.damage.is_empty() => None,
        RebuildReason::Missing => Some("it was missing".to_owned()),
        RebuildReason::PackLost(id) => Some(format!("pack {id} is missing or another one")),
        RebuildReason::Damaged(why) => Some(why.clone()),
    };
    if let Some(why) = &why {
        notices.push(format!(
            "{root}: the index was rebuilt from the packs, {entries} entries ({why})"
        ));
    }
    notices.extend(index.damage_notices());
    if let (Some(_), Some(last)) = (why, states.last()) {
        let path = layout.pack(last.id);
        let file = packs.file(last.id).and_then(|file| file.metadata());
        let len = file.map_err(CacheError::io("read", &path))?.len();
        if last.len < len {
            notices.push(format!(
                "{}: the last {} bytes are not a whole entry and were cut off",
                path.display(),
                len - last.len
            ));
        }
    }
    if let Err(fault) = index.fill_tree(layout) {
        notices.push(without_index(layout, &fault));
    }
    Ok((index, states.last().copied()))
}

fn without_index(layout: &Layout, fault: &IndexFault) -> String {
    format!(
        "{}: works without an index, which cannot be made here: {}",
        layout.root().display(),
        fault.text()
    )
}

/// The numbers of the packs. If the newest has no complete header, its creation was interrupted: it is removed and
/// created again.
fn usable_packs(layout: &Layout) -> Result<Vec<u32>, CacheError> {
    let mut ids = layout.pack_ids()?;
    if let Some(newest) = ids.last().copied() {
        let path = layout.pack(newest);
        let found = guarded::metadata(&path).map_err(CacheError::io("read", &path))?;
        let len = found.map_or(0, |found| found.len());
        if len < PackHeader::LEN as u64 {
            guarded::remove_file(&path).map_err(CacheError::io("remove", &path))?;
            ids.pop();
        }
    }
    Ok(ids)
}

/// A frame's place and its header.
type LocatedFrame = (FrameLocation, FrameHeader);

/// The pack that is being written.
#[derive(Debug)]
pub(crate) struct ActivePack {
    pub file: File,
    pub state: PackState,
}

impl ActivePack {
    pub(crate) fn create(layout: &Layout, id: u32) -> Result<ActivePack, CacheError> {
        let path = layout.pack(id);
        let (file, nonce) = create_file(&path, id).map_err(CacheError::io("create", &path))?;
        layout.sync_folder(&layout.packs())?;
        let len = PackHeader::LEN as u64;
        Ok(ActivePack {
            file,
            state: PackState { id, nonce, len },
        })
    }

    /// Continues a pack after its last whole frame; what follows is cut off.
    pub(super) fn resume(layout: &Layout, state: PackState) -> Result<ActivePack, CacheError> {
        let path = layout.pack(state.id);
        let file = open_cut(&path, state.len).map_err(CacheError::io("open", &path))?;
        Ok(ActivePack { file, state })
    }
}

/// Creates the file of a pack, where there is none yet: no pack is ever overwritten. Returns it with its nonce.
fn create_file(path: &Path, id: u32) -> io::Result<(File, u64)> {
    let header = PackHeader::new(id)?;
    let mut options = open_options(path);
    options.read(true).append(true).create_new(true);
    let mut file = guarded::open_with(&mut options, path)?;
    file.write_all(&header.encode())?;
    file.sync_data()?;
    Ok((file, header.nonce))
}

/// Opens a pack and cuts off everything after `good`.
fn open_cut(path: &Path, good: u64) -> io::Result<File> {
    let file = guarded::open_with(File::options().read(true).append(true), path)?;
    if file.metadata()?.len() > good {
        cut(path, good)?;
    }
    Ok(file)
}

/// Cuts a pack off after `len` bytes, durably. Windows does not let a file be shortened that is open for appending, so
/// it is opened again.
pub(crate) fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = guarded::open_with(File::options().write(true), path)?;
    file.set_len(len)?;
    file.sync_data()
}

/// Where frames will be once they are appended.
pub(super) fn locate(active: &ActivePack, frames: &[Vec<u8>]) -> io::Result<Vec<LocatedFrame>> {
    let mut offset = active.state.len;
    let mut located = Vec::with_capacity(frames.len());
    for frame in frames {
        let header =
            FrameHeader::decode(frame).map_err(|_| io::Error::other("a frame is malformed"))?;
        located.push((header.location(active.state.id, offset), header));
        offset += frame.len() as u64;
    }
    Ok(located)
}

/// A request to the writer thread.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    /// A frame whose caller waits until it is on disk.
    Put {
        frame: Vec<u8>,
        ack: oneshot::Sender<Result<FrameLocation, CacheError>>,
    },
    /// A frame that can be derived again: written in order, durable with the next `Put` or `Sync`.
    Background(Vec<u8>),
    /// Makes everything before it durable.
    Sync(mpsc::Sender<Result<(), CacheError>>),
}

/// The writer thread and its queue. The queue needs no bound: whoever puts an entry waits for its acknowledgement, so it
/// is never longer than the number of actions in flight.
#[derive(Debug)]
pub(crate) struct WriterThread {
    requests: Option<UnboundedSender<WriteRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(crate) fn start(store: Arc<StoreInner>) -> std::io::Result<WriterThread> {
        let (requests, queue) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("cache".into())
            .spawn(move || write_all(&store, queue))?;
        Ok(WriterThread {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Queues a request. If the thread has ended the request is dropped, which its sender sees from its channel.
    pub(crate) fn send(&self, request: WriteRequest) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(request);
        }
    }
}

impl Drop for WriterThread {
    /// Waits until everything queued is on disk.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(store: &StoreInner, mut queue: UnboundedReceiver<WriteRequest>) {
    const BATCH_FRAMES: usize = 256;
    const BATCH_BYTES: usize = 4 << 20;
    while let Some(first) = queue.blocking_recv() {
        let mut batch = WriteBatch::default();
        batch.add(first);
        while batch.frames.len() < BATCH_FRAMES && batch.bytes < BATCH_BYTES {
            match queue.try_recv() {
                Ok(request) => batch.add(request),
                Err(_) => break,
            }
        }
        batch.commit(store);
    }
    // a failure is recorded in the store; there is no caller left to return it to
    let _ = store.sync();
}

#[derive(Default)]
struct WriteBatch {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    puts: Vec<(usize, oneshot::Sender<Result<FrameLocation, CacheError>>)>,
    syncs: Vec<mpsc::Sender<Result<(), CacheError>>>,
}

impl WriteBatch {
    fn add(&mut self, request: WriteRequest) {
        let frame = match request {
            WriteRequest::Put { frame, ack } => {
                self.puts.push((self.frames.len(), ack));
                frame
            }
            WriteRequest::Background(frame) => frame,
            WriteRequest::Sync(ack) => return self.syncs.push(ack),
        };
        self.bytes += frame.len();
        self.frames.push(frame);
    }

    fn commit(self, store: &StoreInner) {
        let result = if self.frames.is_empty() {
            Ok(Vec::new())
        } else {
            store.commit(&self.frames, !self.puts.is_empty())
        };
        for (index, ack) in self.puts {
            let outcome = match &result {
                Ok(locations) => {
                    let location = locations.get(index).copied();
                    location.ok_or_else(|| store.fail(&store.poisoned("a frame was not written")))
                }
                Err(error) => Err(store.fail(error)),
            };
            // a caller that was cancelled does not listen; its entry is stored all the same
            let _ = ack.send(outcome);
        }
        for ack in self.syncs {
            let _ = ack.send(store.sync());
        }
    }
}
