//! The part of a file that is shown around a place. A line that is too long, as in a bank without line breaks, is cut
//! to the text around the place; lines and columns are still counted in the file.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for what is left out of a line.
const GAP: &str = "…";

/// The text of a file with its long lines cut, and places in it.
#[derive(Debug)]
pub(super) struct SourceExcerpt<'f> {
    name: &'f str,
    text: String,
    places: Vec<ExcerptPlace>,
}

#[derive(Debug)]
struct ExcerptPlace {
    shown: Range<usize>,
    /// The column in the file, in characters from 0.
    column: usize,
}

/// A stretch of the file that is shown.
struct ExcerptPiece {
    /// Where it begins in the file.
    from: usize,
    len: usize,
    /// Where it begins in the excerpt.
    at: usize,
}

impl<'f> SourceExcerpt<'f> {
    /// The excerpt of `text` that shows `places`, with no line longer than `room` columns or little more.
    pub(super) fn new(
        name: &'f str,
        text: &str,
        places: &[Range<usize>],
        room: usize,
    ) -> SourceExcerpt<'f> {
        let places: Vec<Range<usize>> = places
            .iter()
            .map(|place| text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end))
            .collect();
        // The output has colours of its own, from which an escape character of the file could not be distinguished.
        let text = &text.replace('\u{1b}', "?");
        let (mut shown, mut pieces, mut line_start) = (String::new(), Vec::new(), 0);
        for line in text.split_inclusive('\n') {
            let marks: Vec<Range<usize>> = places
                .iter()
                .filter_map(|place| part_in_line(place, line_start, line))
                .collect();
            add_line(
                &mut shown,
                &mut pieces,
                line_start,
                line,
                &windows(line, &marks, room),
            );
            line_start += line.len();
        }
        let places = places.iter().map(|place| {
            let start = excerpt_offset(&pieces, place.start);
            let before = text.get(..place.start).unwrap_or_default();
            let column = before
                .rsplit('\n')
                .next()
                .unwrap_or_default()
                .chars()
                .count();
            ExcerptPlace {
                shown: start..excerpt_offset(&pieces, place.end).max(start),
                column,
            }
        });
        SourceExcerpt {
            name,
            places: places.collect(),
            text: shown,
        }
    }

    /// Where the places are in the excerpt.
    pub(super) fn places(&self) -> impl Iterator<Item = Range<usize>> {
        self.places.iter().map(|place| place.shown.clone())
    }
}

/// The part of `place` that lies in a line.
fn part_in_line(place: &Range<usize>, line_start: usize, line: &str) -> Option<Range<usize>> {
    let body = line.trim_end_matches(['\r', '\n']).len();
    let is_here =
        place.start <= line_start + body && (place.end > line_start || place.start == line_start);
    is_here.then(|| place.start.saturating_sub(line_start)..(place.end - line_start).min(body))
}

/// Puts the windows of a line into the excerpt, with gaps where something is left out.
fn add_line(
    shown: &mut String,
    pieces: &mut Vec<ExcerptPiece>,
    line_start: usize,
    line: &str,
    windows: &[Range<usize>],
) {
    let mut end = 0;
    for window in windows {
        if window.start > end {
            shown.push_str(GAP);
        }
        pieces.push(ExcerptPiece {
            from: line_start + window.start,
            len: window.len(),
            at: shown.len(),
        });
        shown.push_str(line.get(window.clone()).unwrap_or_default());
        end = window.end;
    }
    let rest = line.get(end..).unwrap_or_default();
    let ending = rest.trim_start_matches(|c| c != '\r' && c != '\n');
    if rest.len() > ending.len() {
        shown.push_str(GAP);
    }
    pieces.push(ExcerptPiece {
        from: line_start + line.len() - ending.len(),
        len: ending.len(),
        at: shown.len(),
    });
    shown.push_str(ending);
}

/// The offset in the excerpt of a byte of the file: in the last piece that begins at or before it.
fn excerpt_offset(pieces: &[ExcerptPiece], offset: usize) -> usize {
    let after = pieces.partition_point(|piece| piece.from <= offset);
    let piece = after.checked_sub(1).and_then(|last| pieces.get(last));
    piece.map_or(0, |piece| piece.at + (offset - piece.from).min(piece.len))
}

/// The parts of a line to show: all of it, or the text around each mark; for a long mark, the text around its beginning
/// and its end.
fn windows(line: &str, marks: &[Range<usize>], room: usize) -> Vec<Range<usize>> {
    let body = line.trim_end_matches(['\r', '\n']);
    // No character takes more than four bytes: a very long line need not be measured.
    if body.len() <= room || (body.len() <= 4 * room && body.width() <= room) {
        return std::iter::once(0..body.len()).collect();
    }
    let share = (room / marks.len().max(1)).saturating_sub(2 * GAP.width());
    let mut windows: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        // If possible, show the line from its beginning, which tells the most.
        let mut candidates = [0..mark.end, mark.clone()].into_iter();
        let fitting = candidates.find(|range| {
            body.get(range.clone())
                .is_some_and(|text| text.width() <= share)
        });
        if let Some(range) = fitting {
            windows.push(widen(body, range, share));
        } else {
            windows.push(widen(body, mark.start..mark.start, share / 2));
            windows.push(widen(body, mark.end..mark.end, share / 2));
        }
    }
    if marks.is_empty() {
        windows.push(widen(body, 0..0, share));
    }
    windows.sort_by_key(|window| window.start);
    windows.dedup_by(|next, window| {
        let touches = next.start <= window.end;
        if touches {
            window.end = window.end.max(next.end);
        }
        touches
    });
    windows
}

/// Widens a range of a line by as much on both sides as fits into `room` columns.
fn widen(line: &str, range: Range<usize>, room: usize) -> Range<usize> {
    let (mut start, mut end) = (range.start, range.end);
    let mut left = room.saturating_sub(line.get(range).unwrap_or_default().width());
    loop {
        let before = line.get(..start).and_then(|text| text.chars().next_back());
        let after = line.get(end..).and_then(|text| text.chars().next());
        let mut takes = |next: Option<char>| {
            let next = next.filter(|next| next.width().unwrap_or(0) < left)?;
            left -= next.width().unwrap_or(0);
            Some(next.len_utf8())
        };
        let (more_before, more_after) = (takes(before), takes(after));
        if more_before.or(more_after).is_none() {
            return start..end;
        }
        start -= more_before.unwrap_or(0);
        end += more_after.unwrap_or(0);
    }
}

impl SourceCode for SourceExcerpt<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let contents = self.text.read_span(span, lines_before, lines_after)?;
        // Without lines around it the place itself is requested, for the header of the report.
        let place = self
            .places
            .iter()
            .find(|place| lines_before == 0 && place.shown.start == span.offset());
        let column = place.map_or(contents.column(), |place| place.column);
        let (data, span) = (contents.data(), *contents.span());
        let (name, line, lines) = (self.name.to_owned(), contents.line(), contents.line_count());
        Ok(Box::new(MietteSpanContents::new_named(
            name, data, span, line, column, lines,
        )))
    }
}
