//! The strategies that need no model: truncate, prune, mask, extract, reference-list, recorded (what the product itself
//! had), full (every message) and none (no message).

use std::collections::HashSet;

use super::CompressFault;
use super::context::summary_messages;
use super::mask::mask;
use super::truncate;
use crate::action::BuiltInStrategy;
use base::units::Tokens;
use lexical::notes::{DEFAULT_TOKENS, SessionNotes, notes_within};
use sessions::references::{Reference, SessionNoise, readable_text, references_in, used_in};
use sessions::transcript::{Message, Role};

/// Applies a rule to messages and returns the context as a JSON array of messages; `count` counts tokens.
///
/// Deterministic. A `truncate` or `prune` without a target keeps everything: the pipeline refuses that before anything
/// runs.
pub fn compute(
    rule: BuiltInStrategy,
    target_tokens: Option<Tokens>,
    messages: &[Message],
    count: &impl Fn(&str) -> Tokens,
) -> Result<Vec<u8>, CompressFault> {
    let context = match (rule, target_tokens) {
        (BuiltInStrategy::Truncate, Some(target)) => truncate::keep_newest(messages, target, count),
        (BuiltInStrategy::Prune, Some(target)) => truncate::prune(messages, target, count)
            .ok_or(CompressFault::TextsTooLarge { target: target.0 })?,
        (BuiltInStrategy::Truncate | BuiltInStrategy::Prune, None)
        | (BuiltInStrategy::Full | BuiltInStrategy::Recorded, _) => messages.to_vec(),
        (BuiltInStrategy::None, _) => Vec::new(),
        (BuiltInStrategy::Extract, target) => {
            let notes = SessionNotes::from_messages(messages);
            summary_messages(notes_within(
                &notes,
                target.unwrap_or(DEFAULT_TOKENS),
                count,
            ))
        }
        (BuiltInStrategy::Mask { keep_results }, target) => {
            mask(messages, keep_results as usize, target, count)
        }
        (BuiltInStrategy::ReferenceList { .. }, target) => {
            summary_messages(ReferenceList::from_messages(messages).within(target, count))
        }
    };
    Ok(json_of(&context).into_bytes())
}

/// Messages as a compact JSON array.
pub(super) fn json_of(messages: &[Message]) -> String {
    // Plain strings and lists: serialising them cannot fail.
    serde_json::to_string(messages)
        .unwrap_or_else(|error| unreachable!("messages are plain data: {error}"))
}

/// The distinct references of a transcript, those that occurred last first. Found once, it is cut to any size. A baseline:
/// no agent can work from a bare list, but it holds more needed details than any summary of its size.
#[derive(Clone, Debug)]
pub struct ReferenceList(Vec<String>);

impl ReferenceList {
    pub fn from_messages(messages: &[Message]) -> ReferenceList {
        let noise = SessionNoise::from_messages(messages);
        let mut seen = HashSet::new();
        let found = messages
            .iter()
            .rev()
            .flat_map(|message| found_in(message).into_iter().rev());
        let listed =
            found.filter(|reference| !noise.has(reference) && seen.insert(reference.key()));
        ReferenceList(listed.map(|reference| reference.text).collect())
    }

    /// As many as fit into `target`, one a line.
    pub fn within(&self, target: Option<Tokens>, count: &impl Fn(&str) -> Tokens) -> String {
        let Some(target) = target else {
            return self.0.join("\n");
        };
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
    if message.role == Role::Assistant {
        used_in(message)
    } else {
        references_in(&readable_text(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Tokens {
        Tokens(text.lines().count() as u64)
    }

    #[test]
    fn the_newest_occurrence_decides_the_order_and_the_target_the_length() {
        let messages = [
            "read src/a.rs and src/b.rs",
            "call load_config",
            "src/a.rs again, port 8081",
        ]
        .map(|text| Message::text(Role::User, text));
        let list = ReferenceList::from_messages(&messages);
        assert_eq!(
            list.within(None, &lines),
            "8081\nsrc/a.rs\nload_config\nsrc/b.rs"
        );
        assert_eq!(list.within(Some(Tokens(2)), &lines), "8081\nsrc/a.rs");
        assert_eq!(
            ReferenceList::from_messages(&[]).within(Some(Tokens(2)), &lines),
            ""
        );
    }
}
