//! The folder of a result set and its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lines::{FEW, LinesFile, Rows};
use super::manifest::{FORMAT, Manifest, Outcome};
use super::row::{ContextRow, PlantedRow, Row};
use super::{FolderError, Label};
use crate::action::ActionKey;
use base::files::{self, FileError, StagedFile, is_temporary};
use base::guarded;

/// Names of the files in a results folder.
pub mod names {
    /// The design of the set, and what its run did.
    pub const MANIFEST: &str = "manifest.json";
    /// One line per judged cell.
    pub const CELLS: &str = "cells.jsonl";
    /// One line per compression.
    pub const CONTEXTS: &str = "contexts.jsonl";
    /// One line per planted action and context.
    pub const PLANTED: &str = "planted.jsonl";
    /// The keys of the actions that the set was made from, one per line.
    pub const KEYS: &str = "keys.txt";
    /// Levels, intervals, breakdowns and the comparison, for programs.
    pub const SUMMARY: &str = "summary.json";
    /// The report for a pull request.
    pub const MARKDOWN: &str = "report.md";
    /// The report as a page for a browser.
    pub const HTML: &str = "report.html";
    /// Marks results that no run and no `labels rm` may touch.
    pub const PROTECTED: &str = "PROTECTED";
}

/// The folder of one result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsFolder {
    path: PathBuf,
}

/// The fields of a manifest that are read first, to check its format.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    version: String,
}

impl ResultsFolder {
    /// The folder that `label` has in `results`, whether or not it exists.
    pub fn new(results: &Path, label: &Label) -> ResultsFolder {
        ResultsFolder {
            path: results.join(label.as_str()),
        }
    }

    pub(crate) fn at(path: impl Into<PathBuf>) -> ResultsFolder {
        ResultsFolder { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The label, as the folder is named.
    pub fn label(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Whether results were written to it.
    pub fn exists(&self) -> bool {
        self.path.join(names::MANIFEST).is_file()
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes one of its files as a whole. Its name is durable after [`ResultsFolder::sync`].
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
        guarded::create_folder(&self.path)?;
        files::write_unsynced_name(&self.file(name), bytes)
    }

    /// Writes one of its files as a whole, as indented JSON. Its name is durable after [`ResultsFolder::sync`].
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), FileError> {
        self.stage_json(name, value)?.commit()
    }

    /// Writes indented JSON under a temporary name.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn stage_json(&self, name: &str, value: &impl Serialize) -> Result<StagedFile, FileError> {
        let path = self.file(name);
        let mut text = serde_json::to_string_pretty(value)
            .map_err(|e| FileError::new("write", &path, e.into()))?;
        text.push('\n');
        guarded::create_folder(&self.path)?;
        StagedFile::write(&path, text)
    }

    /// Makes the names of its files durable.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn sync(&self) -> Result<(), FileError> {
        files::sync_folder(&self.path)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FileError> {
        self.write_json(names::MANIFEST, manifest)?;
        self.sync()
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// There is no manifest, or it cannot be read, or it has another format.
    pub fn manifest(&self) -> Result<Manifest, FolderError> {
        let path = self.file(names::MANIFEST);
        let text = guarded::read_text(&path)?;
        let head: Head = serde_json::from_str(&text).map_err(|source| broken(&path, &source))?;
        if head.format != FORMAT {
            let (path, format, version) = (path.display(), head.format, head.version);
            return Err(FolderError::Unusable(format!(
                "`{path}` was written by compeval {version} in format {format}, and this program reads format {FORMAT}; \
                 read it with that version, or remove its folder and run the label again"
            )));
        }
        let mut manifest: Manifest =
            serde_json::from_str(&text).map_err(|source| broken(&path, &source))?;
        // A set that was replaced no longer has the name that it was written under.
        if let Some(label) = Label::new(&self.label())
            .ok()
            .filter(|l| l.successor() == Some(&manifest.label))
        {
            manifest.label = label.to_string();
        }
        Ok(manifest)
    }

    /// Whether no run and no `labels rm` may touch it.
    pub fn is_protected(&self) -> bool {
        self.file(names::PROTECTED).exists()
    }

    /// Protects it, or removes its protection.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn protect(&self, on: bool) -> Result<(), FileError> {
        let path = self.file(names::PROTECTED);
        if on {
            let text = "Runs and `compeval labels rm` leave these results as they are.\n";
            return files::write_whole(&path, text);
        }
        files::remove_if_there(&path)
    }

    /// Whether it has a row, a context, or a planted item.
    pub fn has_rows(&self) -> bool {
        let files = [names::CELLS, names::CONTEXTS, names::PLANTED];
        files
            .iter()
            .filter_map(|name| guarded::metadata(&self.file(name)).ok()?)
            .any(|found| found.len() > 0)
    }

    /// The number of its rows.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn row_count(&self) -> Result<u64, FileError> {
        self.rows()?.count_lines()
    }

