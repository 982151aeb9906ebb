//! Styled text and tables for the terminal. Styles are written as colours, which `cli` shows or leaves out.

use std::fmt::Display;

use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use base::text::one_line;
use stats::Verdict;

/// What tables and sentences show for an unknown value.
pub(super) const UNKNOWN: &str = "–";

/// A value as text; a dash where it is not known.
pub fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), text)
}

/// Whether the text of a table cell is known and not empty.
pub(super) fn is_figure(text: &str) -> bool {
    !matches!(text, "" | UNKNOWN)
}

/// The meaning of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
    pub(super) fn from_verdict(verdict: Verdict) -> TextStyle {
        match verdict {
            Verdict::Improved => TextStyle::Good,
            Verdict::Regressed => TextStyle::Bad,
            Verdict::NoEvidence => TextStyle::Plain,
        }
    }
}

/// Stands for the escape character in colours of our own until they are printed. A noncharacter: no text has a use for it.
pub const COLOR_MARK: char = '\u{FDD0}';

/// A text in a style. A console shows the codes of its colours, or leaves them out where there are none.
pub fn paint(style: TextStyle, text: &str) -> String {
    let code = match style {
        _ if text.is_empty() => return String::new(),
        TextStyle::Plain => return text.to_owned(),
        TextStyle::Strong => "1",
        TextStyle::Dim => "2",
        TextStyle::Good => "32",
        TextStyle::Bad => "31",
        TextStyle::Warning => "33",
        TextStyle::Hint => "36",
    };
    format!("{COLOR_MARK}[{code}m{text}{COLOR_MARK}[0m")
}

/// `text` after a word in a style.
pub fn labelled(style: TextStyle, label: &str, text: impl Display) -> String {
    // A wide colon is followed by no space.
    let gap = if label.ends_with('：') { "" } else { " " };
    format!("{}{gap}{text}", paint(style, label))
}

/// Adds a line without the blanks at its end.
pub(super) fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Ends a part. Two calls in a row leave one blank line.
pub(super) fn push_blank_line(out: &mut String) {
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
}

/// Breaks the lines of a text that are wider than `width` between words, and between the characters of Chinese text. What
/// continues a line is indented like its beginning; other blanks stay as they are.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (indent, text) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        let parts = wrapped(text, width.saturating_sub(indent.len()));
        lines.extend(parts.into_iter().map(|part| format!("{indent}{part}")));
    }
    lines.join("\n")
}

/// The lines of a text, broken between words and between the characters of Chinese text. A word that is wider than
/// `width` is a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for (blanks, piece) in pieces(text) {
        let (gap, own) = (blanks.width(), shown_width(piece));
        if used > 0 && used + gap + own > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else {
            line.push_str(blanks);
            used += gap;
        }
        line.push_str(piece);
        used += own;
    }
    lines.push(line);
    lines
}

/// The parts between which a line may break, each after the blanks before it: words, and wide (Chinese) characters with the
/// punctuation that follows them.
fn pieces(text: &str) -> Vec<(&str, &str)> {
    let (mut pieces, mut rest) = (Vec::new(), text.trim_end());
    while !rest.is_empty() {
        let (mut blanks, words) = rest.split_at(rest.len() - rest.trim_start().len());
        let end = words.find(char::is_whitespace).unwrap_or(words.len());
        let (mut word, after) = words.split_at(end);
        rest = after;
        while let Some(at) = first_break(word) {
            let (piece, others) = word.split_at(at);
            pieces.push((blanks, piece));
            (blanks, word) = ("", others);
        }
        pieces.push((blanks, word));
    }
    pieces
}

/// The first place in a word at which a line may break: beside a wide character, but not before punctuation.
fn first_break(word: &str) -> Option<usize> {
    let after = word.char_indices().skip(1);
    let mut pairs = word.chars().zip(after);
    let found = pairs.find(|(before, (_, c))| {
        (is_wide(*before) || is_wide(*c)) && !"，。；：、）！？".contains(*c)
    });
    found.map(|(_, (at, _))| at)
}

/// The parts of a word, each as wide as it may be.
fn parts_of(word: &str, width: usize) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    for c in word.chars() {
        if part.width() + c.width().unwrap_or(0) > width {
            parts.push(std::mem::take(&mut part));
        }
        part.push(c);
    }
    parts.push(part);
    parts
}

