//! The folder of the sled tree. A new one is filled beside it, renamed to `index.ready` when it is complete, and takes its
//! place. So a killed process leaves the old one, or a complete new one that the next opening puts into its place.

use std::path::{Path, PathBuf};

use super::Index;
use super::tree::{ActionTree, Watermarks};
use crate::cache::error::{CacheError, IndexFault, IndexResult};
use crate::cache::packs::folder::Layout;
use base::files::sync_folder;
use base::guarded;

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
