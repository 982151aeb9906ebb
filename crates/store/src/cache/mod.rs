//! The cache: a content-addressed store of action outputs, keyed by the hash of the action's inputs.
//!
//! A sled tree, `actions`, maps keys to records: the process that writes looks outputs up in it, by their keys. The bodies
//! are in packs: append-only, self-describing files of frames (`frame`), from which a lost tree is rebuilt. Where tree and
//! packs disagree, the packs are right. A put is acknowledged after its frame is on disk. One writer thread commits for all
//! callers in batches, because a sync per entry would cost more than everything else.
//!
//! `Store` holds the lock and has in memory only what is not in the tree yet. `CacheSnapshot` reads the headers of the
//! frames, locks nothing and writes nothing, so it can run beside a writer.
//!
//! Invariants: of several frames with one key the last wins; a body that does not match its digest is never returned; a
//! damaged entry is reported and treated as a miss, and causes no panic; one process writes at a time.
//!
//! A `StepLog` records what was submitted to vendors as batches; no prune removes the steps of an open batch.
//!
//! The modules, lowest first: `packs` reads and writes packs, `index` finds frames in them, `writing` appends to both,
//! and `maintenance` removes entries and packs. `Store`, which also takes entries from other caches, and `CacheSnapshot`
//! are the interface to all of them.
//!
//! The cache does not know what actions do or how replies are parsed. To it, bodies and documents are bytes.

mod index;
mod maintenance;
mod packs;
mod writing;

mod entry;
mod error;
mod lookup;
mod store;

#[cfg(test)]
mod tests;

pub use base::guarded::disk_bytes;
pub use entry::{
    Day, EntryHeader, EntryStatus, EntrySummary, FORMAT, FrameLocation, KeyOf, ModelNames, Record,
    Tag, now_ms,
};
pub use error::{CacheError, Damage};
pub use lookup::{CacheSnapshot, Layered, Lookup, StepLog};
pub use maintenance::PruneCounts;
pub use maintenance::verify::DamageReport;
pub use packs::frame::{BatchNonce, BatchStep};
pub use store::{Store, pack_failure, read_failure};
