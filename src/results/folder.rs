//! The folder of a label: its files, and how it is found.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::label::{Label, LabelError};
use super::manifest::{FORMAT, Manifest};
use super::row::Row;
use super::rows_file::{FEW, ListedRow, RowError, Rows, RowsFile};
use crate::fault::nearest;
use crate::files::{self, FileError};

/// Names of the files in a results folder.
pub mod names {
    /// What ran.
    pub const MANIFEST: &str = "manifest.json";
    /// One line per judged cell.
    pub const CELLS: &str = "cells.jsonl";
    /// Medians, intervals, breakdowns.
    pub const SUMMARY: &str = "summary.json";
    /// For a pull request.
    pub const MARKDOWN: &str = "report.md";
    /// For a browser.
    pub const HTML: &str = "report.html";
}

/// The folder of one result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsFolder {
    path: PathBuf,
}

/// Why a result set cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Not a label.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// Not there.
    #[error("there are no results `{label}` in `{}`{}", results.display(), hint(near.as_deref()))]
    Missing {
        /// What was asked for.
        label: String,
        /// Where it was looked for.
        results: PathBuf,
        /// The label that was probably meant.
        near: Option<String>,
    },
    /// No result set at all.
    #[error("there are no results in `{}`; make some with `compeval run`", .0.display())]
    Empty(PathBuf),
    /// Written in another format.
    #[error(
        "`{}` was written by compeval {version} in format {format}, and this program reads formats up to {FORMAT}; \
         run the label again, or read it with that version",
        path.display()
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format found.
        format: u32,
        /// The program that wrote it.
        version: String,
    },
    /// Not readable as what it should be.
    #[error("`{}` is not a manifest of results: {source}; run the label again", path.display())]
    Broken {
        /// The manifest.
        path: PathBuf,
        /// What was found.
        source: serde_json::Error,
    },
    /// The file system.
    #[error(transparent)]
    File(#[from] FileError),
}

fn hint(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// What is read of a manifest before anything else is believed.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    version: String,
    #[serde(default)]
    started: String,
}

impl ResultsFolder {
    /// The folder that `label` has in `results`, whether or not it exists.
    pub fn of(results: &Path, label: &Label) -> ResultsFolder {
        ResultsFolder { path: results.join(label.as_str()) }
    }

    /// The folder of an existing result set, by its label or by its own path.
    ///
    /// # Errors
    /// No such result set (the nearest label is named), or a text that can be neither label nor path.
    pub fn open(results: &Path, label: &str) -> Result<ResultsFolder, FolderError> {
        if label.contains(['/', '\\']) && Path::new(label).join(names::MANIFEST).is_file() {
            return Ok(ResultsFolder { path: PathBuf::from(label) });
        }
        if label.contains(['/', '\\']) {
            return Err(FolderError::Missing { label: label.to_owned(), results: results.to_owned(), near: None });
        }
        let folder = ResultsFolder::of(results, &Label::new(label)?);
        if folder.exists() {
            return Ok(folder);
        }
        let known = labels(results)?;
        if known.is_empty() {
            return Err(FolderError::Empty(results.to_owned()));
        }
        let known: Vec<&str> = known.iter().map(Label::as_str).collect();
        let near = nearest(label, &known).map(str::to_owned);
        Err(FolderError::Missing { label: label.to_owned(), results: results.to_owned(), near })
    }

