//! Opening a store: what the sled tree lacks is read from the ends of the packs. If tree and packs disagree in any other way, the tree is rebuilt from the packs. A killed process never causes that; the rest of an
//! interrupted write at the end of the newest pack is cut off.

use super::active_pack::ActivePack;
use crate::cache::entry::Record;
use crate::cache::error::{CacheError, IndexFault};
use crate::cache::index::Index;
use crate::cache::index::items::Watermark;
use crate::cache::index::scan::{PackState, catch_up, scan, watermarks};
use crate::cache::index::tree::{ActionTree, Watermarks};
use crate::cache::index::{OldIndex, finish_index, replace_index};
use crate::cache::packs::PackFiles;
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::PackHeader;
use base::guarded;
use base::units::Usd;

/// What an open store begins with.
pub(super) struct Opened {
    pub(super) index: Index,
    /// The watermarks that the tree does not have yet; `None` for a pack that is gone.
    pub(super) marks: Vec<(u32, Option<Watermark>)>,
    pub(super) active: ActivePack,
    /// The entries that the tree had and the packs lack.
    pub(super) lost: Vec<Record>,
}

/// Why the tree is rebuilt.
enum RebuildReason {
    /// There is none, or it cannot be read.
    Unreadable(String),
    /// It is sound, and the packs lack something that it has.
    OtherPacks(String, Box<Index>),
}

impl From<IndexFault> for RebuildReason {
    fn from(fault: IndexFault) -> RebuildReason {
        RebuildReason::Unreadable(fault.text().to_owned())
    }
}

pub(super) fn open_index(
    layout: &Layout,
    packs: &PackFiles,
    notices: &mut Vec<String>,
) -> Result<Opened, CacheError> {
    let ids = usable_packs(layout)?;
    match open_tree(layout, packs, &ids) {
        Ok((index, known, states)) => {
            let active = match states.last() {
                Some(newest) => ActivePack::resume(layout, *newest)?,
                None => ActivePack::create(layout, 1)?,
            };
            notices.extend(index.damage_notices());
            let current =
                watermarks(&states, packs).map_err(CacheError::io("read", &layout.packs()))?;
            let gone = known
                .keys()
                .filter(|id| !current.contains_key(id))
                .map(|id| (*id, None));
            let marks = gone
                .chain(current.iter().map(|(id, mark)| (*id, Some(*mark))))
                .collect();
            Ok(Opened {
                index,
                marks,
                active,
                lost: Vec::new(),
            })
        }
        Err(reason) => rebuild(layout, packs, reason, notices),
    }
}

/// The index that asks the tree, completed from the packs.
fn open_tree(
    layout: &Layout,
    packs: &PackFiles,
    ids: &[u32],
) -> Result<(Index, Watermarks, Vec<PackState>), RebuildReason> {
    if !ActionTree::is_in(&layout.index()) {
        return Err(RebuildReason::Unreadable("it was missing".into()));
    }
    let (tree, marks) = ActionTree::open_filled(&layout.index())?;
    let mut index = Index::of_tree(tree);
    let caught_up = catch_up(&mut index, &marks, ids, packs);
    if let Some(fault) = index.fault().cloned() {
        std::mem::forget(index.take_tree());
        return Err(fault.into());
    }
    match caught_up {
        Ok(states) => Ok((index, marks, states)),
        Err(why) => Err(RebuildReason::OtherPacks(why, Box::new(index))),
    }
}

fn rebuild(
    layout: &Layout,
    packs: &PackFiles,
    reason: RebuildReason,
    notices: &mut Vec<String>,
) -> Result<Opened, CacheError> {
    let (scanned, states) = scan(layout, packs)?;
    let active = ActivePack::after_scan(layout, &states, notices)?;
    let marks = watermarks(&states, packs).map_err(CacheError::io("read", &layout.packs()))?;
    let mut lost = Vec::new();
    let (why, is_new) = match reason {
        // a new cache, or what a process left that was killed while it made one
        RebuildReason::Unreadable(why) => (why, scanned.is_empty() && scanned.damage.is_empty()),
        RebuildReason::OtherPacks(why, known) => {
            lost = known.lost_in(&scanned);
            (why, false)
        }
    };
    notices.extend(scanned.damage_notices());
    let root = layout.root().display();
    let entries = scanned.records().len();
    let index = match replace_index(layout, &scanned, &marks, OldIndex::SetAside) {
        Ok(tree) => {
            if !is_new {
                notices.push(format!(
                    "{root}: the index was rebuilt from the packs, {entries} entries ({why})"
                ));
            }
            Index::of_tree(tree)
        }
        Err(fault) => {
            notices.push(format!(
                "{root}: works without an index, which cannot be made here: {}",
                fault.text()
            ));
            scanned
        }
    };
    if !lost.is_empty() {
        let cost: f64 = lost
            .iter()
            .filter_map(|record| record.cost)
            .map(|cost| cost.0)
            .sum();
        notices.push(format!(
            "{root}: the packs lack {} entries that the index had; they are made again when they are needed, which cost {} before",
            lost.len(),
            Usd(cost)
        ));
    }
    Ok(Opened {
        index,
        marks: Vec::new(),
        active,
        lost,
    })
}

/// The numbers of the packs. If the newest has no complete header, its creation was interrupted: it is removed and
/// created again.
fn usable_packs(layout: &Layout) -> Result<Vec<u32>, CacheError> {
    let mut ids = layout.pack_ids()?;
    if let Some(newest) = ids.last().copied() {
        let path = layout.pack(newest);
        let found = guarded::metadata(&path).map_err(CacheError::io("read", &path))?;
        let len = found.map_or(0, |found| found.len());
        if len < PackHeader::LEN as u64 {
            guarded::remove_file(&path).map_err(CacheError::io("remove", &path))?;
            ids.pop();
        }
    }
    Ok(ids)
}

/// Finishes or removes what a killed process left.
pub(super) fn remove_leftovers(layout: &Layout) -> Result<(), CacheError> {
    for name in ["FORMAT.new", "CACHEDIR.new"] {
        base::files::remove_if_there(&layout.root().join(name))?;
    }
    finish_index(layout)
}
