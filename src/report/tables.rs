//! Tables for the terminal, and the columns that Markdown shares with them.

use super::breakdowns::{FigureTable, breakdowns};
use super::comparison_notes::{comparison_notes, differences, method_changes, unchanged};
use super::compressions::compressions;
use super::figures::text_table;
use super::notes::{confounds, critical_warnings, has_answers, task_formula, warnings};
use super::numbers::{UNKNOWN, brackets, mark, probability, range, score, share, signed};
use super::planted;
use super::styled::{Span, StyledText, TableCell, TextStyle, TextTable};
use super::translation::{Translation, fill, translation};
use crate::judge::Dimension;
use crate::results::{
    Comparison, FigureTableId, Manifest, MethodComparison, MethodSummary, ScoreEstimate, Summary,
};
use base::locale::Locale;
use base::text::grouped;
use stats::{DifferenceTest, Verdict};

/// The summary of a result set: scores, compression and cost, and the notes on the set. `width` is that of the
/// terminal, at least 60.
pub fn summary_table(summary: &Summary, manifest: &Manifest, width: usize) -> StyledText {
    let tr = translation(manifest.design.locale.of_report());
    let mut out = StyledText::default();
    out.line(heading(summary, tr));
    for warning in critical_warnings(summary, manifest, tr) {
        out.paragraph(TextStyle::Warning, &warning, width);
    }
    out.blank_line();
    if has_answers(&manifest.design) {
        out.append(scores(summary, tr).render(width));
        out.blank_line();
        out.append(text_table(FigureTableId::All, summary, tr).render(width));
        out.blank_line();
    }
    for table in compressions(summary, tr)
        .into_iter()
        .chain(breakdowns(summary, tr))
        .chain(planted::tables(summary, tr))
    {
        let lead = table.lead.clone();
        out.append(figures(table).render(width));
        out.blank_line();
        out.paragraph(TextStyle::Dim, &lead, width);
        out.blank_line();
    }
    let explanations = [
        Some(tr.intervals.to_owned()),
        task_formula(summary, manifest, tr),
        summary.comparison.as_ref().map(|_| tr.margin.to_owned()),
    ];
    explanations
        .iter()
        .flatten()
        .for_each(|text| out.paragraph(TextStyle::Dim, text, width));
    let offline = manifest.caveats.offline.then(|| tr.offline.to_owned());
    for warning in offline.into_iter().chain(warnings(summary, manifest, tr)) {
        out.paragraph(TextStyle::Warning, &warning, width);
    }
    for note in confounds(summary, &manifest.design, tr) {
        out.paragraph(TextStyle::Dim, &note, width);
    }
    out
}

/// The label, the baseline, and whether built-in rules took the place of models.
fn heading(summary: &Summary, tr: &Translation) -> Vec<Span> {
    let mut heading = vec![(TextStyle::Strong, summary.label.clone())];
    if let Some(comparison) = &summary.comparison {
        heading.push((
            TextStyle::Plain,
            format!("  {} {}", tr.against, comparison.baseline),
        ));
    }
    if summary.lexical {
        heading.push((TextStyle::Warning, format!("  {}", tr.lexical)));
    }
    heading
}

fn figures(table: FigureTable) -> TextTable {
    let rows = table.rows.into_iter().map(|(name, figures)| {
        std::iter::once(vec![(TextStyle::Strong, name)])
            .chain(figures.into_iter().map(figure_cell))
            .collect()
    });
    TextTable {
        header: table.header,
        rows: rows.collect(),
    }
}

/// A figure above its denominator: `43.2%` and `of 12`. Words stay on one line.
fn figure_cell(figure: String) -> TableCell {
    let is_figure = figure.starts_with(|c: char| c.is_ascii_digit() || "+−-–$<".contains(c));
    match figure.split_once(' ').filter(|_| is_figure) {
        None => plain(figure),
        Some((value, detail)) => {
            let of = detail.rsplit("] ").next().unwrap_or(detail);
            vec![
                (TextStyle::Plain, value.to_owned()),
                (TextStyle::Dim, of.to_owned()),
            ]
        }
    }
}

/// The columns of scores: method, overall, each dimension.
pub(super) fn score_header(tr: &Translation) -> Vec<String> {
    let dimensions = Dimension::ALL.map(|dimension| dimension.label(tr.locale));
    [tr.method, tr.overall]
        .into_iter()
        .chain(dimensions)
        .map(str::to_owned)
        .collect()
}

