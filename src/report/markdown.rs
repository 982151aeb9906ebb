//! `report.md`: short enough to paste into a pull request.

use std::fmt::Write;

use super::changes::{unchanged, what_changed};
use super::figures::{UNKNOWN, brackets, count, mark, ratio, score, share, signed, usd};
use super::notes::{about_comparison, caveats, confounds, scale_warning};
use super::tables::{cost, detectable, lacks_cells, published};
use super::words::{Words, fill, words};
use crate::judge::Dimension;
use crate::results::{Comparison, Judged, Level, Manifest, MethodComparison, MethodSummary, Summary, Worst};

/// All that a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'r> {
    /// The summary, with its comparison if one was made.
    pub summary: &'r Summary,
    /// The manifest; no time of it is shown.
    pub manifest: &'r Manifest,
    /// The worst probes.
    pub worst: &'r [Worst],
    /// Whether the published reference is to stand at the end.
    pub reference: bool,
}

/// The methods that a comparison spells out dimension by dimension, besides ceiling and floor; the table above holds
/// the differences of all.
const SPELLED_OUT: usize = 4;

/// `report.md`, byte for byte the same from the same results.
pub fn markdown(input: &ReportInput<'_>) -> String {
    let words = words(input.manifest.design.locale);
    let mut out = header(input, words);
    section(&mut out, words.six_dimensions);
    out.push_str(&scores(input.summary, words));
    if let Some(comparison) = &input.summary.comparison {
        out.push_str(&differences(input.summary, comparison, words));
    }
    section(&mut out, words.compression);
    out.push_str(&economy(input.summary, words));
    if !input.worst.is_empty() {
        section(&mut out, words.worst);
        out.push_str(&worst(input.worst, words));
    }
    section(&mut out, words.notes);
    let mut notes = vec![words.intervals.to_owned()];
    notes.extend(confounds(input.summary, &input.manifest.design, words));
    notes.extend(input.summary.comparison.iter().flat_map(|comparison| about_comparison(comparison, words)));
    out.extend(notes.iter().map(|note| format!("- {}\n", escape(note))));
    if input.reference {
        section(&mut out, words.reference_title);
        out.push_str(&reference(words));
    }
    out
}

fn section(out: &mut String, title: &str) {
    let _ = write!(out, "\n### {title}\n\n");
}

fn header(input: &ReportInput<'_>, words: &Words) -> String {
    let design = &input.manifest.design;
    let mut out = format!("## {}: {}", words.title, escape(&input.summary.label));
    if let Some(comparison) = &input.summary.comparison {
        let _ = write!(out, " {} {}", words.against, escape(&comparison.baseline));
    }
    let names = |asked: &[crate::results::Asked]| -> String {
        let name = |a: &crate::results::Asked| if a.lexical { words.lexical.to_owned() } else { code(&a.model) };
        asked.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let judged: u64 = input.summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let _ = write!(
        out,
        "\n\n{}: {} · {}: {} · {}: {} · {} {} · {} {}\n",
        words.fixtures,
        design.fixtures.len(),
        words.runs,
        design.runs.compress,
        words.cells,
        super::figures::grouped(judged),
        words.answered_by,
        names(&design.answerers),
        words.judged_by,
        names(&design.judges)
    );
    let scale = scale_warning(input.summary, words);
    for caveat in scale.into_iter().chain(caveats(input.summary, input.manifest, words)) {
        let _ = write!(out, "\n> **!** {}\n", escape(&caveat));
    }
    out
}

fn table_head(columns: &[String]) -> String {
    let rule: String =
        std::iter::once("|---|".to_owned()).chain(columns.iter().skip(1).map(|_| "--:|".to_owned())).collect();
    format!("| {} |\n{rule}\n", columns.join(" | "))
}

fn table_row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn score_columns(words: &Words) -> Vec<String> {
    let mut columns = vec![words.method.to_owned(), words.overall.to_owned()];
    columns.extend(Dimension::ALL.map(|dimension| dimension.label(words.locale).to_owned()));
    columns
}

fn scores(summary: &Summary, words: &Words) -> String {
    let mut out = table_head(&score_columns(words));
    for (name, method) in summary.methods.iter() {
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let overall = compared.and_then(|compared| compared.overall.as_ref());
        let interval =
            method.overall.ci95.map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high())).unwrap_or_default();
        let mut cells = vec![escape(name), format!("**{}**{interval}{}", value(&method.overall), change(overall))];
        cells.extend(Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            let level = method.dimensions.get(dimension.name());
            level.map_or_else(|| UNKNOWN.to_owned(), |level| format!("{}{}", value(level), change(judged)))
        }));
        out.push_str(&table_row(&cells));
    }
    out
}

fn value(level: &Level) -> String {
    score(level.median)
}

/// ` (+0.47 ▲)`
fn change(judged: Option<&crate::results::Judged>) -> String {
    let text = judged.map(|judged| format!(" ({} {}", signed(judged.difference_all), mark(Some(judged))));
    text.map(|text| format!("{})", text.trim_end())).unwrap_or_default()
}

