//! Levels: the mean of fixture values, with its two intervals.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ordered::Ordered;
use super::scores::{Scores, Subset};
use crate::judge::Dimension;
use crate::stats::{self, Gaps, Interval, NoRerun, RunValues};

/// The mean over fixtures of the medians over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Level {
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
pub type Levels = Ordered<Level>;

/// The name of the mean of all dimensions.
pub const OVERALL: &str = "overall";

/// The level of these fixtures, each given by its runs.
fn level(clusters: &[RunValues], deterministic: bool) -> Level {
    let kept: Vec<(f64, Vec<f64>)> =
        clusters.iter().filter_map(|runs| Some((runs.cluster_value()?, runs.present()))).collect();
    let (values, runs): (Vec<f64>, Vec<Vec<f64>>) = kept.into_iter().unzip();
    let rerun = if deterministic { Err(NoRerun::Deterministic) } else { stats::rerun_interval(&runs, None) };
    let estimate = stats::level(&values);
    let gaps = clusters.iter().fold(Gaps::default(), |sum, runs| sum + runs.gaps);
    Level {
        median: estimate.map(|estimate| estimate.center),
        ci95: estimate.and_then(|estimate| estimate.ci95),
        ci95_rerun: rerun.ok().map(|rerun| rerun.ci95),
        no_rerun: rerun.err(),
        spread: stats::sample_sd(&values),
        fixtures: values.len(),
        missing: gaps.share(),
    }
}

/// The levels of one arm over some probes.
pub(super) struct Leveller<'s> {
    pub scores: &'s Scores,
    /// The dimensions that `overall` is the mean of.
    pub overall: BTreeSet<Dimension>,
    pub kept: Subset,
    pub due: Subset,
}

impl<'s> Leveller<'s> {
    /// Over `kept`, with `overall` over the dimensions that all its fixtures have.
    pub(super) fn new(scores: &'s Scores, kept: Subset, due: Subset) -> Leveller<'s> {
        Leveller { overall: scores.common_dimensions(&kept), scores, kept, due }
    }

    /// The same over those probes that are in `group`.
    pub(super) fn only(&self, group: &Subset) -> Leveller<'s> {
        Leveller::new(self.scores, &self.kept & group, &self.due & group)
    }

    /// The runs of `overall`, one entry a fixture that has it.
    pub(super) fn overall_runs(&self, arm: usize) -> Vec<(usize, RunValues)> {
        let of = |fixture| self.scores.overall(arm, fixture, &self.overall, &self.kept, &self.due);
        self.by_fixture(of)
    }

    /// The runs of a dimension, likewise.
    pub(super) fn dimension_runs(&self, arm: usize, dimension: Dimension) -> Vec<(usize, RunValues)> {
        self.by_fixture(|fixture| self.scores.dimension(arm, fixture, dimension, &self.kept, &self.due))
    }

    fn by_fixture(&self, of: impl Fn(usize) -> Option<RunValues>) -> Vec<(usize, RunValues)> {
        let fixtures = self.scores.fixtures(&self.kept).into_iter();
        fixtures.filter_map(|fixture| Some((fixture, of(fixture)?))).collect()
    }

    fn level(&self, arm: usize, runs: Vec<(usize, RunValues)>) -> Level {
        let clusters: Vec<RunValues> = runs.into_iter().map(|(_, runs)| runs).collect();
        level(&clusters, self.scores.is_deterministic(arm, &self.kept))
    }

    /// The level of `overall`.
    pub(super) fn overall_level(&self, arm: usize) -> Level {
        self.level(arm, self.overall_runs(arm))
    }

    /// The levels of the dimensions measured.
    pub(super) fn dimension_levels(&self, arm: usize) -> Levels {
        let of = |dimension: Dimension| {
            let runs = self.dimension_runs(arm, dimension);
            (!runs.is_empty()).then(|| (dimension.name().to_owned(), self.level(arm, runs)))
        };
        Ordered(Dimension::ALL.into_iter().filter_map(of).collect())
    }

    /// `overall` and the dimensions together.
    pub(super) fn levels(&self, arm: usize) -> Levels {
        let mut levels = vec![(OVERALL.to_owned(), self.overall_level(arm))];
        levels.extend(self.dimension_levels(arm).0);
        Ordered(levels)
    }
}
