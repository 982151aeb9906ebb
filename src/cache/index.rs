//! The index on disk (sled): the current record of each key, and the other tables. Only this file uses sled.
//!
//! sled can panic on damaged files, so every call runs in `catch_panics`; a fault costs a rebuild from the packs and nothing
//! else. sled's background flush is off: only `flush` writes, so that the index never gets ahead of the packs.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use super::entry::{Day, FrameLocation, Record, RemovalReason};
use super::error::IndexFault;
use super::frame::{FrameHeader, KeyPrefix};
use super::journal_steps::{BatchNonce, JournalPlaces, JournalStep};
use super::pack_index::{DigestMap, IndexQueries, IndexUpdates, PackIndex, PackState, apply_frame};
use crate::action::{ActionKey, Digest};
use crate::files::{close_files, create_private_folder};

fn fault(error: &sled::Error) -> IndexFault {
    let text = error.to_string();
    let text = text.split_once(" backtrace").map_or(text.as_str(), |(text, _)| text).to_owned();
    if text.contains("could not acquire lock") { IndexFault::Locked(text) } else { IndexFault::Broken(text) }
}

type IndexResult<T> = Result<T, IndexFault>;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls sled; a panic becomes a fault and is not printed.
fn catch_panics<T>(call: impl FnOnce() -> sled::Result<T>) -> IndexResult<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    QUIET.set(was);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(fault(&error)),
        Err(_) => Err(IndexFault::broken("sled stopped on damaged data")),
    }
}

/// The open index.
#[derive(Debug)]
pub(super) struct SledIndex {
    db: sled::Db,
    actions: sled::Tree,
    latest: sled::Tree,
    removed: sled::Tree,
    texts: sled::Tree,
    counts: sled::Tree,
    days: sled::Tree,
    journal: sled::Tree,
    packs: sled::Tree,
    log: File,
    pending: Mutex<PendingWrites>,
}

/// The latest changes, before they go into the trees: a reply and the result of parsing it change one record shortly
/// after each other, and writing to the tree is what costs.
#[derive(Debug, Default)]
struct PendingWrites {
    records: DigestMap<ActionKey, Record>,
    pack: Option<PackState>,
}

impl PendingWrites {
    const LIMIT: usize = 256;
}