/// The columns of a text, in which the codes of our own colours take none.
fn shown_width(text: &str) -> usize {
    let mut parts = text.split(COLOR_MARK);
    let before = parts.next().map_or(0, UnicodeWidthStr::width);
    before
        + parts
            .map(|part| {
                part.split_once('m')
                    .map_or(part, |(_, after)| after)
                    .width()
            })
            .sum::<usize>()
}

fn is_wide(c: char) -> bool {
    c.width() == Some(2)
}

/// A piece of text in one style.
type Span = (TextStyle, String);

/// A table cell: one span per line.
pub(super) type TableCell = Vec<Span>;

pub(super) fn plain_cell(text: String) -> TableCell {
    vec![(TextStyle::Plain, text)]
}

/// A row whose first cell is the name of a method.
pub(super) fn named_row(
    name: String,
    cells: impl IntoIterator<Item = TableCell>,
) -> Vec<TableCell> {
    let name = vec![(TextStyle::Strong, name)];
    std::iter::once(name).chain(cells).collect()
}

/// A table whose first column has the names of its rows. If the width is short, long headers take several lines.
/// Columns that still do not fit continue in another block below, because wrapped or cut figures cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TextTable {
    pub header: Vec<String>,
    /// Rows, parallel to `header`.
    pub rows: Vec<Vec<TableCell>>,
    /// The columns of words beside the first one: they are left-aligned.
    #[serde(skip)]
    pub words: Vec<usize>,
    /// Whether the last column is cut to what the others leave of the width.
    #[serde(skip)]
    pub cuts_last: bool,
}

const GAP: usize = 2;
/// A last column is cut to no less than this.
const LEAST_LAST: usize = 8;
/// The maximum number of lines of a header.
const HEADER_LINES: usize = 3;
/// A header that is no wider than this is not broken.
const NARROWEST: usize = 4;
/// Names and words are broken between words so that they are no wider than this, if they can be: a UUID fits.
const USUAL_NAME: usize = 36;
/// The maximum width of a name: one that is a single word is broken inside it only from here, as it may be copied.
const LONGEST_NAME: usize = 60;

impl TextTable {
    /// A table with figures in all columns but the first.
    pub fn new(
        header: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<TableCell>>,
    ) -> TextTable {
        TextTable {
            header: header.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().collect(),
            words: Vec::new(),
            cuts_last: false,
        }
    }

