//! Helpers for texts: short forms, line and column, patterns, strings in JSON, control characters, words of a shell.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;
use serde_json::Value;

/// The first `limit` characters of a text, with `…` if that is not all of it.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// A text on one line, with single spaces.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// `12345` as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place % 3 == digits.len() % 3 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun in singular or plural: `1 action`, `3,204 actions`, `2 entries`.
pub fn count<N: TryInto<u64>>(number: N, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{} {stem}ies", grouped(number)),
        None => format!("{} {noun}s", grouped(number)),
    }
}

/// A number in four characters or so; unknown is a dash.
pub fn short(number: Option<u64>) -> String {
    match number {
        None => "–".to_owned(),
        Some(n @ 0..=999) => n.to_string(),
        Some(n @ 1000..=9949) => format!("{:.1}k", n as f64 / 1e3),
        Some(n @ 9950..=999_499) => format!("{:.0}k", n as f64 / 1e3),
        Some(n) => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// Compiles a pattern that is part of the program.
pub fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are part of the program and compiled by its tests")
}

/// Declares patterns that are compiled when they are first used.
#[macro_export]
macro_rules! lazy_patterns {
    ($($(#[$meta:meta])* $name:ident = $pattern:expr;)+) => {
        $($(#[$meta])* static $name: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| $pattern);)+
    };
}

/// A name in no style, its letters and digits in lower case: `targetFile`, `target_file` and `TargetFile` are one.
pub fn plain(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.collect::<String>().to_lowercase()
}

/// Line and column of a byte of `text`, from 1. A column is a character.
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or("");
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// What is before a range of a text, and what is after it.
pub fn around<'t>(text: &'t str, place: &Range<usize>) -> (&'t str, &'t str) {
    let (before, after) = (text.get(..place.start), text.get(place.end..));
    (before.unwrap_or(""), after.unwrap_or(""))
}

/// The characters directly before and after a range of a text.
pub fn beside(text: &str, place: &Range<usize>) -> [Option<char>; 2] {
    let (before, after) = around(text, place);
    [before.chars().next_back(), after.chars().next()]
}

/// The first bytes of a text, at most `most`, up to the end of a character. What looks ahead from every place of a text
/// looks only so far: else a text of one long line takes quadratic time.
pub fn first_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// The last bytes of a text, for what looks back.
pub fn last_bytes(text: &str, most: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(most))..)
        .unwrap_or(text)
}

/// All strings of a JSON value, without keys.
pub fn strings_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings_in).collect(),
        Value::Object(object) => object.values().flat_map(strings_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Hands every string of a JSON value to `edit`; keys are not touched.
pub fn each_string(value: &mut Value, edit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => edit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, edit)),
        Value::Object(object) => object.values_mut().for_each(|item| each_string(item, edit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a character is shown as an escape in terminals and on pages. Texts from models, providers, files and
/// fixtures may contain any control character, and some of these move the cursor, write to the clipboard, or show one
/// text and paste another.
///
/// These are C0 except line break and tab, C1, bidirectional controls, and invisible characters, in which text can be
/// hidden. Joiners are excluded: scripts and emoji need them.
pub fn is_shown_escaped(c: char) -> bool {
    let is_bidi = matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let is_invisible = matches!(
        c,
        '\u{180E}' | '\u{200B}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}'
    ) || matches!(c, '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}');
    is_bidi || is_invisible || (c.is_control() && c != '\n' && c != '\t')
}

/// `text` with its control characters as visible escapes.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_shown_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_shown_escaped(c) {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
    }
    shown.into()
}
/// JSON in which halves of surrogate pairs, which models and cut strings leave behind, are U+FFFD.
pub fn without_half_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let first = surrogate(escape);
        let second = escape.get(6..).and_then(surrogate);
        let taken = match (first, second) {
            (Some(true), Some(false)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or("");
                continue;
            }
            (None, _) => 2,
        };
        // An escaped character may be of several bytes in broken input.
        let taken = (taken..taken + 4)
            .find(|&n| escape.is_char_boundary(n))
            .unwrap_or(escape.len())
            .min(escape.len());
        out.push_str(escape.get(..taken).unwrap_or(""));
        rest = escape.get(taken..).unwrap_or("");
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether `text` begins with an escaped surrogate: `Some(true)` for a leading, `Some(false)` for a trailing one.
fn surrogate(text: &str) -> Option<bool> {
    let code = u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    match code {
        0xD800..=0xDBFF => Some(true),
        0xDC00..=0xDFFF => Some(false),
        _ => None,
    }
}

/// A text as a cell of a CSV file. A spreadsheet would compute one that begins like a formula, so it gets an apostrophe in
/// front.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("'{text}").into();
    }
    text.into()
}

/// A word as a shell takes it: in single quotes if a shell would split it or interpret a character of it.
pub fn shell_word(word: &str) -> String {
    // zsh takes `=word` for the path of a program.
    let is_plain = !word.is_empty()
        && !word.starts_with('=')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_text_are_whole_characters() {
        assert_eq!((first_bytes("aé文", 2), first_bytes("aé", 9)), ("a", "aé"));
        assert_eq!((last_bytes("aé文", 4), last_bytes("é", 9)), ("文", "é"));
    }

    #[test]
    fn words_survive_a_shell() {
        let words = ["--label=a", "two words", "it's", "", "=a", "a~1"].map(shell_word);
        assert_eq!(
            words,
            [
                "--label=a",
                "'two words'",
                r"'it'\''s'",
                "''",
                "'=a'",
                "'a~1'"
            ]
        );
    }
}
