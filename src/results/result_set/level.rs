//! Levels: the mean of fixture values, with its two intervals.

use serde::{Deserialize, Serialize};

use super::selection::VariantRuns;
use crate::judge::Dimension;
use crate::results::Ordered;
use stats::{self, Interval, MissingCounts, NoRerun, RunValues};

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
    measured
        .map(|dimension| {
            (
                dimension.name().to_owned(),
                level(runs, runs.dimension(dimension)),
            )
        })
        .collect()
}

/// `overall` and the dimensions together.
pub(crate) fn levels(runs: &VariantRuns) -> ScoreEstimates {
    let overall = (OVERALL.to_owned(), overall_level(runs));
    std::iter::once(overall)
        .chain(dimension_levels(runs))
        .collect()
}
