//! Verdicts: whether a difference is large enough, sure enough, and resting on enough to be called one.
//!
//! Comparisons come in families; within one, p values are adjusted by Holm's method (1979, Scandinavian Journal of
//! Statistics 6), so that the chance of any false finding stays at 5% for the family, two-sided.

use serde::Serialize;

use super::agreement::Regrading;
use super::distribution::StudentT;
use super::interval::{Estimate, Interval, NoRerun};
use super::pairing::Paired;
use super::power::Finding;
use super::thresholds::{
    ALPHA, DIFFERENCES, MARGIN, MAX_MISSING, MDD_WARNING, MIN_CLUSTERS, TINY, UPPER_TAIL,
};
use base::named_enum;

named_enum! {
    /// What a comparison shows.
    pub enum Verdict {
        /// Better by the margin or more, and not by chance.
        Improved = "improved",
        /// Worse by the margin or more, and not by chance.
        Regressed = "regressed",
        /// Neither was shown, which does not mean that nothing changed.
        NoEvidence = "no evidence",
    }
}

named_enum! {
    /// Why there is no evidence; the first that holds, in this order.
    pub enum NoEvidenceReason {
        /// Something else differs between the sides.
        Confounded = "answerer differs",
        /// Under three clusters.
        FewClusters = "few fixtures",
        /// Over 10% of the cells are missing on one side. For an improvement, clusters that one side lost whole count.
        Missing = "missing",
        /// The adjusted p passes, but the difference is smaller than the margin.
        BelowMargin = "below 0.3",
        /// The same for the mean over several methods, whose margin is smaller.
        BelowPrimaryMargin = "below 0.2",
        /// The judge's grades of the same answers moved by half of the difference or more.
        JudgeDrift = "judge drift",
        /// Answers of the baseline, graded again, moved too unevenly to say whether the judge changed.
        DriftNotExcluded = "drift not excluded",
        /// Nothing changed: the same answers, graded the same.
        Unchanged = "unchanged",
        /// The p passes by itself, but not among all comparisons of its family.
        Correction = "correction",
        /// All clusters differ by exactly the same amount, and are too few (or the difference is 0) to conclude more.
        Degenerate = "degenerate",
        /// The difference does not stand out from how clusters vary.
        Noise = "noise",
    }
}

/// A judged comparison. Differences are in points of the scale, the first side minus the second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DifferenceTest {
    /// Mean of the differences of the clusters that changed.
    pub difference: f64,
    /// The mean over all clusters that were compared; those without a change count as 0.
    pub difference_all: f64,
    /// 95% cluster t interval of `difference`: would it hold on other clusters like these? `None` with one cluster.
    /// Clipped to what differences can be.
    pub ci95: Option<Interval>,
    /// 95% re-run interval: on exactly these clusters, is it more than the noise of running again?
    pub ci95_rerun: Option<Interval>,
    /// The centre of `ci95_rerun`: a difference of means over runs, where `difference` is one of medians.
    pub rerun_difference: Option<f64>,
    /// Why there is no `ci95_rerun`.
    pub no_rerun: Option<NoRerun>,
    /// Two-sided p by itself; `None` with one cluster.
    pub p: Option<f64>,
    /// `p` adjusted for its family, by Holm; `None` where it is not tested.
    pub p_adjusted: Option<f64>,
    /// Degrees of freedom of the test: more than `clusters` − 1 where methods share their variances.
    pub df: usize,
    /// The clusters vary less than the grading of so few items does, and the noise of grading decided the test.
    pub floored: bool,
    /// Smallest true difference that would get a verdict in 80% of repetitions. `None` where no difference on the scale
    /// would, and where the clusters do not show how they vary.
    pub mdd: Option<f64>,
    /// Improved, regressed, or neither shown.
    pub verdict: Verdict,
    /// Why it shows nothing; `None` beside any other verdict.
    pub reason: Option<NoEvidenceReason>,
    /// Whether `ci95` lies inside ±0.3: evidence that nothing of that size happened. `None` without `ci95`.
    pub within_margin: Option<bool>,
    /// G, the number of clusters that changed.
    pub clusters: usize,
    /// Clusters that were compared and did not change.
    pub unchanged: usize,
    /// All clusters differ by exactly the same amount.
    pub degenerate: bool,
}

impl DifferenceTest {
    /// There is no evidence for other clusters, yet on these the difference is more than the noise of running again.
    pub fn is_beyond_rerun_noise(&self) -> bool {
        self.verdict == Verdict::NoEvidence && self.ci95_rerun.is_some_and(|ci| !ci.contains(0.0))
    }