fn scores(summary: &Summary, tr: &Translation) -> TextTable {
    let rows = summary.methods.iter().map(|(name, method)| {
        let compared = summary
            .comparison
            .as_ref()
            .and_then(|comparison| comparison.methods.get(name));
        let mut row = vec![vec![(TextStyle::Strong, tr.method_label(name, method))]];
        row.push(level_cell(
            Some(&method.overall),
            compared.and_then(|c| c.overall.as_ref()),
        ));
        row.extend(Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            level_cell(method.dimensions.get(dimension.name()), judged)
        }));
        row
    });
    TextTable {
        header: score_header(tr),
        rows: rows.collect(),
    }
}

/// A level with the mark of its verdict, above its interval if it has one.
fn level_cell(level: Option<&ScoreEstimate>, judged: Option<&DifferenceTest>) -> TableCell {
    let value = score(level.and_then(|level| level.median));
    let interval = level
        .and_then(|level| level.ci95)
        .map(|interval| (TextStyle::Dim, range(Some(interval))));
    [(verdict_style(judged), format!("{}{value}", mark(judged)))]
        .into_iter()
        .chain(interval)
        .collect()
}

pub(super) fn verdict_style(judged: Option<&DifferenceTest>) -> TextStyle {
    judged.map_or(TextStyle::Plain, |judged| {
        TextStyle::from_verdict(judged.verdict)
    })
}

fn plain(text: String) -> TableCell {
    vec![(TextStyle::Plain, text)]
}

/// Whether any context has more than a summary, so that the survival in the summary alone is a figure of its own.
pub(super) fn has_summaries(summary: &Summary) -> bool {
    summary
        .methods
        .values()
        .any(|method| method.economy.summary_survival.is_some())
}

/// The cells that are present, out of those that the design asks for. If nothing is judged, contexts are counted
/// instead.
pub(super) fn coverage(method: &MethodSummary, tr: &Translation) -> TableCell {
    let [present, expected] = covered(method);
    let style = if is_incomplete(method) {
        TextStyle::Bad
    } else {
        TextStyle::Plain
    };
    let text = match expected {
        0 if method.not_compressed.is_some() => tr.not_compressed.to_owned(),
        0 => UNKNOWN.to_owned(),
        _ => format!("{}/{}", grouped(present), grouped(expected)),
    };
    vec![(style, text)]
}

/// Whether a method lacks cells that the design asks for.
pub(super) fn is_incomplete(method: &MethodSummary) -> bool {
    let [present, expected] = covered(method);
    present < expected
}

/// How many cells or contexts are present, and how many there should be.
fn covered(method: &MethodSummary) -> [u64; 2] {
    let cells = &method.cells;
    let judged = [cells.judged, cells.judged + cells.failed + cells.missing];
    if judged[1] > 0 {
        judged
    } else {
        [method.compression.contexts, method.compression.expected]
    }
}

/// The heading of costs. Where no cell was graded, they are those of the compressions alone: answers that no judge graded
/// are only in the cost of the run.
pub(super) fn cost_heading(summary: &Summary, tr: &Translation) -> &'static str {
    let is_graded = summary
        .methods
        .values()
        .any(|method| method.cells.judged > 0);
    if is_graded {
        tr.cost
    } else {
        tr.cost_of_contexts
    }
}

/// The differences of each changed method with intervals, verdicts and changes.
pub fn comparison_table(comparison: &Comparison, locale: Locale, width: usize) -> StyledText {
    let tr = translation(locale);
    let mut out = StyledText::default();
    if let Some(primary) = &comparison.primary {
        let name = fill(tr.primary, &[&comparison.tested.to_string()]);
        out.line([
            (TextStyle::Strong, name),
            (
                TextStyle::Plain,
                format!("  {} {}", tr.against, comparison.baseline),
            ),
        ]);
        out.append(difference_table([(tr.overall.to_owned(), primary)], tr).render(width));
        out.blank_line();
    }
    for (method, compared) in comparison.methods.iter() {
        if compared.is_changed() {
            add_method_comparison(&mut out, method, compared, &comparison.baseline, tr, width);
        }
    }
    if let Some(unchanged) = unchanged(comparison, tr) {
        out.paragraph(TextStyle::Plain, &unchanged, width);
    }
    out.paragraph(TextStyle::Dim, tr.margin, width);
    for note in comparison_notes(comparison, tr) {
        out.paragraph(TextStyle::Warning, &note, width);
    }
    out
}

