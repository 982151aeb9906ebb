//! Files of lines, such as `cells.jsonl`: each line has a place. Lines are written in the order in which they are made, and
//! sorted in the order of the matrix at the end. Rows are read one by one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memchr::memchr_iter;

use super::FolderError;
use super::row::Row;
use base::files::{self, FileError};
use base::guarded;
use base::redaction::redact_bytes;

/// The most rows that are kept in memory and shown on one page; if there are more, they are read from the file.
pub const FEW: usize = 25_000;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// The file under construction; `P` is the type of places.
pub struct LinesFile<P> {
    path: PathBuf,
    file: File,
    /// The same file, if it gets its name only when it is finished.
    unnamed: Option<tempfile::NamedTempFile>,
    lines: Vec<Line<P>>,
    length: u64,
}

/// The position of a line in the file.
#[derive(Clone, Copy, Debug)]
struct Line<P> {
    place: P,
    offset: u64,
    length: u32,
}

impl<P: Ord + Copy> LinesFile<P> {
    /// Begins the file anew. Other processes can read it while it is written.
    pub(super) fn create(path: &Path) -> Result<LinesFile<P>, FileError> {
        // removed, not truncated: it may be a hard link to a file of another set
        files::remove_if_there(path)?;
        let file = files::open_options(path)
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = file.map_err(|e| FileError::new("write", path, e))?;
        Ok(LinesFile {
            path: path.to_owned(),
            file,
            unnamed: None,
            lines: Vec::new(),
            length: 0,
        })
    }

    /// The same, except that the file appears only when it is finished.
    pub(super) fn create_unnamed(path: &Path) -> Result<LinesFile<P>, FileError> {
        let unnamed = files::temporary_in(files::folder_of(path))
            .map_err(|e| FileError::new("write", path, e))?;
        let file = unnamed
            .as_file()
            .try_clone()
            .map_err(|e| FileError::new("write", path, e))?;
        Ok(LinesFile {
            path: path.to_owned(),
            file,
            unnamed: Some(unnamed),
            lines: Vec::new(),
            length: 0,
        })
    }

    /// Appends lines, which are in the file immediately. `places` are the places of the lines.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn append(&mut self, places: &[P], lines: &str) -> Result<(), FileError> {
        let bytes = redact_bytes(lines.as_bytes());
        self.file.write_all(&bytes).map_err(|e| self.fault(e))?;
        let mut start = 0;
        for (place, end) in places.iter().zip(memchr_iter(b'\n', &bytes)) {
            let length =
                u32::try_from(end + 1 - start).map_err(|e| self.fault(io::Error::other(e)))?;
            self.lines.push(Line {
                place: *place,
                offset: self.length,
                length,
            });
            self.length += u64::from(length);
            start = end + 1;
        }
        Ok(())
    }

    /// Sorts the lines by place. Of two lines in one place, the later one is kept.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn finish(mut self) -> Result<(), FileError> {
        if self.lines.is_sorted_by(|a, b| a.place < b.place) {
            return match self.unnamed.take() {
                Some(file) => files::persist(file, &self.path),
                None => self.file.sync_all().map_err(|e| self.fault(e)),
            };
        }
        self.lines
            .sort_by_key(|line| (line.place, std::cmp::Reverse(line.offset)));
        self.lines.dedup_by_key(|line| line.place);
        let sorted = self.sorted().map_err(|e| self.fault(e))?;
        files::persist(sorted, &self.path)
    }

    fn fault(&self, error: io::Error) -> FileError {
        FileError::new("write", &self.path, error)
    }

    /// A copy of the lines in their present order.
    fn sorted(&self) -> io::Result<tempfile::NamedTempFile> {
        let mut out = BufWriter::new(files::temporary_in(files::folder_of(&self.path))?);
        let (mut file, mut buffer) = (&self.file, Vec::new());
        for line in &self.lines {
            buffer.resize(line.length as usize, 0);
            file.seek(SeekFrom::Start(line.offset))?;
            file.read_exact(&mut buffer)?;
            out.write_all(&buffer)?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)
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
    /// Opens a file of rows.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub(super) fn open(path: &Path) -> Result<Rows, FileError> {
        let file = guarded::open(path).map_err(|e| FileError::new("read", path, e))?;
        Ok(Rows {
            path: path.to_owned(),
            reader: Box::new(BufReader::with_capacity(BUFFER, file)),
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
        match self.read_line() {
            Ok(false) => None,
            Ok(true) => Some(
                serde_json::from_str(&self.buffer)
                    .map_err(|source| FolderError::row(&self.path, self.line, &source)),
            ),
            Err(error) => {
                // A broken file says the same at each further try.
                self.reader = Box::new(std::io::empty());
                Some(Err(error.into()))
            }
        }
    }
}
