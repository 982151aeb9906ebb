//! Rewriting packs: removal of entries, verification, and upgrades of the format.

pub(super) mod compaction;
pub(super) mod prune;
pub(super) mod upgrade;
pub(super) mod verify;
