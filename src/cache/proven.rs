//! The tables of a small cache in memory, every byte of its packs checked on the way. They answer all questions until
//! something is written: then the index is opened, which takes longer than to read a small cache through.

use std::io;

use super::catalogue::{Catalogue, DigestMap, PackState, read_pack_header};
use super::frame::{Header, Note};
use super::lookup::Speaker;
use super::pack::{Packs, is_whole};
use super::record::Record;
use super::scanner::{Found, Scanner};
use crate::action::ActionKey;

/// Bytes of packs up to which they are read through.
const MOST: u64 = 64 << 20;
/// Few entries take less.
const ENTRY: u64 = 2 << 10;

/// A cache that is as it was written.
#[derive(Debug, Default)]
pub(super) struct Proven {
    pub(super) tables: Catalogue,
    /// Each distinct speaker, and which of them said what.
    speakers: Vec<Speaker>,
    spoken: DigestMap<ActionKey, usize>,
}

impl Proven {
    /// Reads the packs through; `None` if there are none, if they are large, or if anything in them is not as it was
    /// written: then it is for the index to say what is lost.
    pub(super) fn read(ids: &[u32], packs: &Packs) -> io::Result<Option<Proven>> {
        let lengths = ids.iter().map(|id| Ok(packs.file(*id)?.metadata()?.len()));
        let bytes: u64 = lengths.sum::<io::Result<u64>>()?;
        if ids.is_empty() || bytes > MOST {
            return Ok(None);
        }
        let (mut proven, entries) = (Proven::default(), (bytes / ENTRY) as usize);
        proven.tables.records.reserve(entries);
        proven.tables.latest.reserve(entries);
        proven.spoken.reserve(entries);
        for id in ids {
            if !proven.read_pack(*id, packs)? {
                return Ok(None);
            }
        }
        Ok(Some(proven))
    }

    /// Returns whether all of the pack is sound.
    fn read_pack(&mut self, id: u32, packs: &Packs) -> io::Result<bool> {
        let file = packs.file(id)?;
        let len = file.metadata()?.len();
        let Ok(header) = read_pack_header(&file, len)? else { return Ok(false) };
        let mut scanner = Scanner::new(id, &file, 0, len);
        while let Some(found) = scanner.next()? {
            let Found::Frame(at, header) = found else { return Ok(false) };
            let frame = scanner.frame(at)?;
            if !is_whole(&header, frame) || !self.hear(&header, frame) {
                return Ok(false);
            }
            self.tables.apply(at, &header);
        }
        self.tables.packs.push(PackState { id, generation: header.generation, good: len, len });
        Ok(header.id == id)
    }

    /// Takes note of who said what lies in a frame; false if that cannot be read.
    fn hear(&mut self, header: &Header, frame: &[u8]) -> bool {
        if !matches!(header.note, Note::Reply(_)) {
            return true;
        }
        let Some((answered, asked)) = header.models(frame) else { return false };
        let speaker = Speaker { asked, answered };
        let place = self.speakers.iter().rposition(|known| *known == speaker).unwrap_or_else(|| {
            self.speakers.push(speaker);
            self.speakers.len() - 1
        });
        self.spoken.insert(ActionKey(header.key), place);
        true
    }

    /// Who said the body of a record.
    pub(super) fn speaker(&self, record: &Record) -> Option<Speaker> {
        let is_current = self.tables.records.get(&record.key).is_some_and(|known| known.location == record.location);
        let speaker = self.speakers.get(*self.spoken.get(&record.key)?)?;
        is_current.then(|| speaker.clone())
    }
}
