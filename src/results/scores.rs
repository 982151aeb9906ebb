//! From grades to the numbers of runs and fixtures.

use std::collections::{BTreeMap, BTreeSet};

use super::design::CriterionWeight;
use super::set::{AnswerAt, ByDimension, Grade, ResultSet};
use crate::action::Digest;
use crate::judge::Dimension;
use crate::stats::{self, RunValues};

/// Probes by their place in the result set.
pub(super) type Subset = BTreeSet<usize>;

/// One answer's score in every dimension, at one number of the judgement: the median of its panel.
#[derive(Clone, Debug)]
pub(super) struct Graded {
    pub at: AnswerAt,
    pub dimensions: ByDimension,
}

/// Scores of one arm on one probe: by dimension, by run.
type Grid = [Vec<Option<f64>>; Dimension::ALL.len()];

/// All scores of a result set, ready to be averaged.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    /// Each answer and judgement, panels merged; sorted by place.
    pub graded: Vec<Graded>,
    runs: usize,
    grids: BTreeMap<(usize, usize), Grid>,
    /// By arm and probe: how many runs did work of their own.
    distinct_runs: BTreeMap<(usize, usize), usize>,
    fixture_of: Vec<usize>,
    /// The dimensions that a probe measures, whoever answers.
    measures: BTreeMap<usize, BTreeSet<Dimension>>,
}

impl Scores {
    pub(super) fn of(set: &ResultSet) -> Scores {
        let graded = merge_panels(&set.grades, &set.design().rubric.criteria);
        let runs = set.design().runs.compress as usize;
        let mut scores = Scores {
            grids: grids(&graded, runs),
            graded,
            runs,
            distinct_runs: distinct_runs(&set.grades),
            fixture_of: set.probes.iter().map(|probe| probe.fixture).collect(),
            measures: BTreeMap::new(),
        };
        for ((_, probe), grid) in &scores.grids {
            let measured =
                Dimension::ALL.into_iter().zip(grid).filter(|(_, by_run)| by_run.iter().any(Option::is_some));
            scores.measures.entry(*probe).or_default().extend(measured.map(|(dimension, _)| dimension));
        }
        scores
    }

    /// The probes of an arm that were judged at least once.
    pub(super) fn judged(&self, arm: usize) -> Subset {
        self.grids.range((arm, 0)..=(arm, usize::MAX)).map(|((_, probe), _)| *probe).collect()
    }

    pub(super) fn fixture_of(&self, probe: usize) -> Option<usize> {
        self.fixture_of.get(probe).copied()
    }

    /// The fixtures of these probes.
    pub(super) fn fixtures(&self, probes: &Subset) -> BTreeSet<usize> {
        probes.iter().filter_map(|probe| self.fixture_of(*probe)).collect()
    }

    /// The dimensions that these probes measure on a fixture.
    pub(super) fn dimensions(&self, fixture: usize, probes: &Subset) -> BTreeSet<Dimension> {
        let on_fixture = probes.iter().filter(|probe| self.fixture_of(**probe) == Some(fixture));
        on_fixture.filter_map(|probe| self.measures.get(probe)).flatten().copied().collect()
    }

    /// The dimensions that these probes measure on every one of their fixtures: those of `overall`.
    pub(super) fn common_dimensions(&self, probes: &Subset) -> BTreeSet<Dimension> {
        let by_fixture = self.fixtures(probes).into_iter().map(|fixture| self.dimensions(fixture, probes));
        by_fixture.reduce(|common, own| &common & &own).unwrap_or_default()
    }

    /// The run values of one dimension on one fixture, over the probes `kept`. A probe that was due (`due`) and that
    /// the arm has no score for counts among the missing cells. `None` where nothing was measured.
    pub(super) fn dimension(
        &self,
        arm: usize,
        fixture: usize,
        dimension: Dimension,
        kept: &Subset,
        due: &Subset,
    ) -> Option<RunValues> {
        let mut table: Vec<Vec<Option<f64>>> = Vec::new();
        for probe in due.union(kept).filter(|probe| self.fixture_of(**probe) == Some(fixture)) {
            let by_run = self.grids.get(&(arm, *probe)).and_then(|grid| grid.get(place(dimension)));
            let scored = by_run.filter(|by_run| by_run.iter().any(Option::is_some));
            match scored {
                Some(by_run) if kept.contains(probe) => table.push(by_run.clone()),
                Some(_) => {}
                None if self.measures.get(probe).is_some_and(|measured| measured.contains(&dimension)) => {
                    table.push(vec![None; self.runs]);
                }
                None => {}
            }
        }
        let any = table.iter().flatten().any(Option::is_some);
        any.then(|| stats::run_values(&table))
    }

