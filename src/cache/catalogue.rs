//! The tables in memory, made by scanning all packs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;

use super::error::{CacheError, Damage, IndexFault};
use super::fold::{Questions, Tables, apply};
use super::frame::KeyHead;
use super::layout::Layout;
use super::meta::{Day, Removal};
use super::pack::{PackHeader, Packs, read_at};
use super::record::{Location, Record};
use super::scanner::{Found, Scanner};
use crate::action::{ActionKey, Digest};

/// Digests are hashes already: their last eight bytes serve as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 = u64::from_le_bytes(*last);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

pub(super) type DigestMap<K, V> = HashMap<K, V, BuildHasherDefault<DigestHasher>>;

/// What a pack looked like when it was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackState {
    pub(super) id: u32,
    pub(super) generation: u32,
    /// Up to where whole frames go.
    pub(super) good: u64,
    /// Bytes in the file.
    pub(super) len: u64,
}

/// The tables in memory.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) records: DigestMap<ActionKey, Box<Record>>,
    pub(super) latest: DigestMap<Digest, ActionKey>,
    pub(super) gone: DigestMap<ActionKey, Removal>,
    pub(super) texts: DigestMap<Digest, Location>,
    pub(super) counts: DigestMap<Digest, u64>,
    pub(super) days: DigestMap<KeyHead, Day>,
    pub(super) packs: Vec<PackState>,
    pub(super) damage: Vec<Damage>,
}

impl Catalogue {
    /// Scans the frame headers of all packs.
    pub(super) fn scan(layout: &Layout, packs: &Packs) -> Result<Catalogue, CacheError> {
        let mut catalogue = Catalogue::default();
        let ids = layout.pack_ids()?;
        for id in &ids {
            let newest = ids.last() == Some(id);
            match catalogue.scan_pack(*id, newest, packs) {
                // a prune by another process may have emptied and removed it since
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                result => result.map_err(CacheError::io("read", &layout.pack(*id)))?,
            }
        }
        Ok(catalogue)
    }

    fn scan_pack(&mut self, id: u32, newest: bool, packs: &Packs) -> io::Result<()> {
        let file = packs.file(id)?;
        let len = file.metadata()?.len();
        let damage = |offset, what: &str| packs.damage(None, Location { pack: id, offset, head: 0, body: 0 }, what);
        let mut state = PackState { id, generation: 0, good: len, len };
        match read_pack_header(&file, len)? {
            Ok(header) => state.generation = header.generation,
            Err(what) => self.damage.push(damage(0, what)),
        }
        let mut scanner = Scanner::new(id, &file, 0, len);
        while let Some(found) = scanner.next()? {
            match found {
                Found::Frame(at, header) => self.apply(at, &header),
                Found::Damaged { from, what, .. } => self.damage.push(damage(from, what)),
                Found::Torn { from, what } => {
                    state.good = from;
                    if !newest {
                        self.damage.push(damage(from, what));
                    }
                }
            }
        }
        self.packs.push(state);
        Ok(())
    }

    pub(super) fn apply(&mut self, at: Location, header: &super::frame::Header) {
        let Ok(()) = apply(self, at, header);
    }
}

/// The header of a pack, or what is wrong with it.
pub(super) fn read_pack_header(file: &std::fs::File, len: u64) -> io::Result<Result<PackHeader, &'static str>> {
    let mut start = [0; PackHeader::LEN];
    if len < start.len() as u64 {
        return Ok(Err("the pack is cut off"));
    }
    read_at(file, &mut start, 0)?;
    Ok(PackHeader::decode(&start))
}

impl Questions for Catalogue {
    fn find(&self, key: &ActionKey) -> Result<Option<Record>, IndexFault> {
        Ok(self.records.get(key).map(|record| Record::clone(record)))
    }

    fn records(&self) -> Result<Vec<Record>, IndexFault> {
        Ok(self.records.values().map(|record| Record::clone(record)).collect())
    }

    fn removed(&self, key: &ActionKey) -> Result<Option<Removal>, IndexFault> {
        Ok(self.gone.get(key).copied())
    }

    fn latest_at(&self, coordinate: &Digest) -> Result<Option<ActionKey>, IndexFault> {
        Ok(self.latest.get(coordinate).copied())
    }

    fn text(&self, digest: &Digest) -> Result<Option<Location>, IndexFault> {
        Ok(self.texts.get(digest).copied())
    }

    fn count(&self, digest: &Digest) -> Result<Option<u64>, IndexFault> {
        Ok(self.counts.get(digest).copied())
    }

    fn day(&self, key: &KeyHead) -> Result<Option<Day>, IndexFault> {
        Ok(self.days.get(key).copied())
    }
}

impl Tables for Catalogue {
    type Error = Infallible;

    fn record(&mut self, key: &ActionKey) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(key).map(|record| Record::clone(record)))
    }

    fn set_record(&mut self, record: Record) -> Result<(), Infallible> {
        self.gone.remove(&record.key);
        self.records.insert(record.key, Box::new(record));
        Ok(())
    }

    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> Result<(), Infallible> {
        if let Some(record) = self.records.get_mut(key) {
            change(record);
        }
        Ok(())
    }

    fn remove(&mut self, key: &ActionKey, why: Removal) -> Result<(), Infallible> {
        self.records.remove(key);
        self.gone.insert(*key, why);
        Ok(())
    }

    fn latest(&mut self, coordinate: &Digest) -> Result<Option<ActionKey>, Infallible> {
        Ok(self.latest.get(coordinate).copied())
    }

    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> Result<(), Infallible> {
        self.latest.insert(coordinate, key);
        Ok(())
    }

    fn set_text(&mut self, digest: Digest, at: Location) -> Result<(), Infallible> {
        self.texts.insert(digest, at);
        Ok(())
    }

    fn set_count(&mut self, digest: Digest, count: u64) -> Result<(), Infallible> {
        self.counts.insert(digest, count);
        Ok(())
    }

    fn set_day(&mut self, key: KeyHead, day: Day) -> Result<(), Infallible> {
        let noted = self.days.entry(key).or_default();
        *noted = day.max(*noted);
        Ok(())
    }
}
