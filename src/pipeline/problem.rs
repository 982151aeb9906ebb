//! Problems: a place in a user's file, what was found, what to do. All of a project's problems come at once.
//!
//! With `excerpt`, the only place that knows miette.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};

use super::excerpt::SourceExcerpt;
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
        let places: Vec<Range<usize>> =
            self.places.iter().map(|(place, _)| place.clone()).collect();
        let room = width.saturating_sub(MARGIN).max(40);
        let excerpt = SourceExcerpt::new(&source.path, &source.text, &places, room);
        let labels = self.places.iter().map(|(_, label)| label.clone()).collect();
        let theme = match has_colors {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_links(false);
        let mut drawn = String::new();
        handler
            .render_report(&mut drawn, &MarkedExcerpt { excerpt, labels })
            .ok()?;
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

/// An excerpt of a file with its places and a word beside each, as miette takes it.
#[derive(Debug)]
struct MarkedExcerpt<'p> {
    excerpt: SourceExcerpt<'p>,
    labels: Vec<Option<String>>,
}

impl fmt::Display for MarkedExcerpt<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for MarkedExcerpt<'_> {}

impl Diagnostic for MarkedExcerpt<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.excerpt.places().zip(self.labels.clone());
        Some(Box::new(labels.map(|(place, text)| {
            LabeledSpan::new(text, place.start, place.len())
        })))
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
    match names.get(..24) {
        Some(first) if names.len() > 24 => {
            format!("{} and {} more", first.join(", "), names.len() - 24)
        }
        _ => names.join(", "),
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
