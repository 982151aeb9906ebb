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

use std::path::PathBuf;

use self::label::LabelError;
use self::manifest::FORMAT;
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
    /// There are no complete results of another label.
    #[error("there are no other complete results in `{}`; make some with `compeval run`", _0.display())]
    NoOther(PathBuf),
    /// An incomplete set was asked for, and the results are complete.
    #[error("the results `{_0}` are complete, and there is no incomplete set beside them")]
    NotPartial(String),
    /// The set was written in another format.
    #[error("`{}` was written by compeval {version} in format {format}, and this program reads format {FORMAT}; \
         read it with that version, or remove its folder and run the label again" ,
        path.display())]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format found.
        format: u32,
        /// The program that wrote it.
        version: String,
    },
    /// The manifest cannot be parsed.
    #[error("`{}` is not a manifest of results: {source}; remove its folder and run the label again", path.display())]
    Broken {
        /// The manifest.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A line is not a key.
    #[error("line {line} of `{}` is not the key of an action; run the label again", path.display())]
    Key {
        /// The file of keys.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A line is not a row.
    #[error("line {line} of `{}` is not a row of results: {source}; run the label again", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A row names something that the manifest does not know.
    #[error(
        "a row of `{label}` speaks of {what} `{name}`, which its manifest does not know; run the label again"
    )]
    UnknownCell {
        /// The label.
        label: String,
        /// What is named: a method, a probe or a judge.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

fn hint(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}
