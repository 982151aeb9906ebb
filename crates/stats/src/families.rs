//! Families and pairs: which comparisons of several methods are judged together, and which of several measures of the
//! same clusters lie apart.
//!
//! *Families.* Only clusters in which a method changed carry evidence; a method is tested over these, if there are three
//! or more.
//! With K methods tested and m dimensions each there are three tests. All are always made, and any one of them fails a
//! gate:
//!
//! 1. *Primary*, if K ≥ 2: a t test over clusters of the mean over the methods. It sees a small loss that many methods
//!    share, which no single method can show.
//! 2. Holm over the K overalls. It sees one method that loses much.
//! 3. One Holm over all K·m dimensions. It sees a loss in one dimension.
//!
//! From three methods on, variances are shared (see [`super::interval`]), separately for each measure.
//!
//! Alternatives that were simulated and dropped. Holm over all methods, changed or not: cutting one of six methods from an
//! overall of 1.89 to 0.76 passes. Unchanged clusters counted as differences of 0: they inflate the variance, and a method
//! that loses 3.0 points in 1 or 2 of 8 clusters is called in 0% of simulations. Testing dimensions only where overall
//! moved: a loss in one dimension is what users look for. `tools/coverage` measures false findings and power.
//!
//! *Pairs.* Whether the intervals of two *levels* overlap says little: clusters that are hard for one measure are hard
//! for the others too, and a paired difference leaves that out. So each pair is tested by the t of its mean difference. Its
//! variance is twice the mean square of measure × cluster over all K measures, on (K−1)(G−1) degrees of freedom; a pair
//! that varies over [`MAX_VARIANCE_RATIO`] times as much is tested by its own variance too, and the larger p counts. Holm
//! corrects for all K(K−1)/2 pairs, because the best measure was chosen by the same data: over K−1 pairs alone, eight
//! equal measures give 9 to 13% false differences.

use std::collections::{BTreeMap, BTreeSet};

use super::center::{mean, sample_variance};
use super::distribution::StudentT;
use super::interval::{Interval, interval};
use super::pairing::Paired;
use super::thresholds::{
    ALPHA, MAX_VARIANCE_RATIO, MIN_CLUSTERS, MIN_METHODS_TO_SHARE, PRIMARY_MARGIN, TINY,
};
use super::verdict::{DifferenceTest, NoEvidenceReason, holm, judge_family, untestable, verdicts};
use base::named_enum;

/// The differences of one method over the clusters in which it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodDifferences {
    /// The overall score; `None` where nothing was measured on both sides.
    pub overall: Option<Paired>,
    /// The dimensions, each by its number, which is the same in all methods.
    pub dimensions: BTreeMap<usize, Paired>,
}

/// The verdicts on one method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodVerdicts {
    /// On its overall score; `None` where there is no difference.
    pub overall: Option<DifferenceTest>,
    /// On each dimension, in the order of their numbers.
    pub dimensions: Vec<DifferenceTest>,
}

/// The verdicts of all three families.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyVerdicts {
    /// The mean over the methods tested; `None` where under two were.
    pub primary: Option<DifferenceTest>,
    /// K: the methods whose overall was tested.
    pub tested: usize,
    /// The verdicts on each method, in the order given.
    pub methods: Vec<MethodVerdicts>,
}

/// Judges the methods of a comparison together. Those of which nothing changed take part in no test.
pub fn family_verdicts(methods: &[MethodDifferences]) -> FamilyVerdicts {
    let methods = with_shared_variances(methods);
    let overalls: Vec<Paired> = methods
        .iter()
        .filter_map(|method| method.overall.clone())
        .collect();
    let dimensions: Vec<Paired> = methods
        .iter()
        .flat_map(|method| method.dimensions.values().cloned())
        .collect();
    let mut overall = verdicts(&overalls).into_iter();
    let mut dimension = verdicts(&dimensions).into_iter();
    let tested: Vec<&Paired> = overalls
        .iter()
        .filter(|paired| untestable(paired).is_none())
        .collect();
    let judged = methods.iter().map(|method| MethodVerdicts {
        overall: method.overall.as_ref().and_then(|_| overall.next()),
        dimensions: dimension.by_ref().take(method.dimensions.len()).collect(),
    });
    let methods = judged.collect();
    FamilyVerdicts {
        primary: primary(&tested),
        tested: tested.len(),
        methods,
    }
}

/// The methods, each measure with its mean variance over all of them: a few clusters hardly show the variance of a
/// single method. The overall score and each dimension are shared separately.
fn with_shared_variances(methods: &[MethodDifferences]) -> Vec<MethodDifferences> {
    let mut methods = methods.to_vec();
    share_variance(
        methods
            .iter_mut()
            .filter_map(|method| method.overall.as_mut())
            .collect(),
    );
    let numbers: BTreeSet<usize> = methods
        .iter()
        .flat_map(|method| method.dimensions.keys().copied())
        .collect();
    for number in numbers {
        share_variance(
            methods
                .iter_mut()
                .filter_map(|method| method.dimensions.get_mut(&number))
                .collect(),
        );
    }
    methods
}

/// Gives one measure of all methods its mean variance over the methods that can be tested, unless these are too few.
fn share_variance(measures: Vec<&mut Paired>) {
    let tested = measures
        .iter()
        .filter(|paired| untestable(paired).is_none());
    let variances: Vec<f64> = tested.filter_map(|paired| paired.variance()).collect();
    let Some(usual) = mean(&variances).filter(|_| variances.len() >= MIN_METHODS_TO_SHARE) else {
        return;
    };
    for measure in measures {
        *measure = measure.clone().with_usual_variance(usual);
    }
}

