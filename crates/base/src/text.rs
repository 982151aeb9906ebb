//! Short forms of texts, places in them, and patterns.

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
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `12345` as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| if place > 0 && place % 3 == digits.len() % 3 { "," } else { "" };
    digits.chars().enumerate().map(|(place, digit)| format!("{}{digit}", comma(place))).collect()
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

/// Line and column of a byte of `text`, from 1. A column is a character.
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or("");
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (before.matches('\n').count() + 1, column)
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
