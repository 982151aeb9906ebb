//! The store: the cache, opened for writing by one process at a time. This is its interface; longer operations are
//! functions over `StoreInner` in `maintenance`.
//!
//! Entries move from cache to cache as the frames that packs have. Each is verified before it is added.
//!
//! Replies, failures and steps of a batch are on disk when their call returns, because they cost money. Parse results,
//! texts and days of use are queued, and durable after the next such call, after `sync`, or when the store is
//! dropped: what a crash loses of them is derived again.
//!
//! A key is looked up among what was just written, then in the sled tree. Lookups do not fail: where the tree cannot be
//! used, the packs are read instead. A damaged entry counts as missing, and a notice says so.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::entry::{Day, EntryHeader, EntryStatus, FrameLocation, KeyOf, Record};
use super::error::{CacheError, Damage};
use super::index::Index;
use super::lookup::{CacheParts, CacheSnapshot, Lookup};
use super::maintenance::verify::{self, DamageReport};
use super::maintenance::{self, PruneCounts};
use super::packs::folder::{self, FolderKind, Layout};
use super::packs::frame::{self, EncodedBody, FrameContent, FrameHeader, KeyPrefix, key_prefix};
use super::packs::frame::{BatchNonce, BatchStep};
use super::packs::{PackFiles, compress_body, decode_body};
use super::writing::StoreInner;
use super::writing::{WriteRequest, WriterThread};
use crate::digest::{ActionKey, Digest};
use base::lock::FileLock;
use base::threads::lock;

/// The cache, open for writing. Dropping it waits until everything queued is on disk.
#[derive(Debug)]
pub struct Store {
    /// Entries whose use is not recorded yet.
    used: Mutex<HashSet<KeyPrefix>>,
    key_of: KeyOf,
    // dropped in this order: the thread finishes its writes, the index closes, the lock is released
    writer: WriterThread,
    pub(super) inner: Arc<StoreInner>,
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
        Ok(Store {
            used: Mutex::default(),
            key_of,
            writer,
            inner,
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
        let body = EncodedBody::default();
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
    pub fn note(&self, record: &Record, result: &EntryStatus) {
        if record.status != *result {
            self.write_in_background(frame::parse_result(record.key, record.raw, result));
        }
    }

    /// Stores a source text once, so that a later change can be shown line by line. A prune keeps it while an entry
    /// names the digest among its sources or inputs. Does not wait.
    pub fn text(&self, digest: Digest, text: &str) {
        if self.inner.read(|index| index.text(&digest)).is_none() {
            self.put_text(digest, text.as_bytes(), frame::text);
        }
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

    /// Adds the entries with these keys that another cache has. Existing outputs are not changed, and a damaged entry
    /// counts as missing. They are on disk when this returns.
    ///
    /// # Errors
    /// If an entry's key is not that of its inputs, or this cache cannot be written.
    pub fn import_from_cache<'k>(
        &self,
        other: &CacheSnapshot,
        keys: impl IntoIterator<Item = &'k ActionKey>,
    ) -> Result<(), CacheError> {
        for key in keys {
            let missing = other
                .find_usable(key)
                .filter(|_| self.find_usable(key).is_none());
            if let Some(Ok(frame)) = missing.map(|record| other.packed(&record)) {
                verified(key, &frame, self.key_of)?;
                self.inner.commit(&[frame], false)?;
            }
        }
        self.sync()
    }

    /// Adds the output that another cache packed under `key`, in place of another output of that key. It is verified, and
    /// not synced: after a crash it is pulled again. Returns whether it is new here.
    ///
    /// # Errors
    /// `BadImport` if these bytes are not the entry `key`; else if this cache cannot be written.
    pub fn add_packed(
        &self,
        key: &ActionKey,
        frame: &[u8],
        remote: &str,
    ) -> Result<bool, CacheError> {
        let (header, entry, body) = verified(key, frame, self.key_of)?;
        if !matches!(header.content, FrameContent::Reply(_)) {
            return Err(bad("it is no output"));
        }
        let present = self.find_usable(key);
        if present.is_some_and(|record| record.raw == header.digest) {
            return Ok(false);
        }
        let entry = EntryHeader {
            origin: Some(remote.to_owned()),
            ..entry
        };
        let frame = encoded(frame::reply(*key, &entry, &compress_body(&body)?))?;
        self.inner.commit(&[frame], false)?;
        Ok(true)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.write_touches();
    }
}

impl CacheParts for Store {
    fn index<T>(&self, read: impl Fn(&Index) -> T) -> T {
        self.inner.read(read)
    }

    fn packs(&self) -> &PackFiles {
        &self.inner.packs
    }

    fn record(&self, key: &ActionKey) -> Option<Record> {
        self.inner.find(key)
    }

    fn named(&self, name: &Digest) -> Option<Bytes> {
        let at = self.inner.read(|index| index.text(name))?;
        let read = self.inner.packs.text(name, at);
        if let Err(damage) = &read {
            self.met(damage);
            if !damage.is_unread {
                // so that it is stored again
                self.inner.change(|index| index.forget_text(name));
            }
        }
        read.ok()
    }

    fn met(&self, damage: &Damage) {
        self.inner
            .notice(format!("{damage}. It is made again when it is needed"));
    }
}

/// The largest body that is taken from another machine, decompressed.
const LONGEST: u32 = 64 << 20;

fn encoded(frame: Result<Vec<u8>, postcard::Error>) -> Result<Vec<u8>, CacheError> {
    frame.map_err(|e| CacheError::io("write", Path::new("an entry"))(io::Error::other(e)))
}

fn bad(what: impl Into<String>) -> CacheError {
    CacheError::BadImport { what: what.into() }
}

/// Verifies an entry of another cache: its checksums, its digest, and that its key is that of its inputs. Returns its
/// headers and its body.
fn verified(
    key: &ActionKey,
    frame: &[u8],
    key_of: KeyOf,
) -> Result<(FrameHeader, EntryHeader, Bytes), CacheError> {
    let header = FrameHeader::decode(frame).map_err(|_| bad("it is no entry"))?;
    if header.location(0, 0).len() != frame.len() as u64 {
        return Err(bad("it has another length than it says"));
    }
    if header.key != key.0 {
        return Err(bad(format!("it is the entry {}", header.key.short())));
    }
    if header.raw_len > LONGEST {
        return Err(bad("its body is too large"));
    }
    let entry = header.entry(frame).ok_or_else(|| bad("it is no entry"))?;
    if key_of(&entry) != Some(*key) {
        return Err(bad("its key does not match its inputs"));
    }
    let stored = Bytes::copy_from_slice(frame.get(header.head_len as usize..).unwrap_or_default());
    let body = decode_body(&header, stored).map_err(bad)?;
    Ok((header, entry, body))
}

/// Packs a failure for a remote: an entry whose body, `content`, says what failed. It is never an output.
///
/// # Errors
/// If it is larger than the cache stores.
pub fn pack_failure(
    key: ActionKey,
    header: &EntryHeader,
    content: &[u8],
) -> Result<Vec<u8>, CacheError> {
    let body = compress_body(content)?;
    encoded(frame::failure(key, header, ("", ""), &body))
}

/// Reads what [`pack_failure`] packed under `key`.
///
/// # Errors
/// If these bytes are not the failure `key`.
pub fn read_failure(key: &ActionKey, frame: &[u8], key_of: KeyOf) -> Result<Bytes, CacheError> {
    let (header, _, body) = verified(key, frame, key_of)?;
    match header.content {
        FrameContent::Failure { .. } => Ok(body),
        _ => Err(bad("it is no failure")),
    }
}
