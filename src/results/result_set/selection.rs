//! The probes that figures are made of, and what the runs of a variant give on them.

use std::collections::BTreeSet;

use super::grade::place;
use super::scores::Scores;
use crate::judge::Dimension;
use stats::{self, RunValues};

/// Probes by their place in the result set.
pub(in crate::results) type Subset = BTreeSet<usize>;

/// Probes that figures are made of, fixture by fixture.
pub(in crate::results) struct Selection<'s> {
    scores: &'s Scores,
    /// The dimensions that `overall` is the mean of.
    pub overall: BTreeSet<Dimension>,
    /// The probes judged.
    pub kept: Subset,
    due: Subset,
    /// Dimensions that `overall` leaves out.
    excluded: BTreeSet<Dimension>,
    fixtures: Vec<FixtureProbes>,
}

/// The probes of one fixture in a selection.
struct FixtureProbes {
    fixture: usize,
    kept: Vec<usize>,
    /// Those that were due and are not kept.
    lost: Vec<usize>,
}

impl FixtureProbes {
    /// The dimensions that any of the kept probes measures.
    fn measured(&self, scores: &Scores) -> BTreeSet<Dimension> {
        let all = Dimension::ALL.into_iter();
        all.filter(|dimension| self.kept.iter().any(|probe| scores.measures(*probe, *dimension))).collect()
    }
}

/// What the runs of one variant give on one fixture.
pub(in crate::results) struct FixtureRuns {
    pub fixture: usize,
    /// By dimension; `None` where nothing was measured.
    dimensions: [Option<RunValues>; Dimension::ALL.len()],
    /// The mean of a run's dimensions; `None` if one of them was not measured.
    pub overall: Option<RunValues>,
    /// How many runs did work of their own: the median over the probes.
    pub real_runs: Option<f64>,
}

impl<'s> Selection<'s> {
    /// The probes `kept` of those that were `due`, with `overall` over the dimensions that all their fixtures have, but for
    /// those `excluded`.
    pub(in crate::results) fn new(
        scores: &'s Scores,
        kept: Subset,
        due: Subset,
        excluded: &BTreeSet<Dimension>,
    ) -> Selection<'s> {
        let places: BTreeSet<usize> = kept.iter().filter_map(|probe| scores.fixture_of(*probe)).collect();
        let fixtures = places.into_iter().map(|fixture| FixtureProbes {
            fixture,
            kept: kept.range(scores.span(fixture)).copied().collect(),
            lost: due.range(scores.span(fixture)).filter(|probe| !kept.contains(probe)).copied().collect(),
        });
        let fixtures: Vec<FixtureProbes> = fixtures.collect();
        let dimensions = fixtures.iter().map(|probes| &probes.measured(scores) - excluded);
        let overall = dimensions.reduce(|common, own| &common & &own).unwrap_or_default();
        Selection { scores, overall, kept, due, excluded: excluded.clone(), fixtures }
    }

    /// The same over those probes that are in `group`.
    pub(in crate::results) fn only(&self, group: &Subset) -> Selection<'s> {
        Selection::new(self.scores, &self.kept & group, &self.due & group, &self.excluded)
    }

    /// The same probes of other answers.
    pub(in crate::results) fn with_scores<'o>(&self, scores: &'o Scores) -> Selection<'o> {
        Selection::new(scores, self.kept.clone(), self.due.clone(), &self.excluded).with_overall_of(self)
    }

    /// Other probes of other answers, with `overall` over the same dimensions where this has any.
    pub(in crate::results) fn over<'o>(&self, scores: &'o Scores, probes: Subset) -> Selection<'o> {
        let other = Selection::new(scores, probes.clone(), probes, &self.excluded);
        if self.overall.is_empty() { other } else { other.with_overall_of(self) }
    }

    /// The same with `overall` over the dimensions of `other`: both sides of a comparison take the same.
    pub(in crate::results) fn with_overall_of(self, other: &Selection<'_>) -> Selection<'s> {
        Selection { overall: other.overall.clone(), ..self }
    }

    /// What the runs of a variant give, one entry a fixture.
    pub(in crate::results) fn runs(&self, variant: usize) -> VariantRuns {
        VariantRuns {
            runs: self.scores.runs(),
            by_fixture: self.fixtures.iter().map(|on| self.on(on, variant)).collect(),
        }
    }

    fn on(&self, probes: &FixtureProbes, variant: usize) -> FixtureRuns {
        let dimensions = Dimension::ALL.map(|dimension| self.dimension(probes, variant, dimension));
        let common: Option<Vec<&RunValues>> =
            self.overall.iter().map(|dimension| dimensions.get(place(*dimension))?.as_ref()).collect();
        let overall = common.filter(|common| !common.is_empty()).map(|common| stats::combined_runs(&common));
        let distinct = probes.kept.iter().filter_map(|probe| self.scores.distinct_runs(variant, *probe));
        let distinct: Vec<f64> = distinct.map(|runs| runs as f64).collect();
        FixtureRuns { fixture: probes.fixture, dimensions, overall, real_runs: stats::median(&distinct) }
    }

    /// The run values of one dimension on one fixture, over the probes kept. A probe that was due and that the variant has
    /// no score for counts among the missing cells, if it measures this dimension. `None` where nothing was measured.
    fn dimension(&self, probes: &FixtureProbes, variant: usize, dimension: Dimension) -> Option<RunValues> {
        let mut table = self.table(&probes.kept, variant, dimension);
        if !table.iter().any(|by_run| is_scored(by_run)) {
            return None;
        }
        let lost = self.table(&probes.lost, variant, dimension);
        table.extend(lost.into_iter().filter(|by_run| !is_scored(by_run)));
        Some(stats::run_values(&table))
    }

    /// The scores of the runs of those probes that measure a dimension.
    fn table(&self, probes: &[usize], variant: usize, dimension: Dimension) -> Vec<&'s [Option<f64>]> {
        let measuring = probes.iter().filter(|probe| self.scores.measures(**probe, dimension));
        measuring.map(|probe| self.scores.by_run(variant, *probe, dimension)).collect()
    }
}

fn is_scored(by_run: &[Option<f64>]) -> bool {
    by_run.iter().any(Option::is_some)
}

/// What the runs of one variant give on the fixtures of a selection.
pub(in crate::results) struct VariantRuns {
    pub by_fixture: Vec<FixtureRuns>,
    /// How many runs there should be.
    runs: usize,
}

impl VariantRuns {
    /// The runs of `overall`, one entry a fixture that has it.
    pub(in crate::results) fn overall(&self) -> impl Iterator<Item = (usize, &RunValues)> {
        self.by_fixture.iter().filter_map(|on| Some((on.fixture, on.overall.as_ref()?)))
    }

    /// The runs of a dimension, likewise.
    pub(in crate::results) fn dimension(&self, dimension: Dimension) -> impl Iterator<Item = (usize, &RunValues)> {
        self.by_fixture.iter().filter_map(move |on| Some((on.fixture, on.dimension(dimension)?)))
    }

    /// Whether the runs of a fixture repeat the same work, so that there is nothing to vary.
    pub(in crate::results) fn are_deterministic(&self) -> bool {
        self.runs > 1 && self.by_fixture.iter().any(|on| on.real_runs.is_some_and(|runs| runs < 2.0))
    }
}

impl FixtureRuns {
    /// The runs of a dimension; `None` where nothing was measured.
    pub(in crate::results) fn dimension(&self, dimension: Dimension) -> Option<&RunValues> {
        self.dimensions.get(place(dimension))?.as_ref()
    }
}
