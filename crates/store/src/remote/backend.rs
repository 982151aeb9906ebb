//! A place for objects: what this program needs of a folder or a bucket, and why an operation on it failed. The texts of
//! errors contain no credentials: backends pass on kinds of errors and the names of objects, and the console redacts keys.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedObject {
    /// Relative to the remote, with `/`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written, by the clock of the place.
    pub written: Option<SystemTime>,
}

/// Whether an object was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The object did not exist, and was written.
    Written,
    /// An object of this name existed and was left as it is.
    Exists,
}

/// The result of an operation on a remote.
pub(super) type BackendFuture<'a, T> = BoxFuture<'a, Result<T, RemoteError>>;

/// A place for objects. Names are relative to it, with `/`.
pub trait Remote: fmt::Debug + Send + Sync {
    /// The objects below a folder, in no order; for an empty name what is directly below the root, folders included. Fails
    /// if the place itself is missing.
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>>;

    /// A range of an object, or all of it.
    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes>;

    /// Writes an object as a whole, unless there is one of this name.
    fn write_if_absent<'a>(
        &'a self,
        name: &'a str,
        bytes: Bytes,
    ) -> BackendFuture<'a, WriteOutcome>;

    /// Writes an object as a whole. Replaces one of this name.
    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()>;

    /// Removes an object; one that is missing is not an error.
    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()>;

    /// Fails if anybody can read what is written here, as far as that can be found out.
    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()>;
}

/// Why an operation on a remote failed.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// There is no such object, or it ends before the range.
    #[error("there is no object {_0}")]
    NotFound(String),
    /// It exists, but is nothing that this program wrote.
    #[error("the object {object} is not read: {what}")]
    Refused { object: String, what: &'static str },
    /// The folder or bucket itself.
    #[error("{url} does not exist. {hint}")]
    Missing { url: String, hint: String },
    #[error("access to {url} was denied. {hint}")]
    Denied { url: String, hint: &'static str },
    #[error("could not {operation} {url}: {what}")]
    Failed {
        operation: &'static str,
        url: String,
        what: String,
    },
    /// A setting in the environment is missing or wrong.
    #[error("{url} cannot be used: {what}")]
    Setup { url: String, what: String },
    #[error(
        "this compeval was built without object stores, so {_0} cannot be used; the released programs have them, and so \
         has `cargo install compeval --features object-stores`"
    )]
    NotBuilt(String),
    /// It contains objects of another program.
    #[error(
        "{url} contains `{found}` and no cache of compeval. Nothing was written; name an empty prefix or folder of its own"
    )]
    Foreign { url: String, found: String },
    #[error(
        "{url} has format {found}, and this program supports formats up to {known}; use a newer compeval"
    )]
    NewerFormat { url: String, found: u64, known: u64 },
    #[error(
        "{url} can be read by anybody, and entries contain transcripts; nothing was uploaded. {hint}"
    )]
    Public { url: String, hint: String },
}

impl RemoteError {
    pub(super) fn failed(
        operation: &'static str,
        url: &str,
        what: impl Into<String>,
    ) -> RemoteError {
        RemoteError::Failed {
            operation,
            url: url.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn foreign(url: &str, found: &str) -> RemoteError {
        RemoteError::Foreign {
            url: url.to_owned(),
            found: found.to_owned(),
        }
    }

    /// The error for an object that cannot be encoded.
    pub(super) fn unencoded(object: &str, error: &postcard::Error) -> RemoteError {
        RemoteError::failed("write", object, format!("it cannot be encoded: {error}"))
    }

    /// Whether the user has to change something before it can work.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            RemoteError::NotFound(_) | RemoteError::Failed { .. } | RemoteError::Refused { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_object_stores_says_which_one_has_them() {
        let error = RemoteError::NotBuilt("s3://bucket/x".into());
        let text = error.to_string();
        assert!(
            text.contains("s3://bucket/x") && text.contains("--features object-stores"),
            "{text}"
        );
        assert!(error.is_input());
    }
}
