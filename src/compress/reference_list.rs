//! `reference-list`: the exact details of the transcript as a bare list, newest first. A baseline: no agent can work
//! from it, but it holds more needed details than any summary of its size.

use std::collections::HashSet;

use base::units::Tokens;
use sessions::references::{Reference, SessionNoise, readable_text, references_in, used_in};
use sessions::transcript::{Message, Role};

/// The distinct references of a transcript, those that occurred last first. Found once, it is cut to any size.
#[derive(Clone, Debug)]
pub struct ReferenceList(Vec<String>);

impl ReferenceList {
    pub fn from_messages(messages: &[Message]) -> ReferenceList {
        let noise = SessionNoise::from_messages(messages);
        let mut seen = HashSet::new();
        let found = messages.iter().rev().flat_map(|message| found_in(message).into_iter().rev());
        let listed = found.filter(|reference| !noise.has(reference) && seen.insert(reference.key()));
        ReferenceList(listed.map(|reference| reference.text).collect())
    }

    /// As many as fit into `target`, one a line.
    pub fn within(&self, target: Option<Tokens>, count: &impl Fn(&str) -> Tokens) -> String {
        let Some(target) = target else { return self.0.join("\n") };
        let mut list = String::new();
        let mut size = 0;
        for reference in &self.0 {
            // Each line by itself counts at least what it adds to the list, so the whole is counted only where the sum
            // is too large.
            let line = format!("{reference}\n");
            size += count(&line).0;
            if size > target.0 {
                size = count(&format!("{list}{reference}")).0;
            }
            if size > target.0 {
                break;
            }
            list.push_str(&line);
        }
        list.truncate(list.trim_end().len());
        list
    }
}

fn found_in(message: &Message) -> Vec<Reference> {
    if message.role == Role::Assistant { used_in(message) } else { references_in(&readable_text(message)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Tokens {
        Tokens(text.lines().count() as u64)
    }

    #[test]
    fn the_newest_occurrence_decides_the_order_and_the_target_the_length() {
        let messages = ["read src/a.rs and src/b.rs", "call load_config", "src/a.rs again, port 8081"]
            .map(|text| Message::text(Role::User, text));
        let list = ReferenceList::from_messages(&messages);
        assert_eq!(list.within(None, &lines), "8081\nsrc/a.rs\nload_config\nsrc/b.rs");
        assert_eq!(list.within(Some(Tokens(2)), &lines), "8081\nsrc/a.rs");
        assert_eq!(ReferenceList::from_messages(&[]).within(Some(Tokens(2)), &lines), "");
    }
}
