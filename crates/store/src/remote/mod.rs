//! A cache that a team, its CI and the parts of a run share: an object for each key, in a folder or a bucket.
//!
//! - A [`Remote`] gets an object, and puts one unless there is one: a `folder`, or a bucket or web server
//!   (`object_store`, in builds with the feature `object-stores`).
//! - An object is one entry in the frame that packs use, named by its key. Its inputs must hash to the name.
//! - [`SharedCache`] connects a remote with a local cache, and [`RemoteEntries`] is one that a plan reads.
//!
//! Invariants: what is in the remote is used in place of what was just made, before anything depends on it; what does
//! not verify is a miss; every call is limited in bytes and seconds; a remote that fails causes one warning and ends no
//! run. Whoever may write to the remote is trusted, as far as an optional key does not say otherwise.

mod folder;
#[cfg(feature = "object-stores")]
mod object_store;
mod settings;
mod shared;

pub use crate::digest::RemoteKey;
pub use settings::RemoteUrl;
pub use settings::{DeclaredRemote, GivenRemote, RemoteMode, RemoteSettings};
pub use shared::RemoteEntries;
pub use shared::{Exchanged, Found, SharedCache};

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;

/// The most bytes of an object. A larger output stays on this machine.
const MAX_OBJECT: u64 = 64 << 20;

/// The result of a call to a remote.
type RemoteFuture<'a, T> = BoxFuture<'a, Result<T, RemoteError>>;

/// A place for objects. Names are relative to it, with `/`.
trait Remote: fmt::Debug + Send + Sync {
    /// An object; `None` if there is none of this name.
    fn get<'a>(&'a self, name: &'a str) -> RemoteFuture<'a, Option<Bytes>>;

    /// Writes an object as a whole, unless there is one of this name and it is not to be replaced. Returns whether it was
    /// written.
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes, replaces: bool) -> RemoteFuture<'a, bool>;
}

/// Why a call to a remote failed. The texts contain no credentials: they have kinds of errors and the names of objects, and
/// the console redacts keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// An object that this program did not write. It counts as missing.
    #[error("{_0}")]
    Refused(&'static str),
    /// The user has to change something: the remote does not exist, access is denied, or a setting is missing or wrong.
    #[error("{_0}")]
    Input(String),
    /// A call failed.
    #[error("{_0}")]
    Failed(String),
    /// It is to be written, which it cannot be.
    #[error("a web server is only read; write to the folder or bucket that it serves")]
    ReadOnly,
    /// This program was built without what it needs.
    #[error(
        "this compeval was built without object stores, so {_0} cannot be used; the released programs have them, and so \
         has `cargo install compeval --features object-stores`"
    )]
    NotBuilt(String),
}

impl RemoteError {
    pub(super) fn failed(
        operation: &'static str,
        url: &str,
        what: impl Into<String>,
    ) -> RemoteError {
        RemoteError::Failed(format!("could not {operation} {url}: {}", what.into()))
    }

    /// There is no such remote.
    pub(super) fn missing(url: &str, hint: &str) -> RemoteError {
        RemoteError::Input(format!("{url} does not exist. {hint}"))
    }

    pub(super) fn denied(url: &str, hint: &str) -> RemoteError {
        RemoteError::Input(format!("access to {url} was denied. {hint}"))
    }

    /// Whether the user has to change something before it can work.
    pub fn is_input(&self) -> bool {
        !matches!(self, RemoteError::Failed(_) | RemoteError::Refused(_))
    }
}
