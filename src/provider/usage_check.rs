//! Whether the usage that a provider reports for a call is possible.
//!
//! Costs are computed from it, so an impossible count must not end a run or show amounts that nobody paid.

use super::dialects::missing_prompt;
use super::estimate::estimate_text;
use crate::units::{Tokens, Usage};

/// What a provider may add to a prompt of its own: a chat template, instructions, definitions of tools.
const ADDED_INPUT: u64 = 20_000;
/// The tokens of an opaque item: its bytes say little about them.
const ITEM_INPUT: u64 = 2_000_000;
/// The longest reply of a call that sets no limit, reasoning included.
const LONGEST_OUTPUT: u64 = 2_000_000;

/// The size of a call and its reply.
pub(super) struct CallSize<'a> {
    /// Bytes of the request. A token has a byte at least.
    pub(super) request: usize,
    /// Our estimate of its tokens.
    pub(super) input: Tokens,
    /// Whether it contains items that a provider made.
    pub(super) has_items: bool,
    /// The limit that it sets on the reply.
    pub(super) max_output: Option<Tokens>,
    /// The body of the reply.
    pub(super) body: &'a [u8],
}

/// The usage to count, and what is wrong with the reported one: counts that cannot be true are replaced by estimates.
pub(super) fn checked_usage(reported: Usage, size: &CallSize<'_>) -> (Usage, Option<&'static str>) {
    let most_input = size.request as u64 + if size.has_items { ITEM_INPUT } else { ADDED_INPUT };
    let most_output = size.max_output.map_or(LONGEST_OUTPUT, |limit| limit.0.saturating_mul(2).saturating_add(1000));
    let is_over = |count: Option<Tokens>, most: u64| count.is_some_and(|count| count.0 > most);
    let part =
        |part: Option<Tokens>, whole: Option<Tokens>| part.filter(|part| whole.is_none_or(|whole| *part <= whole));
    let (over_input, over_output) = (is_over(reported.input, most_input), is_over(reported.output, most_output));
    let input = if over_input { Some(size.input) } else { reported.input };
    let output = match over_output {
        true => Some(estimate_text(&String::from_utf8_lossy(size.body))),
        false => reported.output,
    };
    let usage = Usage {
        input,
        output,
        cached_input: part(reported.cached_input, input),
        cache_write: part(reported.cache_write, input),
        cache_write_hour: part(reported.cache_write_hour, reported.cache_write),
        reasoning: part(reported.reasoning, output),
    };
    let warning = if usage != reported {
        Some("reports token counts that cannot be true; tokens and cost are counted by our own estimate")
    } else if missing_prompt(&usage, Some(size.input)).is_some() {
        Some(
            "reports far fewer prompt tokens than were sent: its counts are wrong, or it cuts prompts without saying so \
             (raise the server's context size)",
        )
    } else {
        None
    };
    (usage, warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_that_cannot_be_true_are_replaced() {
        let size = CallSize {
            request: 4000,
            input: Tokens(900),
            has_items: false,
            max_output: None,
            body: b"four words of text",
        };
        let usage =
            |input, output| Usage { input: Some(Tokens(input)), output: Some(Tokens(output)), ..Usage::default() };
        assert_eq!(checked_usage(usage(1100, 90_000), &size), (usage(1100, 90_000), None));
        let (counted, warning) = checked_usage(usage(u64::MAX, u64::MAX), &size);
        assert_eq!(counted, usage(900, 4));
        assert!(warning.is_some_and(|warning| warning.contains("cannot be true")));
        let (counted, warning) = checked_usage(usage(100, 5), &size);
        assert_eq!(counted, usage(100, 5));
        assert!(warning.is_some_and(|warning| warning.contains("far fewer")));
        assert_eq!(checked_usage(Usage::default(), &size), (Usage::default(), None), "unknown stays unknown");
        let cached = Usage { cached_input: Some(Tokens(u64::MAX)), ..usage(1100, 5) };
        assert_eq!(checked_usage(cached, &size).0, usage(1100, 5));
        let limited = CallSize { max_output: Some(Tokens(10)), ..size };
        assert_eq!(checked_usage(usage(1100, 90_000), &limited).0, usage(1100, 4));
    }
}
