//! Control characters that are shown as visible escapes, in terminals and on pages: texts of models, providers, files and
//! fixtures may hold any of them, and they move cursors, write clipboards, or show one text and paste another.

use std::borrow::Cow;

/// Whether a character is shown as an escape: C0 without line break and tab, C1, bidirectional controls, and what takes
/// no room: text can be hidden in it. Joiners are not among them: scripts and emoji need them.
pub fn is_shown_escaped(c: char) -> bool {
    let is_bidi = matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let is_invisible =
        matches!(c, '\u{180E}' | '\u{200B}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}')
            || matches!(c, '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}');
    is_bidi || is_invisible || (c.is_control() && c != '\n' && c != '\t')
}

/// `text` with its control characters as visible escapes.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_shown_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_shown_escaped(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.into()
}
