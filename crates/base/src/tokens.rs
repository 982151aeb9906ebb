//! Token counts by one pinned offline tokenizer (o200k_base), the same for all methods.
//!
//! It counts as tiktoken does: a regular expression splits the text into pieces. A piece that is in the vocabulary is
//! one token. Any other piece starts as one part per byte. Then the two neighbouring parts whose union has the lowest
//! rank in the vocabulary are joined, until no union is in the vocabulary. The remaining parts are the tokens.
//!
//! Two crates do the same and were measured. `tiktoken-rs` takes three times as long on transcripts and panics on a few
//! million spaces, because its regular expression backtracks. `bpe-openai` is a third slower on transcripts and adds
//! 32 MB to the program and 60 MB to its memory; its automaton is faster only on a piece of many thousand letters
//! without a space. Both give the counts in the tests below.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use crate::units::Tokens;

/// The tokens in the order of their ranks, from 0, each after a byte with its length; compressed.
static VOCABULARY: &[u8] = include_bytes!("../assets/tokens/o200k_base.tokens.zst");

/// The size of the vocabulary in bytes.
const VOCABULARY_BYTES: usize = 1_597_668;

/// Words, numbers, signs, line ends, and white space at the end of the text.
const PIECES: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+$",
);

/// White space whose last character belongs to the next piece. The original uses a lookahead, `\s+(?!\S)`. This matches
/// one character too many, which is taken off again, so that the search never backtracks.
const SPACES_AND_ONE: &str = r"\s+\s";

/// A single white space character before anything that `PIECES` does not join it to.
const SPACE: &str = r"\s+";

static O200K_BASE: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::load);

/// Counts the tokens of `text` exactly. The first call builds the vocabulary, which takes some 40 ms:
/// callers cache counts by text digest.
pub fn count_tokens(text: &str) -> Tokens {
    Tokens(O200K_BASE.count(text) as u64)
}

/// A quick guess at the tokens of `text`, for pacing and forecasts only: a quarter of the ASCII bytes and
/// four fifths of the other characters.
pub fn estimate_tokens(text: &str) -> Tokens {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|c| !c.is_ascii()).count() as u64;
    Tokens(ascii.div_ceil(4) + (other * 4).div_ceil(5))
}

type Rank = u32;

struct Tokenizer {
    ranks: HashMap<&'static [u8], Rank, FixedState>,
    /// `PIECES`, `SPACES_AND_ONE`, `SPACE`, tried in this order.
    pieces: Regex,
}

impl Tokenizer {
    fn load() -> Tokenizer {
        let mut ranks = HashMap::with_capacity_and_hasher(200_000, FixedState::default());
        let vocabulary =
            zstd::bulk::decompress(VOCABULARY, VOCABULARY_BYTES).expect("a vocabulary");
        let mut rest: &'static [u8] = vocabulary.leak();
        while let Some((length, tail)) = rest.split_first() {
            let (token, tail) = tail
                .split_at_checked(usize::from(*length))
                .expect("a vocabulary of whole tokens");
            let rank = Rank::try_from(ranks.len()).expect("fewer tokens than ranks");
            ranks.insert(token, rank);
            rest = tail;
        }
        let pieces =
            Regex::new_many(&[PIECES, SPACES_AND_ONE, SPACE]).expect("valid regular expressions");
        Tokenizer { ranks, pieces }
    }

    fn count(&self, text: &str) -> usize {
        let (mut rest, mut tokens, mut parts) = (text, 0, PartList::default());
        while let Some(found) = self.pieces.find(Input::new(rest).anchored(Anchored::Yes)) {
            let matched = rest.get(..found.end()).unwrap_or(rest);
            let is_one_too_many = found.pattern().as_usize() == 1;
            let surplus = matched
                .chars()
                .next_back()
                .filter(|_| is_one_too_many)
                .map_or(0, char::len_utf8);
            let (piece, tail) = rest.split_at(matched.len() - surplus);
            let piece = piece.as_bytes();
            tokens += if self.ranks.contains_key(piece) {
                1
            } else {
                parts.join_all(piece, &self.ranks)
            };
            rest = tail;
        }
        tokens
    }
}

/// The parts of one piece: a linked list over the positions of its bytes. A heap finds the next union in logarithmic
/// time, so that a piece of megabytes (a base64 text, a run of spaces) takes seconds and not hours.
#[derive(Default)]
struct PartList {
    /// Where the part that starts at a position ends; `JOINED` if none starts there any more.
    end: Vec<usize>,
    /// Where the part before the one that starts at a position starts.
    before: Vec<usize>,
    /// Rank, start and end of unions. A union is outdated once one of its two parts was joined to another.
    unions: BinaryHeap<Reverse<(Rank, usize, usize)>>,
}

