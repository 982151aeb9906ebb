//! The results on one screen: the sentence, one table, what was lost, what was edited.
//!
//! What does not fit is dropped in a fixed order: the rows of methods without a change are one line from the start,
//! then the diff shrinks to three lines, the questions to one line, and the table to its first rows.

use unicode_width::UnicodeWidthStr;

use super::comparison_notes::{change_text, place, unchanged};
use super::headline::{headline, verdict_of};
use super::notes::{critical_warnings, has_answers, not_compressed_line};
use super::numbers::{UNKNOWN, count, level, mark, score, share, signed, usd};
use super::open_book::open_book_line;
use super::planted::planted_line;
use super::styled::{Span, StyledText, TextStyle, TextTable, fitted};
use super::tables::{cost_heading, coverage, has_summaries, is_incomplete, verdict_style};
use super::translation::{Translation, translation};
use crate::results::{
    Comparison, LossCause, Manifest, MethodComparison, MethodSummary, QuestionChange, Summary,
    TextEdit, first_questions,
};

/// How much of each part is shown.
#[derive(Clone, Copy)]
struct Extent {
    diff: usize,
    questions: usize,
    rows: usize,
}

/// The extents that are tried in turn until the lines fit.
const EXTENTS: [Extent; 5] = [
    Extent {
        diff: 8,
        questions: 3,
        rows: usize::MAX,
    },
    Extent {
        diff: 3,
        questions: 3,
        rows: usize::MAX,
    },
    Extent {
        diff: 3,
        questions: 1,
        rows: usize::MAX,
    },
    Extent {
        diff: 3,
        questions: 1,
        rows: 8,
    },
    Extent {
        diff: 3,
        questions: 1,
        rows: 5,
    },
];

/// The results in at most `lines` lines, or few more where names are long.
pub fn screen(summary: &Summary, manifest: &Manifest, width: usize, lines: usize) -> StyledText {
    let screen = SummaryScreen {
        summary,
        manifest,
        width,
        tr: translation(manifest.design.locale.of_report()),
    };
    let mut tried = EXTENTS.iter().map(|extent| screen.render(*extent));
    let mut shown = tried.next().unwrap_or_default();
    for next in tried {
        if shown.lines.len() <= lines {
            break;
        }
        shown = next;
    }
    shown
}

struct SummaryScreen<'s> {
    summary: &'s Summary,
    manifest: &'s Manifest,
    width: usize,
    tr: &'static Translation,
}

