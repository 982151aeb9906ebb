//! A view of a cache for those who only read: it scans the packs' frame headers and never opens the index, so it can
//! be had while another process writes.

use std::path::Path;

use super::catalogue::Catalogue;
use super::error::{CacheError, Damage};
use super::fold::{head_of, last_used};
use super::layout::{Found, Layout};
use super::lookup::{Lookup, Reply, Speaker};
use super::meta::{Day, Meta, Removal};
use super::pack::Packs;
use super::record::{Location, Record};
use crate::action::{ActionKey, Digest};

/// The cache as it was when the snapshot was taken. Nothing is locked and nothing is written.
#[derive(Debug)]
pub struct Snapshot {
    catalogue: Catalogue,
    packs: Packs,
    pub(super) layout: Layout,
}

impl Snapshot {
    /// Scans the cache in `dir`. A folder that is absent or empty is an empty cache.
    ///
    /// # Errors
    /// If the folder is something else, of a newer format, or cannot be read.
    pub fn open(dir: &Path) -> Result<Snapshot, CacheError> {
        let layout = Layout::new(dir);
        let packs = Packs::new(layout.clone());
        let catalogue = match layout.inspect()? {
            Found::Nothing => Catalogue::default(),
            Found::Cache | Found::Unlabelled => Catalogue::scan(&layout, &packs)?,
        };
        Ok(Snapshot { catalogue, packs, layout })
    }

    /// Damage met while scanning, in sentences.
    pub fn notices(&self) -> Vec<String> {
        self.catalogue.damage.iter().map(|damage| format!("{damage}. `compeval cache verify` sets it aside")).collect()
    }

    /// Whether a folder, named in full, is the cache's or lies in it.
    pub(super) fn encloses(&self, folder: &Path) -> bool {
        self.layout.root().canonicalize().is_ok_and(|root| folder.starts_with(root))
    }

    /// All texts and where they lie.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Digest, &Location)> {
        self.catalogue.texts.iter()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.catalogue.records.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Lookup for Snapshot {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        self.catalogue.records.get(key).map(|record| Record::clone(record))
    }

    fn reply(&self, record: &Record) -> Result<Reply, Damage> {
        self.packs.reply(record)
    }

    fn vouch(&self, record: &Record) -> Result<Speaker, Damage> {
        self.packs.vouch(record)
    }

    fn meta(&self, record: &Record) -> Result<Meta, Damage> {
        self.packs.meta(record)
    }

    fn latest(&self, coordinate: &Digest) -> Option<ActionKey> {
        self.catalogue.latest.get(coordinate).copied()
    }

    fn removed(&self, key: &ActionKey) -> Option<Removal> {
        self.catalogue.gone.get(key).copied()
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        let at = self.catalogue.texts.get(digest)?;
        String::from_utf8(self.packs.text(digest, *at).ok()?.into()).ok()
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.catalogue.counts.get(digest).copied()
    }

    fn last_used(&self, record: &Record) -> Day {
        last_used(record, self.catalogue.days.get(&head_of(record)).copied())
    }

    fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.catalogue.records.values().map(|record| Record::clone(record)).collect();
        records.sort_unstable_by_key(|record| record.location);
        records
    }
}
