//! The remote of a run, connected to the local cache; and what a remote has, as a read-only cache for a plan, which changes
//! nothing and may run at the same time as a run: what it gets is in a temporary folder.
//!
//! A run reads only the local cache: an output that it lacks is pulled first. So a remote that fails, or an object that
//! does not verify, makes it slower and never wrong. After the first failure the remote is not asked again.
//!
//! In write mode what the run uses is in the remote before anything depends on it. If the remote has another output for
//! a key, it replaces the local one, so that all machines continue from the same output.
//!
//! An object is one entry, named by its key.
//!
//! ```text
//! magic 8 | code 32 | an entry in the frame of packs
//! ```
//! The code is a keyed hash of name and entry, or zero where there is no key. What it proves is that somebody with the
//! key wrote the object; that the entry belongs to its name is known by the inputs that the entry lists.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::folder::FolderRemote;
use super::settings::RemoteSettings;
use super::{MAX_OBJECT, Remote, RemoteError, RemoteFuture, RemoteUrl};
use crate::cache::{
    CacheError, EntryHeader, KeyOf, Layered, Lookup, Store, pack_failure, read_failure,
};
use crate::digest::{ActionKey, RemoteKey};
use base::threads::lock;

fn open(url: &RemoteUrl) -> Result<Box<dyn Remote>, RemoteError> {
    match url {
        RemoteUrl::Folder(path) => Ok(Box::new(FolderRemote::new(path.clone()))),
        #[cfg(feature = "object-stores")]
        RemoteUrl::Bucket(bucket) => super::object_store::open_bucket(bucket),
        #[cfg(feature = "object-stores")]
        RemoteUrl::Web(url) => super::object_store::open_web_server(url),
        #[cfg(not(feature = "object-stores"))]
        RemoteUrl::Bucket(_) | RemoteUrl::Web(_) => Err(RemoteError::NotBuilt(url.to_string())),
    }
}

/// A call to the remote that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the remote had for an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No object that verifies.
    Nothing,
    /// Its output, which is now in the local cache.
    Output,
    /// Why it has no output, as [`SharedCache::put_failure`] stored it.
    Failure(Bytes),
}

/// How many outputs a run exchanged with a remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanged {
    /// The URL of the remote.
    pub url: String,
    /// Outputs that were added to the local cache.
    pub pulled: u64,
    /// Objects that were written.
    pub pushed: u64,
}

/// The remote of a run.
#[derive(Debug)]
pub struct SharedCache {
    settings: RemoteSettings,
    remote: Box<dyn Remote>,
    key_of: KeyOf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Keys that were exchanged, or at least tried: each is asked for once.
    tried: HashSet<ActionKey>,
    exchanged: Exchanged,
    failure: Option<RemoteError>,
    /// Whether an object that does not verify was reported: there may be many.
    has_reported: bool,
    warnings: Vec<String>,
}

impl SharedCache {
    /// The most calls under way at once.
    pub const AT_ONCE: usize = 64;

    /// Connects to a remote. Sends nothing yet. `key_of` checks the keys of what is pulled.
    ///
    /// # Errors
    /// If this build does not support the service, or settings in the environment are wrong.
    pub fn new(settings: RemoteSettings, key_of: KeyOf) -> Result<SharedCache, RemoteError> {
        Ok(SharedCache::with_remote(
            open(&settings.url)?,
            settings,
            key_of,
        ))
    }

