//! Verification of every byte: the header, body and digest of each frame, and the index against the packs. Damaged
//! ranges are copied aside, reported and removed, so that the next run makes their entries again.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use bytes::Bytes;

use super::{newest, remove, remove_packs, survey};
use crate::cache::entry::{FrameLocation, RemovalReason};
use crate::cache::error::{CacheError, Damage};
use crate::cache::index::Index;
use crate::cache::index::scan::scan;
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{FrameContent, FrameHeader, PackHeader};
use crate::cache::packs::{
    PackFiles, PackItem, PackScanner, decode_body, read_frame, read_pack_header,
};
use crate::cache::writing::StoreInner;
use crate::cache::writing::active_pack::{ActivePack, copy_damaged};
use crate::digest::ActionKey;

/// Damage that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{damage}{}", self.consequences())]
pub struct DamageReport {
    /// What differs from what was written, and where.
    pub damage: Damage,
    /// The removed entries; the next run makes them again.
    pub lost: Vec<ActionKey>,
    /// A copy of the damaged bytes; `None` for the index, which was rebuilt.
    pub set_aside: Option<PathBuf>,
}

impl DamageReport {
    fn consequences(&self) -> String {
        let copy = self
            .set_aside
            .as_ref()
            .map(|path| format!("; a copy is in {}", path.display()))
            .unwrap_or_default();
        match self.lost.len() {
            0 => copy,
            1 => format!("{copy}; the next run makes the entry again"),
            n => format!("{copy}; the next run makes {n} entries again"),
        }
    }
}

struct DamagedRange {
    at: FrameLocation,
    to: u64,
    what: &'static str,
}

impl DamagedRange {
    fn overlaps(&self, other: &FrameLocation) -> bool {
        other.pack == self.at.pack && other.offset < self.to && other.end() > self.at.offset
    }

    /// Removes the texts and the steps of batches in it from an index.
    fn forget_in(&self, index: &mut Index) {
        for (digest, at) in index.texts() {
            if self.overlaps(&at) {
                index.forget_text(&digest);
            }
        }
        for ((nonce, step), at) in index.steps() {
            if self.overlaps(&at) {
                index.forget_step(nonce, step);
            }
        }
    }
}

/// Verifies everything and removes what is damaged.
pub(crate) fn verify(
    store: &StoreInner,
    active: &mut ActivePack,
) -> Result<Vec<DamageReport>, CacheError> {
    let mut reports: Vec<DamageReport> = missing(store).into_iter().collect();
    check_packs(store, active, &mut reports)?;
    check_index(store, &mut reports)?;
    Ok(reports)
}

/// The entries that were in packs which are gone.
fn missing(store: &StoreInner) -> Option<DamageReport> {
    let first = store.lost.first()?;
    Some(DamageReport {
        damage: first.unreadable("the index has it, and the packs do not"),
        lost: store.lost.iter().map(|record| record.key).collect(),
        set_aside: None,
    })
}

/// Verifies the packs of a cache that is only read, and changes nothing.
pub(crate) fn look(
    layout: &Layout,
    packs: &PackFiles,
    index: &Index,
) -> Result<Vec<DamageReport>, CacheError> {
    let records = index.records();
    let mut reports = Vec::new();
    for id in layout.pack_ids()? {
        let path = layout.pack(id);
        let file = packs.file(id).map_err(CacheError::io("read", &path))?;
        for range in check_pack(id, &file).map_err(CacheError::io("read", &path))? {
            let hit = records
                .iter()
                .filter(|record| range.overlaps(&record.location));
            let lost: Vec<ActionKey> = hit.map(|record| record.key).collect();
            reports.push(DamageReport {
                damage: packs.damage(lost.first().copied(), range.at, range.what),
                lost,
                set_aside: None,
            });
        }
    }
    Ok(reports)
}

