//! `report.md`: short enough to paste into a pull request.

use base::controls::{escape_controls, is_shown_escaped};
use stats::DifferenceTest;
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
use base::text::{grouped, one_line, shortened};

/// The maximum number of methods whose differences are listed by dimension, besides ceiling and floor; the table of scores
/// has the differences of all.
const MAX_DETAILED: usize = 4;

/// The report. No time of the manifest is shown, so that equal results give equal reports; `reference` appends the
/// published scores.
pub fn markdown(summary: &Summary, manifest: &Manifest, worst: &[WorstProbe], reference: bool) -> String {
    let tr = translation(manifest.design.locale);
    let mut out = header(summary, manifest, tr);
    let is_answered = has_answers(&manifest.design);
    if is_answered {
        section(&mut out, tr.six_dimensions);
        out.push_str(&scores(summary, tr));
    }
    if let Some(comparison) = &summary.comparison {
        out.push_str(&comparison_section(summary, comparison, tr));
    }
    if is_answered {
        section(&mut out, tr.compression);
        out.push_str(&economy(summary, tr));
        out.push_str(&without_facts(summary, tr));
    }
    if shows_compressions(summary, manifest) {
        section(&mut out, tr.needed_title);
        out.push_str(&compressions(summary, tr));
        let _ = write!(out, "\n{}\n", tr.needed_note);
    }
    for figures in breakdowns(summary, tr) {
        section(&mut out, &figures.title);
        let row = |(name, figures): (String, Vec<String>)| [vec![escape(&name)], figures].concat();
        out.push_str(&table(&figures.header, figures.rows.into_iter().map(row)));
        let _ = write!(out, "\n{}\n", figures.lead);
    }
    let weakest: Vec<String> = summary.methods.iter().filter_map(|(name, m)| weakest(name, m, tr)).collect();
    if !weakest.is_empty() {
        section(&mut out, tr.weakest_title);
        out.push_str(&list(&weakest));
    }
    if !worst.is_empty() {
        section(&mut out, tr.worst);
        out.push_str(&worst_probes(worst, tr));
    }
    section(&mut out, tr.notes);
    let mut notes = vec![tr.intervals.to_owned()];
    notes.extend(task_formula(summary, manifest, tr));
    notes.extend(confounds(summary, &manifest.design, tr));
    notes.extend(summary.comparison.iter().flat_map(|comparison| comparison_notes(comparison, tr)));
    out.push_str(&list(&notes));
    if reference {
        section(&mut out, tr.reference_title);
        let (header, rows) = published_table(tr);
        let _ = write!(out, "{}\n{}\n", table(&header, rows), tr.reference_note);
    }
    out
}

fn section(out: &mut String, title: &str) {
    let _ = write!(out, "\n### {title}\n\n");
}

/// A list of untrusted texts.
fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {}\n", escape(item))).collect()
}

fn header(summary: &Summary, manifest: &Manifest, tr: &Translation) -> String {
    let design = &manifest.design;
    let mut out = format!("## {}: {}", tr.title, escape(&summary.label));
    if let Some(comparison) = &summary.comparison {
        let _ = write!(out, " {} {}", tr.against, escape(&comparison.baseline));
    }
    let names = |asked: &[ModelInfo]| -> String {
        let name = |a: &ModelInfo| if a.lexical { tr.lexical.to_owned() } else { code(&a.model) };
        asked.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let judged: u64 = summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let _ = write!(out, "\n\n{}: {} · {}: {}", tr.fixtures, design.fixtures.len(), tr.runs, design.runs.compress);
    if has_answers(design) {
        let (answerers, judges) = (names(&design.answerers), names(&design.judges));
        let _ = write!(out, " · {}: {}", tr.cells, grouped(judged));
        let _ = write!(out, " · {} {answerers} · {} {judges}", tr.answered_by, tr.judged_by);
    }
    out.push('\n');
    for caveat in scale_warning(summary, manifest, tr).into_iter().chain(caveats(summary, manifest, tr)) {
        let _ = write!(out, "\n> **!** {}\n", escape(&caveat));
    }
    out
}

/// A table whose first column holds names and whose others hold figures; its cells are Markdown.
fn table(header: &[String], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|---|{}\n", "--:|".repeat(header.len().saturating_sub(1)));
    [line(header), rule].into_iter().chain(rows.into_iter().map(|row| line(&row))).collect()
}

fn scores(summary: &Summary, tr: &Translation) -> String {
    let row = |(name, method): (&String, &MethodSummary)| -> Vec<String> {
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let overall = compared.and_then(|compared| compared.overall.as_ref());
        let interval =
            method.overall.ci95.map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high())).unwrap_or_default();
        let overall = format!("**{}**{interval}{}", score(method.overall.median), change(overall));
        let dimensions = Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            let level = method.dimensions.get(dimension.name());
            level.map_or_else(|| UNKNOWN.to_owned(), |level| format!("{}{}", score(level.median), change(judged)))
        });
        [escape(name), overall].into_iter().chain(dimensions).collect()
    };
    table(&score_header(tr), summary.methods.iter().map(row))
}

