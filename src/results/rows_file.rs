//! `cells.jsonl`: written as rows come, put in the order of the matrix at the end, there also compressed if that is wanted,
//! as `cells.jsonl.zst`; read row by row.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memchr_iter;
use serde::{Deserialize, Serialize};

use super::row::{Row, ScoredRow};
use crate::action::Digest;
use crate::files::{self, FileError};
use crate::redaction::redact_bytes;

/// Its name in a folder of results.
pub(super) const PLAIN: &str = "cells.jsonl";
/// The same, compressed.
pub(super) const COMPRESSED: &str = "cells.jsonl.zst";

/// How the rows stand in the file once it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsForm {
    /// As lines.
    Plain,
    /// As lines, compressed by zstd.
    Compressed,
}

/// Up to so many rows are held in memory and shown on one page; more are read from the file.
pub const FEW: u64 = 25_000;

/// The file under construction. In memory it keeps three numbers a row, and the rows themselves as long as they are few.
#[derive(Debug)]
pub struct RowsFile {
    path: PathBuf,
    form: RowsForm,
    file: File,
    length: u64,
    lines: Vec<Line>,
    /// `None` where they are many.
    rows: Option<BTreeMap<u64, Arc<ListedRow>>>,
}

/// A row with the name of its line, which says whether anything in it is another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedRow {
    /// The row, without what was said at length.
    pub row: ScoredRow,
    /// Digest of the line.
    pub name: Digest,
}

impl ListedRow {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no row.
    pub fn read(line: &str) -> serde_json::Result<ListedRow> {
        let line = line.trim_end_matches('\n');
        Ok(ListedRow { row: serde_json::from_str(line)?, name: Digest::of(line) })
    }
}

/// Higher levels take several times as long for a twentieth of the size.
const LEVEL: i32 = 3;

/// Where a row stands in the file.
#[derive(Clone, Copy, Debug)]
struct Line {
    ordinal: u64,
    offset: u64,
    length: u32,
}

impl RowsFile {
    /// Begins the file anew in `folder`, which is made if need be, for `cells` rows at most.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn create(folder: &Path, cells: u64, form: RowsForm) -> Result<RowsFile, FileError> {
        let path = folder.join(PLAIN);
        let fault = |e| FileError::new("write", &path, e);
        files::create_private_folder(folder)?;
        let file =
            files::open_options(&path).read(true).write(true).create(true).truncate(true).open(&path).map_err(fault)?;
        files::remove_if_there(&folder.join(COMPRESSED))?;
        Ok(RowsFile { path, form, file, length: 0, lines: Vec::new(), rows: (cells <= FEW).then(BTreeMap::new) })
    }

    /// Appends rows; whole lines reach the file at once, so whoever reads along sees rows. `ordinals` are the places
    /// of the `lines` in the matrix, `rows` what they say.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn append(&mut self, ordinals: &[u64], lines: &str, rows: &[Arc<ListedRow>]) -> Result<(), FileError> {
        let fault = |e: std::io::Error| FileError::new("write", &self.path, e);
        self.file.write_all(&redact_bytes(lines.as_bytes())).map_err(fault)?;
        let mut start = 0;
        for (ordinal, end) in ordinals.iter().zip(memchr_iter(b'\n', lines.as_bytes())) {
            let length = u32::try_from(end + 1 - start).map_err(|e| fault(std::io::Error::other(e)))?;
            self.lines.push(Line { ordinal: *ordinal, offset: self.length, length });
            self.length += u64::from(length);
            start = end + 1;
        }
        if let Some(kept) = &mut self.rows {
            kept.extend(ordinals.iter().copied().zip(rows.iter().cloned()));
        }
        Ok(())
    }

    /// How many rows were appended.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no row was appended.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Puts the rows in the order of the matrix. Of two rows in one place the later one stands. Returns them if they
    /// are few.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn finish(mut self) -> Result<Option<Vec<ListedRow>>, FileError> {
        let is_sorted = self.lines.is_sorted_by(|a, b| a.ordinal < b.ordinal);
        if !is_sorted {
            self.lines.sort_by_key(|line| (line.ordinal, std::cmp::Reverse(line.offset)));
            self.lines.dedup_by_key(|line| line.ordinal);
        }
        if is_sorted && self.form == RowsForm::Plain {
            self.file.sync_all().map_err(|e| FileError::new("write", &self.path, e))?;
        } else {
            self.rewrite()?;
        }
        Ok(self.rows.map(|rows| rows.into_values().map(Arc::unwrap_or_clone).collect()))
    }

    /// Writes the lines in their order into another file, which takes the place of this one.
    fn rewrite(&self) -> Result<(), FileError> {
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let fault = |e| FileError::new("write", &self.path, e);
        let out = BufWriter::new(files::temporary_in(&folder).map_err(fault)?);
        match self.form {
            RowsForm::Plain => {
                let out = self.copy_to(out).map_err(fault)?;
                files::keep(out.into_inner().map_err(|e| fault(e.into_error()))?, &self.path)
            }
            RowsForm::Compressed => {
                let out = zstd::Encoder::new(out, LEVEL).map_err(fault)?;
                let out = self.copy_to(out).and_then(zstd::Encoder::finish).map_err(fault)?;
                files::keep(out.into_inner().map_err(|e| fault(e.into_error()))?, &folder.join(COMPRESSED))?;
                files::remove_if_there(&self.path)
            }
        }
    }

    fn copy_to<W: Write>(&self, mut out: W) -> std::io::Result<W> {
        let (mut file, mut buffer) = (&self.file, Vec::new());
        for line in &self.lines {
            buffer.resize(line.length as usize, 0);
            file.seek(SeekFrom::Start(line.offset))?;
            file.read_exact(&mut buffer)?;
            out.write_all(&buffer)?;
        }
        Ok(out)
    }
}

