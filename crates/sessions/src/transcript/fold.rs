//! Folding of text for literal comparison: two texts that differ only in typography fold to the same text.
//!
//! 1. Edits of the text as written, for which case and the kind of a space matter: `()` after names that only code has,
//!    and non-breaking spaces between thousands.
//! 2. Unicode NFKC, lower case, white space as single blanks.
//! 3. Typographic edits: quotes, hyphens, Markdown marks, thousands, units, Chinese numerals ([`super::typography`]).
//! 4. Blanks beside Chinese and Japanese characters, which the marks removed in step 3 may have hidden.
//!
//! Folding is by far the most expensive part of measuring: a text is folded once and then searched for many facts.
//! Folding is not idempotent (removing a mark may leave a number whole), so a folded text is never folded again.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use unicode_normalization::{
    IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfkc_quick,
};

use base::text::one_line;

use super::conventions::TextReplacement;
use super::typography::{TypographyRules, edits_of_blanks, edits_of_normalized, edits_of_written};

/// Folds `text` by all rules.
pub fn fold(text: &str) -> String {
    fold_by(text, TypographyRules::ALL)
}

/// Folds `text` by some of the guarded rules: a fact is looked for in each of these forms, because a guard may have
/// left the text around it as it was.
pub fn fold_by(text: &str, rules: TypographyRules) -> String {
    let written = edits_of_written(text, rules);
    let normalized = if written.is_empty() {
        normalize(text)
    } else {
        normalize(&edited(text.to_owned(), written))
    };
    let edits = edits_of_normalized(&normalized, rules);
    let typographic = edited(normalized, edits);
    let blanks = edits_of_blanks(&typographic);
    edited(typographic, blanks)
}

fn edited(text: String, edits: Vec<TextReplacement>) -> String {
    if edits.is_empty() {
        return text;
    }
    let mut edited = String::with_capacity(text.len());
    let mut end = 0;
    for (range, replacement) in in_order(edits) {
        edited.push_str(text.get(end..range.start).unwrap_or(""));
        edited.push_str(&replacement);
        end = range.end;
    }
    edited.push_str(text.get(end..).unwrap_or(""));
    edited
}

/// The replacements from the first to the last, without those that overlap an earlier one.
fn in_order(mut edits: Vec<TextReplacement>) -> Vec<TextReplacement> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    edits.retain(|(range, _)| {
        let is_free = range.start >= end;
        end = if is_free { range.end } else { end };
        is_free
    });
    edits
}

/// Folds a text that may contain JSON (a tool result, the arguments of a call, a rendered transcript), followed by the
/// strings of that JSON without escapes, each after a line break.
///
/// Escapes are undone only by parsing: replacing `\n` would break `C:\new`. Folding leaves no line breaks, so a fact
/// never spans one of those that are added here.
pub fn fold_document(text: &str) -> String {
    let mut folded = fold(text);
    if text.contains(['{', '[']) {
        for value in json_values(text) {
            push_strings(&value, &mut folded, NESTED);
        }
    }
    folded
}

/// How deep JSON inside a JSON string is read.
const NESTED: u8 = 3;

/// The first JSON object or array of each line of `text`, at its beginning or after the name of a call, `data: ` or the
/// like.
fn json_values(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    // a text of unclosed brackets must not be parsed to its end again and again
    let mut budget = text.len().saturating_mul(4);
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let brackets = rest.get(..line).unwrap_or("").match_indices(['{', '[']);
        let mut starts = brackets
            .map(|(at, _)| at)
            .filter(|at| may_be_json(rest, *at));
        let read =
            starts.find_map(
                |at| match first_value(rest.get(at..).filter(|_| budget > 0)?) {
                    Ok((value, length)) => {
                        values.push(value);
                        Some(at + length)
                    }
                    Err(tried) => {
                        budget = budget.saturating_sub(tried);
                        None
                    }
                },
            );
        let read = read.unwrap_or(0);
        let line_end = rest
            .get(read..)
            .and_then(|rest| rest.find('\n'))
            .map_or(rest.len(), |end| read + end + 1);
        rest = rest.get(line_end..).unwrap_or("");
    }
    values
}

/// Whether the bracket at `at` does not continue a word, and may begin JSON with a string in it.
fn may_be_json(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let inner = text.get(at + 1..).unwrap_or("").trim_start();
    before.is_none_or(|c| c.is_whitespace() || matches!(c, '=' | ':'))
        && inner.starts_with(|c: char| {
            matches!(c, '"' | '{' | '[' | '-' | 't' | 'f' | 'n') || c.is_ascii_digit()
        })
}

/// The JSON value that `json` begins with and its length, or how many bytes were read to find that there is none.
fn first_value(json: &str) -> Result<(Value, usize), usize> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) => {
            let lines = json
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            Err(lines.map(str::len).sum::<usize>() + error.column())
        }
        None => Err(json.len()),
    }
}

