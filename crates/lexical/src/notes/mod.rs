//! Notes on a session: which files were touched and how, what failed, what was decided and what is left, from the messages
//! alone. Deterministic, no model.

pub mod rules;
mod session;
mod allocation;
mod write;

pub use allocation::allocate;
pub use session::{FileNote, NotedFailure, SessionNotes, readable};
pub use write::{DEFAULT_TOKENS, file_entry, notes_within};
