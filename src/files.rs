//! Atomic writes: a file is complete or absent, also after a crash.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::redaction::redact_bytes;

/// A file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} `{}`", path.display())]
pub struct FileError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// An error while doing `verb` to `path`.
    pub fn new(verb: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError { verb, path: path.to_owned(), source }
    }

    /// Whether the disk is full.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Writes `path` by a temporary file in the same folder and a rename. Creates the folder if it does not exist.
/// API keys are redacted.
///
/// # Errors
/// The error of the file system, with the path.
pub fn write_whole(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let fault = |e| FileError::new("write", path, e);
    fs::create_dir_all(folder).map_err(fault)?;
    let mut file = tempfile::Builder::new().prefix(".").suffix(".tmp").tempfile_in(folder).map_err(fault)?;
    file.write_all(&redact_bytes(bytes.as_ref())).map_err(fault)?;
    keep(file, path)
}

/// Renames a finished temporary file to `path`.
///
/// # Errors
/// The error of the file system, with the path.
pub fn keep(file: tempfile::NamedTempFile, path: &Path) -> Result<(), FileError> {
    open_to_others(file.path()).map_err(|e| FileError::new("write", path, e))?;
    file.persist(path).map(drop).map_err(|e| FileError::new("write", path, e.error))
}

/// Temporary files are private to their owner; results can be read by others.
#[cfg(unix)]
fn open_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Reads a text file.
///
/// # Errors
/// The error of the file system, with the path; also for invalid UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|e| FileError::new("read", path, e))
}
