//! `truncate` keeps the newest messages that fit; `prune` drops the oldest calls.

use std::ops::Range;

use base::units::Tokens;
use sessions::transcript::{Message, Role, is_boundary};

/// Keeps the newest messages that have at most `target` tokens together, whole; a call stays with its results.
///
/// It stops at the first that does not fit, so that what is kept is always one unbroken end of the transcript. If the
/// last one is too large, nothing is kept.
pub(super) fn keep_newest(
    messages: &[Message],
    target: Tokens,
    count: &impl Fn(&str) -> Tokens,
) -> Vec<Message> {
    let mut kept = messages.len();
    let mut total = Tokens(0);
    for unit in units(messages).into_iter().rev() {
        total += size_of(messages.get(unit.clone()).unwrap_or_default(), count);
        if total > target {
            break;
        }
        kept = unit.start;
    }
    messages.get(kept..).unwrap_or_default().to_vec()
}

/// Drops the oldest calls and their results until the rest has at most `target` tokens. Every text stays. `None` if the
/// texts alone are larger.
pub(super) fn prune(
    messages: &[Message],
    target: Tokens,
    count: &impl Fn(&str) -> Tokens,
) -> Option<Vec<Message>> {
    let mut total = size_of(messages, count).0;
    let mut kept = Vec::new();
    for unit in units(messages) {
        let unit = messages.get(unit).unwrap_or_default();
        let is_call = unit
            .first()
            .is_some_and(|message| !message.tool_calls.is_empty());
        if total <= target.0 || !is_call {
            kept.extend(unit.iter().cloned());
            continue;
        }
        let bare = unit.first().map(|message| Message {
            tool_calls: Vec::new(),
            ..message.clone()
        });
        let text: Vec<Message> = bare
            .into_iter()
            .filter(|message| !message.content.trim().is_empty())
            .collect();
        total = total.saturating_sub(size_of(unit, count).0) + size_of(&text, count).0;
        kept.extend(text);
    }
    (total <= target.0).then_some(kept)
}

fn size_of(messages: &[Message], count: &impl Fn(&str) -> Tokens) -> Tokens {
    messages
        .iter()
        .map(|message| count(&message.countable_text()))
        .sum()
}

/// The ranges that are kept or dropped as one: a message, or a call with all its results.
pub(super) fn units(messages: &[Message]) -> Vec<Range<usize>> {
    let starts: Vec<usize> = (0..messages.len())
        .filter(|at| is_boundary(messages, *at))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

/// Whether every result in `messages` follows its call and every call has its result.
pub(super) fn pairs_hold(messages: &[Message]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or("");
            let Some(at) = open.iter().position(|call| *call == id) else {
                return false;
            };
            open.remove(at);
            continue;
        }
        if !open.is_empty() {
            return false;
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
    }
    open.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sessions::transcript::ToolCall;

    fn words(text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }

    /// Turns by their number of calls: 0 is a user message.
    fn transcript(turns: &[(usize, usize)]) -> Vec<Message> {
        let mut messages = Vec::new();
        for (index, (calls, size)) in turns.iter().enumerate() {
            let role = if *calls == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            let mut message = Message::text(role, "w ".repeat(*size));
            let ids: Vec<String> = (0..*calls).map(|call| format!("c{index}-{call}")).collect();
            message.tool_calls = ids
                .iter()
                .map(|id| ToolCall::new(id, "terminal", "{}"))
                .collect();
            messages.push(message);
            messages.extend(ids.iter().map(|id| Message::result(id, "r ".repeat(*size))));
        }
        messages
    }

    #[test]
    fn keeps_the_newest_messages_that_fit() {
        let messages = transcript(&[(0, 3), (1, 2), (0, 4)]);
        assert_eq!(keep_newest(&messages, Tokens(4), &words), messages[3..]);
        assert_eq!(keep_newest(&messages, Tokens(10), &words), messages[1..]);
        assert!(keep_newest(&messages, Tokens(3), &words).is_empty());
    }

    proptest! {
        #[test]
        fn a_call_is_never_separated_from_its_results(
            turns in prop::collection::vec((0usize..4, 0usize..9), 0..12),
            target in 0u64..120,
        ) {
            let messages = transcript(&turns);
            let kept = keep_newest(&messages, Tokens(target), &words);
            prop_assert!(pairs_hold(&kept));
            prop_assert!(messages.ends_with(&kept));
            let size: Tokens = kept.iter().map(|m| words(&m.countable_text())).sum();
            prop_assert!(size <= Tokens(target));
            let wider = keep_newest(&messages, Tokens(target + 10), &words);
            prop_assert!(wider.ends_with(&kept));
        }
    }
}
