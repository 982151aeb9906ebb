//! What statistics need of a row, its place, its grade and what was measured of its answer; and from grades to the scores of
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat_n;
use std::ops::Range;

use crate::action::ActionKey;
use crate::judge::{Criterion, Dimension};
use crate::measure::{AnswerWhenLost, ContextFacts, ContextShares, FactOutcome};
use crate::results::files::design::Design;
use crate::results::files::row::Row;
use stats::{self, MissingCounts};

/// Scores of the dimensions that were measured.
pub(crate) type ByDimension = BTreeMap<Dimension, f64>;

/// The place of a dimension in lists by dimension. [`Dimension::ALL`] has the order of declaration.
pub(crate) fn place(dimension: Dimension) -> usize {
    dimension as usize
}

/// The items whose key is `wanted`, in a list sorted by `key`.
pub(crate) fn equal_range<T, K: Ord>(sorted: &[T], key: impl Fn(&T) -> K, wanted: K) -> &[T] {
    let from = sorted.partition_point(|item| key(item) < wanted);
    let until = sorted.partition_point(|item| key(item) <= wanted);
    sorted.get(from..until).unwrap_or_default()
}

/// The place of an answer: variant, probe, run, number of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnswerAt {
    pub variant: usize,
    pub probe: usize,
    pub run: u32,
    pub answer_n: u32,
}

impl AnswerAt {
    /// The variant, probe and run that it belongs to.
    pub(crate) fn cell(&self) -> (usize, usize, u32) {
        (self.variant, self.probe, self.run)
    }
}

/// One grade of one answer by one judge.
#[derive(Clone, Debug)]
pub(crate) struct Grade {
    pub at: AnswerAt,
    pub judge_n: u32,
    pub judge: usize,
    pub dimensions: ByDimension,
    /// Place of each criterion in the rubric, and its points.
    pub points: Vec<(u16, u8)>,
    /// Compression, answer, judgement.
    pub keys: [ActionKey; 3],
    /// The place of its row among all rows.
    pub row: usize,
}

impl Grade {
    /// Whether both have the same points of each criterion, and the same dimensions.
    pub(crate) fn is_graded_like(&self, other: &Grade) -> bool {
        self.dimensions == other.dimensions
            && (self.points == other.points || self.sorted_points() == other.sorted_points())
    }

    fn sorted_points(&self) -> Vec<(u16, u8)> {
        let mut points = self.points.clone();
        points.sort_unstable();
        points
    }
}

/// What was measured of one answer without a judge.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredAnswer {
    pub at: AnswerAt,
    pub facts: Vec<FactOutcome>,
    pub when_lost: Option<AnswerWhenLost>,
    pub heading: Option<String>,
    pub survival: Option<f64>,
    /// The survival in the summary alone, if the context has more than a summary.
    pub summary_survival: Option<f64>,
    pub in_context: Option<ContextShares>,
    pub is_constraint: bool,
    pub context_tokens: Option<u64>,
    pub replaced_tokens: Option<u64>,
    pub ratio: Option<f64>,
    pub fabricated: Option<bool>,
    pub stale: u64,
    pub truncated: bool,
    /// Its searches, if the answerer could search.
    pub reach: Option<Box<Reach>>,
}

/// The searches of an open-book answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub searches: u64,
    /// Tokens of what was returned.
    pub tokens: u64,
    pub gold_found: Option<bool>,
}

impl MeasuredAnswer {
    pub(crate) fn from_row(at: AnswerAt, row: &Row) -> MeasuredAnswer {
        MeasuredAnswer {
            at,
            facts: row.facts.clone(),
            when_lost: row.answer_when_lost,
            heading: row.heading.clone(),
            survival: row.fact_survival,
            summary_survival: row.summary_survival,
            in_context: row.context_facts.as_ref().map(ContextFacts::shares),
            is_constraint: row.is_constraint,
            context_tokens: row.context_tokens,
            replaced_tokens: row.replaced_tokens,
            ratio: row.compression_ratio,
            fabricated: row.fabricated,
            stale: row.stale_facts.len() as u64,
            truncated: row.truncated,
            reach: row.open_book.as_ref().map(|open| {
                Box::new(Reach {
                    searches: open.searches.len() as u64,
                    tokens: open.tokens,
                    gold_found: open.gold_found,
                })
            }),
        }
    }
}

