//! Notes on a session, and the artifact index made of them: which files were touched and how, what failed, what was decided and what is left, from the
//! messages alone. Deterministic, no model.

pub mod rules;
mod session;
mod allocation;
mod write;

pub use allocation::allocate;
pub use session::{FileNote, NotedFailure, SessionNotes, readable};
pub use write::{file_entry, index_within};

use base::units::Tokens;
use sessions::transcript::{Message, estimate_tokens};

/// The default size of an index.
pub const INDEX_TOKENS: Tokens = Tokens(1200);

/// The artifact index of `messages` as Markdown, at most `limit` tokens by estimate; empty if there is nothing to index.
pub fn artifact_index(messages: &[Message], limit: Tokens) -> String {
    index_within(&SessionNotes::from_messages(messages), limit, &estimate_tokens)
}
