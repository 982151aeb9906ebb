//! What of a text is prose, and in which script it is written.

use base::lazy_patterns;
use base::text::pattern;
use base::words::{is_han, is_hangul, is_kana};

lazy_patterns! {
    /// Code, quotations, addresses and paths: what a writer of any language repeats as it stands.
    REPEATED = pattern(r#"`[^`\n]*`|"[^"\n]*"|“[^”\n]*”|「[^」\n]*」|https?://\S+|\S*[/_\\]\S*"#);
}

/// A text without fenced blocks, and with blanks for code, quotations, addresses and paths.
pub(crate) fn prose(text: &str) -> String {
    let mut is_fenced = false;
    let lines = text.lines().filter(|line| {
        let is_fence = is_fence(line);
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    });
    let kept: Vec<&str> = lines.collect();
    REPEATED.replace_all(&kept.join("\n"), " ").into_owned()
}

/// Whether a line opens or closes a block of code.
pub(crate) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// A family of writing systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Latin,
    EastAsian,
    Hangul,
    Cyrillic,
    Arabic,
    Other,
}

const SCRIPTS: [Script; 6] = [
    Script::Latin,
    Script::EastAsian,
    Script::Hangul,
    Script::Cyrillic,
    Script::Arabic,
    Script::Other,
];

fn script_of(c: char) -> Option<Script> {
    Some(match c {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => Script::Latin,
        '\u{400}'..='\u{52f}' => Script::Cyrillic,
        '\u{600}'..='\u{6ff}' => Script::Arabic,
        c if is_hangul(c) => Script::Hangul,
        c if is_han(c) || is_kana(c) => Script::EastAsian,
        c if c.is_alphabetic() => Script::Other,
        _ => return None,
    })
}

/// How much of a text is in each script. A sign of an unspaced script says about as much as three letters.
pub(crate) fn letters(text: &str) -> [(Script, usize); 6] {
    let mut counts = SCRIPTS.map(|script| (script, 0));
    for script in text.chars().filter_map(script_of) {
        let weight = if matches!(script, Script::EastAsian | Script::Hangul) {
            3
        } else {
            1
        };
        if let Some((_, count)) = counts.iter_mut().find(|(other, _)| *other == script) {
            *count += weight;
        }
    }
    counts
}

/// The script of a text: the one that most of it is in; `None` below this many letters.
pub(crate) fn main_script(text: &str, least: usize) -> Option<Script> {
    let (script, count) = letters(text).into_iter().max_by_key(|(_, count)| *count)?;
    (count >= least).then_some(script)
}
