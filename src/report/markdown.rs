//! `report.md`: short enough to paste into a pull request.

use base::text::{escape_controls, is_shown_escaped};
use stats::DifferenceTest;
use std::fmt::Write;

use super::breakdowns::breakdowns;
use super::comparison_notes::{differences, method_changes, notes, place, unchanged};
use super::compressions::compressions;
use super::figures;
use super::headline::{headline, verdict_of};
use super::notes::{critical_warnings, has_answers, task_formula, weakest};
use super::numbers::{
    UNKNOWN, brackets, is_figure, mark, score, share_with_interval, signed, verdict_mark,
};
use super::open_book::open_book_line;
use super::planted;
use super::screen::{SHOWN_QUESTIONS, cause_mark, columns, edited_texts, has_row, question_title};
use super::tables::{detectable, published_table, score_header};
use super::translation::{Translation, fill, translation};
use crate::judge::Dimension;
use crate::results::{
    Comparison, FigureTableId, Manifest, MethodSummary, ModelInfo, QuestionChange, Summary,
    WorstProbe, first_questions,
};
use base::text::{grouped, one_line, shortened};

/// The maximum number of methods whose differences are listed by dimension, besides ceiling and floor; the table of
/// scores has the differences of all.
const MAX_DETAILED: usize = 4;

/// The maximum number of worst probes.
const MAX_WORST: usize = 5;
/// The maximum number of lines of a diff.
const MAX_DIFF: usize = 20;

/// The report: the headline, one table, lost questions and edited texts; everything else is folded. No times of the
/// manifest are shown, so that equal results give equal reports; `reference` appends the published scores.
pub fn markdown(summary: &Summary, manifest: &Manifest, reference: bool) -> String {
    let tr = translation(manifest.design.locale.of_report());
    let mut out = header(summary, manifest, tr);
    out.push('\n');
    out.push_str(&main_table(summary, manifest, tr));
    if let Some(line) = open_book_line(summary, tr) {
        let _ = write!(out, "\n{}\n", escape(&line));
    }
    out.push_str(&questions(summary, tr));
    out.push_str(&edits(summary));
    for (title, body) in sections(summary, manifest, tr) {
        // With the empty lines, the text between the tags is read as Markdown.
        let _ = write!(
            out,
            "\n<details><summary>{title}</summary>\n\n{}\n\n</details>\n",
            body.trim()
        );
    }
    if reference {
        let (header, rows) = published_table(tr);
        let _ = write!(
            out,
            "\n### {}\n\n{}\n{}\n",
            tr.reference_title,
            table(&header, rows),
            tr.reference_note
        );
    }
    out
}