fn differences(summary: &Summary, comparison: &Comparison, words: &Words) -> String {
    let mut out = String::new();
    let head = [words.dimension, words.difference, words.interval, words.detectable, words.verdict];
    let head = table_head(&head.map(str::to_owned));
    if let Some(primary) = &comparison.primary {
        let name = fill(words.primary, &[&comparison.tested.to_string()]);
        let _ = write!(out, "\n**{name}**\n\n{head}{}", difference_row(words.overall.to_owned(), primary, words));
    }
    let is_scale = |name: &str| summary.methods.get(name).is_some_and(MethodSummary::is_scale);
    let changed = |compared: &MethodComparison| compared.fixtures.tested() > 0;
    let methods = comparison.methods.iter().filter(|(name, compared)| !is_scale(name) && changed(compared));
    for (method, compared) in methods.take(SPELLED_OUT) {
        let _ = write!(out, "\n**{}**\n\n", escape(method));
        if compared.is_identical() {
            let _ = writeln!(out, "{}", words.identical);
        } else {
            out.push_str(&head);
            let overall = compared.overall.iter().map(|judged| (words.overall.to_owned(), judged));
            let all = overall.chain(compared.dimensions.iter().map(|(id, j)| (words.dimension_label(id), j)));
            out.extend(all.map(|(name, judged)| difference_row(name, judged, words)));
        }
        out.push('\n');
        out.extend(what_changed(compared, words).iter().map(|note| format!("- {}\n", escape(note))));
    }
    if let Some(unchanged) = unchanged(comparison, words) {
        let _ = write!(out, "\n{}\n", escape(&unchanged));
    }
    let _ = write!(out, "\n{}\n", words.margin);
    out
}

fn difference_row(name: String, judged: &Judged, words: &Words) -> String {
    let verdict = words.verdict(judged.verdict, judged.reason);
    let verdict = if mark(Some(judged)).is_empty() { verdict } else { format!("**{verdict}**") };
    table_row(&[name, signed(judged.difference), brackets(judged.ci95), detectable(judged), verdict])
}

fn economy(summary: &Summary, words: &Words) -> String {
    let mut head = vec![
        words.method,
        words.context_tokens,
        words.removed,
        words.survival,
        words.lift,
        words.retention,
        words.tokens_per_task,
        words.fabricated,
        words.cost,
        words.failed,
    ];
    let lacks = lacks_cells(summary);
    head.extend(lacks.then_some(words.missing));
    let mut out = table_head(&head.into_iter().map(str::to_owned).collect::<Vec<_>>());
    for (name, method) in summary.methods.iter() {
        let economy = &method.economy;
        let mut row = vec![
            escape(name),
            count(economy.context_tokens),
            share(economy.compression_ratio),
            share(economy.fact_survival),
            share(economy.fact_survival_lift),
            retention(method, words),
            count(economy.tokens_per_task.get(&10).copied()),
            share(economy.fabrication_rate),
            usd(cost(method)),
            method.cells.failed.to_string(),
        ];
        row.extend(lacks.then(|| method.cells.missing.to_string()));
        out.push_str(&table_row(&row));
    }
    out
}

fn retention(method: &MethodSummary, words: &Words) -> String {
    let retention = &method.retention;
    match (retention.value, retention.ci95, retention.reason) {
        (Some(value), Some(ci), _) => format!("{value:.2} [{:.2}, {:.2}]", ci.low(), ci.high()),
        (Some(value), None, _) => ratio(Some(value)),
        (None, _, Some(reason)) => format!("{UNKNOWN} ({})", words.no_retention(reason)),
        (None, _, None) => UNKNOWN.to_owned(),
    }
}

/// The most characters of a text from a bank or a model.
const EXCERPT: usize = 240;

fn worst(worst: &[Worst], words: &Words) -> String {
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
            let _ = writeln!(out, "  - {}: {}", words.lacking, facts.join(", "));
        }
    }
    out
}

fn reference(words: &Words) -> String {
    let mut columns = score_columns(words);
    columns.push(words.removed.to_owned());
    let mut out = table_head(&columns);
    for (name, scores, removed) in published() {
        let mut cells = vec![name.to_owned()];
        cells.extend(scores.map(|value| score(Some(value))));
        cells.push(share(Some(removed)));
        out.push_str(&table_row(&cells));
    }
    let _ = write!(out, "\n{}\n", words.reference_note);
    out
}

/// One line of somebody else's text, cut at a length and escaped.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(EXCERPT).collect();
    let end = if cut.len() < line.len() { "…" } else { "" };
    escape(&cut) + end
}

/// A text in which nothing is Markdown or HTML, and nobody is mentioned.
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
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A text as code, in a table too. A backtick inside becomes an apostrophe, for no fence holds everywhere.
fn code(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", line.replace('`', "'").replace('|', "\u{2502}"))
}
