//! Whether failures rose, or the share of something. The exact test of failures: does a method fail in more chains than its
//! baseline, on these fixtures?
//!
//! Failures are rare and come in bursts (a hard fixture fails in all of its runs), so rates have no usable t interval,
//! and comparing them (`rate > rate`) calls a third to a half of equal methods worse. This test is conditional: under
//! equal failure rates every split of a cluster's failures over the two sides is as likely as drawing them without
//! replacement. So in each cluster the failures of one side are hypergeometric given the cluster's total; their sum over
//! the clusters is the convolution of these distributions. A hard cluster, in which both sides fail, adds nothing.
//! Alternatives that were simulated and dropped: a t test over fixtures is blind to rare failures, and a test that counts
//! single cells calls 24% of equal methods worse, since the cells of one chain fail together.

use serde::Serialize;

use super::center::{mean, sample_sd};
use super::distribution::StudentT;
use super::thresholds::{MIN_CLUSTERS, MIN_RATE_INCREASE, POWER, TINY, UPPER_TAIL};
use super::verdict::holm;

/// Chains of a cluster, or of several, and how many of them failed, on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailureCounts {
    /// Failed on the side that is judged.
    pub failed: usize,
    /// Chains that were run on that side.
    pub chains: usize,
    /// Failed in the baseline.
    pub baseline_failed: usize,
    /// Chains that were run in the baseline.
    pub baseline_chains: usize,
}

impl FailureCounts {
    /// Those of all clusters together.
    pub fn sum(clusters: &[FailureCounts]) -> FailureCounts {
        let mut sum = FailureCounts::default();
        for counts in clusters {
            sum.failed += counts.failed;
            sum.chains += counts.chains;
            sum.baseline_failed += counts.baseline_failed;
            sum.baseline_chains += counts.baseline_chains;
        }
        sum
    }
}

/// The result of the exact test of one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FailureTest {
    /// One-sided p: the chance of as many failures or more on the judged side, given the totals.
    pub p: f64,
    /// `p` adjusted for all methods tested together, by Holm.
    pub p_adjusted: f64,
    /// The adjusted p is at most .025 and the rate rose by 2 percentage points or more.
    pub regressed: bool,
}

/// Tests several methods together, each given by its clusters. A cluster that one side did not observe is ignored.
pub fn failure_tests(methods: &[Vec<FailureCounts>]) -> Vec<FailureTest> {
    let methods: Vec<Vec<FailureCounts>> = methods
        .iter()
        .map(|clusters| observed_on_both_sides(clusters))
        .collect();
    let p: Vec<f64> = methods
        .iter()
        .map(|clusters| excess_failures_p(clusters))
        .collect();
    let judged = methods
        .iter()
        .zip(&p)
        .zip(holm(&p))
        .map(|((clusters, p), p_adjusted)| {
            let regressed = p_adjusted <= 1.0 - UPPER_TAIL + TINY
                && rate_increase(clusters) >= MIN_RATE_INCREASE - TINY;
            FailureTest {
                p: *p,
                p_adjusted,
                regressed,
            }
        });
    judged.collect()
}

fn observed_on_both_sides(clusters: &[FailureCounts]) -> Vec<FailureCounts> {
    clusters
        .iter()
        .copied()
        .filter(|counts| counts.chains > 0 && counts.baseline_chains > 0)
        .collect()
}

/// The failure rate of the judged side minus that of the baseline, over all clusters.
fn rate_increase(clusters: &[FailureCounts]) -> f64 {
    let sum = FailureCounts::sum(clusters);
    failure_rate(sum.failed, sum.chains) - failure_rate(sum.baseline_failed, sum.baseline_chains)
}

fn failure_rate(failed: usize, chains: usize) -> f64 {
    if chains == 0 {
        0.0
    } else {
        failed as f64 / chains as f64
    }
}

/// P(as many failures or more on the judged side | the failures of each cluster), from 0 to 1.
pub(super) fn excess_failures_p(clusters: &[FailureCounts]) -> f64 {
    let failed: usize = clusters
        .iter()
        .map(|counts| counts.failed.min(counts.chains))
        .sum();
    let distribution = clusters
        .iter()
        .map(hypergeometric)
        .fold(vec![1.0], |sum, one| convolve(&sum, &one));
    distribution
        .iter()
        .skip(failed)
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// The chances of 0, 1, .. failures on the judged side of a cluster, given its total.
///
/// By the ratio of neighbouring terms, P(k+1) / P(k) = (n−k)(t−k) / ((k+1)(m−t+k+1)) for n chains against m and t
/// failures, from an unnormalised first term; so no factorial overflows.
fn hypergeometric(counts: &FailureCounts) -> Vec<f64> {
    let (n, m) = (counts.chains, counts.baseline_chains);
    let total = counts.failed.min(n) + counts.baseline_failed.min(m);
    let (least, most) = (total.saturating_sub(m), total.min(n));
    let mut chances = vec![0.0; least];
    let mut term = 1.0_f64;
    for k in least..=most {
        chances.push(term);
        term *= (n - k) as f64 * (total - k) as f64 / ((k + 1) as f64 * (m + k + 1 - total) as f64);
        if term > 1e200 {
            chances.iter_mut().for_each(|chance| *chance *= 1e-200);
            term *= 1e-200;
        }
    }
    let sum: f64 = chances.iter().sum();
    chances.iter().map(|chance| chance / sum).collect()
}

fn convolve(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; one.len() + other.len() - 1];
    for (i, x) in one.iter().enumerate() {
        for (slot, y) in sum.iter_mut().skip(i).zip(other) {
            *slot += x * y;
        }
    }
    sum
}

