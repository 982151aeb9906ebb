//! A place for objects: what this program needs of a folder.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::error::RemoteError;

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
    /// It was not there, and is now.
    Written,
    /// There was one of this name, which was left alone.
    Exists,
}

type BackendFuture<'a, T> = BoxFuture<'a, Result<T, RemoteError>>;

/// A place for objects. Names are relative to it, with `/`.
pub trait Remote: fmt::Debug + Send + Sync {
    /// The objects below a folder, in no order; for an empty name what is directly below the root, folders included. Fails
    /// if the place itself is missing.
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>>;

    /// A range of an object, or all of it.
    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes>;

    /// Writes an object as a whole, unless there is one of this name.
    fn write_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, WriteOutcome>;

    /// Writes an object as a whole, in the place of one of this name.
    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()>;

    /// Removes an object; one that is missing is no error.
    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()>;

    /// Fails if anybody can read what is written here, as far as that can be found out.
    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()>;
}
