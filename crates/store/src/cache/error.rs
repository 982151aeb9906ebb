//! Errors of the cache, worded for the user.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::ActionKey;
use base::files::FileError;

/// Why a cache operation failed.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The request was refused; the cache was not changed.
    #[error("{_0}")]
    Refused(String),
    #[error("could not {operation} {}: {source}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// An earlier write failed; `cause` is that first failure.
    #[error("the cache {} can no longer be written to: {cause}", path.display())]
    Poisoned { path: PathBuf, cause: String },
    /// The folder was removed or replaced while this process wrote to it.
    #[error("the cache {} was removed or replaced while it was in use; what this process stored in it is lost unless you put that folder back" ,
        path.display())]
    Removed { path: PathBuf },
    /// The beginning of a key that does not name one entry.
    #[error("`{prefix}` {what}")]
    Prefix { prefix: String, what: String },
    #[error("{_0}. Run `compeval cache verify`, then run the pipeline to make it again")]
    Damaged(#[from] Damage),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("an entry of another cache is damaged: {what}; it was not added")]
    BadImport { what: String },
}

impl CacheError {
    /// Adds the operation (a verb, as in "could not read") and the path to an I/O error.
    pub(super) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
        move |source| CacheError::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the folder can only be read.
    pub fn is_read_only(&self) -> bool {
        let CacheError::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
        )
    }

    /// The error of a caller who could not encode `what`.
    pub fn unencoded(what: &str, error: &str) -> CacheError {
        CacheError::Io {
            operation: "encode",
            path: what.into(),
            source: io::Error::other(error.to_owned()),
        }
    }
}

/// A range of a pack that differs from what was written. The entry in it counts as missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{} at byte {offset} {}: {what}", entry_name(key.as_ref()), path.display(), if *is_unread { "cannot be read" } else { "is damaged" })]
pub struct Damage {
    /// The entry, if it is known.
    pub key: Option<ActionKey>,
    /// The pack.
    pub path: PathBuf,
    /// Where in the pack it begins.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The system refused to read it: it may be sound.
    pub is_unread: bool,
}

fn entry_name(key: Option<&ActionKey>) -> String {
    key.map(|key| format!("the cache entry {} in ", key.0.short()))
        .unwrap_or_default()
}

/// Why the index could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndexFault {
    /// Another process has it open.
    Locked(String),
    /// Its content is not what was written, or sled failed.
    Broken(String),
}

/// The result of an operation on the index.
pub(super) type IndexResult<T> = Result<T, IndexFault>;

impl IndexFault {
    pub(super) fn broken(what: impl ToString) -> IndexFault {
        IndexFault::Broken(what.to_string())
    }

    pub(super) fn text(&self) -> &str {
        match self {
            IndexFault::Locked(text) | IndexFault::Broken(text) => text,
        }
    }
}
