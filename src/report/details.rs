//! The sections of a report below its first screen: every figure and every note. `--all`, `report.md` and the page show
//! the same ones.

use super::comparison_notes::{differences, method_changes, notes, unchanged};
use super::document::{Block, Section};
use super::figures::{
    brackets, count, level, mark, probability, range, score, share, share_cell, signed, text_table,
    usd,
};
use super::notes::archive_sentence;
use super::planted;
use super::styled::{TableCell, TextStyle, TextTable, UNKNOWN, known, named_row, plain_cell};
use super::translation::{Translation, fill, translation};
use crate::judge::Dimension;
use crate::results::{
    Comparison, Design, FigureTableId, Manifest, MethodComparison, MethodSummary, ModelInfo,
    OpenBookSummary, ScoreEstimate, Summary, WorstProbe,
};
use base::locale::Locale;
use base::text::{grouped, one_line, shortened};
use stats::{DifferenceTest, Verdict};

/// The sections that have something to show.
pub fn details(summary: &Summary, manifest: &Manifest) -> Vec<Section> {
    let tr = translation(manifest.locale());
    let is_answered = manifest.design.has_answers();
    let answered = [
        scores(summary, tr),
        economy(summary, tr),
        without_facts(summary, tr),
    ];
    let sections = summary.comparison.iter().map(|found| changes(found, tr));
    let sections = sections
        .chain(answered.into_iter().filter(|_| is_answered))
        .chain([
            compressions(summary, tr),
            in_context(summary, tr),
            open_book(summary, tr),
            planted::items(summary, tr),
            planted::groups(summary, tr),
            planted::states(summary, tr),
            cycles(summary, tr),
            lost_headings(summary, tr),
            worst_probes(&summary.worst, tr),
            spending(manifest, tr),
            all_notes(summary, manifest, tr),
        ]);
    sections.flatten().collect()
}

/// The label of a set, and of what it is compared with.
pub(super) fn title(summary: &Summary, tr: &Translation) -> String {
    let against = summary.comparison.as_ref();
    let against = against.map(|found| format!(" {} {}", tr.against, found.baseline));
    format!("{}{}", summary.label, against.unwrap_or_default())
}

/// What was measured, and by which models, as names and values.
pub(super) fn facts(
    summary: &Summary,
    design: &Design,
    tr: &Translation,
) -> Vec<(&'static str, String)> {
    let judged: u64 = (summary.methods.values())
        .map(|method| method.cells.judged)
        .sum();
    let models = |models: &[ModelInfo]| {
        let names = models.iter().map(|model| match model.lexical {
            true => tr.lexical.to_owned(),
            false => format!("`{}`", model.model),
        });
        names.collect::<Vec<_>>().join(tr.comma)
    };
    let mut facts = vec![
        (tr.fixtures, design.fixtures.len().to_string()),
        (tr.runs, design.runs.compress.to_string()),
    ];
    if design.has_answers() {
        facts.push((tr.cells, grouped(judged)));
        facts.push((tr.answered_by, models(&design.answerers)));
        facts.push((tr.judged_by, models(&design.judges)));
    }
    facts
}

/// The section on what a run asked and paid. Another run with equal results has another.
pub(super) const SPENDING: &str = "spending";

/// A table with a row for each method that has a `part`.
fn method_table<'s, T: 's>(
    summary: &'s Summary,
    columns: impl IntoIterator<Item = String>,
    part: impl Fn(&'s MethodSummary) -> Option<T>,
    cells: impl Fn(T) -> Vec<TableCell>,
    tr: &Translation,
) -> TextTable {
    let rows = summary.methods.iter().filter_map(|(name, method)| {
        Some(named_row(
            tr.method_label(name, method.kept.as_deref()),
            cells(part(method)?),
        ))
    });
    let header = std::iter::once(tr.method.to_owned()).chain(columns);
    TextTable::new(header, rows)
}

// --- a comparison ---

/// The differences of each changed method with intervals and verdicts, and what changed.
fn changes(comparison: &Comparison, tr: &Translation) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Some(primary) = &comparison.primary {
        let name = fill(tr.primary, &[&comparison.tested]);
        let overall = [(tr.overall.to_owned(), primary)];
        blocks.push(difference_table(&name, overall, tr));
    }
    for (method, compared) in comparison.methods.iter() {
        if compared.is_changed() {
            blocks.extend(method_comparison(method, compared, tr));
        }
    }
    blocks.extend(unchanged(comparison, tr).map(Block::plain));
    blocks.push(Block::dim(tr.margin));
    let title = format!("{} · {} {}", tr.changes, tr.against, comparison.baseline);
    Section::new("changes-in-detail", title, blocks)
}

