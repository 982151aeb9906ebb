//! Replacements in a text that can be traced back to the original.

use std::borrow::Cow;
use std::ops::Range;

/// Replacements of byte ranges of one text, in order, none overlapping another.
#[derive(Clone, Debug, Default)]
pub(super) struct TextEdits {
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
    pub(super) fn from_list(mut list: Vec<(Range<usize>, Cow<'static, str>)>) -> TextEdits {
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

    pub(super) fn apply(&self, text: String) -> String {
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
    pub(super) fn origins(&self, edited: Range<usize>) -> Range<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