/// Whether a share rose: a one-sided paired t test over clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RiseTest {
    /// The mean of the differences.
    pub difference: f64,
    /// The clusters that both sides have.
    pub clusters: usize,
    /// One-sided; `None` with fewer than three clusters.
    pub p: Option<f64>,
    /// The standard error, at least what the size of a step makes it.
    #[serde(skip)]
    standard_error: f64,
}

impl RiseTest {
    /// Tests whether the differences of clusters are above 0 on average. `step` is the smallest difference that a
    /// cluster can have: equal differences do not show that there is no noise.
    pub fn new(differences: &[f64], step: f64) -> Option<RiseTest> {
        let difference = mean(differences)?;
        let clusters = differences.len();
        let sd = sample_sd(differences).unwrap_or(0.0).max(step / 2.0);
        let standard_error = sd / (clusters as f64).sqrt();
        let p = StudentT::new(clusters.saturating_sub(1))
            .filter(|_| clusters >= MIN_CLUSTERS && standard_error > 0.0)
            .map(|t| {
                let tail = t.two_sided_p((difference / standard_error).abs()) / 2.0;
                if difference > 0.0 { tail } else { 1.0 - tail }
            });
        Some(RiseTest {
            difference,
            clusters,
            p,
            standard_error,
        })
    }

    /// The smallest rise that 80% of such runs find at the one-sided level `alpha`.
    pub fn smallest_found(&self, alpha: f64) -> Option<f64> {
        self.p?;
        let t = StudentT::new(self.clusters.saturating_sub(1))?;
        Some((t.quantile(1.0 - alpha)? + t.quantile(POWER)?) * self.standard_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(
        failed: usize,
        chains: usize,
        baseline_failed: usize,
        baseline_chains: usize,
    ) -> FailureCounts {
        FailureCounts {
            failed,
            chains,
            baseline_failed,
            baseline_chains,
        }
    }

    #[test]
    fn one_cluster_is_fishers_exact_test() {
        // all three of three against none of three: 1 of the 20 ways to draw three failures from six chains
        assert!((excess_failures_p(&[counts(3, 3, 0, 3)]) - 1.0 / 20.0).abs() < 1e-12);
        // Fisher's tea: 3 of 4 against 1 of 4
        assert!((excess_failures_p(&[counts(3, 4, 1, 4)]) - 17.0 / 70.0).abs() < 1e-12);
    }

    #[test]
    fn clusters_are_convolved() {
        let two = excess_failures_p(&[counts(3, 3, 0, 3), counts(3, 3, 0, 3)]);
        assert!((two - 1.0 / 400.0).abs() < 1e-12);
        // one lone failure in each of two clusters, both on the judged side: a half times a half
        assert!(
            (excess_failures_p(&[counts(1, 3, 0, 3), counts(1, 3, 0, 3)]) - 0.25).abs() < 1e-12
        );
    }

    #[test]
    fn a_cluster_in_which_everything_fails_says_nothing() {
        let hard = counts(3, 3, 3, 3);
        let plain = [counts(2, 3, 0, 3), counts(1, 3, 1, 3)];
        let with: Vec<_> = plain.into_iter().chain([hard, hard]).collect();
        assert!((excess_failures_p(&plain) - excess_failures_p(&with)).abs() < 1e-12);
        assert_eq!(excess_failures_p(&[hard]), 1.0);
        assert_eq!(excess_failures_p(&[]), 1.0);
    }

    #[test]
    fn a_regression_needs_a_small_p_and_two_points() {
        let failing = vec![counts(3, 3, 0, 3); 2];
        assert!(failure_tests(std::slice::from_ref(&failing))[0].regressed);
        let once = failure_tests(&[vec![counts(3, 3, 0, 3)]])[0];
        assert!(!once.regressed && once.p > 0.025);
        // eight failures of 1,000 chains against none: sure, and under two points
        let rare = failure_tests(&[vec![counts(8, 1_000, 0, 1_000)]])[0];
        assert!(rare.p < 0.025 && !rare.regressed, "{rare:?}");
        // sure by itself, not among twenty methods
        let many: Vec<Vec<FailureCounts>> = std::iter::repeat_n(failing, 20).collect();
        assert!(
            failure_tests(&many)
                .iter()
                .all(|test| (test.p_adjusted - 0.05).abs() < 1e-9 && !test.regressed)
        );
    }

    #[test]
    fn a_cluster_that_one_side_did_not_observe_is_left_out() {
        let tests = failure_tests(&[vec![counts(3, 3, 0, 0), counts(0, 3, 0, 3)]]);
        assert_eq!((tests[0].p, tests[0].regressed), (1.0, false));
    }

    #[test]
    fn many_chains_do_not_overflow() {
        let p = excess_failures_p(&[counts(5_000, 10_000, 4_800, 10_000)]);
        assert!(p > 0.002 && p < 0.003, "{p}");
    }

    #[test]
    fn only_rises_are_found_and_never_with_fewer_than_three_clusters() {
        let p = |differences: &[f64]| RiseTest::new(differences, 0.1).and_then(|test| test.p);
        assert!(p(&[0.3, 0.25, 0.35, 0.3]).is_some_and(|p| p < 0.001));
        assert!(p(&[-0.3, -0.25, -0.35, -0.3]).is_some_and(|p| p > 0.999));
        assert_eq!(p(&[0.3, 0.3]), None);
        assert_eq!(p(&[0.0, 0.0, 0.0]), Some(0.5));
        assert_eq!(RiseTest::new(&[], 0.1), None);
    }

    #[test]
    fn the_smallest_rise_grows_with_the_spread() {
        let found = |differences: &[f64]| {
            let test = RiseTest::new(differences, 0.01).expect("a test");
            test.smallest_found(0.05).expect("three clusters")
        };
        assert!(found(&[0.1, 0.12, 0.11]) < found(&[0.1, 0.3, -0.2]));
    }
}
