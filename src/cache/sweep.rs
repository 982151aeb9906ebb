//! Writing packs anew without what is no longer needed, so that the space comes back to the disk.
//!
//! Order, so that a crash at any point loses nothing: the new file is written and synced beside the old one and takes
//! its place by a rename; then the index learns the new places. If that last step is missed, the pack's generation
//! differs from the index's and the index is made anew. Packs keep their numbers, so the order of frames stays.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::sync::PoisonError;

use super::catalogue::PackState;
use super::error::{CacheError, IndexFault};
use super::fold::{Questions, Tables};
use super::frame::{self, Header, KeyHead, Note};
use super::index::Index;
use super::pack::{PackHeader, read_at};
use super::record::{Location, Record, Status};
use super::scanner::{Found, Scanner};
use super::writer::{Core, Tail};
use crate::action::{ActionKey, Digest};

/// What the index says is alive, looked at while a pack is read through.
struct Alive<'a> {
    index: &'a Index,
    /// Whether no older pack holds anything dead, so that tombstones have nothing left to cover.
    swept: bool,
    /// From where on removals are still told.
    told_from: Option<Location>,
}

/// What becomes of a frame.
enum Fate {
    /// It is copied as it is.
    Keep,
    /// It is written with less in it.
    Change(Vec<u8>),
    /// It is left out.
    Drop,
}

/// Where a kept frame lies now.
struct Moved {
    header: Header,
    to: Location,
}

impl Core {
    /// Writes the packs in `ids` anew, oldest first, without what is dead in them, and without removals before
    /// `told_from` that cover nothing any more.
    pub(super) fn sweep_packs(
        &self,
        tail: &mut Tail,
        ids: &BTreeSet<u32>,
        told_from: Option<Location>,
    ) -> Result<(), CacheError> {
        tail.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(tail.id)))?;
        let mut swept = true;
        for id in self.layout.pack_ids()? {
            if ids.contains(&id) {
                self.sweep_pack(tail, id, swept, told_from)?;
            } else {
                swept = false;
            }
        }
        Ok(())
    }

    fn sweep_pack(&self, tail: &mut Tail, id: u32, swept: bool, told_from: Option<Location>) -> Result<(), CacheError> {
        let path = self.layout.pack(id);
        let fresh = self.layout.rewrite(id);
        let newest = id == tail.id;
        let (state, moved) = {
            let guard = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let Some(index) = &*guard else { return Err(self.index_error("it is not open")) };
            let alive = Alive { index, swept, told_from };
            self.write_anew(id, &alive, &fresh)?
        };
        if moved.is_empty() && !newest {
            fs::remove_file(&fresh).map_err(CacheError::io("remove", &fresh))?;
            fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        } else {
            fs::rename(&fresh, &path).map_err(CacheError::io("replace", &path))?;
        }
        self.layout.sync_folder(&self.layout.packs())?;
        self.packs.forget(id);
        if newest {
            *tail = Tail::resume(&self.layout, state)?;
        }
        let gone = moved.is_empty() && !newest;
        self.update(tail, |index| {
            moved.iter().try_for_each(|moved| relocate(index, moved))?;
            if gone {
                index.remove_pack(id)?
            } else {
                index.set_pack(state)?
            }
            index.flush()
        })
    }

    /// Copies what is alive in a pack to `fresh`.
    fn write_anew(
        &self,
        id: u32,
        alive: &Alive<'_>,
        fresh: &std::path::Path,
    ) -> Result<(PackState, Vec<Moved>), CacheError> {
        let path = self.layout.pack(id);
        let read = CacheError::io("read", &path);
        let opened = self.packs.file(id).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = match opened {
            Ok(opened) => opened,
            Err(e) => return Err(read(e)),
        };
        let old = super::catalogue::read_pack_header(&file, len).map_err(CacheError::io("read", &path))?;
        let generation = old.map_or(0, |header| header.generation).wrapping_add(1) & 0x7FFF_FFFF;
        let mut copy = Copy::begin(id, generation, fresh).map_err(CacheError::io("write", fresh))?;
        let mut scanner = Scanner::new(id, &file, 0, len);
        while let Some(found) = scanner.next().map_err(CacheError::io("read", &path))? {
            let Found::Frame(at, header) = found else { continue };
            let fate = alive.fate(at, &header).map_err(|fault| self.index_error(fault.text()))?;
            copy.take(&file, at, header, fate).map_err(CacheError::io("write", fresh))?;
        }
        copy.finish().map_err(CacheError::io("write", fresh))
    }
}