    pub(super) fn with_remote(
        remote: Box<dyn Remote>,
        settings: RemoteSettings,
        key_of: KeyOf,
    ) -> SharedCache {
        let exchanged = Exchanged {
            url: settings.url.to_string(),
            ..Exchanged::default()
        };
        SharedCache {
            settings,
            remote,
            key_of,
            state: Mutex::new(State {
                exchanged,
                ..State::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether outputs are put into the remote.
    pub fn is_written(&self) -> bool {
        self.settings.is_written()
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Why the remote is not asked any more, if so.
    pub fn failure(&self) -> Option<RemoteError> {
        self.state().failure.clone()
    }

    /// What was exchanged so far.
    pub fn exchanged(&self) -> Exchanged {
        self.state().exchanged.clone()
    }

    /// Whether the remote is to be asked for an action: it did not fail, and was not asked for it yet.
    pub fn may_have(&self, key: &ActionKey) -> bool {
        let state = self.state();
        state.failure.is_none() && !state.tried.contains(key)
    }

    /// Pulls an output that the local cache lacks.
    ///
    /// # Errors
    /// If the local cache cannot be written.
    pub async fn pull(&self, store: &Store, key: &ActionKey) -> Result<Found, CacheError> {
        self.state().tried.insert(*key);
        let name = output_name(key);
        let Some(entry) = self.get(&name).await else {
            return Ok(Found::Nothing);
        };
        match store.add_packed(key, &entry, &self.settings.url.to_string()) {
            Ok(is_new) => {
                self.state().exchanged.pulled += u64::from(is_new);
                Ok(Found::Output)
            }
            Err(CacheError::BadImport { what }) => {
                self.report_object(&name, &what);
                Ok(Found::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// As [`pull`](SharedCache::pull), or else finds out why the action failed elsewhere.
    ///
    /// # Errors
    /// As `pull`.
    pub async fn pull_outcome(&self, store: &Store, key: &ActionKey) -> Result<Found, CacheError> {
        if let Found::Output = self.pull(store, key).await? {
            return Ok(Found::Output);
        }
        let name = failure_name(key);
        let Some(entry) = self.get(&name).await else {
            return Ok(Found::Nothing);
        };
        Ok(match read_failure(key, &entry, self.key_of) {
            Ok(content) => Found::Failure(content),
            Err(error) => {
                self.report_object(&name, &error.to_string());
                Found::Nothing
            }
        })
    }

    /// Makes sure that the remote and the local cache have the same output, which this run is about to use: that of the
    /// remote, or else the local one. With `replaces` it is the local one in any case. Returns whether it is another one
    /// than before.
    ///
    /// # Errors
    /// If the local cache cannot be written.
    pub async fn put(
        &self,
        store: &Store,
        key: &ActionKey,
        replaces: bool,
    ) -> Result<bool, CacheError> {
        self.state().tried.insert(*key);
        let Some(record) = store.find_usable(key) else {
            return Ok(false);
        };
        // A damaged entry is reported when it is read.
        let Ok(entry) = store.packed(&record) else {
            return Ok(false);
        };
        if self.write(output_name(key), &entry, replaces).await != Some(false) {
            return Ok(false);
        }
        if self.pull(store, key).await? == Found::Nothing {
            // What does not verify counts as missing. If it stayed, every machine would pay for this output again.
            self.write(output_name(key), &entry, true).await;
        }
        Ok(store.find(key).is_some_and(|now| now.raw != record.raw))
    }

    /// As [`put`](SharedCache::put), for an output that the remote has most likely.
    ///
    /// # Errors
    /// As `put`.
    pub async fn reconcile(&self, store: &Store, key: &ActionKey) -> Result<(), CacheError> {
        if self.pull(store, key).await? == Found::Nothing {
            self.put(store, key, false).await?;
        }
        Ok(())
    }

    /// Stores why an action has no output, in place of an earlier reason.
    pub async fn put_failure(&self, key: &ActionKey, header: &EntryHeader, content: &[u8]) {
        if let Ok(entry) = pack_failure(*key, header, content) {
            self.write(failure_name(key), &entry, true).await;
        }
    }

    /// The entry in an object; `None` if there is none that verifies.
    async fn get(&self, name: &str) -> Option<Bytes> {
        let object = self.call("read", self.remote.get(name)).await.flatten()?;
        match unseal(self.settings.key.as_ref(), name, &object) {
            Ok(entry) => Some(object.slice_ref(entry)),
            Err(what) => {
                self.report_object(name, what);
                None
            }
        }
    }

    /// Writes an object. Returns whether it was written; `None` if it cannot be.
    async fn write(&self, name: String, entry: &[u8], replaces: bool) -> Option<bool> {
        let object = seal(self.settings.key.as_ref(), &name, entry);
        if object.len() as u64 > MAX_OBJECT {
            self.report_object(&name, "it is too large, and was not written");
            return None;
        }
        let put = self.remote.put(&name, object, replaces);
        let written = self.call("write to", put).await;
        self.state().exchanged.pushed += u64::from(written == Some(true));
        written
    }

    /// Waits for a call, but not too long. A failure is reported once, and from then on nothing is sent.
    async fn call<T>(&self, operation: &'static str, call: RemoteFuture<'_, T>) -> Option<T> {
        if self.state().failure.is_some() {
            return None;
        }
        let called = tokio::time::timeout(PATIENCE, call).await;
        let mut state = self.state();
        let no_answer = || format!("there was no answer within {} s", PATIENCE.as_secs());
        match called.unwrap_or_else(|_| {
            let url = &state.exchanged.url;
            Err(RemoteError::failed(operation, url, no_answer()))
        }) {
            Ok(done) => Some(done),
            Err(RemoteError::Refused(what)) => {
                drop(state);
                self.report_object("an object", what);
                None
            }
            Err(error) => {
                if state.failure.is_none() {
                    let warning = format!("{error}; this command continues without the remote");
                    state.warnings.push(warning);
                    state.failure = Some(error);
                }
                None
            }
        }
    }

    /// Reports an object that does not verify, once: there may be many.
    fn report_object(&self, name: &str, what: &str) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_reported, true) {
            let url = &state.exchanged.url;
            let warning = format!("{name} in {url} is not used: {what}; there may be more like it");
            state.warnings.push(warning);
        }
    }
}

const MAGIC: [u8; 8] = *b"ceval 1\n";
const CODE: usize = 32;

/// The name of the object with the output of an action.
pub(super) fn output_name(key: &ActionKey) -> String {
    let hex = key.0.hex();
    let (folder, name) = hex.split_at(2);
    format!("{folder}/{name}")
}

/// The name of the object that says why an action has no output.
pub(super) fn failure_name(key: &ActionKey) -> String {
    output_name(key) + "-failed"
}

/// The object `name` with an entry.
pub(super) fn seal(key: Option<&RemoteKey>, name: &str, entry: &[u8]) -> Bytes {
    let code = key.map_or([0; CODE], |key| *key.code(name, entry).as_bytes());
    [&MAGIC[..], &code, entry].concat().into()
}

/// The entry in the object `name`. With a key, its code must be right; without one it is not looked at. The error says
/// what is wrong.
pub(super) fn unseal<'o>(
    key: Option<&RemoteKey>,
    name: &str,
    object: &'o [u8],
) -> Result<&'o [u8], &'static str> {
    let rest = object
        .strip_prefix(&MAGIC)
        .ok_or("it was not written by this version of compeval")?;
    let (code, entry) = rest.split_first_chunk::<CODE>().ok_or("it is cut off")?;
    match key {
        // compared in the same time for any wrong code
        Some(key) if key.code(name, entry) != *code => {
            Err("its code is not that of COMPEVAL_REMOTE_KEY")
        }
        _ => Ok(entry),
    }
}

/// How long a plan looks into a remote.
const PLAN_PATIENCE: Duration = Duration::from_secs(10);

/// The entries of a remote, as far as they were looked for.
#[derive(Debug)]
pub struct RemoteEntries {
    store: Store,
    shared: SharedCache,
    runtime: Runtime,
    deadline: Instant,
    wanted: Mutex<BTreeSet<ActionKey>>,
    is_cut_off: AtomicBool,
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
            .map_err(|error| failed(format!("could not start a thread: {error}")))?;
        Ok(RemoteEntries {
            store,
            shared,
            runtime,
            deadline: Instant::now() + PLAN_PATIENCE,
            wanted: Mutex::default(),
            is_cut_off: AtomicBool::default(),
            _folder: folder,
        })
    }

    /// A cache, and below it what this has got so far.
    pub fn below<'c, A: Lookup>(&'c self, upper: &'c A) -> Layered<'c, A, Store> {
        Layered {
            upper,
            lower: &self.store,
            missed: Some(&self.wanted),
        }
    }

    /// Gets what was looked up in vain since the last call. Returns whether a lookup may now find more.
    pub fn get_wanted(&self) -> bool {
        let mut wanted = std::mem::take(&mut *lock(&self.wanted));
        wanted.retain(|key| self.shared.may_have(key));
        let gets = wanted.iter().map(|key| self.shared.pull(&self.store, key));
        let mut gets = futures::stream::iter(gets).buffer_unordered(SharedCache::AT_ONCE);
        let all = async { while gets.next().await.is_some() {} };
        let in_time = self
            .runtime
            .block_on(async { tokio::time::timeout_at(self.deadline, all).await });
        self.is_cut_off
            .fetch_or(in_time.is_err(), Ordering::Relaxed);
        !wanted.is_empty() && in_time.is_ok() && self.is_answering()
    }

    /// Whether the time was over before everything was looked for.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::digest::Digest;
    use crate::remote::RemoteMode;

    /// A server that takes requests and never answers.
    #[derive(Debug)]
    struct Silent;

    impl Remote for Silent {
        fn get<'a>(&'a self, _: &'a str) -> RemoteFuture<'a, Option<Bytes>> {
            std::future::pending().boxed()
        }

        fn put<'a>(&'a self, _: &'a str, _: Bytes, _: bool) -> RemoteFuture<'a, bool> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_remote_that_never_answers_is_one_warning_and_then_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "test", |_| None).unwrap();
        let settings = RemoteSettings {
            url: "fs:///srv/silent".parse().unwrap(),
            mode: RemoteMode::Write,
            key: None,
        };
        let shared = SharedCache::with_remote(Box::new(Silent), settings, |_| None);
        let keys: Vec<ActionKey> = (0..200_u32)
            .map(|n| ActionKey(Digest::hash(n.to_le_bytes())))
            .collect();
        let begun = tokio::time::Instant::now();
        for found in
            futures::future::join_all(keys.iter().map(|key| shared.pull(&store, key))).await
        {
            assert_eq!(found.unwrap(), Found::Nothing);
        }
        assert!(shared.failure().is_some() && !shared.may_have(&keys[0]));
        assert!(!shared.may_have(&ActionKey(Digest::hash("another"))));
        shared.pull(&store, &keys[0]).await.unwrap();
        assert_eq!(begun.elapsed(), PATIENCE);
        let warnings = shared.take_warnings();
        assert!(
            warnings.len() == 1 && warnings[0].contains("no answer within 30 s"),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_code_holds_for_one_name_one_entry_and_one_key() {
        let [ours, theirs] = ["a secret of the team", "another team's secret"]
            .map(|s| RemoteKey::from_secret(s).unwrap());
        let object = seal(Some(&ours), "ab/c", b"entry");
        assert_eq!(unseal(Some(&ours), "ab/c", &object), Ok(&b"entry"[..]));
        assert_eq!(unseal(None, "ab/c", &object), Ok(&b"entry"[..]));
        for (key, name) in [(&theirs, "ab/c"), (&ours, "ab/d")] {
            assert!(unseal(Some(key), name, &object).is_err());
        }
        let plain = seal(None, "ab/c", b"entry");
        assert!(unseal(Some(&ours), "ab/c", &plain).is_err());
        assert_eq!(unseal(None, "ab/c", &plain), Ok(&b"entry"[..]));
        for odd in [&b""[..], b"<html>", &plain[..20]] {
            assert!(unseal(None, "ab/c", odd).is_err());
        }
        assert!(RemoteKey::from_secret("too short").is_none());
    }
}