    /// The same for `LABEL` or `LABEL:METHOD`; whatever exists as a whole is taken as a whole.
    ///
    /// # Errors
    /// As [`ResultsFolder::open`].
    pub fn open_side(results: &Path, text: &str) -> Result<(ResultsFolder, Option<String>), FolderError> {
        let whole = ResultsFolder::open(results, text);
        let Some((label, method)) = text.rsplit_once(':').filter(|(_, method)| !method.is_empty()) else {
            return whole.map(|folder| (folder, None));
        };
        match whole {
            Ok(folder) => Ok((folder, None)),
            Err(_) => ResultsFolder::open(results, label).map(|folder| (folder, Some(method.to_owned()))),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The label, as the folder is named.
    pub fn label(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether results were written to it.
    pub fn exists(&self) -> bool {
        self.path.join(names::MANIFEST).is_file()
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file of one fixture and run.
    pub fn run_file(&self, fixture: &str, run: u32) -> PathBuf {
        self.path.join(format!("{fixture}-run-{run}.json"))
    }

    /// Writes one of its files whole.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
        files::write_whole(&self.file(name), bytes)
    }

    /// Writes one of its files whole, as indented JSON.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), FileError> {
        let path = self.file(name);
        let mut text = serde_json::to_string_pretty(value).map_err(|e| FileError::new("write", &path, e.into()))?;
        text.push('\n');
        files::write_whole(&path, text)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FileError> {
        self.write_json(names::MANIFEST, manifest)
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// A manifest of another format, or none.
    pub fn manifest(&self) -> Result<Manifest, FolderError> {
        let path = self.file(names::MANIFEST);
        let text = files::read_text(&path)?;
        head(&path, &text)?;
        serde_json::from_str(&text).map_err(|source| FolderError::Broken { path, source })
    }

    /// Begins `cells.jsonl` anew, for `cells` rows at most.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn begin_rows(&self, cells: u64) -> Result<RowsFile, FileError> {
        RowsFile::create(&self.file(names::CELLS), cells)
    }

    /// Reads `cells.jsonl` row by row.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn rows(&self) -> Result<Rows, FileError> {
        Rows::open(&self.file(names::CELLS))
    }

    /// All rows of `cells.jsonl`; `None` if they are more than [`FEW`].
    ///
    /// # Errors
    /// A file that is not there, a line that is no row.
    pub fn few_rows(&self) -> Result<Option<Vec<ListedRow>>, RowError> {
        if !self.rows()?.are_at_most(FEW)? {
            return Ok(None);
        }
        self.rows()?.listed().collect::<Result<_, _>>().map(Some)
    }

    /// The rows in these places of `cells.jsonl`, counted from 0.
    ///
    /// # Errors
    /// A file that is not there, a line that is no row.
    pub fn rows_at(&self, places: Range<usize>) -> Result<Vec<Row>, RowError> {
        self.rows()?.behind(places.start)?.take(places.len()).collect()
    }

    /// The rows in these places, by place: the file is read once, up to the last of them.
    ///
    /// # Errors
    /// As `rows_at`.
    pub fn rows_in(&self, places: &BTreeSet<usize>) -> Result<BTreeMap<usize, Row>, RowError> {
        let (mut rows, mut next, mut found) = (self.rows()?, 0, BTreeMap::new());
        for place in places {
            rows = rows.behind(place - next)?;
            next = place + 1;
            if let Some(row) = rows.next() {
                found.insert(*place, row?);
            }
        }
        Ok(found)
    }

    /// Removes the files of fixtures and runs that an earlier run of this label left: their names are not known to a
    /// run with other fixtures.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn remove_run_files(&self, kept: &HashSet<PathBuf>) -> Result<(), FileError> {
        for path in entries(&self.path)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let number = name.strip_suffix(".json").and_then(|stem| stem.rsplit_once("-run-")).map(|(_, k)| k);
            let is_run = number.is_some_and(|k| !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()));
            if is_run && !kept.contains(&path) {
                fs::remove_file(&path).map_err(|e| FileError::new("remove", &path, e))?;
            }
        }
        Ok(())
    }
}

fn head(path: &Path, text: &str) -> Result<Head, FolderError> {
    let broken = |source| FolderError::Broken { path: path.to_owned(), source };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if !(1..=FORMAT).contains(&head.format) {
        return Err(FolderError::Format { path: path.to_owned(), format: head.format, version: head.version });
    }
    Ok(head)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let fault = |e| FileError::new("list", folder, e);
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry.map_err(fault)?.path())).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fault(error)),
    }
}

/// All labels that have results, sorted.
///
/// # Errors
/// Whatever the file system says, with the path.
pub fn labels(results: &Path) -> Result<Vec<Label>, FileError> {
    let entries = entries(results)?;
    let names = entries.iter().filter(|path| path.join(names::MANIFEST).is_file()).filter_map(|path| path.file_name());
    let mut labels: Vec<Label> = names.filter_map(|name| Label::new(&name.to_string_lossy()).ok()).collect();
    labels.sort();
    Ok(labels)
}

/// The label whose run began last, passing over what cannot be read; of equals the last by name.
///
/// # Errors
/// There are no results.
pub fn newest(results: &Path) -> Result<ResultsFolder, FolderError> {
    let started = |label: Label| -> Option<(String, Label)> {
        let path = ResultsFolder::of(results, &label).file(names::MANIFEST);
        let text = files::read_text(&path).ok()?;
        Some((head(&path, &text).ok()?.started, label))
    };
    let newest = labels(results)?.into_iter().filter_map(started).max();
    let (_, label) = newest.ok_or_else(|| FolderError::Empty(results.to_owned()))?;
    Ok(ResultsFolder::of(results, &label))
}
