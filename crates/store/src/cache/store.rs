//! The store: the cache, opened for writing by one process at a time. This is its interface; longer operations are
//! functions over `StoreInner` in other files (`maintenance`, `exchange`).
//!
//! Replies, failures and steps of a batch are on disk when their call returns, because they cost money. Parse results,
//! texts, counts and days of use are queued, and durable after the next such call, after `sync`, or when the store is
//! dropped: what a crash loses of them is derived again.
//!
//! A key is looked up among what was just written, then in the sled tree. Lookups do not fail: where the tree cannot be
//! used, the packs are read instead. A damaged entry counts as missing, and a notice says so.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::entry::{
    Day, EntryHeader, EntryStatus, FrameLocation, KeyOf, ModelNames, ParseResult, Record,
};
use super::error::{CacheError, Damage};
use super::exchange::{self, ImportTarget};
use super::index::{Index, last_used};
use super::lookup::{Lookup, StoredReply};
use super::maintenance::verify::{self, DamageReport};
use super::maintenance::{self, PruneCounts};
use super::packs::compress_body;
use super::packs::folder::{self, FolderKind, Layout};
use super::packs::frame::{self, EncodedBody, FrameHeader, KeyPrefix, key_prefix};
use super::packs::frame::{BatchNonce, BatchStep, StepLog};
use super::snapshot::CacheSnapshot;
use super::writing::StoreInner;
use super::writing::{WriteRequest, WriterThread};
use crate::digest::{ActionKey, Digest};
use base::files::make_files_private;
use base::lock::FileLock;

/// The cache, open for writing. Dropping it waits until everything queued is on disk.
#[derive(Debug)]
pub struct Store {
    /// Entries whose use is not recorded yet.
    used: Mutex<HashSet<KeyPrefix>>,
    /// Texts that are stored or queued.
    known_texts: Mutex<HashSet<Digest>>,
    key_of: KeyOf,
    // dropped in this order: the thread finishes its writes, the index closes, the lock is released
    writer: WriterThread,
    pub(super) inner: Arc<StoreInner>,
    _index_files: IndexFiles,
    _lock: FileLock,
}

impl Store {
    /// Opens the cache in `dir` for writing, and creates it if it does not exist. `command`, as the user typed it, is
    /// shown to another process that tries to open it. `key_of` checks the keys of entries from other caches.
    ///
    /// # Errors
    /// If another process has it open (after waiting 2 s), if the folder is not a cache or has a newer format (then
    /// nothing is changed), or if the system refuses.
    pub fn open(dir: &Path, command: &str, key_of: KeyOf) -> Result<Store, CacheError> {
        if base::clock::is_before_1970() {
            let error =
                std::io::Error::other("the clock of this machine shows a time before 1970; set it");
            return Err(CacheError::io("open", dir)(error));
        }
        let layout = Layout::new(dir);
        // before the lock, because nothing is created in a folder that is something else
        if layout.inspect()? == FolderKind::Empty {
            layout.create_root()?;
        }
        let lock = folder::lock(&layout.lock(), dir, command)?;
        // again, because another process may have created it meanwhile
        let kind = layout.inspect()?;
        let inner = Arc::new(StoreInner::open(layout, kind)?);
        let writer = WriterThread::start(inner.clone())
            .map_err(CacheError::io("start a thread for", dir))?;
        let index_files = IndexFiles(inner.layout.index());
        let (used, known_texts) = (Mutex::default(), Mutex::default());
        Ok(Store {
            used,
            known_texts,
            key_of,
            writer,
            inner,
            _index_files: index_files,
            _lock: lock,
        })
    }

    /// Recoveries and damage since the last call, worded for the user; each is returned once.
    pub fn notices(&self) -> Vec<String> {
        self.inner.take_notices()
    }

    /// Stores the output of an action, in place of an earlier one. It is on disk when this returns.
    ///
    /// # Errors
    /// If it could not be written; then this store writes nothing more, and everything stored before is intact.
    pub async fn put_reply(
        &self,
        key: ActionKey,
        header: &EntryHeader,
        body: Bytes,
    ) -> Result<Record, CacheError> {
        /// Larger bodies are compressed on another thread.
        const LARGE: usize = 256 << 10;
        self.inner.check()?;
        let encoded = if body.len() < LARGE {
            compress_body(&body)?
        } else {
            let compressing = tokio::task::spawn_blocking(move || compress_body(&body)).await;
            compressing.map_err(|e| self.inner.poisoned(&e.to_string()))??
        };
        self.put(frame::reply(key, header, &encoded)).await
    }

    /// Records that an action failed permanently. It does not replace an output and is never used as one.
    ///
    /// # Errors
    /// As `put_reply`.
    pub async fn fail(
        &self,
        key: ActionKey,
        header: &EntryHeader,
        class: &str,
        message: &str,
    ) -> Result<Record, CacheError> {
        self.inner.check()?;
        let body = EncodedBody::empty();
        self.put(frame::failure(key, header, (class, message), &body))
            .await
    }

