//! `report.md`: short enough to paste into a pull request.

use crate::controls::{escape_controls, is_shown_escaped};
use crate::stats::DifferenceTest;
use std::fmt::Write;

use super::breakdowns::breakdowns;
use super::notes::{
    caveats, comparison_notes, confounds, differences, has_answers, is_changed, margins, method_changes, scale_warning,
    task_formula, unchanged, weakest,
};
use super::numbers::{UNKNOWN, brackets, mark, score, share_with_interval, signed};
use super::styled::TableCell;
use super::tables::{
    Medium, compression_header, compression_row, detectable, economy_columns, published_table, score_header,
    shows_compressions, unknown_overclaim,
};
use super::translation::{Translation, fill, translation};
use crate::judge::Dimension;
use crate::results::{Comparison, Manifest, MethodComparison, MethodSummary, ModelInfo, Summary, WorstProbe};
use crate::text::{grouped, one_line, shortened};

#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'r> {
    /// The summary, with its comparison if one was made.
    pub summary: &'r Summary,
    /// No time of it is shown, so that equal results give equal reports.
    pub manifest: &'r Manifest,
    pub worst: &'r [WorstProbe],
    /// Whether to append the published scores.
    pub reference: bool,
}

/// The maximum number of methods whose differences are listed by dimension, besides ceiling and floor; the table of scores
/// has the differences of all.
const MAX_DETAILED: usize = 4;

pub fn markdown(input: &ReportInput<'_>) -> String {
    let tr = translation(input.manifest.design.locale);
    let mut out = header(input, tr);
    let is_answered = has_answers(&input.manifest.design);
    if is_answered {
        section(&mut out, tr.six_dimensions);
        out.push_str(&scores(input.summary, tr));
    }
    if let Some(comparison) = &input.summary.comparison {
        out.push_str(&comparison_section(input.summary, comparison, tr));
    }
    if is_answered {
        section(&mut out, tr.compression);
        out.push_str(&economy(input.summary, tr));
        out.push_str(&without_facts(input.summary, tr));
    }
    if shows_compressions(input.summary, input.manifest) {
        section(&mut out, tr.needed_title);
        out.push_str(&compressions(input.summary, tr));
        let _ = write!(out, "\n{}\n", tr.needed_note);
    }
    for table in breakdowns(input.summary, tr) {
        section(&mut out, &table.title);
        out.push_str(&table_header(&table.header));
        let row = |(name, figures): (String, Vec<String>)| {
            table_row(&std::iter::once(escape(&name)).chain(figures).collect::<Vec<_>>())
        };
        out.extend(table.rows.into_iter().map(row));
        let _ = write!(out, "\n{}\n", table.lead);
    }
    let weakest: Vec<String> = input.summary.methods.iter().filter_map(|(name, m)| weakest(name, m, tr)).collect();
    if !weakest.is_empty() {
        section(&mut out, tr.weakest_title);
        out.extend(weakest.iter().map(|line| format!("- {}\n", escape(line))));
    }
    if !input.worst.is_empty() {
        section(&mut out, tr.worst);
        out.push_str(&worst(input.worst, tr));
    }
    section(&mut out, tr.notes);
    let mut notes = vec![tr.intervals.to_owned()];
    notes.extend(task_formula(input.summary, input.manifest, tr));
    notes.extend(confounds(input.summary, &input.manifest.design, tr));
    notes.extend(input.summary.comparison.iter().flat_map(|comparison| comparison_notes(comparison, tr)));
    out.extend(notes.iter().map(|note| format!("- {}\n", escape(note))));
    if input.reference {
        section(&mut out, tr.reference_title);
        out.push_str(&reference(tr));
    }
    out
}

fn section(out: &mut String, title: &str) {
    let _ = write!(out, "\n### {title}\n\n");
}