    /// The keys of the actions that the set was made from; empty while its run has not ended.
    ///
    /// # Errors
    /// A file of keys that cannot be read.
    pub fn keys(&self) -> Result<BTreeSet<ActionKey>, FolderError> {
        let path = self.file(names::KEYS);
        if !path.exists() {
            return Ok(BTreeSet::new());
        }
        let mut keys = BTreeSet::new();
        for (at, line) in guarded::lines(&path)?.enumerate() {
            let key = line?.parse();
            let key = key.map_err(|_| FolderError::line(&path, at + 1, "the key of an action"));
            keys.insert(ActionKey(key?));
        }
        Ok(keys)
    }

    /// All known keys of the actions that the set was made from: those that it lists, and those of its rows if its run
    /// has not ended.
    ///
    /// # Errors
    /// No manifest, or a file of keys or rows that cannot be read.
    pub fn known_keys(&self) -> Result<BTreeSet<ActionKey>, FolderError> {
        let mut keys = self.keys()?;
        let has_ended = self.manifest()?.outcome != Outcome::Running;
        if has_ended || !self.has_rows() {
            return Ok(keys);
        }
        for row in self.rows()? {
            let known = row?.keys;
            keys.extend([known.compress, known.answer, known.judge]);
        }
        Ok(keys)
    }

    /// Begins the rows anew. Each write has whole lines, so other readers of the file see whole rows.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn begin_rows(&self) -> Result<LinesFile<u64>, FileError> {
        guarded::create_folder(&self.path)?;
        LinesFile::create(&self.file(names::CELLS))
    }

    /// Writes the keys of the actions that the set was made from.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn write_keys(&self, keys: &BTreeSet<ActionKey>) -> Result<(), FileError> {
        let lines: String = keys.iter().map(|key| format!("{}\n", key.0)).collect();
        self.write(names::KEYS, lines)
    }

    /// Begins one of its other files of lines anew; it appears when it is finished.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn begin_lines<P: Ord + Copy>(&self, name: &str) -> Result<LinesFile<P>, FileError> {
        LinesFile::create_unnamed(&self.file(name))
    }

    /// Reads the rows one by one.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn rows(&self) -> Result<Rows, FileError> {
        Rows::open(&self.file(names::CELLS))
    }

    /// The compressions in `contexts.jsonl`; empty while the run has not ended.
    ///
    /// # Errors
    /// A line that is not a compression.
    pub fn contexts(&self) -> Result<Vec<ContextRow>, FolderError> {
        self.lines_of(names::CONTEXTS)
    }

    /// The lines of `planted.jsonl`; empty if nothing was planted.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn planted(&self) -> Result<Vec<PlantedRow>, FolderError> {
        self.lines_of(names::PLANTED)
    }

    fn lines_of<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, FolderError> {
        let path = self.file(name);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let lines = guarded::lines(&path)?.enumerate().map(|(at, line)| {
            serde_json::from_str(&line?).map_err(|source| FolderError::row(&path, at + 1, &source))
        });
        lines.collect()
    }

    /// All rows of `cells.jsonl`; `None` if there are more than [`FEW`].
    ///
    /// # Errors
    /// The file is missing, or a line is not a row.
    pub fn few_rows(&self) -> Result<Option<Vec<Row>>, FolderError> {
        let rows: Vec<Row> = self.rows()?.take(FEW + 1).collect::<Result<_, _>>()?;
        Ok(Some(rows).filter(|rows| rows.len() <= FEW))
    }

    /// The rows at these places of `cells.jsonl`, counted from 0. The file is read once, up to the last of them.
    ///
    /// # Errors
    /// The file is missing, or a line is not a row.
    pub fn rows_in(&self, places: &BTreeSet<usize>) -> Result<BTreeMap<usize, Row>, FolderError> {
        let (mut rows, mut next, mut by_place) = (self.rows()?, 0, BTreeMap::new());
        for place in places {
            rows = rows.behind(place - next)?;
            next = place + 1;
            if let Some(row) = rows.next() {
                by_place.insert(*place, row?);
            }
        }
        Ok(by_place)
    }

    /// Removes the temporary files of a process that was killed while it wrote.
    pub(super) fn remove_temporaries(&self) -> Result<(), FileError> {
        let all = list_entries(&self.path)?.into_iter();
        let mut temporary = all.filter(|path| is_temporary(&name_of(path)));
        temporary.try_for_each(|path| {
            guarded::remove_file(&path).map_err(|e| FileError::new("remove", &path, e))
        })
    }

    /// The files in it that no run writes, such as notes of the user.
    pub(super) fn foreign_files(&self) -> Result<Vec<PathBuf>, FileError> {
        use names::{CELLS, CONTEXTS, HTML, KEYS, MANIFEST, MARKDOWN, PLANTED, SUMMARY};
        let written = [
            MANIFEST, CELLS, CONTEXTS, PLANTED, KEYS, SUMMARY, MARKDOWN, HTML,
        ];
        let mut paths = list_entries(&self.path)?;
        paths.retain(|path| {
            let name = name_of(path);
            !written.contains(&name.as_str()) && !is_temporary(&name)
        });
        Ok(paths)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn broken(path: &Path, source: &serde_json::Error) -> FolderError {
    let path = path.display();
    FolderError::Unusable(format!(
        "`{path}` is not a manifest of results: {source}; remove its folder and run the label again"
    ))
}

pub(super) fn list_entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    guarded::list(folder).map_err(|e| FileError::new("list", folder, e))
}
