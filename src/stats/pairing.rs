//! One comparison before it is judged: the paired differences of two sides, cluster by cluster.

use super::center::{Gaps, RunValues, usable};
use super::interval::{Estimate, interval};
use super::rerun::{NoRerun, Rerun, rerun_interval};

/// The paired differences of one measure over at least one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    pub(super) estimate: Estimate,
    pub(super) rerun: Result<Rerun, NoRerun>,
    pub(super) missing_share: f64,
    pub(super) confounded: bool,
}

impl Paired {
    /// From the differences of the clusters' values, one a cluster; nothing is missing and no runs are known.
    /// `None` for no differences, or if one of them is no usable number.
    pub fn new(differences: &[f64]) -> Option<Paired> {
        let estimate = interval(differences)?;
        Some(Paired { estimate, rerun: Err(NoRerun::NoRuns), missing_share: 0.0, confounded: false })
    }

    /// The first side minus the second, cluster by cluster, with the re-run interval and the larger missing share of
    /// the two sides. Both sides of a cluster must have been restricted to the same items before.
    ///
    /// A cluster without a value on either side is left out, though its missing cells count. `None` if none is left.
    pub fn between(clusters: &[(RunValues, RunValues)]) -> Option<Paired> {
        let kept: Vec<Kept> = clusters.iter().filter_map(|(a, b)| Kept::of(a, b)).collect();
        let differences: Vec<f64> = kept.iter().map(|cluster| cluster.difference).collect();
        let (a, b): (Vec<_>, Vec<_>) = kept.into_iter().map(|cluster| (cluster.a, cluster.b)).unzip();
        let share = |side: fn(&(RunValues, RunValues)) -> Gaps| {
            clusters.iter().map(side).fold(Gaps::default(), |sum, gaps| sum + gaps).share().unwrap_or(0.0)
        };
        let missing_share = share(|pair| pair.0.gaps).max(share(|pair| pair.1.gaps));
        Some(Paired { rerun: rerun_interval(&a, Some(&b)), missing_share, ..Paired::new(&differences)? })
    }

    /// With this share of cells missing, from 0 to 1, on the side that lacks more. Anything else counts as all.
    pub fn with_missing_share(self, share: f64) -> Paired {
        let missing_share = if (0.0..=1.0).contains(&share) { share } else { 1.0 };
        Paired { missing_share, ..self }
    }

    /// Without a re-run interval, for this reason: for one, that runs repeated each other's work.
    pub fn without_rerun(self, reason: NoRerun) -> Paired {
        Paired { rerun: Err(reason), ..self }
    }

    /// Something else than what is compared differs between the sides: no verdict can be given.
    pub fn confounded(self) -> Paired {
        Paired { confounded: true, ..self }
    }

    /// The mean difference with its interval and unadjusted p.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }
}

/// A cluster with a value on both sides.
struct Kept {
    difference: f64,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Kept {
    fn of(a: &RunValues, b: &RunValues) -> Option<Kept> {
        let difference = a.cluster_value()? - b.cluster_value()?;
        usable(difference).then(|| Kept { difference, a: a.present(), b: b.present() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::run_values;

    fn side(cells: &[Option<f64>]) -> RunValues {
        run_values(&[cells.to_vec()])
    }

    #[test]
    fn a_cluster_without_a_value_on_one_side_is_left_out_and_counted_missing() {
        let whole = side(&[Some(3.0), Some(3.5)]);
        let empty = side(&[None, None]);
        let paired = Paired::between(&[(whole.clone(), side(&[Some(2.0), Some(2.5)])), (whole, empty)]).unwrap();
        assert_eq!(paired.estimate.clusters, 1);
        assert_eq!(paired.missing_share, 0.5);
        assert_eq!(paired.rerun.unwrap().df, 2);
    }

    #[test]
    fn nothing_common_is_no_comparison() {
        assert_eq!(Paired::between(&[]), None);
        assert_eq!(Paired::between(&[(side(&[None]), side(&[Some(1.0)]))]), None);
        assert_eq!(Paired::new(&[f64::NAN]), None);
    }

    #[test]
    fn an_impossible_share_counts_as_all_missing() {
        for share in [f64::NAN, -0.1, 1.5] {
            assert_eq!(Paired::new(&[1.0]).unwrap().with_missing_share(share).missing_share, 1.0);
        }
    }
}