fn primary(tested: &[&Paired]) -> Option<DifferenceTest> {
    let mean = Paired::mean_over(tested).filter(|_| tested.len() > 1)?;
    judge_family(
        &[mean],
        PRIMARY_MARGIN,
        NoEvidenceReason::BelowPrimaryMargin,
    )
    .into_iter()
    .next()
}

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
    use crate::{RunValues, Verdict, run_values};

    fn runs(value: f64) -> RunValues {
        run_values(&[[Some(value)]])
    }

    /// A method with these differences in these clusters.
    fn method(differences: &[(usize, f64)]) -> MethodDifferences {
        let clusters: Vec<_> = differences
            .iter()
            .map(|(at, d)| (*at, runs(3.0 + d), runs(3.0)))
            .collect();
        let paired = Paired::by_cluster(&clusters);
        MethodDifferences {
            overall: paired.clone(),
            dimensions: paired.into_iter().enumerate().collect(),
        }
    }

    fn even(loss: f64) -> MethodDifferences {
        method(&[(0, -loss - 0.01), (1, -loss), (2, -loss + 0.02), (3, -loss)])
    }

    #[test]
    fn one_method_has_no_primary_test() {
        let verdicts = family_verdicts(&[even(0.5)]);
        assert_eq!((verdicts.primary, verdicts.tested), (None, 1));
        assert_eq!(
            verdicts.methods[0].overall.unwrap().verdict,
            Verdict::Regressed
        );
        assert_eq!(
            verdicts.methods[0].overall.unwrap().p,
            verdicts.methods[0].overall.unwrap().p_adjusted
        );
    }

    #[test]
    fn a_small_loss_that_all_share_fails_the_primary_test_alone() {
        let verdicts = family_verdicts(&[even(0.22), even(0.25), even(0.24)]);
        assert_eq!(verdicts.primary.unwrap().verdict, Verdict::Regressed);
        assert!(
            verdicts
                .methods
                .iter()
                .all(|one| one.overall.unwrap().verdict == Verdict::NoEvidence)
        );
        assert_eq!(
            family_verdicts(&[even(0.1), even(0.15)])
                .primary
                .unwrap()
                .reason,
            Some(NoEvidenceReason::BelowPrimaryMargin)
        );
    }

    #[test]
    fn methods_that_changed_in_one_or_two_clusters_take_part_in_no_family() {
        let few = method(&[(0, -3.0), (1, -3.1)]);
        let verdicts = family_verdicts(&[even(0.5), few.clone(), few]);
        assert_eq!((verdicts.primary, verdicts.tested), (None, 1));
        let alone = family_verdicts(&[even(0.5)]);
        assert_eq!(verdicts.methods[0], alone.methods[0]);
        let untested = verdicts.methods[1].overall.unwrap();
        assert_eq!(
            (untested.reason, untested.p_adjusted),
            (Some(NoEvidenceReason::FewClusters), None)
        );
    }

    #[test]
    fn the_primary_test_takes_the_mean_of_what_changed_in_each_cluster() {
        let first = method(&[(0, -1.0), (1, -1.1), (2, -0.9)]);
        let second = method(&[(2, -0.5), (3, -1.0), (4, -1.2)]);
        let primary = family_verdicts(&[first, second]).primary.unwrap();
        assert_eq!(primary.clusters, 5, "each cluster once");
        assert!((primary.difference - (-1.0 - 1.1 - 0.7 - 1.0 - 1.2) / 5.0).abs() < 1e-12);
    }

    #[test]
    fn the_primary_test_counts_the_clusters_in_which_no_method_changed() {
        let of_eight = |method: MethodDifferences| {
            let overall = method.overall.map(|paired| Paired {
                unchanged: 5,
                ..paired
            });
            MethodDifferences { overall, ..method }
        };
        let first = of_eight(method(&[(0, -1.0), (1, -1.1), (2, -0.9)]));
        let second = of_eight(method(&[(2, -0.5), (3, -1.0), (4, -1.2)]));
        let primary = family_verdicts(&[first, second]).primary.unwrap();
        assert_eq!((primary.clusters, primary.unchanged), (5, 3));
        assert!((primary.difference_all - 5.0 / 8.0 * primary.difference).abs() < 1e-12);
    }

    #[test]
    fn a_method_that_lost_clusters_takes_no_improvement_and_neither_does_the_mean() {
        let lost = |method: MethodDifferences| {
            let overall = method.overall.map(|paired| Paired {
                share_with_lost: 0.125,
                ..paired
            });
            MethodDifferences { overall, ..method }
        };
        let reasons = |gain: f64| {
            let found = family_verdicts(&[lost(even(-gain)), even(-gain)]);
            let tests = [
                found.primary,
                found.methods[0].overall,
                found.methods[1].overall,
            ];
            tests.map(|test| test.unwrap().reason)
        };
        let missing = Some(NoEvidenceReason::Missing);
        assert_eq!(reasons(0.5), [missing, missing, None]);
        assert_eq!(reasons(-0.5), [None; 3], "a loss stays one");
    }

    #[test]
    fn methods_share_their_variances_and_a_noisy_one_keeps_its_own() {
        let noisy = method(&[(0, -4.0), (1, 4.0), (2, -3.0), (3, 3.0)]);
        let one = family_verdicts(&[even(0.5)]);
        let two = family_verdicts(&[even(0.5), noisy.clone()]);
        let four = family_verdicts(&[even(0.5), even(0.4), even(0.3), noisy]);
        let df = |found: &FamilyVerdicts, at: usize| found.methods[at].overall.unwrap().df;
        assert_eq!(df(&one, 0), 3);
        assert_eq!([0, 1].map(|at| df(&two, at)), [7, 3]);
        assert_eq!([0, 1, 2, 3].map(|at| df(&four, at)), [7, 7, 7, 3]);
    }
}

#[cfg(test)]
mod pair_tests {
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