    async fn put(&self, frame: Result<Vec<u8>, postcard::Error>) -> Result<Record, CacheError> {
        let frame = frame.map_err(|e| self.inner.poisoned(&e.to_string()))?;
        let header = FrameHeader::decode(&frame).map_err(|_| self.malformed())?;
        let location = self.write(frame).await?;
        header.record(location).ok_or_else(|| self.malformed())
    }

    fn malformed(&self) -> CacheError {
        self.inner.poisoned("an entry cannot be encoded")
    }

    async fn write(&self, frame: Vec<u8>) -> Result<FrameLocation, CacheError> {
        let (ack, acked) = oneshot::channel();
        self.writer.send(WriteRequest::Put { frame, ack });
        acked.await.map_err(|_| self.stopped())?
    }

    /// Records a step of a batch. It is on disk when this returns.
    ///
    /// # Errors
    /// As `put_reply`.
    pub async fn put_step(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        content: &[u8],
    ) -> Result<(), CacheError> {
        self.inner.check()?;
        let frame = frame::journal(&(nonce, step), &compress_body(content)?);
        self.write(frame.map_err(|error| self.inner.poisoned(&error.to_string()))?)
            .await
            .map(drop)
    }

    fn stopped(&self) -> CacheError {
        self.inner.poisoned("its writer thread has stopped")
    }

    /// Stores the result of parsing an entry's body. Does not wait: if it is lost, the body is parsed again.
    pub fn note(&self, record: &Record, result: &ParseResult) {
        if record.status != EntryStatus::from(result) {
            self.write_in_background(frame::parse_result(record.key, record.raw, result));
        }
    }

    /// Stores a source text once, so that a later change can be shown line by line. A prune keeps it while an entry
    /// names the digest among its sources or inputs. Does not wait.
    pub fn text(&self, digest: Digest, text: &str) {
        let is_known = !lock(&self.known_texts).insert(digest);
        if is_known || self.inner.read(|index| index.text(&digest)).is_some() {
            return;
        }
        self.put_text(digest, text.as_bytes(), frame::text);
    }

    fn put_text(
        &self,
        name: Digest,
        bytes: &[u8],
        frame: impl FnOnce(Digest, &EncodedBody) -> Vec<u8>,
    ) {
        match compress_body(bytes) {
            Ok(encoded) => self.write_in_background(Ok(frame(name, &encoded))),
            Err(error) => self.inner.notice(format!("a text was not stored: {error}")),
        }
    }

    /// Stores a memo, in place of the one with this name. A prune keeps the newest memos, up to many times the bytes of all
    /// entries. Does not wait.
    pub fn keep_memo(&self, name: Digest, bytes: &[u8]) {
        if self.read_memo(&name).is_none_or(|known| known != bytes) {
            self.put_text(name, bytes, frame::memo);
        }
    }

    /// The memo or text stored under a name.
    pub fn read_memo(&self, name: &Digest) -> Option<Bytes> {
        let at = self.inner.read(|index| index.text(name))?;
        let read = self.noticed(self.inner.packs.text(name, at));
        if read.as_ref().is_err_and(|damage| !damage.is_unread) {
            // so that it is stored again
            self.inner.change(|index| index.forget_text(name));
        }
        read.ok()
    }

    /// Stores token counts by the digests of their texts. Does not wait.
    pub fn put_counts(&self, counts: &[(Digest, u64)]) {
        if !counts.is_empty() {
            self.write_in_background(frame::counts(counts));
        }
    }

    /// Records that an entry was used today; it is written when the store is synced or closed, or earlier. Nothing is
    /// written for an entry made today.
    pub fn touch(&self, record: &Record) {
        const BATCH: usize = 4096;
        if record.created_day() >= Day::today() {
            return;
        }
        let mut used = lock(&self.used);
        used.insert(key_prefix(&record.key));
        let is_full = used.len() >= BATCH;
        drop(used);
        if is_full {
            self.write_touches();
        }
    }

    /// Records that an action is in use again at a place after another was: a stale action is explained by comparison with
    /// the one used last. Does not wait.
    pub fn note_latest(&self, place: &Digest, key: ActionKey) {
        if self.latest(place) != Some(key) {
            self.write_in_background(frame::latest(place, key));
        }
    }

    fn write_touches(&self) {
        let today = Day::today();
        let used = std::mem::take(&mut *lock(&self.used)).into_iter();
        let known = |key: &KeyPrefix| self.inner.read(|index| index.day(key));
        let keys: Vec<KeyPrefix> = used
            .filter(|key| known(key).is_none_or(|day| day < today))
            .collect();
        if !keys.is_empty() {
            self.write_in_background(frame::touch(today, &keys));
        }
    }

