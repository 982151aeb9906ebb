//! Shortens long tool outputs to their beginning, their end, and the parts in between that contain facts of the bank.

use std::ops::Range;

use super::edit::joined_ranges;
use crate::transcript::CUT_MARK;
use base::text::grouped;

/// Characters over which an output is cut.
pub(super) const LIMIT: usize = 2000;
/// Characters kept at the beginning.
const HEAD: usize = 1000;
/// Characters kept at the end.
const TAIL: usize = 900;
/// Characters kept around a fact.
const AROUND: usize = 80;

/// The byte at which a character begins, or the end of the text.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}

/// The output, cut; `None` if it is short enough, was cut before, or is kept whole for its facts.
pub(super) fn cut(text: &str, facts: &[String]) -> Option<String> {
    let length = text.chars().count();
    if length <= LIMIT || text.contains(CUT_MARK) {
        return None;
    }
    let mut kept = vec![
        0..byte_of(text, HEAD),
        byte_of(text, length - TAIL)..text.len(),
    ];
    for range in facts.iter().flat_map(|fact| places(text, fact)) {
        kept.push(widened(text, range));
    }
    let note = format!("\n[... cut, {}{CUT_MARK}\n", grouped(length as u64));
    // Near ones are joined, because a note would be as long as the text that it replaces.
    let kept = joined_ranges(kept, CUT_MARK.len()).into_iter();
    let parts: Vec<&str> = kept.filter_map(|range| text.get(range)).collect();
    (parts.len() > 1).then(|| parts.join(&note))
}

/// Where a fact occurs, ignoring the case of ASCII letters, as facts are matched.
fn places(text: &str, fact: &str) -> Vec<Range<usize>> {
    let fact = fact.trim();
    if fact.is_empty() {
        return Vec::new();
    }
    let (lower, fact) = (text.to_ascii_lowercase(), fact.to_ascii_lowercase());
    lower
        .match_indices(&fact)
        .map(|(at, found)| at..at + found.len())
        .collect()
}

fn widened(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text
        .get(..range.start)
        .unwrap_or("")
        .char_indices()
        .rev()
        .take(AROUND)
        .last();
    let after = text
        .get(range.end..)
        .unwrap_or("")
        .char_indices()
        .nth(AROUND);
    before.map_or(range.start, |(at, _)| at)..after.map_or(text.len(), |(at, _)| range.end + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_outputs_keep_their_ends_and_say_how_long_they_were() {
        let text = format!("{}{}", "a".repeat(6000), "é".repeat(6345));
        let short = cut(&text, &[]).expect("is long");
        assert!(short.contains("\n[... cut, 12,345 characters in the original ...]\n"));
        assert!(short.chars().count() <= LIMIT);
        assert_eq!(cut(&short, &[]), None);
        assert_eq!(cut(&"a".repeat(2000), &[]), None);
    }

    #[test]
    fn a_fact_in_the_middle_is_kept_whole() {
        let text = format!(
            "{} ERROR: port 8081 taken {}",
            "x ".repeat(2000),
            "y ".repeat(2000)
        );
        let short = cut(&text, &["error: port 8081".into()]).expect("is long");
        assert!(short.contains("ERROR: port 8081 taken"));
        assert_eq!(short.matches("[... cut").count(), 2);
        assert_eq!(cut(&short, &["error: port 8081".into()]), None);
    }

    #[test]
    fn a_fact_on_the_edge_is_kept_whole() {
        let text = format!("{}needle in the hay{}", "x".repeat(995), "y".repeat(3000));
        assert!(
            cut(&text, &["needle in the hay".into()])
                .expect("is long")
                .contains("needle in the hay")
        );
    }
}
