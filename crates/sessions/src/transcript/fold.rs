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
        text
    } else {
        TextEdits::from_list(edits).apply(text)
    }
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
        single_blanks(text)
    } else {
        // Lower-casing can yield text that NFKC would change again (and the reverse), hence the second pass.
        let lower: String = text.nfkc().flat_map(char::to_lowercase).collect();
        single_blanks(&lower.nfkc().collect::<String>())
    };
    folded.make_ascii_lowercase();
    folded
}

fn single_blanks(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

/// Replacements of byte ranges of one text, in order, none overlapping another.
#[derive(Clone, Debug, Default)]
struct TextEdits {
    list: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    before: Range<usize>,
    replacement: Cow<'static, str>,
    /// Where the replacement begins in the edited text; set by [`TextEdits::from_list`].
    after: usize,
}

impl TextEdits {
    /// Sorts the replacements and drops those that overlap an earlier one.
    fn from_list(mut list: Vec<(Range<usize>, Cow<'static, str>)>) -> TextEdits {
        list.sort_by_key(|(range, _)| range.start);
        let mut edits = TextEdits {
            list: Vec::with_capacity(list.len()),
        };
        let (mut end, mut after) = (0, 0);
        for (before, replacement) in list {
            if before.start < end {
                continue;
            }
            after += before.start - end;
            end = before.end;
            let length = replacement.len();
            edits.list.push(Edit {
                before,
                replacement,
                after,
            });
            after += length;
        }
        edits
    }

    fn apply(&self, text: String) -> String {
        if self.list.is_empty() {
            return text;
        }
        let mut edited = String::with_capacity(text.len());
        let mut end = 0;
        for edit in &self.list {
            edited.push_str(text.get(end..edit.before.start).unwrap_or(""));
            edited.push_str(&edit.replacement);
            end = edit.before.end;
        }
        edited.push_str(text.get(end..).unwrap_or(""));
        edited
    }

    /// The bytes of the original text that a byte range of the edited text came from.
    fn origins(&self, edited: Range<usize>) -> Range<usize> {
        let start = self.origin(edited.start).start;
        start
            ..self
                .origin(edited.end.saturating_sub(1).max(edited.start))
                .end
                .max(start)
    }

    /// The bytes of the original text that the byte `at` of the edited text came from: one byte, or all bytes that its
    /// replacement stands for.
    fn origin(&self, at: usize) -> Range<usize> {
        let following = self.list.partition_point(|edit| edit.after <= at);
        let Some(edit) = following
            .checked_sub(1)
            .and_then(|index| self.list.get(index))
        else {
            return at..at + 1;
        };
        let end = edit.after + edit.replacement.len();
        if at < end {
            return edit.before.clone();
        }
        let start = edit.before.end + (at - end);
        start..start + 1
    }
}

/// A text folded as by [`fold`], with the origin of each piece.
///
/// It is slower than plain folding, and for texts that people look at, not for measuring.
#[derive(Clone, Debug)]
pub struct MappedFold {
    folded: String,
    written: TextEdits,
    normalized: Pieces,
    typographic: TextEdits,
    blanks: TextEdits,
}

/// A normalized text, and where its parts came from.
#[derive(Clone, Debug, Default)]
struct Pieces {
    text: String,
    /// In order.
    pieces: Vec<Piece>,
}

/// A stretch of the folded text that came from one stretch of the text as written.
#[derive(Clone, Debug)]
struct Piece {
    /// Where it begins in the folded text.
    folded: usize,
    /// Where it came from.
    original: Range<usize>,
    /// Whether each byte came from a byte of its own.
    is_plain: bool,
}

impl MappedFold {
    /// Folds `text` by the steps of [`fold`], recording each.
    pub fn new(text: &str) -> MappedFold {
        let written = TextEdits::from_list(edits_of_written(text, TypographyRules::ALL));
        let normalized = Pieces::from_text(&written.apply(text.to_owned()));
        let typographic =
            TextEdits::from_list(edits_of_normalized(&normalized.text, TypographyRules::ALL));
        let edited = typographic.apply(normalized.text.clone());
        let blanks = TextEdits::from_list(edits_of_blanks(&edited));
        MappedFold {
            folded: blanks.apply(edited),
            written,
            normalized,
            typographic,
            blanks,
        }
    }

    /// The folded text.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The bytes of the text as written that `folded`, a byte range of the folded text, came from.
    pub fn original(&self, folded: Range<usize>) -> Range<usize> {
        let edited = self.typographic.origins(self.blanks.origins(folded));
        self.written.origins(self.normalized.original(edited))
    }
}

impl Pieces {
    /// Normalizes `text` piece by piece. Normalization joins characters only within a piece.
    fn from_text(text: &str) -> Pieces {
        let mut mapped = Pieces {
            text: String::with_capacity(text.len()),
            pieces: Vec::new(),
        };
        let mut blank = false;
        if text.is_ascii() {
            let mut at = 0;
            for word in text.split_inclusive(char::is_whitespace) {
                mapped.push_plain(word, at, &mut blank);
                at += word.len();
            }
            return mapped;
        }
        let mut start = 0;
        let ends = text
            .char_indices()
            .skip(1)
            .filter(|(_, c)| begins_piece(*c))
            .map(|(at, _)| at);
        for end in ends.chain([text.len()]) {
            mapped.push(text.get(start..end).unwrap_or(""), start, &mut blank);
            start = end;
        }
        mapped
    }

    fn push(&mut self, piece: &str, start: usize, blank: &mut bool) {
        if piece.is_ascii() {
            // most text is plain, and normalizing it character by character would take longer than everything else
            self.push_plain(piece, start, blank);
            return;
        }
        let original = start..start + piece.len();
        let lower: String = piece.nfkc().flat_map(char::to_lowercase).collect();
        for c in lower.nfkc() {
            if c.is_whitespace() {
                *blank = true;
                continue;
            }
            self.end_blank(blank);
            if self
                .pieces
                .last()
                .is_none_or(|last| last.original.start != start)
            {
                self.pieces.push(Piece {
                    folded: self.text.len(),
                    original: original.clone(),
                    is_plain: false,
                });
            }
            self.text.push(c);
        }
    }

    /// Pushes ASCII that has white space only at its end.
    fn push_plain(&mut self, text: &str, start: usize, blank: &mut bool) {
        let word = text.trim_end();
        if !word.is_empty() {
            self.end_blank(blank);
            match self.pieces.last_mut() {
                Some(last) if last.is_plain && last.original.end == start => {
                    last.original.end += word.len()
                }
                _ => {
                    let original = start..start + word.len();
                    self.pieces.push(Piece {
                        folded: self.text.len(),
                        original,
                        is_plain: true,
                    });
                }
            }
            self.text.push_str(&word.to_ascii_lowercase());
        }
        *blank |= word.len() < text.len();
    }

    fn end_blank(&mut self, blank: &mut bool) {
        if std::mem::take(blank) && !self.text.is_empty() {
            self.text.push(' ');
        }
    }

    /// The bytes that a byte range of the normalized text came from.
    fn original(&self, normalized: Range<usize>) -> Range<usize> {
        let start = self.place(normalized.start).map_or(0, |place| place.start);
        let end = self
            .place(normalized.end.saturating_sub(1))
            .map_or(start, |place| place.end);
        start..end.max(start)
    }

    /// Where the byte `at` of the folded text came from; for a blank, where the byte before it came from.
    fn place(&self, at: usize) -> Option<Range<usize>> {
        let after = self.pieces.partition_point(|piece| piece.folded <= at);
        let Piece {
            folded,
            original,
            is_plain,
        } = self.pieces.get(after.saturating_sub(1))?;
        if !is_plain {
            return Some(original.clone());
        }
        let start = original.start
            + at.saturating_sub(*folded)
                .min(original.len().saturating_sub(1));
        Some(start..start + 1)
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
        let edits = TextEdits::from_list(vec![
            (4..5, "".into()),
            (0..1, "xyz".into()),
            (4..6, "dropped".into()),
        ]);
        assert_eq!(edits.apply("ab`c`d".to_owned()), "xyzb`cd");
        assert_eq!(edits.origin(2), 0..1);
        assert_eq!(edits.origin(3), 1..2);
        assert_eq!(edits.origin(6), 5..6);
        assert_eq!(TextEdits::default().origin(7), 7..8);
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
