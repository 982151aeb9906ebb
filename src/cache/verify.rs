//! Checking every byte: each frame's header, body and digest, and the index against the packs. What is damaged is
//! copied aside, named and taken out, so that the next run makes it again.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use bytes::Bytes;

use super::catalogue::{Catalogue, read_pack_header};
use super::error::{CacheError, Damage};
use super::fold::Questions;
use super::frame::{Header, Note};
use super::meta::Removal;
use super::pack::{PackHeader, read_at, unpack_body};
use super::record::Location;
use super::recover::keep_aside;
use super::scanner::{Found, Scanner};
use super::store::Store;
use super::writer::{Core, Tail};
use crate::action::ActionKey;

/// Damage that was found and set aside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{damage}{}", Told(self))]
pub struct DamageReport {
    /// Where, and what is wrong.
    pub damage: Damage,
    /// Entries that were taken out for it; the next run makes them again.
    pub lost: Vec<ActionKey>,
    /// A copy of the damaged bytes; `None` for the index, which was made again.
    pub set_aside: Option<PathBuf>,
}

struct Told<'a>(&'a DamageReport);

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DamageReport { lost, set_aside, .. } = self.0;
        if let Some(path) = set_aside {
            write!(f, "; set aside as {}", path.display())?;
        }
        match lost.len() {
            0 => Ok(()),
            1 => f.write_str("; the next run makes the entry again"),
            n => write!(f, "; the next run makes {n} entries again"),
        }
    }
}

/// A damaged stretch of a pack.
struct Stretch {
    at: Location,
    to: u64,
    what: String,
}

impl Store {
    /// Re-hashes everything, sets damage aside and takes it out.
    ///
    /// # Errors
    /// If the disk refuses. Damage is no error: it is the answer.
    pub fn verify(&self) -> Result<Vec<DamageReport>, CacheError> {
        self.sync()?;
        let core = &self.core;
        let mut tail = core.tail();
        core.open_index(&mut tail).map_err(|error| core.fail(&error))?;
        let mut reports = Vec::new();
        core.check_packs(&mut tail, &mut reports).map_err(|error| core.fail(&error))?;
        core.check_index(&mut tail, &mut reports).map_err(|error| core.fail(&error))?;
        Ok(reports)
    }
}

impl Core {
    fn check_packs(&self, tail: &mut Tail, reports: &mut Vec<DamageReport>) -> Result<(), CacheError> {
        let mut damaged = BTreeSet::new();
        for id in self.layout.pack_ids()? {
            // opened anew, to read what is on the disk now
            self.packs.forget(id);
            let file = self.packs.file(id).map_err(CacheError::io("read", &self.layout.pack(id)))?;
            for stretch in check_pack(id, &file).map_err(CacheError::io("read", &self.layout.pack(id)))? {
                reports.push(self.set_aside(tail, stretch)?);
                damaged.insert(id);
            }
        }
        if damaged.is_empty() { Ok(()) } else { self.sweep_packs(tail, &damaged, self.newest_removals()?) }
    }

    /// Copies a stretch aside and takes out of the index what lay there.
    fn set_aside(&self, tail: &mut Tail, stretch: Stretch) -> Result<DamageReport, CacheError> {
        let Stretch { at, to, what } = stretch;
        let inside = |l: &Location| l.pack == at.pack && l.offset < to && l.end() > at.offset;
        let kept = keep_aside(&self.layout, at.pack, at.offset, to)?;
        let (records, texts) = self.with_index(|index| Ok((index.records()?, index.texts()?)))?;
        let lost: Vec<_> = records.into_iter().filter(|record| inside(&record.location)).collect();
        self.remove(tail, &lost, Removal::Damaged)?;
        self.update(tail, |index| {
            texts.iter().filter(|(_, at)| inside(at)).try_for_each(|(digest, _)| index.forget_text(digest))?;
            index.flush()
        })?;
        let lost: Vec<ActionKey> = lost.into_iter().map(|record| record.key).collect();
        let damage = self.packs.damage(lost.first().copied(), at, what);
        Ok(DamageReport { damage, lost, set_aside: Some(kept) })
    }

    /// Compares the index with the packs, which are good by now.
    fn check_index(&self, tail: &mut Tail, reports: &mut Vec<DamageReport>) -> Result<(), CacheError> {
        let catalogue = Catalogue::scan(&self.layout, &self.packs)?;
        let what = match self.with_index(|index| Ok((index.records()?, index.texts()?))) {
            Err(error) => error.to_string(),
            Ok((records, texts)) => {
                let same = |record: &super::record::Record| {
                    catalogue.records.get(&record.key).is_some_and(|found| **found == *record)
                };
                let texts_same = texts.len() == catalogue.texts.len()
                    && texts.iter().all(|(digest, at)| catalogue.texts.get(digest) == Some(at));
                if records.len() == catalogue.records.len() && records.iter().all(same) && texts_same {
                    return Ok(());
                }
                "it does not agree with the packs; it was made again from them".to_owned()
            }
        };
        self.rebuild(tail, &what)?;
        let damage = Damage { key: None, path: self.layout.index(), offset: 0, what };
        reports.push(DamageReport { damage, lost: Vec::new(), set_aside: None });
        Ok(())
    }
}

/// The damaged stretches of a pack, in order.
fn check_pack(id: u32, file: &File) -> std::io::Result<Vec<Stretch>> {
    let len = file.metadata()?.len();
    let place = |offset| Location { pack: id, offset, head: 0, body: 0 };
    let mut damaged = Vec::new();
    let start = PackHeader::LEN as u64;
    match read_pack_header(file, len)? {
        Ok(header) if header.id == id => {}
        Ok(_) => damaged.push(Stretch { at: place(0), to: start, what: "it is another pack, by its header".into() }),
        Err(what) => damaged.push(Stretch { at: place(0), to: start.min(len), what: what.into() }),
    }
    let mut scanner = Scanner::new(id, file, 0, len);
    while let Some(found) = scanner.next()? {
        damaged.extend(match found {
            Found::Frame(at, header) => {
                check_frame(file, at, &header)?.map(|what| Stretch { at, to: at.end(), what: what.into() })
            }
            Found::Damaged { from, to, what } => Some(Stretch { at: place(from), to, what: what.into() }),
            Found::Torn { from, what } => Some(Stretch { at: place(from), to: len, what: what.into() }),
        });
    }
    Ok(damaged)
}

/// What is wrong with a frame whose header is good.
fn check_frame(file: &File, at: Location, header: &Header) -> std::io::Result<Option<&'static str>> {
    let mut bytes = vec![0; usize::try_from(at.len()).map_err(std::io::Error::other)?];
    read_at(file, &mut bytes, at.offset)?;
    let head = at.head as usize;
    let entry = matches!(header.note, Note::Reply(_) | Note::Failure { .. });
    if entry && Header::meta(&bytes[..head]).is_none() {
        return Ok(Some("its header cannot be read"));
    }
    let with_body = matches!(header.note, Note::Reply(_) | Note::Text);
    Ok(if with_body { unpack_body(header, Bytes::from(bytes).slice(head..)).err() } else { None })
}