fn check_packs(
    store: &StoreInner,
    active: &mut ActivePack,
    reports: &mut Vec<DamageReport>,
) -> Result<(), CacheError> {
    let mut damaged = Vec::new();
    for id in store.layout.pack_ids()? {
        // opened again, to read what is on the disk now
        store.packs.close(id);
        let path = store.layout.pack(id);
        let read = || CacheError::io("read", &path);
        let file = store.packs.file(id).map_err(read())?;
        for range in check_pack(id, &file).map_err(read())? {
            reports.push(remove_damaged(store, active, &range)?);
            damaged.push(range);
        }
    }
    if damaged.is_empty() {
        return Ok(());
    }
    let (mut index, _) = scan(&store.layout, &store.packs)?;
    damaged.iter().for_each(|range| range.forget_in(&mut index));
    let removals = survey(store, &index)?.removals;
    let ids: BTreeSet<u32> = damaged.iter().map(|range| range.at.pack).collect();
    remove_packs(store, active, &index, &ids, newest(&removals))
}

/// Copies a damaged range aside and removes what was there from the index.
fn remove_damaged(
    store: &StoreInner,
    active: &mut ActivePack,
    range: &DamagedRange,
) -> Result<DamageReport, CacheError> {
    let kept = copy_damaged(&store.layout, range.at.pack, range.at.offset, range.to)?;
    let mut lost = store.read(Index::records);
    lost.retain(|record| range.overlaps(&record.location));
    remove(store, active, &lost, RemovalReason::Damaged)?;
    store.change(|index| range.forget_in(index));
    let lost: Vec<ActionKey> = lost.into_iter().map(|record| record.key).collect();
    let damage = store
        .packs
        .damage(lost.first().copied(), range.at, range.what);
    Ok(DamageReport {
        damage,
        lost,
        set_aside: Some(kept),
    })
}

/// Compares the index with the packs, which are intact by now.
fn check_index(store: &StoreInner, reports: &mut Vec<DamageReport>) -> Result<(), CacheError> {
    if store.check_index()? {
        let what = "it does not agree with the packs and was rebuilt from them".to_owned();
        let damage = Damage {
            key: None,
            path: store.layout.index(),
            offset: 0,
            what,
            is_unread: false,
        };
        reports.push(DamageReport {
            damage,
            lost: Vec::new(),
            set_aside: None,
        });
    }
    Ok(())
}

/// The damaged ranges of a pack, in order.
fn check_pack(id: u32, file: &File) -> std::io::Result<Vec<DamagedRange>> {
    let len = file.metadata()?.len();
    let start = PackHeader::LEN as u64;
    let mut damaged = Vec::new();
    let at = FrameLocation::without_frame(id, 0);
    match read_pack_header(file, len)? {
        Ok(header) if header.id == id => {}
        Ok(_) => {
            let what = "its header is that of another pack";
            damaged.push(DamagedRange {
                at,
                to: start,
                what,
            });
        }
        Err(what) => damaged.push(DamagedRange {
            at,
            to: start.min(len),
            what,
        }),
    }
    let mut scanner = PackScanner::new(id, file, 0, len);
    while let Some(item) = scanner.next()? {
        let (at, to, what) = match item {
            PackItem::Frame(at, header) => (at, at.end(), check_frame(file, at, &header)?),
            PackItem::Damaged { from, to, what } => {
                (FrameLocation::without_frame(id, from), to, Some(what))
            }
            PackItem::Torn { from, what } => {
                (FrameLocation::without_frame(id, from), len, Some(what))
            }
        };
        damaged.extend(what.map(|what| DamagedRange { at, to, what }));
    }
    Ok(damaged)
}

/// What is wrong with a frame that has a valid header.
fn check_frame(
    file: &File,
    at: FrameLocation,
    header: &FrameHeader,
) -> std::io::Result<Option<&'static str>> {
    let bytes = read_frame(file, at)?;
    let head = at.head as usize;
    let is_entry = header.content.summary().is_some();
    if is_entry && header.entry(&bytes).is_none() {
        return Ok(Some("its header cannot be read"));
    }
    let has_body = matches!(
        header.content,
        FrameContent::Reply(_)
            | FrameContent::Text
            | FrameContent::Memo
            | FrameContent::Journal(..)
    );
    Ok(if has_body {
        decode_body(header, Bytes::from(bytes).slice(head..)).err()
    } else {
        None
    })
}
