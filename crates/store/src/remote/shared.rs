//! The remote of a run: entries are pulled when they are missed, and those made here are uploaded.
//!
//! The list of what the remote has is read once, when the run begins; what others upload later is seen by the next run.
//! An entry that the local cache lacks and the list has is pulled into the local cache, once. A run reads only the
//! local cache, so a remote that fails, or an entry that is damaged, makes it slower and never wrong. After the first
//! failure nothing more is pulled, and a pack with one damaged entry is not used.
//!
//! Entries of a pack that are wanted at the same time are read with one request where they are close together. If
//! enough of a pack is wanted, all of it is read. Uploads are collected into packs by size and time. Entries that could
//! not be uploaded are uploaded by a later run that uses them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::backend::{Remote, RemoteError};
use super::folder::FolderRemote;
use super::index::{ItemLocation, RemoteIndex, group_adjacent};
use super::index_objects::{self, MOST_LOOSE};
use super::marker;
#[cfg(feature = "object-stores")]
use super::object_store;
use super::pack::{SignedFooter, object_of};
use super::part_records::{self, FoundRecord, PartName};
use super::prune::{self, RemotePruneCounts};
use super::request_slots::RequestSlots;
use super::settings::RemoteSettings;
use super::signed::RemoteId;
use super::summary::{self, PullCounts, SharedSummary};
use super::upload::{PACK_BYTES, PushCounts, Upload};
use super::url::RemoteUrl;
use crate::cache::{CacheError, ImportOrigin, Lookup, Store, Writer, now_ms};
use crate::digest::{ActionKey, Digest};

/// Entries wait this long, or until there is a pack's worth of them, before they are uploaded.
const UPLOAD_EVERY: Duration = Duration::from_secs(30);

/// The most requests for entries that are under way at once.
const MOST_PULLS: usize = 8;

/// The most entries of a pack that are read one by one: if more are wanted, all of the pack is read.
const MOST_SINGLE: usize = 8;

/// The remote of a run, connected to the local cache.
#[derive(Debug)]
pub struct SharedCache {
    settings: RemoteSettings,
    url: String,
    remote: Box<dyn Remote>,
    slots: RequestSlots,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until the remote is known to be marked as one of this program.
    remote_id: Option<RemoteId>,
    /// The same, once it is known that the remote is not publicly readable.
    writable: Option<RemoteId>,
    /// `None` until it was read.
    index: Option<Arc<RemoteIndex>>,
    /// Nothing more is pulled: the remote failed.
    is_unavailable: bool,
    /// Packs with an entry that is not what the footer says.
    damaged: HashSet<usize>,
    /// Entries that were asked for; each is pulled once.
    tried: HashSet<ActionKey>,
    /// By the position of the pack in the index.
    packs: HashMap<usize, PackPulls>,
    pulled: PullCounts,
    /// Entries to upload, and about how many bytes they have.
    waiting: BTreeSet<ActionKey>,
    waiting_bytes: u64,
    last_upload: Option<Instant>,
    uploaded: HashSet<Digest>,
    /// Footers outside of all index objects that this process has written.
    footers: BTreeMap<Digest, SignedFooter>,
    has_indexed: bool,
    pushed: PushCounts,
    /// Why the last upload failed.
    upload_error: Option<RemoteError>,
    warnings: Vec<String>,
}

/// The pulls from one pack.
#[derive(Debug, Default)]
struct PackPulls {
    /// Held during a request: entries that are wanted meanwhile come with the next one.
    lock: Arc<tokio::sync::Mutex<()>>,
    wanted: Vec<ItemLocation>,
    /// Entries that were wanted so far.
    pulled: usize,
    /// Whether all of it was read.
    is_whole: bool,
}

impl SharedCache {
    /// Connects to a remote. Sends nothing yet.
    ///
    /// # Errors
    /// If this build does not support the service, or settings in the environment are wrong.
    pub fn new(settings: RemoteSettings) -> Result<SharedCache, RemoteError> {
        Ok(SharedCache::with_remote(open(&settings.url)?, settings))
    }

