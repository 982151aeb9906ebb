//! The index: where each entry is, and everything else that the frames of the packs define. `Index::apply` applies a
//! frame to it.
//!
//! The process that holds the lock asks the sled tree (`tree`) for one key at a time; in memory it has only what is not
//! in the tree yet. All others have no tree and read the headers of the packs into memory (`scan`): they change nothing,
//! and can run beside a writer.
//!
//! A new tree is filled beside the old one, renamed to `index.ready` when it is complete, and takes its place. So a killed
//! process leaves the old one, or a complete new one that the next opening puts into its place.

pub(super) mod items;
pub(super) mod scan;
pub(super) mod tree;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use crate::cache::entry::{
    Day, EntryStatus, FrameLocation, ParseResult, Record, RemovalReason, prefix_of,
};
use crate::cache::error::{CacheError, Damage, IndexFault, IndexResult};
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{BatchNonce, BatchStep};
use crate::cache::packs::frame::{FrameContent, FrameHeader, KeyPrefix};
use crate::digest::{ActionKey, Digest};
use base::files::sync_folder;
use base::guarded;
use items::{ActionItem, ItemKey, Watermark, decoded, encoded};
use tree::{ActionTree, Watermarks};

/// The day of an entry's last use: the recorded one, or the day it was made.
pub(super) fn last_used(record: &Record, recorded: Option<Day>) -> Day {
    recorded.unwrap_or_default().max(record.created_day())
}

/// Hashes digests by their last eight bytes: they are already uniformly distributed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 = self.0.rotate_left(5) ^ u64::from_le_bytes(*last);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

/// Encoded items; one that was removed has no value.
type Items = HashMap<ItemKey, Option<Box<[u8]>>, BuildHasherDefault<DigestHasher>>;

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

    /// Fills an empty tree with what is in memory.
    fn fill(&self, tree: &ActionTree, marks: &Watermarks) -> IndexResult<()> {
        let items = self.items.iter();
        tree.fill(
            items.filter_map(|(key, value)| Some((*key, value.as_deref()?))),
            marks,
        )
    }

    /// Writes what the tree lacks to it, with the new watermarks of packs; `None` for a pack that is gone. All of it must
    /// be on disk in the packs.
    pub(super) fn write_tree(&mut self, marks: &[(u32, Option<Watermark>)]) {
        if let Some(tree) = &self.tree {
            let items = self
                .items
                .iter()
                .map(|(key, value)| (*key, value.as_deref()));
            let updated = tree.update(items, marks);
            if self.sound(updated).is_some() {
                self.items.clear();
            }
        }
    }

    /// Makes the tree durable.
    pub(super) fn flush_tree(&self) {
        if let Some(tree) = &self.tree {
            self.sound(tree.flush());
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
            FrameContent::Counts(counts) => counts.iter().for_each(|(digest, count)| {
                self.set(ItemKey::Count(*digest), encoded(count));
            }),
            FrameContent::Touch { day, keys } => {
                for key in keys {
                    if self.day(key).is_none_or(|known| known < *day) {
                        self.set(ItemKey::Use(*key), encoded(day));
                    }
                }
            }
            FrameContent::Remove { why, keys } => {
                for (key, place) in keys {
                    self.set(ItemKey::Action(*key), ActionItem::Removed(*why).encode());
                    // the frame of the entry may be gone, so the tombstone repeats that it was the latest of its place
                    if let Some(place) = place {
                        self.set_latest(place, *key);
                    }
                }
            }
            FrameContent::Latest(places) => places
                .iter()
                .for_each(|(place, key)| self.set_latest(place, *key)),
            FrameContent::Journal(nonce, step) => {
                self.set(ItemKey::Step(*nonce, *step), encoded(&at));
            }
            FrameContent::Unknown => {}
        }
    }

    fn set_record(&mut self, record: Record) {
        let key = ItemKey::Action(record.key);
        self.set(key, ActionItem::Entry(record).encode());
    }

    /// Sets the status of the record of a key, if `raw` is its body.
    fn set_parse_result(&mut self, key: &ActionKey, raw: Digest, result: &ParseResult) {
        let record = self.find(key).filter(|record| record.raw == raw);
        if let Some(record) = record.filter(|record| !record.is_failed()) {
            self.set_record(Record {
                status: EntryStatus::from(result),
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

    fn action(&self, key: &ActionKey) -> Option<ActionItem> {
        self.get(ItemKey::Action(*key), |value| {
            ActionItem::decode(*key, value)
        })
    }

    pub(super) fn find(&self, key: &ActionKey) -> Option<Record> {
        match self.action(key)? {
            ActionItem::Entry(record) => Some(record),
            ActionItem::Removed(_) => None,
        }
    }

    pub(super) fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        match self.action(key)? {
            ActionItem::Entry(_) => None,
            ActionItem::Removed(why) => Some(why),
        }
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

    pub(super) fn count(&self, digest: &Digest) -> Option<u64> {
        self.get(ItemKey::Count(*digest), decoded)
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
            if let ItemKey::Action(key) = key
                && let ActionItem::Entry(record) = ActionItem::decode(key, value)?
            {
                records.push(record);
            }
            Ok(())
        });
        records.sort_unstable_by_key(|record| record.location);
        records
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        let mut is_empty = true;
        self.each(b"", |_, _| {
            is_empty = false;
            Ok(())
        });
        is_empty
    }

    /// The damage that was found, worded for the user.
    pub(super) fn damage_notices(&self) -> impl Iterator<Item = String> {
        self.damage
            .iter()
            .map(|damage| format!("{damage}. `compeval cache verify` removes it"))
    }

    /// Whether this refers to anything in a pack.
    fn uses(&self, pack: u32) -> bool {
        let texts = self.texts().into_iter().map(|(_, at)| at);
        let steps = self.steps().into_iter().map(|(_, at)| at);
        let entries = self.records().into_iter().map(|record| record.location);
        texts.chain(steps).chain(entries).any(|at| at.pack == pack)
    }

    /// The outputs that this has, and that neither are in `scanned` nor were removed there.
    pub(super) fn lost_in(&self, scanned: &Index) -> Vec<Record> {
        let mut lost = self.records();
        lost.retain(|record| record.is_usable() && scanned.action(&record.key).is_none());
        lost
    }

    /// Whether this, which may come from the tree, agrees with `scanned`, which was read from the packs. A prune that was
    /// killed leaves frames in two packs, and some that the tree has forgotten already: either place is right if
    /// `is_sound` finds the record there.
    pub(super) fn agrees_with(&self, scanned: &Index, is_sound: impl Fn(&Record) -> bool) -> bool {
        let records = self.records();
        let is_known = |record: &Record| {
            scanned.find(&record.key).is_some_and(|known| {
                let kind = std::mem::discriminant(&record.status);
                record.raw == known.raw
                    && kind == std::mem::discriminant(&known.status)
                    && (record.location == known.location || is_sound(record))
            })
        };
        let texts = self.texts();
        let steps = self.steps();
        records.len() == scanned.records().len()
            && records.iter().all(is_known)
            && texts.iter().all(|(text, _)| scanned.text(text).is_some())
            && steps
                .iter()
                .all(|((nonce, step), _)| scanned.step(*nonce, *step).is_some())
            && self.fault.get().is_none()
    }
}

const BAD: &str = "index.bad-";

/// Where a new tree is filled.
pub(crate) fn fresh_index(layout: &Layout) -> PathBuf {
    layout.root().join("index.new")
}

/// Where a complete tree is put before it replaces the old one.
pub(crate) fn ready_index(layout: &Layout) -> PathBuf {
    layout.root().join("index.ready")
}

/// Removes a folder, if it exists.
pub(crate) fn remove_folder(path: &Path) -> Result<(), CacheError> {
    guarded::remove_folder(path).map_err(CacheError::io("remove", path))
}

/// Finishes or removes what a killed process left.
pub(crate) fn finish_index(layout: &Layout) -> Result<(), CacheError> {
    remove_folder(&fresh_index(layout))?;
    let ready = ready_index(layout);
    if !ready.exists() {
        return Ok(());
    }
    remove_folder(&layout.index())?;
    guarded::rename(&ready, &layout.index()).map_err(CacheError::io("rename", &ready))
}

/// What happens to the tree that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldIndex {
    /// It is kept as `index.bad-<time>`, to find out what was wrong.
    SetAside,
    Remove,
}

