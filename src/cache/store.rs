//! The store: the cache open for writing, by one process at a time.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::committer::{Committer, Job};
use super::error::{CacheError, Damage, IndexFault};
use super::fold::{Questions, head_of, last_used};
use super::frame::{self, Header, KeyHead};
use super::layout::{Found, Layout};
use super::lock::{Holder, Lock};
use super::lookup::{Lookup, Reply, Speaker};
use super::meta::{Day, Meta, Reading, Removal};
use super::pack::pack_body;
use super::record::{Record, Status};
use super::recover;
use super::writer::Core;
use crate::action::{ActionKey, Digest};

/// Bodies from this size on are compressed off the caller's thread.
const LARGE: usize = 256 << 10;

/// The cache, open for writing. Dropping it waits until everything queued is on disk.
#[derive(Debug)]
pub struct Store {
    used: Mutex<HashSet<KeyHead>>,
    texts: Mutex<HashSet<Digest>>,
    // declared in the order in which they must end: the committer writes, the core closes, the lock is freed
    committer: Committer,
    pub(super) core: Arc<Core>,
    _lock: Lock,
}

impl Store {
    /// Whether there is a cache in `dir`.
    pub fn is_in(dir: &Path) -> bool {
        matches!(Layout::new(dir).inspect(), Ok(Found::Cache))
    }

    /// Opens the cache in `dir` for writing, making it if it is not there.
    ///
    /// # Errors
    /// If another process holds it (waits up to 2 s), if the folder is something else or of a newer format (then
    /// nothing is touched), or if the system refuses.
    pub fn open(dir: &Path, holder: &Holder) -> Result<Store, CacheError> {
        let layout = Layout::new(dir);
        let found = layout.inspect()?;
        if found == Found::Nothing {
            std::fs::create_dir_all(dir).map_err(CacheError::io("create", dir))?;
        }
        let lock = Lock::take(&layout.lock(), dir, holder)?;
        // looked at again: whoever held the lock may have changed it
        let found = layout.inspect()?;
        let core = Arc::new(recover::open(layout, found)?);
        let committer = Committer::start(core.clone()).map_err(CacheError::io("start a thread for", dir))?;
        Ok(Store { used: Mutex::default(), texts: Mutex::default(), committer, core, _lock: lock })
    }

    /// What the user should be told since the last time: recoveries, and damage met. Each is said once.
    pub fn notices(&self) -> Vec<String> {
        self.core.take_notices()
    }

    /// Keeps what came of an action, in place of what was there. When this returns it is on disk.
    ///
    /// # Errors
    /// If it could not be written; then nothing more is written by this store, and what was kept before is good.
    pub async fn put_reply(&self, key: ActionKey, meta: &Meta, body: Bytes) -> Result<Record, CacheError> {
        self.core.check()?;
        let packed = if body.len() < LARGE {
            pack_body(&body)?
        } else {
            let packing = tokio::task::spawn_blocking(move || pack_body(&body)).await;
            packing.map_err(|e| self.unwritable(&e.to_string()))??
        };
        self.put(frame::reply(key, meta, &packed)).await
    }

    /// Notes that an action failed for good. It takes no output away, and is never served as one.
    ///
    /// # Errors
    /// As `put_reply`.
    pub async fn fail(&self, key: ActionKey, meta: &Meta, class: &str, message: &str) -> Result<Record, CacheError> {
        self.core.check()?;
        self.put(frame::failure(key, meta, class, message)).await
    }

    async fn put(&self, frame: Result<Vec<u8>, postcard::Error>) -> Result<Record, CacheError> {
        let frame = frame.map_err(|e| self.unwritable(&e.to_string()))?;
        let header = Header::decode(&frame).map_err(|_| self.unwritable("an entry cannot be written"))?;
        let (ack, acked) = oneshot::channel();
        self.committer.send(Job::Put { frame, ack });
        let location = acked.await.map_err(|_| self.unwritable("its writer has stopped"))??;
        header.record(location).ok_or_else(|| self.unwritable("an entry cannot be written"))
    }

    fn unwritable(&self, cause: &str) -> CacheError {
        CacheError::Poisoned { path: self.core.layout.root().to_owned(), cause: cause.to_owned() }
    }

    /// Notes what reading an entry's body gave. Does not wait: when it is lost the body is read again.
    pub fn note(&self, record: &Record, reading: &Reading) {
        if record.status != Status::from(reading) {
            self.quiet(frame::verdict(record.key, record.raw, reading));
        }
    }

    /// Keeps a text by a digest, once: a source, to show later what changed. A prune leaves it if an entry names the
    /// digest among its sources or inputs. Does not wait.
    pub fn text(&self, digest: Digest, text: &str) {
        let known = !self.texts.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
        if known || self.ask(|tables| tables.text(&digest)).is_some() {
            return;
        }
        self.put_text(digest, text.as_bytes());
    }

    fn put_text(&self, digest: Digest, bytes: &[u8]) {
        if let Ok(packed) = pack_body(bytes) {
            self.quiet(Ok(frame::text(digest, &packed)));
        }
    }

    /// Keeps something that can be made again, in place of what had that name. Every prune drops it. Does not wait.
    pub fn keep_derived(&self, name: Digest, bytes: &[u8]) {
        if self.read_derived(&name).is_none_or(|known| known != bytes) {
            self.put_text(name, bytes);
        }
    }

    /// What was kept by that name.
    pub fn read_derived(&self, name: &Digest) -> Option<Bytes> {
        let at = self.ask(|tables| tables.text(name))?;
        let bytes = self.named(self.core.packs.text(name, at)).ok();
        if bytes.is_none()
            && let Err(error) = self.core.forget_text(name)
        {
            self.core.notice(error.to_string());
        }
        bytes
    }

