//! Levels: the mean of fixture values, with its two intervals.

use serde::{Deserialize, Serialize};

use super::Ordered;
use super::selection::VariantRuns;
use crate::judge::Dimension;
use crate::stats::{self, Interval, MissingCounts, NoRerun, RunValues};

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
pub type ScoreEstimates = Ordered<ScoreEstimate>;

/// The name of the mean of all dimensions.
pub const OVERALL: &str = "overall";

/// The level of these fixtures, each given by its runs.
fn level(clusters: &[&RunValues], deterministic: bool) -> ScoreEstimate {
    let kept: Vec<(f64, Vec<f64>)> =
        clusters.iter().filter_map(|runs| Some((runs.cluster_value()?, runs.present()))).collect();
    let (values, runs): (Vec<f64>, Vec<Vec<f64>>) = kept.into_iter().unzip();
    let rerun = if deterministic { Err(NoRerun::Deterministic) } else { stats::rerun_interval(&runs, None) };
    let estimate = stats::level(&values);
    let gaps = clusters.iter().fold(MissingCounts::default(), |sum, runs| sum + runs.gaps);
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

impl VariantRuns {
    fn level<'r>(&self, runs: impl Iterator<Item = (usize, &'r RunValues)>) -> ScoreEstimate {
        level(&runs.map(|(_, runs)| runs).collect::<Vec<_>>(), self.are_deterministic())
    }

    /// The level of `overall`.
    pub(super) fn overall_level(&self) -> ScoreEstimate {
        self.level(self.overall())
    }

    /// The levels of the dimensions measured.
    pub(super) fn dimension_levels(&self) -> ScoreEstimates {
        let is_measured = |dimension: &Dimension| self.dimension(*dimension).next().is_some();
        let of = |dimension: Dimension| (dimension.name().to_owned(), self.level(self.dimension(dimension)));
        Dimension::ALL.into_iter().filter(is_measured).map(of).collect()
    }

    /// `overall` and the dimensions together.
    pub(super) fn levels(&self) -> ScoreEstimates {
        let overall = (OVERALL.to_owned(), self.overall_level());
        std::iter::once(overall).chain(self.dimension_levels()).collect()
    }
}