fn method_comparison(method: &str, compared: &MethodComparison, tr: &Translation) -> [Block; 2] {
    let name = match compared.against == method {
        true => method.to_owned(),
        false => format!("{method} {} {}", tr.against, compared.against),
    };
    let figures = difference_table(&name, differences(compared, tr), tr);
    [figures, Block::List(method_changes(compared, tr))]
}

/// The differences of a method, whose name is above those of the dimensions.
fn difference_table<'c>(
    name: &str,
    rows: impl IntoIterator<Item = (String, &'c DifferenceTest)>,
    tr: &Translation,
) -> Block {
    let columns = [tr.difference, tr.interval, "p", tr.detectable, tr.verdict];
    let rows = rows.into_iter();
    let rows = rows.map(|(name, judged)| difference_row(name, judged, tr));
    let header = std::iter::once(name).chain(columns);
    Block::Table(TextTable::new(header, rows))
}

fn difference_row(name: String, judged: &DifferenceTest, tr: &Translation) -> Vec<TableCell> {
    let p = known(judged.p_adjusted, probability);
    let verdict = format!("{} {}", mark(Some(judged)), tr.verdict(judged));
    // Next to a verdict, readers would take the smallest detectable change for a bound.
    let detectable = judged.mdd.filter(|_| judged.verdict == Verdict::NoEvidence);
    let style = TextStyle::from_verdict(judged.verdict);
    let cells = [
        (style, signed(judged.difference)),
        (TextStyle::Dim, brackets(judged.ci95)),
        (TextStyle::Dim, p),
        (TextStyle::Dim, score(detectable)),
        (style, verdict.trim().to_owned()),
    ];
    let cells = cells.map(|cell| vec![cell]);
    std::iter::once(plain_cell(name)).chain(cells).collect()
}

// --- scores and costs ---

fn scores(summary: &Summary, tr: &Translation) -> Option<Section> {
    let rows = summary.methods.iter().map(|(name, method)| {
        let compared = (summary.comparison.as_ref()).and_then(|found| found.methods.get(name));
        let overall = compared.and_then(|compared| compared.overall.as_ref());
        let dimensions = Dimension::ALL.map(|dimension| {
            let judged = compared.and_then(|compared| compared.dimensions.get(dimension.name()));
            level_cell(method.dimensions.get(dimension.name()), judged)
        });
        let overall = [level_cell(Some(&method.overall), overall)].into_iter();
        named_row(
            tr.method_label(name, method.kept.as_deref()),
            overall.chain(dimensions),
        )
    });
    let table = TextTable::new(score_header(tr), rows);
    let lead = Block::dim(tr.intervals);
    Section::new("scores", tr.by_dimension, [Block::Table(table), lead])
}

fn score_header(tr: &Translation) -> impl Iterator<Item = &'static str> {
    let dimensions = Dimension::ALL.map(|dimension| dimension.label(tr.locale));
    [tr.method, tr.overall].into_iter().chain(dimensions)
}

/// A level with the mark of its verdict, above its interval if it has one.
fn level_cell(level: Option<&ScoreEstimate>, judged: Option<&DifferenceTest>) -> TableCell {
    let value = score(level.and_then(|level| level.median));
    let style = judged.map_or(TextStyle::Plain, |judged| {
        TextStyle::from_verdict(judged.verdict)
    });
    let interval = level.and_then(|level| level.ci95);
    let interval = interval.map(|interval| (TextStyle::Dim, range(Some(interval))));
    std::iter::once((style, format!("{}{value}", mark(judged))))
        .chain(interval)
        .collect()
}

fn economy(summary: &Summary, tr: &Translation) -> Option<Section> {
    let table = text_table(FigureTableId::Economy, summary, tr).without_void()?;
    let methods = summary.methods.values();
    let mut questions = methods.filter_map(|method| method.economy.tokens_per_question);
    let lead = questions.next().map(|_| Block::dim(tr.question_formula));
    let blocks = [Block::Table(table), Block::dim(tr.facts_kept_note)];
    Section::new("economy", tr.compression, blocks.into_iter().chain(lead))
}

/// What the answers do whose context lost every expected fact of the probe.
fn without_facts(summary: &Summary, tr: &Translation) -> Option<Section> {
    let columns = [tr.overclaims, tr.admissions, tr.vague, tr.right_anyway].map(str::to_owned);
    let table = method_table(
        summary,
        columns,
        |method| (method.economy.overclaim).filter(|found| found.other_value.of > 0),
        |found| {
            let shares = [
                &found.other_value,
                &found.admission,
                &found.vague,
                &found.right,
            ];
            shares.map(|found| share_cell(Some(found), tr)).into()
        },
        tr,
    );
    Section::new("without-facts", tr.without_facts, [Block::Table(table)])
}

