//! Control characters in what is printed: shown as visible escapes, never passed on.
//!
//! Replies of models, errors of providers, file names and fixtures are printed, and any of them may hold sequences that
//! move the cursor, rename the window or write the clipboard (OSC 52), or bidirectional controls that show one text
//! and paste another. So no control character but the line break and the tab reaches a stream, whether or not it
//! is a terminal. Colours of our own are written with [`MARK`] in place of the escape character until the last step,
//! which distinguishes them from an escape character that came with a text.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::report::COLOR_MARK as MARK;
use base::text::is_shown_escaped;

/// Escape sequences that come from us, written so that [`visible`] lets colours among them through.
pub(crate) fn own_color(text: &str) -> String {
    text.replace('\u{1b}', MARK.encode_utf8(&mut [0; 4]))
}

/// Text that is safe to print: controls visible, colours of our own switched on or left out.
pub(crate) fn visible(text: &str, colors: bool) -> Cow<'_, str> {
    if !text.chars().any(|c| c == MARK || is_shown_escaped(c)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == MARK {
            if let Some((code, after)) = color_code(rest) {
                if colors {
                    let _ = write!(shown, "\u{1b}[{code}m");
                }
                rest = after;
            }
        } else if is_shown_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// JSON with the controls escaped that JSON itself leaves as they are: DEL, C1, and those that change the direction of
/// text. What is left of C0 is layout.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    let is_raw = |c: char| c >= '\u{7f}' && is_shown_escaped(c);
    if !json.chars().any(is_raw) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// The code of a colour sequence whose [`MARK`] was just read, and what follows it.
fn color_code(text: &str) -> Option<(&str, &str)> {
    let (code, after) = text.strip_prefix('[')?.split_once('m')?;
    code.chars()
        .all(|c| c.is_ascii_digit() || c == ';')
        .then_some((code, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(
            visible("a\u{1b}]52;c;aGk=\u{7}b", true),
            "a\\u{1b}]52;c;aGk=\\u{7}b"
        );
        assert_eq!(
            visible("x\u{9b}2J\u{202e}y\r", true),
            "x\\u{9b}2J\\u{202e}y\\r"
        );
        assert_eq!(visible("two\n\tlines", true), "two\n\tlines");
    }

    #[test]
    fn colours_of_our_own_come_through_and_nothing_else_behind_their_mark() {
        let red = format!("{MARK}[31mbad{MARK}[0m");
        assert_eq!(visible(&red, true), "\u{1b}[31mbad\u{1b}[0m");
        assert_eq!(visible(&red, false), "bad");
        assert_eq!(
            visible(&format!("{MARK}[2J{MARK}]52;c;x"), true),
            "[2J]52;c;x"
        );
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{9b}\u{202e}\u{1b}\u{7f}\u{e0041}";
        let json = serde_json::to_string(text).unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.chars().any(is_shown_escaped));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    proptest! {
        #[test]
        fn no_escape_character_is_ever_left_without_colors(text in "[\\PC\u{1b}\u{FDD0}\\[0-9;m\u{9b}]{0,40}") {
            prop_assert!(!visible(&text, false).chars().any(|c| c == MARK || is_shown_escaped(c)));
        }
    }
}
