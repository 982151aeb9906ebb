//! The index on disk: the current record of each key, and the other tables.
//!
//! Changes are collected in memory. A flush writes them as a sorted run and merges it with the runs that are not much
//! larger, so that there are few runs, and each change is written a few times at most. The list of runs in the catalog
//! says how much of each pack they cover; a flush replaces it after everything else. So the index is always in the
//! state of some flush, it never gets ahead of the packs, and a crash leaves only a run that is not listed. Damage only
//! causes a rebuild from the packs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::catalog::Catalog;
use super::pack_index::{IndexQueries, IndexUpdates, PackIndex, PackState, apply_frame};
use super::sorted_run::{Merged, SortedRun, SortedRunEntry, SortedRunWriter, verified, with_checksum};
use crate::action::{ActionKey, Digest};
use crate::cache::entry::{Day, FrameLocation, Record, RemovalReason, prefix_of};
use crate::cache::error::{IndexFault, IndexResult};
use crate::cache::packs::frame::{FrameHeader, KeyPrefix, key_prefix};
use crate::cache::packs::journal_steps::{BatchNonce, JournalPlaces, JournalStep};
use base::files::{create_private_folder, sync_folder};

/// The tables; the first byte of a key says which one it is in.
#[derive(Clone, Copy)]
enum Table {
    /// Records, and why a key has none any more.
    Actions = 1,
    /// The beginning of a coordinate's digest, and that of the key of its latest action: explanations are made of it, and
    /// no output. The whole key stands where `Actions` does not have it.
    Latest = 2,
    SourceTexts = 3,
    Counts = 4,
    Days = 5,
    Journal = 6,
}

impl Table {
    fn key(self, key: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + key.len());
        bytes.push(self as u8);
        bytes.extend_from_slice(key);
        bytes
    }
}

/// The first byte of a value that says why a key has no record; a record begins with its version.
const REMOVED: u8 = 0;

/// The list of runs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SortedRunList {
    /// Number, length and blocks of each run, oldest first.
    runs: Vec<(u32, u64, u32)>,
    /// Number and generation of each pack, and up to where it is indexed.
    packs: Vec<(u32, u32, u64)>,
}

const LIST_START: [u8; 8] = *b"CEvINDX3";

#[derive(Debug)]
pub(in crate::cache) struct DiskIndex {
    folder: PathBuf,
    catalog: Catalog,
    state: Mutex<IndexState>,
}

#[derive(Debug, Default)]
struct IndexState {
    /// What changed since the last flush.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    runs: Arc<[SortedRun]>,
    packs: BTreeMap<u32, PackState>,
    /// Whether there is anything to flush.
    is_dirty: bool,
}

fn catalog_folder(folder: &Path) -> PathBuf {
    folder.join("catalog")
}

/// The file of a run.
fn run_file(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.run"))
}

impl DiskIndex {
    /// Whether there is an index in `folder`, sound or not.
    pub(in crate::cache) fn is_in(folder: &Path) -> bool {
        Catalog::is_in(&catalog_folder(folder))
    }

    /// Opens the index in `folder`, or creates an empty one.
    pub(in crate::cache) fn open(folder: &Path) -> IndexResult<DiskIndex> {
        create_private_folder(folder).map_err(IndexFault::broken)?;
        let catalog = Catalog::open(&catalog_folder(folder))?;
        let list = catalog.list()?.map_or(Ok(SortedRunList::default()), |bytes| read_list(&bytes))?;
        let open =
            |shape: (u32, u64, u32)| SortedRun::open(&run_file(folder, shape.0), shape, &catalog.fences(shape.0)?);
        let runs = list.runs.into_iter().map(open).collect::<IndexResult<_>>()?;
        let packs = list.packs.into_iter();
        let packs = packs.map(|(id, generation, good)| (id, PackState { id, generation, good, len: good })).collect();
        let state = IndexState { runs, packs, ..IndexState::default() };
        let index = DiskIndex { folder: folder.to_owned(), catalog, state: Mutex::new(state) };
        index.remove_unlisted(&index.state())?;
        Ok(index)
    }

