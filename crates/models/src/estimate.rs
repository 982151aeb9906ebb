//! Estimates the tokens of a call, for pacing and to notice a prompt that was cut.

use super::call::{Call, Tool, Turn};
use base::units::Tokens;

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

#[cfg(test)]
mod tests {
    use super::*;
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

    proptest! {
        #[test]
        fn words_are_never_estimated_far_too_high(words in proptest::collection::vec("[a-z]{1,12}", 200..400)) {
            let text = words.join(" ");
            prop_assert!(estimate_text(&text).0 <= counted(&text) * 11 / 10);
        }
    }
}
