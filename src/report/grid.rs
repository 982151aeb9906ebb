//! Tables that fit: when the columns are too many for the width, they go on below.

use unicode_width::UnicodeWidthStr;

use super::ink::{Ink, Styled};

/// A cell: one stretch a line.
pub(super) type Cell = Vec<(Ink, String)>;

/// A table with names on the left.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    /// Heading of each column, that of the names first.
    pub head: Vec<String>,
    /// Rows, parallel to `head`.
    pub rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;
/// The most columns of a terminal that a name takes.
const LONGEST_NAME: usize = 28;

impl Grid {
    /// Lays the table out in at most `width` columns of a terminal (as long as the name and one more column fit).
    pub(super) fn lay_out(&self, width: usize) -> Styled {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.column_width(column)).collect();
        let name = widths.first().copied().unwrap_or(0);
        let mut out = Styled::default();
        let mut from = 1;
        while from < widths.len() {
            let mut until = from;
            let mut used = name;
            while let Some(own) = widths.get(until).filter(|own| used + GAP + **own <= width || until == from) {
                used += GAP + own;
                until += 1;
            }
            if from > 1 {
                out.gap();
            }
            self.block(&mut out, &widths, from, until);
            from = until;
        }
        out
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).flatten().map(|(_, text)| text.width());
        let widest = cells.chain(self.head.get(column).map(|head| head.width())).max().unwrap_or(0);
        if column == 0 { widest.min(LONGEST_NAME) } else { widest }
    }

    fn block(&self, out: &mut Styled, widths: &[usize], from: usize, until: usize) {
        let columns: Vec<usize> = std::iter::once(0).chain(from..until).collect();
        let head = |column: usize| (Ink::Dim, self.head.get(column).cloned().unwrap_or_default());
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

/// A stretch with the blanks around it: names to the left, figures to the right.
fn aligned((ink, text): (Ink, String), column: usize, widths: &[usize]) -> Vec<(Ink, String)> {
    let width = widths.get(column).copied().unwrap_or(0);
    let text = if text.width() > width { shortened(&text, width) } else { text };
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if column == 0 {
        vec![(ink, text), (Ink::Plain, blanks)]
    } else {
        vec![(Ink::Plain, " ".repeat(GAP) + &blanks), (ink, text)]
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