/// The scores of one answer in one repetition of the judgement, by dimension: the medians of its panel.
#[derive(Clone, Debug)]
pub(crate) struct MergedScores {
    pub at: AnswerAt,
    pub dimensions: ByDimension,
}

/// All scores of a result set, ready to be averaged.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    /// The scores of each answer and judgement, with panels merged; sorted by place.
    graded: Vec<MergedScores>,
    /// By variant, probe and dimension, where anything was measured: the score of each run, which is the mean over its
    /// answers and judgements.
    by_run: BTreeMap<(usize, usize, Dimension), Vec<Option<f64>>>,
    /// How many runs there should be.
    runs: usize,
    /// By variant and probe, how many runs did work of their own, where anything was judged.
    distinct_runs: BTreeMap<(usize, usize), usize>,
    /// The dimensions that each probe measures for any variant.
    measures: BTreeSet<(usize, Dimension)>,
    /// By probe, its fixture; the probes of a fixture are side by side.
    fixture_of: Vec<usize>,
    /// The judges that graded anything, by their places in the design.
    judges: BTreeSet<usize>,
}

impl Scores {
    /// From grades sorted by place.
    pub(crate) fn new(design: &Design, grades: &[Grade]) -> Scores {
        let judges: BTreeSet<usize> = grades.iter().map(|grade| grade.judge).collect();
        let graded = merge_panels(grades, judges.len(), &design.rubric.criteria);
        let fixtures = design.fixtures.iter().enumerate();
        let fixture_of: Vec<usize> = fixtures
            .flat_map(|(ix, fixture)| repeat_n(ix, fixture.probes.len()))
            .collect();
        let runs = design.runs.compress as usize;
        let by_run = by_run(&graded, runs);
        Scores {
            measures: (by_run.keys())
                .map(|(_, probe, dimension)| (*probe, *dimension))
                .collect(),
            by_run,
            runs,
            graded,
            distinct_runs: distinct_runs(grades, judges.len()),
            fixture_of,
            judges,
        }
    }

    /// The judges that graded anything, by their places in the design: the panel.
    pub(crate) fn judges(&self) -> &BTreeSet<usize> {
        &self.judges
    }

    /// How many runs there should be.
    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// The probes of a variant that were judged at least once.
    pub(crate) fn judged(&self, variant: usize) -> BTreeSet<usize> {
        let own = self.distinct_runs.range((variant, 0)..(variant + 1, 0));
        own.map(|((_, probe), _)| *probe).collect()
    }

    /// How many runs of a probe did work of their own; `None` where nothing was judged.
    pub(crate) fn distinct_runs(&self, variant: usize, probe: usize) -> Option<usize> {
        self.distinct_runs.get(&(variant, probe)).copied()
    }

    pub(crate) fn fixture_of(&self, probe: usize) -> Option<usize> {
        self.fixture_of.get(probe).copied()
    }

    /// All probes of a fixture.
    pub(crate) fn span(&self, fixture: usize) -> Range<usize> {
        self.fixture_of.partition_point(|of| *of < fixture)
            ..self.fixture_of.partition_point(|of| *of <= fixture)
    }

    /// Whether a probe measures a dimension for any variant.
    pub(crate) fn measures(&self, probe: usize, dimension: Dimension) -> bool {
        self.measures.contains(&(probe, dimension))
    }

