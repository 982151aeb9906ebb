//! The files of lines that a run writes: rows, contexts, constraints.
//!
//! As long as every row comes from a memo and the published set of the label may have the same files, nothing is
//! written; only the keys of the memos are noted. When the first row is made, the rows of the noted memos are written,
//! and from then on every row is written at once.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::action::{Digest, DigestBuilder};
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
    /// Memos whose rows are not written yet; `None` as soon as rows are written at once.
    deferred: Option<Vec<RecalledRows>>,
    /// The digest of the memo of each context.
    digests: BTreeMap<CompressCell, Digest>,
}

/// The memo with the rows of a context, and the places where these belong.
#[derive(Clone, Debug)]
pub(super) struct RecalledRows {
    pub(super) cell: CompressCell,
    /// The places of the context's rows among all rows.
    pub(super) places: Vec<u64>,
    /// The key of the memo.
    pub(super) key: Digest,
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
    /// Reads the memo and its digest; `None` if it is missing or damaged.
    pub(super) fn read(store: &Store, key: &Digest) -> Option<(ContextRows, Digest)> {
        let bytes = store.read_memo(key)?;
        Some((postcard::from_bytes(&bytes).ok()?, Digest::hash(&bytes)))
    }

    /// Stores the memo and returns its digest.
    pub(super) fn keep(&self, store: &Store, key: Digest) -> Option<Digest> {
        let bytes = postcard::to_stdvec(self).ok()?;
        store.keep_memo(key, &bytes);
        Some(Digest::hash(&bytes))
    }
}

/// The lines of a run whose actions have ended.
pub(super) enum RunLines {
    /// Every row came from a memo, and none is written, because the published set may have the same rows.
    Deferred(Box<LineFiles>),
    /// The files are finished.
    Written {
        /// The rows, if they are few.
        few: Option<Vec<ListedRow>>,
        digests: BTreeMap<CompressCell, Digest>,
    },
}

impl RunLines {
    pub(super) fn are_deferred(&self) -> bool {
        matches!(self, RunLines::Deferred(_))
    }

    /// The rows, if they are written and few.
    pub(super) fn few(&self) -> Option<&[ListedRow]> {
        match self {
            RunLines::Deferred(_) => None,
            RunLines::Written { few, .. } => few.as_deref(),
        }
    }

    /// The digest of the rows of all contexts, in their order; `None` unless the rows of `contexts` contexts are known.
    pub(super) fn digest(&self, contexts: u64) -> Option<Digest> {
        let digests = match self {
            RunLines::Deferred(lines) => &lines.digests,
            RunLines::Written { digests, .. } => digests,
        };
        let mut all = DigestBuilder::new("rows of contexts");
        for digest in digests.values() {
            all.field("rows", digest.0);
        }
        (digests.len() as u64 == contexts).then(|| all.finish())
    }

    /// Writes the lines that are not written yet, and returns all of them.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(self, store: &Store) -> Result<RunLines, FileError> {
        match self {
            RunLines::Deferred(lines) => lines.finish(store),
            written @ RunLines::Written { .. } => Ok(written),
        }
    }

    /// Writes the lines that are not written yet. Returns the rows, if they are few.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self, store: &Store) -> Result<Option<Vec<ListedRow>>, FileError> {
        match self.write(store)? {
            RunLines::Deferred(_) => Ok(None),
            RunLines::Written { few, .. } => Ok(few),
        }
    }
}

impl LineFiles {
    /// Begins the files of a result set of at most `rows` rows in `folder`. `defers` is whether they may be the same as
    /// the files of the published set.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn begin(
        pipeline: &Pipeline,
        folder: &ResultsFolder,
        rows: u64,
        defers: bool,
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
            deferred: defers.then(Vec::new),
            digests: BTreeMap::new(),
        })
    }

    /// Notes the digest of the rows of a context, all of which are known.
    pub(super) fn note_digest(&mut self, cell: CompressCell, digest: Digest) {
        self.digests.insert(cell, digest);
    }

    /// Adds rows from a memo, which was read into `rows`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_recalled(
        &mut self,
        recalled: RecalledRows,
        rows: &ContextRows,
    ) -> Result<(), FileError> {
        match &mut self.deferred {
            Some(deferred) => deferred.push(recalled),
            None => self.write_recalled(&recalled, rows)?,
        }
        Ok(())
    }

    /// Adds the line of a context, which has no end of line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_context(
        &mut self,
        store: &Store,
        cell: CompressCell,
        line: &str,
    ) -> Result<(), FileError> {
        self.write_deferred(store)?;
        self.write_context(cell, line)
    }

    /// Adds rows; `places` are the places of the `lines` among all rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_rows(
        &mut self,
        store: &Store,
        places: &[u64],
        lines: &str,
    ) -> Result<(), FileError> {
        self.write_deferred(store)?;
        self.rows.append(places, lines)
    }

    /// Ends the run that gave these lines. The files are finished, unless nothing is written yet.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn end_run(self, store: &Store) -> Result<RunLines, FileError> {
        if self.deferred.is_some() {
            Ok(RunLines::Deferred(Box::new(self)))
        } else {
            self.finish(store)
        }
    }

    /// Finishes the files, which puts their lines in order.
    fn finish(mut self, store: &Store) -> Result<RunLines, FileError> {
        self.write_deferred(store)?;
        let few = self.rows.finish()?;
        self.contexts.finish()?;
        self.constraints.map_or(Ok(()), LinesFile::finish)?;
        Ok(RunLines::Written {
            few,
            digests: self.digests,
        })
    }

    /// Writes the rows of the noted memos. From now on rows are written at once.
    fn write_deferred(&mut self, store: &Store) -> Result<(), FileError> {
        for recalled in self.deferred.take().into_iter().flatten() {
            let Some((rows, _)) = ContextRows::read(store, &recalled.key) else {
                let damaged = "cached rows were damaged during the run; run again";
                return Err(FileError::new(
                    "write",
                    self.rows.path(),
                    io::Error::other(damaged),
                ));
            };
            self.write_recalled(&recalled, &rows)?;
        }
        Ok(())
    }

    fn write_recalled(
        &mut self,
        recalled: &RecalledRows,
        rows: &ContextRows,
    ) -> Result<(), FileError> {
        self.write_context(recalled.cell, &rows.context)?;
        self.rows.append(&recalled.places, &rows.lines)
    }

    fn write_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        let constraints = self
            .constraints
            .as_mut()
            .filter(|_| cell.chain.injection.is_some());
        constraints
            .unwrap_or(&mut self.contexts)
            .append(&[cell], &format!("{line}\n"))
    }
}
