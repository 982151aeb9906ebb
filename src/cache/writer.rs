//! The one who writes: appends frames to the newest pack, then to the index, and stops for good at the first fault.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::catalogue::{Catalogue, PackState};
use super::error::{CacheError, IndexFault};
use super::fold::Questions;
use super::frame::{Fault, Header};
use super::index::Index;
use super::layout::Layout;
use super::pack::{PackHeader, Packs};
use super::proven::Proven;
use super::record::Location;
use crate::action::Digest;

/// A pack that is longer is closed, and the next one begun.
const PACK_LIMIT: u64 = 128 << 20;

/// The index is put on disk after so many bytes of frames, not with every group: what it lacks after a crash is read
/// again from the end of the pack.
const INDEX_LAG: u64 = 4 << 20;

/// The pack that is being written.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) file: File,
    pub(super) id: u32,
    pub(super) generation: u32,
    pub(super) len: u64,
    /// How much of it the index on disk covers.
    pub(super) indexed: u64,
}

/// What store and committer share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) layout: Layout,
    pub(super) packs: Packs,
    /// `None` while it is being replaced, if that failed, and where `proven` is all that was needed so far.
    pub(super) index: RwLock<Option<Index>>,
    /// What the index would say, of a small cache to which nothing was written yet.
    pub(super) proven: RwLock<Option<Proven>>,
    /// Whoever changes anything on disk holds this.
    tail: Mutex<Tail>,
    fault: OnceLock<String>,
    notices: Mutex<Vec<String>>,
    /// Whether anything was written without waiting since the last sync.
    pending: AtomicBool,
    /// How often the index was made anew.
    pub(super) rebuilds: AtomicU64,
    /// Whether the index was compared with the packs.
    pub(super) audited: AtomicBool,
}

/// Who answers questions when a cache has been opened.
pub(super) enum Source {
    Index(Index),
    Proven(Proven),
}

impl Core {
    pub(super) fn new(layout: Layout, packs: Packs, source: Source, tail: Tail, notices: Vec<String>) -> Core {
        let (index, proven) = match source {
            Source::Index(index) => (Some(index), None),
            Source::Proven(proven) => (None, Some(proven)),
        };
        Core {
            layout,
            packs,
            index: RwLock::new(index),
            proven: RwLock::new(proven),
            tail: Mutex::new(tail),
            fault: OnceLock::new(),
            notices: Mutex::new(notices),
            pending: AtomicBool::new(false),
            rebuilds: AtomicU64::new(0),
            audited: AtomicBool::new(false),
        }
    }

    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Remembers the first fault; from then on nothing is written.
    pub(super) fn fail(&self, error: &CacheError) -> CacheError {
        let cause = self.fault.get_or_init(|| match error {
            CacheError::Poisoned { cause, .. } => cause.clone(),
            other => other.to_string(),
        });
        CacheError::Poisoned { path: self.layout.root().to_owned(), cause: cause.clone() }
    }

