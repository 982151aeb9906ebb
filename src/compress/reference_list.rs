//! `reference-list`: the exact details of the transcript as a bare list, newest first. A baseline: no agent can work
//! from it, but it holds more needed details than any summary of its size.

use std::collections::HashSet;

use crate::references::{Reference, SessionNoise, readable_text, references_in, used_in};
use crate::transcript::{Message, Role};
use crate::units::Tokens;

/// The distinct references of `messages`, one a line, those that occurred last first, as many as fit into `target`.
pub(super) fn reference_list(messages: &[Message], target: Option<Tokens>, count: &impl Fn(&str) -> Tokens) -> String {
    let noise = SessionNoise::of(messages);
    let mut seen = HashSet::new();
    let mut list = String::new();
    let mut size = 0;
    for reference in messages.iter().rev().flat_map(|message| found_in(message).into_iter().rev()) {
        if noise.has(&reference) || !seen.insert(reference.key()) {
            continue;
        }
        let line = format!("{}\n", reference.text);
        if let Some(target) = target {
            // Each line by itself counts at least what it adds to the list, so the whole is counted only where the sum
            // is too large.
            size += count(&line).0;
            if size > target.0 {
                size = count(&format!("{list}{}", reference.text)).0;
            }
            if size > target.0 {
                break;
            }
        }
        list.push_str(&line);
    }
    list.truncate(list.trim_end().len());
    list
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
        let all = reference_list(&messages, None, &lines);
        assert_eq!(all, "8081\nsrc/a.rs\nload_config\nsrc/b.rs");
        assert_eq!(reference_list(&messages, Some(Tokens(2)), &lines), "8081\nsrc/a.rs");
        assert_eq!(reference_list(&[], Some(Tokens(2)), &lines), "");
    }
}
