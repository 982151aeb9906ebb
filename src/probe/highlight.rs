//! Folded places back in the text as written, to mark facts for a reader.

use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfkc_quick};

use super::facts::FactFinder;

/// A text folded as [`crate::fixture::fold`] does, that knows where each piece came from.
///
/// Slower than plain folding; for what people look at, not for measuring.
#[derive(Clone, Debug)]
pub struct MappedFold {
    folded: String,
    /// Start of each piece in the folded text, and its range in the text as written; in rising order.
    pieces: Vec<(usize, Range<usize>)>,
}

impl MappedFold {
    /// Folds `text` piece by piece, where a piece is what normalisation can join to one.
    pub fn new(text: &str) -> MappedFold {
        let mut mapped = MappedFold { folded: String::with_capacity(text.len()), pieces: Vec::new() };
        let mut blank = false;
        if text.is_ascii() {
            mapped.pieces.reserve(text.len());
            for (at, c) in text.char_indices() {
                mapped.push_char(c.to_ascii_lowercase(), at..at + 1, &mut blank);
            }
            return mapped;
        }
        let mut start = 0;
        let ends = text.char_indices().skip(1).filter(|(_, c)| begins_piece(*c)).map(|(at, _)| at);
        for end in ends.chain([text.len()]) {
            mapped.push(text.get(start..end).unwrap_or(""), start, &mut blank);
            start = end;
        }
        mapped
    }

    fn push(&mut self, piece: &str, start: usize, blank: &mut bool) {
        let place = start..start + piece.len();
        if let [byte @ 0..=127] = piece.as_bytes() {
            // most text is plain: normalising it character by character would take longer than all else
            self.push_char(char::from(byte.to_ascii_lowercase()), place, blank);
            return;
        }
        let lower: String = piece.nfkc().flat_map(char::to_lowercase).collect();
        lower.nfkc().for_each(|c| self.push_char(c, place.clone(), blank));
    }

    fn push_char(&mut self, c: char, place: Range<usize>, blank: &mut bool) {
        if c.is_whitespace() {
            *blank = true;
            return;
        }
        if std::mem::take(blank) && !self.folded.is_empty() {
            self.folded.push(' ');
        }
        if self.pieces.last().is_none_or(|(_, last)| last.start != place.start) {
            self.pieces.push((self.folded.len(), place));
        }
        self.folded.push(c);
    }

    /// The folded text.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The bytes of the text as written that `folded`, a byte range of the folded text, came from.
    pub fn original(&self, folded: Range<usize>) -> Range<usize> {
        let piece_at = |at: usize| {
            let after = self.pieces.partition_point(|(start, _)| *start <= at);
            self.pieces.get(after.saturating_sub(1)).map(|(_, range)| range.clone())
        };
        let start = piece_at(folded.start).map_or(0, |range| range.start);
        let end = piece_at(folded.end.saturating_sub(1)).map_or(start, |range| range.end);
        start..end.max(start)
    }

    /// Where the fact stands in the text as written: byte ranges in rising order.
    pub fn find(&self, fact: &FactFinder) -> Vec<Range<usize>> {
        fact.ranges(&self.folded).into_iter().map(|range| self.original(range)).collect()
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
    use crate::fixture::fold;
    use crate::probe::Fact;
    use proptest::prelude::*;

    #[test]
    fn marks_stand_in_the_text_as_written() {
        let text = "Ａn  Error：　ｐｏｒｔ\n 8080 图";
        let finder = FactFinder::new(&Fact { spellings: vec!["port 8080".into()] });
        let marks: Vec<&str> = MappedFold::new(text).find(&finder).into_iter().map(|range| &text[range]).collect();
        assert_eq!(marks, ["ｐｏｒｔ\n 8080"]);
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
