//! The table of compressions: how much contexts have of what sessions needed later, and what one compression costs.

use super::breakdowns::FigureTable;
use super::notes::keeps_user_messages;
use super::numbers::{UNKNOWN, brackets, count, count_range, mark, score, share, signed, usd};
use super::translation::Translation;
use crate::results::{MethodSummary, Summary};
use base::text::grouped;
use stats::DifferenceTest;

/// Whether recall of what was needed later may be shown: some point meets the conditions for it.
pub(super) fn shows_needed(summary: &Summary) -> bool {
    let qualifies = summary
        .needed_points
        .as_ref()
        .is_some_and(|points| !points.without_verdict);
    let mut recalls = summary
        .methods
        .values()
        .filter_map(|method| method.needed.as_ref());
    qualifies && recalls.any(|needed| needed.lift.is_some())
}

/// The table; `None` if it would have no figures, or if there are grades and no recall of what was needed later.
pub(super) fn compressions(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let shows_needed = shows_needed(summary);
    let is_graded = summary
        .methods
        .values()
        .any(|method| method.cells.judged + method.cells.not_compressed > 0);
    if !shows_needed && is_graded {
        return None;
    }
    let columns = columns(summary, tr, shows_needed);
    let rows = summary.methods.iter().map(|(name, method)| {
        let compared = summary
            .comparison
            .as_ref()
            .and_then(|comparison| comparison.methods.get(name));
        let test = compared.and_then(|compared| compared.needed.as_ref());
        (
            tr.method_label(name, method),
            columns
                .iter()
                .map(|(_, value)| value(method, test))
                .collect(),
        )
    });
    let (title, lead) = match shows_needed {
        true => (
            tr.needed_title,
            format!("{} {}", tr.needed_note, tr.compressions_note),
        ),
        false => (tr.compressions_title, tr.compressions_note.to_owned()),
    };
    let table = FigureTable {
        id: "compressions",
        title: title.to_owned(),
        lead,
        header: std::iter::once(tr.method)
            .chain(columns.iter().map(|(header, _)| *header))
            .map(str::to_owned)
            .collect(),
        rows: rows.collect(),
    };
    table.without_void()
}

/// The lift of a method, and its interval.
pub(super) fn lift(method: &MethodSummary) -> String {
    let needed = method.needed.as_ref();
    let lift = needed
        .and_then(|needed| needed.lift)
        .map_or_else(|| UNKNOWN.to_owned(), signed);
    match needed.and_then(|needed| needed.ci95) {
        interval @ Some(_) => format!("{lift} {}", brackets(interval)),
        None => lift,
    }
}

/// Writes a figure of a method; the test is that of its recall against a baseline.
type ColumnText = fn(&MethodSummary, Option<&DifferenceTest>) -> String;

/// The columns after the name of the method: the header of each, and its figures.
fn columns(
    summary: &Summary,
    tr: &Translation,
    shows_needed: bool,
) -> Vec<(&'static str, ColumnText)> {
    let mut columns: Vec<(&'static str, ColumnText)> = Vec::new();
    if shows_needed {
        columns.push((tr.needed_lift, |method, _| lift(method)));
        columns.push((tr.needed, |method, test| {
            let recall = score(method.needed.as_ref().and_then(|needed| needed.recall));
            let change =
                test.map(|test| format!(" {} {}", signed(test.difference_all), mark(Some(test))));
            format!("{recall}{}", change.unwrap_or_default())
                .trim_end()
                .to_owned()
        }));
        columns.push((tr.truncate_baseline, |method, _| {
            score(method.needed.as_ref().and_then(|needed| needed.truncate))
        }));
    }
    columns.push((tr.contexts, |method, _| {
        let cost = &method.compression;
        format!("{}/{}", grouped(cost.contexts), grouped(cost.expected))
    }));
    columns.push((tr.needed_tokens, |method, _| {
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
    // Where cells were graded, other tables have it, of all points.
    if summary
        .methods
        .values()
        .all(|method| method.cells.judged == 0)
    {
        columns.push((tr.survival, |method, _| {
            share(method.compression.fact_survival)
        }));
    }
    if keeps_user_messages(summary) {
        columns.push((tr.user_kept, |method, _| {
            share(method.compression.user_share)
        }));
    }
    columns.push((tr.seconds, |method, _| {
        method
            .compression
            .seconds
            .map_or_else(|| UNKNOWN.to_owned(), seconds)
    }));
    columns.push((tr.calls, |method, _| {
        method
            .compression
            .calls
            .map_or_else(|| UNKNOWN.to_owned(), |calls| format!("{calls:.0}"))
    }));
    columns.push((tr.cost, |method, _| usd(method.compression.usd)));
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
