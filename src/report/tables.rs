//! Tables for a terminal.

use super::changes::{unchanged, what_changed};
use super::figures::{brackets, count, grouped, mark, probability, range, ratio, score, share, signed, usd};
use super::grid::{Cell, Grid};
use super::ink::{Ink, Styled};
use super::notes::{about_comparison, caveats, panel_agreement, scale_warning};
use super::words::{Words, fill, words};
use crate::judge::Dimension;
use crate::results::{Comparison, Judged, Level, Manifest, MethodComparison, MethodSummary, Summary};
use crate::stats::Verdict;

/// Needs of each fact that the column of tokens per task stands for.
const NEEDS: u32 = 10;

/// The summary of a result set: methods by `overall` and six dimensions, then what contexts keep and cost, then what
/// must be said beside it. `width` is that of the terminal; 60 at least makes sense.
pub fn summary_table(summary: &Summary, manifest: &Manifest, width: usize) -> Styled {
    let words = words(manifest.design.locale);
    let mut out = Styled::default();
    let mut heading = vec![(Ink::Strong, summary.label.clone())];
    if let Some(comparison) = &summary.comparison {
        heading.push((Ink::Plain, format!("  {} {}", words.against, comparison.baseline)));
    }
    if summary.lexical {
        heading.push((Ink::Warning, format!("  {}", words.lexical)));
    }
    out.line(heading);
    if let Some(warning) = scale_warning(summary, words) {
        out.paragraph(Ink::Warning, &warning, width);
    }
    out.gap();
    out.append(scores(summary, words).lay_out(width));
    out.gap();
    out.append(economy(summary, words).lay_out(width));
    out.gap();
    out.paragraph(Ink::Dim, words.intervals, width);
    if summary.comparison.is_some() {
        out.paragraph(Ink::Dim, words.margin, width);
    }
    if let Some(agreement) = panel_agreement(summary, words) {
        out.paragraph(Ink::Dim, &agreement, width);
    }
    let offline = manifest.caveats.offline.then(|| words.offline.to_owned());
    for note in offline.into_iter().chain(caveats(summary, manifest, words)) {
        out.paragraph(Ink::Warning, &note, width);
    }
    out
}

fn scores(summary: &Summary, words: &Words) -> Grid {
    let mut head = vec![words.method.to_owned(), words.overall.to_owned()];
    head.extend(Dimension::ALL.map(|dimension| dimension.label(words.locale).to_owned()));
    let row = |(name, method): (&str, &MethodSummary)| -> Vec<Cell> {
        let compared = summary.comparison.as_ref().and_then(|comparison| comparison.methods.get(name));
        let mut row = vec![vec![(Ink::Strong, name.to_owned())]];
        row.push(level_cell(Some(&method.overall), compared.and_then(|c| c.overall.as_ref())));
        row.extend(Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            level_cell(method.dimensions.get(dimension.name()), judged)
        }));
        row
    };
    Grid { head, rows: summary.methods.iter().map(row).collect() }
}

/// A level above its interval, with the mark of its verdict.
fn level_cell(level: Option<&Level>, judged: Option<&Judged>) -> Cell {
    let value = score(level.and_then(|level| level.median));
    let interval = range(level.and_then(|level| level.ci95));
    vec![(ink(judged), format!("{}{value}", mark(judged))), (Ink::Dim, interval)]
}

fn ink(judged: Option<&Judged>) -> Ink {
    match judged.map(|judged| judged.verdict) {
        Some(Verdict::Improved) => Ink::Good,
        Some(Verdict::Regressed) => Ink::Bad,
        Some(Verdict::NoEvidence) | None => Ink::Plain,
    }
}

fn economy(summary: &Summary, words: &Words) -> Grid {
    let mut head = vec![
        words.method,
        words.context_tokens,
        words.removed,
        words.survival,
        words.retention,
        words.tokens_per_task,
        words.cost,
        words.failed,
    ];
    let lacks = lacks_cells(summary);
    head.extend(lacks.then_some(words.missing));
    let row = |(name, method): (&str, &MethodSummary)| -> Vec<Cell> {
        let economy = &method.economy;
        let plain = |text: String| vec![(Ink::Plain, text)];
        let lack = |cells: u64| match cells {
            0 => vec![(Ink::Dim, "0".to_owned())],
            _ => vec![(Ink::Bad, grouped(cells))],
        };
        let mut row = vec![
            vec![(Ink::Strong, name.to_owned())],
            plain(count(economy.context_tokens)),
            plain(share(economy.compression_ratio)),
            plain(share(economy.fact_survival)),
            plain(ratio(method.retention.value)),
            plain(count(economy.tokens_per_task.get(&NEEDS).copied())),
            plain(usd(cost(method))),
            lack(method.cells.failed),
        ];
        row.extend(lacks.then(|| lack(method.cells.missing)));
        row
    };
    Grid { head: head.into_iter().map(str::to_owned).collect(), rows: summary.methods.iter().map(row).collect() }
}

/// Whether cells are missing that did not fail: held back, or never reached.
pub(super) fn lacks_cells(summary: &Summary) -> bool {
    summary.methods.iter().any(|(_, method)| method.cells.missing > 0)
}

/// What all distinct actions of a method cost; `None` if one price is unknown.
pub(super) fn cost(method: &MethodSummary) -> Option<f64> {
    let stages: Option<Vec<f64>> = method.economy.usd.values().copied().collect();
    stages.filter(|stages| !stages.is_empty()).map(|stages| stages.iter().sum())
}

