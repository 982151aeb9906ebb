//! The strategies that need no model: truncate, mask, extract, recorded (what the product itself had), full (every message)
//! and none (no message).

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::context::summary_messages;
use crate::action::BuiltInStrategy;
use base::text::each_string;
use base::units::Tokens;
use lexical::notes::{DEFAULT_TOKENS, SessionNotes, notes_within};
use sessions::references::{Target, targets};
use sessions::transcript::{Message, Role, ToolCall, file_operation, is_boundary};

/// Applies a rule to messages and returns the context as a JSON array of messages; `count` counts tokens.
///
/// Deterministic. A `truncate` without a target keeps everything: the pipeline refuses that before anything runs.
pub fn compute(
    rule: BuiltInStrategy,
    target_tokens: Option<Tokens>,
    messages: &[Message],
    count: &impl Fn(&str) -> Tokens,
) -> Vec<u8> {
    let context = match (rule, target_tokens) {
        (BuiltInStrategy::Truncate, Some(target)) => keep_newest(messages, target, count),
        (BuiltInStrategy::Truncate, None)
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
        (BuiltInStrategy::Mask, target) => mask(messages, KEPT_RESULTS, target, count),
    };
    json_of(&context).into_bytes()
}

/// Messages as a compact JSON array.
pub(super) fn json_of(messages: &[Message]) -> String {
    // Plain strings and lists: serialising them cannot fail.
    serde_json::to_string(messages)
        .unwrap_or_else(|error| unreachable!("messages are plain data: {error}"))
}

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

/// Characters from which an argument of a call is masked with its result.
const LONG_ARGUMENT: usize = 400;

/// Tool results that `mask` keeps.
const KEPT_RESULTS: usize = 10;

/// Masks all tool results but the newest `keep_results`, and the long arguments of their calls.
///
/// With a `target`, masks the oldest results first and stops when the messages have that size. If masking does not
/// suffice, drops whole calls with their results, the oldest first, and then other messages.
pub(super) fn mask(
    messages: &[Message],
    keep_results: usize,
    target: Option<Tokens>,
    count: &impl Fn(&str) -> Tokens,
) -> Vec<Message> {
    let mut masked = messages.to_vec();
    let calls = calls_of(messages);
    let results: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, m)| m.role == Role::Tool)
        .map(|(at, _)| at)
        .collect();
    let old = results
        .get(..results.len().saturating_sub(keep_results))
        .unwrap_or_default();
    let counted = if target.is_some() { messages } else { &[] };
    let mut sizes: Vec<u64> = counted
        .iter()
        .map(|message| count(&message.countable_text()).0)
        .collect();
    for result in old {
        if target.is_some_and(|target| sizes.iter().sum::<u64>() <= target.0) {
            return masked;
        }
        let id = messages
            .get(*result)
            .and_then(|message| message.tool_call_id.as_deref());
        let Some((calling, call)) = id.and_then(|id| calls.get(id).copied()) else {
            continue;
        };
        mask_result(masked.get_mut(*result), call);
        mask_arguments(masked.get_mut(calling), call);
        for changed in [*result, calling] {
            if let (Some(known), Some(message)) = (sizes.get_mut(changed), masked.get(changed)) {
                *known = count(&message.countable_text()).0;
            }
        }
    }
    match target {
        Some(target) => drop_oldest(masked, &sizes, target),
        None => masked,
    }
}

/// Each call by its id, with the place of its message.
fn calls_of(messages: &[Message]) -> HashMap<&str, (usize, &ToolCall)> {
    let mut calls = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        calls.extend(
            message
                .tool_calls
                .iter()
                .map(|call| (call.id.as_str(), (at, call))),
        );
    }
    calls
}

fn mask_result(result: Option<&mut Message>, call: &ToolCall) {
    let Some(result) = result else { return };
    let line = format!(
        "[masked: {}, {} characters]",
        describe(call),
        result.content.chars().count()
    );
    if line.len() < result.content.len() {
        result.content = line;
    }
}

/// Replaces the long strings in the arguments of a call, which write a file as a rule.
fn mask_arguments(calling: Option<&mut Message>, call: &ToolCall) {
    let masked = calling
        .into_iter()
        .flat_map(|message| &mut message.tool_calls)
        .find(|masked| masked.id == call.id);
    let Some(masked) = masked.filter(|masked| masked.function.arguments.len() >= LONG_ARGUMENT)
    else {
        return;
    };
    let Ok(mut arguments) = serde_json::from_str::<Value>(&masked.function.arguments) else {
        return;
    };
    let description = describe(call);
    let mut is_masked = false;
    each_string(&mut arguments, &mut |text| {
        let length = text.chars().count();
        if length >= LONG_ARGUMENT {
            *text = format!("[masked: {description}, {length} characters]");
            is_masked = true;
        }
    });
    if is_masked {
        masked.function.arguments = arguments.to_string();
    }
}

