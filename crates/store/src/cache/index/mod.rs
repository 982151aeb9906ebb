//! The index: where each entry is, and everything else that the frames of the packs define. `Index::apply` applies a
//! frame to it.
//!
//! The process that holds the lock asks the sled tree (`tree`) for one key at a time; in memory it has only what is not
//! in the tree yet. All others have no tree and read the headers of the packs into memory (`scan`): they change nothing,
//! and can run beside a writer. A tree that does not have all of the packs is filled again from them.

pub(super) mod tree;

use std::collections::HashMap;
use std::io;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use crate::cache::entry::{Day, EntryStatus, FrameLocation, Record, prefix_of};
use crate::cache::error::{CacheError, Damage, IndexFault, IndexResult};
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{BatchNonce, BatchStep};
use crate::cache::packs::frame::{FrameContent, FrameHeader, KeyPrefix, PackHeader};
use crate::cache::packs::{PackFiles, PackItem, PackScanner, PackState, read_pack_header};
use crate::digest::{ActionKey, Digest};
use tree::{ActionTree, ItemKey, decoded, encoded, remove_tree};

/// The day of an entry's last use: the recorded one, or the day it was made.
pub(super) fn last_used(record: &Record, recorded: Option<Day>) -> Day {
    recorded.unwrap_or_default().max(record.created_day())
}

/// Encoded items; one that was removed has no value.
type Items = HashMap<ItemKey, Option<Box<[u8]>>>;

/// The current record of each key, and everything else that the frames define.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// What the tree does not have yet; everything where there is no tree.
    items: Items,
    tree: Option<ActionTree>,
    /// Why the tree cannot be used. What was found since may be wrong.
    fault: OnceLock<IndexFault>,
    /// The damage that was found while the packs were read.
    pub(super) damage: Vec<Damage>,
}

impl Index {
    /// An index that asks this tree.
    pub(super) fn of_tree(tree: ActionTree) -> Index {
        Index {
            tree: Some(tree),
            ..Index::default()
        }
    }

    /// Why the tree cannot be used, if so.
    pub(super) fn fault(&self) -> Option<&IndexFault> {
        self.fault.get()
    }

    /// Says why the tree cannot be used.
    pub(super) fn give_up(&self, fault: IndexFault) {
        let _ = self.fault.set(fault);
    }

    /// Takes the tree out.
    pub(super) fn take_tree(&mut self) -> Option<ActionTree> {
        self.tree.take()
    }

    fn sound<T>(&self, result: IndexResult<T>) -> Option<T> {
        result.inspect_err(|fault| self.give_up(fault.clone())).ok()
    }

    fn get<T>(&self, key: ItemKey, read: impl FnOnce(&[u8]) -> IndexResult<T>) -> Option<T> {
        match (self.items.get(&key), &self.tree) {
            (Some(value), _) => self.sound(read(value.as_deref()?)),
            (None, Some(tree)) => self.sound(read(&self.sound(tree.get(key))??)),
            (None, None) => None,
        }
    }

    fn set(&mut self, key: ItemKey, value: IndexResult<Vec<u8>>) {
        if let Some(value) = self.sound(value) {
            self.items.insert(key, Some(value.into()));
        }
    }

    fn forget(&mut self, key: ItemKey) {
        match self.tree {
            Some(_) => self.items.insert(key, None),
            None => self.items.remove(&key),
        };
    }

    /// Visits all items whose encoded keys begin with `prefix`, and some others.
    fn each(&self, prefix: &[u8], mut visit: impl FnMut(ItemKey, &[u8]) -> IndexResult<()>) {
        if let Some(tree) = &self.tree {
            let visited = tree.each(prefix, |key, value| match self.items.contains_key(&key) {
                true => Ok(()),
                false => visit(key, value),
            });
            self.sound(visited);
        }
        for (key, value) in &self.items {
            if let Some(value) = value {
                self.sound(visit(*key, value));
            }
        }
    }

    /// All items of a kind, decoded.
    fn all<T: DeserializeOwned, K>(
        &self,
        prefix: &[u8],
        name: impl Fn(ItemKey) -> Option<K>,
    ) -> Vec<(K, T)> {
        let mut all = Vec::new();
        self.each(prefix, |key, value| {
            if let Some(name) = name(key) {
                all.push((name, decoded(value)?));
            }
            Ok(())
        });
        all
    }

