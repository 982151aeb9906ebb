//! A place for objects: what this program needs of a folder or a bucket, and why an operation on it failed. The texts of
//! errors contain no credentials: backends pass on kinds of errors and the names of objects, and the console redacts keys.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;

use base::locale::verb;
use base::say;

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
    #[error("{}", say!("there is no object {_0}", "没有对象 {_0}"))]
    NotFound(String),
    /// It exists, but is nothing that this program wrote.
    #[error("{}", say!("the object {object} is not read: {what}", "不读取对象 {object}：{what}"))]
    Refused { object: String, what: &'static str },
    /// The folder or bucket itself.
    #[error("{}", say!("{url} does not exist. {hint}", "{url} 不存在。{hint}"))]
    Missing { url: String, hint: String },
    #[error("{}", say!("access to {url} was denied. {hint}", "无权访问 {url}。{hint}"))]
    Denied { url: String, hint: &'static str },
    #[error("{}", say!("could not {} {url}: {what}", "无法{} {url}：{what}", verb(operation)))]
    Failed {
        operation: &'static str,
        url: String,
        what: String,
    },
    /// A setting in the environment is missing or wrong.
    #[error("{}", say!("{url} cannot be used: {what}", "无法使用 {url}：{what}"))]
    Setup { url: String, what: String },
    #[error("{}", say!("this compeval was built without object stores, so {_0} cannot be used; the released programs have them, and so \
         has `cargo install compeval --features object-stores`", "此 compeval 编译时不含对象存储，因此无法使用 {_0}；发布的程序含有它，`cargo install compeval --features object-stores` 也是"))]
    NotBuilt(String),
    /// It contains objects of another program.
    #[error("{}", say!("{url} contains `{found}` and no cache of compeval. Nothing was written; name an empty prefix or folder of its own", "{url} 中有 `{found}`，而没有 compeval 的缓存。没有写入任何内容；请指定空的前缀或专用的文件夹"))]
    Foreign { url: String, found: String },
    #[error("{}", say!("{url} has format {found}, and this program supports formats up to {known}; use a newer compeval", "{url} 的格式为 {found}，而本程序至多支持格式 {known}；请用更新的 compeval"))]
    NewerFormat { url: String, found: u64, known: u64 },
    #[error("{}", say!("{url} can be read by anybody, and entries contain transcripts; nothing was uploaded. {hint}", "任何人都可读取 {url}，而条目中含有会话记录；没有上传任何内容。{hint}"))]
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
        RemoteError::failed(
            "write",
            object,
            say!("it cannot be encoded: {error}", "无法编码：{error}"),
        )
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