fn header(input: &ReportInput<'_>, tr: &Translation) -> String {
    let design = &input.manifest.design;
    let mut out = format!("## {}: {}", tr.title, escape(&input.summary.label));
    if let Some(comparison) = &input.summary.comparison {
        let _ = write!(out, " {} {}", tr.against, escape(&comparison.baseline));
    }
    let names = |asked: &[ModelInfo]| -> String {
        let name = |a: &ModelInfo| if a.lexical { tr.lexical.to_owned() } else { code(&a.model) };
        asked.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let judged: u64 = input.summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let _ = write!(out, "\n\n{}: {} · {}: {}", tr.fixtures, design.fixtures.len(), tr.runs, design.runs.compress);
    if has_answers(design) {
        let (answerers, judges) = (names(&design.answerers), names(&design.judges));
        let _ = write!(out, " · {}: {}", tr.cells, grouped(judged));
        let _ = write!(out, " · {} {answerers} · {} {judges}", tr.answered_by, tr.judged_by);
    }
    out.push('\n');
    let scale = scale_warning(input.summary, input.manifest, tr);
    for caveat in scale.into_iter().chain(caveats(input.summary, input.manifest, tr)) {
        let _ = write!(out, "\n> **!** {}\n", escape(&caveat));
    }
    out
}

fn table_header(columns: &[String]) -> String {
    let rule: String =
        std::iter::once("|---|".to_owned()).chain(columns.iter().skip(1).map(|_| "--:|".to_owned())).collect();
    format!("| {} |\n{rule}\n", columns.join(" | "))
}

fn table_row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn scores(summary: &Summary, tr: &Translation) -> String {
    let mut out = table_header(&score_header(tr));
    for (name, method) in summary.methods.iter() {
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let overall = compared.and_then(|compared| compared.overall.as_ref());
        let interval =
            method.overall.ci95.map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high())).unwrap_or_default();
        let mut cells =
            vec![escape(name), format!("**{}**{interval}{}", score(method.overall.median), change(overall))];
        cells.extend(Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            let level = method.dimensions.get(dimension.name());
            level.map_or_else(|| UNKNOWN.to_owned(), |level| format!("{}{}", score(level.median), change(judged)))
        }));
        out.push_str(&table_row(&cells));
    }
    out
}

/// ` (+0.47 ▲)`
fn change(judged: Option<&DifferenceTest>) -> String {
    let text = judged.map(|judged| format!(" ({} {}", signed(judged.difference_all), mark(Some(judged))));
    text.map(|text| format!("{})", text.trim_end())).unwrap_or_default()
}

fn comparison_section(summary: &Summary, comparison: &Comparison, tr: &Translation) -> String {
    let mut out = String::new();
    let head = [tr.dimension, tr.difference, tr.interval, tr.detectable, tr.verdict];
    let head = table_header(&head.map(str::to_owned));
    if let Some(primary) = &comparison.primary {
        let name = fill(tr.primary, &[&comparison.tested.to_string()]);
        let _ = write!(out, "\n**{name}**\n\n{head}{}", difference_row(tr.overall.to_owned(), primary, tr));
    }
    let is_anchor = |name: &str| summary.methods.get(name).is_some_and(MethodSummary::is_anchor);
    let changed = |compared: &MethodComparison| is_changed(compared);
    let methods = comparison.methods.iter().filter(|(name, compared)| !is_anchor(name) && changed(compared));
    for (method, compared) in methods.take(MAX_DETAILED) {
        let _ = write!(out, "\n**{}**\n\n", escape(method));
        if compared.is_identical() {
            let _ = writeln!(out, "{}", tr.identical);
        } else {
            let rows: Vec<String> =
                differences(compared, tr).map(|(name, judged)| difference_row(name, judged, tr)).collect();
            out.extend(rows.first().map(|_| head.as_str()));
            out.extend(rows);
        }
        out.push('\n');
        out.extend(method_changes(compared, tr).iter().map(|note| format!("- {}\n", escape(note))));
    }
    if let Some(unchanged) = unchanged(comparison, tr) {
        let _ = write!(out, "\n{}\n", escape(&unchanged));
    }
    let _ = write!(out, "\n{}\n", margins(comparison, tr));
    out
}

fn difference_row(name: String, judged: &DifferenceTest, tr: &Translation) -> String {
    let verdict = tr.verdict(judged.verdict, judged.reason);
    let verdict = if mark(Some(judged)).is_empty() { verdict } else { format!("**{verdict}**") };
    table_row(&[name, signed(judged.difference), brackets(judged.ci95), detectable(judged), verdict])
}

