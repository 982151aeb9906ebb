//! The remote of a run: entries are pulled when they are missed, and those made here are uploaded.
//!
//! The list of what the remote has is read once, when the run begins; what others upload later is seen by the next run. A
//! miss of the local cache that is in the list is pulled into it, once for each entry: a run reads the local cache alone,
//! so a remote that fails, or an entry that is damaged, makes the run slower and never wrong. After the first failure
//! nothing more is pulled, and a segment with one damaged entry is not used.
//!
//! Entries of a segment that are wanted at once are read by one request where they are close together, and a segment of
//! which enough is wanted is read as a whole. Uploads are put together to segments, too, by size and time. What could not be uploaded is uploaded by a later run that uses it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::backend::Remote;
use super::error::RemoteError;
use super::folder::FolderRemote;
use super::index::{ItemLocation, RemoteIndex, Segment, UnusedSegments};
use super::keys::SigningKey;
use super::listing;
use super::namespace;
#[cfg(feature = "object-stores")]
use super::object_store;
use super::prune::{self, RemotePruneCounts};
use super::request_slots::RequestSlots;
use super::rollup::{self, MOST_LOOSE};
use super::segment::{Namespace, SignedFooter, object_of};
use super::settings::RemoteSettings;
use super::summary::{PullCounts, SharedSummary};
use super::upload::{PushCounts, SEGMENT_BYTES, Upload};
use super::url::RemoteUrl;
use super::warnings::{clock_warning, unused_warnings};
use crate::action::{ActionKey, Digest};
use crate::cache::{CacheError, ImportOrigin, Lookup, Store, Writer, now_ms};

/// Entries wait this long, or until there is a segment's worth of them, before they are uploaded.
const UPLOAD_EVERY: Duration = Duration::from_secs(30);

/// Requests for entries that are under way at once.
const PULLS: usize = 8;

/// Entries that are read of a segment one by one, before all of it is.
const FEW: usize = 8;

/// The remote of a run, connected to the local cache.
#[derive(Debug)]
pub struct SharedCache {
    settings: RemoteSettings,
    url: String,
    remote: Box<dyn Remote>,
    turns: RequestSlots,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until the remote was marked as one of this program.
    namespace: Option<Namespace>,
    /// The same, once it is known that the remote is not publicly readable.
    writable: Option<Namespace>,
    /// `None` until it was read.
    index: Option<Arc<RemoteIndex>>,
    /// Nothing more is pulled: the remote failed.
    is_unavailable: bool,
    /// Segments with an entry that is not what the footer says.
    damaged: HashSet<usize>,
    tried: HashSet<ActionKey>,
    /// By their place in the index.
    segments: HashMap<usize, SegmentPulls>,
    pulled: PullCounts,
    /// Entries to upload, and about how many bytes they have.
    waiting: BTreeSet<ActionKey>,
    waiting_bytes: u64,
    last_upload: Option<Instant>,
    uploaded: HashSet<Digest>,
    /// Footers outside of all roll-ups that this process has written.
    footers: BTreeMap<Digest, SignedFooter>,
    has_rolled_up: bool,
    pushed: PushCounts,
    /// Why the last upload failed.
    upload_error: Option<RemoteError>,
    warnings: Vec<String>,
}