    /// The run values over several dimensions together: the mean of a run's dimensions.
    pub(super) fn overall(
        &self,
        arm: usize,
        fixture: usize,
        dimensions: &BTreeSet<Dimension>,
        kept: &Subset,
        due: &Subset,
    ) -> Option<RunValues> {
        let measures: Option<Vec<RunValues>> =
            dimensions.iter().map(|dimension| self.dimension(arm, fixture, *dimension, kept, due)).collect();
        measures.filter(|measures| !measures.is_empty()).map(|measures| stats::combined_runs(&measures))
    }

    /// How many runs of an arm on a fixture did work of their own: the median over these probes.
    pub(super) fn real_runs(&self, arm: usize, fixture: usize, probes: &Subset) -> Option<f64> {
        let on_fixture = probes.iter().filter(|probe| self.fixture_of(**probe) == Some(fixture));
        let counts: Vec<f64> =
            on_fixture.filter_map(|probe| self.distinct_runs.get(&(arm, *probe))).map(|count| *count as f64).collect();
        stats::median(&counts)
    }

    /// Whether every fixture's runs repeat the same work, so that there is nothing to vary.
    pub(super) fn is_deterministic(&self, arm: usize, probes: &Subset) -> bool {
        let fixtures = self.fixtures(probes);
        fixtures.iter().any(|fixture| self.real_runs(arm, *fixture, probes).is_some_and(|runs| runs < 2.0))
            && self.runs > 1
    }
}

/// Place of a dimension in lists by dimension.
pub(super) fn place(dimension: Dimension) -> usize {
    Dimension::ALL.iter().position(|known| *known == dimension).unwrap_or(0)
}

/// One score an answer and judgement: of a panel the medians, criterion by criterion, weighted anew.
fn merge_panels(grades: &[Grade], criteria: &[CriterionWeight]) -> Vec<Graded> {
    let same = |a: &Grade, b: &Grade| (a.at, a.judge_n) == (b.at, b.judge_n);
    let merge = |panel: &[Grade]| -> Option<Graded> {
        let first = panel.first()?;
        let dimensions = if panel.len() == 1 { first.dimensions } else { weigh(panel, criteria) };
        Some(Graded { at: first.at, dimensions })
    };
    grades.chunk_by(same).filter_map(merge).collect()
}

fn weigh(panel: &[Grade], criteria: &[CriterionWeight]) -> ByDimension {
    let mut by_criterion: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
    for (criterion, points) in panel.iter().flat_map(|grade| &grade.points) {
        by_criterion.entry(*criterion).or_default().push(f64::from(*points));
    }
    let medians: Vec<(&CriterionWeight, f64)> = (by_criterion.iter())
        .filter_map(|(criterion, points)| Some((criteria.get(usize::from(*criterion))?, stats::median(points)?)))
        .collect();
    Dimension::ALL.map(|dimension| {
        let own = || medians.iter().filter(|(criterion, _)| criterion.dimension == dimension);
        let weights: f64 = own().map(|(criterion, _)| criterion.weight).sum();
        let total: f64 = own().map(|(criterion, median)| criterion.weight * median).sum();
        (weights > 0.0).then(|| total / weights)
    })
}

/// Means over the answers and judgements inside each run.
fn grids(graded: &[Graded], runs: usize) -> BTreeMap<(usize, usize), Grid> {
    let mut grids = BTreeMap::new();
    for inside in graded.chunk_by(|a, b| (a.at.arm, a.at.probe, a.at.run) == (b.at.arm, b.at.probe, b.at.run)) {
        let Some(at) = inside.first().map(|first| first.at) else { continue };
        let grid: &mut Grid =
            grids.entry((at.arm, at.probe)).or_insert_with(|| Dimension::ALL.map(|_| vec![None; runs]));
        for (by_run, dimension) in grid.iter_mut().zip(Dimension::ALL) {
            let scores: Vec<f64> = inside.iter().filter_map(|g| *g.dimensions.get(place(dimension))?).collect();
            if let Some(slot) = by_run.get_mut((at.run as usize).wrapping_sub(1)) {
                *slot = stats::mean(&scores);
            }
        }
    }
    grids
}

/// How many runs differ in the actions they stand on, by arm and probe.
fn distinct_runs(grades: &[Grade]) -> BTreeMap<(usize, usize), usize> {
    let mut by_cell: BTreeMap<(usize, usize), BTreeSet<Vec<Digest>>> = BTreeMap::new();
    for run in grades.chunk_by(|a, b| (a.at.arm, a.at.probe, a.at.run) == (b.at.arm, b.at.probe, b.at.run)) {
        let Some(at) = run.first().map(|first| first.at) else { continue };
        let keys = run.iter().map(|grade| grade.keys).collect();
        by_cell.entry((at.arm, at.probe)).or_default().insert(keys);
    }
    by_cell.into_iter().map(|(cell, runs)| (cell, runs.len())).collect()
}