    /// Fills a new tree in the folder with what is in memory, and asks it from now on. Nobody may have the old one open.
    pub(super) fn fill_tree(&mut self, layout: &Layout) -> IndexResult<()> {
        const BATCH: usize = 2048;
        remove_tree(&layout.index())?;
        let tree = ActionTree::open(&layout.index())?;
        let items: Vec<_> = std::mem::take(&mut self.items).into_iter().collect();
        let written = items.chunks(BATCH).try_for_each(|batch| {
            tree.update(batch.iter().map(|(key, value)| (*key, value.as_deref())))
        });
        if let Err(fault) = written {
            self.items = items.into_iter().collect();
            return Err(fault);
        }
        self.tree = Some(tree);
        Ok(())
    }

    /// Writes what the tree lacks to it. All of it must be on disk in the packs.
    pub(super) fn write_tree(&mut self) {
        if let Some(tree) = &self.tree {
            let items = self
                .items
                .iter()
                .map(|(key, value)| (*key, value.as_deref()));
            let updated = tree.update(items);
            if self.sound(updated).is_some() {
                self.items.clear();
            }
        }
    }

    /// Makes the tree durable, which has all of these packs.
    pub(super) fn flush_tree(&self, packs: Vec<PackState>) {
        if let Some(tree) = &self.tree {
            self.sound(tree.flush(packs));
        }
    }

    /// Counts the items of the tree: damage may have taken some, which would be made and paid again.
    pub(super) fn check_whole(&self) {
        if let Some(tree) = &self.tree {
            self.sound(tree.check_whole());
        }
    }

    /// Applies the frame at `at`. Frames are applied in the order of the packs: later ones replace earlier ones.
    pub(super) fn apply(&mut self, at: FrameLocation, header: &FrameHeader) {
        let key = ActionKey(header.key);
        match &header.content {
            FrameContent::Reply(summary) => {
                if let Some(record) = header.record(at) {
                    self.set_record(record);
                }
                self.set_latest(&summary.place, key);
            }
            FrameContent::Failure { summary, .. } => {
                // a failed attempt to replace an output does not remove the output
                if self.find(&key).is_some_and(|record| record.is_usable()) {
                    return;
                }
                if let Some(record) = header.record(at) {
                    self.set_record(record);
                }
                if self.latest_at(&summary.place).is_none() {
                    self.set_latest(&summary.place, key);
                }
            }
            FrameContent::ParseResult(result) => self.set_parse_result(&key, header.digest, result),
            FrameContent::Text | FrameContent::Memo => {
                self.set(ItemKey::Text(header.key), encoded(&at));
            }
            FrameContent::Touch { day, keys } => {
                for key in keys {
                    if self.day(key).is_none_or(|known| known < *day) {
                        self.set(ItemKey::Use(*key), encoded(day));
                    }
                }
            }
            FrameContent::Latest(place) => self.set_latest(place, key),
            FrameContent::Journal(nonce, step) => {
                self.set(ItemKey::Step(*nonce, *step), encoded(&at));
            }
            FrameContent::Unknown => {}
        }
    }

    fn set_record(&mut self, record: Record) {
        let key = ItemKey::Action(record.key);
        self.set(key, record.encode().map_err(IndexFault::broken));
    }

    /// Sets the status of the record of a key, if `raw` is its body.
    fn set_parse_result(&mut self, key: &ActionKey, raw: Digest, result: &EntryStatus) {
        let record = self.find(key).filter(|record| record.raw == raw);
        if let Some(record) = record.filter(|record| !record.is_failed()) {
            self.set_record(Record {
                status: result.clone(),
                ..record
            });
        }
    }

    fn set_latest(&mut self, place: &Digest, key: ActionKey) {
        self.set(ItemKey::Place(prefix_of(place)), Ok(key.0.0.to_vec()));
    }

    /// Forgets the place of a text that is damaged or unused.
    pub(super) fn forget_text(&mut self, digest: &Digest) {
        self.forget(ItemKey::Text(*digest));
    }

    /// Forgets the place of a record of a batch that is damaged or no longer needed.
    pub(super) fn forget_step(&mut self, nonce: BatchNonce, step: BatchStep) {
        self.forget(ItemKey::Step(nonce, step));
    }

    /// Forgets a record, as if it had never been.
    pub(super) fn forget_record(&mut self, key: &ActionKey) {
        self.forget(ItemKey::Action(*key));
    }