/// A row that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line that is no row.
    #[error("line {line} of `{}` is not a row of results: {source}; run the label again", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was found.
        source: serde_json::Error,
    },
}

/// The rows of a file, one at a time. A last line that a crash cut short is passed over.
pub struct Rows {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: usize,
    buffer: String,
}

impl Debug for Rows {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Rows {
    /// Opens the file of a folder of results, in either form. Where there are both, a run was killed while it wrote the
    /// other from the lines.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn of_folder(folder: &Path) -> Result<Rows, FileError> {
        const BUFFER: usize = 1 << 16;
        let (plain, compressed) = (folder.join(PLAIN), folder.join(COMPRESSED));
        let is_plain = plain.exists() || !compressed.exists();
        let path = if is_plain { plain } else { compressed };
        let fault = |e| FileError::new("read", &path, e);
        let file = File::open(&path).map_err(fault)?;
        let reader: Box<dyn BufRead + Send> = if is_plain {
            Box::new(BufReader::with_capacity(BUFFER, file))
        } else {
            Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(file).map_err(fault)?))
        };
        Ok(Rows { path, reader, line: 0, buffer: String::new() })
    }

    /// Whether there are at most `limit` lines, without reading what they say.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn are_at_most(mut self, limit: u64) -> Result<bool, FileError> {
        for _ in 0..=limit {
            let skipped = self.reader.skip_until(b'\n').map_err(|e| FileError::new("read", &self.path, e))?;
            if skipped == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of whole lines.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub(super) fn count_lines(mut self) -> Result<u64, FileError> {
        let (mut count, mut buffer) = (0, [0; 1 << 16]);
        loop {
            match self.reader.read(&mut buffer).map_err(|e| FileError::new("read", &self.path, e))? {
                0 => return Ok(count),
                read => count += memchr_iter(b'\n', buffer.get(..read).unwrap_or_default()).count() as u64,
            }
        }
    }

    fn read_line(&mut self) -> Result<bool, FileError> {
        self.buffer.clear();
        let read = self.reader.read_line(&mut self.buffer).map_err(|e| FileError::new("read", &self.path, e))?;
        self.line += 1;
        Ok(read > 0 && self.buffer.ends_with('\n'))
    }
}

impl Rows {
    fn next_as<T>(&mut self, read: impl FnOnce(&str) -> serde_json::Result<T>) -> Option<Result<T, RowError>> {
        match self.read_line() {
            Ok(false) => None,
            Ok(true) => Some(read(&self.buffer).map_err(|source| RowError::Line {
                path: self.path.clone(),
                line: self.line,
                source,
            })),
            Err(error) => Some(Err(error.into())),
        }
    }

    /// The rows that are left, without what was said at length.
    pub fn scored(mut self) -> impl Iterator<Item = Result<ScoredRow, RowError>> {
        std::iter::from_fn(move || self.next_as(|line| serde_json::from_str(line)))
    }

    /// The same with their names.
    pub fn listed(mut self) -> impl Iterator<Item = Result<ListedRow, RowError>> {
        std::iter::from_fn(move || self.next_as(ListedRow::read))
    }

    /// The rows behind the next `lines`, which are not read.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub(super) fn behind(mut self, lines: usize) -> Result<Rows, FileError> {
        for _ in 0..lines {
            self.reader.skip_until(b'\n').map_err(|e| FileError::new("read", &self.path, e))?;
            self.line += 1;
        }
        Ok(self)
    }
}

impl Iterator for Rows {
    type Item = Result<Row, RowError>;

    fn next(&mut self) -> Option<Result<Row, RowError>> {
        self.next_as(|line| serde_json::from_str(line))
    }
}
