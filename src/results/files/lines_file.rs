//! A file of lines under construction. Each line has a place. Lines are written in the order in which they are made, and
//! sorted at the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memchr::memchr_iter;

use base::files::{self, FileError};
use base::guarded;
use base::redaction::redact_bytes;

/// The form of a finished file of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsForm {
    /// Plain text.
    Plain,
    /// Compressed by zstd, which the name of the file shows.
    Compressed,
}

impl RowsForm {
    /// The path of a file in this form, from the path of the plain one.
    pub(crate) fn path(self, plain: &Path) -> PathBuf {
        match self {
            RowsForm::Plain => plain.to_owned(),
            RowsForm::Compressed => plain.with_added_extension("zst"),
        }
    }

    /// Opens a file in this form, by the path of the plain one.
    pub(super) fn open(self, plain: &Path) -> io::Result<Box<dyn BufRead + Send>> {
        let file = guarded::open(&self.path(plain))?;
        Ok(match self {
            RowsForm::Plain => Box::new(BufReader::with_capacity(BUFFER, file)),
            RowsForm::Compressed => {
                Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(file)?))
            }
        })
    }
}

/// Higher levels take several times as long and save a twentieth of the size.
const LEVEL: i32 = 3;
/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// The file under construction; `P` is the type of places.
pub struct LinesFile<P> {
    path: PathBuf,
    form: RowsForm,
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
    pub(super) fn create(path: &Path, form: RowsForm) -> Result<LinesFile<P>, FileError> {
        // removed, not truncated: it may be a hard link to a file of another set
        [RowsForm::Plain, RowsForm::Compressed]
            .iter()
            .try_for_each(|form| files::remove_if_there(&form.path(path)))?;
        let file = files::open_options(path)
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = file.map_err(|e| FileError::new("write", path, e))?;
        Ok(LinesFile {
            path: path.to_owned(),
            form,
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
        let (path, form) = (path.to_owned(), RowsForm::Plain);
        Ok(LinesFile {
            path,
            form,
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
        let is_sorted = self.lines.is_sorted_by(|a, b| a.place < b.place);
        if !is_sorted {
            self.lines
                .sort_by_key(|line| (line.place, std::cmp::Reverse(line.offset)));
            self.lines.dedup_by_key(|line| line.place);
        }
        match self.form {
            RowsForm::Plain if is_sorted => match self.unnamed.take() {
                Some(file) => files::persist(file, &self.path)?,
                None => self.file.sync_all().map_err(|e| self.fault(e))?,
            },
            RowsForm::Plain => {
                let out = self
                    .copy_to(self.temporary()?)
                    .and_then(into_file)
                    .map_err(|e| self.fault(e))?;
                files::persist(out, &self.path)?;
            }
            RowsForm::Compressed => {
                let out =
                    zstd::Encoder::new(self.temporary()?, LEVEL).and_then(|out| self.copy_to(out));
                let out = out
                    .and_then(zstd::Encoder::finish)
                    .and_then(into_file)
                    .map_err(|e| self.fault(e))?;
                files::persist(out, &self.form.path(&self.path))?;
                files::remove_if_there(&self.path)?;
            }
        }
        Ok(())
    }

    fn temporary(&self) -> Result<BufWriter<tempfile::NamedTempFile>, FileError> {
        let file = files::temporary_in(files::folder_of(&self.path));
        file.map(BufWriter::new).map_err(|e| self.fault(e))
    }

    fn fault(&self, error: io::Error) -> FileError {
        FileError::new("write", &self.path, error)
    }

    fn copy_to<W: Write>(&self, mut out: W) -> io::Result<W> {
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

/// Flushes a buffer and returns its file.
fn into_file(buffer: BufWriter<tempfile::NamedTempFile>) -> io::Result<tempfile::NamedTempFile> {
    buffer.into_inner().map_err(io::IntoInnerError::into_error)
}
