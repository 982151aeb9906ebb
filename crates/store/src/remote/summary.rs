//! Counts of what a remote contains, and of what was pulled and uploaded.

use std::collections::BTreeMap;

use super::keys::PublicKey;
use super::upload::PushCounts;
use crate::digest::Digest;

/// What was pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullCounts {
    /// Entries.
    pub entries: u64,
    /// Source texts.
    pub texts: u64,
    /// Packed.
    pub bytes: u64,
}

/// What a remote has and what was done with it.
#[derive(Clone, Debug)]
pub struct SharedSummary {
    /// The remote.
    pub url: String,
    /// Identifies the list of packs that are used.
    pub list: Digest,
    /// Packs that it has.
    pub packs: u64,
    /// Entries in them.
    pub entries: u64,
    /// Source texts in them.
    pub texts: u64,
    /// Of all packs, those of others included.
    pub bytes: u64,
    /// Entries and packs that are used, by writer.
    pub writers: BTreeMap<String, (u64, u64)>,
    /// Entries of writers that are not trusted, by their keys.
    pub untrusted: BTreeMap<PublicKey, u64>,
    /// Signed by nobody, where that does not count.
    pub unsigned: u64,
    /// Packs that differ from what was written.
    pub damaged: u64,
    /// Packs of newer versions.
    pub newer: u64,
    /// Packs of other remotes.
    pub foreign: u64,
    /// Packs that a prune deleted and that are there again.
    pub removed: u64,
    /// Entries of which two parts of the assignment made one each.
    pub made_twice: u64,
    /// What was pulled.
    pub pulled: PullCounts,
    /// What was uploaded.
    pub pushed: PushCounts,
}