    /// No evidence was found, and hardly any loss would have been: worth a warning, above all at a gate. A comparison
    /// without noise says nothing about noise.
    pub fn is_underpowered(&self) -> bool {
        let is_blind = self.mdd.is_none_or(|mdd| mdd > MDD_WARNING);
        self.verdict == Verdict::NoEvidence
            && self.reason != Some(NoEvidenceReason::Unchanged)
            && !self.degenerate
            && is_blind
    }

    /// Whether it improved or regressed.
    pub fn has_verdict(&self) -> bool {
        self.verdict != Verdict::NoEvidence
    }

    /// This test, but with no evidence where the judge changed, or may have. The verdict stands if the difference without
    /// the judge's shift, with the variances of both, still excludes 0.
    pub fn unless_drifted(self, regrading: &Regrading) -> DifferenceTest {
        if !self.has_verdict() || self.stands_without(regrading).unwrap_or(false) {
            return self;
        }
        let reason = if regrading.explains(self.difference) {
            NoEvidenceReason::JudgeDrift
        } else {
            NoEvidenceReason::DriftNotExcluded
        };
        DifferenceTest {
            verdict: Verdict::NoEvidence,
            reason: Some(reason),
            ..self
        }
    }

    fn stands_without(&self, regrading: &Regrading) -> Option<bool> {
        let own = StudentT::new(self.df)?;
        // The test's own standard error, from its p.
        let error = self.difference.abs() / own.quantile(1.0 - self.p? / 2.0)?;
        let t = StudentT::new(self.clusters.saturating_sub(1))?.quantile(UPPER_TAIL)?;
        let half = t * (error * error + regrading.variance?).sqrt();
        let rest = self.difference - regrading.shift;
        Some(rest * self.difference.signum() > half)
    }

    /// A comparison of `clusters` clusters, none of which changed.
    fn unchanged(clusters: usize) -> DifferenceTest {
        DifferenceTest {
            difference: 0.0,
            difference_all: 0.0,
            ci95: Interval::new(0.0, 0.0),
            ci95_rerun: None,
            rerun_difference: None,
            no_rerun: Some(NoRerun::NoRuns),
            p: Some(1.0),
            p_adjusted: None,
            df: 0,
            floored: false,
            mdd: None,
            verdict: Verdict::NoEvidence,
            reason: Some(NoEvidenceReason::Unchanged),
            within_margin: Some(true),
            clusters: 0,
            unchanged: clusters,
            degenerate: true,
        }
    }
}

/// Why no test would mean anything, whatever the differences are; `None` where they can be tested.
pub fn untestable(paired: &Paired) -> Option<NoEvidenceReason> {
    if paired.is_same {
        Some(NoEvidenceReason::Unchanged)
    } else if paired.confounded {
        Some(NoEvidenceReason::Confounded)
    } else if paired.estimate.clusters < MIN_CLUSTERS {
        Some(NoEvidenceReason::FewClusters)
    } else if paired.missing_share > MAX_MISSING + TINY {
        Some(NoEvidenceReason::Missing)
    } else {
        None
    }
}

/// Judges one family of comparisons together, in order. A family of one is not corrected. A comparison that cannot be
/// tested is not a member of the family, so it costs the others nothing.
pub fn verdicts(family: &[Paired]) -> Vec<DifferenceTest> {
    judge_family(family, MARGIN, NoEvidenceReason::BelowMargin)
}

/// Judges a family with this margin; a significant difference that is smaller gets the reason `below`.
pub(super) fn judge_family(
    family: &[Paired],
    margin: f64,
    below: NoEvidenceReason,
) -> Vec<DifferenceTest> {
    let tested: Vec<f64> = family.iter().filter_map(p_of_test).collect();
    let alpha = ALPHA / tested.len().max(1) as f64;
    let mut adjusted = holm(&tested).into_iter();
    let judged = family.iter().map(|paired| {
        if paired.is_same {
            return DifferenceTest::unchanged(paired.estimate.clusters);
        }
        let adjusted = p_of_test(paired).and_then(|_| adjusted.next());
        let (verdict, reason) = judge(paired, adjusted, margin, below);
        let mdd = smallest_detectable(&paired.estimate, alpha, margin)
            .filter(|mdd| *mdd <= DIFFERENCES.1);
        DifferenceTest {
            verdict,
            reason,
            p_adjusted: adjusted,
            mdd,
            ..describe(paired)
        }
    });
    judged.collect()
}

