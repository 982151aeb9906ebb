//! Checks whether the usage that a provider reports for a call is possible.
//!
//! Costs are computed from the usage, so an impossible count must not end a run or show amounts that nobody paid.

use super::call::{Call, Turn};
use super::dialects::missing_prompt;
use super::estimate::estimate_text;
use base::units::{Tokens, Usage};

/// The most tokens that a provider adds to a prompt: a chat template, instructions, definitions of tools.
const ADDED_INPUT: u64 = 20_000;
/// The most tokens of opaque items, whose bytes say little about them.
const ITEM_INPUT: u64 = 2_000_000;
/// The longest reply of a call that sets no limit, reasoning included.
const LONGEST_OUTPUT: u64 = 2_000_000;

/// The usage to count, and what is wrong with the reported one: counts that cannot be true are replaced by estimates.
///
/// `request` is the length of the request in bytes, `estimated` the estimate of its tokens, and `body` the reply.
pub(super) fn checked_usage(
    reported: Usage,
    call: &Call,
    request: usize,
    estimated: Tokens,
    body: &[u8],
) -> (Usage, Option<&'static str>) {
    let has_items = call.turns.iter().any(|turn| matches!(turn, Turn::Items(_)));
    // A token has at least one byte.
    let most_input = request as u64 + if has_items { ITEM_INPUT } else { ADDED_INPUT };
    let max_output = call.settings.max_output_tokens;
    let most_output = max_output.map_or(LONGEST_OUTPUT, |limit| {
        limit.0.saturating_mul(2).saturating_add(1000)
    });
    let input = match reported.input {
        Some(input) if input.0 > most_input => Some(estimated),
        input => input,
    };
    let output = match reported.output {
        Some(output) if output.0 > most_output => {
            Some(estimate_text(&String::from_utf8_lossy(body)))
        }
        output => output,
    };
    let usage = Usage {
        input,
        output,
        cached_input: part_of(input, reported.cached_input),
        cache_write: part_of(input, reported.cache_write),
        cache_write_hour: part_of(reported.cache_write, reported.cache_write_hour),
        reasoning: part_of(output, reported.reasoning),
    };
    let warning = if usage != reported {
        Some(
            "reports token counts that cannot be true; tokens and cost are counted by our own estimate",
        )
    } else if missing_prompt(&usage, Some(estimated)).is_some() {
        Some(
            "reports far fewer prompt tokens than were sent: its counts are wrong, or it cuts prompts without saying so \
             (raise the server's context size)",
        )
    } else {
        None
    };
    (usage, warning)
}

/// A count that is a part of another one; `None` if it is larger.
fn part_of(whole: Option<Tokens>, part: Option<Tokens>) -> Option<Tokens> {
    part.filter(|part| whole.is_none_or(|whole| *part <= whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Operation, Settings};

    #[test]
    fn only_counts_that_cannot_be_true_are_replaced() {
        let call = |max_output_tokens: Option<Tokens>| Call {
            model: "m".into(),
            operation: Operation::Generate,
            turns: Vec::new(),
            instructions: None,
            settings: Settings {
                max_output_tokens,
                ..Settings::default()
            },
            schema: None,
            tools: None,
            prefix_uses: 1,
        };
        let checked_of = |reported: Usage, limit: Option<Tokens>| {
            checked_usage(
                reported,
                &call(limit),
                4000,
                Tokens(900),
                b"four words of text",
            )
        };
        let checked = |reported: Usage| checked_of(reported, None);
        let usage = |input, output| Usage {
            input: Some(Tokens(input)),
            output: Some(Tokens(output)),
            ..Usage::default()
        };
        assert_eq!(checked(usage(1100, 90_000)), (usage(1100, 90_000), None));
        let (counted, warning) = checked(usage(u64::MAX, u64::MAX));
        assert_eq!(counted, usage(900, 4));
        assert!(warning.is_some_and(|warning| warning.contains("cannot be true")));
        let (counted, warning) = checked(usage(100, 5));
        assert_eq!(counted, usage(100, 5));
        assert!(warning.is_some_and(|warning| warning.contains("far fewer")));
        assert_eq!(
            checked(Usage::default()),
            (Usage::default(), None),
            "unknown stays unknown"
        );
        let cached = Usage {
            cached_input: Some(Tokens(u64::MAX)),
            ..usage(1100, 5)
        };
        assert_eq!(checked(cached).0, usage(1100, 5));
        assert_eq!(
            checked_of(usage(1100, 90_000), Some(Tokens(10))).0,
            usage(1100, 4)
        );
    }
}
