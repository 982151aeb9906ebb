//! Copies of one session: a log is often saved again when the session has gone on.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::transcript::Message;

/// What tells the messages of a session from those of another, one number each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    messages: Vec<u64>,
}

/// Fewer messages that are alike may be the same greeting.
const FEWEST: usize = 4;
/// So many messages at the end of the shorter copy may differ: a call in it had no result yet.
const UNFINISHED: usize = 2;

impl Fingerprint {
    /// The fingerprint of a session.
    pub fn of(messages: &[Message]) -> Fingerprint {
        let of_one = |message: &Message| {
            let mut hasher = DefaultHasher::new();
            message.content.hash(&mut hasher);
            for call in &message.tool_calls {
                call.function.arguments.hash(&mut hasher);
            }
            hasher.finish()
        };
        Fingerprint {
            messages: messages.iter().map(of_one).collect(),
        }
    }

    /// Whether `other` is the same session, saved at the same time or later.
    pub fn is_copied_in(&self, other: &Fingerprint) -> bool {
        let [short, long] = [&self.messages, &other.messages];
        if short == long {
            return !short.is_empty();
        }
        let compared = short.len().saturating_sub(UNFINISHED);
        short.len() <= long.len()
            && compared >= FEWEST
            && short
                .get(..compared)
                .is_some_and(|start| long.starts_with(start))
    }

    /// A number that is the same for equal sessions.
    pub(crate) fn seed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.messages.hash(&mut hasher);
        hasher.finish()
    }

    /// Fingerprints of copies are alike in this.
    pub fn start(&self) -> &[u64] {
        self.messages.get(..FEWEST).unwrap_or(&self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Role;

    #[test]
    fn a_session_that_went_on_is_the_same_and_a_fork_is_another() {
        let of = |texts: &str| {
            let messages = texts.chars().map(|c| Message::text(Role::User, c));
            Fingerprint::of(&messages.collect::<Vec<_>>())
        };
        assert!(of("abcdef").is_copied_in(&of("abcdefgh")) && of("ab").is_copied_in(&of("ab")));
        assert!(
            of("abcdxx").is_copied_in(&of("abcdefgh")),
            "it was not finished"
        );
        assert!(!of("abcxyz1").is_copied_in(&of("abcdefgh")));
        assert!(
            !of("ab").is_copied_in(&of("abcdefgh")),
            "too little to tell"
        );
    }
}
