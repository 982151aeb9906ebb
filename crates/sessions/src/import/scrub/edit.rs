//! Texts without their escapes, and replacements in texts.
//!
//! Shortens long tool outputs to their beginning, their end, and the parts in between that contain facts of the bank.

use std::borrow::Cow;
use std::ops::Range;

use crate::transcript::CUT_MARK;
use base::text::{around, grouped};

/// The text with its escapes blanked out, byte for byte as long: `\n`, `\t`, `\u4f60` and the like become line breaks,
/// the backslashes of an escaped quote become blanks after it, and so do the colour codes of terminals. In JSON inside
/// a text, or in coloured output, the letter of an escape must not pass for the first letter of a word, and a quote
/// must be seen however often it was escaped.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\u{1b}']) {
        return text.into();
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
        if let Some(quote @ (b'"' | b'\'' | b'`')) =
            rest.get(slashes).copied().filter(|_| slashes > 0)
        {
            // The quote comes first, directly after the text that it closes.
            fill(&mut bytes, at..at + slashes + 1, b' ');
            fill(&mut bytes, at..at + 1, quote);
            at += slashes + 1;
            continue;
        }
        let (blanked, filler) = if slashes >= 2 {
            // Escaped backslashes, as in a path; an odd one at the end begins an escape.
            at += slashes / 2 * 2;
            continue;
        } else {
            escape(rest)
        };
        fill(&mut bytes, at..at + blanked, filler);
        at += blanked.max(1);
    }
    String::from_utf8(bytes).map_or(text.into(), Cow::Owned)
}

fn fill(bytes: &mut [u8], place: Range<usize>, filler: u8) {
    bytes.get_mut(place).unwrap_or_default().fill(filler);
}

/// Ranges in order; those that overlap, or have at most `gap` bytes or places between them, are one.
pub(crate) fn joined_ranges(mut ranges: Vec<Range<usize>>, gap: usize) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + gap => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The text without zero-width characters between two ASCII characters: they occur there only to divide a secret.
pub(super) fn joined(text: &str) -> Cow<'_, str> {
    // Not U+FEFF, which begins files.
    const WIDTHLESS: [char; 5] = ['\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}'];
    if !text.contains(WIDTHLESS) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, run)) = rest.find(WIDTHLESS).map(|at| rest.split_at(at)) {
        out.push_str(before);
        rest = run.trim_start_matches(WIDTHLESS);
        let beside = [out.chars().next_back(), rest.chars().next()];
        if !beside
            .iter()
            .all(|c| c.is_some_and(|c| c.is_ascii_graphic()))
        {
            out.push_str(run.strip_suffix(rest).unwrap_or(run));
        }
    }
    out.push_str(rest);
    out.into()
}

/// The bytes of the escape that `rest` begins with, 0 if there is none, and what takes their place.
fn escape(rest: &[u8]) -> (usize, u8) {
    let (length, is_colour) = match (rest.first(), rest.get(1)) {
        (Some(0x1b), _) => (1, true),
        (Some(b'\\'), Some(b'n' | b'r' | b't' | b'b' | b'f')) => (2, false),
        (Some(b'\\'), Some(b'u')) => match hex_digits(rest.get(2..6)) {
            Some(code) => (6, code.eq_ignore_ascii_case(b"001b")),
            None => return (0, b' '),
        },
        (Some(b'\\'), Some(b'x')) => match hex_digits(rest.get(2..4)) {
            Some(code) => (4, code.eq_ignore_ascii_case(b"1b")),
            None => return (0, b' '),
        },
        (Some(b'\\'), Some(b'0')) if rest.starts_with(b"\\033") => (4, true),
        (Some(b'\\'), Some(b'e')) if rest.get(2) == Some(&b'[') => (2, true),
        _ => return (0, b' '),
    };
    if is_colour {
        (
            length + colour_length(rest.get(length..).unwrap_or(&[])),
            b' ',
        )
    } else {
        (length, b'\n')
    }
}

fn hex_digits(bytes: Option<&[u8]>) -> Option<&[u8]> {
    bytes.filter(|bytes| bytes.iter().all(u8::is_ascii_hexdigit))
}

/// The bytes of `[1;32m` and the like.
fn colour_length(rest: &[u8]) -> usize {
    if rest.first() != Some(&b'[') {
        return 0;
    }
    let numbers = rest
        .iter()
        .skip(1)
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    if rest.get(numbers + 1).is_some_and(u8::is_ascii_alphabetic) {
        numbers + 2
    } else {
        0
    }
}

/// The text with each range replaced. Of overlapping ranges the first is replaced; ranges that change nothing are
/// skipped.
pub(super) fn replaced<'a>(
    text: &'a str,
    mut edits: Vec<(Range<usize>, &str)>,
    count: &mut usize,
) -> Cow<'a, str> {
    edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut out = String::new();
    let mut last = 0;
    let mut changed = false;
    for (range, new) in edits {
        let (Some(between), Some(old)) = (text.get(last..range.start), text.get(range.clone()))
        else {
            continue;
        };
        if old == new {
            continue;
        }
        out.push_str(between);
        out.push_str(new);
        last = range.end;
        changed = true;
        *count += 1;
    }
    if !changed {
        return text.into();
    }
    out.push_str(text.get(last..).unwrap_or(""));
    out.into()
}

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
    let (before, after) = around(text, &range);
    let before = before.char_indices().rev().take(AROUND).last();
    let after = after.char_indices().nth(AROUND);
    before.map_or(range.start, |(at, _)| at)..after.map_or(text.len(), |(at, _)| range.end + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_blanked_and_backslashes_of_paths_are_not() {
        assert_eq!(
            unescaped(r"a\nb \\new \u4f60x"),
            "a\n\nb \\\\new \n\n\n\n\n\nx"
        );
        assert_eq!(unescaped("plain"), "plain");
        assert_eq!(unescaped("a\u{1b}[32mb"), "a     b");
        assert_eq!(unescaped(r"\u001b[1;32mb"), format!("{}b", " ".repeat(12)));
        assert_eq!(unescaped(r#"{\"a\":\\\"b\\\"}"#), r#"{" a" :"   b"   }"#);
    }

    #[test]
    fn zero_width_characters_are_removed_only_between_ascii() {
        assert_eq!(
            joined("g\u{200b}\u{200d}h\u{ad}p 喜\u{200b}欢 a\u{200b}欢"),
            "ghp 喜\u{200b}欢 a\u{200b}欢"
        );
    }

    #[test]
    fn the_first_of_overlapping_edits_is_made() {
        let mut count = 0;
        let edits = vec![(0..3, "x"), (2..5, "y"), (5..6, "f"), (6..7, "z")];
        assert_eq!(replaced("abcdefg", edits, &mut count), "xdefz");
        assert_eq!(count, 2);
    }
}

#[cfg(test)]
mod cut_tests {
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
