//! Which of several measures of the same clusters lie apart, by their paired differences.
//!
//! Whether the intervals of two *levels* overlap says little: clusters that are hard for one measure are hard for the
//! others too, and a paired difference leaves that out. So each pair is tested by the t of its mean difference. Its
//! variance is twice the mean square of measure × cluster over all K measures, on (K−1)(G−1) degrees of freedom; a pair
//! that varies over [`MAX_VARIANCE_RATIO`] times as much is tested by its own variance too, and the larger p counts. Holm
//! corrects for all K(K−1)/2 pairs, because the best measure was chosen by the same data: over K−1 pairs alone, eight
//! equal measures give 9 to 13% false differences.

use super::center::{mean, sample_variance};
use super::distribution::StudentT;
use super::interval::{Interval, interval};
use super::thresholds::{ALPHA, MAX_VARIANCE_RATIO, MIN_CLUSTERS, TINY};
use super::verdict::holm;
use base::named_enum;

named_enum! {
    /// What the difference of a pair shows.
    pub enum Separation {
        /// They differ: after correction for all pairs, and by the pair's own interval.
        Apart = "apart",
        /// They differ by the pair's own interval, but not after correction.
        Perhaps = "perhaps",
        /// No difference was shown.
        NotSeparable = "not separable",
    }
}

/// Two measures of the same clusters, by their places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTest {
    /// The places of the measures.
    pub pair: [usize; 2],
    /// The mean over clusters of the first minus the second.
    pub difference: f64,
    /// 95% cluster t interval of the difference, by the pair alone; `None` with one cluster, and where all clusters
    /// differ by the same.
    pub ci95: Option<Interval>,
    /// Two-sided p among all pairs; `None` with fewer than two clusters.
    pub p_adjusted: Option<f64>,
    /// What that shows; nothing under three clusters.
    pub separation: Separation,
}

