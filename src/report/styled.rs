//! Styled text and tables for the terminal. `cli` decides what a style looks like.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::numbers::UNKNOWN;
use stats::Verdict;

/// What a piece of text means to the reader, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextStyle {
    #[default]
    Plain,
    /// Headings, names and key figures.
    Strong,
    Dim,
    /// An improvement or a success.
    Good,
    /// A regression or a failure.
    Bad,
    Warning,
    /// A command to type next.
    Hint,
}

impl TextStyle {
    pub(super) fn of_verdict(verdict: Verdict) -> TextStyle {
        match verdict {
            Verdict::Improved => TextStyle::Good,
            Verdict::Regressed => TextStyle::Bad,
            Verdict::NoEvidence => TextStyle::Plain,
        }
    }
}

/// A piece of text in one style.
pub type Span = (TextStyle, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledText {
    /// The lines, without line ends.
    pub lines: Vec<Vec<Span>>,
}

impl StyledText {
    pub fn line(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.lines.push(spans.into_iter().filter(|(_, text)| !text.is_empty()).collect());
    }

    /// Ends a part. Two of them leave one blank line.
    pub fn blank_line(&mut self) {
        if self.lines.last().is_none_or(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// Adds text in one style, wrapped at `width` between words, and between the characters of Chinese text.
    pub fn paragraph(&mut self, style: TextStyle, text: &str, width: usize) {
        let mut line = String::new();
        for (piece, spaced) in pieces(text) {
            let space = usize::from(spaced && !line.is_empty());
            if !line.is_empty() && line.width() + space + piece.width() > width {
                self.line([(style, std::mem::take(&mut line))]);
            } else if space == 1 {
                line.push(' ');
            }
            line.push_str(piece);
        }
        self.line([(style, line)]);
    }

    pub fn append(&mut self, other: StyledText) {
        self.lines.extend(other.lines);
    }

    /// The text with each span as `paint` renders it.
    pub fn paint(&self, paint: impl Fn(TextStyle, &str) -> String) -> String {
        let line = |spans: &Vec<Span>| spans.iter().map(|(style, text)| paint(*style, text)).collect::<String>() + "\n";
        self.lines.iter().map(line).collect()
    }

    /// The text without styles.
    pub fn plain(&self) -> String {
        let lines = self.paint(|_, text| text.to_owned());
        lines.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

/// The parts between which a line may break, each with whether a space precedes it: words, and wide (Chinese) characters
/// with the punctuation that follows them.
fn pieces(text: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    for word in text.split_whitespace() {
        let mut start = 0;
        let mut before: Option<char> = None;
        for (at, c) in word.char_indices() {
            let may_break =
                before.is_some_and(|before| is_wide(before) || is_wide(c)) && !"，。；：、）！？".contains(c);
            if may_break {
                pieces.push((word.get(start..at).unwrap_or_default(), start == 0));
                start = at;
            }
            before = Some(c);
        }
        pieces.push((word.get(start..).unwrap_or_default(), start == 0));
    }
    pieces
}

fn is_wide(c: char) -> bool {
    c.width() == Some(2)
}

/// A table cell: one span per line.
pub(super) type TableCell = Vec<Span>;

/// A table whose first column has the names of its rows. Columns that do not fit the width continue in another block
/// below, because wrapped or cut figures cannot be read.
#[derive(Clone, Debug, Default)]
pub(super) struct TextTable {
    pub header: Vec<String>,
    /// Rows, parallel to `header`.
    pub rows: Vec<Vec<TableCell>>,
}

const GAP: usize = 2;
/// The maximum width of a name.
const LONGEST_NAME: usize = 28;

impl TextTable {
    /// Renders the table at most `width` wide, or wider where a name and one column do not fit. A table without a figure
    /// is not shown.
    pub(super) fn render(&self, width: usize) -> StyledText {
        let is_figure = |(_, text): &Span| !matches!(text.as_str(), "" | UNKNOWN);
        if !self.rows.iter().any(|row| row.iter().skip(1).flatten().any(is_figure)) {
            return StyledText::default();
        }
        let widths: Vec<usize> = (0..self.header.len()).map(|column| self.column_width(column)).collect();
        let name = widths.first().copied().unwrap_or(0);
        let mut out = StyledText::default();
        let mut from = 1;
        while from < widths.len() {
            let mut until = from;
            let mut used = name;
            while let Some(own) = widths.get(until).filter(|own| used + GAP + **own <= width || until == from) {
                used += GAP + own;
                until += 1;
            }
            if from > 1 {
                out.blank_line();
            }
            self.block(&mut out, &widths, from, until);
            from = until;
        }
        out
    }

    /// The table without the last columns that do not fit next to the others.
    pub(super) fn without_last_columns(mut self, width: usize) -> TextTable {
        let mut kept = self.header.len();
        let used = |kept: usize| (0..kept).map(|column| self.column_width(column) + GAP).sum::<usize>() - GAP;
        while kept > 2 && used(kept) > width {
            kept -= 1;
        }
        self.header.truncate(kept);
        self.rows.iter_mut().for_each(|row| row.truncate(kept));
        self
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).flatten().map(|(_, text)| text.width());
        let widest = cells.chain(self.header.get(column).map(|header| header.width())).max().unwrap_or(0);
        if column == 0 { widest.min(LONGEST_NAME) } else { widest }
    }

    fn block(&self, out: &mut StyledText, widths: &[usize], from: usize, until: usize) {
        let columns: Vec<usize> = std::iter::once(0).chain(from..until).collect();
        let head = |column: usize| (TextStyle::Dim, self.header.get(column).cloned().unwrap_or_default());
        out.line(columns.iter().flat_map(|&column| aligned(head(column), column, widths)));
        for row in &self.rows {
            let height = columns.iter().filter_map(|&column| row.get(column)).map(Vec::len).max().unwrap_or(0);
            for level in 0..height {
                let cell =
                    |column: usize| row.get(column).and_then(|cell| cell.get(level)).cloned().unwrap_or_default();
                out.line(columns.iter().flat_map(|&column| aligned(cell(column), column, widths)));
            }
        }
    }
}

/// A padded span: names are left-aligned, figures right-aligned.
fn aligned((style, text): Span, column: usize, widths: &[usize]) -> Vec<Span> {
    let width = widths.get(column).copied().unwrap_or(0);
    let text = if text.width() > width { shortened(&text, width) } else { text };
    let padding = " ".repeat(width.saturating_sub(text.width()));
    if column == 0 {
        vec![(style, text), (TextStyle::Plain, padding)]
    } else {
        vec![(TextStyle::Plain, " ".repeat(GAP) + &padding), (style, text)]
    }
}

/// A text that is at most `width` wide, with `…` where it was cut.
pub(super) fn fitted(text: &str, width: usize) -> String {
    if text.width() > width { shortened(text, width) } else { text.to_owned() }
}

fn shortened(text: &str, width: usize) -> String {
    let mut short = String::new();
    for c in text.chars() {
        if short.width() + c.to_string().width() + 1 > width {
            break;
        }
        short.push(c);
    }
    short + "…"
}