fn add_method_comparison(
    out: &mut StyledText,
    method: &str,
    compared: &MethodComparison,
    baseline: &str,
    tr: &Translation,
    width: usize,
) {
    let mut heading = vec![
        (TextStyle::Strong, method.to_owned()),
        (TextStyle::Plain, format!("  {} {baseline}", tr.against)),
    ];
    if compared.against != method {
        heading.push((TextStyle::Plain, format!(" · {}", compared.against)));
    }
    out.line(heading);
    if compared.is_identical() {
        out.paragraph(TextStyle::Plain, tr.identical, width);
    } else {
        let table = difference_table(differences(compared, tr), tr);
        out.append(if table.rows.is_empty() {
            StyledText::default()
        } else {
            table.render(width)
        });
    }
    for note in method_changes(compared, tr) {
        out.paragraph(TextStyle::Plain, &note, width);
    }
    out.blank_line();
}

fn difference_table<'c>(
    rows: impl IntoIterator<Item = (String, &'c DifferenceTest)>,
    tr: &Translation,
) -> TextTable {
    let head = [
        tr.dimension,
        tr.difference,
        tr.interval,
        "p",
        tr.detectable,
        tr.verdict,
    ];
    TextTable {
        header: head.map(str::to_owned).into(),
        rows: rows
            .into_iter()
            .map(|(name, judged)| difference_row(name, judged, tr))
            .collect(),
    }
}

fn difference_row(name: String, judged: &DifferenceTest, tr: &Translation) -> Vec<TableCell> {
    let p = judged
        .p_adjusted
        .map_or_else(|| UNKNOWN.to_owned(), probability);
    let verdict = format!("{} {}", mark(Some(judged)), tr.verdict(judged));
    vec![
        plain(name),
        vec![(verdict_style(Some(judged)), signed(judged.difference))],
        vec![(TextStyle::Dim, brackets(judged.ci95))],
        vec![(TextStyle::Dim, p)],
        vec![(TextStyle::Dim, detectable(judged))],
        vec![(verdict_style(Some(judged)), verdict.trim().to_owned())],
    ]
}

/// The smallest detectable change, only if there is no evidence: next to a verdict, readers would take it for a bound.
pub(super) fn detectable(judged: &DifferenceTest) -> String {
    score(judged.mdd.filter(|_| judged.verdict == Verdict::NoEvidence))
}

/// A method that others measured on other sessions.
#[derive(Debug)]
pub(super) struct PublishedMethod {
    /// In English and in Chinese.
    pub names: [&'static str; 2],
    pub overall: f64,
    pub dimensions: [f64; Dimension::ALL.len()],
    /// Share of tokens.
    pub removed: f64,
}

impl PublishedMethod {
    pub(super) fn name(&self, locale: Locale) -> &'static str {
        let [english, chinese] = self.names;
        locale.pick(english, chinese)
    }

    /// In the order of [`score_header`].
    pub(super) fn scores(&self) -> impl Iterator<Item = f64> {
        [self.overall].into_iter().chain(self.dimensions)
    }
}

pub(super) const PUBLISHED: [PublishedMethod; 3] = [
    PublishedMethod {
        names: ["anchored iterative (Factory)", "锚定式迭代（Factory）"],
        overall: 3.70,
        dimensions: [4.04, 4.01, 2.45, 4.44, 3.80, 4.99],
        removed: 0.986,
    },
    PublishedMethod {
        names: ["regenerative (Anthropic)", "整体重写（Anthropic）"],
        overall: 3.44,
        dimensions: [3.74, 3.56, 2.33, 4.37, 3.67, 4.95],
        removed: 0.987,
    },
    PublishedMethod {
        names: ["opaque (OpenAI)", "不透明压缩（OpenAI）"],
        overall: 3.35,
        dimensions: [3.43, 3.64, 2.19, 4.37, 3.77, 4.92],
        removed: 0.993,
    },
];

/// Header and rows of the published scores.
pub(super) fn published_table(tr: &Translation) -> (Vec<String>, [Vec<String>; 3]) {
    let header = score_header(tr)
        .into_iter()
        .chain([tr.removed.to_owned()])
        .collect();
    let row = |method: PublishedMethod| {
        let scores = method.scores().map(|value| score(Some(value)));
        [method.name(tr.locale).to_owned()]
            .into_iter()
            .chain(scores)
            .chain([share(Some(method.removed))])
            .collect()
    };
    (header, PUBLISHED.map(row))
}

/// The published scores, for orientation: a table of their own, because they cannot be compared with what was measured.
pub fn reference_table(locale: Locale, width: usize) -> StyledText {
    let tr = translation(locale);
    let (header, rows) = published_table(tr);
    let rows = rows.map(|row| row.into_iter().map(plain).collect());
    let mut out = StyledText::default();
    out.line([(TextStyle::Warning, format!("── {} ──", tr.reference_title))]);
    out.append(
        TextTable {
            header,
            rows: rows.into(),
        }
        .render(width),
    );
    out.paragraph(TextStyle::Dim, tr.reference_note, width);
    out
}
