//! Shortens long tool outputs to their beginning, their end, and the parts in between that contain facts of the bank.

use std::ops::Range;

use super::edit::{first_bytes, joined_ranges, last_bytes};
use super::secrets::secrets;
use crate::references::references_in;
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

/// Characters of each end of an output that are kept while a log is read: more than [`cut`] keeps, so that its result
/// is the same.
const READ: usize = 2048;
/// The most passwords in the middle of an output that is shortened.
const MOST_PASSWORDS: usize = 256;
/// The marks of the text that replaces the middle of an output between reading and cutting. The references of the
/// middle, and its passwords with the words that introduce them, are between the first two, the length of the whole
/// output between the last two.
const GAP: [&str; 3] = ["\n\u{F8FF}", "\u{F8FF}of ", " characters\u{F8FF}\n"];

/// Shortens a very long output while a log is read, to its ends, the references between them, and its length: so a log
/// of many long outputs needs no more memory than the fixture that becomes of it. No secret is divided: its rest might
/// not be recognised any more. A password that only the middle introduces is still found everywhere in the session.
pub(crate) fn shorten_while_reading(text: String) -> String {
    let length = text.chars().count();
    if length <= 3 * READ || text.contains(CUT_MARK) {
        return text;
    }
    let (mut head, mut tail) = (byte_of(&text, READ), byte_of(&text, length - READ));
    let secrets = secrets(&text);
    for found in &secrets {
        if found.range.start < head && head < found.range.end {
            head = found.range.end;
        }
        if found.range.start < tail && tail < found.range.end {
            tail = found.range.start;
        }
    }
    let passwords: Vec<Range<usize>> = secrets
        .into_iter()
        .map(|found| found.range)
        .filter(|range| head <= range.start && range.end <= tail)
        .collect();
    match (text.get(..head), text.get(tail..)) {
        (Some(start), Some(end)) if head < tail && passwords.len() <= MOST_PASSWORDS => {
            let middle = references_in(text.get(head..tail).unwrap_or(""));
            let passwords = passwords.iter().map(|password| introduced(&text, password));
            let kept: Vec<&str> = middle
                .iter()
                .map(|reference| reference.text.as_str())
                .chain(passwords)
                .collect();
            let [open, of, close] = GAP;
            format!("{start}{open}{}{of}{length}{close}{end}", kept.join("\n"))
        }
        _ => text,
    }
}

/// A password with the text around it that shows that it is one.
fn introduced<'t>(text: &'t str, password: &Range<usize>) -> &'t str {
    const BEFORE: usize = 256;
    const AFTER: usize = 32;
    let before = last_bytes(text.get(..password.start).unwrap_or(""), BEFORE);
    let after = first_bytes(text.get(password.end..).unwrap_or(""), AFTER);
    text.get(password.start - before.len()..password.end + after.len())
        .unwrap_or("")
}

/// The byte at which a character begins, or the end of the text.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}

/// The number of characters that a text had in the log.
pub fn full_length(text: &str) -> usize {
    gap(text).map_or_else(|| text.chars().count(), |(_, length)| length)
}

/// Where the middle of a text was left out while reading, and how many characters the whole had.
fn gap(text: &str) -> Option<(Range<usize>, usize)> {
    let [open, of, close] = GAP;
    let start = text.find(open)?;
    let (references, rest) = text.get(start + open.len()..)?.split_once(of)?;
    let (length, _) = rest.split_once(close)?;
    let end = start + open.len() + references.len() + of.len() + length.len() + close.len();
    // No output has more: a log may contain the marks, and sums of the lengths must not overflow.
    Some((start..end, length.parse::<u32>().ok()? as usize))
}

/// The output, cut; `None` if it is short enough, was cut before, or is kept whole for its facts.
pub(super) fn cut(text: &str, facts: &[String]) -> Option<String> {
    let (length, gap) = (text.chars().count(), gap(text));
    if gap.is_none() && (length <= LIMIT || text.contains(CUT_MARK)) {
        return None;
    }
    let mut kept = vec![
        0..byte_of(text, HEAD),
        byte_of(text, length.saturating_sub(TAIL))..text.len(),
    ];
    let (gap, length) = gap.unwrap_or((0..0, length));
    for range in facts.iter().flat_map(|fact| places(text, fact)) {
        kept.push(widened(text, range));
    }
    let note = format!("\n[... cut, {}{CUT_MARK}\n", grouped(length as u64));
    // Near ones are joined, because a note would be as long as the text that it replaces.
    let kept = joined_ranges(kept, CUT_MARK.len())
        .into_iter()
        .flat_map(|range| without(range, &gap));
    let parts: Vec<&str> = kept.filter_map(|range| text.get(range)).collect();
    let short = parts.join(&note);
    (parts.len() > 1).then_some(short)
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

/// The parts of `range` outside `gap`.
fn without(range: Range<usize>, gap: &Range<usize>) -> Vec<Range<usize>> {
    if range.end <= gap.start || gap.end <= range.start {
        return vec![range];
    }
    let outside = [range.start..gap.start, gap.end..range.end];
    // A range over the whole gap stays two, even if one is empty: the note is between them.
    let is_over = range.start <= gap.start && gap.end <= range.end;
    outside
        .into_iter()
        .filter(|part| part.start < part.end || (is_over && part.start == part.end))
        .collect()
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
    fn an_output_shortened_while_reading_is_cut_as_if_it_had_not_been() {
        let text: String = (0..9000).map(|n| format!("zeile {n} ü\n")).collect();
        let short = shorten_while_reading(text.clone());
        assert!(short.len() < 9000, "{}", short.len());
        assert_eq!(cut(&short, &[]), cut(&text, &[]));
        assert_eq!(shorten_while_reading("x".repeat(6000)), "x".repeat(6000));
    }

    #[test]
    fn what_marks_a_shortened_output_never_stays() {
        let text = format!("{}near{}", "é".repeat(READ - 10), "y ".repeat(4000));
        let short = cut(&shorten_while_reading(text), &["near".into()]).expect("is long");
        assert!(
            short.contains("near") && !short.contains('\u{F8FF}'),
            "{short}"
        );
        assert_eq!(
            short.matches("[... cut, 10,042 characters").count(),
            3,
            "{short}"
        );
        let shrunk = shorten_while_reading(format!("a{}b", "\t".repeat(9000))).replace('\t', "");
        assert_eq!(
            cut(&shrunk, &[]).expect("was long"),
            "a\n[... cut, 9,002 characters in the original ...]\nb"
        );
    }

    #[test]
    fn marks_in_a_log_with_an_impossible_length_are_text() {
        let [open, of, close] = GAP;
        let text = format!("a{open}{of}{}{close}b", u64::MAX);
        assert_eq!(full_length(&text), text.chars().count());
    }

    #[test]
    fn no_secret_is_divided_while_reading() {
        let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7x1y2z3A4b5C6\n".repeat(90);
        let key = format!(
            "-----BEGIN {0} KEY-----\n{lines}-----END {0} KEY-----\n",
            "PRIVATE"
        );
        let text = format!("{}{key}done", "a line of output\n".repeat(2000));
        let short = shorten_while_reading(text);
        assert!(
            short.contains("-----BEGIN") && short.len() < 16_000,
            "{}",
            short.len()
        );
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