/// The folded sections that are not empty.
fn sections(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<(String, String)> {
    let is_answered = has_answers(&manifest.design);
    let mut sections = Vec::new();
    if let Some(comparison) = &summary.comparison {
        sections.push((
            tr.changes.to_owned(),
            comparison_section(summary, comparison, tr),
        ));
    }
    if is_answered {
        sections.push((tr.by_dimension.to_owned(), scores(summary, tr)));
        sections.push((tr.compression.to_owned(), economy(summary, tr)));
        sections.push((tr.without_facts.to_owned(), without_facts(summary, tr)));
    }
    let figures = compressions(summary, tr)
        .into_iter()
        .chain(breakdowns(summary, tr))
        .chain(planted::tables(summary, tr));
    sections.extend(figures.map(|figures| {
        let rows = figures
            .rows
            .into_iter()
            .map(|(name, figures)| [vec![escape(&name)], figures].concat());
        (
            figures.title,
            format!("{}\n{}\n", table(&figures.header, rows), figures.lead),
        )
    }));
    let weakest: Vec<String> = summary
        .methods
        .iter()
        .filter_map(|(name, m)| weakest(name, m, tr))
        .collect();
    sections.push((tr.weakest_title.to_owned(), list(&weakest)));
    let worst = summary.worst.get(..MAX_WORST).unwrap_or(&summary.worst);
    sections.push((tr.worst.to_owned(), worst_probes(worst, tr)));
    let notes = notes(summary, manifest, tr);
    let items = notes
        .iter()
        .map(|note| format!("- {}\n", escape_outside_code(note)));
    let explanations =
        std::iter::once(tr.intervals.to_owned()).chain(task_formula(summary, manifest, tr));
    let explanations = explanations.map(|text| format!("\n{}\n", escape_outside_code(&text)));
    sections.push((
        format!("{} ({})", tr.notes, notes.len()),
        items.chain(explanations).collect(),
    ));
    sections.retain(|(_, body)| !body.is_empty());
    sections
}

/// The same table as on the screen, and the methods that did not change.
fn main_table(summary: &Summary, manifest: &Manifest, tr: &'static Translation) -> String {
    let comparison = summary.comparison.as_ref();
    let columns = columns(summary, manifest, tr);
    let header: Vec<String> = std::iter::once(tr.method)
        .chain(columns.iter().map(|column| column.header))
        .map(str::to_owned)
        .collect();
    let rows = summary.methods.iter().filter_map(|(name, method)| {
        let compared = comparison.and_then(|comparison| comparison.methods.get(name));
        let is_shown = comparison.is_none_or(|comparison| has_row(comparison, name));
        let figures = columns
            .iter()
            .map(|column| (column.value)(method, compared).1);
        is_shown.then(|| std::iter::once(escape(name)).chain(figures).collect())
    });
    let mut rows = rows.peekable();
    let mut out = String::new();
    if rows.peek().is_some() {
        out.push_str(&table(&header, rows));
    }
    if let Some(text) = comparison.and_then(|comparison| unchanged(comparison, tr)) {
        let _ = write!(out, "\n{}\n", escape(&text));
    }
    out
}

/// The questions that a comparison lost or gained.
fn questions(summary: &Summary, tr: &Translation) -> String {
    let questions = first_questions(summary);
    let lines: String = questions
        .iter()
        .take(SHOWN_QUESTIONS)
        .filter_map(|question| question_line(question, tr))
        .collect();
    let title = questions
        .first()
        .map(|question| question_title(question, tr))
        .unwrap_or_default();
    if lines.is_empty() {
        lines
    } else {
        format!("\n**{title}**\n\n{lines}")
    }
}

/// A question with its scores before and after; `None` if it was not asked before.
fn question_line(question: &QuestionChange, tr: &Translation) -> Option<String> {
    let before = question.before?;
    let place = place(&question.fixture, question.point, &question.probe);
    let facts: Vec<String> = question
        .facts
        .iter()
        .take(MAX_FACTS)
        .map(|fact| code(fact))
        .collect();
    let facts = if facts.is_empty() {
        String::new()
    } else {
        format!(": {}", facts.join(", "))
    };
    let scores = format!("{} → {}", score(Some(before)), score(Some(question.after)));
    let mark = cause_mark(question, tr);
    Some(format!("- {} {scores}{mark}{facts}\n", escape(&place)))
}

/// What was edited, as a diff.
fn edits(summary: &Summary) -> String {
    let texts = summary
        .comparison
        .as_ref()
        .map(edited_texts)
        .unwrap_or_default();
    let lines = texts
        .iter()
        .filter(|text| !text.diff.is_empty())
        .flat_map(|text| {
            let head = format!("@@ {} @@", text.places.join(", "));
            std::iter::once(head).chain(text.diff.iter().filter(|line| line.len() > 1).cloned())
        });
    // No line of the text may end the block.
    let lines: Vec<String> = lines
        .map(|line| escape_controls(&line).replace("```", "` ` `"))
        .collect();
    let more = lines.len().saturating_sub(MAX_DIFF);
    let more = if more > 0 {
        format!("\n… +{more}")
    } else {
        String::new()
    };
    let shown = lines.get(..MAX_DIFF).unwrap_or(&lines).join("\n");
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n```diff\n{shown}{more}\n```\n")
    }
}

/// A list of untrusted texts.
fn list(items: &[String]) -> String {
    items
        .iter()
        .map(|item| format!("- {}\n", escape(item)))
        .collect()
}

