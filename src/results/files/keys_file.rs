//! `keys.txt`: the keys of the actions that a result set was made from, sorted, one per line.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::action::{ActionKey, Digest};
use base::files::{self, FileError};

/// Bytes of a key.
const KEY: usize = size_of::<Digest>();
/// How many keys are sorted at once: 4 MB.
const AT_ONCE: u64 = 1 << 17;

/// The file under construction. Keys are collected in a file without a name, so that until they are written `keys.txt`
/// has the keys of an earlier incomplete set.
#[derive(Debug)]
pub struct KeysFile {
    path: PathBuf,
    waiting: BufWriter<File>,
}

impl KeysFile {
    /// Begins the file anew.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn create(path: &Path) -> Result<KeysFile, FileError> {
        let waiting = tempfile::tempfile_in(files::folder_of(path))
            .map_err(|e| FileError::new("write", path, e))?;
        Ok(KeysFile {
            path: path.to_owned(),
            waiting: BufWriter::new(waiting),
        })
    }

    /// Adds the key of an action.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn push(&mut self, key: ActionKey) -> Result<(), FileError> {
        self.waiting
            .write_all(&key.0.0)
            .map_err(|e| FileError::new("write", &self.path, e))
    }

    /// Writes all keys, each once.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn finish(self) -> Result<(), FileError> {
        let KeysFile { path, waiting } = self;
        let written = sorted_copy(waiting, &path).map_err(|e| FileError::new("write", &path, e))?;
        files::persist(written, &path)
    }
}

/// Writes the collected keys, sorted, to a temporary file beside `path`.
fn sorted_copy(waiting: BufWriter<File>, path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let file = waiting
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    let out = BufWriter::new(files::temporary_in(files::folder_of(path))?);
    write_sorted(file, out, AT_ONCE)?
        .into_inner()
        .map_err(io::IntoInnerError::into_error)
}

/// Writes the keys of a file in order, each once. Keys are distributed evenly, so they are divided by their first byte
/// into parts of about `at_once` keys, and the file is read once for each part.
fn write_sorted<W: Write>(mut file: File, mut out: W, at_once: u64) -> io::Result<W> {
    let total = file.metadata()?.len() / KEY as u64;
    let parts = total.div_ceil(at_once).clamp(1, 256);
    for part in 0..parts {
        file.rewind()?;
        let (mut reader, mut key, mut keys) = (
            BufReader::with_capacity(1 << 16, &file),
            [0; KEY],
            Vec::new(),
        );
        for _ in 0..total {
            reader.read_exact(&mut key)?;
            if u64::from(key[0]) * parts / 256 == part {
                keys.push(key);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
            .try_for_each(|key| writeln!(out, "{}", Digest(key)))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_of_several_parts_are_sorted_and_each_is_there_once() {
        let mut file = tempfile::tempfile().unwrap();
        let keys: Vec<Digest> = (0..3000_u32)
            .map(|n| Digest::hash((n % 2000).to_le_bytes()))
            .collect();
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.0).collect();
        file.write_all(&bytes).unwrap();
        let written = String::from_utf8(write_sorted(file, Vec::new(), 500).unwrap()).unwrap();
        let expected: BTreeSet<String> = keys.iter().map(Digest::to_string).collect();
        assert!(written.lines().eq(expected.iter().map(String::as_str)));
    }
}
