//! The probes that figures are computed from, the values of a variant's runs on them, and their levels: the mean of
//! fixture values, with its two intervals.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::scores::{Scores, place};
use crate::judge::Dimension;
use crate::results::Ordered;
use stats::{self, Interval, MissingCounts, NoRerun, RunValues};

/// Probes by their place in the result set.
pub(crate) type Subset = BTreeSet<usize>;

/// The probes that figures are computed from, by fixture.
pub(crate) struct Selection<'s> {
    scores: &'s Scores,
    /// The dimensions that `overall` is the mean of.
    pub overall: BTreeSet<Dimension>,
    /// The probes that were judged.
    pub kept: Subset,
    /// The probes that should have been judged.
    due: Subset,
    /// Dimensions that `overall` leaves out.
    excluded: BTreeSet<Dimension>,
    fixtures: Vec<FixtureProbes>,
}

/// The probes of one fixture in a selection.
struct FixtureProbes {
    fixture: usize,
    kept: Vec<usize>,
    /// Probes that were due and are not kept.
    lost: Vec<usize>,
}

impl FixtureProbes {
    /// The dimensions that any of the kept probes measures.
    fn measured(&self, scores: &Scores) -> BTreeSet<Dimension> {
        let is_measured = |dimension: &Dimension| {
            let mut kept = self.kept.iter();
            kept.any(|probe| scores.measures(*probe, *dimension))
        };
        Dimension::ALL.into_iter().filter(is_measured).collect()
    }
}

/// The values of one variant's runs on one fixture.
pub(crate) struct FixtureRuns {
    pub fixture: usize,
    /// By dimension; `None` where nothing was measured.
    dimensions: [Option<RunValues>; Dimension::ALL.len()],
    /// The means of the dimensions; `None` if one of them was not measured.
    pub overall: Option<RunValues>,
    /// How many runs did work of their own: the median over the probes.
    pub real_runs: Option<f64>,
}

impl<'s> Selection<'s> {
    /// The probes `kept` of those that were `due`, with `overall` over the dimensions that all fixtures have, without
    /// those `excluded`.
    pub(crate) fn new(
        scores: &'s Scores,
        kept: Subset,
        due: Subset,
        excluded: &BTreeSet<Dimension>,
    ) -> Selection<'s> {
        let places: BTreeSet<usize> = kept
            .iter()
            .filter_map(|probe| scores.fixture_of(*probe))
            .collect();
        let fixtures = places.into_iter().map(|fixture| FixtureProbes {
            fixture,
            kept: kept.range(scores.span(fixture)).copied().collect(),
            lost: due
                .range(scores.span(fixture))
                .filter(|probe| !kept.contains(probe))
                .copied()
                .collect(),
        });
        let fixtures: Vec<FixtureProbes> = fixtures.collect();
        let dimensions = fixtures
            .iter()
            .map(|probes| &probes.measured(scores) - excluded);
        let overall = dimensions
            .reduce(|common, measured| &common & &measured)
            .unwrap_or_default();
        Selection {
            scores,
            overall,
            kept,
            due,
            excluded: excluded.clone(),
            fixtures,
        }
    }

    /// The part of the selection that is in `group`.
    pub(crate) fn only(&self, group: &Subset) -> Selection<'s> {
        let (kept, due) = (&self.kept & group, &self.due & group);
        Selection::new(self.scores, kept, due, &self.excluded)
    }

    /// The same probes with the scores of other answers.
    pub(crate) fn with_scores<'o>(&self, scores: &'o Scores) -> Selection<'o> {
        Selection::new(scores, self.kept.clone(), self.due.clone(), &self.excluded)
            .with_overall_of(self)
    }

    /// The same selection with `overall` over the dimensions of `other`, because both sides of a comparison must use
    /// the same.
    pub(crate) fn with_overall_of(self, other: &Selection<'_>) -> Selection<'s> {
        Selection {
            overall: other.overall.clone(),
            ..self
        }
    }

    /// The values of a variant's runs, with one entry for each fixture.
    pub(crate) fn runs(&self, variant: usize) -> VariantRuns {
        VariantRuns {
            runs: self.scores.runs(),
            by_fixture: self
                .fixtures
                .iter()
                .map(|probes| self.fixture_runs(probes, variant))
                .collect(),
        }
    }

    fn fixture_runs(&self, probes: &FixtureProbes, variant: usize) -> FixtureRuns {
        let dimensions = Dimension::ALL.map(|dimension| self.dimension(probes, variant, dimension));
        let common: Option<Vec<&RunValues>> = self
            .overall
            .iter()
            .map(|dimension| dimensions.get(place(*dimension))?.as_ref())
            .collect();
        let overall = common
            .filter(|common| !common.is_empty())
            .map(|common| stats::combined_runs(&common));
        let distinct = probes
            .kept
            .iter()
            .filter_map(|probe| self.scores.distinct_runs(variant, *probe));
        let distinct: Vec<f64> = distinct.map(|runs| runs as f64).collect();
        FixtureRuns {
            fixture: probes.fixture,
            dimensions,
            overall,
            real_runs: stats::median(&distinct),
        }
    }

    /// The run values of one dimension on one fixture, over the kept probes. A probe that was due and has no score of
    /// the variant counts as missing if it measures this dimension. `None` where nothing was measured.
    fn dimension(
        &self,
        probes: &FixtureProbes,
        variant: usize,
        dimension: Dimension,
    ) -> Option<RunValues> {
        let mut table = self.table(&probes.kept, variant, dimension);
        if !table.iter().any(|by_run| is_scored(by_run)) {
            return None;
        }
        let lost = self.table(&probes.lost, variant, dimension);
        table.extend(lost.into_iter().filter(|by_run| !is_scored(by_run)));
        Some(stats::run_values(&table))
    }

    /// The scores of the runs, for each probe that measures a dimension.
    fn table(
        &self,
        probes: &[usize],
        variant: usize,
        dimension: Dimension,
    ) -> Vec<&'s [Option<f64>]> {
        let measuring = probes
            .iter()
            .filter(|probe| self.scores.measures(**probe, dimension));
        measuring
            .map(|probe| self.scores.by_run(variant, *probe, dimension))
            .collect()
    }
}

