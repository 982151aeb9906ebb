//! The strategies that are rules of ours, executed.

use super::index::{Notes, artifact_index, index_within};
use super::{ends, truncate};
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
        (Rule::Truncate, None) | (Rule::Full, _) => ends::full(messages),
        (Rule::None, _) => ends::none(),
        (Rule::Extract, target) => {
            let index = match target {
                Some(target) => index_within(&Notes::of(messages), target, count),
                None => artifact_index(messages),
            };
            if index.is_empty() { ends::none() } else { vec![Message::text(Role::User, index)] }
        }
    };
    ends::json_of(&context).into_bytes()
}
