//! Token counts by one pinned offline tokenizer (o200k_base), the same for all methods.

use crate::tokenizer;
use crate::units::Tokens;

/// Counts the tokens of `text` exactly. The first call builds the vocabulary, which takes some 40 ms:
/// callers keep counts by text digest and come here only for what they do not know.
pub fn count_tokens(text: &str) -> Tokens {
    Tokens(tokenizer::count(text) as u64)
}

/// A quick guess at the tokens of `text`, for pacing and forecasts only: a quarter of the ASCII bytes and
/// four fifths of the other characters.
pub fn estimate_tokens(text: &str) -> Tokens {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|c| !c.is_ascii()).count() as u64;
    Tokens(ascii.div_ceil(4) + (other * 4).div_ceil(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_the_pinned_vocabulary() {
        assert_eq!(count_tokens("hello world"), Tokens(2));
        assert_eq!(count_tokens(""), Tokens(0));
    }
}
