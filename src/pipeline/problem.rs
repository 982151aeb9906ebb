//! Problems: a place in a user's file, what was found, what to do. All of a project's problems come at once.
//!
//! Of the file, the part around a place is shown, by miette, which only this file knows. A line that is too long, as in a bank
//! without line breaks, is cut to the text around the place; lines and columns are still counted in the file.

use std::fmt;
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::model::SourceFile;
use base::fault::{Fault, nearest};
use base::text::line_and_column;

/// Whether a problem stops the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    /// It does not stop the work.
    Warning,
}

/// An error or a warning about a user's file.
#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    severity: Severity,
    /// The file where it is seen.
    source: Option<SourceFile>,
    places: Vec<(Range<usize>, Option<String>)>,
    /// File, line and column of a place that is named and not shown.
    position: Option<(String, usize, usize)>,
}

impl Problem {
    /// A problem that stops the work. The message is a sentence that says what was found and what was expected.
    pub fn error(message: impl Into<String>) -> Problem {
        let (message, severity) = (message.into(), Severity::Error);
        Problem {
            message,
            help: None,
            severity,
            source: None,
            places: Vec::new(),
            position: None,
        }
    }

    pub fn warning(message: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(message)
        }
    }

    /// A fault found in the text of `file`.
    fn from_fault(fault: Fault, file: &SourceFile) -> Problem {
        Problem {
            help: fault.help,
            ..Problem::error(fault.message).at(file, fault.place)
        }
    }

    /// Where it is seen: a byte range of a file.
    #[must_use]
    pub fn at(self, file: &SourceFile, place: Range<usize>) -> Problem {
        self.with_label(file, place, None)
    }

    /// The same, as far as the place is known.
    #[must_use]
    pub fn at_known(self, file: &SourceFile, place: Option<Range<usize>>) -> Problem {
        match place {
            Some(place) => self.at(file, place),
            None => self,
        }
    }

    /// Where it is seen, with a word beside the caret.
    #[must_use]
    pub fn label(
        self,
        file: &SourceFile,
        place: Range<usize>,
        label: impl Into<String>,
    ) -> Problem {
        self.with_label(file, place, Some(label.into()))
    }

    /// Where it is seen, line and column from 1, without showing the text there: it may hold a secret.
    #[must_use]
    pub fn at_position(self, file: impl Into<String>, line: usize, column: usize) -> Problem {
        Problem {
            position: Some((file.into(), line, column)),
            ..self
        }
    }

    fn with_label(
        mut self,
        file: &SourceFile,
        place: Range<usize>,
        label: Option<String>,
    ) -> Problem {
        self.source = Some(file.clone());
        let end = place.end.min(file.text.len());
        self.places.push((place.start.min(end)..end, label));
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// The same problem with another severity.
    #[must_use]
    pub fn with_severity(self, severity: Severity) -> Problem {
        Problem { severity, ..self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if known.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Whether it stops the work.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The path of the file where it is seen.
    fn file(&self) -> Option<&String> {
        self.source.as_ref().map(|source| &source.path)
    }

    /// The lines of its file around its places, marked, in `width` columns. Of a long line, only the text around the
    /// places is shown.
    pub fn excerpt(&self, width: usize, has_colors: bool) -> Option<String> {
        /// Columns that go to the number of a line and its frame.
        const MARGIN: usize = 8;
        let source = self.source.as_ref()?;
        let room = width.saturating_sub(MARGIN).max(40);
        let excerpt = SourceExcerpt::new(source, &self.places, room);
        let theme = match has_colors {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_links(false);
        let mut drawn = String::new();
        handler.render_report(&mut drawn, &excerpt).ok()?;
        // Before the frame stands the message of the report, which here is empty.
        let frame = drawn.find('╭')?;
        let start = drawn.get(..frame)?.rfind('\n').map_or(0, |end| end + 1);
        Some(drawn.get(start..)?.trim_end().to_owned())
    }

    /// File, line and column (both from 1) where it is first seen.
    pub fn position(&self) -> Option<(&str, usize, usize)> {
        if let Some((file, line, column)) = &self.position {
            return Some((file, *line, *column));
        }
        let (source, (place, _)) = (self.source.as_ref()?, self.places.first()?);
        let (line, column) = line_and_column(&source.text, place.start);
        Some((&source.path, line, column))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line, column)) = &self.position {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// All problems found, in the order of finding.
#[derive(Clone, Debug, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// The faults found in the text of `file`.
    pub fn from_faults(faults: impl IntoIterator<Item = Fault>, file: &SourceFile) -> Problems {
        let faults = faults.into_iter();
        Problems(
            faults
                .map(|fault| Problem::from_fault(fault, file))
                .collect(),
        )
    }

    /// Puts them in the order of their places, file by file, those without a place last, without duplicates.
    pub(super) fn sort_and_dedup(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for problem in &self.0 {
            files.extend(problem.file().filter(|file| !files.contains(file)).cloned());
        }
        self.0.sort_by_key(|problem| {
            let file = problem
                .file()
                .and_then(|file| files.iter().position(|known| known == file));
            (
                file.unwrap_or(files.len()),
                problem.places.first().map_or(0, |(place, _)| place.start),
            )
        });
        self.0.dedup_by(|a, b| {
            a.message == b.message && a.places == b.places && a.file() == b.file()
        });
    }

    /// How many of them stop the work.
    pub fn errors(&self) -> usize {
        self.0
            .iter()
            .filter(|problem| problem.severity() == Severity::Error)
            .count()
    }

    /// Whether nothing was found at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.errors(), self.0.first()) {
            (_, Some(only)) if self.0.len() == 1 => only.fmt(f),
            (1, _) => f.write_str("1 error"),
            (errors, _) => f.write_str(&format!("{errors} errors")),
        }
    }
}

impl std::error::Error for Problems {}

/// A hint for an unknown name: the nearest known one, else all of them.
pub fn suggest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(wanted, &known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("known: {}", list(known)),
    }
}