fn is_scored(by_run: &[Option<f64>]) -> bool {
    by_run.iter().any(Option::is_some)
}

/// The values of one variant's runs on the fixtures of a selection.
pub(crate) struct VariantRuns {
    pub by_fixture: Vec<FixtureRuns>,
    /// How many runs there should be.
    runs: usize,
}

impl VariantRuns {
    /// The runs of `overall`, with one entry for each fixture that has it.
    pub(crate) fn overall(&self) -> impl Iterator<Item = (usize, &RunValues)> {
        self.by_fixture
            .iter()
            .filter_map(|runs| Some((runs.fixture, runs.overall.as_ref()?)))
    }

    /// The value of `overall` of each fixture that has one.
    pub(crate) fn overall_values(&self) -> BTreeMap<usize, f64> {
        let values = self.overall();
        values
            .filter_map(|(fixture, runs)| Some((fixture, runs.cluster_value()?)))
            .collect()
    }

    /// The runs of a dimension, with one entry for each fixture that has it.
    pub(crate) fn dimension(
        &self,
        dimension: Dimension,
    ) -> impl Iterator<Item = (usize, &RunValues)> {
        self.by_fixture
            .iter()
            .filter_map(move |runs| Some((runs.fixture, runs.dimension(dimension)?)))
    }

    /// Whether the runs of a fixture repeat the same work, so that nothing varies between them.
    pub(crate) fn are_deterministic(&self) -> bool {
        let mut fixtures = self.by_fixture.iter();
        self.runs > 1 && fixtures.any(|runs| runs.real_runs.is_some_and(|count| count < 2.0))
    }
}

impl FixtureRuns {
    /// The runs of a dimension; `None` where nothing was measured.
    pub(crate) fn dimension(&self, dimension: Dimension) -> Option<&RunValues> {
        self.dimensions.get(place(dimension))?.as_ref()
    }
}

/// The mean over fixtures of the medians over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreEstimate {
    /// The level; `None` where nothing was measured.
    pub median: Option<f64>,
    /// 95% cluster t interval, clipped to the scale; `None` with one fixture.
    pub ci95: Option<Interval>,
    /// 95% interval of running again on exactly these fixtures.
    pub ci95_rerun: Option<Interval>,
    /// Why there is no `ci95_rerun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rerun: Option<NoRerun>,
    /// Standard deviation of the fixture values; `None` with one fixture.
    pub spread: Option<f64>,
    /// Fixtures that have a value.
    pub fixtures: usize,
    /// Share of cells that are missing.
    pub missing: Option<f64>,
}

/// `overall` and the dimensions of one selection of cells, in the order of tables.
pub(crate) type ScoreEstimates = Ordered<ScoreEstimate>;

/// The name of the mean of all dimensions.
pub const OVERALL: &str = "overall";

/// The level of a variant over fixtures, each given by its runs.
fn level<'r>(
    variant: &VariantRuns,
    fixtures: impl Iterator<Item = (usize, &'r RunValues)>,
) -> ScoreEstimate {
    let clusters: Vec<&RunValues> = fixtures.map(|(_, runs)| runs).collect();
    let kept: Vec<(f64, Vec<f64>)> = clusters
        .iter()
        .filter_map(|runs| Some((runs.cluster_value()?, runs.present())))
        .collect();
    let (values, runs): (Vec<f64>, Vec<Vec<f64>>) = kept.into_iter().unzip();
    let rerun = if variant.are_deterministic() {
        Err(NoRerun::Deterministic)
    } else {
        stats::rerun_interval(&runs, None)
    };
    let estimate = stats::level(&values);
    let gaps = clusters
        .iter()
        .fold(MissingCounts::default(), |sum, runs| sum + runs.gaps);
    ScoreEstimate {
        median: estimate.map(|estimate| estimate.center),
        ci95: estimate.and_then(|estimate| estimate.ci95),
        ci95_rerun: rerun.ok().map(|rerun| rerun.ci95),
        no_rerun: rerun.err(),
        spread: stats::sample_sd(&values),
        fixtures: values.len(),
        missing: gaps.share(),
    }
}

/// The level of `overall`.
pub(crate) fn overall_level(runs: &VariantRuns) -> ScoreEstimate {
    level(runs, runs.overall())
}

/// The levels of the dimensions measured.
pub(crate) fn dimension_levels(runs: &VariantRuns) -> ScoreEstimates {
    let measured = Dimension::ALL
        .into_iter()
        .filter(|dimension| runs.dimension(*dimension).next().is_some());
    let levels = measured.map(|dimension| {
        let level = level(runs, runs.dimension(dimension));
        (dimension.name().to_owned(), level)
    });
    levels.collect()
}

/// `overall` and the dimensions together.
pub(crate) fn levels(runs: &VariantRuns) -> ScoreEstimates {
    let overall = (OVERALL.to_owned(), overall_level(runs));
    std::iter::once(overall)
        .chain(dimension_levels(runs))
        .collect()
}