    /// The score of each run, `None` for a run without a score; empty where nothing was measured.
    pub(crate) fn by_run(
        &self,
        variant: usize,
        probe: usize,
        dimension: Dimension,
    ) -> &[Option<f64>] {
        let found = self.by_run.get(&(variant, probe, dimension));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// How many runs of a probe there should be, and how many of them have no score.
    pub(crate) fn gaps(&self, variant: usize, probe: usize, dimension: Dimension) -> MissingCounts {
        let scores = self.by_run(variant, probe, dimension);
        MissingCounts {
            cells: self.runs,
            missing: self.runs.saturating_sub(scores.iter().flatten().count()),
        }
    }

    /// The scores of each answer and judgement of a variant, with panels merged; sorted by place.
    pub(crate) fn graded(&self, variant: usize) -> &[MergedScores] {
        equal_range(&self.graded, |graded| graded.at.variant, variant)
    }
}

/// The grades of each answer and judgement that all judges of the panel gave. Where one of them failed, the answer has no
/// score: the median of the others would measure how strict they are.
fn whole_panels(grades: &[Grade], judges: usize) -> impl Iterator<Item = &[Grade]> {
    let panels = grades.chunk_by(|a, b| (a.at, a.judge_n) == (b.at, b.judge_n));
    panels.filter(move |panel| panel.len() >= judges)
}

/// Merges the grades of a panel into one: the median of each criterion, weighted as in the rubric.
fn merge_panels(grades: &[Grade], judges: usize, criteria: &[Criterion]) -> Vec<MergedScores> {
    let merged = whole_panels(grades, judges).filter_map(|panel| {
        let first = panel.first()?;
        let dimensions = if panel.len() == 1 {
            first.dimensions.clone()
        } else {
            weigh(panel, criteria)
        };
        Some(MergedScores {
            at: first.at,
            dimensions,
        })
    });
    let mut all = Vec::with_capacity(grades.len());
    all.extend(merged);
    all
}

fn weigh(panel: &[Grade], criteria: &[Criterion]) -> ByDimension {
    let mut by_criterion: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
    for (criterion, points) in panel.iter().flat_map(|grade| &grade.points) {
        let of_criterion = by_criterion.entry(*criterion).or_default();
        of_criterion.push(f64::from(*points));
    }
    let medians = by_criterion.iter().filter_map(|(criterion, points)| {
        let known = criteria.get(usize::from(*criterion))?;
        Some((known, stats::median(points)?))
    });
    let medians: Vec<(&Criterion, f64)> = medians.collect();
    let dimensions = Dimension::ALL.into_iter().filter_map(|dimension| {
        let criteria = medians.iter();
        let criteria = criteria.filter(|(criterion, _)| criterion.dimension == dimension);
        let weights: f64 = criteria.clone().map(|(one, _)| one.weight).sum();
        let total: f64 = criteria.map(|(one, median)| one.weight * median).sum();
        (weights > 0.0).then(|| (dimension, total / weights))
    });
    dimensions.collect()
}

/// By variant, probe and dimension, the scores of so many runs.
fn by_run(
    graded: &[MergedScores],
    runs: usize,
) -> BTreeMap<(usize, usize, Dimension), Vec<Option<f64>>> {
    let mut scores: BTreeMap<_, Vec<Option<f64>>> = BTreeMap::new();
    for cell in graded.chunk_by(|a, b| a.at.cell() == b.at.cell()) {
        let Some(at) = cell.first().map(|first| first.at) else {
            continue;
        };
        for dimension in Dimension::ALL {
            let found = cell.iter();
            let found = found.filter_map(|graded| graded.dimensions.get(&dimension).copied());
            let Some(mean) = stats::mean_of(found) else {
                continue;
            };
            let by_run = scores.entry((at.variant, at.probe, dimension));
            let by_run = by_run.or_insert_with(|| vec![None; runs]);
            if let Some(slot) = by_run.get_mut((at.run as usize).wrapping_sub(1)) {
                *slot = Some(mean);
            }
        }
    }
    scores
}

/// By variant and probe, how many runs with a score were made from different actions.
fn distinct_runs(grades: &[Grade], judges: usize) -> BTreeMap<(usize, usize), usize> {
    let mut counts = BTreeMap::new();
    for runs in grades.chunk_by(|a, b| (a.at.variant, a.at.probe) == (b.at.variant, b.at.probe)) {
        let by_run = runs.chunk_by(|a, b| a.at.run == b.at.run);
        let scored = by_run.filter(|run| whole_panels(run, judges).next().is_some());
        let distinct: BTreeSet<Vec<[ActionKey; 3]>> = scored
            .map(|run| run.iter().map(|grade| grade.keys).collect())
            .collect();
        if let Some(first) = runs.first().filter(|_| !distinct.is_empty()) {
            counts.insert((first.at.variant, first.at.probe), distinct.len());
        }
    }
    counts
}