    /// After a prune, texts that were kept may be needed anew.
    pub(super) fn forget_known_texts(&self) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps token counts by the digests of their texts. Does not wait.
    pub fn put_counts(&self, counts: &[(Digest, u64)]) {
        if !counts.is_empty() {
            self.quiet(frame::counts(counts));
        }
    }

    /// Notes that an entry was used today. Written at the latest when the store is synced or closed.
    pub fn touch(&self, record: &Record) {
        const BATCH: usize = 4096;
        // of an entry made today that is known
        if record.created_day() >= Day::today() {
            return;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(head_of(record));
        let full = used.len() >= BATCH;
        drop(used);
        if full {
            self.write_touches();
        }
    }

    /// Notes which actions are in use at their coordinates (`Coordinate::digest`), where others were made since: what
    /// is stale is explained by what was last in use. Does not wait.
    pub fn note_latest(&self, places: &[(Digest, ActionKey)]) {
        let is_news = |(place, key): &&(Digest, ActionKey)| self.latest(place) != Some(*key);
        let news: Vec<(Digest, ActionKey)> = places.iter().filter(is_news).copied().collect();
        if !news.is_empty() {
            self.quiet(frame::latest(&news));
        }
    }

    fn write_touches(&self) {
        let today = Day::today();
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        let noted = |key: &KeyHead| self.ask(|tables| tables.day(key)).is_some_and(|day| day >= today);
        let keys: Vec<KeyHead> = used.into_iter().filter(|key| !noted(key)).collect();
        if !keys.is_empty() {
            self.quiet(frame::touch(today, &keys));
        }
    }

    fn quiet(&self, frame: Result<Vec<u8>, postcard::Error>) {
        match frame {
            Ok(frame) => self.committer.send(Job::Quiet(frame)),
            Err(e) => self.core.notice(format!("something derived could not be kept: {e}")),
        }
    }

    /// Waits until everything so far is on disk.
    ///
    /// # Errors
    /// If anything could not be written.
    pub fn sync(&self) -> Result<(), CacheError> {
        self.write_touches();
        let (ack, acked) = mpsc::channel();
        self.committer.send(Job::Sync(ack));
        acked.recv().map_err(|_| self.unwritable("its writer has stopped"))?
    }

    /// Puts everything on disk and closes.
    ///
    /// # Errors
    /// As `sync`.
    pub fn close(self) -> Result<(), CacheError> {
        self.sync()
    }

    /// Asks the tables; a broken index is made anew from the packs and asked again.
    fn ask<T>(&self, question: impl Fn(&dyn Questions) -> Result<Option<T>, IndexFault>) -> Option<T> {
        self.try_ask(&question).unwrap_or_else(|error| {
            let error = self.core.fail(&error);
            self.core.notice(error.to_string());
            None
        })
    }

    pub(super) fn try_ask<T>(
        &self,
        question: &impl Fn(&dyn Questions) -> Result<T, IndexFault>,
    ) -> Result<T, CacheError> {
        let rebuilds = self.core.rebuilds.load(Ordering::Acquire);
        let fault = match self.ask_once(question) {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        let mut tail = self.core.tail();
        if self.core.rebuilds.load(Ordering::Acquire) == rebuilds {
            self.core.rebuild(&mut tail, fault.text())?;
        }
        drop(tail);
        self.ask_once(question)
            .map_err(|fault| CacheError::Index { path: self.core.layout.index(), what: fault.text().to_owned() })
    }

    fn ask_once<T>(&self, question: &impl Fn(&dyn Questions) -> Result<T, IndexFault>) -> Result<T, IndexFault> {
        if let Some(proven) = &*self.core.proven.read().unwrap_or_else(PoisonError::into_inner) {
            return question(&proven.tables);
        }
        match &*self.core.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => question(index),
            None => Err(IndexFault::Broken("it is not open".into())),
        }
    }

    fn named<T>(&self, result: Result<T, Damage>) -> Result<T, Damage> {
        result.inspect_err(|damage| self.core.notice(format!("{damage}. It is made again when it is needed")))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.write_touches();
    }
}

impl Lookup for Store {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let found = self.ask(|tables| tables.find(key));
        if found.is_some() || self.core.audited.load(Ordering::Acquire) {
            return found;
        }
        match self.core.audit() {
            Ok(_) => self.ask(|tables| tables.find(key)),
            Err(error) => {
                self.core.notice(error.to_string());
                None
            }
        }
    }

    fn reply(&self, record: &Record) -> Result<Reply, Damage> {
        self.named(self.core.packs.reply(record))
    }

    fn vouch(&self, record: &Record) -> Result<Speaker, Damage> {
        let proven = self.core.proven.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(speaker) = proven.as_ref().and_then(|proven| proven.speaker(record)) {
            return Ok(speaker);
        }
        drop(proven);
        self.named(self.core.packs.vouch(record))
    }

    fn meta(&self, record: &Record) -> Result<Meta, Damage> {
        self.named(self.core.packs.meta(record))
    }

    fn latest(&self, coordinate: &Digest) -> Option<ActionKey> {
        self.ask(|tables| tables.latest_at(coordinate))
    }

    fn removed(&self, key: &ActionKey) -> Option<Removal> {
        self.ask(|tables| tables.removed(key))
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        String::from_utf8(self.read_derived(digest)?.into()).ok()
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.ask(|tables| tables.count(digest))
    }

    fn last_used(&self, record: &Record) -> Day {
        last_used(record, self.ask(|tables| tables.day(&head_of(record))))
    }

    fn records(&self) -> Vec<Record> {
        let mut records = self.ask(|tables| tables.records().map(Some)).unwrap_or_default();
        records.sort_unstable_by_key(|record| record.location);
        records
    }
}
