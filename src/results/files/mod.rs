//! The files of a results folder: rows, contexts, manifest, and the folders of labels.

pub(super) mod design;
pub(super) mod edits;
pub(super) mod find;
pub(super) mod folder;
pub(super) mod label;
pub(super) mod label_folders;
pub(super) mod lines;
pub(super) mod manifest;
pub(super) mod row;

#[cfg(test)]
mod folder_tests;

use std::path::{Path, PathBuf};

use self::label::LabelError;
use base::files::FileError;

/// Why a result set cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The name cannot be a label.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// There are no results with this label.
    #[error("there are no results `{label}` in `{}`{}", results.display(), hint(near.as_deref()))]
    Missing {
        /// The label that was asked for.
        label: String,
        /// The folder of results.
        results: PathBuf,
        /// The label that was probably meant.
        near: Option<String>,
    },
    /// There are no results at all.
    #[error("there are no results in `{}`; make some with `compeval run`", _0.display())]
    Empty(PathBuf),
    /// There are results, and not those that are wanted, or a file of them is not as it was written: where, and what to do.
    #[error("{_0}")]
    Unusable(String),
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

impl FolderError {
    /// A line, counted from 1, that is not what a file of a result set has.
    fn line(path: &Path, line: usize, what: &str) -> FolderError {
        let path = path.display();
        FolderError::Unusable(format!(
            "line {line} of `{path}` is not {what}; run the label again"
        ))
    }

    /// A line that is not a row.
    fn row(path: &Path, line: usize, source: &serde_json::Error) -> FolderError {
        FolderError::line(path, line, &format!("a row of results: {source}"))
    }
}

fn hint(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}