impl SummaryScreen<'_> {
    fn render(&self, extent: Extent) -> StyledText {
        let mut out = StyledText::default();
        let headline = headline(self.summary, self.manifest);
        out.paragraph(
            verdict_of(&headline.result).map_or(TextStyle::Strong, TextStyle::from_verdict),
            &headline.text,
            self.width,
        );
        if !headline.more.is_empty() {
            out.paragraph(TextStyle::Plain, &headline.more.join(" "), self.width);
        }
        for warning in critical_warnings(self.summary, self.manifest, self.tr) {
            out.paragraph(TextStyle::Warning, &warning, self.width);
        }
        out.blank_line();
        self.table(&mut out, extent.rows);
        for line in [
            not_compressed_line(self.summary, self.tr),
            open_book_line(self.summary, self.tr),
            planted_line(self.summary, self.tr).filter(|line| *line != headline.text),
        ] {
            line.iter()
                .for_each(|line| out.paragraph(TextStyle::Plain, line, self.width));
        }
        self.questions(&mut out, extent.questions);
        self.edits(&mut out, extent.diff);
        out
    }

    fn table(&self, out: &mut StyledText, rows: usize) {
        let SummaryScreen { summary, tr, .. } = self;
        let comparison = summary.comparison.as_ref();
        let methods: Vec<_> = summary
            .methods
            .iter()
            .filter(|(name, _)| comparison.is_none_or(|comparison| has_row(comparison, name)))
            .collect();
        let table = self.table_of(methods.iter().take(rows).copied());
        if !table.rows.is_empty() {
            out.append(self.narrowed(table).render(self.width));
        }
        if methods.len() > rows {
            let more = (methods.len() - rows).to_string();
            out.line([(
                TextStyle::Dim,
                tr.locale.pick(
                    format!("and {more} more (--all)"),
                    format!("另有 {more} 个（--all）"),
                ),
            )]);
        }
        if let Some(text) = comparison.and_then(|comparison| unchanged(comparison, tr)) {
            out.line([(TextStyle::Dim, fitted(&text, self.width))]);
        }
    }

    /// The table as it fits: first the counts of complete cells go, then lines are broken, then the last columns go.
    fn narrowed(&self, mut table: TextTable) -> TextTable {
        if !table.fits(self.width) && !self.summary.methods.values().any(is_incomplete) {
            table = table.without_column(self.tr.coverage);
        }
        if !table.fits(self.width) {
            table = table.with_parentheses_below();
        }
        table.without_last_columns(self.width)
    }

    fn table_of<'m>(
        &self,
        methods: impl Iterator<Item = (&'m String, &'m MethodSummary)>,
    ) -> TextTable {
        let columns = columns(self.summary, self.manifest, self.tr);
        let header =
            std::iter::once(self.tr.method).chain(columns.iter().map(|column| column.header));
        let rows = methods.map(|(name, method)| {
            let compared = self
                .summary
                .comparison
                .as_ref()
                .and_then(|comparison| comparison.methods.get(name));
            let name = vec![(TextStyle::Strong, self.tr.method_label(name, method))];
            std::iter::once(name)
                .chain(
                    columns
                        .iter()
                        .map(|column| vec![(column.value)(method, compared)]),
                )
                .collect()
        });
        TextTable {
            header: header.map(str::to_owned).collect(),
            rows: rows.collect(),
        }
    }

    fn questions(&self, out: &mut StyledText, shown: usize) {
        let questions = first_questions(self.summary);
        let Some(first) = questions.first() else {
            return;
        };
        out.blank_line();
        let title = question_title(first, self.tr);
        if shown < SHOWN_QUESTIONS {
            let names: Vec<&str> = questions
                .iter()
                .take(SHOWN_QUESTIONS)
                .map(|question| question.probe.as_str())
                .collect();
            let more = questions.len().saturating_sub(names.len());
            let more = if more > 0 {
                format!(" +{more}")
            } else {
                String::new()
            };
            let text = format!("{title}: {}{more}", names.join(", "));
            out.line([(TextStyle::Plain, fitted(&text, self.width))]);
            return;
        }
        for (number, question) in questions.iter().take(shown).enumerate() {
            let title = if number == 0 {
                title.to_owned()
            } else {
                " ".repeat(title.width())
            };
            out.line(self.question_line(&title, question));
        }
    }

    /// `lost  zh-review-payments · p1-lock 4.88 → 0.00: FOR UPDATE`.
    fn question_line(&self, title: &str, question: &QuestionChange) -> Vec<Span> {
        let value = match question.before {
            Some(before) => format!("{} → {}", score(Some(before)), score(Some(question.after))),
            None => format!("· {} {}", question.method, score(Some(question.after))),
        };
        let place = place(&question.fixture, question.point, &question.probe);
        let start = format!("{title}  ");
        let facts = if question.facts.is_empty() {
            String::new()
        } else {
            format!(": {}", question.facts.join(", "))
        };
        let rest = fitted(
            &format!("{place} {value}{}{facts}", cause_mark(question, self.tr)),
            self.width.saturating_sub(start.width()),
        );
        vec![(TextStyle::Dim, start), (TextStyle::Plain, rest)]
    }

    fn edits(&self, out: &mut StyledText, shown: usize) {
        let Some(comparison) = &self.summary.comparison else {
            return;
        };
        let texts = edited_texts(comparison);
        if texts.is_empty() {
            return;
        }
        out.blank_line();
        let lines: Vec<&String> = texts
            .iter()
            .flat_map(|text| &text.diff)
            .filter(|line| line.len() > 1)
            .collect();
        let places: Vec<&str> = texts
            .iter()
            .flat_map(|text| &text.places)
            .map(String::as_str)
            .collect();
        let more = lines.len().saturating_sub(shown);
        let more = if more > 0 {
            self.tr
                .locale
                .pick(format!("  (+{more} lines)"), format!("（另 {more} 行）"))
        } else {
            String::new()
        };
        out.line([(
            TextStyle::Dim,
            fitted(&format!("{}{more}", places.join(", ")), self.width),
        )]);
        for line in lines.into_iter().take(shown) {
            let style = if line.starts_with('-') {
                TextStyle::Bad
            } else {
                TextStyle::Good
            };
            out.line([(style, fitted(&format!("  {line}"), self.width))]);
        }
    }
}

/// Whether the one table of a comparison has a row for a method: if it changed, or if only one side has it. Where methods
/// were named, the others are not compared.
pub(super) fn has_row(comparison: &Comparison, name: &str) -> bool {
    match comparison.methods.get(name) {
        Some(compared) => compared.is_changed(),
        None => comparison
            .unmatched
            .iter()
            .any(|unmatched| unmatched == name),
    }
}