    fn write_in_background(&self, frame: Result<Vec<u8>, postcard::Error>) {
        match frame {
            Ok(frame) => self.writer.send(WriteRequest::Background(frame)),
            Err(e) => self
                .inner
                .notice(format!("derived data was not stored: {e}")),
        }
    }

    /// Waits until everything queued is on disk.
    ///
    /// # Errors
    /// As `put_reply`.
    pub fn sync(&self) -> Result<(), CacheError> {
        self.write_touches();
        let (ack, acked) = mpsc::channel();
        self.writer.send(WriteRequest::Sync(ack));
        acked.recv().map_err(|_| self.stopped())?
    }

    /// Syncs and closes.
    ///
    /// # Errors
    /// As `sync`.
    pub fn close(self) -> Result<(), CacheError> {
        self.sync()
    }

    /// Removes entries; unknown keys are ignored. Also removes the sources that neither an entry nor `kept` names, and the
    /// oldest memos, if they take many times the room of all entries. If there is nothing to remove, nothing is changed. A
    /// crash at any point loses nothing else.
    ///
    /// # Errors
    /// If the cache cannot be read or written; then this store writes nothing more.
    pub fn prune(
        &self,
        keys: &[ActionKey],
        kept: &HashSet<Digest>,
    ) -> Result<PruneCounts, CacheError> {
        self.sync()?;
        // a removed text is stored again when it is needed again
        lock(&self.known_texts).clear();
        maintenance::prune(&self.inner, keys, kept)
    }

    /// Verifies everything and removes what is damaged.
    ///
    /// # Errors
    /// As `prune`.
    pub fn verify(&self) -> Result<Vec<DamageReport>, CacheError> {
        self.sync()?;
        self.inner
            .exclusively(|active| verify::verify(&self.inner, active))
    }

    /// Adds the entries with these keys that another cache has, with their source texts. Existing outputs are not
    /// changed. A damaged entry counts as missing, as it does in the other cache.
    ///
    /// # Errors
    /// If an entry's key is not that of its inputs, or this cache cannot be written.
    pub fn import_from_cache<'k>(
        &self,
        other: &CacheSnapshot,
        keys: impl IntoIterator<Item = &'k ActionKey>,
    ) -> Result<(), CacheError> {
        self.sync()?;
        exchange::import_from_cache(self.import_target(), other, keys)
    }

    /// Adds the entry that another cache packed under `key`, in place of another output of that key. Every frame is
    /// verified. Not synced: after a crash it is pulled again. Returns whether the output is new here.
    ///
    /// # Errors
    /// `BadImport` if these bytes are not the entry `key`; else if this cache cannot be written.
    pub fn add_packed(
        &self,
        key: &ActionKey,
        bytes: &[u8],
        remote: &str,
    ) -> Result<bool, CacheError> {
        exchange::add_packed(self.import_target(), key, bytes, remote)
    }

    fn import_target(&self) -> ImportTarget<'_> {
        ImportTarget {
            present: self,
            inner: &self.inner,
            key_of: self.key_of,
        }
    }

    /// Adds a notice for damage.
    fn noticed<T>(&self, result: Result<T, Damage>) -> Result<T, Damage> {
        result.inspect_err(|damage| {
            self.inner
                .notice(format!("{damage}. It is made again when it is needed"))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Denies other users access to the index files when it is dropped: sled may create files that are open to all when it
/// closes.
#[derive(Debug)]
struct IndexFiles(PathBuf);

impl Drop for IndexFiles {
    fn drop(&mut self) {
        make_files_private(&self.0);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.write_touches();
    }
}

impl Lookup for Store {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        self.inner.find(key)
    }

    fn reply(&self, record: &Record) -> Result<StoredReply, Damage> {
        self.noticed(self.inner.packs.reply(record))
    }

    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage> {
        self.noticed(self.inner.packs.verify_body(record))
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.inner.packs.header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        self.noticed(self.inner.packs.whole_frame(record))
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.inner.read(|index| index.latest_at(place))
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        String::from_utf8(self.read_memo(digest)?.into()).ok()
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.inner.read(|index| index.count(digest))
    }

    fn last_used(&self, record: &Record) -> Day {
        let key = key_prefix(&record.key);
        last_used(record, self.inner.read(|index| index.day(&key)))
    }

    fn records(&self) -> Vec<Record> {
        self.inner.read(Index::records)
    }
}

impl StepLog for Store {
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)> {
        let steps = self.inner.read(Index::steps).into_iter();
        steps.map(|(step, _)| step).collect()
    }

    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage> {
        let at = self.inner.read(|index| index.step(nonce, step));
        at.map(|at| self.inner.packs.step(at, decode)).transpose()
    }
}
