//! The two ends of the scale: everything, and nothing.

use crate::transcript::Message;

/// Messages as a JSON array, compact.
pub(super) fn json_of(messages: &[Message]) -> String {
    // Plain strings and lists: serialising them cannot fail.
    serde_json::to_string(messages).unwrap_or_else(|error| unreachable!("messages are plain data: {error}"))
}

/// The ceiling: every message.
pub(super) fn full(messages: &[Message]) -> Vec<Message> {
    messages.to_vec()
}

/// The floor: no message.
pub(super) fn none() -> Vec<Message> {
    Vec::new()
}
