//! The tables of figures of methods: columns of the one list of figures, and how each unit is written.

use super::numbers::{UNKNOWN, count, count_range, percent_range, score, share, usd};
use super::styled::{TableCell, TextStyle, TextTable, named_row, plain_cell};
use super::translation::{Translation, fill};
use crate::results::{
    Figure, FigureKind, FigureTableId, Measured, MethodSummary, Share, Summary, Unit,
};
use base::text::grouped;
use stats::Interval;

/// The columns of a table: its figures without those that say nothing of any method.
pub(super) fn columns(table: FigureTableId, summary: &Summary) -> Vec<&'static Figure> {
    let has_value = |figure: &&Figure| {
        let mut values = summary
            .methods
            .values()
            .map(|method| (figure.of)(method).value);
        !figure.is_optional || values.any(|value| value.is_some_and(|value| value != 0.0))
    };
    Figure::of_table(table).filter(has_value).collect()
}

/// The heading of a column. Where no cell was graded, costs are those of the compressions alone: answers that no judge
/// graded are only in the cost of the run.
pub(super) fn heading(figure: &Figure, summary: &Summary, tr: &Translation) -> &'static str {
    let is_graded = summary
        .methods
        .values()
        .any(|method| method.cells.judged > 0);
    match figure.id {
        "usd" if !is_graded => tr.cost_of_contexts,
        _ => figure.words(tr.locale),
    }
}

/// The table of a terminal.
pub(super) fn text_table(table: FigureTableId, summary: &Summary, tr: &Translation) -> TextTable {
    let columns = columns(table, summary);
    let headings = columns.iter().map(|figure| heading(figure, summary, tr));
    let rows = summary.methods.iter().map(|(name, method)| {
        let cells = columns.iter().map(|figure| cell(figure, method, tr));
        named_row(tr.method_label(name, method), cells)
    });
    TextTable::new(std::iter::once(tr.method).chain(headings), rows)
}

/// A share above its interval and its denominator; a dash if there is none, or nothing to count.
pub(super) fn share_cell(found: Option<&Share>, tr: &Translation) -> TableCell {
    let found = found.map(Measured::from).unwrap_or_default();
    measured_cell(found, FigureKind::Share, Unit::Percent, false, tr)
}

/// A figure of a method above its interval and its denominator.
pub(super) fn cell(figure: &Figure, method: &MethodSummary, tr: &Translation) -> TableCell {
    let found = (figure.of)(method);
    measured_cell(found, figure.kind, figure.unit, figure.is_optional, tr)
}

fn measured_cell(
    Measured { value, ci95, of }: Measured,
    kind: FigureKind,
    unit: Unit,
    is_optional: bool,
    tr: &Translation,
) -> TableCell {
    match (kind, of, value) {
        (_, Some(0), _) | (_, _, None) => plain_cell(UNKNOWN.to_owned()),
        (FigureKind::Count, Some(of), Some(present)) => {
            let style = match present < of as f64 {
                true => TextStyle::Bad,
                false => TextStyle::Plain,
            };
            vec![(style, format!("{}/{}", count(Some(present)), grouped(of)))]
        }
        (_, of, Some(known)) => {
            // Failed and missing cells have a column only where there are some.
            let is_bad = kind == FigureKind::Count && is_optional && known > 0.0;
            let style = if is_bad {
                TextStyle::Bad
            } else {
                TextStyle::Plain
            };
            let mut lines = vec![(style, written(unit, value))];
            lines.extend(ci95.map(|ci| (TextStyle::Dim, interval(unit, ci))));
            lines.extend(of.map(|of| (TextStyle::Dim, fill(tr.of_n, &[&grouped(of)]))));
            lines
        }
    }
}

fn written(unit: Unit, value: Option<f64>) -> String {
    let with = |text: fn(f64) -> String| value.map_or_else(|| UNKNOWN.to_owned(), text);
    match unit {
        Unit::Percent => share(value),
        Unit::Points => score(value),
        Unit::Tenths => with(|value| format!("{value:.1}")),
        Unit::Whole => count(value),
        Unit::Dollars => usd(value),
        // Under a second it depends more on the machine than on the method.
        Unit::Seconds => with(|value| match value < 1.0 {
            true => "<1".to_owned(),
            false => format!("{value:.1}"),
        }),
    }
}

fn interval(unit: Unit, ci95: Interval) -> String {
    match unit {
        Unit::Percent => percent_range(ci95),
        Unit::Whole => count_range(ci95),
        Unit::Points | Unit::Tenths | Unit::Dollars | Unit::Seconds => {
            format!("{:.2}–{:.2}", ci95.low(), ci95.high())
        }
    }
}
