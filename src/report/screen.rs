//! The first screen of a report: the sentence, one table, what was lost, what was edited.
//!
//! What does not fit is dropped in a fixed order: the rows of methods without a change are one line from the start,
//! then the diff shrinks to three lines, the questions to one line, and the table to its first rows.

use super::comparison_notes::{change_text, unchanged};
use super::document::{Block, styled};
use super::figures::{self, columns, count, level, mark, score, share, signed};
use super::headline::{headline, verdict_of};
use super::notes::{critical_warnings, not_compressed_line, open_book_line};
use super::planted::planted_line;
use super::styled::{TableCell, TextStyle, TextTable, UNKNOWN, named_row, plain_cell};
use super::translation::{Translation, translation};
use crate::results::{
    Comparison, Figure, FigureTableId, Headline, LossCause, Manifest, MethodComparison,
    MethodSummary, QuestionChange, Summary, TextEdit, first_questions,
};

/// How much of each part is shown.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub diff: usize,
    pub questions: usize,
    pub rows: usize,
}

impl Extent {
    /// Everything that the first screen has.
    pub(super) const ALL: Extent = extent(usize::MAX, SHOWN_QUESTIONS, usize::MAX);
}

/// Questions that a report shows at first.
pub(super) const SHOWN_QUESTIONS: usize = 3;

/// What is tried in turn until the lines fit.
const EXTENTS: [Extent; 5] = [
    extent(8, SHOWN_QUESTIONS, usize::MAX),
    extent(3, SHOWN_QUESTIONS, usize::MAX),
    extent(3, 1, usize::MAX),
    extent(3, 1, 8),
    extent(3, 1, 5),
];

const fn extent(diff: usize, questions: usize, rows: usize) -> Extent {
    Extent {
        diff,
        questions,
        rows,
    }
}

/// The results in at most `lines` lines, or few more where names are long.
pub fn screen(summary: &Summary, manifest: &Manifest, width: usize, lines: usize) -> String {
    let found = headline(summary, manifest);
    let sentences = sentences(&found, summary, manifest);
    let mut tried = EXTENTS.into_iter().map(|extent| {
        let mut blocks = sentences.clone();
        blocks.extend(front(&found, summary, manifest, extent));
        for block in &mut blocks {
            if let Block::Table(table) = block {
                *table = std::mem::take(table).narrowed(width);
            }
        }
        styled(&blocks, width)
    });
    let mut shown = tried.next().unwrap_or_default();
    for next in tried {
        if shown.lines().count() <= lines {
            break;
        }
        shown = next;
    }
    shown
}

/// The sentence, what it had no room for, and the warnings without which the figures mislead.
pub(super) fn sentences(found: &Headline, summary: &Summary, manifest: &Manifest) -> Vec<Block> {
    let tr = translation(manifest.locale());
    let style = verdict_of(&found.result).map_or(TextStyle::Strong, TextStyle::from_verdict);
    let warnings = critical_warnings(summary, manifest, tr).into_iter();
    let said = [
        Block::Sentence(style, found.text.clone()),
        Block::plain(&found.more),
    ];
    said.into_iter()
        .chain(warnings.map(|text| Block::Sentence(TextStyle::Warning, text)))
        .collect()
}

/// What stands below the sentence.
pub(super) fn front(
    found: &Headline,
    summary: &Summary,
    manifest: &Manifest,
    extent: Extent,
) -> Vec<Block> {
    let tr = translation(manifest.locale());
    let comparison = summary.comparison.as_ref();
    let (table, left_out) = main_table(summary, manifest, extent.rows, tr);
    let more = (left_out > 0).then(|| {
        tr.pick(
            format!("and {left_out} more (--all)"),
            format!("另有 {left_out} 个（--all）"),
        )
    });
    let same = comparison.and_then(|comparison| unchanged(comparison, tr));
    let planted = planted_line(summary, tr);
    let lines = [
        more,
        same,
        planted.filter(|line| *line != found.text),
        not_compressed_line(summary, tr),
        open_book_line(summary, tr),
    ];
    let lines = lines.into_iter().flatten().map(Block::dim);
    let edits = comparison.and_then(|comparison| edits(comparison, extent.diff));
    std::iter::once(Block::Table(table))
        .chain(lines)
        .chain([questions(summary, extent.questions, tr)])
        .chain(edits)
        .collect()
}

