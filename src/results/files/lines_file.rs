//! A file of lines under construction. Each has a place; they are written as they come, and put in order at the end.
//!
//! Where nothing changed since the result set that is to be replaced, they come as its file has them. As long as that is
//! so, nothing is written and no line is kept in memory: the file is compared, and linked at the end. With the first
//! line that differs, what was the same until then is copied.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memchr::memchr_iter;

use base::files::{self, FileError};
use base::redaction::redact_bytes;

/// How lines stand in a file once it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsForm {
    /// As they are.
    Plain,
    /// Compressed by zstd; the name of the file says so.
    Compressed,
}

impl RowsForm {
    /// The path of a file in this form, from that of the plain one.
    pub(in crate::results) fn path(self, plain: &Path) -> PathBuf {
        match self {
            RowsForm::Plain => plain.to_owned(),
            RowsForm::Compressed => plain.with_added_extension("zst"),
        }
    }

    /// Reads the lines of a file in this form, by the path of the plain one.
    pub(super) fn open(self, plain: &Path) -> io::Result<Box<dyn BufRead + Send>> {
        let file = File::open(self.path(plain))?;
        Ok(match self {
            RowsForm::Plain => Box::new(BufReader::with_capacity(BUFFER, file)),
            RowsForm::Compressed => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(file)?)),
        })
    }
}

/// Higher levels take several times as long for a twentieth of the size.
const LEVEL: i32 = 3;
/// Bytes that are read or copied at once.
const BUFFER: usize = 1 << 16;

/// The file under construction; `P` are the places of its lines.
pub struct LinesFile<P> {
    path: PathBuf,
    form: RowsForm,
    file: File,
    /// The same file, where it gets its name when it is finished.
    unnamed: Option<tempfile::NamedTempFile>,
    lines: LinesState<P>,
}

enum LinesState<P> {
    /// As they stand in an earlier file, so far.
    Same(Earlier<P>),
    Own {
        lines: Vec<Line<P>>,
        length: u64,
    },
}

/// Where a line stands in the file.
#[derive(Clone, Copy, Debug)]
struct Line<P> {
    place: P,
    offset: u64,
    length: u32,
}

/// An earlier file, and the places of the lines that came as it has them.
struct Earlier<P> {
    /// That of the plain form.
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    places: Vec<P>,
}