/// The p of a comparison that can be tested.
fn p_of_test(paired: &Paired) -> Option<f64> {
    paired.estimate.p.filter(|_| untestable(paired).is_none())
}

/// The test of a comparison, still without a verdict.
fn describe(paired: &Paired) -> DifferenceTest {
    let estimate = &paired.estimate;
    let rerun = paired.rerun.as_ref().ok();
    let changed = estimate.clusters as f64 / (estimate.clusters + paired.unchanged).max(1) as f64;
    DifferenceTest {
        difference: estimate.center,
        difference_all: estimate.center * changed,
        ci95: estimate
            .ci95
            .map(|ci| ci.clipped(DIFFERENCES.0, DIFFERENCES.1)),
        ci95_rerun: rerun.map(|rerun| rerun.ci95.clipped(DIFFERENCES.0, DIFFERENCES.1)),
        rerun_difference: rerun.map(|rerun| rerun.center),
        no_rerun: paired.rerun.as_ref().err().copied(),
        p: estimate.p,
        p_adjusted: None,
        df: estimate.df,
        floored: estimate.floored,
        mdd: None,
        verdict: Verdict::NoEvidence,
        reason: None,
        within_margin: estimate.ci95.map(|ci| ci.is_within(MARGIN)),
        clusters: estimate.clusters,
        unchanged: paired.unchanged,
        degenerate: estimate.degenerate,
    }
}

fn judge(
    paired: &Paired,
    adjusted: Option<f64>,
    margin: f64,
    below: NoEvidenceReason,
) -> (Verdict, Option<NoEvidenceReason>) {
    let estimate = &paired.estimate;
    let reason = if let Some(reason) = untestable(paired) {
        reason
    } else if adjusted.is_none_or(|p| p > ALPHA) {
        unproven(estimate)
    } else if estimate.center >= margin - TINY && paired.share_with_lost > MAX_MISSING + TINY {
        NoEvidenceReason::Missing
    } else if estimate.center >= margin - TINY {
        return (Verdict::Improved, None);
    } else if estimate.center <= -(margin - TINY) {
        return (Verdict::Regressed, None);
    } else {
        below
    };
    (Verdict::NoEvidence, Some(reason))
}

/// Why an adjusted p does not pass.
fn unproven(estimate: &Estimate) -> NoEvidenceReason {
    if estimate.p.is_some_and(|p| p <= ALPHA) {
        NoEvidenceReason::Correction
    } else if estimate.degenerate
        && (estimate.floored || estimate.p.is_none() || estimate.center == 0.0)
    {
        // otherwise the noise of the other methods decided
        NoEvidenceReason::Degenerate
    } else {
        NoEvidenceReason::Noise
    }
}

/// The smallest detectable change. It depends on the noise alone, not on what was seen.
fn smallest_detectable(estimate: &Estimate, alpha: f64, margin: f64) -> Option<f64> {
    if estimate.clusters < MIN_CLUSTERS {
        return None;
    }
    Finding {
        df: estimate.df,
        alpha,
        margin,
    }
    .smallest_estimated(estimate.se?)
}

