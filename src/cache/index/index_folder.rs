//! The folder of the index: rebuilt from the packs next to the old one, and renamed into its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk_index::DiskIndex;
use super::pack_index::PackIndex;
use crate::cache::error::{CacheError, IndexFault};
use crate::cache::packs::folder::Layout;
use crate::cache::packs::pack::PackFiles;

/// Where a new index is built.
pub(in crate::cache) fn fresh_index(layout: &Layout) -> PathBuf {
    layout.root().join("index.new")
}

/// Whether there is an index of an older version, which is not used any more.
pub(in crate::cache) fn is_older_index(folder: &Path) -> bool {
    !DiskIndex::is_in(folder) && ["db", "blocks", "list"].iter().any(|part| folder.join(part).exists())
}

/// Removes a folder, if it exists.
pub(in crate::cache) fn remove_folder(path: &Path) -> Result<(), CacheError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(CacheError::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Builds a new index beside the old one and renames it into its place; the old one remains as `index.bad-<time>`.
pub(in crate::cache) fn rebuild_index(
    layout: &Layout,
    packs: &PackFiles,
) -> Result<(DiskIndex, PackIndex), CacheError> {
    let tables = PackIndex::scan(layout, packs)?;
    let fresh = fresh_index(layout);
    remove_folder(&fresh)?;
    let failed = |fault: IndexFault| CacheError::Index { path: layout.index(), what: fault.text().to_owned() };
    let index = DiskIndex::open(&fresh).map_err(failed)?;
    index.fill(&tables).map_err(failed)?;
    drop(index);
    set_old_aside(layout)?;
    fs::rename(&fresh, layout.index()).map_err(CacheError::io("rename", &fresh))?;
    layout.sync_folder(layout.root())?;
    let index = DiskIndex::open(&layout.index()).map_err(failed)?;
    Ok((index, tables))
}

const BAD: &str = "index.bad-";

/// Renames the old index. Only the newest such folder is kept, and none that an older version made.
fn set_old_aside(layout: &Layout) -> Result<(), CacheError> {
    remove_bad(layout)?;
    let old = layout.index();
    if !old.exists() {
        return Ok(());
    }
    if is_older_index(&old) {
        return remove_folder(&old);
    }
    let time = base::clock::now().strftime("%Y%m%dT%H%M%S").to_string();
    let bad = layout.root().join(format!("{BAD}{time}"));
    fs::rename(&old, &bad).map_err(CacheError::io("rename", &old))
}

/// Removes the indexes that were set aside.
pub(in crate::cache) fn remove_bad(layout: &Layout) -> Result<(), CacheError> {
    let root = layout.root();
    for entry in fs::read_dir(root).map_err(CacheError::io("list", root))? {
        let entry = entry.map_err(CacheError::io("list", root))?;
        if entry.file_name().to_string_lossy().starts_with(BAD) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}