    fn state(&self) -> MutexGuard<'_, IndexState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all tables into an empty index.
    pub(super) fn fill(&self, source: &PackIndex) -> IndexResult<()> {
        let mut writer = SortedRunWriter::create(&run_file(&self.folder, 1), 1)?;
        in_order(source, |key, value| writer.push(&key, Some(&value)))?;
        let mut state = self.state();
        state.packs = source.packs.iter().map(|pack| (pack.id, *pack)).collect();
        self.replace_list(&mut state, [writer.finish()?].into())
    }

    /// Applies frames that were appended to a pack; `pack` is its state after them.
    pub(in crate::cache) fn append(&self, frames: &[(FrameLocation, FrameHeader)], pack: PackState) -> IndexResult<()> {
        let mut tables = self;
        frames.iter().try_for_each(|(at, header)| apply_frame(&mut tables, *at, header))?;
        self.set_pack(pack)
    }

    /// Writes everything to disk.
    pub(in crate::cache) fn flush(&self) -> IndexResult<()> {
        let mut state = self.state();
        if !state.is_dirty {
            return Ok(());
        }
        let runs = if state.changes.is_empty() { state.runs.clone() } else { self.merge(&state)? };
        self.replace_list(&mut state, runs)?;
        state.changes.clear();
        state.is_dirty = false;
        Ok(())
    }

    /// The runs with the changes in a new one, which takes the place of those that are at most twice as large as what
    /// comes after them.
    fn merge(&self, state: &IndexState) -> IndexResult<Arc<[SortedRun]>> {
        let changes = state.changes.iter().map(|(key, value)| (key.len() + value.as_ref().map_or(0, Vec::len)) as u64);
        let (mut size, mut from): (u64, usize) = (changes.sum(), state.runs.len());
        while let Some(run) = from.checked_sub(1).and_then(|last| state.runs.get(last)).filter(|r| r.len <= 2 * size) {
            size += run.len;
            from -= 1;
        }
        let (kept, merged) = state.runs.split_at_checked(from).unwrap_or_default();
        let changes = state.changes.iter().map(|(key, value)| Ok((key.clone(), value.clone())));
        let mut sources: Vec<Box<dyn Iterator<Item = IndexResult<SortedRunEntry>> + '_>> = Vec::new();
        for run in merged {
            sources.push(Box::new(run.entries(&[])?));
        }
        sources.push(Box::new(changes));
        let number = state.runs.iter().map(|run| run.number).max().unwrap_or(0).wrapping_add(1);
        let mut writer = SortedRunWriter::create(&run_file(&self.folder, number), number)?;
        for entry in Merged::new(sources) {
            let (key, value) = entry?;
            // a removal is needed while an older run may have the key
            if value.is_some() || !kept.is_empty() {
                writer.push(&key, value.as_deref())?;
            }
        }
        let mut runs = kept.to_vec();
        runs.push(writer.finish()?);
        Ok(runs.into())
    }

    /// Replaces the list, after the runs are on disk, and removes the runs that it does not name any more.
    fn replace_list(&self, state: &mut IndexState, runs: Arc<[SortedRun]>) -> IndexResult<()> {
        sync_folder(&self.folder).map_err(IndexFault::broken)?;
        let numbers = |runs: &[SortedRun]| runs.iter().map(|run| run.number).collect::<Vec<u32>>();
        let (before, after) = (numbers(&state.runs), numbers(&runs));
        let removed: Vec<u32> = before.iter().copied().filter(|number| !after.contains(number)).collect();
        let added = runs.iter().filter(|run| !before.contains(&run.number));
        let added = added.map(|run| Ok((run.number, run.fences()?))).collect::<IndexResult<Vec<_>>>()?;
        self.catalog.replace(&encode_list(&runs, &state.packs)?, &added, &removed)?;
        state.runs = runs;
        self.remove_unlisted(state)
    }

