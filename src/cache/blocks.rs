//! The blocks of a sorted run: a file that is written once and read block by block.
//!
//! No block is kept in memory here. Keys are digests, so any block may be read next; the system's file cache holds the
//! blocks in use.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::pack::read_at;
use crate::files::open_options;

/// The blocks of a run, which do not change any more.
#[derive(Clone, Debug)]
pub(super) struct Blocks(Arc<File>);

impl Blocks {
    /// Opens the file at `path`, which must have `len` bytes.
    pub(super) fn open(path: &Path, len: u64) -> io::Result<Blocks> {
        let file = File::open(path)?;
        let is_whole = file.metadata()?.len() == len;
        if is_whole { Ok(Blocks(Arc::new(file))) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// The block in a range of the file.
    pub(super) fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let len = range.end.checked_sub(range.start).ok_or(io::ErrorKind::InvalidData)?;
        let mut block = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        read_at(&self.0, &mut block, range.start)?;
        Ok(block)
    }
}

/// Writes the blocks of a run.
pub(super) struct BlocksWriter(io::BufWriter<File>);

impl BlocksWriter {
    /// Starts a new file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<BlocksWriter> {
        let file = open_options(path).read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(BlocksWriter(io::BufWriter::with_capacity(1 << 18, file)))
    }

    pub(super) fn push(&mut self, block: &[u8]) -> io::Result<()> {
        self.0.write_all(block)
    }

    /// Writes everything to disk.
    pub(super) fn finish(self) -> io::Result<Blocks> {
        let file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok(Blocks(Arc::new(file)))
    }
}
