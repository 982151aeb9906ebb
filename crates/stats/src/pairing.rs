//! One comparison before it is judged: the paired differences of two sides, cluster by cluster.

use std::collections::BTreeMap;

use super::center::{MissingCounts, RunValues, mean, sample_variance, usable};
use super::interval::{
    Estimate, NoRerun, NoiseKnowledge, Rerun, estimate, interval, rerun_interval,
};
use super::thresholds::ROUNDING_VARIANCE;

/// The paired differences of one measure over at least one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// The difference of each cluster, by the number that the caller gave it.
    pub(super) differences: Vec<(usize, f64)>,
    /// The mean difference with its interval and unadjusted p.
    pub estimate: Estimate,
    /// The re-run interval, or why there is none.
    pub rerun: Result<Rerun, NoRerun>,
    pub(super) missing_share: f64,
    /// The missing share where clusters that one side lost whole count, too; 0 if it was not given. If it is too large,
    /// there is no improvement: who loses the hard clusters looks better on the others. A loss on the clusters that are left
    /// stays a loss.
    pub share_with_lost: f64,
    /// Whether the sides also differ in something else, so that no verdict can be given.
    pub confounded: bool,
    /// Whether both sides have the same, so that there is nothing to test.
    pub is_same: bool,
    /// The number of other clusters, in which nothing changed.
    pub unchanged: usize,
    pub(super) noise: NoiseKnowledge,
}

impl Paired {
    /// From the difference of each cluster; nothing is missing and no runs are known. `None` for no differences, or if
    /// one of them is not a usable number.
    #[cfg(test)]
    pub(super) fn new(differences: &[f64]) -> Option<Paired> {
        Paired::from_numbered(differences.iter().copied().enumerate().collect())
    }

    fn from_numbered(differences: Vec<(usize, f64)>) -> Option<Paired> {
        let values: Vec<f64> = differences
            .iter()
            .map(|(_, difference)| *difference)
            .collect();
        let estimate = interval(&values)?;
        let rerun = Err(NoRerun::NoRuns);
        let noise = NoiseKnowledge::default();
        Some(Paired {
            differences,
            estimate,
            rerun,
            missing_share: 0.0,
            share_with_lost: 0.0,
            confounded: false,
            is_same: false,
            unchanged: 0,
            noise,
        })
    }

    /// The first side minus the second, cluster by cluster, with the re-run interval and the larger missing share of
    /// the two sides. Both sides of a cluster must have been restricted to the same items before. The numbers of the
    /// clusters say which clusters several measures have in common.
    ///
    /// A cluster without a value on either side is left out, though its missing cells count. `None` if none is left.
    pub fn by_cluster(clusters: &[(usize, RunValues, RunValues)]) -> Option<Paired> {
        let (mut differences, mut runs_a, mut runs_b) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gaps_a, mut gaps_b) = (MissingCounts::default(), MissingCounts::default());
        for (at, a, b) in clusters {
            gaps_a += a.gaps;
            gaps_b += b.gaps;
            let difference = a.cluster_value().zip(b.cluster_value()).map(|(a, b)| a - b);
            if let Some(difference) = difference.filter(|difference| usable(*difference)) {
                differences.push((*at, difference));
                runs_a.push(a.present());
                runs_b.push(b.present());
            }
        }
        let rerun = rerun_interval(&runs_a, Some(&runs_b));
        let missing_share = gaps_a
            .share()
            .unwrap_or(0.0)
            .max(gaps_b.share().unwrap_or(0.0));
        Some(Paired {
            rerun,
            missing_share,
            ..Paired::from_numbered(differences)?
        })
    }

    /// Like [`Paired::by_cluster`], with the clusters numbered in their order.
    pub fn between(clusters: &[(RunValues, RunValues)]) -> Option<Paired> {
        let numbered = clusters
            .iter()
            .enumerate()
            .map(|(at, (a, b))| (at, a.clone(), b.clone()));
        Paired::by_cluster(&numbered.collect::<Vec<_>>())
    }

    /// The mean of several measures of the same clusters: in each cluster that changed, over the measures that changed
    /// there. `None` without measures.
    pub(super) fn mean_over(measures: &[&Paired]) -> Option<Paired> {
        let mut by_cluster: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (at, difference) in measures.iter().flat_map(|measure| &measure.differences) {
            by_cluster.entry(*at).or_default().push(*difference);
        }
        let means: Option<Vec<(usize, f64)>> = by_cluster
            .into_iter()
            .map(|(at, differences)| Some((at, mean(&differences)?)))
            .collect();
        let floors = measures.iter().map(|measure| measure.noise.floor);
        let floor = floors.flatten().reduce(f64::max);
        let mean = Paired::from_numbered(means?)?.knowing(NoiseKnowledge {
            floor,
            usual_variance: None,
        });
        let share_with_lost = measures
            .iter()
            .map(|measure| measure.share_with_lost)
            .fold(0.0, f64::max);
        let compared = measures
            .iter()
            .map(|measure| measure.estimate.clusters + measure.unchanged)
            .max()
            .unwrap_or(0);
        let unchanged = compared.saturating_sub(mean.estimate.clusters);
        Some(Paired {
            share_with_lost,
            unchanged,
            ..mean
        })
    }

    /// With the number of distinct items that were graded, over all clusters. Grades are whole numbers, and all criteria
    /// and runs of an item share one reply or one rounding: the standard error is at least √(2/12)/√items.
    pub fn with_graded_items(self, items: usize) -> Paired {
        let floor = (items > 0).then(|| (ROUNDING_VARIANCE / items as f64).sqrt());
        let noise = NoiseKnowledge {
            floor,
            ..self.noise
        };
        self.knowing(noise)
    }

    /// With the mean variance of several methods, towards which its own is drawn.
    pub(super) fn with_usual_variance(self, usual_variance: f64) -> Paired {
        let noise = NoiseKnowledge {
            usual_variance: Some(usual_variance),
            ..self.noise
        };
        self.knowing(noise)
    }

    fn knowing(self, noise: NoiseKnowledge) -> Paired {
        let estimate = estimate(&self.values(), noise).unwrap_or(self.estimate);
        Paired {
            estimate,
            noise,
            ..self
        }
    }

    fn values(&self) -> Vec<f64> {
        self.differences
            .iter()
            .map(|(_, difference)| *difference)
            .collect()
    }

    /// The variance of the differences over clusters; `None` with one.
    pub(super) fn variance(&self) -> Option<f64> {
        sample_variance(&self.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_values;

    fn side(cells: &[Option<f64>]) -> RunValues {
        run_values(&[cells.to_vec()])
    }

    #[test]
    fn a_cluster_without_a_value_on_one_side_is_left_out_and_counted_missing() {
        let whole = side(&[Some(3.0), Some(3.5)]);
        let empty = side(&[None, None]);
        let paired = Paired::between(&[
            (whole.clone(), side(&[Some(2.0), Some(2.5)])),
            (whole, empty),
        ])
        .unwrap();
        assert_eq!(paired.estimate.clusters, 1);
        assert_eq!(paired.missing_share, 0.5);
        assert_eq!(paired.rerun.unwrap().df, 2);
    }

    #[test]
    fn nothing_common_is_no_comparison() {
        assert_eq!(Paired::between(&[]), None);
        assert_eq!(
            Paired::between(&[(side(&[None]), side(&[Some(1.0)]))]),
            None
        );
        assert_eq!(Paired::new(&[f64::NAN]), None);
    }
}