/// Holm's adjusted p values, in the order given. A number that is not a probability counts as 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let probabilities = p
        .iter()
        .map(|p| if (0.0..=1.0).contains(p) { *p } else { 1.0 });
    let mut ranked: Vec<(usize, f64)> = probabilities.enumerate().collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (count, mut largest) = (ranked.len(), 0.0_f64);
    for (rank, (_, p)) in ranked.iter_mut().enumerate() {
        largest = largest.max((*p * (count - rank) as f64).min(1.0));
        *p = largest;
    }
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, p)| p).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunValues, run_values};

    fn runs(clusters: [[f64; 3]; 4]) -> Vec<RunValues> {
        clusters
            .iter()
            .map(|runs| run_values(&[runs.map(Some).to_vec()]))
            .collect()
    }

    fn worked() -> Paired {
        let a = runs([
            [3.9, 4.2, 4.1],
            [3.4, 3.0, 3.3],
            [4.4, 4.5, 4.3],
            [3.8, 4.0, 3.5],
        ]);
        let b = runs([
            [3.5, 3.6, 3.3],
            [3.1, 2.9, 2.6],
            [3.9, 4.0, 4.2],
            [3.3, 3.2, 3.6],
        ]);
        Paired::between(&a.into_iter().zip(b).collect::<Vec<_>>()).unwrap()
    }

    fn judged(differences: &[f64]) -> DifferenceTest {
        verdicts(&[Paired::new(differences).unwrap()])[0]
    }

    fn outcome(comparison: &DifferenceTest) -> (Verdict, Option<NoEvidenceReason>) {
        (comparison.verdict, comparison.reason)
    }

    const NONE: Verdict = Verdict::NoEvidence;

    #[test]
    fn the_worked_comparison_is_improved() {
        let test = verdicts(&[worked()])[0];
        assert_eq!(outcome(&test), (Verdict::Improved, None));
        assert!((test.difference - 0.475).abs() < 1e-12);
        assert!((test.p_adjusted.unwrap() - 0.00217751).abs() < 5e-9);
        assert!((test.mdd.unwrap() - 0.3608).abs() < 1e-3, "{:?}", test.mdd);
        assert!((test.rerun_difference.unwrap() - 0.433333).abs() < 5e-7);
        assert_eq!((test.within_margin, test.no_rerun), (Some(false), None));
    }

    #[test]
    fn the_detectable_difference_is_limited_by_significance_or_by_the_margin() {
        let wide = judged(&[6.0, 4.0, 4.0, 5.0]);
        assert!(
            (wide.mdd.unwrap() - 2.729).abs() < 2e-3,
            "5.702 standard errors of .47871"
        );
        assert_eq!(
            judged(&[5.0, -5.0, 0.5]).mdd,
            None,
            "no difference on the scale would do"
        );
        assert!(
            judged(&[5.0, -5.0, 0.5])
                .ci95
                .is_some_and(|ci| (ci.low(), ci.high()) == (-5.0, 5.0))
        );
        assert!(!wide.is_underpowered(), "a verdict was found");
        assert!(
            judged(&[3.0, -3.0, 0.5]).is_underpowered()
                && !judged(&[0.6, 0.4, 0.4, 0.5]).is_underpowered()
        );
    }

    #[test]
    fn holm_matches_the_worked_numbers_in_any_order() {
        let expected = [0.006, 0.060, 0.080, 0.120, 0.600, 0.800];
        let adjusted = holm(&[0.001, 0.012, 0.020, 0.040, 0.300, 0.800]);
        assert!(
            adjusted
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-12),
            "{adjusted:?}"
        );
        let shuffled = holm(&[0.300, 0.001, 0.800, 0.020, 0.012, 0.040]);
        let order = [0.600, 0.006, 0.800, 0.080, 0.060, 0.120];
        assert!(
            shuffled
                .iter()
                .zip(order)
                .all(|(a, b)| (a - b).abs() < 1e-12),
            "{shuffled:?}"
        );
        assert_eq!(holm(&[f64::NAN, 0.4, 2.0, -1.0]), [1.0; 4]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn each_reason_is_given_where_it_holds() {
        assert_eq!(
            outcome(&judged(&[0.9])),
            (NONE, Some(NoEvidenceReason::FewClusters))
        );
        assert_eq!(
            outcome(&judged(&[0.9, 0.91])),
            (NONE, Some(NoEvidenceReason::FewClusters))
        );
        assert_eq!(
            outcome(&judged(&[0.20, 0.21, 0.22])),
            (NONE, Some(NoEvidenceReason::BelowMargin))
        );
        assert_eq!(
            outcome(&judged(&[0.9, -0.3, 0.6])),
            (NONE, Some(NoEvidenceReason::Noise))
        );
        assert_eq!(
            outcome(&judged(&[0.5; 5])),
            (NONE, Some(NoEvidenceReason::Degenerate))
        );
        assert_eq!(
            outcome(&judged(&[0.0; 8])),
            (NONE, Some(NoEvidenceReason::Degenerate))
        );
        let sure = || Paired::new(&[0.60, 0.61, 0.62, 0.60]).unwrap();
        let missing = |missing_share| Paired {
            missing_share,
            ..sure()
        };
        let confounded = Paired {
            confounded: true,
            ..sure()
        };
        let family = [missing(0.11), missing(0.10), confounded];
        let tests = verdicts(&family);
        assert_eq!(outcome(&tests[0]), (NONE, Some(NoEvidenceReason::Missing)));
        assert_eq!(outcome(&tests[1]), (Verdict::Improved, None));
        assert_eq!(
            outcome(&tests[2]),
            (NONE, Some(NoEvidenceReason::Confounded))
        );
    }

    #[test]
    fn a_family_asks_for_more_than_a_lone_comparison() {
        let shaky = [0.5, 0.8, 0.5];
        assert_eq!(outcome(&judged(&shaky)), (Verdict::Improved, None));
        let family: Vec<Paired> = [shaky, [0.1, -0.1, 0.2]]
            .iter()
            .filter_map(|d| Paired::new(d))
            .collect();
        let tests = verdicts(&family);
        assert_eq!(
            outcome(&tests[0]),
            (NONE, Some(NoEvidenceReason::Correction))
        );
        assert!(tests[0].mdd > judged(&shaky).mdd);
    }

    #[test]
    fn a_loss_of_every_fixture_alike_is_a_regression_and_a_small_one_is_noise_of_grading() {
        let graded = |difference: f64, items| {
            verdicts(&[Paired::new(&[difference; 3])
                .unwrap()
                .with_graded_items(items)])[0]
        };
        let test = graded(-1.0, 30);
        assert_eq!(
            (test.verdict, test.floored, test.degenerate),
            (Verdict::Regressed, true, true)
        );
        assert!(test.ci95.is_some_and(|ci| ci.high() < -0.6) && test.mdd.is_some());
        assert_eq!(
            outcome(&graded(-0.31, 30)),
            (NONE, Some(NoEvidenceReason::Degenerate))
        );
        assert_eq!(
            outcome(&graded(-1.0, 1)),
            (NONE, Some(NoEvidenceReason::Degenerate)),
            "one probe"
        );
        assert_eq!(
            outcome(&judged(&[-1.0; 6])),
            (NONE, Some(NoEvidenceReason::Degenerate)),
            "no items are known"
        );
    }

    #[test]
    fn a_loss_stands_only_if_the_shift_of_the_judge_leaves_one() {
        let lost = verdicts(&[Paired::new(&[-1.0; 3]).unwrap().with_graded_items(30)])[0];
        let moved = |by: f64, spread: f64| {
            let then = [4.0; 20];
            let now: Vec<f64> = (0..20)
                .map(|nth| 4.0 + by + if nth % 2 == 0 { spread } else { -spread })
                .collect();
            outcome(&lost.unless_drifted(&Regrading::between(&then, &now).unwrap()))
        };
        let stands = outcome(&lost);
        assert_eq!((moved(0.0, 0.1), moved(1.0, 0.1)), (stands, stands));
        assert_eq!(moved(-1.0, 0.1), (NONE, Some(NoEvidenceReason::JudgeDrift)));
        assert_eq!(
            moved(-0.2, 3.0),
            (NONE, Some(NoEvidenceReason::DriftNotExcluded))
        );
    }

    #[test]
    fn a_narrow_interval_about_zero_is_evidence_of_no_change() {
        assert_eq!(judged(&[0.02, -0.03, 0.01, 0.0]).within_margin, Some(true));
        assert_eq!(judged(&[0.9, -0.8, 0.1]).within_margin, Some(false));
        assert_eq!(judged(&[0.1]).within_margin, None);
    }

    #[test]
    fn only_a_test_without_a_verdict_is_beyond_rerun_noise() {
        let short = |values: [f64; 3]| run_values(&[values.map(Some).to_vec()]);
        let two = [
            (short([4.0, 4.1, 4.0]), short([3.0, 3.1, 3.1])),
            (short([3.0, 3.1, 3.0]), short([2.0, 2.2, 2.1])),
        ];
        assert!(verdicts(&[Paired::between(&two).unwrap()])[0].is_beyond_rerun_noise());
        assert!(!verdicts(&[worked()])[0].is_beyond_rerun_noise());
        let mut same = Paired::between(&two).unwrap();
        same.rerun = Err(NoRerun::Deterministic);
        assert_eq!(verdicts(&[same])[0].no_rerun, Some(NoRerun::Deterministic));
    }

    #[test]
    fn words_are_written_out_as_people_read_them() {
        let json = serde_json::to_value(judged(&[0.9])).unwrap();
        assert_eq!(
            (&json["verdict"], &json["reason"]),
            (&"no evidence".into(), &"few fixtures".into())
        );
        assert!(json["ci95"].is_null() && json["p"].is_null() && json["mdd"].is_null());
        assert_eq!(
            serde_json::to_value(NoEvidenceReason::BelowMargin).unwrap(),
            "below 0.3"
        );
        assert_eq!(
            serde_json::to_value(NoEvidenceReason::Confounded).unwrap(),
            "answerer differs"
        );
        assert_eq!(
            serde_json::to_value(judged(&[0.6, 0.5, 0.6]).verdict).unwrap(),
            "improved"
        );
    }
}