/// What one compression costs; `None` if there are grades: other tables have its figures then.
fn compressions(summary: &Summary, tr: &Translation) -> Option<Section> {
    let mut cells = summary.methods.values().map(|method| &method.cells);
    let is_graded = cells.any(|cells| cells.judged + cells.not_compressed > 0);
    let table = text_table(FigureTableId::Compressions, summary, tr).without_void()?;
    let blocks = [Block::Table(table), Block::dim(tr.compressions_note)];
    Section::new("compressions", tr.compressions_title, blocks).filter(|_| !is_graded)
}

/// How contexts state the facts of probes, and what they name that their transcripts do not have.
fn in_context(summary: &Summary, tr: &Translation) -> Option<Section> {
    let table = text_table(FigureTableId::Contexts, summary, tr).without_void()?;
    let blocks = [Block::Table(table), Block::dim(tr.in_context_note)];
    Section::new("in-context", tr.in_context_title, blocks)
}

/// Open book next to closed book.
fn open_book(summary: &Summary, tr: &Translation) -> Option<Section> {
    let columns = [
        tr.closed_book,
        tr.open_book,
        tr.gain,
        tr.searches,
        tr.search_tokens,
        tr.gold_found,
        tr.lost_searched,
        tr.kept_searched,
    ];
    let table = method_table(
        summary,
        columns.map(str::to_owned),
        |method| method.open_book.as_ref(),
        |open| open_book_figures(open, tr),
        tr,
    );
    let sentence = archive_sentence(summary, tr).map(Block::plain);
    let blocks = [Block::Table(table), Block::dim(tr.open_book_note)];
    Section::new(
        "open-book",
        tr.open_book_title,
        blocks.into_iter().chain(sentence),
    )
}

/// The row of a method in the table of open book.
fn open_book_figures(open: &OpenBookSummary, tr: &Translation) -> Vec<TableCell> {
    let counts = open.answers;
    let interval = open
        .gain_ci95
        .map(|ci| (TextStyle::Dim, brackets(Some(ci))));
    let gain = (TextStyle::Plain, known(open.gain, signed));
    let gain = std::iter::once(gain).chain(interval);
    let searches = known(open.searches, |number| format!("{number:.1}"));
    let searched = [
        [counts.lost_searched, counts.lost_not_searched],
        [counts.kept_searched, counts.kept_not_searched],
    ];
    let [lost, kept] = searched.map(|[some, others]| plain_cell(format!("{some}/{others}")));
    vec![
        plain_cell(level(&open.closed)),
        plain_cell(level(&open.open)),
        gain.collect(),
        plain_cell(searches),
        plain_cell(count(open.tokens)),
        share_cell(Some(&open.gold_found), tr),
        lost,
        kept,
    ]
}

/// Scores and facts kept after repeated compression: later points have other probes, so methods are compared, not points.
fn cycles(summary: &Summary, tr: &Translation) -> Option<Section> {
    let all = summary.methods.values().map(|method| method.by_cycle.len());
    let most = all.max().filter(|most| *most > 1)?;
    let columns = (1..=most).map(|point| fill(tr.point, &[&point]));
    let table = method_table(
        summary,
        columns,
        |method| Some(&method.by_cycle),
        |cycles| {
            let cell = |at: usize| match cycles.get(at) {
                None => plain_cell(UNKNOWN.to_owned()),
                Some(cycle) => vec![
                    (TextStyle::Plain, score(cycle.overall.median)),
                    (TextStyle::Dim, share(cycle.fact_survival)),
                ],
            };
            (0..most).map(cell).collect()
        },
        tr,
    );
    let blocks = [Block::Table(table), Block::dim(tr.cycles_note)];
    Section::new("cycles", tr.cycles, blocks)
}

/// Actions by stage; tokens and money are known for the whole run only.
fn spending(manifest: &Manifest, tr: &Translation) -> Option<Section> {
    let header = [
        tr.stage,
        tr.actions,
        tr.cached,
        tr.input_tokens,
        tr.output_tokens,
        tr.cost,
    ];
    let stages = manifest.stages.iter();
    let stages = stages.filter(|(_, counts)| counts.actions > 0);
    let rows = stages.map(|(stage, counts)| {
        let cells = [counts.actions, counts.cached].map(|number| plain_cell(grouped(number)));
        let unknown = [UNKNOWN; 3].map(|text| plain_cell(text.to_owned()));
        std::iter::once(plain_cell(stage.name().to_owned()))
            .chain(cells)
            .chain(unknown)
            .collect()
    });
    let sum = |of: fn(&crate::results::StageCounts) -> u64| -> String {
        grouped(manifest.stages.values().map(of).sum())
    };
    let tokens = |tokens: Option<u64>| count(tokens.map(|tokens| tokens as f64));
    let all = [
        tr.in_all.to_owned(),
        sum(|counts| counts.actions),
        sum(|counts| counts.cached),
        tokens(manifest.usage.input.map(|tokens| tokens.0)),
        tokens(manifest.usage.output.map(|tokens| tokens.0)),
        usd(manifest.usd.map(|usd| usd.0)),
    ];
    let table = TextTable::new(header, rows.chain([all.map(plain_cell).into()]));
    let offline = manifest.caveats.offline.then(|| Block::dim(tr.offline));
    let blocks = std::iter::once(Block::Table(table)).chain(offline);
    Section::new(SPENDING, tr.spending, blocks)
}

