//! Looking at a text without its escapes, and changing pieces of it.

use std::borrow::Cow;
use std::ops::Range;

/// The text with what follows a backslash in `\n`, `\t`, `\u4f60` and the like blanked out, byte for byte as long: in
/// JSON inside a text the letter of an escape must not pass for the first letter of a word.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        if bytes.get(at) != Some(&b'\\') {
            at += 1;
            continue;
        }
        let blanks = match bytes.get(at + 1) {
            Some(b'n' | b'r' | b't' | b'b' | b'f') => 1,
            Some(b'u') if bytes.get(at + 2..at + 6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => 5,
            _ => 0,
        };
        bytes.iter_mut().skip(at + 1).take(blanks).for_each(|byte| *byte = b'\n');
        at += 2.max(blanks + 1);
    }
    String::from_utf8(bytes).map_or(text.into(), Cow::Owned)
}

/// The text with each range replaced. Of overlapping ranges the first holds; ranges that change nothing are passed.
pub(super) fn replaced<'a>(text: &'a str, mut edits: Vec<(Range<usize>, &str)>, count: &mut usize) -> Cow<'a, str> {
    edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut out = String::new();
    let mut last = 0;
    let mut changed = false;
    for (range, new) in edits {
        let (Some(between), Some(old)) = (text.get(last..range.start), text.get(range.clone())) else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_blanked_and_backslashes_of_paths_are_not() {
        assert_eq!(unescaped(r"a\nb \\new \u4f60x"), "a\\\nb \\\\new \\\n\n\n\n\nx");
        assert_eq!(unescaped("plain"), "plain");
    }

    #[test]
    fn the_first_of_overlapping_edits_holds() {
        let mut count = 0;
        let edits = vec![(0..3, "x"), (2..5, "y"), (5..6, "f"), (6..7, "z")];
        assert_eq!(replaced("abcdefg", edits, &mut count), "xdefz");
        assert_eq!(count, 2);
    }
}
