//! The re-run interval: on exactly these clusters and items, is a difference more than the noise of running again?
//!
//! It uses only how runs differ, says nothing about other clusters, and never decides a verdict.

use serde::{Deserialize, Serialize};

use super::center::{mean, sample_variance};
use super::distribution::StudentT;
use super::interval::Interval;
use super::thresholds::{TINY, UPPER_TAIL};

/// A level or difference on exactly these clusters, with the noise of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// Mean over clusters of the mean (not the median) over runs: a median of three runs has no usable variance.
    pub center: f64,
    /// Where the centre would lie in other runs, with 95% confidence.
    pub ci95: Interval,
    /// Variance of the centre.
    pub variance: f64,
    /// Degrees of freedom: runs beyond the first, over all clusters and both sides.
    pub df: usize,
}

/// Why there is no re-run interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRerun {
    /// There is no cluster, or the runs were not given.
    NoRuns,
    /// Runs repeat the same work, so nothing varies.
    Deterministic,
    /// No run gave another value than the others, which does not show how further runs would vary.
    NoVariation,
    /// Some cluster has fewer than two runs.
    FewRuns,
    /// The two sides have different numbers of clusters.
    Unpaired,
    /// A value is not a usable number.
    NotANumber,
}

/// The re-run interval of a level (`b` is `None`) or of the difference a − b, from the values of the runs of each
/// cluster.
///
/// With w the sample variance of a cluster's R values divided by R, the variance of the centre is Σw / G² over both
/// sides, with Σ(R − 1) degrees of freedom. Runs that repeated another run's work must be left out by the caller.
///
/// # Errors
/// If there is no such interval; the reason says why.
pub fn rerun_interval(a: &[Vec<f64>], b: Option<&[Vec<f64>]>) -> Result<Rerun, NoRerun> {
    if b.is_some_and(|b| b.len() != a.len()) {
        return Err(NoRerun::Unpaired);
    }
    let a = SideVariance::from_clusters(a)?;
    let b = b.map_or(Ok(SideVariance::default()), SideVariance::from_clusters)?;
    let variance = a.variance + b.variance;
    let (center, df) = (a.mean - b.mean, a.df + b.df);
    let t = StudentT::new(df)
        .and_then(|t| t.quantile(UPPER_TAIL))
        .ok_or(NoRerun::FewRuns)?;
    if variance.sqrt() < TINY {
        return Err(NoRerun::NoVariation);
    }
    let ci95 = Interval::around(center, t * variance.sqrt()).ok_or(NoRerun::NotANumber)?;
    Ok(Rerun {
        center,
        ci95,
        variance,
        df,
    })
}

/// One side's mean, its variance, and its degrees of freedom.
#[derive(Default)]
struct SideVariance {
    mean: f64,
    variance: f64,
    df: usize,
}

impl SideVariance {
    fn from_clusters(clusters: &[Vec<f64>]) -> Result<SideVariance, NoRerun> {
        if clusters.is_empty() {
            return Err(NoRerun::NoRuns);
        }
        if clusters.iter().any(|runs| runs.len() < 2) {
            return Err(NoRerun::FewRuns);
        }
        let count = clusters.len() as f64;
        let mut side = SideVariance::default();
        for runs in clusters {
            let variance = sample_variance(runs).ok_or(NoRerun::NotANumber)?;
            side.mean += mean(runs).ok_or(NoRerun::NotANumber)? / count;
            side.variance += variance / runs.len() as f64 / (count * count);
            side.df += runs.len() - 1;
        }
        Ok(side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a() -> Vec<Vec<f64>> {
        vec![
            vec![3.9, 4.2, 4.1],
            vec![3.4, 3.0, 3.3],
            vec![4.4, 4.5, 4.3],
            vec![3.8, 4.0, 3.5],
        ]
    }

    fn b() -> Vec<Vec<f64>> {
        vec![
            vec![3.5, 3.6, 3.3],
            vec![3.1, 2.9, 2.6],
            vec![3.9, 4.0, 4.2],
            vec![3.3, 3.2, 3.6],
        ]
    }

    #[test]
    fn four_clusters_of_three_runs() {
        let rerun = rerun_interval(&a(), Some(&b())).unwrap();
        assert!((rerun.center - 0.433333).abs() < 5e-7);
        assert!((rerun.variance - 0.00611111).abs() < 5e-9);
        assert_eq!(rerun.df, 16);
        assert!(
            (rerun.ci95.low() - 0.267613).abs() < 5e-7
                && (rerun.ci95.high() - 0.599054).abs() < 5e-7
        );
    }

    #[test]
    fn a_level_takes_one_side_only() {
        let rerun = rerun_interval(&a(), None).unwrap();
        assert!((rerun.center - 46.4 / 12.0).abs() < 1e-12);
        assert_eq!(rerun.df, 8);
    }

    #[test]
    fn one_cluster_is_enough() {
        assert_eq!(rerun_interval(&a()[..1], Some(&b()[..1])).unwrap().df, 4);
    }

    #[test]
    fn each_refusal_has_its_reason() {
        assert_eq!(rerun_interval(&[], None), Err(NoRerun::NoRuns));
        assert_eq!(
            rerun_interval(&a(), Some(&b()[..2])),
            Err(NoRerun::Unpaired)
        );
        assert_eq!(
            rerun_interval(&[vec![1.0, 2.0], vec![1.0]], None),
            Err(NoRerun::FewRuns)
        );
        assert_eq!(
            rerun_interval(&[vec![1.0, f64::NAN]], None),
            Err(NoRerun::NotANumber)
        );
    }

    #[test]
    fn runs_that_agree_do_not_show_how_others_would_vary() {
        assert_eq!(
            rerun_interval(&[vec![2.0, 2.0]], Some(&[vec![3.0, 3.0]])),
            Err(NoRerun::NoVariation)
        );
        assert!(rerun_interval(&[vec![2.0, 2.0], vec![2.0, 3.0]], None).is_ok());
    }
}