/// What is pulled of a segment.
#[derive(Debug, Default)]
struct SegmentPulls {
    /// One request at a time: what is wanted in the meantime comes with the next.
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
        Ok(SharedCache::over(open(&settings.url)?, settings))
    }

    /// The same over any place.
    pub(super) fn over(remote: Box<dyn Remote>, settings: RemoteSettings) -> SharedCache {
        let (url, turns) = (settings.url.to_string(), RequestSlots::new(PULLS));
        SharedCache { settings, url, remote, turns, started: Instant::now(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether entries made here are uploaded.
    pub fn is_written(&self) -> bool {
        self.settings.key.is_some()
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Reads which segments there are.
    ///
    /// # Errors
    /// If the remote cannot be used.
    pub async fn load(&self) -> Result<(), RemoteError> {
        let namespace = namespace::read(&*self.remote, &self.url).await?;
        let own = self.settings.key.as_ref().map(|key| key.public());
        let index = match namespace {
            Some(namespace) => RemoteIndex::load(&*self.remote, namespace, (&self.settings.trust, own)).await?,
            None => RemoteIndex::default(),
        };
        let mut state = self.state();
        state.warnings.extend(unused_warnings(&index.unused, &self.url));
        state.warnings.extend(clock_warning(&index));
        if let Some(own) = own.filter(|own| !self.settings.trust.iter().any(|writer| writer.key == *own)) {
            state.warnings.push(format!(
                "the key that signs what is uploaded is not in `trust`, so runs of this pipeline will not use it; add \"NAME {own}\""
            ));
        }
        state.namespace = namespace;
        state.index = Some(Arc::new(index));
        Ok(())
    }

    /// As `load`, for a run: a remote that fails is a warning.
    pub async fn load_or_warn(&self) {
        if let Err(error) = self.load().await {
            self.mark_unavailable(&error, "this run continues without it");
        }
    }

    /// As `load_or_warn`, for a command that waits no longer than this.
    pub(super) async fn load_within(&self, patience: Duration, then: &str) {
        let loaded = tokio::time::timeout(patience, self.load()).await;
        if let Err(error) = loaded.unwrap_or_else(|_| Err(self.no_answer(patience))) {
            self.mark_unavailable(&error, then);
        }
    }

    /// Pulls the segment of an entry, for a command that will want the rest of it and waits no longer than this.
    pub(super) async fn pull_within(&self, patience: Duration, then: &str, store: &Store, key: ActionKey) {
        if let Some(at) = self.location(&key) {
            self.state().segments.entry(at.segment).or_default().pulled = FEW;
        }
        let failed = |error: CacheError| self.failed(error.to_string());
        let pulled = match tokio::time::timeout(patience, self.pull(store, key)).await {
            Ok(pulled) => pulled.map_err(failed),
            Err(_) => Err(self.no_answer(patience)),
        };
        if let Err(error) = pulled {
            self.mark_unavailable(&error, then);
        }
    }

    fn no_answer(&self, patience: Duration) -> RemoteError {
        self.failed(format!("there was no answer within {} s", patience.as_secs()))
    }

    fn failed(&self, what: String) -> RemoteError {
        RemoteError::Failed { operation: "read", url: self.url.clone(), what }
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
        self.state().index.as_ref().is_some_and(|index| !index.entries.is_empty())
    }

    fn location(&self, key: &ActionKey) -> Option<ItemLocation> {
        self.state().index.as_ref()?.entries.get(&key.0).copied()
    }

    /// Whether the remote has an entry that was not asked for yet.
    pub fn has(&self, key: &ActionKey) -> bool {
        let location = self.location(key);
        let state = self.state();
        let is_usable = |at: &ItemLocation| !state.damaged.contains(&at.segment) && !state.tried.contains(key);
        !state.is_unavailable && location.as_ref().is_some_and(is_usable)
    }

    /// Pulls an entry into the local cache. If that fails, the entry is made here. Entries of one segment that are wanted
    /// at once come together; from the ninth on, all of it comes: a run that wants that much of another run wants most.
    ///
    /// # Errors
    /// If the local cache cannot be written.
    pub async fn pull(&self, store: &Store, key: ActionKey) -> Result<(), CacheError> {
        let Some((index, at)) = self.want(key) else { return Ok(()) };
        // What else is about to be wanted of the segment comes along.
        tokio::task::yield_now().await;
        let one_at_a_time = self.state().segments.entry(at.segment).or_default().lock.clone();
        // First the turn: who asked last must not wait for one of the same segment that waits for its turn.
        let _turn = self.turns.take().await;
        let _lock = one_at_a_time.lock().await;
        let wanted = self.take_wanted(&index, at.segment, store);
        for items in side_by_side(wanted) {
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
        state.segments.entry(at.segment).or_default().wanted.push(at);
        Some((index, at))
    }

    /// What to read of a segment now: nothing, if another pull took it along.
    fn take_wanted(&self, index: &RemoteIndex, segment: usize, store: &Store) -> Vec<ItemLocation> {
        let mut state = self.state();
        let of_segment = state.segments.entry(segment).or_default();
        let mut wanted = std::mem::take(&mut of_segment.wanted);
        // All of the segment may have come since.
        wanted.retain(|at| !store.find(&ActionKey(at.item.key)).is_some_and(|record| record.is_usable()));
        of_segment.pulled += wanted.len();
        if of_segment.pulled <= FEW || of_segment.is_whole || wanted.is_empty() {
            return wanted;
        }
        of_segment.is_whole = true;
        drop(state);
        let is_missing = |key: &&Digest| store.find(&ActionKey(**key)).is_none();
        let keys = index.segments.get(segment).into_iter().flat_map(|segment| &segment.entries).filter(is_missing);
        keys.filter_map(|key| index.entries.get(key).copied()).collect()
    }

    /// Reads items that are close together in a segment.
    async fn pull_range(&self, store: &Store, index: &RemoteIndex, items: &[ItemLocation]) -> Result<(), CacheError> {
        const AT_ONCE: usize = 64;
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return Ok(()) };
        let Some(segment) = index.segments.get(first.segment) else { return Ok(()) };
        let range = first.item.offset..last.item.end();
        let bytes = match self.remote.read(&object_of(&segment.name), Some(range.clone())).await {
            Ok(bytes) => bytes,
            Err(RemoteError::NotFound(_)) => return Ok(()),
            Err(error) => {
                self.mark_unavailable(&error, "nothing more is pulled");
                return Ok(());
            }
        };
        for some in items.chunks(AT_ONCE) {
            for at in some {
                self.add(store, index, *at, (&bytes, range.start))?;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Verifies an item and adds it to the local cache. The bytes of its segment are known from `start` on.
    fn add(
        &self,
        store: &Store,
        index: &RemoteIndex,
        at: ItemLocation,
        (known, start): (&[u8], u64),
    ) -> Result<(), CacheError> {
        let Some(segment) = index.segments.get(at.segment) else { return Ok(()) };
        let writer = Writer { name: segment.writer.name.clone(), key: segment.writer.key.to_string() };
        let origin = ImportOrigin { file: self.url.clone(), digest: segment.name, writer: Some(writer) };
        let packed = at.item.of(known, start).filter(|bytes| Digest::of(bytes) == at.item.digest);
        let added = match packed {
            Some(bytes) => store.add_packed(&at.item.key, bytes, &origin),
            None => Err(CacheError::BadImport {
                path: origin.file.clone().into(),
                what: "an entry differs from what its footer says".into(),
            }),
        };
        let mut state = self.state();
        match added {
            Ok(counts) => {
                state.pulled.entries += counts.added;
                state.pulled.texts += u64::from(counts.added == 0 && counts.present == 0);
                state.pulled.bytes += u64::from(at.item.bytes);
                Ok(())
            }
            Err(CacheError::BadImport { what, .. }) => {
                if state.damaged.insert(at.segment) {
                    let text =
                        format!("the segment {} in {} is damaged and is not used: {what}", segment.name, self.url);
                    state.warnings.push(text);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Pulls everything that the local cache does not have, some segments at a time.
    ///
    /// # Errors
    /// If the remote fails, or the local cache cannot be written.
    pub async fn pull_all(&self, store: &Store) -> Result<Result<PullCounts, RemoteError>, CacheError> {
        let Some(index) = self.state().index.clone() else { return Ok(Ok(PullCounts::default())) };
        let mut missing: BTreeMap<usize, Vec<ItemLocation>> = BTreeMap::new();
        let is_missing = |key: &Digest| !store.find(&ActionKey(*key)).is_some_and(|record| record.is_usable());
        for (_, at) in index.entries.iter().filter(|(key, _)| is_missing(key)) {
            missing.entry(at.segment).or_default().push(*at);
        }
        for (_, at) in index.texts.iter().filter(|(digest, _)| store.read_text(digest).is_none()) {
            missing.entry(at.segment).or_default().push(*at);
        }
        let segments = missing.into_iter().filter_map(|(place, items)| Some((index.segments.get(place)?, items)));
        let read = |(segment, items): (&Segment, Vec<ItemLocation>)| {
            let object = object_of(&segment.name);
            async move { (self.remote.read(&object, None).await, items) }
        };
        let mut replies = futures::stream::iter(segments).map(read).buffer_unordered(PULLS);
        while let Some((reply, mut items)) = replies.next().await {
            items.sort_unstable_by_key(|at| at.item.offset);
            let bytes = match reply {
                Ok(bytes) => bytes,
                Err(RemoteError::NotFound(_)) => continue,
                Err(error) => return Ok(Err(error)),
            };
            for at in items {
                self.add(store, &index, at, (&bytes, 0))?;
            }
        }
        Ok(Ok(self.state().pulled))
    }

    /// Notes an entry that a result needs: it is uploaded if it was made here and the remote does not have it.
    pub fn note(&self, key: ActionKey) {
        const ABOUT: u64 = 4 << 10;
        let mut state = self.state();
        let is_there = state.index.as_ref().is_some_and(|index| index.has(&key.0));
        if self.settings.key.is_some() && !is_there && state.waiting.insert(key) {
            state.waiting_bytes += ABOUT;
        }
    }

    /// Uploads what waits, if it is time. A failure is tried again at the end.
    pub async fn upload_if_due(&self, store: &Store) {
        let is_due = {
            let state = self.state();
            let is_much = state.waiting_bytes >= SEGMENT_BYTES as u64;
            let is_time = is_much || state.last_upload.unwrap_or(self.started).elapsed() >= UPLOAD_EVERY;
            is_time && !state.waiting.is_empty() && state.upload_error.is_none() && state.index.is_some()
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
            state.warnings.push(format!("{count} entries were not uploaded: {error}; a later run uploads them"));
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

    /// Uploads those of the entries that were made here and that the remote does not have.
    ///
    /// # Errors
    /// If the remote cannot be written, or anybody could read what is written.
    pub async fn push<C: Lookup>(&self, cache: &C, keys: &[ActionKey]) -> Result<PushCounts, RemoteError> {
        let Some(key) = &self.settings.key else { return Ok(PushCounts::default()) };
        let namespace = self.writable(key).await?;
        let (index, uploaded) = {
            let mut state = self.state();
            state.namespace = Some(namespace);
            (state.index.clone().unwrap_or_default(), state.uploaded.clone())
        };
        let has = |digest: &Digest| uploaded.contains(digest) || index.has(digest);
        let mut upload = Upload {
            remote: &*self.remote,
            url: &self.url,
            namespace,
            key,
            texts: self.settings.texts,
            has: &has,
            counts: PushCounts::default(),
            uploaded: Vec::new(),
            footers: BTreeMap::new(),
        };
        let result = upload.entries(cache, keys).await;
        let Upload { counts, uploaded, footers, .. } = upload;
        let loose = {
            let mut state = self.state();
            state.uploaded.extend(uploaded);
            state.footers.extend(footers);
            state.pushed = state.pushed.plus(&counts);
            // What was loose when the list was read is in a roll-up by now, if this process has written one.
            let earlier = index.loose.iter().filter(|_| !state.has_rolled_up);
            let loose = earlier.chain(&state.footers);
            loose.map(|(name, signed)| (*name, signed.clone())).collect::<BTreeMap<_, _>>()
        };
        result?;
        if counts.segments == 0 {
            return Ok(counts);
        }
        if loose.len() > MOST_LOOSE {
            rollup::write(&*self.remote, &loose).await?;
            let mut state = self.state();
            state.footers.clear();
            state.has_rolled_up = true;
            drop(state);
        }
        listing::write(&*self.remote).await?;
        Ok(counts)
    }

    /// The namespace of a remote that nobody else can read, which is marked if nothing was ever written to it.
    async fn writable(&self, key: &SigningKey) -> Result<Namespace, RemoteError> {
        if let Some(known) = self.state().writable {
            return Ok(known);
        }
        self.remote.check_private().await?;
        let known = self.state().namespace;
        let namespace = match known {
            Some(namespace) => namespace,
            None => {
                let seed = format!("{} {} {}", key.public(), now_ms(), std::process::id());
                let namespace = namespace::ensure(&*self.remote, &self.url, seed.as_bytes()).await?;
                // now there is an object that a stranger may be able to read
                self.remote.check_private().await?;
                namespace
            }
        };
        self.state().writable = Some(namespace);
        Ok(namespace)
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
        let Some(namespace) = namespace::read(&*self.remote, &self.url).await? else {
            return Ok(RemotePruneCounts::default());
        };
        let RemoteSettings { trust, key, .. } = &self.settings;
        let writer = key.as_ref().filter(|_| !is_dry);
        prune::Prune { remote: &*self.remote, url: &self.url, namespace, trust, writer }.run().await
    }

    /// What the remote has and what was done with it; `None` if it could not be read.
    pub fn summary(&self) -> Option<SharedSummary> {
        let state = self.state();
        let index = state.index.as_ref()?;
        let mut writers: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for segment in &index.segments {
            writers.entry(segment.writer.name.clone()).or_default().1 += 1;
        }
        for segment in index.entries.values().filter_map(|at| index.segments.get(at.segment)) {
            writers.entry(segment.writer.name.clone()).or_default().0 += 1;
        }
        let UnusedSegments { untrusted, damaged, newer, foreign, pruned, lists: _ } = index.unused.clone();
        Some(SharedSummary {
            url: self.url.clone(),
            list: index.digest(),
            segments: index.segments.len() as u64,
            entries: index.entries.len() as u64,
            texts: index.texts.len() as u64,
            bytes: index.bytes,
            writers,
            untrusted,
            damaged: (damaged.len() + state.damaged.len()) as u64,
            newer,
            foreign,
            pruned,
            pulled: state.pulled,
            pushed: state.pushed,
        })
    }
}

/// Items in the order of their places, in groups that are read at once: a gap costs less than a request.
fn side_by_side(mut items: Vec<ItemLocation>) -> Vec<Vec<ItemLocation>> {
    const GAP: u64 = 64 << 10;
    items.sort_unstable_by_key(|at| at.item.offset);
    items.dedup_by_key(|at| at.item.offset);
    let mut groups: Vec<Vec<ItemLocation>> = Vec::new();
    for at in items {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|last| at.item.offset.saturating_sub(last.item.end()) <= GAP) => {
                group.push(at);
            }
            _ => groups.push(vec![at]),
        }
    }
    groups
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
