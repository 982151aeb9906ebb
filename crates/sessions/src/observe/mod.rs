//! What sessions did after the compactions that the agents themselves made: re-reads, repeated failures, details that were
//! fetched again. Found in real logs, without probes, judge or model.
//!
//! A *window* is the 20 turns of the assistant from a compaction on; it ends early at the next compaction. *Controls* are
//! windows of the same kind at ordinary points of a session, far from any compaction: what a compaction changes is the
//! difference between the two, not the count after it.
//!
//! Invariants: what cannot be known is `None`, never 0; all texts are scrubbed as at import; a copy of a session counts
//! once. Deliberately absent: reading of files, printing.

mod actions;
mod difference;
mod errors;
mod fetched;
mod session;
mod window;

pub use difference::{Difference, ObservedSession, RateDifference, SESSIONS_FOR_INTERVAL, SessionObservation, combine};
pub use fetched::ReferenceUses;
pub use session::{ObservedCompaction, SessionFindings, observe};
pub use window::{ControlWindow, ReRead, RepeatedFailure, WINDOW_TURNS, WindowFigures};

use crate::import::Format;

/// The formats whose compactions are analysed.
pub const FORMATS: [Format; 3] = [Format::ClaudeCode, Format::Codex, Format::Pi];
