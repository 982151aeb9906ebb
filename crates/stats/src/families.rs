//! Families: which comparisons of several methods are judged together.
//!
//! Only clusters in which a method changed carry evidence; a method is tested over these, if there are three or more.
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

use std::collections::{BTreeMap, BTreeSet};

use super::center::mean;
use super::pairing::Paired;
use super::thresholds::{MIN_METHODS_TO_SHARE, PRIMARY_MARGIN};
use super::verdict::{DifferenceTest, NoEvidenceReason, judge_family, untestable, verdicts};

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

/// Judges the changed methods of a comparison together.
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
            let overall = method.overall.map(|paired| paired.with_unchanged(5));
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
            let overall = method
                .overall
                .map(|paired| paired.with_lost_clusters(0.125));
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
    fn three_methods_share_their_variances_and_a_noisy_one_keeps_its_own() {
        let noisy = method(&[(0, -4.0), (1, 4.0), (2, -3.0), (3, 3.0)]);
        let two = family_verdicts(&[even(0.5), noisy.clone()]);
        let three = family_verdicts(&[even(0.5), even(0.4), even(0.3), noisy]);
        let df = |found: &FamilyVerdicts, at: usize| found.methods[at].overall.unwrap().df;
        assert_eq!((df(&two, 0), df(&two, 1)), (3, 3));
        assert_eq!([0, 1, 2, 3].map(|at| df(&three, at)), [7, 7, 7, 3]);
    }
}
