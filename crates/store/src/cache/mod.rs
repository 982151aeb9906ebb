//! The cache: a content-addressed store of action outputs, keyed by the hash of the action's inputs.
//!
//! Every output is keyed in a sled tree, `actions`: key to record. The packs have the bytes and decide where the two
//! disagree: append-only, self-describing files of frames (`frame`); what many entries of a pack were made from is stored
//! in it once (`packed`). A put is acknowledged after its frame is on disk; one writer thread commits for all callers in
//! batches, because a sync per entry would cost more than everything else.
//!
//! Whoever reads asks the same tables in memory (`index`). `Store`, which holds the lock, fills them from the
//! tree. `CacheSnapshot` fills them from the headers of the frames, so it can run beside a writer.
//!
//! Invariants: of several frames with one key the last wins; a body that does not match its digest is never returned; a
//! damaged entry is reported and treated as a miss, never a panic; one process writes at a time.
//!
//! Steps of batches (`StepLog`) record what was submitted to vendors; no prune removes them while a batch is open.
//!
//! From below: `packs` reads and writes packs, `index` finds frames in them, `writing` appends to both, `maintenance`
//! removes entries and packs, and `exchange` carries entries to other caches. `Store` and `CacheSnapshot` are how others use them.
//!
//! The cache does not know what actions do, how replies are parsed, or how it is configured: bodies and what they were made
//! from are bytes.

mod packs;
mod index;
mod writing;
mod maintenance;
mod exchange;

mod error;
mod entry;
mod lookup;
mod layered;
mod trust;
mod snapshot;
mod store;

#[cfg(test)]
mod tests;

pub use entry::{
    Day, EntryHeader, EntryStatus, FORMAT, Field, FrameLocation, ImportOrigin, KeyOf, ModelNames, ParseResult, Record,
    RemovalReason, Tag, Writer, now_ms,
};
pub use error::{CacheError, Damage};
pub use exchange::{ImportCounts, pack_entry, pack_text};
pub use layered::Layered;
pub use lookup::{Lookup, StoredReply};
pub use maintenance::PruneCounts;
pub use maintenance::verify::DamageReport;
pub use maintenance::without_room::prune_without_room;
pub use packs::folder::{LockHolder, disk_bytes};
pub use packs::journal_steps::{BatchNonce, BatchStep, StepLog};
pub use snapshot::{CacheSnapshot, DiskUsage};
pub use store::Store;
