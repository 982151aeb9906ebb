//! Errors of the cache, worded for the user.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::ActionKey;
use base::files::FileError;
use base::locale::{localized, verb};
use base::say;

/// Why a cache operation failed.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("{}", say!("{} is not a cache of this version of compeval: it contains `{found}`, and no FORMAT file of this version. Nothing in it was changed. Use an empty or a new folder as the cache", "{} 不是本版本 compeval 的缓存：含有 `{found}`，而没有本版本的 FORMAT 文件。没有改动其中任何内容。请用空的或新的文件夹作缓存" ,
        path.display()))]
    NotACache { path: PathBuf, found: String },
    #[error("{}", say!("{} has cache format {found}, and this program supports formats up to {known}; use a newer compeval, or another cache folder", "{} 的缓存格式为 {found}，而本程序至多支持格式 {known}；请用更新的 compeval，或另一缓存文件夹" ,
        path.display()))]
    NewerFormat {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    /// `holder` names the command, the process id and the start, as the other process wrote them into the lock file.
    #[error("{}", say!("the cache {} is in use by {holder}. Wait until it has ended, or use another cache folder", "缓存 {} 正由 {holder} 使用。请等其结束，或用另一缓存文件夹", path.display()))]
    Locked { path: PathBuf, holder: String },
    #[error("{}", say!("could not {} {}: {source}", "无法{} {}：{source}", verb(operation), path.display()))]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// An earlier write failed; `cause` is that first failure.
    #[error("{}", say!("the cache {} can no longer be written to: {cause}", "缓存 {} 已无法写入：{cause}", path.display()))]
    Poisoned { path: PathBuf, cause: String },
    /// The folder was removed or replaced while this process wrote to it.
    #[error("{}", say!("the cache {} was removed or replaced while it was in use; what this process stored in it is lost unless you put that folder back", "缓存 {} 在使用中被删除或替换；除非放回该文件夹，本进程存入的内容已丢失" ,
        path.display()))]
    Removed { path: PathBuf },
    #[error("{}", say!("an output of {bytes} bytes is too large for the cache (limit: {limit} bytes)", "{bytes} 字节的输出对缓存过大（上限：{limit} 字节）"))]
    TooLarge { bytes: u64, limit: u64 },
    #[error("{}", say!("`{prefix}` is not a key: keys are hexadecimal digits, at most 64; `cache ls` lists them", "`{prefix}` 不是键：键为至多 64 位十六进制数；`cache ls` 列出全部"))]
    BadPrefix { prefix: String },
    #[error("{}", say!("`{prefix}` is the beginning of several keys: {}; write more digits", "`{prefix}` 是多个键的开头：{}；请多写几位", list_keys(candidates)))]
    AmbiguousPrefix {
        prefix: String,
        candidates: Vec<ActionKey>,
    },
    #[error("{}", say!("no entry has a key that begins with `{prefix}`; `cache ls` lists the keys", "没有条目的键以 `{prefix}` 开头；`cache ls` 列出全部键"))]
    UnknownPrefix { prefix: String },
    #[error("{}", say!("{_0}. Run `compeval cache verify`, then run the pipeline to make it again", "{_0}。请运行 `compeval cache verify`，然后重新运行以重新产生"))]
    Damaged(#[from] Damage),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}", say!("{} cannot be imported: {what}; nothing was added", "无法导入 {}：{what}；没有添加任何内容", path.display()))]
    BadImport { path: PathBuf, what: String },
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

    /// The error of a caller who could not encode `what`.
    pub fn unencoded(what: &str, error: &str) -> CacheError {
        CacheError::Io {
            operation: "encode",
            path: what.into(),
            source: io::Error::other(error.to_owned()),
        }
    }
}

fn list_keys(keys: &[ActionKey]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = keys.iter().take(SHOWN).map(|key| key.0.short()).collect();
    match keys.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => say!(
            "{} and {more} more",
            "{} 等，另有 {more} 个",
            shown.join(", ")
        ),
    }
}

/// A range of a pack that differs from what was written. The entry in it counts as missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say!("{}{} at byte {offset} {}: {what}", "{}{} 字节 {offset} 处{}：{what}", entry_name(key.as_ref()), path.display(), if *is_unread { localized("cannot be read", "无法读取") } else { localized("is damaged", "已损坏") }))]
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
    key.map(|key| {
        say!(
            "the cache entry {} in ",
            "缓存条目 {}，位于 ",
            key.0.short()
        )
    })
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