impl<P: Ord + Copy> LinesFile<P> {
    /// Begins the file anew, for whoever reads along, to be compared with `earlier` if there is such a file in the same form.
    pub(super) fn create(path: &Path, form: RowsForm, earlier: Option<&Path>) -> Result<LinesFile<P>, FileError> {
        // not truncated: it may be a second name of a file of another set
        [RowsForm::Plain, RowsForm::Compressed].iter().try_for_each(|form| files::remove_if_there(&form.path(path)))?;
        let file = files::open_options(path).read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|e| FileError::new("write", path, e))?;
        Ok(LinesFile { path: path.to_owned(), form, file, unnamed: None, lines: LinesState::new(form, earlier) })
    }

    /// The same, except that there is no such file before it is finished.
    pub(super) fn create_unnamed(path: &Path, earlier: Option<&Path>) -> Result<LinesFile<P>, FileError> {
        let fault = |e| FileError::new("write", path, e);
        let form = RowsForm::Plain;
        let unnamed = files::temporary_in(files::folder_of(path)).map_err(fault)?;
        let file = unnamed.as_file().try_clone().map_err(fault)?;
        let lines = LinesState::new(form, earlier);
        Ok(LinesFile { path: path.to_owned(), form, file, unnamed: Some(unnamed), lines })
    }

    /// Appends lines; they are in the file at once, unless an earlier one has them. `places` are theirs.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn append(&mut self, places: &[P], lines: &str) -> Result<(), FileError> {
        let lines = redact_bytes(lines.as_bytes());
        if let LinesState::Same(earlier) = &mut self.lines {
            if earlier.consume_matching_lines(places, &lines) {
                return Ok(());
            }
            self.leave_earlier()?;
        }
        self.write(places, &lines)
    }

    fn write(&mut self, places: &[P], bytes: &[u8]) -> Result<(), FileError> {
        let fault = |e: io::Error| FileError::new("write", &self.path, e);
        let LinesState::Own { lines, length } = &mut self.lines else { return Ok(()) };
        self.file.write_all(bytes).map_err(fault)?;
        let mut start = 0;
        for (place, end) in places.iter().zip(memchr_iter(b'\n', bytes)) {
            let bytes = u32::try_from(end + 1 - start).map_err(|e| fault(io::Error::other(e)))?;
            lines.push(Line { place: *place, offset: *length, length: bytes });
            *length += u64::from(bytes);
            start = end + 1;
        }
        Ok(())
    }

    /// Copies the lines that were the same until now.
    fn leave_earlier(&mut self) -> Result<(), FileError> {
        let own = LinesState::Own { lines: Vec::new(), length: 0 };
        let LinesState::Same(Earlier { path, places, .. }) = std::mem::replace(&mut self.lines, own) else {
            return Ok(());
        };
        let fault = |e| FileError::new("read", &path, e);
        let mut reader = self.form.open(&path).map_err(fault)?;
        let (mut bytes, mut from) = (Vec::new(), 0);
        for until in 1..=places.len() {
            reader.read_until(b'\n', &mut bytes).map_err(fault)?;
            if bytes.len() > BUFFER || until == places.len() {
                self.write(places.get(from..until).unwrap_or_default(), &bytes)?;
                from = until;
                bytes.clear();
            }
        }
        Ok(())
    }

    pub(in crate::results) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::results) fn len(&self) -> usize {
        match &self.lines {
            LinesState::Same(earlier) => earlier.places.len(),
            LinesState::Own { lines, .. } => lines.len(),
        }
    }

    /// Puts the lines in the order of their places. Of two lines in one place the later one stands. Returns whether the
    /// earlier file has the very same lines.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn finish(mut self) -> Result<bool, FileError> {
        if let LinesState::Same(earlier) = &mut self.lines {
            if earlier.is_at_its_end() {
                self.link_earlier()?;
                return Ok(true);
            }
            self.leave_earlier()?;
        }
        let fault = |e| FileError::new("write", &self.path, e);
        let LinesState::Own { lines, .. } = &mut self.lines else { return Ok(false) };
        let is_sorted = lines.is_sorted_by(|a, b| a.place < b.place);
        if !is_sorted {
            lines.sort_by_key(|line| (line.place, std::cmp::Reverse(line.offset)));
            lines.dedup_by_key(|line| line.place);
        }
        match self.form {
            RowsForm::Plain if is_sorted => match self.unnamed.take() {
                Some(file) => files::keep(file, &self.path)?,
                None => self.file.sync_all().map_err(fault)?,
            },
            RowsForm::Plain => {
                let out = self.copy_to(self.temporary()?).map_err(fault)?;
                files::keep(out.into_inner().map_err(|e| fault(e.into_error()))?, &self.path)?;
            }
            RowsForm::Compressed => {
                let out = zstd::Encoder::new(self.temporary()?, LEVEL).map_err(fault)?;
                let out = self.copy_to(out).and_then(zstd::Encoder::finish).map_err(fault)?;
                files::keep(out.into_inner().map_err(|e| fault(e.into_error()))?, &self.form.path(&self.path))?;
                files::remove_if_there(&self.path)?;
            }
        }
        Ok(false)
    }

    fn link_earlier(&self) -> Result<(), FileError> {
        let LinesState::Same(Earlier { path, .. }) = &self.lines else { return Ok(()) };
        files::remove_if_there(&self.path)?;
        files::link_or_copy(&self.form.path(path), &self.form.path(&self.path))
    }

    fn temporary(&self) -> Result<BufWriter<tempfile::NamedTempFile>, FileError> {
        let file = files::temporary_in(files::folder_of(&self.path));
        file.map(BufWriter::new).map_err(|e| FileError::new("write", &self.path, e))
    }

    fn copy_to<W: Write>(&self, mut out: W) -> io::Result<W> {
        let LinesState::Own { lines, .. } = &self.lines else { return Ok(out) };
        let (mut file, mut buffer) = (&self.file, Vec::new());
        for line in lines {
            buffer.resize(line.length as usize, 0);
            file.seek(SeekFrom::Start(line.offset))?;
            file.read_exact(&mut buffer)?;
            out.write_all(&buffer)?;
        }
        Ok(out)
    }
}

impl<P: Ord + Copy> LinesState<P> {
    fn new(form: RowsForm, earlier: Option<&Path>) -> LinesState<P> {
        let earlier = earlier.and_then(|earlier| Earlier::open(earlier, form).ok());
        earlier.map_or(LinesState::Own { lines: Vec::new(), length: 0 }, LinesState::Same)
    }
}

impl<P: Ord + Copy> Earlier<P> {
    fn open(path: &Path, form: RowsForm) -> io::Result<Earlier<P>> {
        let reader = form.open(path)?;
        Ok(Earlier { path: path.to_owned(), reader, buffer: Vec::new(), places: Vec::new() })
    }

    /// Whether its next lines are these, and follow those before them. Where it cannot be read they are not.
    fn consume_matching_lines(&mut self, places: &[P], lines: &[u8]) -> bool {
        self.buffer.resize(lines.len(), 0);
        let is_rising = self.places.last().into_iter().chain(places).is_sorted_by(|a, b| a < b);
        let is_same = is_rising && self.reader.read_exact(&mut self.buffer).is_ok() && self.buffer == lines;
        if is_same {
            self.places.extend(places);
        }
        is_same
    }

    fn is_at_its_end(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}