/// The one table: the score, its change, and figures; where nothing is answered, what one compression costs. With the
/// number of methods that it leaves out.
fn main_table(
    summary: &Summary,
    manifest: &Manifest,
    rows: usize,
    tr: &Translation,
) -> (TextTable, usize) {
    let comparison = summary.comparison.as_ref();
    let is_answered = manifest.design.has_answers();
    let id = match is_answered {
        true => FigureTableId::Screen,
        false => FigureTableId::Compressions,
    };
    let mut figures = columns(id, summary);
    // A comparison has the change in place of the retention. Counts of cells say something where some are missing.
    figures.retain(|figure| match figure.id {
        "retention.value" => comparison.is_none(),
        "cells.judged" => summary.methods.values().any(|m| lacks_some(figure, m)),
        _ => true,
    });
    let headings = figures
        .iter()
        .map(|figure| figures::heading(figure, summary, tr));
    let header = std::iter::once(tr.method)
        .chain(is_answered.then_some(tr.overall_interval))
        .chain(comparison.map(|_| tr.change))
        .chain(headings);
    let methods = summary.methods.iter();
    let methods = methods.filter(|(name, _)| comparison.is_none_or(|found| has_row(found, name)));
    let row = |(name, method): (&String, &MethodSummary)| {
        let compared = comparison.and_then(|comparison| comparison.methods.get(name));
        // The figures of an incomplete run are those of the few questions that all methods share: dashes say more.
        let overall = match summary.is_incomplete() {
            true => UNKNOWN.to_owned(),
            false => level(&method.overall),
        };
        let figures = figures
            .iter()
            .map(|figure| figure_cell(figure, method, compared, summary, tr));
        let scores = is_answered.then(|| plain_cell(overall)).into_iter();
        let cells = scores
            .chain(comparison.map(|_| change_cell(compared, tr)))
            .chain(figures);
        named_row(tr.method_label(name, method.kept.as_deref()), cells)
    };
    let left_out = methods.clone().count().saturating_sub(rows);
    let table = TextTable::new(header, methods.take(rows).map(row));
    (table, left_out)
}

fn lacks_some(figure: &Figure, method: &MethodSummary) -> bool {
    let found = (figure.of)(method);
    let expected = found.of.map(|of| of as f64);
    found
        .value
        .zip(expected)
        .is_some_and(|(present, of)| present < of)
}

/// The change, and on how many of the fixtures it was found: the level beside it is over all of them.
fn change_cell(compared: Option<&MethodComparison>, tr: &Translation) -> TableCell {
    let test = compared.and_then(|compared| compared.overall.as_ref());
    vec![test.map_or((TextStyle::Plain, UNKNOWN.to_owned()), |test| {
        let (tested, all) = (test.clusters, test.clusters + test.unchanged);
        let part = match tested == 0 || tested == all {
            true => String::new(),
            false => tr.pick(
                format!(" ({tested} of {all})"),
                format!("（{tested}/{all}）"),
            ),
        };
        let text = format!("{} {}{part}", mark(Some(test)), signed(test.difference));
        let style = TextStyle::from_verdict(test.verdict);
        (style, text.trim().to_owned())
    })]
}

