//! The files of lines that a run writes: rows, contexts, constraints.

use serde::{Deserialize, Serialize};

use crate::action::Digest;
use crate::pipeline::{CompressCell, Pipeline};
use crate::results::{FEW, LinesFile, ListedRow, ResultsFolder, RowsFile, RowsForm, names};
use base::files::FileError;
use store::cache::Store;

/// The files of lines under construction.
pub(super) struct LineFiles {
    rows: RowsFile,
    contexts: LinesFile<CompressCell>,
    /// The lines of sessions into which a rule was put, if there are any.
    constraints: Option<LinesFile<CompressCell>>,
}

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
        let has_rules = pipeline
            .fixtures
            .iter()
            .any(|fixture| !fixture.injections.is_empty());
        let constraints = has_rules.then(|| folder.begin_lines(names::CONSTRAINTS));
        Ok(LineFiles {
            rows: RowsFile::create(folder.path(), rows, form)?,
            contexts: folder.begin_lines(names::CONTEXTS)?,
            constraints: constraints.transpose()?,
        })
    }

    /// Adds the line of a context, which has no end of line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        let constraints = self
            .constraints
            .as_mut()
            .filter(|_| cell.chain.injection.is_some());
        constraints
            .unwrap_or(&mut self.contexts)
            .append(&[cell], &format!("{line}\n"))
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
        self.constraints.map_or(Ok(()), LinesFile::finish)?;
        Ok(few)
    }
}
