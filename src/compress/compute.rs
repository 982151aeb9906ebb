//! The strategies that need no model: truncate, prune, mask, extract, reference-list, full (every message) and none (no
//! message).

use super::mask::mask;
use super::reference_list::ReferenceList;
use super::truncate;
use crate::action::BuiltInStrategy;
use base::say;
use base::units::Tokens;
use lexical::notes::{DEFAULT_TOKENS, SessionNotes, notes_within};
use sessions::transcript::{Message, Role};

/// Why a rule has no context.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeFault {
    #[error("{}", say!("the texts alone have more than {target} tokens, and `prune` drops no text", "仅文字就超过 {target} 个词元，而 `prune` 不删文字"))]
    TextsTooLarge { target: u64 },
}

/// Applies a rule to messages and returns the context as a JSON array of messages; `count` counts tokens.
///
/// Deterministic. A `truncate` or `prune` without a target keeps everything: the pipeline refuses that before anything
/// runs.
pub fn compute(
    rule: BuiltInStrategy,
    target_tokens: Option<Tokens>,
    messages: &[Message],
    count: &impl Fn(&str) -> Tokens,
) -> Result<Vec<u8>, ComputeFault> {
    let context = match (rule, target_tokens) {
        (BuiltInStrategy::Truncate, Some(target)) => truncate::keep_newest(messages, target, count),
        (BuiltInStrategy::Prune, Some(target)) => {
            truncate::prune(messages, target, count).ok_or(ComputeFault::TextsTooLarge { target: target.0 })?
        }
        (BuiltInStrategy::Truncate | BuiltInStrategy::Prune, None) | (BuiltInStrategy::Full, _) => messages.to_vec(),
        (BuiltInStrategy::None, _) => Vec::new(),
        (BuiltInStrategy::Extract, target) => {
            summary(notes_within(&SessionNotes::from_messages(messages), target.unwrap_or(DEFAULT_TOKENS), count))
        }
        (BuiltInStrategy::Mask { keep_results }, target) => mask(messages, keep_results as usize, target, count),
        (BuiltInStrategy::ReferenceList { .. }, target) => {
            summary(ReferenceList::from_messages(messages).within(target, count))
        }
    };
    Ok(json_of(&context).into_bytes())
}

/// The messages of a context of one text; none if the text is empty.
fn summary(text: String) -> Vec<Message> {
    if text.is_empty() { Vec::new() } else { vec![Message::text(Role::User, text)] }
}

/// Messages as a compact JSON array.
pub(super) fn json_of(messages: &[Message]) -> String {
    // Plain strings and lists: serialising them cannot fail.
    serde_json::to_string(messages).unwrap_or_else(|error| unreachable!("messages are plain data: {error}"))
}