/// A comparison: each changed method's differences with intervals and verdicts, and what changed.
pub fn comparison_table(comparison: &Comparison, locale: crate::locale::Locale, width: usize) -> Styled {
    let words = words(locale);
    let mut out = Styled::default();
    if let Some(primary) = &comparison.primary {
        let name = fill(words.primary, &[&comparison.tested.to_string()]);
        out.line([(Ink::Strong, name), (Ink::Plain, format!("  {} {}", words.against, comparison.baseline))]);
        out.append(difference_grid([(words.overall.to_owned(), primary)].into_iter(), words).lay_out(width));
        out.gap();
    }
    for (method, compared) in comparison.methods.iter() {
        if compared.fixtures.tested() > 0 {
            method_comparison(&mut out, (method, compared), &comparison.baseline, words, width);
        }
    }
    if let Some(unchanged) = unchanged(comparison, words) {
        out.paragraph(Ink::Plain, &unchanged, width);
    }
    out.paragraph(Ink::Dim, words.margin, width);
    for note in about_comparison(comparison, words) {
        out.paragraph(Ink::Warning, &note, width);
    }
    out
}

fn method_comparison(
    out: &mut Styled,
    (method, compared): (&str, &MethodComparison),
    baseline: &str,
    words: &Words,
    width: usize,
) {
    let mut heading = vec![(Ink::Strong, method.to_owned()), (Ink::Plain, format!("  {} {baseline}", words.against))];
    if compared.against != method {
        heading.push((Ink::Plain, format!(" · {}", compared.against)));
    }
    out.line(heading);
    if compared.is_identical() {
        out.paragraph(Ink::Plain, words.identical, width);
    } else {
        let overall = compared.overall.iter().map(|judged| (words.overall.to_owned(), judged));
        let rows = overall.chain(compared.dimensions.iter().map(|(id, judged)| (words.dimension_label(id), judged)));
        out.append(difference_grid(rows, words).lay_out(width));
    }
    for note in what_changed(compared, words) {
        out.paragraph(Ink::Plain, &note, width);
    }
    out.gap();
}

fn difference_grid<'c>(rows: impl Iterator<Item = (String, &'c Judged)>, words: &Words) -> Grid {
    let head = [words.dimension, words.difference, words.interval, "p", words.detectable, words.verdict];
    Grid {
        head: head.map(str::to_owned).into(),
        rows: rows.map(|(name, judged)| difference_row(name, judged, words)).collect(),
    }
}

fn difference_row(name: String, judged: &Judged, words: &Words) -> Vec<Cell> {
    let p = judged.p_adjusted.map_or_else(|| "–".to_owned(), probability);
    let verdict = format!("{} {}", mark(Some(judged)), words.verdict(judged.verdict, judged.reason));
    vec![
        vec![(Ink::Plain, name)],
        vec![(ink(Some(judged)), signed(judged.difference))],
        vec![(Ink::Dim, brackets(judged.ci95))],
        vec![(Ink::Dim, p)],
        vec![(Ink::Dim, detectable(judged))],
        vec![(ink(Some(judged)), verdict.trim().to_owned())],
    ]
}

/// The smallest detectable difference, beside no evidence alone: next to a verdict it would read as a bound on it.
pub(super) fn detectable(judged: &Judged) -> String {
    score(judged.mdd.filter(|_| judged.verdict == Verdict::NoEvidence))
}

/// Figures that others published: name, overall, six dimensions, share of tokens removed.
const PUBLISHED: [(&str, [f64; 7], f64); 3] = [
    ("anchored iterative (Factory)", [3.70, 4.04, 4.01, 2.45, 4.44, 3.80, 4.99], 0.986),
    ("regenerative (Anthropic)", [3.44, 3.74, 3.56, 2.33, 4.37, 3.67, 4.95], 0.987),
    ("opaque (OpenAI)", [3.35, 3.43, 3.64, 2.19, 4.37, 3.77, 4.92], 0.993),
];

/// The published reference: for orientation, clearly apart from what was measured.
pub fn reference_table(locale: crate::locale::Locale, width: usize) -> Styled {
    let words = words(locale);
    let mut head = vec![words.method.to_owned(), words.overall.to_owned()];
    head.extend(Dimension::ALL.map(|dimension| dimension.label(locale).to_owned()));
    head.push(words.removed.to_owned());
    let row = |(name, scores, removed): &(&str, [f64; 7], f64)| -> Vec<Cell> {
        let mut row = vec![vec![(Ink::Plain, (*name).to_owned())]];
        row.extend(scores.map(|value| vec![(Ink::Plain, score(Some(value)))]));
        row.push(vec![(Ink::Plain, share(Some(*removed)))]);
        row
    };
    let mut out = Styled::default();
    out.line([(Ink::Warning, format!("── {} ──", words.reference_title))]);
    out.append(Grid { head, rows: PUBLISHED.iter().map(row).collect() }.lay_out(width));
    out.paragraph(Ink::Dim, words.reference_note, width);
    out
}

/// The published figures, for other kinds of reports: name, overall and the six dimensions, share of tokens removed.
pub fn published() -> impl Iterator<Item = (&'static str, [f64; 7], f64)> {
    PUBLISHED.into_iter()
}
