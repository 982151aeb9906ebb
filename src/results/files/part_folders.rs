//! The folders of parts: `results/.parts/LABEL/I-of-N`, each with a result set and a cache of its own, so that parts on
//! one file system do not wait for each other's locks.
//!
//! They are not inside `results/LABEL`: publishing renames that folder, and a part may be running.

use std::path::{Path, PathBuf};

use super::label::Label;
use crate::parts::PartNumber;

const PARTS: &str = ".parts";
const CACHE: &str = "cache";

/// The folder of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFolder(PathBuf);

impl PartFolder {
    /// The folder that a part of `label` has, whether or not it exists.
    pub fn new(results: &Path, label: &Label, part: PartNumber) -> PartFolder {
        PartFolder(results.join(PARTS).join(label.as_str()).join(part.folder()))
    }

    /// Where its result set is, as in a folder of results.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where its cache is.
    pub fn cache(&self) -> PathBuf {
        self.0.join(CACHE)
    }
}