/// ` (+0.47 ▲)`
fn change(judged: Option<&DifferenceTest>) -> String {
    let text = judged.map(|judged| format!(" ({} {}", signed(judged.difference_all), mark(Some(judged))));
    text.map(|text| format!("{})", text.trim_end())).unwrap_or_default()
}

fn comparison_section(summary: &Summary, comparison: &Comparison, tr: &Translation) -> String {
    let mut out = String::new();
    let head = [tr.dimension, tr.difference, tr.interval, tr.detectable, tr.verdict].map(str::to_owned);
    if let Some(primary) = &comparison.primary {
        let name = fill(tr.primary, &[&comparison.tested.to_string()]);
        let row = difference_row(tr.overall.to_owned(), primary, tr);
        let _ = write!(out, "\n**{name}**\n\n{}", table(&head, [row]));
    }
    let is_anchor = |name: &str| summary.methods.get(name).is_some_and(MethodSummary::is_anchor);
    let changed = |compared: &MethodComparison| is_changed(compared);
    let methods = comparison.methods.iter().filter(|(name, compared)| !is_anchor(name) && changed(compared));
    for (method, compared) in methods.take(MAX_DETAILED) {
        let _ = write!(out, "\n**{}**\n\n", escape(method));
        if compared.is_identical() {
            let _ = writeln!(out, "{}", tr.identical);
        } else {
            let mut rows = differences(compared, tr).map(|(name, judged)| difference_row(name, judged, tr)).peekable();
            if rows.peek().is_some() {
                out.push_str(&table(&head, rows));
            }
        }
        out.push('\n');
        out.push_str(&list(&method_changes(compared, tr)));
    }
    if let Some(unchanged) = unchanged(comparison, tr) {
        let _ = write!(out, "\n{}\n", escape(&unchanged));
    }
    let _ = write!(out, "\n{}\n", margins(comparison, tr));
    out
}

fn difference_row(name: String, judged: &DifferenceTest, tr: &Translation) -> Vec<String> {
    let verdict = tr.verdict(judged.verdict, judged.reason);
    let verdict = if mark(Some(judged)).is_empty() { verdict } else { format!("**{verdict}**") };
    vec![name, signed(judged.difference), brackets(judged.ci95), detectable(judged), verdict]
}

fn economy(summary: &Summary, tr: &Translation) -> String {
    let columns = economy_columns(summary, tr, Medium::Markdown);
    let header = std::iter::once(tr.method).chain(columns.iter().map(|column| column.header));
    let row = |(name, method): (&String, &MethodSummary)| -> Vec<String> {
        let text = |cell: TableCell| cell.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        let figures = columns.iter().map(|column| text((column.value)(method, tr)));
        std::iter::once(escape(name)).chain(figures).collect()
    };
    table(&header.map(str::to_owned).collect::<Vec<_>>(), summary.methods.iter().map(row))
}

/// What answers do whose context lost every expected fact of their probe; empty where none did.
fn without_facts(summary: &Summary, tr: &Translation) -> String {
    let row = |(name, method): (&String, &MethodSummary)| -> Option<Vec<String>> {
        let cells = match &method.economy.overclaim {
            Some(found) if found.other_value.of == 0 => return None,
            Some(found) => [&found.other_value, &found.admission, &found.vague, &found.right]
                .map(|share| share_with_interval(share, tr)),
            None => [(); 4].map(|()| unknown_overclaim(method, tr).to_owned()),
        };
        Some(std::iter::once(escape(name)).chain(cells).collect())
    };
    let mut rows = summary.methods.iter().filter_map(row).peekable();
    let mut out = String::new();
    if rows.peek().is_some() {
        section(&mut out, tr.without_facts);
        let columns = [tr.method, tr.overclaims, tr.admissions, tr.vague, tr.right_anyway];
        out.push_str(&table(&columns.map(str::to_owned), rows));
    }
    out
}

fn compressions(summary: &Summary, tr: &Translation) -> String {
    let row = |(name, method): (&String, &MethodSummary)| -> Vec<String> {
        let (recall, interval, rest) = compression_row(method, tr);
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let change = change(compared.and_then(|compared| compared.needed.as_ref()));
        let recall = format!("{recall} {interval}{change}").trim_end().to_owned();
        [escape(name), recall].into_iter().chain(rest).collect()
    };
    table(&compression_header(tr), summary.methods.iter().map(row))
}

/// The maximum length of a text from a bank or a model, in characters.
const MAX_EXCERPT: usize = 240;

fn worst_probes(worst: &[WorstProbe], tr: &Translation) -> String {
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
