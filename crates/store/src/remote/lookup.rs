//! A remote as a read-only cache: an entry is pulled into a temporary folder when it is looked up. A plan uses it,
//! because a plan changes nothing and may run at the same time as a run.

use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::backend::RemoteError;
use super::settings::RemoteSettings;
use super::shared::SharedCache;
use crate::cache::{
    Damage, Day, EntryHeader, KeyOf, Lookup, ModelNames, Record, RemovalReason, Store, StoredReply,
};
use crate::digest::{ActionKey, Digest};

/// A remote that takes longer counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a warning ends about a remote that fails.
fn continues_without() -> &'static str {
    "this plan continues without it, and what it has counts as pending"
}

/// The entries of a remote.
#[derive(Debug)]
pub struct RemoteEntries {
    store: Store,
    shared: SharedCache,
    runtime: Runtime,
    _folder: TempDir,
}

impl RemoteEntries {
    /// Reads which entries a remote has. A remote that fails counts as empty, with a warning.
    ///
    /// # Errors
    /// If the remote cannot be connected to, or nothing can be written to the temporary folder.
    pub fn open(settings: RemoteSettings, key_of: KeyOf) -> Result<RemoteEntries, RemoteError> {
        let url = settings.url.to_string();
        let shared = SharedCache::new(settings)?;
        let folder = tempfile::tempdir().map_err(|error| {
            RemoteError::failed(
                "read",
                &url,
                format!("there is no temporary folder: {error}"),
            )
        })?;
        let store = Store::open(folder.path(), "plan", key_of);
        let store = store.map_err(|error| RemoteError::failed("read", &url, error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| {
            RemoteError::failed(
                "read",
                &url,
                format!("failed to start the runtime: {error}"),
            )
        })?;
        runtime.block_on(shared.load_within(PATIENCE, continues_without()));
        Ok(RemoteEntries {
            store,
            shared,
            runtime,
            _folder: folder,
        })
    }

    /// Whether the remote has not failed so far.
    pub fn is_answering(&self) -> bool {
        !self.shared.has_failed()
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.shared.take_warnings()
    }
}

impl Lookup for RemoteEntries {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let record = self.store.find(key);
        if record.is_some() || !self.shared.has(key) {
            return record;
        }
        self.runtime.block_on(self.shared.pull_within(
            PATIENCE,
            continues_without(),
            &self.store,
            *key,
        ));
        self.store.find(key)
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

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.store.latest(place)
    }

    fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.store.removed(key)
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