/// Fills a new tree with what was scanned, and replaces the old one with it. Nobody may have the old one open.
pub(crate) fn replace_index(
    layout: &Layout,
    scanned: &Index,
    packs: &Watermarks,
    old: OldIndex,
) -> IndexResult<ActionTree> {
    let (fresh, ready) = (fresh_index(layout), ready_index(layout));
    remove_folder(&fresh).map_err(IndexFault::broken)?;
    remove_folder(&ready).map_err(IndexFault::broken)?;
    let tree = ActionTree::open(&fresh)?;
    scanned.fill(&tree, packs)?;
    drop(tree);
    guarded::rename(&fresh, &ready).map_err(IndexFault::broken)?;
    match old {
        OldIndex::SetAside => set_aside(layout).map_err(IndexFault::broken)?,
        OldIndex::Remove => remove_folder(&layout.index()).map_err(IndexFault::broken)?,
    }
    guarded::rename(&ready, &layout.index()).map_err(IndexFault::broken)?;
    sync_folder(layout.root()).map_err(IndexFault::broken)?;
    Ok(ActionTree::open_filled(&layout.index())?.0)
}

/// Renames the index to `index.bad-<time>`. Only the newest such folder is kept.
pub(crate) fn set_aside(layout: &Layout) -> Result<(), CacheError> {
    remove_bad(layout)?;
    let old = layout.index();
    if !old.exists() {
        return Ok(());
    }
    let time = base::clock::now().strftime("%Y%m%dT%H%M%S").to_string();
    let bad = layout.root().join(format!("{BAD}{time}"));
    guarded::rename(&old, &bad).map_err(CacheError::io("rename", &old))
}

/// Removes the indexes that were set aside.
pub(crate) fn remove_bad(layout: &Layout) -> Result<(), CacheError> {
    let root = layout.root();
    for path in guarded::list(root).map_err(CacheError::io("list", root))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(BAD) {
            remove_folder(&path)?;
        }
    }
    Ok(())
}
