//! The index: small records in sled, saying where each key's current frame lies. The only file that names sled.
//!
//! sled may panic on damaged files, so every call runs guarded; a fault here costs a rebuild from the packs, nothing
//! else. Nothing is flushed but by `flush`, so that the order of writes is ours.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use super::catalogue::{Catalogue, DigestMap, PackState};
use super::error::IndexFault;
use super::fold::{Questions, Tables, apply};
use super::frame::{Header, KeyHead};
use super::meta::{Day, Removal};
use super::record::{Location, Record};
use crate::action::{ActionKey, Digest};

fn fault(error: &sled::Error) -> IndexFault {
    let text = error.to_string();
    let text = text.split_once(" backtrace").map_or(text.as_str(), |(text, _)| text).to_owned();
    if text.contains("could not acquire lock") { IndexFault::Locked(text) } else { IndexFault::Broken(text) }
}

type Checked<T> = Result<T, IndexFault>;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call into sled so that its panics become faults and are not printed.
fn guard<T>(call: impl FnOnce() -> sled::Result<T>) -> Checked<T> {
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
        Err(_) => Err(IndexFault::odd("the index store stopped on damaged data")),
    }
}

/// The index, open.
#[derive(Debug)]
pub(super) struct Index {
    db: sled::Db,
    actions: sled::Tree,
    latest: sled::Tree,
    gone: sled::Tree,
    texts: sled::Tree,
    counts: sled::Tree,
    days: sled::Tree,
    packs: sled::Tree,
    log: File,
    recent: Mutex<Recent>,
}

/// What was appended last, before it goes into the trees: a reply and its verdict change one record shortly after each
/// other, and the tree is what costs.
#[derive(Debug, Default)]
struct Recent {
    records: DigestMap<ActionKey, Record>,
    pack: Option<PackState>,
}

impl Recent {
    /// Records that wait at most.
    const LIMIT: usize = 256;
}

