//! The cache: a content-addressed store of what actions yielded, kept by the key of their inputs.
//!
//! The packs are the truth: append-only files of self-describing frames, from which everything else can be made
//! again. The index beside them (sled) says where the current frame of each key lies. A put is acknowledged after
//! its frame and its index record are on disk; one committer thread writes for all callers in groups.
//!
//! Invariants: the later frame of a key wins; no body is handed out that does not match its digest; a damaged entry
//! is a miss that is named, never a panic; one process writes at a time, and any number read beside it by scanning
//! frame headers, without touching the index.
//!
//! Deliberately absent: stages' meaning, reading of replies, configuration. Bodies are bytes here.

mod error;
mod layout;
mod lock;
mod meta;
mod record;
mod frame;
mod pack;
mod scanner;
mod fold;
mod catalogue;
mod proven;
mod index;
mod writer;
mod committer;
mod recover;
mod sweep;
mod lookup;
mod snapshot;
mod space;
mod store;
mod prune;
mod verify;
mod transfer;

#[cfg(test)]
mod tests;

pub use error::{CacheError, Damage};
pub use lock::Holder;
pub use lookup::{Entry, Lookup, Reply, Speaker};
pub use meta::{Coordinate, Day, Meta, Reading, Removal};
pub use prune::Pruned;
pub use record::{Location, Record, Status};
pub use snapshot::Snapshot;
pub use space::{Space, disk_bytes};
pub use store::Store;
pub use transfer::{Exported, Imported, export};
pub use verify::DamageReport;