/// Names in code quotes, comma between them; a long list is cut.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    first_few(&names, 24)
}

/// The first of several names, and how many more there are: `a, b and 4 more`.
pub fn first_few(names: &[impl ToString], most: usize) -> String {
    let first: Vec<String> = names.iter().take(most).map(ToString::to_string).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(most) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Stands for what is left out of a line.
const GAP: &str = "…";

/// The text of a file with its long lines cut, and places in it, as miette takes them.
#[derive(Debug)]
struct SourceExcerpt<'f> {
    name: &'f str,
    text: String,
    places: Vec<ExcerptPlace>,
}

#[derive(Debug)]
struct ExcerptPlace {
    shown: Range<usize>,
    /// The column in the file, in characters from 0.
    column: usize,
    label: Option<String>,
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
    /// The excerpt of a file that shows `places`, with no line longer than `room` columns or little more.
    fn new(
        file: &'f SourceFile,
        labelled: &[(Range<usize>, Option<String>)],
        room: usize,
    ) -> SourceExcerpt<'f> {
        let text = &file.text;
        let places: Vec<Range<usize>> = labelled
            .iter()
            .map(|(place, _)| {
                text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end)
            })
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
        let places = places.iter().zip(labelled).map(|(place, (_, label))| {
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
                label: label.clone(),
            }
        });
        SourceExcerpt {
            name: &file.path,
            places: places.collect(),
            text: shown,
        }
    }
}

/// The message of the report, which is empty.
impl fmt::Display for SourceExcerpt<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for SourceExcerpt<'_> {}

impl Diagnostic for SourceExcerpt<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.places.iter().map(|place| {
            LabeledSpan::new(place.label.clone(), place.shown.start, place.shown.len())
        })))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_nearest_or_all() {
        let known = [
            "anchored-iterative",
            "regenerative",
            "truncate",
            "full",
            "none",
        ];
        assert_eq!(suggest("truncat", known), "did you mean `truncate`?");
        assert_eq!(
            suggest("anchored", known),
            "did you mean `anchored-iterative`?"
        );
        assert_eq!(suggest("zzz", ["a", "b"]), "known: `a`, `b`");
    }

    #[test]
    fn a_position_counts_characters() {
        let file = SourceFile::new("f", "a\nüx");
        assert_eq!(
            Problem::error("m").at(&file, 4..5).position(),
            Some(("f", 2, 2))
        );
        assert_eq!(
            Problem::error("m").at(&file, 40..50).position(),
            Some(("f", 2, 3))
        );
    }
}