    /// An error if an earlier write failed.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        match self.fault.get() {
            None => Ok(()),
            Some(cause) => Err(CacheError::Poisoned { path: self.layout.root().to_owned(), cause: cause.clone() }),
        }
    }

    /// Writes frames as one group. If `durable`, they are on disk when this returns; their index follows.
    pub(super) fn commit(&self, frames: &[Vec<u8>], durable: bool) -> Result<Vec<Location>, CacheError> {
        self.check()?;
        let mut tail = self.tail();
        let written = self.open_index(&mut tail).and_then(|()| self.append(&mut tail, frames, durable));
        written.map_err(|error| self.fail(&error))
    }

    /// As `commit`, for a caller who holds the tail and has opened the index.
    pub(super) fn append(
        &self,
        tail: &mut Tail,
        frames: &[Vec<u8>],
        durable: bool,
    ) -> Result<Vec<Location>, CacheError> {
        if tail.len >= PACK_LIMIT {
            self.roll(tail)?;
        }
        let located = locate(tail, frames);
        let end = located.last().map_or(tail.len, |(at, _)| at.end());
        let path = self.layout.pack(tail.id);
        if let Err(e) = tail.file.write_all(&frames.concat()) {
            // what was half written is cut off now, or when the cache is opened next
            let _ = tail.file.set_len(tail.len);
            return Err(CacheError::io("write to", &path)(e));
        }
        tail.len = end;
        if durable {
            tail.file.sync_data().map_err(CacheError::io("write to", &path))?;
        }
        let state = tail.state();
        self.update(tail, |index| index.append(&located, state))?;
        self.pending.store(true, Ordering::Release);
        if durable && tail.len - tail.indexed > INDEX_LAG {
            self.flush_index(tail)?;
        }
        Ok(located.into_iter().map(|(at, _)| at).collect())
    }

    /// Puts everything on disk that was written without waiting.
    pub(super) fn sync(&self) -> Result<(), CacheError> {
        self.check()?;
        let mut tail = self.tail();
        if !self.pending.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let path = self.layout.pack(tail.id);
        let synced = tail.file.sync_data().map_err(CacheError::io("write to", &path));
        synced.and_then(|()| self.flush_index(&mut tail)).map_err(|error| self.fail(&error))
    }

    fn flush_index(&self, tail: &mut Tail) -> Result<(), CacheError> {
        self.update(tail, Index::flush)?;
        tail.indexed = tail.len;
        Ok(())
    }

    /// Changes the index. The packs are ahead of it already, so if it fails it is made anew from them.
    pub(super) fn update(
        &self,
        tail: &mut Tail,
        change: impl Fn(&Index) -> Result<(), IndexFault>,
    ) -> Result<(), CacheError> {
        let changed = match &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => change(index),
            None => Err(IndexFault::Broken("it is not open".into())),
        };
        changed.or_else(|fault| self.rebuild(tail, fault.text()))
    }

    /// Asks the index, without trying to repair it.
    pub(super) fn with_index<T>(&self, ask: impl FnOnce(&Index) -> Result<T, IndexFault>) -> Result<T, CacheError> {
        match &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => ask(index).map_err(|fault| self.index_error(fault.text())),
            None => Err(self.index_error("it is not open")),
        }
    }

    /// Forgets where a text lies that is damaged, so that it can be kept anew.
    pub(super) fn forget_text(&self, digest: &Digest) -> Result<(), CacheError> {
        let mut tail = self.tail();
        self.open_index(&mut tail)?;
        self.update(&mut tail, |index| index.forget_text(digest))
    }

    pub(super) fn index_error(&self, what: &str) -> CacheError {
        CacheError::Index { path: self.layout.index(), what: what.to_owned() }
    }

    /// Closes the pack and begins the next.
    pub(super) fn roll(&self, tail: &mut Tail) -> Result<(), CacheError> {
        tail.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(tail.id)))?;
        // only the newest pack may be ahead of the index
        self.flush_index(tail)?;
        *tail = Tail::begin(&self.layout, tail.id.saturating_add(1))?;
        Ok(())
    }

    /// Compares the index with the packs, once: before the first miss is believed, since a miss is paid for.
    /// Answers whether the index was made anew.
    pub(super) fn audit(&self) -> Result<bool, CacheError> {
        let mut tail = self.tail();
        self.open_index(&mut tail)?;
        if self.audited.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let catalogue = Catalogue::scan(&self.layout, &self.packs)?;
        let lost = match &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => lost(index, &catalogue),
            None => true,
        };
        if lost {
            self.rebuild(&mut tail, "entries are missing from it")?;
        }
        Ok(lost)
    }
}

/// Whether the index lacks anything that the packs hold.
pub(super) fn lost(index: &Index, catalogue: &Catalogue) -> bool {
    let differs = |record: &super::record::Record| match index.find(&record.key) {
        Ok(Some(found)) => found.location != record.location,
        Ok(None) | Err(_) => true,
    };
    catalogue.records.values().any(|record| differs(record))
}

/// Where frames will lie when they are appended.
fn locate(tail: &Tail, frames: &[Vec<u8>]) -> Vec<(Location, Header)> {
    let mut offset = tail.len;
    let mut located = Vec::with_capacity(frames.len());
    for frame in frames {
        let header: Result<Header, Fault> = Header::decode(frame);
        debug_assert!(header.is_ok(), "our own frames can be read");
        if let Ok(header) = header {
            located.push((header.location(tail.id, offset), header));
        }
        offset += frame.len() as u64;
    }
    located
}

impl Tail {
    pub(super) fn state(&self) -> PackState {
        PackState { id: self.id, generation: self.generation, good: self.len, len: self.len }
    }

    /// Begins a new pack.
    pub(super) fn begin(layout: &Layout, id: u32) -> Result<Tail, CacheError> {
        let path = layout.pack(id);
        let make = || {
            let mut file = File::options().read(true).append(true).create(true).open(&path)?;
            file.set_len(0)?;
            file.write_all(&PackHeader { id, generation: 0 }.encode())?;
            file.sync_data()?;
            Ok(file)
        };
        let file = make().map_err(CacheError::io("create", &path))?;
        layout.sync_folder(&layout.packs())?;
        let len = PackHeader::LEN as u64;
        Ok(Tail { file, id, generation: 0, len, indexed: len })
    }

    /// Goes on with a pack, behind its last good frame; what follows it is cut off.
    pub(super) fn resume(layout: &Layout, state: PackState) -> Result<Tail, CacheError> {
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
        Ok(Tail { file, id, generation, len, indexed: len })
    }
}
