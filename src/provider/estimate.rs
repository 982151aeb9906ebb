//! How many tokens a call will take, before anyone has counted: for pacing, and to notice a prompt that was cut.

use super::api::{Call, Turn};
use crate::units::Tokens;

/// Reserved for the reply of a call that sets no limit.
const USUAL_OUTPUT: Tokens = Tokens(1024);

/// Input tokens, estimated low, and the most output tokens the call allows itself. Items of a provider count
/// nothing: their length says nothing about their tokens.
pub fn estimate(call: &Call) -> (Tokens, Tokens) {
    let turns: Tokens = call.turns.iter().map(estimate_turn).sum();
    let instructions = call.instructions.as_deref().map_or(Tokens(0), estimate_text);
    (turns + instructions, call.settings.max_output_tokens.unwrap_or(USUAL_OUTPUT))
}

fn estimate_turn(turn: &Turn) -> Tokens {
    match turn {
        Turn::Text { text, .. } => estimate_text(text),
        Turn::Items(_) => Tokens(0),
        Turn::Messages(messages) => messages
            .iter()
            .map(|m| {
                let calls = m.tool_calls.iter().map(|c| &c.function);
                let calls: Tokens = calls.map(|f| estimate_text(&f.name) + estimate_text(&f.arguments)).sum();
                estimate_text(&m.content) + calls
            })
            .sum(),
    }
}

/// How bytes of one kind make tokens.
#[derive(Clone, Copy)]
struct Kind {
    id: u8,
    /// Bytes of a run that one token covers.
    covered: u8,
    /// 0 where a run makes no token.
    tokens: u8,
}

const SPACE: Kind = Kind { id: 0, covered: u8::MAX, tokens: 0 };

const fn kind(byte: u8) -> Kind {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => Kind { id: 1, covered: 8, tokens: 1 },
        b'0'..=b'9' => Kind { id: 2, covered: 3, tokens: 1 },
        0..=b' ' => SPACE,
        // Other scripts are counted by their characters.
        128.. => Kind { id: 3, covered: u8::MAX, tokens: 0 },
        _ => Kind { id: 4, covered: 8, tokens: 1 },
    }
}

/// Looked up, since every byte that is sent passes here.
static KINDS: [Kind; 256] = {
    let (mut kinds, mut byte) = ([SPACE; 256], 0);
    while byte < 256 {
        kinds[byte] = kind(byte as u8);
        byte += 1;
    }
    kinds
};

/// A low estimate by runs of like characters: a word is one token for each eight letters begun, a number one for
/// three digits, white space nothing, a run of signs one for each eight, other scripts four tenths a character.
/// Real tokenizers find 1.0 to 1.5 times as many in prose, code and logs.
pub(super) fn estimate_text(text: &str) -> Tokens {
    let (mut tokens, mut wide, mut run, mut left) = (0u64, 0u64, SPACE.id, 0u8);
    for byte in text.bytes() {
        let Kind { id, covered, tokens: one } = KINDS[usize::from(byte)];
        let begins = id != run || left == 0;
        tokens += u64::from(one & u8::from(begins));
        left = if begins { covered } else { left } - 1;
        run = id;
        // The bytes 10xxxxxx continue a character.
        wide += u64::from(byte >= 0xC0);
    }
    Tokens(tokens + wide * 2 / 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(text: &str) -> u64 {
        bpe_openai::o200k_base().count(text) as u64
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
            assert!(low <= real * 1.2 && low >= real * 0.45, "{low} of {real}: {sample}");
        }
    }

    #[test]
    fn runs_are_counted_by_what_a_token_covers() {
        for (text, tokens) in
            [("", 0), (" \n", 0), ("word", 1), ("sentence", 1), ("sentences", 2), ("a b", 2), ("1234", 2)]
        {
            assert_eq!(estimate_text(text).0, tokens, "{text}");
        }
        assert_eq!(estimate_text(&"=".repeat(17)).0, 3);
        assert_eq!(estimate_text("x1_压缩之后压").0, 3 + 2);
    }

    proptest! {
        #[test]
        fn words_are_never_estimated_far_too_high(words in proptest::collection::vec("[a-z]{1,12}", 200..400)) {
            let text = words.join(" ");
            prop_assert!(estimate_text(&text).0 <= counted(&text) * 11 / 10);
        }
    }
}
