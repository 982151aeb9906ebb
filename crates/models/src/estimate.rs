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

/// What a byte belongs to. Runs of letters, signs and digits make tokens.
mod kind {
    pub(super) const SPACE: u8 = 0;
    pub(super) const LETTER: u8 = 1;
    pub(super) const SIGN: u8 = 2;
    pub(super) const DIGIT: u8 = 3;
    /// Begins a character of another script.
    pub(super) const WIDE: u8 = 4;
    pub(super) const INNER: u8 = 5;
}

/// Written as comparisons, because a `match` becomes a look-up in a table, one byte at a time.
fn kind_of(byte: u8) -> u8 {
    let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let is_digit = byte.wrapping_sub(b'0') < 10;
    if is_letter {
        kind::LETTER
    } else if is_digit {
        kind::DIGIT
    } else if byte <= b' ' {
        kind::SPACE
    } else if byte < 0x80 {
        kind::SIGN
    } else if byte < 0xC0 {
        kind::INNER
    } else {
        kind::WIDE
    }
}

/// Bytes that are counted together. Every byte that is sent is counted here, and loops of a fixed length without branches
/// take a third of the time.
const BLOCK: usize = 128;
/// Bytes of the previous block, in which a run may have begun.
const BEFORE: usize = 16;

type KindWindow = [u8; BEFORE + BLOCK];

/// 1 at each byte that `left` marks, if `right` marks the byte `BACK` places before it.
fn joined<const BACK: usize>(left: &KindWindow, right: &KindWindow) -> KindWindow {
    let mut both = [0; BEFORE + BLOCK];
    for at in BACK..both.len() {
        both[at] = left[at] & right[at - BACK];
    }
    both
}

/// Counts of what makes tokens.
#[derive(Default)]
struct Counted {
    /// Runs.
    begun: u64,
    /// Bytes after the sixth of a word or a run of signs.
    long: u64,
    /// Digits after the second of a number.
    digits: u64,
    /// Characters of other scripts.
    wide: u64,
}

impl Counted {
    /// Counts the block of a window, by the kinds of its bytes.
    fn add(&mut self, kinds: &KindWindow) {
        let mut same: KindWindow = [0; BEFORE + BLOCK];
        for at in 1..same.len() {
            same[at] = u8::from(kinds[at] == kinds[at - 1]);
        }
        let third = joined::<1>(&same, &same);
        let seventh = joined::<4>(&joined::<2>(&third, &third), &third);
        let (mut begun, mut long, mut digits, mut wide) = (0u8, 0u8, 0u8, 0u8);
        for at in BEFORE..kinds.len() {
            let is_word = u8::from(kinds[at] == kind::LETTER) | u8::from(kinds[at] == kind::SIGN);
            let is_digit = u8::from(kinds[at] == kind::DIGIT);
            begun += (is_word | is_digit) & (1 ^ same[at]);
            long += is_word & seventh[at];
            digits += is_digit & third[at];
            wide += u8::from(kinds[at] == kind::WIDE);
        }
        self.begun += u64::from(begun);
        self.long += u64::from(long);
        self.digits += u64::from(digits);
        self.wide += u64::from(wide);
    }
}

/// A low estimate by runs of like characters. A word or a run of signs is one token, plus a sixth of one for each character
/// after the sixth; a number is one token, plus a third for each digit after the second; white space is nothing; a
/// character of another script is four tenths. Real tokenizers find 1.0 to 1.5 times as many in prose, code and logs.
pub(super) fn estimate_text(text: &str) -> Tokens {
    let mut counted = Counted::default();
    let mut kinds: KindWindow = [kind::SPACE; BEFORE + BLOCK];
    for block in text.as_bytes().chunks(BLOCK) {
        kinds.copy_within(BLOCK.., 0);
        kinds[BEFORE..].fill(kind::SPACE);
        kinds[BEFORE..]
            .iter_mut()
            .zip(block)
            .for_each(|(kind, byte)| *kind = kind_of(*byte));
        counted.add(&kinds);
    }
    let Counted {
        begun,
        long,
        digits,
        wide,
    } = counted;
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
    fn the_end_of_a_block_ends_no_run() {
        assert_eq!(estimate_text(&"ab ".repeat(BLOCK)).0, BLOCK as u64);
        assert_eq!(estimate_text(&"a".repeat(6 * BLOCK)).0, BLOCK as u64);
        assert_eq!(
            estimate_text(&format!("{}sentence", " ".repeat(BLOCK - 4))).0,
            1
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
