//! The strategies that need no model: truncate, extract, full (every message), none (no message).

use super::index::{Notes, artifact_index, index_within};
use super::truncate;
use crate::action::{Computation, Rule};
use crate::transcript::{Message, Role};
use crate::units::Tokens;

/// Applies a rule to `messages`, the text of `computation.messages` read; `count` counts tokens.
///
/// Returns a JSON array of messages. Deterministic. A `truncate` without a target keeps everything: the pipeline
/// refuses that before anything runs.
pub fn compute(computation: &Computation, messages: &[Message], count: &impl Fn(&str) -> Tokens) -> Vec<u8> {
    let context = match (computation.rule, computation.target_tokens) {
        (Rule::Truncate, Some(target)) => truncate::newest(messages, target, count),
        (Rule::Truncate, None) | (Rule::Full, _) => messages.to_vec(),
        (Rule::None, _) => Vec::new(),
        (Rule::Extract, target) => {
            let index = match target {
                Some(target) => index_within(&Notes::of(messages), target, count),
                None => artifact_index(messages),
            };
            if index.is_empty() { Vec::new() } else { vec![Message::text(Role::User, index)] }
        }
    };
    json_of(&context).into_bytes()
}

/// Messages as a compact JSON array.
pub(super) fn json_of(messages: &[Message]) -> String {
    // Plain strings and lists: serialising them cannot fail.
    serde_json::to_string(messages).unwrap_or_else(|error| unreachable!("messages are plain data: {error}"))
}
