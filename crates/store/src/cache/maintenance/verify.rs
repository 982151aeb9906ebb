//! Verification of every byte: the header, body and digest of each frame. Damaged ranges are reported and removed, so
//! that the next run makes their entries again, and the index is made again from the packs.

use std::fs::File;

use bytes::Bytes;

use super::rewrite;
use crate::cache::entry::{FrameLocation, Record};
use crate::cache::error::{CacheError, Damage};
use crate::cache::index::{Index, scan};
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{BatchNonce, BatchStep, FrameContent, FrameHeader, PackHeader};
use crate::cache::packs::{
    PackFiles, PackItem, PackScanner, decode_body, read_frame, read_pack_header,
};
use crate::cache::writing::{ActivePack, StoreInner};
use crate::digest::ActionKey;
use base::threads::lock;

/// Damage that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{damage}{}", self.consequences())]
pub struct DamageReport {
    /// What differs from what was written, and where.
    pub damage: Damage,
    /// The removed entries; the next run makes them again.
    pub lost: Vec<ActionKey>,
}

impl DamageReport {
    fn consequences(&self) -> String {
        match self.lost.len() {
            0 => String::new(),
            1 => "; the next run makes the entry again".to_owned(),
            n => format!("; the next run makes {n} entries again"),
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

    /// Removes what is in it from an index.
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
        for record in index.records() {
            if self.overlaps(&record.location) {
                index.forget_record(&record.key);
            }
        }
    }

    /// The damage, with the entries among `known` that are in it, and what is said of a batch that is.
    fn report(&self, packs: &PackFiles, (records, steps): &KnownFrames) -> DamageReport {
        let lost = records
            .iter()
            .filter(|record| self.overlaps(&record.location));
        let lost: Vec<ActionKey> = lost.map(|record| record.key).collect();
        // Without its intent a batch is unknown; what follows is found at the vendor.
        let mut intents = steps
            .iter()
            .filter(|((_, step), _)| *step == BatchStep::Intent);
        let what = match intents.any(|(_, at)| self.overlaps(at)) {
            false => self.what,
            true => "it records a batch; if that is open, its replies are not collected any more",
        };
        DamageReport {
            damage: packs.damage(lost.first().copied(), self.at, what),
            lost,
        }
    }
}

/// The entries and the steps of batches that an index knows, with their places.
type KnownFrames = (Vec<Record>, Vec<((BatchNonce, BatchStep), FrameLocation)>);

fn known_frames(index: &Index) -> KnownFrames {
    (index.records(), index.steps())
}

/// Verifies everything and removes what is damaged.
pub(crate) fn verify(
    store: &StoreInner,
    active: &mut ActivePack,
) -> Result<Vec<DamageReport>, CacheError> {
    // The index knows frames that cannot be seen in the packs any more.
    let known = store.read(known_frames);
    let (mut index, _) = scan(&store.layout, &store.packs)?;
    // Nobody knows any more what was in a pack that is gone.
    let lost = Vec::new();
    let gone = lock(&store.lost_pack).take();
    let gone = gone.map(|damage| DamageReport { damage, lost });
    let mut reports: Vec<DamageReport> = gone.into_iter().collect();
    let mut packs: Vec<u32> = Vec::new();
    for range in damaged_ranges(&store.layout, &store.packs)? {
        range.forget_in(&mut index);
        reports.push(range.report(&store.packs, &known));
        packs.push(range.at.pack);
    }
    packs.dedup();
    rewrite(store, active, &index, &packs)?;
    Ok(reports)
}

/// Verifies the packs of a cache that is only read, and changes nothing.
pub(crate) fn look(
    layout: &Layout,
    packs: &PackFiles,
    index: &Index,
) -> Result<Vec<DamageReport>, CacheError> {
    let known = known_frames(index);
    let ranges = damaged_ranges(layout, packs)?.into_iter();
    Ok(ranges.map(|range| range.report(packs, &known)).collect())
}

/// The damaged ranges of all packs, which are opened again, to read what is on the disk now.
fn damaged_ranges(layout: &Layout, packs: &PackFiles) -> Result<Vec<DamagedRange>, CacheError> {
    let mut damaged = Vec::new();
    for id in layout.pack_ids()? {
        packs.close(id);
        let path = layout.pack(id);
        let ranges = packs.file(id).and_then(|file| check_pack(id, &file));
        damaged.extend(ranges.map_err(CacheError::io("read", &path))?);
    }
    Ok(damaged)
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