const JOINED: usize = 0;

impl PartList {
    /// Joins the bytes of `piece`, lowest rank first, and returns the number of parts left.
    fn join_all(&mut self, piece: &[u8], ranks: &HashMap<&[u8], Rank, FixedState>) -> usize {
        self.end.clear();
        self.end.extend(1..=piece.len());
        self.before.clear();
        self.before
            .extend((0..piece.len()).map(|start| start.saturating_sub(1)));
        self.unions.clear();
        let mut left = piece.len();
        for start in 0..piece.len().saturating_sub(1) {
            self.propose(piece, ranks, start);
        }
        while let Some(Reverse((_, start, end))) = self.unions.pop() {
            let middle = self.end[start];
            if middle == JOINED || middle >= end || self.end[middle] != end {
                continue;
            }
            self.end[start] = end;
            self.end[middle] = JOINED;
            left -= 1;
            if end < piece.len() {
                self.before[end] = start;
                self.propose(piece, ranks, start);
            }
            if start > 0 {
                self.propose(piece, ranks, self.before[start]);
            }
        }
        left
    }

    /// Queues the union of the part that starts at `start` with the next one, if it is a token.
    fn propose(&mut self, piece: &[u8], ranks: &HashMap<&[u8], Rank, FixedState>, start: usize) {
        let end = self.end[self.end[start]];
        if let Some(rank) = ranks.get(&piece[start..end]) {
            self.unions.push(Reverse((*rank, start, end)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        O200K_BASE.count(text)
    }

    #[test]
    fn counts_by_the_pinned_vocabulary() {
        assert_eq!(count_tokens("hello world"), Tokens(2));
        assert_eq!(count_tokens(""), Tokens(0));
    }

    /// Pseudo-random numbers, the same on every machine.
    fn numbers(count: usize) -> impl Iterator<Item = u32> {
        let next = |state: &u64| {
            Some(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        };
        let states = std::iter::successors(next(&1), next);
        states.take(count).map(|state| (state >> 33) as u32)
    }

    #[test]
    fn the_vocabulary_is_whole() {
        assert_eq!(O200K_BASE.ranks.len(), 199_998);
        assert_eq!(O200K_BASE.ranks.get(&b"!"[..]), Some(&0));
    }

    #[test]
    fn counts_as_tiktoken_does() {
        let samples = [
            ("", 0),
            ("hello world", 2),
            ("I'LL don't we've 'sS it's", 9),
            (
                "fn main() -> Result<(), Error> {\n    let config = Config::load(\"app.toml\")?;\n\trun(config)\n}\n",
                26,
            ),
            (
                "2026-03-01T12:04:55Z ERROR worker[17] src/db/pool.rs:214 timeout after 30000ms (attempt 3/5)\r\n\r\n",
                38,
            ),
            (
                "压缩之后，智能体还能继续完成它的工作吗？请根据上下文回答。",
                20,
            ),
            (
                "日本語のテキスト、한국어 텍스트, Ελληνικά, русский, العربية, हिन्दी",
                21,
            ),
            ("👩‍👩‍👧‍👦🎉 naïve é ﷽ 🇩🇪", 23),
            ("<|endoftext|> <|im_start|>user", 14),
            ("a  b   c \n \n\n  d\t\t\te   ", 12),
            ("\u{a0}\u{a0}\u{3000}x\u{2028}y", 5),
            ("zzzzqqqqxjvkwpq0123456789abcdef+/==", 16),
            (
                "{\"path\":\"src/lib.rs\",\"start_line\":120,\"content\":\"pub mod units;\"}",
                19,
            ),
            ("========================================//////", 4),
        ];
        for (text, tokens) in samples {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn counts_long_pieces_as_tiktoken_does() {
        assert_eq!(count(&format!("{}x", " ".repeat(100_000))), 783);
        assert_eq!(count(&format!("y{}", "\n".repeat(5_000))), 314);
        assert_eq!(count(&"a".repeat(20_001)), 2_501);
        assert_eq!(count(&"internationalisation ".repeat(5_000)), 10_001);
        let letters: String = numbers(50_000)
            .filter_map(|number| char::from_u32(97 + number % 26))
            .collect();
        assert_eq!(count(&letters), 26_042);
        let characters: String = numbers(50_000)
            .filter_map(|number| char::from_u32(number % 0x30000))
            .collect();
        assert_eq!(count(&characters), 167_324);
    }
}
