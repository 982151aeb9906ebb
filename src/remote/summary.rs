//! Counts of what a remote contains, and of what was pulled and uploaded.

use std::collections::BTreeMap;

use super::keys::PublicKey;
use super::upload::PushCounts;
use crate::action::Digest;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullCounts {
    pub entries: u64,
    pub texts: u64,
    /// Packed.
    pub bytes: u64,
}

/// What a remote has and what was done with it.
#[derive(Clone, Debug)]
pub struct SharedSummary {
    pub url: String,
    /// Identifies the list of packs that are used.
    pub list: Digest,
    pub packs: u64,
    pub entries: u64,
    pub texts: u64,
    /// Of all packs, those of others included.
    pub bytes: u64,
    /// Entries and packs that are used, by writer.
    pub writers: BTreeMap<String, (u64, u64)>,
    pub untrusted: BTreeMap<PublicKey, u64>,
    /// Signed by nobody, where that does not count.
    pub unsigned: u64,
    pub damaged: u64,
    pub newer: u64,
    pub foreign: u64,
    /// Packs that a prune deleted and that are there again.
    pub removed: u64,
    /// Entries of which two parts of the assignment made one each.
    pub made_twice: u64,
    pub pulled: PullCounts,
    pub pushed: PushCounts,
}
