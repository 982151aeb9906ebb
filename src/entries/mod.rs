//! Entries: what compeval keeps in the store beside outputs, and reads back.
//!
//! [`EntryMeta`] says what an action was made from and what it cost; the store keeps it as a header whose fields it
//! does not read. [`Journal`] says what was submitted in batches, kept as steps. [`Refresh`] says which outputs are
//! replaced.

mod journal;
mod meta;

pub use journal::{
    BatchClosing, BatchIntent, BatchLine, ClosedBatch, ClosedLine, Journal, LineName, LineOutcome,
    OpenBatch, Refresh,
};
pub use meta::{BodyFormat, EntryLookup, EntryMeta, EntryRecord, key_of};