impl SledIndex {
    /// Opens the index in `folder`, or creates an empty one.
    pub(super) fn open(folder: &Path) -> IndexResult<SledIndex> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let began = Instant::now();
        loop {
            match SledIndex::try_open(folder) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(folder: &Path) -> IndexResult<SledIndex> {
        let config = sled::Config::new().path(folder).cache_capacity(32 << 20).flush_every_ms(None);
        create_private_folder(folder).map_err(IndexFault::broken)?;
        let db = catch_panics(|| config.open())?;
        close_files(folder);
        let tree = |name: &str| catch_panics(|| db.open_tree(name));
        let log = File::open(folder.join("db")).map_err(IndexFault::broken)?;
        Ok(SledIndex {
            actions: tree("actions")?,
            latest: tree("latest")?,
            removed: tree("gone")?,
            texts: tree("texts")?,
            counts: tree("counts")?,
            days: tree("days")?,
            journal: tree("journal")?,
            packs: tree("packs")?,
            log,
            db,
            pending: Mutex::default(),
        })
    }

    fn pending(&self) -> MutexGuard<'_, PendingWrites> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the pending changes into the trees: the pack's state after its records, so that it never covers more than
    /// the trees contain.
    fn write_pending(&self, pending: &mut PendingWrites) -> IndexResult<()> {
        for record in pending.records.values() {
            catch_panics(|| self.removed.remove(record.key.0.0))?;
            self.put_record(record)?;
        }
        pending.records.clear();
        pending.pack.take().map_or(Ok(()), |pack| self.put_chunk(pack))
    }

    /// Writes all tables into an empty index.
    pub(super) fn fill(&self, source: &PackIndex) -> IndexResult<()> {
        let mut target = self;
        for record in source.records.values() {
            self.put_record(record)?;
        }
        source.latest.iter().try_for_each(|(coordinate, key)| target.set_latest(*coordinate, *key))?;
        for (key, why) in &source.removed {
            let value = encoded(why)?;
            catch_panics(|| self.removed.insert(key.0.0, value))?;
        }
        source.texts.iter().try_for_each(|(digest, at)| target.set_text(*digest, *at))?;
        source.counts.iter().try_for_each(|(digest, count)| target.set_count(*digest, *count))?;
        source.days.iter().try_for_each(|(key, day)| target.set_day(*key, *day))?;
        source.journal.iter().try_for_each(|(place, at)| target.set_journal(*place, *at))?;
        source.packs.iter().try_for_each(|pack| self.set_pack(*pack))?;
        self.flush()
    }

    /// Applies frames that were appended to a pack; `pack` is its state after them.
    pub(super) fn append(&self, frames: &[(FrameLocation, FrameHeader)], pack: PackState) -> IndexResult<()> {
        let mut tables = self;
        frames.iter().try_for_each(|(at, header)| apply_frame(&mut tables, *at, header))?;
        let mut pending = self.pending();
        pending.pack = Some(pack);
        if pending.records.len() < PendingWrites::LIMIT { Ok(()) } else { self.write_pending(&mut pending) }
    }

    /// Writes everything to disk. sled's flush does not survive a power failure; syncing its file does.
    pub(super) fn flush(&self) -> IndexResult<()> {
        self.write_pending(&mut self.pending())?;
        catch_panics(|| self.db.flush())?;
        self.log.sync_data().map_err(IndexFault::broken)
    }

    pub(super) fn disk_bytes(&self) -> IndexResult<u64> {
        catch_panics(|| self.db.size_on_disk())
    }

    /// The packs, up to where they are indexed.
    pub(super) fn packs(&self) -> IndexResult<Vec<PackState>> {
        let mut packs = Vec::new();
        let mut entries = self.packs.iter();
        while let Some((id, bytes)) = catch_panics(|| entries.next().transpose())? {
            let id: [u8; 4] =
                id.as_ref().try_into().map_err(|_| IndexFault::broken("a pack number has the wrong length"))?;
            let (generation, len) = decoded(&bytes)?;
            packs.push(PackState { id: u32::from_be_bytes(id), generation, good: len, len });
        }
        Ok(packs)
    }

    pub(super) fn set_pack(&self, pack: PackState) -> IndexResult<()> {
        self.write_pending(&mut self.pending())?;
        self.put_chunk(pack)
    }

    fn put_chunk(&self, pack: PackState) -> IndexResult<()> {
        let value = encoded(&(pack.generation, pack.good))?;
        catch_panics(|| self.packs.insert(pack.id.to_be_bytes(), value)).map(drop)
    }

    pub(super) fn remove_pack(&self, id: u32) -> IndexResult<()> {
        self.write_pending(&mut self.pending())?;
        catch_panics(|| self.packs.remove(id.to_be_bytes())).map(drop)
    }

    /// Removes the location of a text that is damaged or unused.
    pub(super) fn forget_text(&self, digest: &Digest) -> IndexResult<()> {
        catch_panics(|| self.texts.remove(digest.0)).map(drop)
    }

    /// Removes the place of a record of a batch that is damaged or no longer needed.
    pub(super) fn forget_journal(&self, place: &(BatchNonce, JournalStep)) -> IndexResult<()> {
        let key = encoded(place)?;
        catch_panics(|| self.journal.remove(key)).map(drop)
    }

    pub(super) fn texts(&self) -> IndexResult<Vec<(Digest, FrameLocation)>> {
        let mut texts = Vec::new();
        let mut entries = self.texts.iter();
        while let Some((key, bytes)) = catch_panics(|| entries.next().transpose())? {
            let key = digest(&key).ok_or_else(|| IndexFault::broken("a digest has the wrong length"))?;
            texts.push((key, decoded(&bytes)?));
        }
        Ok(texts)
    }

    fn put_record(&self, record: &Record) -> IndexResult<()> {
        let value = record.encode().map_err(IndexFault::broken)?;
        catch_panics(|| self.actions.insert(record.key.0.0, value)).map(drop)
    }
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

fn encoded<T: serde::Serialize>(value: &T) -> IndexResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(IndexFault::broken)
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> IndexResult<T> {
    postcard::from_bytes(bytes).map_err(IndexFault::broken)
}

impl IndexQueries for SledIndex {
    fn find(&self, key: &ActionKey) -> IndexResult<Option<Record>> {
        if let Some(record) = self.pending().records.get(key) {
            return Ok(Some(record.clone()));
        }
        let Some(bytes) = catch_panics(|| self.actions.get(key.0.0))? else { return Ok(None) };
        Record::decode(*key, &bytes).map(Some).ok_or_else(|| IndexFault::broken("a record does not match its checksum"))
    }

    fn records(&self) -> IndexResult<Vec<Record>> {
        self.write_pending(&mut self.pending())?;
        let mut records = Vec::new();
        let mut entries = self.actions.iter();
        while let Some((key, bytes)) = catch_panics(|| entries.next().transpose())? {
            let key = digest(&key).map(ActionKey);
            let record = key.and_then(|key| Record::decode(key, &bytes));
            records.push(record.ok_or_else(|| IndexFault::broken("a record does not match its checksum"))?);
        }
        Ok(records)
    }

    fn removed(&self, key: &ActionKey) -> IndexResult<Option<RemovalReason>> {
        if self.pending().records.contains_key(key) {
            return Ok(None);
        }
        catch_panics(|| self.removed.get(key.0.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn latest_at(&self, coordinate: &Digest) -> IndexResult<Option<ActionKey>> {
        let found = catch_panics(|| self.latest.get(coordinate.0))?;
        found
            .map(|bytes| digest(&bytes).map(ActionKey).ok_or_else(|| IndexFault::broken("a key has the wrong length")))
            .transpose()
    }

    fn text(&self, digest: &Digest) -> IndexResult<Option<FrameLocation>> {
        catch_panics(|| self.texts.get(digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn count(&self, digest: &Digest) -> IndexResult<Option<u64>> {
        catch_panics(|| self.counts.get(digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn day(&self, key: &KeyPrefix) -> IndexResult<Option<Day>> {
        catch_panics(|| self.days.get(key))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn journal(&self) -> IndexResult<JournalPlaces> {
        let mut places = JournalPlaces::new();
        let mut entries = self.journal.iter();
        while let Some((place, at)) = catch_panics(|| entries.next().transpose())? {
            places.insert(decoded(&place)?, decoded(&at)?);
        }
        Ok(places)
    }
}

impl IndexUpdates for &SledIndex {
    type Error = IndexFault;

    fn record(&mut self, key: &ActionKey) -> IndexResult<Option<Record>> {
        self.find(key)
    }

    fn set_record(&mut self, record: Record) -> IndexResult<()> {
        self.pending().records.insert(record.key, record);
        Ok(())
    }

    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> IndexResult<()> {
        let Some(mut record) = self.find(key)? else { return Ok(()) };
        change(&mut record);
        self.set_record(record)
    }

    fn remove(&mut self, key: &ActionKey, why: RemovalReason) -> IndexResult<()> {
        self.write_pending(&mut self.pending())?;
        catch_panics(|| self.actions.remove(key.0.0))?;
        let value = encoded(&why)?;
        catch_panics(|| self.removed.insert(key.0.0, value)).map(drop)
    }

    fn latest(&mut self, coordinate: &Digest) -> IndexResult<Option<ActionKey>> {
        self.latest_at(coordinate)
    }

    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> IndexResult<()> {
        catch_panics(|| self.latest.insert(coordinate.0, &key.0.0)).map(drop)
    }

    fn set_text(&mut self, digest: Digest, at: FrameLocation) -> IndexResult<()> {
        let value = encoded(&at)?;
        catch_panics(|| self.texts.insert(digest.0, value)).map(drop)
    }

    fn set_count(&mut self, digest: Digest, count: u64) -> IndexResult<()> {
        let value = encoded(&count)?;
        catch_panics(|| self.counts.insert(digest.0, value)).map(drop)
    }

    fn set_day(&mut self, key: KeyPrefix, day: Day) -> IndexResult<()> {
        if self.day(&key)?.is_some_and(|noted| noted >= day) {
            return Ok(());
        }
        let value = encoded(&day)?;
        catch_panics(|| self.days.insert(key, value)).map(drop)
    }

    fn set_journal(&mut self, place: (BatchNonce, JournalStep), at: FrameLocation) -> IndexResult<()> {
        let (key, value) = (encoded(&place)?, encoded(&at)?);
        catch_panics(|| self.journal.insert(key, value)).map(drop)
    }
}
