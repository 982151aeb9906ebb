//! Plain tables for the terminal: no rules, text to the left, numbers to the right.

use comfy_table::{CellAlignment, Table, presets};

/// A column: its heading and its alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column<'h> {
    Left(&'h str),
    Right(&'h str),
}

/// Lays `rows` out under their headings in at most `width` terminal columns.
pub(crate) fn render_table(
    columns: &[Column<'_>],
    rows: impl IntoIterator<Item = Vec<String>>,
    width: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(columns.iter().map(|column| match column {
        Column::Left(heading) | Column::Right(heading) => *heading,
    }));
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in columns.iter().enumerate() {
        if let (Column::Right(_), Some(found)) = (column, table.column_mut(index)) {
            found.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> =
        table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A number with `digits` decimals, a dash where it is not known.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}