fn header(summary: &Summary, manifest: &Manifest, tr: &Translation) -> String {
    let design = &manifest.design;
    let headline = headline(summary, manifest);
    let mark = verdict_of(&headline.result)
        .map(verdict_mark)
        .unwrap_or_default();
    let sentence = escape_outside_code(format!("{mark} {}", headline.text).trim());
    let more = match headline.more.is_empty() {
        true => String::new(),
        false => format!("{}\n\n", escape_outside_code(&headline.more.join(" "))),
    };
    let mut out = format!(
        "**{sentence}**\n\n{more}{}: {}",
        tr.title,
        escape(&summary.label)
    );
    if let Some(comparison) = &summary.comparison {
        let _ = write!(out, " {} {}", tr.against, escape(&comparison.baseline));
    }
    let judged: u64 = summary
        .methods
        .iter()
        .map(|(_, method)| method.cells.judged)
        .sum();
    let _ = write!(
        out,
        " · {}: {} · {}: {}",
        tr.fixtures,
        design.fixtures.len(),
        tr.runs,
        design.runs.compress
    );
    if has_answers(design) {
        let (answerers, judges) = (
            model_names(&design.answerers, tr),
            model_names(&design.judges, tr),
        );
        let _ = write!(out, " · {}: {}", tr.cells, grouped(judged));
        let _ = write!(
            out,
            " · {} {answerers} · {} {judges}",
            tr.answered_by, tr.judged_by
        );
    }
    out.push('\n');
    for warning in critical_warnings(summary, manifest, tr) {
        let _ = write!(out, "\n> **!** {}\n", escape(&warning));
    }
    out
}

fn model_names(models: &[ModelInfo], tr: &Translation) -> String {
    let names = models.iter().map(|model| {
        if model.lexical {
            tr.lexical.to_owned()
        } else {
            code(&model.model)
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

/// A table whose first column has names and whose other columns have figures; its cells are Markdown. Empty if no cell
/// has a figure.
fn table(header: &[String], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    if !rows.iter().any(|row| {
        row.iter()
            .skip(1)
            .any(|text| is_figure(text.trim_matches('*')))
    }) {
        return String::new();
    }
    let rule = format!("|---|{}\n", "--:|".repeat(header.len().saturating_sub(1)));
    [table_line(header), rule]
        .into_iter()
        .chain(rows.iter().map(|row| table_line(row)))
        .collect()
}

fn table_line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn scores(summary: &Summary, tr: &Translation) -> String {
    let rows = summary.methods.iter().map(|(name, method)| {
        let compared = summary
            .comparison
            .as_ref()
            .and_then(|comparison| comparison.methods.get(name));
        let overall = compared.and_then(|compared| compared.overall.as_ref());
        let interval = method
            .overall
            .ci95
            .map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high()))
            .unwrap_or_default();
        let overall = format!(
            "**{}**{interval}{}",
            score(method.overall.median),
            change(overall)
        );
        let dimensions = Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            let level = method.dimensions.get(dimension.name());
            level.map_or_else(
                || UNKNOWN.to_owned(),
                |level| format!("{}{}", score(level.median), change(judged)),
            )
        });
        [escape(&tr.method_label(name, method)), overall]
            .into_iter()
            .chain(dimensions)
            .collect()
    });
    table(&score_header(tr), rows)
}

/// ` (+0.47 ▲)`
fn change(judged: Option<&DifferenceTest>) -> String {
    let text =
        judged.map(|judged| format!(" ({} {}", signed(judged.difference_all), mark(Some(judged))));
    text.map(|text| format!("{})", text.trim_end()))
        .unwrap_or_default()
}