/// A figure on one line, and what is different in a comparison and in an incomplete run.
fn figure_cell(
    figure: &Figure,
    method: &MethodSummary,
    compared: Option<&MethodComparison>,
    summary: &Summary,
    tr: &Translation,
) -> TableCell {
    let tokens = compared.map(|compared| &compared.costs.tokens);
    let changed = match (figure.id, tokens) {
        ("context_tokens", Some(tokens)) => change_text(tokens, count),
        ("retention.value", _) if summary.is_incomplete() => Some(UNKNOWN.to_owned()),
        // Facts kept need no answer, so they are complete.
        ("fact_survival", _) if summary.is_incomplete() => method
            .compression
            .fact_survival
            .map(|kept| share(Some(kept))),
        _ => None,
    };
    match changed {
        Some(changed) => plain_cell(changed),
        None => (figures::cell(figure, method, tr).into_iter().take(1)).collect(),
    }
}

/// Whether the one table of a comparison has a row for a method: if it changed, or if only one side has it. Where methods
/// were named, the others are not compared.
fn has_row(comparison: &Comparison, name: &str) -> bool {
    match comparison.methods.get(name) {
        Some(compared) => compared.is_changed(),
        None => comparison.unmatched.iter().any(|only| only == name),
    }
}

/// What became of the questions to look at first.
fn questions(summary: &Summary, shown: usize, tr: &Translation) -> Block {
    let questions = first_questions(summary);
    let title = questions.first();
    let title = title.map_or("", |first| question_title(first, tr));
    let named = questions.iter().take(SHOWN_QUESTIONS);
    if shown >= SHOWN_QUESTIONS {
        let lines = named.map(|question| question_line(question, tr));
        return Block::Lines(title.to_owned(), lines.collect());
    }
    let names: Vec<&str> = named.map(|question| question.at.probe.as_str()).collect();
    let more = match questions.len() - names.len() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    let line = (!names.is_empty()).then(|| format!("{}{more}", names.join(tr.comma)));
    Block::Lines(title.to_owned(), line.into_iter().collect())
}

/// `zh-review-payments · p1-lock 4.88 → 0.00: FOR UPDATE`.
fn question_line(question: &QuestionChange, tr: &Translation) -> String {
    let value = match question.before {
        Some(before) => format!("{} → {}", score(Some(before)), score(Some(question.after))),
        None => format!("· {} {}", question.method, score(Some(question.after))),
    };
    let place = &question.at;
    let facts = match question.facts.is_empty() {
        true => String::new(),
        false => format!("{}{}", tr.pick(": ", "："), question.facts.join(tr.comma)),
    };
    format!("{place} {value}{}{facts}", cause_mark(question, tr))
}

/// What stands behind a question that the compression did not lose.
fn cause_mark(question: &QuestionChange, tr: &Translation) -> &'static str {
    match question.cause {
        Some(LossCause::Answerer) => tr.pick(" (answerer)", "（作答）"),
        Some(LossCause::MadeUp) => tr.pick(" (made up)", "（编造）"),
        Some(LossCause::Compression) | None => "",
    }
}

/// What became of the questions that begin with this one.
fn question_title(first: &QuestionChange, tr: &Translation) -> &'static str {
    match first.before {
        None => tr.pick("worst", "最差"),
        Some(before) if first.after < before => tr.pick("lost", "丢失"),
        Some(_) => tr.pick("gained", "新增"),
    }
}

/// The texts that were edited, each once, up to this many lines.
fn edits(comparison: &Comparison, shown: usize) -> Option<Block> {
    let methods = comparison.methods.values();
    let edited = methods.filter(|compared| compared.is_changed());
    let mut texts: Vec<&TextEdit> = Vec::new();
    for text in edited.flat_map(|compared| &compared.edited_texts) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let places = texts.iter().flat_map(|text| &text.places);
    let places: Vec<&str> = places.map(String::as_str).collect();
    let lines = texts.iter().flat_map(|text| &text.diff);
    let mut lines: Vec<String> = lines.filter(|line| line.len() > 1).cloned().collect();
    let more = lines.len().saturating_sub(shown);
    lines.truncate(shown);
    (!texts.is_empty()).then(|| Block::Diff(places.join(", "), lines, more))
}
