//! The files of lines that a run writes: rows, contexts and planted items.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::Digest;
use crate::pipeline::{CompressCell, Pipeline};
use crate::results::{
    FEW, LinesFile, ListedRow, PlantedRow, ResultsFolder, RowsFile, RowsForm, names,
};
use base::files::FileError;
use store::cache::Store;

/// The files of lines under construction.
pub(super) struct LineFiles {
    rows: RowsFile,
    contexts: LinesFile<CompressCell>,
    /// The lines of planted items, if any are planted: those of a context are complete when both requests have replies.
    planted: Option<PlantedLines>,
}

/// The file of planted items, and its rows by context.
type PlantedLines = (
    LinesFile<CompressCell>,
    BTreeMap<CompressCell, Vec<PlantedRow>>,
);

/// The rows of one context, in the order of the matrix: the content of a memo.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContextRows {
    /// The warnings about the context.
    pub(super) warnings: Vec<String>,
    /// The line of the context itself.
    pub(super) context: String,
    pub(super) lines: String,
}

impl ContextRows {
    /// Reads the memo; `None` if it is missing or damaged.
    pub(super) fn read(store: &Store, key: &Digest) -> Option<ContextRows> {
        postcard::from_bytes(&store.read_memo(key)?).ok()
    }

    /// Stores the memo.
    pub(super) fn keep(&self, store: &Store, key: Digest) {
        if let Ok(bytes) = postcard::to_stdvec(self) {
            store.keep_memo(key, &bytes);
        }
    }
}

impl LineFiles {
    /// Begins the files of a result set of at most `rows` rows in `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn begin(
        pipeline: &Pipeline,
        folder: &ResultsFolder,
        rows: u64,
    ) -> Result<LineFiles, FileError> {
        let is_compressed = pipeline.settings.compress_rows.unwrap_or(rows > FEW);
        let form = if is_compressed {
            RowsForm::Compressed
        } else {
            RowsForm::Plain
        };
        let plants = pipeline
            .fixtures
            .iter()
            .any(|fixture| !fixture.variants.is_empty());
        let planted = plants
            .then(|| folder.begin_lines(names::PLANTED))
            .transpose()?;
        Ok(LineFiles {
            planted: planted.map(|file| (file, BTreeMap::new())),
            rows: RowsFile::create(folder.path(), rows, form)?,
            contexts: folder.begin_lines(names::CONTEXTS)?,
        })
    }

    /// Adds the line of a context, which has no end of line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        self.contexts.append(&[cell], &format!("{line}\n"))
    }

    /// The rows of the items planted in the session of a context.
    pub(super) fn planted(&mut self, cell: CompressCell) -> Option<&mut Vec<PlantedRow>> {
        let (_, rows) = self.planted.as_mut()?;
        Some(rows.entry(cell).or_default())
    }

    /// Adds rows; `places` are the places of the `lines` among all rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_rows(&mut self, places: &[u64], lines: &str) -> Result<(), FileError> {
        self.rows.append(places, lines)
    }

    /// Finishes the files, which puts their lines in order. Returns the rows, if they are few.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self) -> Result<Option<Vec<ListedRow>>, FileError> {
        let few = self.rows.finish()?;
        self.contexts.finish()?;
        if let Some((mut file, contexts)) = self.planted {
            for (cell, rows) in contexts {
                let lines: Result<String, serde_json::Error> = rows
                    .iter()
                    .map(|row| Ok(serde_json::to_string(row)? + "\n"))
                    .collect();
                // Names, numbers and truth values are always JSON.
                file.append(&[cell], &lines.unwrap_or_default())?;
            }
            file.finish()?;
        }
        Ok(few)
    }
}