    pub(super) fn find(&self, key: &ActionKey) -> Option<Record> {
        self.get(ItemKey::Action(*key), |value| read_record(*key, value))
    }

    pub(super) fn latest_at(&self, place: &Digest) -> Option<ActionKey> {
        self.get(ItemKey::Place(prefix_of(place)), |value| {
            let key = value.try_into().map_err(IndexFault::broken)?;
            Ok(ActionKey(Digest(key)))
        })
    }

    pub(super) fn text(&self, digest: &Digest) -> Option<FrameLocation> {
        self.get(ItemKey::Text(*digest), decoded)
    }

    pub(super) fn day(&self, key: &KeyPrefix) -> Option<Day> {
        self.get(ItemKey::Use(*key), decoded)
    }

    pub(super) fn step(&self, nonce: BatchNonce, step: BatchStep) -> Option<FrameLocation> {
        self.get(ItemKey::Step(nonce, step), decoded)
    }

    /// The recorded steps of batches, and where their frames are.
    pub(super) fn steps(&self) -> Vec<((BatchNonce, BatchStep), FrameLocation)> {
        let mut steps = self.all(b"j", |key| match key {
            ItemKey::Step(nonce, step) => Some((nonce, step)),
            _ => None,
        });
        steps.sort_unstable_by_key(|(step, _)| *step);
        steps
    }

    /// All texts, and where they are.
    pub(super) fn texts(&self) -> Vec<(Digest, FrameLocation)> {
        self.all(b"t", |key| match key {
            ItemKey::Text(digest) => Some(digest),
            _ => None,
        })
    }

    /// All records, in their order in the packs.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        self.each(b"", |key, value| {
            if let ItemKey::Action(key) = key {
                records.push(read_record(key, value)?);
            }
            Ok(())
        });
        records.sort_unstable_by_key(|record| record.location);
        records
    }

    /// The damage that was found, worded for the user.
    pub(super) fn damage_notices(&self) -> impl Iterator<Item = String> {
        self.damage
            .iter()
            .map(|damage| format!("{damage}. `compeval cache verify` removes it"))
    }
}

fn read_record(key: ActionKey, bytes: &[u8]) -> IndexResult<Record> {
    let record = Record::decode(key, bytes);
    record.ok_or_else(|| IndexFault::broken("a record in it cannot be read"))
}

/// Scans the frame headers of all packs.
pub(crate) fn scan(
    layout: &Layout,
    packs: &PackFiles,
) -> Result<(Index, Vec<PackState>), CacheError> {
    /// A prune in another process may remove packs during the scan, after it has copied their live frames to a new one.
    const ATTEMPTS: usize = 5;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut index = Index::default();
        match scan_all(&mut index, &layout.pack_ids()?, packs) {
            Err((_, e)) if e.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
            Err((id, e)) => return Err(CacheError::io("read", &layout.pack(id))(e)),
            Ok(states) => return Ok((index, states)),
        }
    }
}

fn scan_all(
    index: &mut Index,
    ids: &[u32],
    packs: &PackFiles,
) -> Result<Vec<PackState>, (u32, io::Error)> {
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        let is_newest = ids.last() == Some(id);
        states.push(scan_pack(index, *id, is_newest, packs).map_err(|error| (*id, error))?);
    }
    Ok(states)
}

/// Applies the frames of a pack. A cut-off end is damage, but in the newest pack, where it is an
/// interrupted write.
fn scan_pack(
    index: &mut Index,
    id: u32,
    is_newest: bool,
    packs: &PackFiles,
) -> io::Result<PackState> {
    let mut state = PackState::of_whole(id, packs)?;
    let file = packs.file(id)?;
    if let Err(what) = read_pack_header(&file, state.len)? {
        index.damage.push(packs.damage_at(id, 0, what));
    }
    let mut scanner = PackScanner::new(id, &file, PackHeader::LEN as u64, state.len);
    while let Some(item) = scanner.next()? {
        match item {
            PackItem::Frame(at, header) => index.apply(at, &header),
            PackItem::Damaged { from, what, .. } => {
                index.damage.push(packs.damage_at(id, from, what))
            }
            PackItem::Torn { from, what } => {
                state.len = from;
                if !is_newest {
                    index.damage.push(packs.damage_at(id, from, what));
                }
            }
        }
    }
    Ok(state)
}