/// Names the tool and what it was used on.
fn describe(call: &ToolCall) -> String {
    /// Characters of a target that are shown.
    const SHOWN: usize = 120;
    let target = file_operation(call)
        .map(|operation| operation.path)
        .or_else(|| {
            targets(call).into_iter().next().map(|target| match target {
                Target::File(file) => file.path,
                Target::Search(search) => search
                    .lines()
                    .skip(1)
                    .filter(|line| !line.is_empty())
                    .collect::<Vec<_>>()
                    .join(" "),
                Target::Command(command) => command,
            })
        });
    let Some(target) = target else {
        return call.function.name.clone();
    };
    let shown: String = target.chars().take(SHOWN).collect();
    let dots = if shown.len() < target.len() {
        "…"
    } else {
        ""
    };
    format!("{} {shown}{dots}", call.function.name)
}

/// Drops the oldest messages until the rest fits: calls with their results first, then all others.
fn drop_oldest(messages: Vec<Message>, sizes: &[u64], target: Tokens) -> Vec<Message> {
    let turns = units(&messages);
    let mut total: u64 = sizes.iter().sum();
    let mut is_dropped = vec![false; messages.len()];
    for calls_only in [true, false] {
        for turn in &turns {
            let is_call = messages
                .get(turn.start)
                .is_some_and(|message| !message.tool_calls.is_empty());
            if total <= target.0 || is_call != calls_only {
                continue;
            }
            total = total.saturating_sub(sizes.get(turn.clone()).unwrap_or_default().iter().sum());
            if let Some(dropped) = is_dropped.get_mut(turn.clone()) {
                dropped.fill(true);
            }
        }
    }
    messages
        .into_iter()
        .zip(is_dropped)
        .filter(|(_, dropped)| !dropped)
        .map(|(message, _)| message)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::message::unpaired;
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
            prop_assert!(unpaired(&kept).is_empty());
            prop_assert!(messages.ends_with(&kept));
            let size: Tokens = kept.iter().map(|m| words(&m.countable_text())).sum();
            prop_assert!(size <= Tokens(target));
            let wider = keep_newest(&messages, Tokens(target + 10), &words);
            prop_assert!(wider.ends_with(&kept));
        }
    }

    fn letters(text: &str) -> Tokens {
        Tokens(text.len() as u64)
    }

    fn size(messages: &[Message]) -> u64 {
        messages
            .iter()
            .map(|message| message.countable_text().len() as u64)
            .sum()
    }

    /// A user message, then `count` reads of a file of `length` letters.
    fn reads(count: usize, length: usize) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::User, "Fix the parser.")];
        for at in 0..count {
            let mut call = Message::text(Role::Assistant, "");
            call.tool_calls.push(ToolCall::new(
                format!("c{at}"),
                "Read",
                format!(r#"{{"file_path":"src/f{at}.rs"}}"#),
            ));
            messages.extend([call, Message::result(format!("c{at}"), "x".repeat(length))]);
        }
        messages
    }

    #[test]
    fn old_results_become_one_line_and_new_ones_stay() {
        let masked = mask(&reads(3, 900), 1, None, &letters);
        assert_eq!(
            masked[2].content,
            "[masked: Read src/f0.rs, 900 characters]"
        );
        assert_eq!(
            masked[4].content,
            "[masked: Read src/f1.rs, 900 characters]"
        );
        assert_eq!(masked[6].content.len(), 900);
        assert_eq!(
            mask(&reads(3, 9), 0, None, &letters),
            reads(3, 9),
            "no line is longer than what it masks"
        );
    }

    #[test]
    fn the_text_that_an_old_call_wrote_is_masked_too() {
        let arguments =
            serde_json::json!({"file_path": "src/a.rs", "content": "y".repeat(500)}).to_string();
        let mut call = Message::text(Role::Assistant, "Now.");
        call.tool_calls.push(ToolCall::new("c", "Write", arguments));
        let messages = [call, Message::result("c", "ok")];
        let masked = mask(&messages, 0, None, &letters);
        let arguments: Value =
            serde_json::from_str(&masked[0].tool_calls[0].function.arguments).expect("JSON");
        assert_eq!(arguments["file_path"], "src/a.rs");
        assert_eq!(
            arguments["content"],
            "[masked: Write src/a.rs, 500 characters]"
        );
        assert_eq!(
            mask(&messages, 1, None, &letters),
            messages,
            "the newest call keeps what it wrote"
        );
    }

    #[test]
    fn a_target_masks_no_more_than_it_must_and_then_drops_pairs() {
        let messages = reads(3, 900);
        let whole = size(&messages);
        assert_eq!(mask(&messages, 1, Some(Tokens(whole)), &letters), messages);
        let one = mask(&messages, 1, Some(Tokens(whole - 500)), &letters);
        assert!(one[2].content.starts_with("[masked") && one[4].content.len() == 900);
        let few = mask(&messages, 1, Some(Tokens(1000)), &letters);
        assert_eq!(
            few.iter().map(|m| m.role).collect::<Vec<_>>(),
            [Role::User, Role::Assistant, Role::Tool]
        );
        assert!(mask(&messages, 1, Some(Tokens(3)), &letters).is_empty());
    }

    proptest! {
        #[test]
        fn pairs_stay_together_and_the_size_is_kept(count in 0usize..6, length in 0usize..600, keep in 0usize..4, target in 0u64..4000) {
            let messages = reads(count, length);
            let masked = mask(&messages, keep, Some(Tokens(target)), &letters);
            prop_assert!(unpaired(&masked).is_empty());
            prop_assert!(size(&masked) <= target);
            prop_assert_eq!(mask(&messages, keep, None, &letters).len(), messages.len());
        }
    }
}
