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

use self::label::Label;
use base::files::FileError;

/// Why a result set cannot be opened, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
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
    /// The name cannot be a label, or there are results, and not those that are wanted, or a file of them is not as it was
    /// written: where, and what to do.
    #[error("{_0}")]
    Unusable(String),
    /// Another process writes them.
    #[error(
        "the results `{label}` are being written by {holder}; wait until it has ended, or use another label"
    )]
    Held {
        /// The label.
        label: Label,
        /// The command and its process.
        holder: String,
    },
    /// The results are protected, or results that would have to be renamed are.
    #[error("the results `{_0}` are protected")]
    Protected(Label),
    /// The label has results of another design.
    #[error(
        "the results `{label}` are of another design, and this run would replace them; what differs:{}",
        conflicts.iter().map(|item| format!("\n  - {item}")).collect::<String>()
    )]
    OtherDesign {
        /// The label.
        label: Label,
        /// How the designs differ.
        conflicts: Vec<String>,
    },
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