fn comparison_section(summary: &Summary, comparison: &Comparison, tr: &Translation) -> String {
    let mut out = String::new();
    let head = [
        tr.dimension,
        tr.difference,
        tr.interval,
        tr.detectable,
        tr.verdict,
    ]
    .map(str::to_owned);
    if let Some(primary) = &comparison.primary {
        let name = fill(tr.primary, &[&comparison.tested.to_string()]);
        let row = difference_row(tr.overall.to_owned(), primary, tr);
        let _ = write!(out, "\n**{name}**\n\n{}", table(&head, [row]));
    }
    let methods = comparison.methods.iter().filter(|(name, compared)| {
        let is_anchor = summary
            .methods
            .get(*name)
            .is_some_and(MethodSummary::is_anchor);
        !is_anchor && compared.is_changed()
    });
    for (method, compared) in methods.take(MAX_DETAILED) {
        let _ = write!(out, "\n**{}**\n\n", escape(method));
        if compared.is_identical() {
            let _ = writeln!(out, "{}", tr.identical);
        } else {
            let mut rows = differences(compared, tr)
                .map(|(name, judged)| difference_row(name, judged, tr))
                .peekable();
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
    let _ = write!(out, "\n{}\n", tr.margin);
    out
}

fn difference_row(name: String, judged: &DifferenceTest, tr: &Translation) -> Vec<String> {
    let verdict = tr.verdict(judged);
    let verdict = if mark(Some(judged)).is_empty() {
        verdict
    } else {
        format!("**{verdict}**")
    };
    vec![
        name,
        signed(judged.difference),
        brackets(judged.ci95),
        detectable(judged),
        verdict,
    ]
}

fn economy(summary: &Summary, tr: &Translation) -> String {
    let columns = figures::columns(FigureTableId::Report, summary);
    let headings = columns
        .iter()
        .map(|figure| figures::heading(figure, summary, tr));
    let header: Vec<String> = std::iter::once(tr.method)
        .chain(headings)
        .map(str::to_owned)
        .collect();
    let rows = summary.methods.iter().map(|(name, method)| {
        let cells = columns
            .iter()
            .map(|figure| figures::text(figure, method, tr));
        std::iter::once(escape(&tr.method_label(name, method)))
            .chain(cells)
            .collect()
    });
    table(&header, rows)
}

/// What the answers do whose context lost every expected fact of the probe; empty if no context did.
fn without_facts(summary: &Summary, tr: &Translation) -> String {
    let rows = summary.methods.iter().filter_map(|(name, method)| {
        let cells = match &method.economy.overclaim {
            Some(found) if found.other_value.of == 0 => return None,
            Some(found) => [
                &found.other_value,
                &found.admission,
                &found.vague,
                &found.right,
            ]
            .map(|share| share_with_interval(share, tr)),
            None => [UNKNOWN; 4].map(str::to_owned),
        };
        Some(std::iter::once(escape(name)).chain(cells).collect())
    });
    let mut rows = rows.peekable();
    let mut out = String::new();
    if rows.peek().is_some() {
        let columns = [
            tr.method,
            tr.overclaims,
            tr.admissions,
            tr.vague,
            tr.right_anyway,
        ];
        out.push_str(&table(&columns.map(str::to_owned), rows));
    }
    out
}

/// The maximum number of facts that are shown of a question.
const MAX_FACTS: usize = 4;
/// The maximum length of a text that a bank or a model wrote, in characters.
const MAX_EXCERPT: usize = 240;

fn worst_probes(worst: &[WorstProbe], tr: &Translation) -> String {
    let mut out = String::new();
    for probe in worst {
        let point = if probe.point > 1 {
            format!(" · {}", probe.point)
        } else {
            String::new()
        };
        let place = format!(
            "{} · {}{point} · {}",
            probe.method, probe.fixture, probe.probe
        );
        let _ = writeln!(
            out,
            "- **{:.2}** {}: {}",
            probe.score,
            escape(&place),
            excerpt(&probe.question)
        );
        if let Some((criterion, points)) = &probe.criterion {
            let _ = writeln!(
                out,
                "  - {} {points}/5: {}",
                code(&criterion.to_string()),
                excerpt(&probe.reasoning)
            );
        }
        if !probe.lacking.is_empty() {
            let facts: Vec<String> = probe
                .lacking
                .iter()
                .take(MAX_FACTS)
                .map(|fact| code(fact))
                .collect();
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
            // A zero-width space, so that `@name` and `#12` do not become mentions.
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

/// Escapes a sentence except for its code spans. If backticks are not in pairs, everything is escaped.
fn escape_outside_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let parts = parts.iter().enumerate();
    parts
        .map(|(place, part)| {
            if place % 2 == 1 {
                code(part)
            } else {
                escape(part)
            }
        })
        .collect()
}

/// A code span. A backtick inside becomes an apostrophe, because longer fences do not work in tables.
fn code(text: &str) -> String {
    let line = one_line(text);
    format!(
        "`{}`",
        escape_controls(&line)
            .replace('`', "'")
            .replace('|', "\u{2502}")
    )
}
