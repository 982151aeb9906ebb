//! `cells.jsonl`: rows are written in the order in which they are made, and sorted in the order of the matrix at the end.
//! The finished file may be compressed to `cells.jsonl.zst`. It is read row by row.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::FolderError;
use super::lines_file::RowsForm;
use super::row::{Row, ScoredRow};
use crate::action::Digest;
use base::files::FileError;
use base::guarded;

/// The name of the plain file.
pub(super) const PLAIN: &str = "cells.jsonl";
/// The name of the compressed file.
pub(super) const COMPRESSED: &str = "cells.jsonl.zst";

/// The most rows that are kept in memory and shown on one page; if there are more, they are read from the file.
pub const FEW: usize = 25_000;

/// A row with the digest of its line, which identifies everything in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRow {
    /// The row, without its long texts.
    pub row: ScoredRow,
    /// The digest of the line.
    pub name: Digest,
}

impl ListedRow {
    /// Parses a line.
    ///
    /// # Errors
    /// The line is not a row.
    pub fn read(line: &str) -> serde_json::Result<ListedRow> {
        let line = line.trim_end_matches('\n');
        Ok(ListedRow {
            row: serde_json::from_str(line)?,
            name: Digest::hash(line),
        })
    }
}

/// The rows of a file, one at a time. A last line that a crash cut short is skipped.
pub struct Rows {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: usize,
    buffer: String,
}

impl Rows {
    /// Opens the file of a results folder, in either form. If there are both, a run was killed while it wrote the
    /// compressed file from the plain one.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn open(folder: &Path) -> Result<Rows, FileError> {
        let plain = folder.join(PLAIN);
        let is_compressed = !plain.exists() && folder.join(COMPRESSED).exists();
        let form = if is_compressed {
            RowsForm::Compressed
        } else {
            RowsForm::Plain
        };
        let path = form.path(&plain);
        let reader = form
            .open(&plain)
            .map_err(|e| FileError::new("read", &path, e))?;
        Ok(Rows {
            path,
            reader,
            line: 0,
            buffer: String::new(),
        })
    }

    /// The number of whole lines, without parsing them.
    ///
    /// # Errors
    /// The file system's error, with the path; a line that is too long for a row.
    pub(super) fn count_lines(mut self) -> Result<u64, FileError> {
        let mut count = 0;
        while self.skip_line()? {
            count += 1;
        }
        Ok(count)
    }

    /// Whether there was a whole line to skip.
    fn skip_line(&mut self) -> Result<bool, FileError> {
        self.line += 1;
        guarded::skip_line(&mut *self.reader).map_err(|e| FileError::new("read", &self.path, e))
    }

    fn read_line(&mut self) -> Result<bool, FileError> {
        self.line += 1;
        guarded::read_line(&mut *self.reader, &mut self.buffer)
            .map_err(|e| FileError::new("read", &self.path, e))?;
        Ok(self.buffer.ends_with('\n'))
    }

    fn next_as<T>(
        &mut self,
        read: impl FnOnce(&str) -> serde_json::Result<T>,
    ) -> Option<Result<T, FolderError>> {
        match self.read_line() {
            Ok(false) => None,
            Ok(true) => Some(read(&self.buffer).map_err(|source| FolderError::Row {
                path: self.path.clone(),
                line: self.line,
                source,
            })),
            Err(error) => {
                // A broken file says the same at each further try.
                self.reader = Box::new(std::io::empty());
                Some(Err(error.into()))
            }
        }
    }

    /// The remaining rows, without their long texts.
    pub fn scored(mut self) -> impl Iterator<Item = Result<ScoredRow, FolderError>> {
        std::iter::from_fn(move || self.next_as(|line| serde_json::from_str(line)))
    }

    /// The remaining rows with the digests of their lines.
    pub fn listed(mut self) -> impl Iterator<Item = Result<ListedRow, FolderError>> {
        std::iter::from_fn(move || self.next_as(ListedRow::read))
    }

    /// The rows after the next `lines` rows, which are skipped.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub(super) fn behind(mut self, lines: usize) -> Result<Rows, FileError> {
        for _ in 0..lines {
            self.skip_line()?;
        }
        Ok(self)
    }
}

impl Iterator for Rows {
    type Item = Result<Row, FolderError>;

    fn next(&mut self) -> Option<Result<Row, FolderError>> {
        self.next_as(|line| serde_json::from_str(line))
    }
}
