//! Estimates the tokens of a call, for pacing, and checks by that the usage that a provider reports: a prompt may have been
//! cut, and costs are computed from the usage, so an impossible count must not end a run or show amounts that nobody paid.

use super::call::{Call, Tool, Turn};
use base::units::{Tokens, Usage};

/// The output tokens that are reserved for a call without a limit.
const USUAL_OUTPUT: Tokens = Tokens(1024);

/// Input tokens, estimated low, and the most output tokens that the call allows. Items of a provider count nothing, because
/// their length says nothing about their tokens.
pub fn estimate(call: &Call) -> (Tokens, Tokens) {
    let turns: Tokens = call.turns.iter().map(estimate_turn).sum();
    let instructions = call
        .instructions
        .as_deref()
        .map_or(Tokens(0), estimate_text);
    let tools: Tokens = call
        .tools
        .iter()
        .flat_map(|offer| offer.tools.iter())
        .map(estimate_tool)
        .sum();
    (
        turns + instructions + tools,
        call.settings.max_output_tokens.unwrap_or(USUAL_OUTPUT),
    )
}

fn estimate_tool(tool: &Tool) -> Tokens {
    estimate_text(&tool.name)
        + estimate_text(&tool.description)
        + estimate_text(&tool.parameters.to_string())
}

fn estimate_turn(turn: &Turn) -> Tokens {
    match turn {
        Turn::Text { text, .. } => estimate_text(text),
        Turn::Items(_) => Tokens(0),
        Turn::Reply(items) => estimate_text(items),
        Turn::Results(results) => results
            .iter()
            .map(|result| estimate_text(&result.text))
            .sum(),
        Turn::Messages(messages) => messages
            .iter()
            .map(|m| {
                let calls = m.tool_calls.iter().map(|c| &c.function);
                let calls: Tokens = calls
                    .map(|f| estimate_text(&f.name) + estimate_text(&f.arguments))
                    .sum();
                estimate_text(&m.content) + calls
            })
            .sum(),
    }
}

/// What a character belongs to. Runs of letters, signs and digits make tokens.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Space,
    Letter,
    Sign,
    Digit,
    /// Of another script.
    Wide,
}

fn kind_of(c: char) -> Kind {
    match c {
        'a'..='z' | 'A'..='Z' => Kind::Letter,
        '0'..='9' => Kind::Digit,
        '\0'..=' ' => Kind::Space,
        '!'..='\x7f' => Kind::Sign,
        _ => Kind::Wide,
    }
}

/// A low estimate by runs of like characters. A word or a run of signs is one token, plus a sixth of one for each character
/// after the sixth; a number is one token, plus a third for each digit after the second; white space is nothing; a
/// character of another script is four tenths. Real tokenizers find 1.0 to 1.5 times as many in prose, code and logs.
pub(super) fn estimate_text(text: &str) -> Tokens {
    let (mut begun, mut long, mut digits, mut wide) = (0, 0, 0, 0);
    let (mut before, mut length) = (Kind::Space, 0);
    for kind in text.chars().map(kind_of) {
        length = if kind == before { length + 1 } else { 1 };
        before = kind;
        match kind {
            Kind::Space => continue,
            Kind::Wide => {
                wide += 1;
                continue;
            }
            Kind::Letter | Kind::Sign => long += u64::from(length > 6),
            Kind::Digit => digits += u64::from(length > 2),
        }
        begun += u64::from(length == 1);
    }
    Tokens(begun + long / 6 + digits / 3 + wide * 2 / 5)
}

/// Prompts under this size vary too much to distinguish truncation from differences of tokenizers.
const MIN_JUDGED_PROMPT: u64 = 500;

/// The reported and the expected size of a prompt, if the provider reports fewer tokens than any tokenizer finds.
pub(super) fn missing_prompt(usage: &Usage, expected: Option<Tokens>) -> Option<(Tokens, Tokens)> {
    let (reported, expected) = (usage.input?, expected?);
    let is_missing = expected.0 > MIN_JUDGED_PROMPT
        && reported.0.saturating_mul(10) < expected.0.saturating_mul(7);
    is_missing.then_some((reported, expected))
}

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
    use proptest::prelude::*;

    fn counted(text: &str) -> u64 {
        base::tokens::count_tokens(text).0
    }

    #[test]
    fn prose_code_and_logs_are_estimated_a_little_low() {
        let samples = [
            "The build failed because the linker could not find the library. We decided to vendor it instead.",
            "fn main() -> Result<(), Error> {\n    let config = Config::load(\"app.toml\")?;\n    run(config)\n}\n",
            "2026-03-01T12:04:55Z ERROR worker[17] src/db/pool.rs:214 timeout after 30000ms (attempt 3/5)\n",
            "{\"path\":\"src/lib.rs\",\"start_line\":120,\"content\":\"pub mod units;\"}",
            "压缩之后，智能体还能继续完成它的工作吗？请根据上下文回答。",
            "========================================\n\n\n          \t\t\t        | a | b |\n",
        ];
        for sample in samples {
            let (low, real) = (estimate_text(sample).0 as f64, counted(sample) as f64);
            assert!(
                low <= real * 1.2 && low >= real * 0.45,
                "{low} of {real}: {sample}"
            );
        }
    }

    #[test]
    fn runs_are_counted_by_what_a_token_covers() {
        for (text, tokens) in [
            ("", 0),
            (" \n", 0),
            ("word", 1),
            ("internationalisation", 3),
            ("a b", 2),
            ("12", 1),
            ("1234567890", 3),
        ] {
            assert_eq!(estimate_text(text).0, tokens, "{text}");
        }
        assert_eq!(estimate_text(&"=".repeat(18)).0, 3);
        assert_eq!(estimate_text("x1_压缩之后压").0, 3 + 2);
    }

    #[test]
    fn long_runs_are_counted_whole() {
        assert_eq!(estimate_text(&"ab ".repeat(128)).0, 128);
        assert_eq!(estimate_text(&"a".repeat(6 * 128)).0, 128);
    }

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

    proptest! {
        #[test]
        fn words_are_never_estimated_far_too_high(words in proptest::collection::vec("[a-z]{1,12}", 200..400)) {
            let text = words.join(" ");
            prop_assert!(estimate_text(&text).0 <= counted(&text) * 11 / 10);
        }
    }
}