/// Tells the index where a frame lies now.
fn relocate(index: &Index, moved: &Moved) -> Result<(), IndexFault> {
    let mut tables = index;
    match moved.header.note {
        Note::Reply(_) | Note::Failure { .. } => match index.find(&ActionKey(moved.header.key))? {
            Some(record) => tables.set_record(Record { location: moved.to, ..record }),
            None => Ok(()),
        },
        Note::Text => tables.set_text(moved.header.key, moved.to),
        _ => Ok(()),
    }
}

/// A pack being written anew.
struct Copy {
    file: BufWriter<File>,
    state: PackState,
    moved: Vec<Moved>,
}

impl Copy {
    fn begin(id: u32, generation: u32, fresh: &std::path::Path) -> io::Result<Copy> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(fresh)?);
        file.write_all(&PackHeader { id, generation }.encode())?;
        let len = PackHeader::LEN as u64;
        Ok(Copy { file, state: PackState { id, generation, good: len, len }, moved: Vec::new() })
    }

    fn take(&mut self, from: &File, at: Location, header: Header, fate: Fate) -> io::Result<()> {
        let bytes = match fate {
            Fate::Drop => return Ok(()),
            Fate::Change(bytes) => bytes,
            Fate::Keep => {
                let mut bytes = vec![0; usize::try_from(at.len()).map_err(io::Error::other)?];
                read_at(from, &mut bytes, at.offset)?;
                bytes
            }
        };
        self.file.write_all(&bytes)?;
        self.moved.push(Moved { to: header.location(self.state.id, self.state.len), header });
        self.state.len += bytes.len() as u64;
        self.state.good = self.state.len;
        Ok(())
    }

    fn finish(self) -> io::Result<(PackState, Vec<Moved>)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok((self.state, self.moved))
    }
}

impl Alive<'_> {
    fn fate(&self, at: Location, header: &Header) -> Result<Fate, IndexFault> {
        let key = ActionKey(header.key);
        let alive = match &header.note {
            Note::Reply(_) | Note::Failure { .. } => self.index.find(&key)?.is_some_and(|r| r.location == at),
            Note::Verdict(reading) => self
                .index
                .find(&key)?
                .is_some_and(|record| record.raw == header.digest && record.status == Status::from(reading)),
            Note::Text => self.index.text(&header.key)? == Some(at),
            Note::Counts(_) | Note::Unknown => true,
            Note::Touch { day, keys } => return self.touches(*day, keys),
            Note::Remove { why, keys } => return self.tombstones(at, *why, keys),
            Note::Latest(places) => return self.latest(places),
        };
        Ok(if alive { Fate::Keep } else { Fate::Drop })
    }

    /// Only each entry's last use is kept.
    fn touches(&self, day: super::meta::Day, keys: &[KeyHead]) -> Result<Fate, IndexFault> {
        let mut last = Vec::new();
        for key in keys {
            if self.index.day(key)? == Some(day) {
                last.push(*key);
            }
        }
        Ok(shortened(last.len(), keys.len(), || frame::touch(day, &last)))
    }

    /// What is in use at a place is kept while it is there.
    fn latest(&self, places: &[(Digest, ActionKey)]) -> Result<Fate, IndexFault> {
        let mut kept = Vec::new();
        for (place, key) in places {
            if self.index.latest_at(place)? == Some(*key) && self.index.find(key)?.is_some() {
                kept.push((*place, *key));
            }
        }
        Ok(shortened(kept.len(), places.len(), || frame::latest(&kept)))
    }

    /// A tombstone is kept while an older pack may hold its entry, or while it is new and explains what was last at its
    /// place.
    fn tombstones(
        &self,
        at: Location,
        why: super::meta::Removal,
        keys: &[(ActionKey, Option<Digest>)],
    ) -> Result<Fate, IndexFault> {
        let is_told = self.told_from.is_some_and(|from| at >= from);
        let mut kept = Vec::new();
        for (key, coordinate) in keys {
            let back = self.index.find(key)?.is_some();
            let explains = match coordinate.filter(|_| is_told) {
                Some(coordinate) => self.index.latest_at(&coordinate)? == Some(*key),
                None => false,
            };
            if !back && (explains || !self.swept) {
                kept.push((*key, *coordinate));
            }
        }
        Ok(shortened(kept.len(), keys.len(), || frame::remove(why, &kept)))
    }
}

/// The fate of a list of which some are kept.
fn shortened(kept: usize, all: usize, frame: impl FnOnce() -> Result<Vec<u8>, postcard::Error>) -> Fate {
    match kept {
        0 => Fate::Drop,
        _ if kept == all => Fate::Keep,
        // if the shorter one cannot be written, the longer one does no harm
        _ => frame().map_or(Fate::Keep, Fate::Change),
    }
}
