//! Short forms of texts, and places in them.

/// The first `limit` characters of a text, with `…` if that is not all of it.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// A text on one line, with single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `12345` as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| if place > 0 && place % 3 == digits.len() % 3 { "," } else { "" };
    digits.chars().enumerate().map(|(place, digit)| format!("{}{digit}", comma(place))).collect()
}

/// Line and column of a byte of `text`, from 1. A column is a character.
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or("");
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}
