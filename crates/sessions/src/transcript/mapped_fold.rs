//! Maps places in a folded text back to the text as written, to mark facts for a reader.

use std::ops::Range;

use unicode_normalization::{
    IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfkc_quick,
};

use super::edits::TextEdits;
use super::typography::{TypographyRules, edits_of_blanks, edits_of_normalized, edits_of_written};

/// A text folded as by [`crate::transcript::fold`], with the origin of each piece.
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
    /// Folds `text` by the steps of [`crate::transcript::fold`], recording each.
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
    use crate::transcript::fold;
    use proptest::prelude::*;

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