impl Index {
    /// Opens the index in `folder`, or makes an empty one.
    pub(super) fn open(folder: &Path) -> Checked<Index> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let began = Instant::now();
        loop {
            match Index::try_open(folder) {
                Err(IndexFault::Locked(_)) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(folder: &Path) -> Checked<Index> {
        let config = sled::Config::new().path(folder).cache_capacity(32 << 20).flush_every_ms(None);
        let db = guard(|| config.open())?;
        let tree = |name: &str| guard(|| db.open_tree(name));
        let log = File::open(folder.join("db")).map_err(|e| IndexFault::Broken(e.to_string()))?;
        Ok(Index {
            actions: tree("actions")?,
            latest: tree("latest")?,
            gone: tree("gone")?,
            texts: tree("texts")?,
            counts: tree("counts")?,
            days: tree("days")?,
            packs: tree("packs")?,
            log,
            db,
            recent: Mutex::default(),
        })
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what was appended last into the trees: the pack after its records, so that it never claims too much.
    fn settle(&self, recent: &mut Recent) -> Checked<()> {
        for record in recent.records.values() {
            guard(|| self.gone.remove(record.key.0.0))?;
            self.put_record(record)?;
        }
        recent.records.clear();
        recent.pack.take().map_or(Ok(()), |pack| self.put_pack(pack))
    }

    /// Writes whole tables into an empty index.
    pub(super) fn fill(&self, catalogue: &Catalogue) -> Checked<()> {
        let mut tables = self;
        for record in catalogue.records.values() {
            self.put_record(record)?;
        }
        catalogue.latest.iter().try_for_each(|(coordinate, key)| tables.set_latest(*coordinate, *key))?;
        for (key, why) in &catalogue.gone {
            let value = encoded(why)?;
            guard(|| self.gone.insert(key.0.0, value))?;
        }
        catalogue.texts.iter().try_for_each(|(digest, at)| tables.set_text(*digest, *at))?;
        catalogue.counts.iter().try_for_each(|(digest, count)| tables.set_count(*digest, *count))?;
        catalogue.days.iter().try_for_each(|(key, day)| tables.set_day(*key, *day))?;
        catalogue.packs.iter().try_for_each(|pack| self.set_pack(*pack))?;
        self.flush()
    }

    /// Applies frames that were appended to a pack, up to `len`.
    pub(super) fn append(&self, frames: &[(Location, Header)], pack: PackState) -> Checked<()> {
        let mut tables = self;
        frames.iter().try_for_each(|(at, header)| apply(&mut tables, *at, header))?;
        let mut recent = self.recent();
        recent.pack = Some(pack);
        if recent.records.len() < Recent::LIMIT { Ok(()) } else { self.settle(&mut recent) }
    }

    /// Puts everything on disk. sled's own flush does not outlast a power cut; the sync of its file does.
    pub(super) fn flush(&self) -> Checked<()> {
        self.settle(&mut self.recent())?;
        guard(|| self.db.flush())?;
        self.log.sync_data().map_err(|e| IndexFault::Broken(e.to_string()))
    }

    /// Bytes it takes on disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        guard(|| self.db.size_on_disk()).unwrap_or(0)
    }

    /// The packs as far as they are indexed.
    pub(super) fn packs(&self) -> Checked<Vec<PackState>> {
        let mut packs = Vec::new();
        let mut entries = self.packs.iter();
        while let Some((id, bytes)) = guard(|| entries.next().transpose())? {
            let id: [u8; 4] = id.as_ref().try_into().map_err(|_| IndexFault::odd("a pack's number is cut off"))?;
            let (generation, len) = decoded(&bytes)?;
            packs.push(PackState { id: u32::from_be_bytes(id), generation, good: len, len });
        }
        Ok(packs)
    }

    pub(super) fn set_pack(&self, pack: PackState) -> Checked<()> {
        self.settle(&mut self.recent())?;
        self.put_pack(pack)
    }

    fn put_pack(&self, pack: PackState) -> Checked<()> {
        let value = encoded(&(pack.generation, pack.good))?;
        guard(|| self.packs.insert(pack.id.to_be_bytes(), value)).map(drop)
    }

    pub(super) fn remove_pack(&self, id: u32) -> Checked<()> {
        self.settle(&mut self.recent())?;
        guard(|| self.packs.remove(id.to_be_bytes())).map(drop)
    }

    /// Forgets where a text lies: it is damaged, or nobody needs it.
    pub(super) fn forget_text(&self, digest: &Digest) -> Checked<()> {
        guard(|| self.texts.remove(digest.0)).map(drop)
    }

    /// All texts and where they lie.
    pub(super) fn texts(&self) -> Checked<Vec<(Digest, Location)>> {
        let mut texts = Vec::new();
        let mut entries = self.texts.iter();
        while let Some((key, bytes)) = guard(|| entries.next().transpose())? {
            let key = digest(&key).ok_or_else(|| IndexFault::odd("a digest is cut off"))?;
            texts.push((key, decoded(&bytes)?));
        }
        Ok(texts)
    }

    fn put_record(&self, record: &Record) -> Checked<()> {
        let value = record.encode().map_err(|e| IndexFault::Broken(e.to_string()))?;
        guard(|| self.actions.insert(record.key.0.0, value)).map(drop)
    }
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

fn encoded<T: serde::Serialize>(value: &T) -> Checked<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|e| IndexFault::Broken(e.to_string()))
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Checked<T> {
    postcard::from_bytes(bytes).map_err(|e| IndexFault::Broken(e.to_string()))
}

impl Questions for Index {
    fn find(&self, key: &ActionKey) -> Checked<Option<Record>> {
        if let Some(record) = self.recent().records.get(key) {
            return Ok(Some(record.clone()));
        }
        let Some(bytes) = guard(|| self.actions.get(key.0.0))? else { return Ok(None) };
        Record::decode(*key, &bytes).map(Some).ok_or_else(|| IndexFault::odd("a record does not match its checksum"))
    }

    fn records(&self) -> Checked<Vec<Record>> {
        self.settle(&mut self.recent())?;
        let mut records = Vec::new();
        let mut entries = self.actions.iter();
        while let Some((key, bytes)) = guard(|| entries.next().transpose())? {
            let key = digest(&key).map(ActionKey);
            let record = key.and_then(|key| Record::decode(key, &bytes));
            records.push(record.ok_or_else(|| IndexFault::odd("a record does not match its checksum"))?);
        }
        Ok(records)
    }

    fn removed(&self, key: &ActionKey) -> Checked<Option<Removal>> {
        if self.recent().records.contains_key(key) {
            return Ok(None);
        }
        guard(|| self.gone.get(key.0.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn latest_at(&self, coordinate: &Digest) -> Checked<Option<ActionKey>> {
        let found = guard(|| self.latest.get(coordinate.0))?;
        found.map(|bytes| digest(&bytes).map(ActionKey).ok_or_else(|| IndexFault::odd("a key is cut off"))).transpose()
    }

    fn text(&self, digest: &Digest) -> Checked<Option<Location>> {
        guard(|| self.texts.get(digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn count(&self, digest: &Digest) -> Checked<Option<u64>> {
        guard(|| self.counts.get(digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn day(&self, key: &KeyHead) -> Checked<Option<Day>> {
        guard(|| self.days.get(key))?.map(|bytes| decoded(&bytes)).transpose()
    }
}

impl Tables for &Index {
    type Error = IndexFault;

    fn record(&mut self, key: &ActionKey) -> Checked<Option<Record>> {
        self.find(key)
    }

    fn set_record(&mut self, record: Record) -> Checked<()> {
        self.recent().records.insert(record.key, record);
        Ok(())
    }

    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> Checked<()> {
        let Some(mut record) = self.find(key)? else { return Ok(()) };
        change(&mut record);
        self.set_record(record)
    }

    fn remove(&mut self, key: &ActionKey, why: Removal) -> Checked<()> {
        self.settle(&mut self.recent())?;
        guard(|| self.actions.remove(key.0.0))?;
        let value = encoded(&why)?;
        guard(|| self.gone.insert(key.0.0, value)).map(drop)
    }

    fn latest(&mut self, coordinate: &Digest) -> Checked<Option<ActionKey>> {
        self.latest_at(coordinate)
    }

    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> Checked<()> {
        guard(|| self.latest.insert(coordinate.0, &key.0.0)).map(drop)
    }

    fn set_text(&mut self, digest: Digest, at: Location) -> Checked<()> {
        let value = encoded(&at)?;
        guard(|| self.texts.insert(digest.0, value)).map(drop)
    }

    fn set_count(&mut self, digest: Digest, count: u64) -> Checked<()> {
        let value = encoded(&count)?;
        guard(|| self.counts.insert(digest.0, value)).map(drop)
    }

    fn set_day(&mut self, key: KeyHead, day: Day) -> Checked<()> {
        if self.day(&key)?.is_some_and(|noted| noted >= day) {
            return Ok(());
        }
        let value = encoded(&day)?;
        guard(|| self.days.insert(key, value)).map(drop)
    }
}