/// The tests of all pairs of `measures`, each given as its values by cluster, in the same order of clusters. Empty for
/// fewer than two measures, for measures of unequal length, and for values that are not usable numbers.
pub fn pair_tests(measures: &[Vec<f64>]) -> Vec<PairTest> {
    let clusters = measures.first().map_or(0, Vec::len);
    let is_complete = measures.iter().all(|values| values.len() == clusters);
    let Some(square) = interaction_mean_square(measures).filter(|_| is_complete) else {
        return Vec::new();
    };
    let pairs = (0..measures.len())
        .flat_map(|one| (one + 1..measures.len()).map(move |other| [one, other]))
        .filter_map(|pair| {
            let [one, other] = pair.map(|place| measures.get(place));
            let differences: Vec<f64> = one?.iter().zip(other?).map(|(a, b)| a - b).collect();
            Some((pair, differences))
        });
    let pairs: Vec<([usize; 2], Vec<f64>)> = pairs.collect();
    let df = (measures.len() - 1) * clusters.saturating_sub(1);
    let p: Vec<Option<f64>> = pairs
        .iter()
        .map(|(_, differences)| p_of_pair(differences, square, df))
        .collect();
    let mut adjusted = holm(&p.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
    let tests = pairs
        .into_iter()
        .zip(p)
        .filter_map(|((pair, differences), p)| {
            let estimate = interval(&differences)?;
            let p_adjusted = p.and_then(|_| adjusted.next());
            let excludes_none = match estimate.ci95 {
                Some(ci) => !ci.contains(0.0),
                None => estimate.degenerate && estimate.center != 0.0,
            };
            Some(PairTest {
                pair,
                difference: estimate.center,
                ci95: estimate.ci95,
                p_adjusted,
                separation: match excludes_none && clusters >= MIN_CLUSTERS {
                    true if p_adjusted.is_some_and(|p| p <= ALPHA) => Separation::Apart,
                    true => Separation::Perhaps,
                    false => Separation::NotSeparable,
                },
            })
        });
    tests.collect()
}

/// Σ (v_mg − v̄_m − v̄_g + v̄)² / ((K−1)(G−1)); `None` for fewer than two measures, and 0 with one cluster.
fn interaction_mean_square(measures: &[Vec<f64>]) -> Option<f64> {
    let clusters = measures.first()?.len();
    let of_measures: Option<Vec<f64>> = measures.iter().map(|values| mean(values)).collect();
    let of_measures = of_measures.filter(|means| means.len() > 1)?;
    let whole = mean(&of_measures)?;
    let mut sum = 0.0;
    for cluster in 0..clusters {
        let values: Option<Vec<f64>> = measures.iter().map(|m| m.get(cluster).copied()).collect();
        let values = values?;
        let of_cluster = mean(&values)?;
        for (value, of_measure) in values.iter().zip(&of_measures) {
            sum += (value - of_measure - of_cluster + whole).powi(2);
        }
    }
    Some(sum / ((measures.len() - 1) * clusters.saturating_sub(1)).max(1) as f64)
}

/// The p of a pair, before correction.
fn p_of_pair(differences: &[f64], square: f64, df: usize) -> Option<f64> {
    let clusters = differences.len() as f64;
    let (center, variance) = (mean(differences)?, sample_variance(differences)?);
    let p = |variance: f64, df: usize| match variance.sqrt() < TINY {
        // Equal differences show no noise: this is the sign test.
        true if center.abs() < TINY => Some(1.0),
        true => Some(0.5_f64.powf(clusters - 1.0)),
        false => Some(StudentT::new(df)?.two_sided_p(center / (variance / clusters).sqrt())),
    };
    let shared = p(2.0 * square, df)?;
    let is_noisier = variance > MAX_VARIANCE_RATIO * 2.0 * square;
    if is_noisier {
        Some(shared.max(p(variance, differences.len() - 1)?))
    } else {
        Some(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separations(measures: &[Vec<f64>]) -> Vec<Separation> {
        pair_tests(measures)
            .iter()
            .map(|test| test.separation)
            .collect()
    }

    #[test]
    fn a_worked_pair() {
        // Two measures: the mean square of the interaction is half the variance of the differences, so this is the
        // paired t test of STATISTICS' worked comparison.
        let measures = [vec![4.1, 3.3, 4.4, 3.8], vec![3.5, 2.9, 4.0, 3.3]];
        let test = pair_tests(&measures)[0];
        assert!((test.difference - 0.475).abs() < 1e-12);
        assert!(
            test.p_adjusted
                .is_some_and(|p| (p - 0.002_177_51).abs() < 1e-7)
        );
        let ci = test.ci95.unwrap();
        assert!((ci.low() - 0.322_652).abs() < 1e-6 && (ci.high() - 0.627_348).abs() < 1e-6);
        assert_eq!(test.separation, Separation::Apart);
    }

    #[test]
    fn hard_clusters_that_are_hard_for_all_do_not_hide_a_difference() {
        let easy = [4.8, 1.2, 3.9, 2.1, 4.4, 1.8, 3.0, 2.6];
        let lower: Vec<f64> = easy
            .iter()
            .zip([0.7, 0.9, 0.8, 0.75, 0.85, 0.8, 0.9, 0.7])
            .map(|(value, lost)| value - lost)
            .collect();
        assert_eq!(separations(&[easy.to_vec(), lower]), [Separation::Apart]);
    }

    #[test]
    fn equal_differences_need_six_clusters() {
        let of = |clusters: usize| separations(&[vec![4.0; clusters], vec![3.0; clusters]]);
        assert_eq!(of(5), [Separation::Perhaps]);
        assert_eq!(of(6), [Separation::Apart]);
        assert_eq!(of(2), [Separation::NotSeparable]);
        assert_eq!(
            separations(&[vec![3.0; 8], vec![3.0; 8]]),
            [Separation::NotSeparable]
        );
    }

    #[test]
    fn all_pairs_share_the_correction() {
        let values = |shift: f64, noise: [f64; 4]| noise.map(|x| 3.0 + shift + x).to_vec();
        let noise = [
            [0.1, -0.1, 0.05, -0.05],
            [-0.1, 0.12, -0.06, 0.04],
            [0.08, 0.02, -0.1, 0.0],
            [-0.03, -0.07, 0.02, 0.08],
        ];
        let pair = pair_tests(&[values(0.3, noise[0]), values(0.0, noise[1])])[0];
        let four: Vec<Vec<f64>> = noise
            .into_iter()
            .enumerate()
            .map(|(place, noise)| values(if place == 0 { 0.3 } else { 0.0 }, noise))
            .collect();
        let tests = pair_tests(&four);
        assert_eq!(tests.len(), 6);
        assert_eq!(tests[0].ci95, pair.ci95, "the interval is the pair's own");
        assert!(
            tests
                .iter()
                .all(|test| test.separation != Separation::Apart || test.pair[0] == 0)
        );
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert!(pair_tests(&[]).is_empty() && pair_tests(&[vec![1.0]]).is_empty());
        assert!(pair_tests(&[vec![1.0], vec![1.0, 2.0]]).is_empty());
        assert!(pair_tests(&[vec![f64::NAN; 3], vec![1.0; 3]]).is_empty());
        assert_eq!(
            separations(&[vec![4.0], vec![1.0]]),
            [Separation::NotSeparable]
        );
    }
}
