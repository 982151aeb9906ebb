//! What sessions did after the compactions that the agents themselves made: re-reads, repeated failures, details that were
//! fetched again. Found in real logs, without probes, judge or model.
//!
//! A *window* is the 20 turns of the assistant from a compaction on; it ends early at the next compaction. Its two
//! *controls* are the nearest windows of the same session before and after it, each at least 20 turns away: what a
//! compaction changes is what differs from both, not the count after it.
//!
//! Invariants: what cannot be known is `None`, never 0; all texts are scrubbed as at import; a copy of a session counts
//! once. Nothing here reads files or prints.

mod actions;
mod combine;
mod difference;
mod fetched;
mod session;
mod window;

pub use combine::{ControlCoverage, ObservedSession, SessionObservation, combine};
pub use difference::{
    LocalDifference, RateDifference, SESSIONS_FOR_INTERVAL, SideDifference, local_difference,
};
pub use fetched::ReferenceUses;
pub use session::{NotCounted, ObservedCompaction, SessionFindings, SessionNote, observe};
pub use window::{ReRead, RepeatedFailure, SurroundedWindow, WINDOW_TURNS, WindowFigures};
