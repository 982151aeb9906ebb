//! Reads the frame headers of a pack one after another, skipping bodies, and goes on behind damage.

use std::fs::File;
use std::io;

use super::frame::{FIXED, Fault, Header, MAGIC};
use super::pack::{PackHeader, read_at};
use super::record::Location;

/// A stretch of a pack.
#[expect(clippy::large_enum_variant, reason = "one at a time, never kept")]
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// A frame.
    Frame(Location, Header),
    /// Bytes that are no frame, up to the next one.
    Damaged { from: u64, to: u64, what: &'static str },
    /// Bytes at the end that are no whole frame: a write that was cut off, if it is the newest pack.
    Torn { from: u64, what: &'static str },
}

/// Walks over a pack.
pub(super) struct Scanner<'a> {
    pack: u32,
    file: &'a File,
    len: u64,
    position: u64,
    window: Vec<u8>,
    window_at: u64,
    step: usize,
}

/// How much is read at once: little where bodies are large and skipped, much where frames are small.
const LEAST: usize = 4 << 10;
const MOST: usize = 256 << 10;

impl<'a> Scanner<'a> {
    /// A scanner over the frames of `file` from `position` up to `len`.
    pub(super) fn new(pack: u32, file: &'a File, position: u64, len: u64) -> Scanner<'a> {
        let position = position.max(PackHeader::LEN as u64);
        Scanner { pack, file, len, position, window: Vec::new(), window_at: 0, step: MOST }
    }

    /// The next stretch; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        if self.position >= self.len {
            return Ok(None);
        }
        let from = self.position;
        let found = match self.header(from)? {
            Ok(header) => {
                let location = header.location(self.pack, from);
                self.position = location.end();
                Found::Frame(location, header)
            }
            Err(what) => self.resume(from, what)?,
        };
        Ok(Some(found))
    }

    /// All bytes of a frame that was found.
    pub(super) fn frame(&mut self, at: Location) -> io::Result<&[u8]> {
        let length = usize::try_from(at.len()).map_err(io::Error::other)?;
        let bytes = self.bytes(at.offset, length)?;
        bytes.get(..length).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The header at `at` of a frame that ends within the pack.
    fn header(&mut self, at: u64) -> io::Result<Result<Header, &'static str>> {
        let mut wanted = FIXED;
        loop {
            let available = self.bytes(at, wanted)?;
            match Header::decode(available) {
                Err(Fault::Short(more)) if more > wanted && at + more as u64 <= self.len => wanted = more,
                Err(Fault::Short(_)) => return Ok(Err("the frame is cut off")),
                Err(Fault::Damaged(what)) => return Ok(Err(what)),
                Ok(header) if header.location(0, at).end() > self.len => return Ok(Err("the frame is cut off")),
                Ok(header) => return Ok(Ok(header)),
            }
        }
    }

    /// At least `wanted` bytes from `at`, or all there are.
    fn bytes(&mut self, at: u64, wanted: usize) -> io::Result<&[u8]> {
        let window_end = self.window_at + self.window.len() as u64;
        let end = self.len.min(at + wanted as u64);
        if at < self.window_at || end > window_end {
            let skipped = at > window_end;
            self.step = if skipped { LEAST } else { (self.step * 2).min(MOST) };
            let length = (self.len - at.min(self.len)).min(self.step.max(wanted) as u64) as usize;
            self.window.resize(length, 0);
            read_at(self.file, &mut self.window, at)?;
            self.window_at = at;
        }
        Ok(&self.window[(at - self.window_at) as usize..])
    }

    /// Looks for the next frame behind damage that begins at `from`.
    fn resume(&mut self, from: u64, what: &'static str) -> io::Result<Found> {
        let mut at = from + 1;
        while at + FIXED as u64 <= self.len {
            let window = self.bytes(at, LEAST)?;
            let Some(next) = window.windows(MAGIC.len()).position(|bytes| bytes == MAGIC) else {
                at += (window.len() - MAGIC.len() + 1) as u64;
                continue;
            };
            at += next as u64;
            if self.header(at)?.is_ok() {
                self.position = at;
                return Ok(Found::Damaged { from, to: at, what });
            }
            at += 1;
        }
        self.position = self.len;
        Ok(Found::Torn { from, what })
    }
}
