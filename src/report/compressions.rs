//! The table of compressions: what one costs.

use super::breakdowns::FigureTable;
use super::notes::keeps_user_messages;
use super::numbers::{UNKNOWN, count, count_range, share, usd};
use super::translation::Translation;
use crate::results::{MethodSummary, Summary};
use base::text::grouped;

/// The table; `None` if it would have no figures, or if there are grades: other tables have its figures then.
pub(super) fn compressions(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let is_graded = summary
        .methods
        .values()
        .any(|method| method.cells.judged + method.cells.not_compressed > 0);
    if is_graded {
        return None;
    }
    let columns = columns(summary, tr);
    let rows = summary.methods.iter().map(|(name, method)| {
        (
            tr.method_label(name, method),
            columns.iter().map(|(_, value)| value(method)).collect(),
        )
    });
    let table = FigureTable {
        id: "compressions",
        title: tr.compressions_title.to_owned(),
        lead: tr.compressions_note.to_owned(),
        header: std::iter::once(tr.method)
            .chain(columns.iter().map(|(header, _)| *header))
            .map(str::to_owned)
            .collect(),
        rows: rows.collect(),
    };
    table.without_void()
}

/// Writes a figure of a method.
type ColumnText = fn(&MethodSummary) -> String;

/// The columns after the name of the method: the header of each, and its figures.
fn columns(summary: &Summary, tr: &Translation) -> Vec<(&'static str, ColumnText)> {
    let mut columns: Vec<(&'static str, ColumnText)> = Vec::new();
    columns.push((tr.contexts, |method| {
        let cost = &method.compression;
        format!("{}/{}", grouped(cost.contexts), grouped(cost.expected))
    }));
    columns.push((tr.tokens, |method| {
        let interval = method
            .compression
            .tokens_ci95
            .map(|ci| format!(" [{}]", count_range(ci)));
        format!(
            "{}{}",
            count(method.compression.tokens),
            interval.unwrap_or_default()
        )
    }));
    columns.push((tr.survival, |method| {
        share(method.compression.fact_survival)
    }));
    if keeps_user_messages(summary) {
        columns.push((tr.user_kept, |method| share(method.compression.user_share)));
    }
    columns.push((tr.seconds, |method| {
        method
            .compression
            .seconds
            .map_or_else(|| UNKNOWN.to_owned(), seconds)
    }));
    columns.push((tr.calls, |method| {
        method
            .compression
            .calls
            .map_or_else(|| UNKNOWN.to_owned(), |calls| format!("{calls:.0}"))
    }));
    columns.push((tr.cost, |method| usd(method.compression.usd)));
    columns
}

/// A duration. Under a second it depends more on the machine than on the method.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        "<1".to_owned()
    } else {
        format!("{seconds:.1}")
    }
}