    /// A table of plain texts. Names and words that are longer than usual take several lines, and no word of usual length
    /// is broken.
    pub fn plain(
        header: &[&str],
        words: &[usize],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> TextTable {
        let cell = |(at, text): (usize, String)| match at == 0 || words.contains(&at) {
            true => wrapped(&one_line(&text), USUAL_NAME)
                .iter()
                .flat_map(|line| parts_of(line, LONGEST_NAME))
                .map(|line| (TextStyle::Plain, line))
                .collect(),
            false => plain_cell(text),
        };
        let rows = rows.into_iter();
        let rows = rows.map(|row| row.into_iter().enumerate().map(cell).collect());
        TextTable {
            words: words.to_vec(),
            ..TextTable::new(header.iter().copied(), rows)
        }
    }

    /// Whether any cell has a figure.
    pub(super) fn has_figures(&self) -> bool {
        let cells = self.rows.iter().flat_map(|row| row.iter().skip(1));
        cells.flatten().any(|(_, text)| is_figure(text))
    }

    /// The table without the rows and columns that have no figure; `None` if no row is left.
    pub(super) fn without_void(mut self) -> Option<TextTable> {
        let is_known = |cell: &TableCell| cell.iter().any(|(_, text)| is_figure(text));
        self.rows.retain(|row| row.iter().skip(1).any(is_known));
        for at in (1..self.header.len()).rev() {
            let mut column = self.rows.iter().filter_map(|row| row.get(at));
            if !column.any(is_known) {
                self.header.remove(at);
                self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        (!self.rows.is_empty()).then_some(self)
    }

    /// Renders the table at most `width` wide, or wider if a name and one column do not fit.
    pub fn render(&self, width: usize) -> String {
        let wide = self.wide_widths(width);
        let widths = self.widths(&wide, width);
        let name = widths.first().copied().unwrap_or(0);
        let mut out = String::new();
        let mut from = 1;
        while from < widths.len() {
            let mut until = from;
            let mut used = name;
            while let Some(own) = widths
                .get(until)
                .filter(|own| used + GAP + **own <= width || until == from)
            {
                used += GAP + own;
                until += 1;
            }
            if from > 1 {
                push_blank_line(&mut out);
            }
            // In a block with room, no header needs several lines.
            let own = wide.get(from..until).unwrap_or_default();
            let has_room = name + own.iter().map(|own| GAP + own).sum::<usize>() <= width;
            self.block(
                &mut out,
                if has_room { &wide } else { &widths },
                from,
                until,
            );
            from = until;
        }
        out
    }

    /// The table without the last columns that do not fit next to the others.
    fn without_last_columns(mut self, width: usize) -> TextTable {
        let mut kept = self.header.len();
        while kept > 2 && self.narrowest(kept) > width {
            kept -= 1;
        }
        self.header.truncate(kept);
        self.rows.iter_mut().for_each(|row| row.truncate(kept));
        self
    }

    /// The table as it fits without a further block: first lines are broken, then the last columns go.
    pub(super) fn narrowed(self, width: usize) -> TextTable {
        let fits = self.narrowest(self.header.len()) <= width;
        let table = if fits {
            self
        } else {
            self.with_parentheses_below()
        };
        table.without_last_columns(width)
    }

    /// The table with what stands in parentheses behind a figure on a line below it.
    fn with_parentheses_below(mut self) -> TextTable {
        for cell in self.rows.iter_mut().flat_map(|row| row.iter_mut().skip(1)) {
            let lines = cell
                .drain(..)
                .flat_map(|(style, text)| match text.split_once(" (") {
                    Some((figure, more)) => {
                        vec![(style, figure.to_owned()), (style, format!("({more}"))]
                    }
                    None => vec![(style, text)],
                });
            *cell = lines.collect::<Vec<_>>();
        }
        self
    }

    /// The least width of the first columns beside each other.
    fn narrowest(&self, columns: usize) -> usize {
        (0..columns)
            .map(|column| self.narrow_width(column) + GAP)
            .sum::<usize>()
            - GAP
    }

    /// The widths of all columns with each header on one line.
    fn wide_widths(&self, width: usize) -> Vec<usize> {
        let columns = 0..self.header.len();
        let mut wide: Vec<usize> = columns.map(|column| self.column_width(column)).collect();
        if let Some((last, others)) = wide.split_last_mut().filter(|_| self.cuts_last) {
            let used: usize = others.iter().map(|own| own + GAP).sum();
            *last = width.saturating_sub(used).max(LEAST_LAST).min(*last);
        }
        wide
    }

    /// The widths of all columns; narrow widths if the `wide` ones do not fit beside each other.
    fn widths(&self, wide: &[usize], width: usize) -> Vec<usize> {
        let used: usize = wide.iter().map(|own| own + GAP).sum();
        if used.saturating_sub(GAP) <= width {
            wide.to_vec()
        } else {
            (0..wide.len())
                .map(|column| self.narrow_width(column))
                .collect()
        }
    }

    fn column_width(&self, column: usize) -> usize {
        let header = self.header.get(column).map_or(0, |header| header.width());
        let widest = self.widest_cell(column).max(header);
        if column == 0 {
            widest.min(LONGEST_NAME)
        } else {
            widest
        }
    }

    /// The width of a column whose header may take several lines.
    fn narrow_width(&self, column: usize) -> usize {
        let wide = self.column_width(column);
        let Some(header) = self.header.get(column).filter(|_| column > 0) else {
            return wide;
        };
        let narrowest = (self.widest_cell(column).max(NARROWEST)..wide).find(|width| {
            let lines = wrapped(header, *width);
            lines.len() <= HEADER_LINES && lines.iter().all(|line| line.width() <= *width)
        });
        narrowest.unwrap_or(wide)
    }

    fn widest_cell(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).flatten();
        cells.map(|(_, text)| text.width()).max().unwrap_or(0)
    }

    fn header_lines(&self, column: usize, widths: &[usize]) -> Vec<String> {
        let header = self
            .header
            .get(column)
            .map(String::as_str)
            .unwrap_or_default();
        let width = widths.get(column).copied().unwrap_or(0);
        if column == 0 {
            vec![header.to_owned()]
        } else {
            wrapped(header, width)
        }
    }

    fn block(&self, out: &mut String, widths: &[usize], from: usize, until: usize) {
        let columns: Vec<usize> = std::iter::once(0).chain(from..until).collect();
        let headers: Vec<Vec<String>> = columns
            .iter()
            .map(|&column| self.header_lines(column, widths))
            .collect();
        let height = match self.header.iter().all(String::is_empty) {
            true => 0,
            false => headers.iter().map(Vec::len).max().unwrap_or(0),
        };
        for level in 0..height {
            let heads = columns.iter().zip(&headers).map(|(&column, lines)| {
                // A short header is directly above the figures.
                let line = (level + lines.len())
                    .checked_sub(height)
                    .and_then(|at| lines.get(at));
                self.aligned(
                    (TextStyle::Dim, line.cloned().unwrap_or_default()),
                    column,
                    widths,
                )
            });
            push_line(out, &heads.collect::<String>());
        }
        for row in &self.rows {
            let height = columns
                .iter()
                .filter_map(|&column| row.get(column))
                .map(Vec::len)
                .max()
                .unwrap_or(0);
            for level in 0..height {
                let cells = columns.iter().map(|&column| {
                    let cell = row.get(column).and_then(|cell| cell.get(level));
                    self.aligned(cell.cloned().unwrap_or_default(), column, widths)
                });
                push_line(out, &cells.collect::<String>());
            }
        }
    }

    /// A span with its padding: names and words are left-aligned, figures are right-aligned.
    fn aligned(&self, (style, text): Span, column: usize, widths: &[usize]) -> String {
        let width = widths.get(column).copied().unwrap_or(0);
        let text = fitted(&text, width);
        let padding = " ".repeat(width.saturating_sub(text.width()));
        let gap = " ".repeat(if column == 0 { 0 } else { GAP });
        let text = paint(style, &text);
        match column == 0 || self.words.contains(&column) {
            true => format!("{gap}{text}{padding}"),
            false => format!("{gap}{padding}{text}"),
        }
    }
}

/// A text that is at most `width` wide; it ends in `…` if it was cut.
pub fn fitted(text: &str, width: usize) -> String {
    if text.width() > width {
        shortened(text, width)
    } else {
        text.to_owned()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::plain;

    fn table() -> TextTable {
        let cell = |text: &str| vec![(TextStyle::Plain, text.to_owned())];
        TextTable {
            header: [
                "method",
                "smallest detectable change",
                "后续所需之增量",
                "p",
            ]
            .map(str::to_owned)
            .into(),
            rows: vec![["anchored", "0.42", "0.31", "0.005"].map(cell).into()],
            ..TextTable::default()
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        assert_eq!(
            wrap_lines("a result\n\n  of two words", 9),
            "a result\n\n  of two\n  words"
        );
        assert_eq!(wrap_lines("没有发现压缩。", 8), "没有发现\n压缩。");
        let colored = format!("{COLOR_MARK}[33mnote:{COLOR_MARK}[0m two");
        assert_eq!(
            wrap_lines(&colored, 9),
            colored,
            "a colour takes no columns"
        );
    }

    #[test]
    fn long_cells_are_broken_between_words_and_long_names_are_whole() {
        let path = "sessions/2026-01-02/a-name-that-is-longer-than-a-uuid-0001.jsonl";
        let label = &path[9..];
        let reason = "the file src/deployment/configuration_of_the_second_harbor.toml is missing";
        let rows =
            [label, path].map(|name| vec![name.to_owned(), reason.to_owned(), "7".to_owned()]);
        let table = TextTable::plain(&["name", "why", "n"], &[1], rows);
        let text = plain(&table.render(140));
        for whole in [
            label,
            "src/deployment/configuration_of_the_second_harbor.toml",
        ] {
            assert!(text.contains(whole), "{text}");
        }
        assert!(
            text.contains(&path[..60]) && text.contains(&path[60..]),
            "nothing is lost\n{text}"
        );
        let starts = text.lines().filter(|line| line.starts_with("  "));
        assert!(text.lines().all(|line| line.width() <= 140), "{text}");
        assert!(starts.count() >= 2, "{text}");
    }

    #[test]
    fn long_headers_take_lines_where_the_width_is_short() {
        let lines = |width| -> Vec<String> {
            plain(&table().render(width))
                .lines()
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(lines(80).len(), 2, "there is room");
        let found = lines(50);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[0].ends_with("smallest  后续所") && found[2].contains("change"),
            "{found:?}"
        );
        assert!(found.iter().all(|line| line.width() <= 50), "{found:?}");
        assert!(lines(30).len() > 3, "what does not fit goes on below");
    }
}