fn push_strings(value: &Value, folded: &mut String, depth: u8) {
    match value {
        Value::String(string) => {
            folded.push('\n');
            folded.push_str(&fold(string));
            if depth > 0 && string.trim_start().starts_with(['{', '[']) {
                json_values(string)
                    .iter()
                    .for_each(|value| push_strings(value, folded, depth - 1));
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| push_strings(item, folded, depth)),
        Value::Object(map) => map
            .values()
            .for_each(|item| push_strings(item, folded, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// NFKC, lower case, single blanks.
pub(super) fn normalize(text: &str) -> String {
    let mut folded = if text.is_ascii() {
        one_line(text)
    } else {
        one_line(&normalize_case(text))
    };
    folded.make_ascii_lowercase();
    folded
}

/// NFKC and lower case. Lower-casing can yield text that NFKC would change again (and the reverse), hence two passes.
fn normalize_case(text: &str) -> String {
    let lower: String = nfkc(text).chars().flat_map(char::to_lowercase).collect();
    nfkc(&lower).into_owned()
}

/// `text` in NFKC. Most texts are in this form, and to see that is much cheaper than to make it.
fn nfkc(text: &str) -> Cow<'_, str> {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect()),
    }
}

/// A text folded as by [`fold`], with the origin of each byte.
///
/// It is slower than plain folding, and for texts that people look at, not for measuring.
#[derive(Clone, Debug, Default)]
pub struct MappedFold {
    folded: String,
    /// For each byte of the folded text, the bytes of the text as written that it stands for.
    origins: Vec<Range<usize>>,
}

impl MappedFold {
    /// Folds `text` by the steps of [`fold`], with origins.
    pub fn new(text: &str) -> MappedFold {
        let written = edits_of_written(text, TypographyRules::ALL);
        let normalized = MappedFold::unfolded(text).edited(written).normalized();
        let edits = edits_of_normalized(&normalized.folded, TypographyRules::ALL);
        let typographic = normalized.edited(edits);
        let blanks = edits_of_blanks(&typographic.folded);
        typographic.edited(blanks)
    }

    fn unfolded(text: &str) -> MappedFold {
        MappedFold {
            folded: text.to_owned(),
            origins: (0..text.len()).map(|at| at..at + 1).collect(),
        }
    }

    /// The folded text.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The bytes of the text as written that `folded`, a byte range of the folded text, came from.
    pub fn original(&self, folded: Range<usize>) -> Range<usize> {
        let origins = self.origins.get(folded).unwrap_or_default();
        let first = origins.first().map_or(0, |first| first.start);
        first..origins.last().map_or(first, |last| last.end.max(first))
    }

    /// Adds a stretch of text that stands for `origin` as a whole.
    fn push(&mut self, text: &str, origin: &Range<usize>) {
        self.folded.push_str(text);
        self.origins
            .extend(std::iter::repeat_n(origin.clone(), text.len()));
    }

    /// Adds a stretch of `other` as it is.
    fn copy(&mut self, other: &MappedFold, range: Range<usize>) {
        self.folded
            .push_str(other.folded.get(range.clone()).unwrap_or(""));
        self.origins
            .extend_from_slice(other.origins.get(range).unwrap_or_default());
    }

    fn edited(self, edits: Vec<TextReplacement>) -> MappedFold {
        if edits.is_empty() {
            return self;
        }
        let mut edited = MappedFold::default();
        let mut end = 0;
        for (range, replacement) in in_order(edits) {
            edited.copy(&self, end..range.start);
            edited.push(&replacement, &self.original(range.clone()));
            end = range.end;
        }
        edited.copy(&self, end..self.folded.len());
        edited
    }

    /// Normalizes piece by piece, as [`normalize`] does. Normalization joins characters only within a piece.
    fn normalized(&self) -> MappedFold {
        let mut mapped = MappedFold::default();
        let mut blank = None;
        let mut start = 0;
        let ends = self
            .folded
            .char_indices()
            .skip(1)
            .filter(|(_, c)| begins_piece(*c))
            .map(|(at, _)| at);
        for end in ends.chain([self.folded.len()]) {
            let origin = self.original(start..end);
            let piece = self.folded.get(start..end).unwrap_or("");
            let normal: String = match piece.is_ascii() {
                true => piece.to_ascii_lowercase(),
                false => normalize_case(piece),
            };
            for c in normal.chars() {
                if c.is_whitespace() {
                    blank = Some(origin.clone());
                    continue;
                }
                if let Some(blank) = blank.take().filter(|_| !mapped.folded.is_empty()) {
                    mapped.push(" ", &blank);
                }
                mapped.push(c.encode_utf8(&mut [0; 4]), &origin);
            }
            start = end;
        }
        mapped
    }
}

/// Whether nothing before `c` can join with it.
fn begins_piece(c: char) -> bool {
    c.is_ascii()
        || std::iter::once(c).nfkd().next().is_none_or(|first| {
            canonical_combining_class(first) == 0
                && is_nfkc_quick(std::iter::once(first)) != IsNormalized::Maybe
                && is_nfkc_quick(std::iter::once(c)) != IsNormalized::Maybe
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_width_case_and_space() {
        assert_eq!(fold("  ＡＢＣ\n\t１２３  Ünïcode "), "abc 123 ünïcode");
    }

    #[test]
    fn json_is_read_as_its_strings_and_never_unescaped_by_replacement() {
        let result =
            "exit 0\n{\"path\": \"C:\\\\new\", \"said\": \"a \\\"b\\\"\\nc\"}\nplain C:\\new";
        let folded = fold_document(result);
        assert_eq!(
            folded.lines().skip(1).collect::<Vec<_>>(),
            ["c:\\new", "a 'b' c"]
        );
        assert!(folded.ends_with("a 'b' c") && folded.contains("plain c:\\new"));
        for prefix in [
            "[call write] ",
            "data: ",
            "result=",
            "  Output: ",
            "[12:30:01] {level} got ",
        ] {
            assert_eq!(
                fold_document(&format!("{prefix}{{\"a\":\"x\\ty\"}} x"))
                    .lines()
                    .last(),
                Some("x y"),
                "{prefix}"
            );
        }
        assert_eq!(
            fold_document(r#"{"output":"{\"a\":\"say \\\"hi\\\"\"}"}"#)
                .lines()
                .last(),
            Some("say 'hi'")
        );
        assert_eq!(
            fold_document(r#"[1, {"a": 2}, {"b": "c\\d"}]"#)
                .lines()
                .last(),
            Some("c\\d")
        );
        let dicts = "x = {\"a\": b}\n".repeat(50) + r#"{"path":"C:\\new"}"#;
        assert_eq!(
            fold_document(&dicts).lines().last(),
            Some("c:\\new"),
            "other languages do not use the budget up"
        );
        assert_eq!(fold_document("{ fn main() }\n[1, 2"), "{ fn main() } [1, 2");
    }

    proptest! {
        #[test]
        fn normalizing_is_idempotent(text in "\\PC{0,60}") {
            prop_assert_eq!(normalize(&normalize(&text)), normalize(&text));
        }

        #[test]
        fn folding_never_panics(text in "[0-9,_.%()`*' \u{a0}\u{2011}五十个秒第a-cA-C/-]{0,40}") {
            fold_document(&text);
        }
    }

    #[test]
    fn bytes_are_traced_back_through_replacements() {
        let edited = MappedFold::unfolded("ab`c`d").edited(vec![
            (4..5, "".into()),
            (0..1, "xyz".into()),
            (4..6, "dropped".into()),
        ]);
        assert_eq!(edited.folded, "xyzb`cd");
        assert_eq!(edited.original(2..3), 0..1);
        assert_eq!(edited.original(3..4), 1..2);
        assert_eq!(edited.original(6..7), 5..6);
        assert_eq!(MappedFold::unfolded("ab`c`def").original(7..8), 7..8);
    }

    #[test]
    fn ranges_lead_back_to_the_text_as_written() {
        let text = "Ａn  Error：　ｐｏｒｔ\n `8,080` 图 “load_config()” 5 s，端口\n 80";
        let mapped = MappedFold::new(text);
        let written = |folded: &str| {
            let start = mapped.folded().find(folded).expect(folded);
            &text[mapped.original(start..start + folded.len())]
        };
        assert_eq!(written("port 8080"), "ｐｏｒｔ\n `8,080");
        assert_eq!(written("load_config"), "load_config");
        assert_eq!(written("5 seconds"), "5 s");
        assert_eq!(written("端口80"), "端口\n 80");
    }

    proptest! {
        #[test]
        fn folds_as_everything_else_does(text in "\\PC{0,30}") {
            let mapped = MappedFold::new(&text);
            prop_assert_eq!(mapped.folded(), fold(&text));
        }

        #[test]
        fn folds_blanks_and_marks_alike(text in "[ \n\tA-Cé\u{301}\u{308}가각㌀ﾊﾟİ\u{a8}Ⅳ]{0,20}") {
            let mapped = MappedFold::new(&text);
            prop_assert_eq!(mapped.folded(), fold(&text));
        }

        #[test]
        fn every_range_lies_on_characters(text in "\\PC{1,20}") {
            let mapped = MappedFold::new(&text);
            for (at, c) in mapped.folded().char_indices() {
                prop_assert!(text.get(mapped.original(at..at + c.len_utf8())).is_some());
            }
        }
    }
}
