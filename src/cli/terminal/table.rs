//! Plain tables for the terminal: no rules, text to the left, numbers to the right.

use std::ops::Range;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use unicode_width::UnicodeWidthStr;

/// A column: its heading and its alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column<'h> {
    Left(&'h str),
    Right(&'h str),
}

impl<'h> Column<'h> {
    fn heading(self) -> &'h str {
        match self {
            Column::Left(heading) | Column::Right(heading) => heading,
        }
    }
}

/// The width of the gap between two columns.
const GAP: usize = 2;
/// Words that are longer may be broken.
const LONGEST_WORD: usize = 28;
/// Names in the first column that are longer may be broken; a UUID is not.
const LONGEST_NAME: usize = 36;

/// Lays `rows` out under their headings in at most `width` terminal columns. Figures and words are not broken: columns
/// that do not fit go on below, beside the first column again.
pub(crate) fn render_table(
    columns: &[Column<'_>],
    rows: impl IntoIterator<Item = Vec<String>>,
    width: usize,
) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let mut least: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| least_width(*column, rows.iter().filter_map(|row| row.get(at))))
        .collect();
    // A name is not broken either, unless it is long.
    let names = rows
        .iter()
        .filter_map(|row| row.first())
        .map(|name| name.width().min(LONGEST_NAME) + GAP)
        .max();
    if let (Some(first), Some(names)) = (least.first_mut(), names) {
        *first = names.max(*first);
    }
    let Some((first, others)) = least.split_first() else {
        return String::new();
    };
    let mut parts = share_out(others, width.saturating_sub(*first));
    if parts.is_empty() {
        parts.push(0..0);
    }
    let blocks = parts.into_iter().map(|part| {
        let shown: Vec<usize> = std::iter::once(0).chain(part.map(|at| at + 1)).collect();
        render_block(columns, &rows, &shown, &least, width)
    });
    blocks.collect::<Vec<String>>().join("\n\n")
}

/// The least width of a column, with the gap behind it: that of its figures, or of its longest word.
fn least_width<'t>(column: Column<'_>, cells: impl Iterator<Item = &'t String>) -> usize {
    let longest_word = |text: &str| {
        text.split_whitespace()
            .map(|word| word.width().min(LONGEST_WORD))
            .max()
            .unwrap_or(0)
    };
    let cells = cells.map(|cell| match column {
        Column::Left(_) => longest_word(cell),
        Column::Right(_) => cell.width(),
    });
    cells.max().unwrap_or(0).max(longest_word(column.heading())) + GAP
}

/// Shares out columns of these widths among blocks that are at most `available` wide; each has at least one.
fn share_out(widths: &[usize], available: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for (at, width) in widths.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if used + width <= available => part.end = at + 1,
            _ => {
                parts.push(at..at + 1);
                used = 0;
            }
        }
        used += width;
    }
    parts
}

/// The columns at the places `shown`.
fn render_block(
    columns: &[Column<'_>],
    rows: &[Vec<String>],
    shown: &[usize],
    least: &[usize],
    width: usize,
) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(
        shown
            .iter()
            .filter_map(|&at| columns.get(at))
            .map(|column| column.heading()),
    );
    for row in rows {
        table.add_row(
            shown
                .iter()
                .map(|&at| row.get(at).map(String::as_str).unwrap_or_default()),
        );
    }
    let bounds: Vec<usize> = shown
        .iter()
        .filter_map(|&at| least.get(at))
        .copied()
        .collect();
    let fits = bounds.iter().sum::<usize>() <= width;
    for (index, (&at, bound)) in shown.iter().zip(bounds).enumerate() {
        let Some(found) = table.column_mut(index) else {
            continue;
        };
        if let Some(Column::Right(_)) = columns.get(at) {
            found.set_cell_alignment(CellAlignment::Right);
        }
        if fits {
            found.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(
                u16::try_from(bound).unwrap_or(u16::MAX),
            )));
        }
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

/// A number with `digits` decimals, a dash where it is not known.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_shared_out_among_blocks_that_fit() {
        assert_eq!(share_out(&[19, 19, 19, 19], 57), [0..3, 3..4]);
        assert_eq!(
            share_out(&[80, 10, 10], 57),
            [0..1, 1..3],
            "a column that is too wide stands alone"
        );
        assert!(share_out(&[], 57).is_empty());
    }

    #[test]
    fn no_figure_and_no_word_is_broken() {
        let columns = [
            Column::Left("method"),
            Column::Right("compactions made"),
            Column::Right("cost"),
        ];
        let row = ["as recorded", "1,029", "$13.04"]
            .map(str::to_owned)
            .to_vec();
        let lines = |width| {
            render_table(&columns, [row.clone()], width)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let whole = |lines: Vec<String>| {
            let text = lines.join("\n");
            ["recorded", "compactions", "1,029", "$13.04"]
                .iter()
                .all(|word| text.contains(word))
        };
        assert_eq!(lines(80).len(), 2);
        assert!(whole(lines(30)) && whole(lines(26)), "{:?}", lines(26));
        assert!(
            lines(26).contains(&String::new()),
            "what does not fit goes on below"
        );
    }
}
