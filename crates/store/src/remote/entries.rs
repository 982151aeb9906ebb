//! What a remote has, as a read-only cache. A plan uses it, because a plan changes nothing and may run at the same time
//! as a run: what it gets is in a temporary folder.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::RemoteError;
use super::settings::RemoteSettings;
use super::shared::SharedCache;
use crate::cache::{
    Damage, Day, EntryHeader, KeyOf, Lookup, ModelNames, Record, Store, StoredReply,
};
use crate::digest::{ActionKey, Digest};

/// How long a plan looks into a remote.
const PATIENCE: Duration = Duration::from_secs(10);

/// The entries of a remote, as far as they were looked for.
#[derive(Debug)]
pub struct RemoteEntries {
    store: Store,
    shared: SharedCache,
    runtime: Runtime,
    deadline: Instant,
    wanted: Mutex<BTreeSet<ActionKey>>,
    is_cut_off: Mutex<bool>,
    _folder: TempDir,
}

impl RemoteEntries {
    /// Connects to a remote. A remote that fails counts as empty, with a warning.
    ///
    /// # Errors
    /// If the remote cannot be connected to, or nothing can be written to the temporary folder.
    pub fn open(settings: RemoteSettings, key_of: KeyOf) -> Result<RemoteEntries, RemoteError> {
        let url = settings.url.to_string();
        let failed = |what: String| RemoteError::failed("read", &url, what);
        let shared = SharedCache::new(settings, key_of)?;
        let folder = tempfile::tempdir()
            .map_err(|error| failed(format!("there is no temporary folder: {error}")))?;
        let store = Store::open(folder.path(), "plan", key_of)
            .map_err(|error| failed(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(format!("failed to start a thread: {error}")))?;
        Ok(RemoteEntries {
            store,
            shared,
            runtime,
            deadline: Instant::now() + PATIENCE,
            wanted: Mutex::default(),
            is_cut_off: Mutex::default(),
            _folder: folder,
        })
    }

    /// Gets what was looked up in vain since the last call. Returns whether a lookup may now find more.
    pub fn get_wanted(&self) -> bool {
        let wanted = std::mem::take(&mut *lock(&self.wanted));
        let gets = wanted.iter().map(|key| self.shared.pull(&self.store, key));
        let mut gets = futures::stream::iter(gets).buffer_unordered(SharedCache::AT_ONCE);
        let all = async { while gets.next().await.is_some() {} };
        let in_time = self
            .runtime
            .block_on(async { tokio::time::timeout_at(self.deadline, all).await });
        *lock(&self.is_cut_off) |= in_time.is_err();
        !wanted.is_empty() && in_time.is_ok() && self.is_answering()
    }

    /// Whether the time was over before everything was looked for.
    pub fn is_cut_off(&self) -> bool {
        *lock(&self.is_cut_off)
    }

    /// Whether the remote has not failed so far.
    pub fn is_answering(&self) -> bool {
        self.shared.failure().is_none()
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.shared.take_warnings()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lookup for RemoteEntries {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let record = self.store.find(key);
        if record.is_none() && self.shared.may_have(key) {
            lock(&self.wanted).insert(*key);
        }
        record
    }

    fn is_remote(&self, _: &Record) -> bool {
        true
    }

    fn reply(&self, record: &Record) -> Result<StoredReply, Damage> {
        self.store.reply(record)
    }

    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage> {
        self.store.verify_body(record)
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.store.header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        self.store.packed(record)
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.store.latest(place)
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        self.store.read_text(digest)
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.store.count(digest)
    }

    fn last_used(&self, record: &Record) -> Day {
        self.store.last_used(record)
    }

    fn records(&self) -> Vec<Record> {
        self.store.records()
    }
}