    /// Connects to any place for objects.
    pub(super) fn with_remote(remote: Box<dyn Remote>, settings: RemoteSettings) -> SharedCache {
        let (url, slots) = (settings.url.to_string(), RequestSlots::new(MOST_PULLS));
        SharedCache {
            settings,
            url,
            remote,
            slots,
            started: Instant::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL of the remote.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether entries made here are uploaded.
    pub fn is_written(&self) -> bool {
        self.settings.is_written()
    }

    /// Opens new connections: old ones do not outlive the runtime that they were made in.
    ///
    /// # Errors
    /// As `new`.
    pub fn reconnected(self) -> Result<SharedCache, RemoteError> {
        Ok(SharedCache {
            remote: open(&self.settings.url)?,
            ..self
        })
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Reads which packs there are.
    ///
    /// # Errors
    /// If the remote cannot be used.
    pub async fn load(&self) -> Result<(), RemoteError> {
        let remote_id = marker::read(&*self.remote, &self.url).await?;
        let trust = self.settings.trust();
        let index = match remote_id {
            Some(remote_id) => {
                RemoteIndex::load(&*self.remote, remote_id, &trust, self.settings.assignment)
                    .await?
            }
            None => RemoteIndex::default(),
        };
        let mut state = self.state();
        state
            .warnings
            .extend(summary::unused_warnings(&index.unused, &self.url));
        state.warnings.extend(summary::clock_warning(&index));
        state.warnings.extend(summary::own_key_warning(&trust));
        state.remote_id = remote_id;
        state.index = Some(Arc::new(index));
        Ok(())
    }

    /// As `load`, unless it was done before. A remote that fails causes a warning.
    pub async fn load_or_warn(&self) {
        if self.state().index.is_some() {
            return;
        }
        if let Err(error) = self.load().await {
            self.mark_unavailable(&error, "this run continues without it");
        }
    }

    /// As `load`, for a command that waits no longer than `patience`. A remote that fails causes a warning that ends
    /// with `then`.
    pub(super) async fn load_within(&self, patience: Duration, then: &str) {
        let loaded = tokio::time::timeout(patience, self.load()).await;
        if let Err(error) = loaded.unwrap_or_else(|_| Err(self.no_answer(patience))) {
            self.mark_unavailable(&error, then);
        }
    }

    /// Pulls the pack of an entry, for a command that will want the rest of it and waits no longer than `patience`.
    /// `then` as above.
    pub(super) async fn pull_within(
        &self,
        patience: Duration,
        then: &str,
        store: &Store,
        key: ActionKey,
    ) {
        if let Some(at) = self.location(&key) {
            self.state().packs.entry(at.pack).or_default().pulled = MOST_SINGLE;
        }
        let pulled = match tokio::time::timeout(patience, self.pull(store, key)).await {
            Ok(pulled) => pulled.map_err(|error| self.failed(error.to_string())),
            Err(_) => Err(self.no_answer(patience)),
        };
        if let Err(error) = pulled {
            self.mark_unavailable(&error, then);
        }
    }

    fn no_answer(&self, patience: Duration) -> RemoteError {
        self.failed(format!(
            "there was no answer within {} s",
            patience.as_secs()
        ))
    }

    fn failed(&self, what: String) -> RemoteError {
        RemoteError::failed("read", &self.url, what)
    }

    /// Whether it failed, so that nothing more is pulled.
    pub(super) fn has_failed(&self) -> bool {
        self.state().is_unavailable
    }

    fn mark_unavailable(&self, error: &RemoteError, then: &str) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_unavailable, true) {
            state.warnings.push(format!("{error}; {then}"));
        }
    }

    /// Whether the remote has any entries.
    pub fn has_entries(&self) -> bool {
        self.state()
            .index
            .as_ref()
            .is_some_and(|index| !index.entries.is_empty())
    }

    fn location(&self, key: &ActionKey) -> Option<ItemLocation> {
        self.state().index.as_ref()?.entries.get(&key.0).copied()
    }

    /// Whether the remote has an entry that was not asked for yet.
    pub fn has(&self, key: &ActionKey) -> bool {
        let Some(at) = self.location(key) else {
            return false;
        };
        let state = self.state();
        !state.is_unavailable && !state.damaged.contains(&at.pack) && !state.tried.contains(key)
    }

    /// Pulls an entry into the local cache. If that fails, the entry is made here. Entries of one pack that are wanted
    /// at once come together; from the ninth on, all of it comes: a run that wants that much of another run wants most.
    ///
    /// # Errors
    /// If the local cache cannot be written.
    pub async fn pull(&self, store: &Store, key: ActionKey) -> Result<(), CacheError> {
        let Some((index, at)) = self.want(key) else {
            return Ok(());
        };
        // Others may want entries of the same pack now: these come along.
        tokio::task::yield_now().await;
        let one_at_a_time = self.state().packs.entry(at.pack).or_default().lock.clone();
        // The slot comes first: the newest request must not wait for an older one of the same pack that has no slot
        // yet.
        let _slot = self.slots.take().await;
        let _lock = one_at_a_time.lock().await;
        let wanted = self.take_wanted(&index, at.pack, store);
        for items in group_adjacent(wanted) {
            if self.state().is_unavailable {
                return Ok(());
            }
            self.pull_range(store, &index, &items).await?;
        }
        Ok(())
    }

    /// Notes that an entry is wanted. Returns where it is.
    fn want(&self, key: ActionKey) -> Option<(Arc<RemoteIndex>, ItemLocation)> {
        let mut state = self.state();
        state.tried.insert(key);
        let index = state.index.clone()?;
        let at = index.entries.get(&key.0).copied()?;
        state.packs.entry(at.pack).or_default().wanted.push(at);
        Some((index, at))
    }

    /// Takes what is to be read of a pack now: nothing, if another pull has read it already.
    fn take_wanted(&self, index: &RemoteIndex, pack: usize, store: &Store) -> Vec<ItemLocation> {
        let mut state = self.state();
        let pulls = state.packs.entry(pack).or_default();
        let mut wanted = std::mem::take(&mut pulls.wanted);
        // Another pull may have read all of the pack meanwhile.
        wanted.retain(|at| store.find_usable(&ActionKey(at.item.key)).is_none());
        pulls.pulled += wanted.len();
        if pulls.pulled <= MOST_SINGLE || pulls.is_whole || wanted.is_empty() {
            return wanted;
        }
        pulls.is_whole = true;
        drop(state);
        let keys = index
            .packs
            .get(pack)
            .into_iter()
            .flat_map(|pack| &pack.entries);
        let missing = keys.filter(|key| store.find_usable(&ActionKey(**key)).is_none());
        missing
            .filter_map(|key| index.entries.get(key).copied())
            .collect()
    }

    /// Reads items that are close together in a pack.
    async fn pull_range(
        &self,
        store: &Store,
        index: &RemoteIndex,
        items: &[ItemLocation],
    ) -> Result<(), CacheError> {
        /// Entries that are added before other tasks get their turn.
        const PER_TURN: usize = 64;
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Ok(());
        };
        let Some(pack) = index.packs.get(first.pack) else {
            return Ok(());
        };
        let range = first.item.offset..last.item.end();
        let bytes = match self
            .remote
            .read(&object_of(&pack.name), Some(range.clone()))
            .await
        {
            Ok(bytes) => bytes,
            Err(RemoteError::NotFound(_)) => return Ok(()),
            Err(RemoteError::Refused { what, .. }) => {
                self.mark_damaged(index, first.pack, what);
                return Ok(());
            }
            Err(error) => {
                self.mark_unavailable(&error, "nothing more is pulled");
                return Ok(());
            }
        };
        for some in items.chunks(PER_TURN) {
            for at in some {
                self.add(store, index, *at, &bytes, range.start)?;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Verifies an item and adds it to the local cache. `known` are bytes of its pack from `start` on.
    fn add(
        &self,
        store: &Store,
        index: &RemoteIndex,
        at: ItemLocation,
        known: &[u8],
        start: u64,
    ) -> Result<(), CacheError> {
        let Some(pack) = index.packs.get(at.pack) else {
            return Ok(());
        };
        let writer = pack.writer.as_ref();
        let writer = writer.map(|writer| Writer {
            name: writer.name.clone(),
            key: writer.key.to_string(),
        });
        let origin = ImportOrigin {
            remote: self.url.clone(),
            pack: pack.name,
            writer,
        };
        let packed = at
            .item
            .find_in(known, start)
            .filter(|bytes| Digest::hash(bytes) == at.item.digest);
        let added = match packed {
            Some(bytes) => store.add_packed(&at.item.key, bytes, &origin),
            None => Err(summary::differing_entry(&origin.remote)),
        };
        match added {
            Ok(counts) => {
                let mut state = self.state();
                state.pulled.entries += counts.added;
                state.pulled.texts += u64::from(counts.added == 0 && counts.present == 0);
                state.pulled.bytes += u64::from(at.item.bytes);
                Ok(())
            }
            Err(CacheError::BadImport { what, .. }) => {
                self.mark_damaged(index, at.pack, &what);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that a pack is not what its footer says, so that nothing more of it is pulled.
    fn mark_damaged(&self, index: &RemoteIndex, pack: usize, what: &str) {
        let mut state = self.state();
        if let Some(damaged) = index.packs.get(pack).filter(|_| state.damaged.insert(pack)) {
            state
                .warnings
                .push(summary::damaged_pack(&damaged.name, &self.url, what));
        }
    }

    /// Pulls everything that the local cache does not have, some packs at a time. The inner error is that of the
    /// remote.
    ///
    /// # Errors
    /// If the remote fails, or the local cache cannot be written.
    pub async fn pull_all(
        &self,
        store: &Store,
    ) -> Result<Result<PullCounts, RemoteError>, CacheError> {
        let Some(index) = self.state().index.clone() else {
            return Ok(Ok(PullCounts::default()));
        };
        let mut missing: BTreeMap<usize, Vec<ItemLocation>> = BTreeMap::new();
        for (key, at) in &index.entries {
            if store.find_usable(&ActionKey(*key)).is_none() {
                missing.entry(at.pack).or_default().push(*at);
            }
        }
        for (_, at) in index
            .texts
            .iter()
            .filter(|(digest, _)| store.read_text(digest).is_none())
        {
            missing.entry(at.pack).or_default().push(*at);
        }
        let requests = missing.into_iter().filter_map(|(place, items)| {
            let object = object_of(&index.packs.get(place)?.name);
            Some(async move { (place, self.remote.read(&object, None).await, items) })
        });
        let mut replies = futures::stream::iter(requests).buffer_unordered(MOST_PULLS);
        while let Some((place, reply, mut items)) = replies.next().await {
            items.sort_unstable_by_key(|at| at.item.offset);
            let bytes = match reply {
                Ok(bytes) => bytes,
                Err(RemoteError::NotFound(_)) => continue,
                Err(RemoteError::Refused { what, .. }) => {
                    self.mark_damaged(&index, place, what);
                    continue;
                }
                Err(error) => return Ok(Err(error)),
            };
            for at in items {
                self.add(store, &index, at, &bytes, 0)?;
            }
        }
        Ok(Ok(self.state().pulled))
    }

    /// Notes an entry that a result needs: it is uploaded if it was made here and the remote does not have it.
    pub fn note(&self, key: ActionKey) {
        /// Bytes assumed of an entry that waits.
        const ASSUMED_BYTES: u64 = 4 << 10;
        let mut state = self.state();
        let is_there = state.index.as_ref().is_some_and(|index| index.has(&key.0));
        if self.is_written() && !is_there && state.waiting.insert(key) {
            state.waiting_bytes += ASSUMED_BYTES;
        }
    }

    /// Uploads what waits, if it is time. A failure is tried again at the end.
    pub async fn upload_if_due(&self, store: &Store) {
        let is_due = {
            let state = self.state();
            let is_much = state.waiting_bytes >= PACK_BYTES as u64;
            let is_time =
                is_much || state.last_upload.unwrap_or(self.started).elapsed() >= UPLOAD_EVERY;
            is_time
                && !state.waiting.is_empty()
                && state.upload_error.is_none()
                && state.index.is_some()
        };
        if is_due {
            self.upload(store).await;
        }
    }

    /// Uploads what waits, at the end of a run. A failure is a warning: a later run uploads what it uses of it.
    pub async fn finish(&self, store: &Store) {
        if self.state().waiting.is_empty() {
            return;
        }
        if self.state().index.is_none() && self.load().await.is_err() {
            // the failure was reported when the run began
            return;
        }
        self.upload(store).await;
        let mut state = self.state();
        if let Some(error) = state.upload_error.take() {
            let count = state.waiting.len();
            state.warnings.push(summary::not_uploaded(count, &error));
        }
    }

    async fn upload(&self, store: &Store) {
        let waiting: Vec<ActionKey> = self.state().waiting.iter().copied().collect();
        let result = self.push(store, &waiting).await;
        let mut state = self.state();
        state.last_upload = Some(Instant::now());
        match result {
            Ok(_) => {
                for key in &waiting {
                    state.waiting.remove(key);
                }
                state.waiting_bytes = 0;
                state.upload_error = None;
            }
            Err(error) => state.upload_error = Some(error),
        }
    }

    /// Uploads the entries that were made here and that the remote does not have.
    ///
    /// # Errors
    /// If the remote cannot be written, or anybody could read what is written.
    pub async fn push<C: Lookup>(
        &self,
        cache: &C,
        keys: &[ActionKey],
    ) -> Result<PushCounts, RemoteError> {
        if !self.is_written() {
            return Ok(PushCounts::default());
        }
        let remote_id = self.writable().await?;
        let (index, uploaded) = {
            let mut state = self.state();
            state.remote_id = Some(remote_id);
            (
                state.index.clone().unwrap_or_default(),
                state.uploaded.clone(),
            )
        };
        let mut upload = Upload {
            remote: &*self.remote,
            url: &self.url,
            remote_id,
            key: self.settings.key.as_ref(),
            part: self.settings.part_origin(),
            texts: self.settings.texts,
            has: &|digest| uploaded.contains(digest) || index.has(digest),
            counts: PushCounts::default(),
            uploaded: Vec::new(),
            footers: BTreeMap::new(),
        };
        let result = upload.push(cache, keys).await;
        let Upload {
            counts,
            uploaded,
            footers,
            ..
        } = upload;
        let loose = {
            let mut state = self.state();
            state.uploaded.extend(uploaded);
            state.footers.extend(footers);
            state.pushed = state.pushed.plus(&counts);
            // If this process has written an index object, it has the footers that were loose when the list was read.
            let earlier = index.loose.iter().filter(|_| !state.has_indexed);
            let loose = earlier.chain(&state.footers);
            loose
                .map(|(name, signed)| (*name, signed.clone()))
                .collect::<BTreeMap<_, _>>()
        };
        result?;
        if counts.packs == 0 {
            return Ok(counts);
        }
        if loose.len() > MOST_LOOSE {
            index_objects::write(&*self.remote, &loose).await?;
            let mut state = self.state();
            state.footers.clear();
            state.has_indexed = true;
            drop(state);
        }
        index_objects::write_latest(&*self.remote).await?;
        Ok(counts)
    }

    /// The id of the remote, after checking that it is not public. Marks the remote if nothing was ever written to it.
    async fn writable(&self) -> Result<RemoteId, RemoteError> {
        if let Some(known) = self.state().writable {
            return Ok(known);
        }
        self.remote.check_private().await?;
        let known = self.state().remote_id;
        let remote_id = match known {
            Some(remote_id) => remote_id,
            None => {
                let seed = format!(
                    "{:?} {} {}",
                    self.settings.key,
                    now_ms(),
                    std::process::id()
                );
                let remote_id = marker::ensure(&*self.remote, &self.url, seed.as_bytes()).await?;
                // now there is an object that a stranger may be able to read
                self.remote.check_private().await?;
                remote_id
            }
        };
        self.state().writable = Some(remote_id);
        Ok(remote_id)
    }

    /// Uploads what waits, then the record of the part that was run here.
    ///
    /// # Errors
    /// If the remote cannot be written.
    pub async fn push_part(
        &self,
        store: &Store,
        name: PartName<'_>,
        content: Vec<u8>,
    ) -> Result<(), RemoteError> {
        let waiting: Vec<ActionKey> = self.state().waiting.iter().copied().collect();
        self.push(store, &waiting).await?;
        let remote_id = self.writable().await?;
        part_records::write(
            &*self.remote,
            remote_id,
            self.settings.key.as_ref(),
            name,
            content,
        )
        .await
    }

    /// The records of a run in `of` parts, the oldest first.
    ///
    /// # Errors
    /// If the remote cannot be read.
    pub async fn part_records(
        &self,
        label: &str,
        of: u32,
    ) -> Result<Vec<FoundRecord>, RemoteError> {
        let Some(remote_id) = self.state().remote_id else {
            return Ok(Vec::new());
        };
        let trust = self.settings.trust();
        let (records, refused) =
            part_records::read(&*self.remote, remote_id, &trust, label, of).await?;
        self.state()
            .warnings
            .extend(summary::records_warning(refused, &self.url));
        Ok(records)
    }

    /// Protects what a label needs from a prune of the remote.
    ///
    /// # Errors
    /// If the remote cannot be written.
    pub async fn push_label(&self, label: &str, keys: &[ActionKey]) -> Result<(), RemoteError> {
        let keys: Vec<Digest> = keys.iter().map(|key| key.0).collect();
        prune::write_label(&*self.remote, label, &keys).await
    }

    /// Marks what no pushed label needs, and deletes what was marked 30 days ago. A dry run only counts, and so does one
    /// without a signing key.
    ///
    /// # Errors
    /// If the remote cannot be read or written, or is not one of this program.
    pub async fn prune(&self, is_dry: bool) -> Result<RemotePruneCounts, RemoteError> {
        let Some(remote_id) = marker::read(&*self.remote, &self.url).await? else {
            return Ok(RemotePruneCounts::default());
        };
        let (trust, writer) = (
            self.settings.trust(),
            self.settings.key.as_ref().filter(|_| !is_dry),
        );
        prune::run(&*self.remote, &self.url, remote_id, &trust, writer).await
    }

    /// What the remote has and what was done with it; `None` if it could not be read.
    pub fn summary(&self) -> Option<SharedSummary> {
        let state = self.state();
        let summary = SharedSummary::new(&self.url, state.index.as_ref()?);
        let damaged = summary.damaged + state.damaged.len() as u64;
        Some(SharedSummary {
            damaged,
            pulled: state.pulled,
            pushed: state.pushed,
            ..summary
        })
    }
}

fn open(url: &RemoteUrl) -> Result<Box<dyn Remote>, RemoteError> {
    match url {
        RemoteUrl::Folder(path) => Ok(Box::new(FolderRemote::new(path.clone()))),
        #[cfg(feature = "object-stores")]
        RemoteUrl::Bucket(bucket) => object_store::open_bucket(bucket),
        #[cfg(feature = "object-stores")]
        RemoteUrl::Web(url) => object_store::open_web_server(url),
        #[cfg(not(feature = "object-stores"))]
        RemoteUrl::Bucket(_) | RemoteUrl::Web(_) => Err(RemoteError::NotBuilt(url.to_string())),
    }
}
