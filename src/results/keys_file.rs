//! `keys.txt`: the actions that a result set stands on, sorted, a key a line.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::action::{ActionKey, Digest};
use crate::files::{self, FileError};

/// The file under construction: keys wait in a file without a name. Until they are written the keys of an earlier
/// incomplete set stand in theirs.
#[derive(Debug)]
pub struct KeysFile {
    path: PathBuf,
    waiting: BufWriter<File>,
}

impl KeysFile {
    pub(super) fn create(path: &Path) -> Result<KeysFile, FileError> {
        let waiting = tempfile::tempfile_in(files::folder_of(path)).map_err(|e| FileError::new("write", path, e))?;
        Ok(KeysFile { path: path.to_owned(), waiting: BufWriter::new(waiting) })
    }

    /// Adds the key of an action.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn push(&mut self, key: ActionKey) -> Result<(), FileError> {
        self.waiting.write_all(&key.0.0).map_err(|e| FileError::new("write", &self.path, e))
    }

    /// Writes all keys, each once.
    ///
    /// # Errors
    /// Whatever the file system says, with the path.
    pub fn finish(self) -> Result<(), FileError> {
        let fault = |e| FileError::new("write", &self.path, e);
        let mut file = self.waiting.into_inner().map_err(|e| fault(e.into_error()))?;
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(fault)?;
        let (keys, _) = bytes.as_chunks_mut::<{ size_of::<Digest>() }>();
        keys.sort_unstable();
        let mut out = BufWriter::new(files::temporary_in(files::folder_of(&self.path)).map_err(fault)?);
        for same in keys.chunk_by(|a, b| a == b) {
            same.first().map_or(Ok(()), |key| writeln!(out, "{}", Digest(*key))).map_err(fault)?;
        }
        files::keep(out.into_inner().map_err(|e| fault(e.into_error()))?, &self.path)
    }
}