// --- places and notes ---

/// The heading of each method's prompt whose facts survive least: what to look at first when the prompt is edited.
fn lost_headings(summary: &Summary, tr: &Translation) -> Option<Section> {
    let methods = summary.methods.iter();
    let methods = methods.filter(|(_, method)| !method.is_anchor());
    let texts = methods.filter_map(|(name, method)| {
        let headings = method.economy.survival_by_heading.iter();
        let lost = headings.filter_map(|(heading, kept)| Some((heading, kept, kept.share?)));
        let worst = lost.reduce(|worst, next| if next.2 < worst.2 { next } else { worst });
        let (heading, kept, part) = worst.filter(|(_, kept, _)| kept.count < kept.of)?;
        let (part, lost) = (share(Some(1.0 - part)), kept.of - kept.count);
        Some(fill(
            tr.lost_heading,
            &[name, heading, &part, &lost, &kept.of],
        ))
    });
    let texts = Block::List(texts.collect());
    Section::new("lost-headings", tr.lost_headings, [texts])
}

/// The maximum number of worst probes, and of facts that are shown of one.
const MAX_WORST: usize = 5;
const MAX_FACTS: usize = 4;
/// The maximum length of a text that a bank or a model wrote, in characters.
const MAX_EXCERPT: usize = 240;

fn worst_probes(worst: &[WorstProbe], tr: &Translation) -> Option<Section> {
    let excerpt = |text: &str| shortened(&one_line(text), MAX_EXCERPT);
    let texts = worst.iter().take(MAX_WORST).map(|probe| {
        let (method, place, score) = (&probe.method, &probe.at, probe.score);
        let mut text = format!(
            "{score:.2} {method} · {place}: {}",
            excerpt(&probe.question)
        );
        if let Some((criterion, points)) = &probe.criterion {
            let reasoning = excerpt(&probe.reasoning);
            text.push_str(&format!(" · `{criterion}` {points}/5: {reasoning}"));
        }
        if !probe.lacking.is_empty() {
            let lacking = probe.lacking.iter().take(MAX_FACTS).cloned();
            let lacking = lacking.collect::<Vec<_>>().join(tr.comma);
            text.push_str(&format!(" · {}: {lacking}", tr.absent_from_answer));
        }
        text
    });
    Section::new("worst", tr.worst, [Block::List(texts.collect())])
}

fn all_notes(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Option<Section> {
    let notes = notes(summary, manifest, tr);
    let title = format!("{} ({})", tr.notes, notes.len());
    Section::new("notes", title, [Block::List(notes)])
}

// --- published scores ---

/// A method that others measured on other sessions: its names in English and in Chinese, its overall, its scores by
/// dimension, and the share of tokens that it removed.
type PublishedMethod = ([&'static str; 2], f64, [f64; Dimension::ALL.len()], f64);

const PUBLISHED: [PublishedMethod; 3] = [
    (
        ["anchored iterative (Factory)", "锚定迭代（Factory）"],
        3.70,
        [4.04, 4.01, 2.45, 4.44, 3.80, 4.99],
        0.986,
    ),
    (
        ["regenerative (Anthropic)", "再生摘要（Anthropic）"],
        3.44,
        [3.74, 3.56, 2.33, 4.37, 3.67, 4.95],
        0.987,
    ),
    (
        ["opaque (OpenAI)", "不透明压缩（OpenAI）"],
        3.35,
        [3.43, 3.64, 2.19, 4.37, 3.77, 4.92],
        0.993,
    ),
];

/// The published scores, for orientation: they cannot be compared with what was measured.
pub fn reference(locale: Locale) -> Vec<Section> {
    let tr = translation(locale);
    let rows = PUBLISHED.map(|([english, chinese], overall, dimensions, removed)| {
        let name = tr.pick(english, chinese).to_owned();
        let scores = [overall].into_iter().chain(dimensions);
        std::iter::once(name)
            .chain(scores.map(|value| score(Some(value))))
            .chain([share(Some(removed))])
            .map(plain_cell)
            .collect()
    });
    let table = TextTable::new(score_header(tr).chain([tr.removed]), rows);
    let blocks = [Block::Table(table), Block::dim(tr.reference_note)];
    let section = Section::new("reference", tr.reference_title, blocks);
    section.into_iter().collect()
}
