//! The folders of shards: `results/.shards/LABEL/I-of-N`, each with a result set and a cache of its own, so that shards
//! on one file system do not wait for each other's locks.
//!
//! They are not inside `results/LABEL`: publishing renames that folder, and a shard may be running. They can be copied
//! anywhere; a merge finds them by what they contain.

use std::fs;
use std::path::{Path, PathBuf};

use super::find::{labels, open_results};
use super::folder::{FolderError, ResultsFolder, entries};
use super::label::Label;
use crate::shard::Shard;
use base::files::FileError;

const SHARDS: &str = ".shards";
const CACHE: &str = "cache";

/// The folder of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardFolder(PathBuf);

impl ShardFolder {
    /// The folder that a shard of `label` has, whether or not it exists.
    pub fn of(results: &Path, label: &Label, shard: Shard) -> ShardFolder {
        ShardFolder(ShardFolder::all(results, label).join(shard.folder()))
    }

    /// The folder that holds all shards of a label.
    pub fn all(results: &Path, label: &Label) -> PathBuf {
        results.join(SHARDS).join(label.as_str())
    }

    /// Where its result set is, as in a folder of results.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where its cache is.
    pub fn cache(&self) -> PathBuf {
        self.0.join(CACHE)
    }

    /// Its result set.
    ///
    /// # Errors
    /// There is none.
    pub fn open(&self, label: &Label) -> Result<ResultsFolder, FolderError> {
        open_results(&self.0, label.as_str())
    }

    /// The labels of its result sets.
    fn labels(&self) -> Vec<Label> {
        let has_cache = self.cache().is_dir();
        if has_cache { labels(&self.0).unwrap_or_default() } else { Vec::new() }
    }
}

/// The folders of shards in `folder`, itself included, at most a few folders deep: however an engine's artifacts are
/// downloaded, each is a folder that has a cache beside a set of results. Sorted by path.
///
/// # Errors
/// Whatever the file system says, with the path.
pub fn find_shards(folder: &Path) -> Result<Vec<(ShardFolder, Vec<Label>)>, FileError> {
    const DEPTH: usize = 6;
    let mut found = Vec::new();
    let mut level = vec![folder.to_owned()];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for path in level {
            let shard = ShardFolder(path);
            let labels = shard.labels();
            if labels.is_empty() {
                next.extend(folders_in(&shard.0)?);
            } else {
                found.push((shard, labels));
            }
        }
        level = next;
    }
    found.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0));
    Ok(found)
}

/// Folders in a folder; links are not followed.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    Ok(entries(folder)?.into_iter().filter(is_folder).collect())
}
