//! A session with items in it, and what is asked about them.

use super::Target;
use super::request::Request;
use sessions::transcript::Message;

/// A session with items in it, and what is asked about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// From 1.
    pub number: u32,
    /// The actions.
    pub targets: Vec<Target>,
    /// What stands before which recorded message, in order.
    pub inserted: Vec<(usize, Vec<Message>)>,
    /// What is done next?
    pub next: Request,
    /// What is known of each action?
    pub state: Request,
}

impl Variant {
    /// The recorded messages with the planted ones.
    pub fn messages(&self, recorded: &[Message]) -> Vec<Message> {
        let mut messages = Vec::with_capacity(recorded.len() + self.len());
        let mut from = 0;
        for (at, planted) in &self.inserted {
            messages.extend_from_slice(recorded.get(from..*at).unwrap_or_default());
            messages.extend_from_slice(planted);
            from = *at;
        }
        messages.extend_from_slice(recorded.get(from..).unwrap_or_default());
        messages
    }

    /// The number of planted messages.
    pub fn len(&self) -> usize {
        self.inserted.iter().map(|(_, planted)| planted.len()).sum()
    }

    /// Whether nothing is planted.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}