    /// Removes the runs that are not listed: those that were merged, and what a crash left.
    fn remove_unlisted(&self, state: &IndexState) -> IndexResult<()> {
        let listed: Vec<PathBuf> = state.runs.iter().map(|run| run_file(&self.folder, run.number)).collect();
        for entry in std::fs::read_dir(&self.folder).map_err(IndexFault::broken)? {
            let path = entry.map_err(IndexFault::broken)?.path();
            if path.extension().is_some_and(|extension| extension == "run") && !listed.contains(&path) {
                // where a reader still has a run open, some systems refuse; the next flush removes it
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// The packs, up to where they are indexed.
    pub(in crate::cache) fn packs(&self) -> Vec<PackState> {
        self.state().packs.values().copied().collect()
    }

    pub(in crate::cache) fn set_pack(&self, pack: PackState) -> IndexResult<()> {
        let mut state = self.state();
        state.packs.insert(pack.id, PackState { len: pack.good, ..pack });
        state.is_dirty = true;
        Ok(())
    }

    pub(in crate::cache) fn remove_pack(&self, id: u32) -> IndexResult<()> {
        let mut state = self.state();
        state.packs.remove(&id);
        state.is_dirty = true;
        Ok(())
    }

    /// Removes the location of a text that is damaged or unused.
    pub(in crate::cache) fn forget_text(&self, digest: &Digest) -> IndexResult<()> {
        self.set(Table::SourceTexts.key(&digest.0), None)
    }

    /// Removes the place of a record of a batch that is damaged or no longer needed.
    pub(in crate::cache) fn forget_journal(&self, place: &(BatchNonce, JournalStep)) -> IndexResult<()> {
        self.set(Table::Journal.key(&encoded(place)?), None)
    }

    pub(in crate::cache) fn texts(&self) -> IndexResult<Vec<(Digest, FrameLocation)>> {
        let mut texts = Vec::new();
        self.each(Table::SourceTexts, |key, value| {
            let digest = digest(key).ok_or_else(|| IndexFault::broken("a digest has the wrong length"))?;
            texts.push((digest, decoded(value)?));
            Ok(())
        })?;
        Ok(texts)
    }

    fn set(&self, key: Vec<u8>, value: Option<Vec<u8>>) -> IndexResult<()> {
        let mut state = self.state();
        state.changes.insert(key, value);
        state.is_dirty = true;
        Ok(())
    }

    fn get(&self, key: &[u8]) -> IndexResult<Option<Vec<u8>>> {
        let state = self.state();
        if let Some(changed) = state.changes.get(key) {
            return Ok(changed.clone());
        }
        let runs = state.runs.clone();
        drop(state);
        for run in runs.iter().rev() {
            if let Some(found) = run.get(key)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The first key of a table that begins with `prefix`, without the table.
    fn first_key(&self, table: Table, prefix: &[u8]) -> IndexResult<Option<Vec<u8>>> {
        let from = table.key(prefix);
        let state = self.state();
        let changed = state.changes.range(from.clone()..).next().map(|(key, _)| key.clone());
        let runs = state.runs.clone();
        drop(state);
        let mut found: Vec<Vec<u8>> = changed.into_iter().collect();
        for run in &*runs {
            found.extend(run.first_from(&from)?.map(|(key, _)| key));
        }
        let first = found.into_iter().min().filter(|key| key.starts_with(&from));
        Ok(first.and_then(|key| key.get(1..).map(<[u8]>::to_vec)))
    }

    /// Calls `each` with all keys and values of a table, in order.
    fn each(&self, table: Table, mut each: impl FnMut(&[u8], &[u8]) -> IndexResult<()>) -> IndexResult<()> {
        let from = [table as u8];
        let state = self.state();
        let changes = state.changes.range(from.to_vec()..).take_while(|(key, _)| key.first() == Some(&from[0]));
        let changes: Vec<IndexResult<SortedRunEntry>> =
            changes.map(|(key, value)| Ok((key.clone(), value.clone()))).collect();
        let runs = state.runs.clone();
        drop(state);
        let mut sources: Vec<Box<dyn Iterator<Item = IndexResult<SortedRunEntry>>>> = Vec::new();
        for run in &*runs {
            sources.push(Box::new(run.entries(&from)?));
        }
        sources.push(Box::new(changes.into_iter()));
        for entry in Merged::new(sources) {
            let (key, value) = entry?;
            match (key.split_first(), value) {
                (Some((first, key)), Some(value)) if *first == from[0] => each(key, &value)?,
                (Some((first, _)), None) if *first == from[0] => {}
                _ => break,
            }
        }
        Ok(())
    }
}

fn encode_list(runs: &[SortedRun], packs: &BTreeMap<u32, PackState>) -> IndexResult<Vec<u8>> {
    let runs = runs.iter().map(SortedRun::shape).collect();
    let packs = packs.values().map(|pack| (pack.id, pack.generation, pack.good)).collect();
    let list = postcard::to_extend(&SortedRunList { runs, packs }, LIST_START.to_vec());
    list.map(with_checksum).map_err(IndexFault::broken)
}

fn read_list(bytes: &[u8]) -> IndexResult<SortedRunList> {
    let list = verified(bytes).and_then(|bytes| bytes.strip_prefix(&LIST_START));
    decoded(list.ok_or_else(|| IndexFault::broken("its list does not match its checksum"))?)
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

fn encoded<T: Serialize>(value: &T) -> IndexResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(IndexFault::broken)
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> IndexResult<T> {
    postcard::from_bytes(bytes).map_err(IndexFault::broken)
}

fn encode_latest(key: &ActionKey, is_known: bool) -> Vec<u8> {
    if is_known { key_prefix(key).to_vec() } else { key.0.0.to_vec() }
}

fn encode_record(record: &Record) -> IndexResult<Vec<u8>> {
    record.encode().map_err(IndexFault::broken)
}

fn encode_removal(why: RemovalReason) -> IndexResult<Vec<u8>> {
    postcard::to_extend(&why, vec![REMOVED]).map_err(IndexFault::broken)
}

fn decode_record(key: &ActionKey, value: &[u8]) -> IndexResult<Record> {
    Record::decode(*key, value).ok_or_else(|| IndexFault::broken("a record cannot be read"))
}

/// Calls `each` with the keys and values of all tables, in order.
fn in_order(tables: &PackIndex, mut each: impl FnMut(Vec<u8>, Vec<u8>) -> IndexResult<()>) -> IndexResult<()> {
    let mut keys: Vec<&ActionKey> = tables.records.keys().chain(tables.removed.keys()).collect();
    keys.sort_unstable();
    for key in keys {
        let value = match (tables.records.get(key), tables.removed.get(key)) {
            (Some(record), _) => encode_record(record)?,
            (None, Some(why)) => encode_removal(*why)?,
            (None, None) => continue,
        };
        each(Table::Actions.key(&key.0.0), value)?;
    }
    sorted(&tables.latest).try_for_each(|(place, key)| {
        let is_known = tables.records.contains_key(key) || tables.removed.contains_key(key);
        each(Table::Latest.key(&prefix_of(place)), encode_latest(key, is_known))
    })?;
    sorted(&tables.texts).try_for_each(|(digest, at)| each(Table::SourceTexts.key(&digest.0), encoded(at)?))?;
    sorted(&tables.counts).try_for_each(|(digest, count)| each(Table::Counts.key(&digest.0), encoded(count)?))?;
    sorted(&tables.days).try_for_each(|(key, day)| each(Table::Days.key(key), encoded(day)?))?;
    let places: IndexResult<BTreeMap<_, _>> =
        tables.journal.iter().map(|(place, at)| Ok((encoded(place)?, encoded(at)?))).collect();
    places?.into_iter().try_for_each(|(place, at)| each(Table::Journal.key(&place), at))
}

fn sorted<'t, K: Ord + 't, V: 't>(
    table: impl IntoIterator<Item = (&'t K, &'t V)>,
) -> impl Iterator<Item = (&'t K, &'t V)> {
    let mut entries: Vec<(&K, &V)> = table.into_iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter()
}

impl IndexQueries for DiskIndex {
    fn find(&self, key: &ActionKey) -> IndexResult<Option<Record>> {
        let found = self.get(&Table::Actions.key(&key.0.0))?.filter(|value| value.first() != Some(&REMOVED));
        found.map(|value| decode_record(key, &value)).transpose()
    }

    fn records(&self) -> IndexResult<Vec<Record>> {
        let mut records = Vec::new();
        self.each(Table::Actions, |key, value| {
            let key = digest(key).map(ActionKey).ok_or_else(|| IndexFault::broken("a key has the wrong length"))?;
            if value.first() != Some(&REMOVED) {
                records.push(decode_record(&key, value)?);
            }
            Ok(())
        })?;
        Ok(records)
    }

    fn removed(&self, key: &ActionKey) -> IndexResult<Option<RemovalReason>> {
        let found = self.get(&Table::Actions.key(&key.0.0))?;
        found.as_deref().and_then(|value| value.strip_prefix(&[REMOVED])).map(decoded).transpose()
    }

    fn latest_at(&self, coordinate: &Digest) -> IndexResult<Option<ActionKey>> {
        let Some(found) = self.get(&Table::Latest.key(&prefix_of(coordinate)))? else { return Ok(None) };
        let whole = match found.len() {
            0..32 => self.first_key(Table::Actions, &found)?,
            _ => Some(found),
        };
        let key = |bytes: Vec<u8>| digest(&bytes).map(ActionKey);
        whole.map(|bytes| key(bytes).ok_or_else(|| IndexFault::broken("a key has the wrong length"))).transpose()
    }

    fn text(&self, digest: &Digest) -> IndexResult<Option<FrameLocation>> {
        self.get(&Table::SourceTexts.key(&digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn count(&self, digest: &Digest) -> IndexResult<Option<u64>> {
        self.get(&Table::Counts.key(&digest.0))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn day(&self, key: &KeyPrefix) -> IndexResult<Option<Day>> {
        self.get(&Table::Days.key(key))?.map(|bytes| decoded(&bytes)).transpose()
    }

    fn journal(&self) -> IndexResult<JournalPlaces> {
        let mut places = JournalPlaces::new();
        self.each(Table::Journal, |place, at| {
            places.insert(decoded(place)?, decoded(at)?);
            Ok(())
        })?;
        Ok(places)
    }
}

impl IndexUpdates for &DiskIndex {
    type Error = IndexFault;

    fn record(&mut self, key: &ActionKey) -> IndexResult<Option<Record>> {
        self.find(key)
    }

    fn set_record(&mut self, record: Record) -> IndexResult<()> {
        self.set(Table::Actions.key(&record.key.0.0), Some(encode_record(&record)?))
    }

    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> IndexResult<()> {
        let Some(mut record) = self.find(key)? else { return Ok(()) };
        change(&mut record);
        self.set_record(record)
    }

    fn remove(&mut self, key: &ActionKey, why: RemovalReason) -> IndexResult<()> {
        self.set(Table::Actions.key(&key.0.0), Some(encode_removal(why)?))
    }

    fn latest(&mut self, coordinate: &Digest) -> IndexResult<Option<ActionKey>> {
        self.latest_at(coordinate)
    }

    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> IndexResult<()> {
        let is_known = self.get(&Table::Actions.key(&key.0.0))?.is_some();
        self.set(Table::Latest.key(&prefix_of(&coordinate)), Some(encode_latest(&key, is_known)))
    }

    fn set_text(&mut self, digest: Digest, at: FrameLocation) -> IndexResult<()> {
        self.set(Table::SourceTexts.key(&digest.0), Some(encoded(&at)?))
    }

    fn set_count(&mut self, digest: Digest, count: u64) -> IndexResult<()> {
        self.set(Table::Counts.key(&digest.0), Some(encoded(&count)?))
    }

    fn set_day(&mut self, key: KeyPrefix, day: Day) -> IndexResult<()> {
        if self.day(&key)?.is_some_and(|noted| noted >= day) {
            return Ok(());
        }
        self.set(Table::Days.key(&key), Some(encoded(&day)?))
    }

    fn set_journal(&mut self, place: (BatchNonce, JournalStep), at: FrameLocation) -> IndexResult<()> {
        self.set(Table::Journal.key(&encoded(&place)?), Some(encoded(&at)?))
    }
}

#[cfg(test)]
#[path = "disk_index_tests.rs"]
mod tests;
