//! A session for tests to plant into.

use sessions::transcript::{Message, Role};

/// So many messages of these words, by the user and the agent in turn.
pub(crate) fn session(words: &str, messages: usize) -> Vec<Message> {
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            Role::User
        } else {
            Role::Assistant
        };
        Message::text(role, format!("{at}: {}", words.repeat(60)))
    };
    (0..messages).map(message).collect()
}