/// Questions that a report shows at first.
pub(super) const SHOWN_QUESTIONS: usize = 3;

/// What stands behind a question that the compression did not lose.
pub(super) fn cause_mark(question: &QuestionChange, tr: &Translation) -> &'static str {
    match question.cause {
        Some(LossCause::Answerer) => tr.locale.pick(" (answerer)", "（作答）"),
        Some(LossCause::MadeUp) => tr.locale.pick(" (made up)", "（编造）"),
        Some(LossCause::Compression) | None => "",
    }
}

/// What became of the questions that begin with this one.
pub(super) fn question_title(first: &QuestionChange, tr: &Translation) -> &'static str {
    match first.before {
        None => tr.locale.pick("worst", "最差"),
        Some(before) if first.after < before => tr.locale.pick("lost", "丢失"),
        Some(_) => tr.locale.pick("gained", "新增"),
    }
}

/// The texts that were edited, each once.
pub(super) fn edited_texts(comparison: &Comparison) -> Vec<&TextEdit> {
    let edited = comparison
        .methods
        .values()
        .filter(|compared| compared.is_changed());
    let mut texts: Vec<&TextEdit> = Vec::new();
    for text in edited.flat_map(|compared| &compared.edited_texts) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

type ScreenValue = Box<dyn Fn(&MethodSummary, Option<&MethodComparison>) -> Span>;

/// A column of the one table; those to the right are dropped first.
pub(super) struct ScreenColumn {
    pub header: &'static str,
    pub value: ScreenValue,
}

fn column(
    header: &'static str,
    value: impl Fn(&MethodSummary, Option<&MethodComparison>) -> Span + 'static,
) -> ScreenColumn {
    ScreenColumn {
        header,
        value: Box::new(value),
    }
}

fn plain(text: String) -> Span {
    (TextStyle::Plain, text)
}

/// Score with its interval, change or retention, tokens, facts kept, cost.
pub(super) fn columns(
    summary: &Summary,
    manifest: &Manifest,
    tr: &'static Translation,
) -> Vec<ScreenColumn> {
    let is_graded = has_answers(&manifest.design);
    let mut columns = Vec::new();
    // The figures of an incomplete run are those of the few questions that all methods share: dashes say more.
    let is_incomplete_run = summary.is_incomplete();
    if is_graded {
        columns.push(if is_incomplete_run {
            column(tr.overall_interval, |_, _| plain(UNKNOWN.to_owned()))
        } else {
            overall_column(tr)
        });
    }
    if summary.comparison.is_some() {
        columns.push(column(tr.change, |_, compared| {
            let test = compared.and_then(|compared| compared.overall.as_ref());
            let text = test.map_or_else(
                || UNKNOWN.to_owned(),
                |test| format!("{} {}", mark(Some(test)), signed(test.difference)),
            );
            (verdict_style(test), text.trim().to_owned())
        }));
    } else if is_graded {
        columns.push(column(tr.retention, move |method, _| {
            plain(score(method.retention.value.filter(|_| !is_incomplete_run)))
        }));
    }
    // A comparison needs the width, so it says only where cells are missing.
    if summary.comparison.is_none() || summary.methods.values().any(is_incomplete) {
        columns.push(column(tr.coverage, |method, _| {
            coverage(method, tr).into_iter().next().unwrap_or_default()
        }));
    }
    columns.push(column(tr.context_tokens, |method, compared| {
        let (own, _) = method.context_tokens();
        plain(
            compared
                .and_then(|compared| change_text(&compared.costs.tokens, count))
                .unwrap_or_else(|| count(own)),
        )
    }));
    if is_graded {
        columns.push(column(tr.survival, move |method, _| {
            // Facts kept need no answer, so they are complete.
            let whole = method
                .compression
                .fact_survival
                .filter(|_| is_incomplete_run);
            plain(share(whole.or(method.fact_survival())))
        }));
        if has_summaries(summary) {
            columns.push(column(tr.summary_survival, |method, _| {
                plain(share(method.economy.summary_survival))
            }));
        }
    }
    let heading = if is_graded {
        cost_heading(summary, tr)
    } else {
        tr.cost
    };
    columns.push(column(heading, move |method, _| {
        plain(usd(if is_graded {
            method.usd()
        } else {
            method.compression.usd
        }))
    }));
    columns
}

fn overall_column(tr: &'static Translation) -> ScreenColumn {
    column(tr.overall_interval, |method, _| {
        plain(level(&method.overall))
    })
}
