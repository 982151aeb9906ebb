//! How figures are written in tables and sentences, and the tables of figures of methods: columns of the one list of figures.

use super::styled::{TableCell, TextStyle, TextTable, UNKNOWN, known, named_row, plain_cell};
use super::translation::{Translation, fill};
use crate::results::{
    Figure, FigureKind, FigureTableId, Measured, MethodSummary, ScoreEstimate, Share, Summary, Unit,
};
use base::text::grouped;
use base::units::{Usd, money};
use stats::{DifferenceTest, Interval, Verdict};

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
        named_row(tr.method_label(name, method.kept.as_deref()), cells)
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
    match unit {
        Unit::Percent => share(value),
        Unit::Points => score(value),
        Unit::Tenths => known(value, |value| format!("{value:.1}")),
        Unit::Whole => count(value),
        Unit::Dollars => usd(value),
        // Under a second it depends more on the machine than on the method.
        Unit::Seconds => known(value, |value| match value < 1.0 {
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

pub(super) use crate::results::{probability, signed};

pub(super) fn score(value: Option<f64>) -> String {
    known(value, |value| format!("{value:.2}").replace('-', "−"))
}

pub(super) fn share(value: Option<f64>) -> String {
    known(value, |value| format!("{:.1}%", 100.0 * value))
}

/// A count with thousands separators.
pub(super) fn count(value: Option<f64>) -> String {
    known(value, |value| grouped(value.round().max(0.0) as u64))
}

/// `1,204–2,310`: the interval of a count.
pub(super) fn count_range(interval: Interval) -> String {
    let [low, high] = [interval.low(), interval.high()].map(|end| count(Some(end)));
    format!("{low}–{high}")
}

pub(super) fn usd(value: Option<f64>) -> String {
    money(value.map(Usd))
}

/// `3.1–4.7`: the interval of a level.
pub(super) fn range(interval: Option<Interval>) -> String {
    interval
        .map(|ci| format!("{:.1}–{:.1}", ci.low(), ci.high()))
        .unwrap_or_default()
}

/// `3.87 3.6–4.2`: a level and its interval.
pub(super) fn level(found: &ScoreEstimate) -> String {
    format!("{} {}", score(found.median), range(found.ci95))
        .trim_end()
        .to_owned()
}

/// `[+0.32, +0.63]`.
pub(super) fn brackets(interval: Option<Interval>) -> String {
    known(interval, |ci| {
        format!("[{}, {}]", signed(ci.low()), signed(ci.high()))
    })
}

/// `0–35%`: the interval of a share.
pub(super) fn percent_range(interval: Interval) -> String {
    let [low, high] = [interval.low(), interval.high()].map(|end| 100.0 * end);
    format!("{low:.0}–{high:.0}%")
}

/// `11.1% [0%, 35%] of 18`; a dash if there is nothing to count.
pub(super) fn share_with_interval(found: &Share, tr: &Translation) -> String {
    let ends = |ci: Interval| format!(" [{:.0}%, {:.0}%]", 100.0 * ci.low(), 100.0 * ci.high());
    known((found.of > 0).then_some(found.ci95), |ci95| {
        let (part, interval) = (share(found.share), ci95.map(ends).unwrap_or_default());
        format!("{part}{interval} {}", fill(tr.of_n, &[&grouped(found.of)]))
    })
}

/// `▲` for an improvement, `▼` for a regression.
pub(super) fn mark(judged: Option<&DifferenceTest>) -> &'static str {
    judged.map_or("", |judged| verdict_mark(judged.verdict))
}

pub(super) fn verdict_mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "▲",
        Verdict::Regressed => "▼",
        Verdict::NoEvidence => "",
    }
}

/// `2026-01-02 03:04`, from a time in RFC 3339.
pub fn short_time(time: &str) -> String {
    time.chars()
        .take(16)
        .map(|c| if c == 'T' { ' ' } else { c })
        .collect()
}
