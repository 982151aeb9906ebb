//! False values: an answer in which every mention of one fact is replaced by a value of the same kind that is not true. A
//! judge who reads facts grades such an answer lower.

use super::{Fact, FactFinder};
use sessions::transcript::{MappedFold, fold};

/// Words that take the place of the longest word of a path or an identifier.
const STEMS: [&str; 6] = [
    "gateway", "lantern", "quarry", "meadow", "turbine", "harvest",
];

/// `text` with a false value wherever it mentions `fact`. Values in `truths` are never chosen: they are expected, accepted
/// or were true once. `None` if the text does not mention the fact, or if no other value of its kind is known: only
/// numbers, versions, paths and identifiers have one.
pub fn with_false_value(text: &str, fact: &Fact, truths: &[Fact]) -> Option<String> {
    let finder = FactFinder::new(fact);
    let truths = FactFinder::all(truths);
    let (mut edited, mut end) = (String::new(), 0);
    for mention in finder.find(&MappedFold::new(text)) {
        let value = text.get(mention.clone())?;
        edited.push_str(text.get(end..mention.start)?);
        let false_value = other_values(value).into_iter().find(|other| {
            let folded = fold(other);
            !finder.occurs_in(&folded) && !truths.iter().any(|truth| truth.occurs_in(&folded))
        });
        edited.push_str(&false_value?);
        end = mention.end;
    }
    edited.push_str(text.get(end..)?);
    // A mention may remain where several overlap.
    (end > 0 && !finder.occurs_in(&fold(&edited))).then_some(edited)
}

/// Other values of the kind of `value`.
fn other_values(value: &str) -> Vec<String> {
    if value.bytes().any(|byte| byte.is_ascii_digit()) {
        return (1..=9).map(|by| with_shifted_digits(value, by)).collect();
    }
    let is_name = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c));
    let is_compound = value.contains(['_', '-', '/', '.', ':'])
        || value.chars().skip(1).any(|c| c.is_ascii_uppercase());
    match longest_word(value).filter(|_| is_name && is_compound) {
        Some(word) => STEMS
            .iter()
            .map(|stem| value.replacen(word, &in_case_of(word, stem), 1))
            .collect(),
        None => Vec::new(),
    }
}

/// `value` with `by` added to each digit, modulo 10. No number begins with 0 unless it did before.
fn with_shifted_digits(value: &str, by: u32) -> String {
    let mut shifted = String::with_capacity(value.len());
    let mut is_first = true;
    for c in value.chars() {
        let digit = c.to_digit(10);
        shifted.push(
            digit
                .and_then(|digit| shifted_digit(digit, by, is_first))
                .unwrap_or(c),
        );
        is_first = digit.is_none();
    }
    shifted
}

fn shifted_digit(digit: u32, by: u32, is_first: bool) -> Option<char> {
    let shifted = match (digit + by) % 10 {
        0 if is_first && digit != 0 => digit % 9 + 1,
        shifted => shifted,
    };
    char::from_digit(shifted, 10)
}

fn longest_word(value: &str) -> Option<&str> {
    let words = value
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 2);
    words.rev().max_by_key(|word| word.len())
}

fn in_case_of(word: &str, stem: &str) -> String {
    let is_upper = word.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_upper {
        stem.to_ascii_uppercase()
    } else {
        stem.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(value: &str) -> Fact {
        Fact {
            spellings: vec![value.to_owned()],
        }
    }

    fn edited(text: &str, value: &str, truths: &[&str]) -> Option<String> {
        with_false_value(
            text,
            &fact(value),
            &truths.iter().copied().map(fact).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn every_mention_gets_another_value_of_its_kind() {
        let both = edited("It listens on 8081; keep 8081.", "8081", &["8081"]);
        assert_eq!(both.as_deref(), Some("It listens on 9192; keep 9192."));
        assert_eq!(
            edited("in `src/auth/session.rs`", "src/auth/session.rs", &[]).as_deref(),
            Some("in `src/auth/gateway.rs`")
        );
        assert_eq!(
            edited("set MAX_RETRIES", "MAX_RETRIES", &[]).as_deref(),
            Some("set MAX_GATEWAY")
        );
        assert_eq!(
            edited("after 10 s", "10 s", &[]).as_deref(),
            Some("after 21 s")
        );
    }

    #[test]
    fn a_false_value_is_no_other_truth_and_some_facts_have_none() {
        assert_eq!(
            edited("port 8081", "8081", &["9192"]).as_deref(),
            Some("port 9203")
        );
        assert_eq!(edited("They use Redis.", "Redis", &[]), None);
        assert_eq!(edited("no new dependency", "no new dependency", &[]), None);
        assert_eq!(edited("Nothing is known.", "8081", &[]), None);
    }
}