fn economy(summary: &Summary, tr: &Translation) -> String {
    let columns = economy_columns(summary, tr, Medium::Markdown);
    let header = std::iter::once(tr.method).chain(columns.iter().map(|column| column.header));
    let mut out = table_header(&header.map(str::to_owned).collect::<Vec<_>>());
    for (name, method) in summary.methods.iter() {
        let text = |cell: TableCell| cell.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        let figures = columns.iter().map(|column| text((column.value)(method, tr)));
        out.push_str(&table_row(&std::iter::once(escape(name)).chain(figures).collect::<Vec<_>>()));
    }
    out
}

/// What answers do whose context lost every expected fact of their probe; empty where none did.
fn without_facts(summary: &Summary, tr: &Translation) -> String {
    let mut rows = String::new();
    for (name, method) in summary.methods.iter() {
        let cells = match &method.economy.overclaim {
            Some(found) if found.other_value.of == 0 => continue,
            Some(found) => [&found.other_value, &found.admission, &found.vague, &found.right]
                .map(|share| share_with_interval(share, tr)),
            None => [(); 4].map(|()| unknown_overclaim(method, tr).to_owned()),
        };
        rows.push_str(&table_row(&std::iter::once(escape(name)).chain(cells).collect::<Vec<_>>()));
    }
    if rows.is_empty() {
        return rows;
    }
    let mut out = String::new();
    section(&mut out, tr.without_facts);
    let columns = [tr.method, tr.overclaims, tr.admissions, tr.vague, tr.right_anyway];
    out.push_str(&table_header(&columns.map(str::to_owned)));
    out + &rows
}

fn compressions(summary: &Summary, tr: &Translation) -> String {
    let mut out = table_header(&compression_header(tr));
    for (name, method) in summary.methods.iter() {
        let (recall, interval, rest) = compression_row(method);
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let change = change(compared.and_then(|compared| compared.needed.as_ref()));
        let recall = format!("{recall} {interval}{change}").trim_end().to_owned();
        out.push_str(&table_row(&[escape(name), recall].into_iter().chain(rest).collect::<Vec<_>>()));
    }
    out
}

/// The maximum length of a text from a bank or a model, in characters.
const MAX_EXCERPT: usize = 240;

fn worst(worst: &[WorstProbe], tr: &Translation) -> String {
    let mut out = String::new();
    for probe in worst {
        let point = if probe.point > 1 { format!(" · {}", probe.point) } else { String::new() };
        let place = format!("{} · {}{point} · {}", probe.method, probe.fixture, probe.probe);
        let _ = writeln!(out, "- **{:.2}** {}: {}", probe.score, escape(&place), excerpt(&probe.question));
        if let Some((criterion, points)) = &probe.criterion {
            let _ = writeln!(out, "  - {} {points}/5: {}", code(&criterion.to_string()), excerpt(&probe.reasoning));
        }
        if !probe.lacking.is_empty() {
            let facts: Vec<String> = probe.lacking.iter().take(4).map(|fact| code(fact)).collect();
            let _ = writeln!(out, "  - {}: {}", tr.absent_from_answer, facts.join(", "));
        }
    }
    out
}

fn reference(tr: &Translation) -> String {
    let (header, rows) = published_table(tr);
    let mut out = table_header(&header);
    out.extend(rows.map(|row| table_row(&row)));
    let _ = write!(out, "\n{}\n", tr.reference_note);
    out
}

/// The beginning of an untrusted text, escaped.
fn excerpt(text: &str) -> String {
    escape(&shortened(&one_line(text), MAX_EXCERPT))
}

/// Escapes Markdown, HTML and mentions.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // a zero-width space keeps `@name` and `#12` from becoming mentions
            '@' | '#' => {
                out.push(c);
                out.push('\u{200b}');
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c if is_shown_escaped(c) => {
                out.push('\\');
                out.extend(c.escape_default());
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A code span. A backtick inside becomes an apostrophe, because longer fences do not work in tables.
fn code(text: &str) -> String {
    let line = one_line(text);
    format!("`{}`", escape_controls(&line).replace('`', "'").replace('|', "\u{2502}"))
}
