//! Long tool outputs: their beginning, their end, and whatever in between holds a fact that somebody will ask for.

use std::ops::Range;

/// Characters over which an output is cut.
pub(super) const LIMIT: usize = 2000;
/// Characters kept at the beginning.
const HEAD: usize = 1000;
/// Characters kept at the end.
const TAIL: usize = 900;
/// Characters kept around a fact.
const AROUND: usize = 80;
/// The words that mark a cut; a text that has them was cut before.
const MARK: &str = " characters in the original ...]";

/// The output, cut; `None` if it is short enough or was cut before.
pub(super) fn cut(text: &str, facts: &[String]) -> Option<String> {
    let length = text.chars().count();
    if length <= LIMIT || text.contains(MARK) {
        return None;
    }
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let mut kept = vec![0..at(HEAD), at(length - TAIL)..text.len()];
    for range in facts.iter().flat_map(|fact| places(text, fact)) {
        kept.push(widened(text, range));
    }
    let note = format!("\n[... cut, {}{MARK}\n", grouped(length));
    let parts: Vec<&str> = merged(kept).into_iter().filter_map(|range| text.get(range)).collect();
    let short = parts.join(&note);
    (parts.len() > 1).then_some(short)
}

/// Where a fact stands, blind to the case of ASCII letters, as facts are matched.
fn places(text: &str, fact: &str) -> Vec<Range<usize>> {
    let fact = fact.trim();
    if fact.is_empty() {
        return Vec::new();
    }
    let (lower, fact) = (text.to_ascii_lowercase(), fact.to_ascii_lowercase());
    lower.match_indices(&fact).map(|(at, found)| at..at + found.len()).collect()
}

fn widened(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or("").char_indices().rev().take(AROUND).last();
    let after = text.get(range.end..).unwrap_or("").char_indices().nth(AROUND);
    before.map_or(range.start, |(at, _)| at)..after.map_or(text.len(), |(at, _)| range.end + at)
}

/// Ranges in order, overlapping and near ones joined: a note takes the room of what it stands for.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end + MARK.len() => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// `12345` as `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let (first, rest) = digits.split_at(head);
    let groups = rest.as_bytes().chunks(3).map(|chunk| String::from_utf8_lossy(chunk).into_owned());
    Some(first.to_owned()).filter(|first| !first.is_empty()).into_iter().chain(groups).collect::<Vec<_>>().join(",")
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
        let text = format!("{} ERROR: port 8081 taken {}", "x ".repeat(2000), "y ".repeat(2000));
        let short = cut(&text, &["error: port 8081".into()]).expect("is long");
        assert!(short.contains("ERROR: port 8081 taken"));
        assert_eq!(short.matches("[... cut").count(), 2);
        assert_eq!(cut(&short, &["error: port 8081".into()]), None);
    }

    #[test]
    fn a_fact_on_the_edge_is_not_parted() {
        let text = format!("{}needle in the hay{}", "x".repeat(995), "y".repeat(3000));
        assert!(cut(&text, &["needle in the hay".into()]).expect("is long").contains("needle in the hay"));
    }
}
