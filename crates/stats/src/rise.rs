//! Whether a share rose: a one-sided paired t test over clusters.

use serde::Serialize;

use crate::center::{mean, sample_sd};
use crate::distribution::StudentT;
use crate::thresholds::MIN_CLUSTERS;

/// The power of the smallest rise.
const POWER: f64 = 0.8;

/// The test of a rise.
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
