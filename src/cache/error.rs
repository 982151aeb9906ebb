//! What can go wrong with the cache, in sentences for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::action::ActionKey;
use crate::files::FileError;

/// Why the cache could not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder holds something else.
    #[error(
        "{} is not a compeval cache: it holds `{found}` and no FORMAT file; nothing in it was touched. Name an empty or a new folder as the cache",
        path.display()
    )]
    NotACache {
        /// The folder.
        path: PathBuf,
        /// A file or folder found in it.
        found: String,
    },
    /// The cache was written by a newer program.
    #[error(
        "{} has cache format {found}, and this program knows formats up to {known}; use the newer compeval, or another cache folder",
        path.display()
    )]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format known.
        known: u32,
    },
    /// Another process writes to it.
    #[error("the cache {} is in use by {holder}. Wait until it has ended, or use another cache folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Command, process id and since when, as the holder wrote them.
        holder: String,
    },
    /// The operating system refused.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The index failed, and making it anew from the packs did not help.
    #[error("the index {} cannot be used: {what}. Delete that folder: it is made again from the packs", path.display())]
    Index {
        /// The index folder.
        path: PathBuf,
        /// What it said.
        what: String,
    },
    /// An earlier write failed, so nothing more is written.
    #[error(
        "the cache {} can no longer be written to: {cause}. What was kept before is good; remedy the cause and run again",
        path.display()
    )]
    Poisoned {
        /// The folder.
        path: PathBuf,
        /// The first failure.
        cause: String,
    },
    /// A body that no pack can hold.
    #[error("an output of {bytes} bytes is larger than the cache can keep ({limit} bytes)")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A key prefix that is none.
    #[error("`{prefix}` is not a key: keys are hexadecimal digits, at most 64; `cache ls` shows them")]
    BadPrefix {
        /// As written.
        prefix: String,
    },
    /// A key prefix of several entries.
    #[error("`{prefix}` is the beginning of several keys: {}; write more digits", Candidates(candidates))]
    AmbiguousPrefix {
        /// As written.
        prefix: String,
        /// The entries it may mean, in order.
        candidates: Vec<ActionKey>,
    },
    /// A key prefix of no entry.
    #[error("no entry's key begins with `{prefix}`; `cache ls` shows the keys")]
    UnknownPrefix {
        /// As written.
        prefix: String,
    },
    /// An entry to be exported that is not there.
    #[error("the entry {key} is not in the cache, so it cannot be exported; run the pipeline first")]
    Missing {
        /// Its key.
        key: ActionKey,
    },
    /// An entry to be exported is damaged.
    #[error("{0}. Run `compeval cache verify`, then run the pipeline to make it again")]
    Damaged(#[from] Damage),
    /// A place that an export is not written to.
    #[error("nothing was exported to {}: {what}. Name another file", path.display())]
    BadTarget {
        /// The file.
        path: PathBuf,
        /// Why it stays as it is.
        what: &'static str,
    },
    /// A file could not be given its name.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file to be imported that cannot be.
    #[error("{} cannot be imported: {what}; nothing was added", path.display())]
    BadImport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
}

impl CacheError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
        move |source| CacheError::Io { doing, path: path.to_owned(), source }
    }
}

struct Candidates<'a>(&'a [ActionKey]);

impl fmt::Display for Candidates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (index, key) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", key.0.short())?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A stretch of a pack that is not what was written. The entry it held counts as missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{} at byte {offset} is damaged: {what}", Named(key), path.display())]
pub struct Damage {
    /// The entry, where it is known.
    pub key: Option<ActionKey>,
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What was found.
    pub what: String,
}

struct Named<'a>(&'a Option<ActionKey>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => write!(f, "the cache entry {} in ", key.0.short()),
            None => Ok(()),
        }
    }
}

/// Why the index could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndexFault {
    /// Another process has it open.
    Locked(String),
    /// It is not what was written.
    Broken(String),
}

impl IndexFault {
    pub(super) fn odd(what: &str) -> IndexFault {
        IndexFault::Broken(what.to_owned())
    }

    pub(super) fn text(&self) -> &str {
        match self {
            IndexFault::Locked(text) | IndexFault::Broken(text) => text,
        }
    }
}
