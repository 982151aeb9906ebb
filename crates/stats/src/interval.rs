//! The cluster t interval: mean ± t(.975, G−1) · s/√G over the values of G clusters.
//!
//! Valid, and at worst too wide, when clusters differ in size and noise (Ibragimov and Müller 2010, Journal of Business
//! & Economic Statistics 28). `tools/coverage` measures how often it covers the truth.
//!
//! And the re-run interval: on exactly these clusters and items, is a difference more than the noise of running again? It
//! uses only how runs differ, says nothing about other clusters, and never decides a verdict.

use serde::{Deserialize, Serialize};

use super::center::{mean, sample_sd, sample_variance, usable};
use super::distribution::StudentT;
use super::thresholds::{MAX_VARIANCE_RATIO, PRIOR_DF, SCALE, TINY, UPPER_TAIL};

/// A closed interval, `low` ≤ `high`, both finite. Written out as `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "[f64; 2]")]
pub struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    /// `None` unless both ends are usable numbers; the ends may be given in either order.
    pub(super) fn new(one: f64, other: f64) -> Option<Interval> {
        (usable(one) && usable(other)).then(|| Interval {
            low: one.min(other),
            high: one.max(other),
        })
    }

    pub(super) fn around(center: f64, reach: f64) -> Option<Interval> {
        Interval::new(center - reach, center + reach)
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether `x` lies in it, ends included.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Whether it lies inside (−margin, +margin), ends excluded.
    pub fn is_within(&self, margin: f64) -> bool {
        -margin < self.low && self.high < margin
    }

    /// The interval of the opposite number.
    #[must_use]
    pub fn negated(self) -> Interval {
        Interval {
            low: -self.high,
            high: -self.low,
        }
    }

    pub(super) fn clipped(self, floor: f64, ceiling: f64) -> Interval {
        Interval {
            low: self.low.clamp(floor, ceiling),
            high: self.high.clamp(floor, ceiling),
        }
    }
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> [f64; 2] {
        [interval.low, interval.high]
    }
}

/// A mean over clusters, and how far it can be trusted to hold on other clusters like these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean of the clusters' values.
    pub center: f64,
    /// 95% cluster t interval; `None` with one cluster, and where the values do not show how they vary.
    pub ci95: Option<Interval>,
    /// Two-sided p of a true mean of 0. `None` without an interval, unless the values are all 0, and for a level, since
    /// 0 is not a hypothesis about one.
    pub p: Option<f64>,
    /// Standard error of the mean; `None` with one cluster.
    pub se: Option<f64>,
    /// Degrees of freedom of `se`.
    pub df: usize,
    /// G, the number of clusters.
    pub clusters: usize,
    /// All clusters gave the same value, which does not show how others would vary.
    pub degenerate: bool,
    /// The clusters vary less than the grading of so few items alone would explain: `se` is that of the grading.
    pub floored: bool,
}

/// What is known about the noise besides how the values themselves vary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NoiseKnowledge {
    /// The smallest standard error that the mean can have.
    pub floor: Option<f64>,
    /// The mean variance of measures like this one, this one included.
    pub usual_variance: Option<f64>,
}

/// The mean of the clusters' values, with its interval and p.
///
/// If all values are equal (sd under 1e-9), they do not show how others would vary: there is no interval, and no p
/// unless they are all 0. `None` for no values, or if one of them is not a usable number: silently leaving it out would
/// change what is estimated.
pub fn interval(values: &[f64]) -> Option<Estimate> {
    estimate(values, NoiseKnowledge::default())
}

/// Like [`interval`], with what else is known about the noise.
///
/// The variance of few values is itself uncertain. Where several measures vary about alike it is drawn towards their
/// mean variance, which counts like [`PRIOR_DF`] further degrees of freedom (Smyth 2004, Statistical Applications in
/// Genetics and Molecular Biology 3); a measure that varies clearly more than the others keeps
/// its own variance.
pub(super) fn estimate(values: &[f64], known: NoiseKnowledge) -> Option<Estimate> {
    let center = mean(values)?;
    let clusters = values.len();
    let lone = Estimate {
        center,
        ci95: None,
        p: None,
        se: None,
        df: 0,
        clusters,
        degenerate: false,
        floored: false,
    };
    let Some(observed) = sample_variance(values) else {
        return Some(lone);
    };
    let degenerate = observed.sqrt() < TINY;
    let center = if degenerate && center.abs() < TINY {
        0.0
    } else {
        center
    };
    let (variance, df) = moderated(
        if degenerate { 0.0 } else { observed },
        clusters - 1,
        known.usual_variance,
    );
    let observed_se = variance.sqrt() / (clusters as f64).sqrt();
    let floored = known.floor.is_some_and(|floor| observed_se < floor);
    let se = if floored {
        known.floor.unwrap_or(observed_se)
    } else {
        observed_se
    };
    let without_interval = Estimate {
        center,
        se: Some(se),
        df,
        degenerate,
        floored,
        ..lone
    };
    if se < TINY {
        return Some(Estimate {
            p: (center == 0.0).then_some(1.0),
            ..without_interval
        });
    }
    let t = StudentT::new(df)?;
    let ci95 = Interval::around(center, t.quantile(UPPER_TAIL)? * se);
    Some(Estimate {
        ci95,
        p: Some(t.two_sided_p(center / se)),
        ..without_interval
    })
}

/// A variance with `df` degrees of freedom, drawn towards the usual one unless it is clearly larger, and the degrees of
/// freedom of the result.
fn moderated(variance: f64, df: usize, usual: Option<f64>) -> (f64, usize) {
    match usual.filter(|usual| variance <= MAX_VARIANCE_RATIO * usual) {
        Some(usual) => {
            let (prior, weight) = (PRIOR_DF as f64, df as f64);
            (
                (prior * usual + weight * variance) / (prior + weight),
                PRIOR_DF + df,
            )
        }
        None => (variance, df),
    }
}

/// The lower end of the one-sided 95% t interval of the mean of `values`, taken as independent; their mean if they do not
/// differ. `None` under 2 values.
pub fn lower_bound(values: &[f64]) -> Option<f64> {
    let (center, sd, t) = (
        mean(values)?,
        sample_sd(values)?,
        StudentT::new(values.len() - 1)?,
    );
    Some(center - t.quantile(0.95)? * sd / (values.len() as f64).sqrt())
}

/// The mean of the clusters' scores, its interval clipped to the scale of 0 to 5. No p, and no interval where all are
/// equal: levels at the ceiling often are.
///
/// `None` for no values, or if one of them does not lie on the scale.
pub fn level(values: &[f64]) -> Option<Estimate> {
    bounded(values, SCALE.0, SCALE.1)
}

/// The mean of the clusters' shares, its interval clipped to 0 and 1. No p, and no interval where all are equal: shares
/// of 0 in a few clusters do not show that it will always be 0.
///
/// `None` for no values, or if one of them is not a share.
pub fn share(values: &[f64]) -> Option<Estimate> {
    bounded(values, 0.0, 1.0)
}

/// Like [`share`], for differences of shares, from −1 to 1.
pub fn share_difference(values: &[f64]) -> Option<Estimate> {
    bounded(values, -1.0, 1.0)
}

/// The geometric mean of the clusters' sizes, with the t interval of its logarithm: sizes differ by factors, so that
/// one large cluster would decide an arithmetic mean. No p, and no interval where all are equal.
///
/// If a value is 0, which has no logarithm, it is the arithmetic mean, without an interval. `None` for no values, or if
/// one of them is negative or not a number.
pub fn geometric_mean(values: &[f64]) -> Option<Estimate> {
    if values.iter().any(|x| *x < 0.0) {
        return None;
    }
    if values.contains(&0.0) {
        let arithmetic = interval(values)?;
        return Some(Estimate {
            ci95: None,
            p: None,
            se: None,
            ..arithmetic
        });
    }
    let logs: Vec<f64> = values.iter().map(|x| x.ln()).collect();
    let of_logs = interval(&logs)?;
    let ci95 = of_logs
        .ci95
        .and_then(|ci| Interval::new(ci.low().exp(), ci.high().exp()));
    let center = if of_logs.degenerate {
        mean(values)?
    } else {
        of_logs.center.exp()
    };
    Some(Estimate {
        center,
        ci95,
        p: None,
        se: None,
        ..of_logs
    })
}

/// The mean sizes of two sides that are compared: their geometric means or, if a value of either is 0, the arithmetic
/// means of both, since the ratio of one kind of mean to the other says nothing.
pub fn paired_sizes(sides: [&[f64]; 2]) -> [Option<f64>; 2] {
    let has_zero = sides.iter().any(|values| values.contains(&0.0));
    sides.map(|values| {
        if has_zero {
            mean(values)
        } else {
            geometric_mean(values).map(|mean| mean.center)
        }
    })
}

/// The mean of values from `floor` to `ceiling`, its interval clipped to these, without a p.
fn bounded(values: &[f64], floor: f64, ceiling: f64) -> Option<Estimate> {
    if !values
        .iter()
        .all(|x| (floor - TINY..=ceiling + TINY).contains(x))
    {
        return None;
    }
    let estimate = interval(values)?;
    let ci95 = estimate.ci95.map(|ci| ci.clipped(floor, ceiling));
    Some(Estimate {
        center: estimate.center.clamp(floor, ceiling),
        ci95,
        p: None,
        ..estimate
    })
}

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

    fn ends(estimate: &Estimate) -> [f64; 2] {
        estimate.ci95.expect("an interval").into()
    }

    fn close(a: [f64; 2], b: [f64; 2]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 5e-7)
    }

    #[test]
    fn four_even_differences_are_told_from_nothing() {
        let estimate = interval(&[0.6, 0.4, 0.4, 0.5]).unwrap();
        assert!((estimate.center - 0.475).abs() < 1e-12);
        assert!((estimate.se.unwrap() - 0.047871).abs() < 5e-7);
        assert!(close(ends(&estimate), [0.322652, 0.627348]));
        assert!((estimate.p.unwrap() - 0.00217751).abs() < 5e-9);
        assert!(!estimate.degenerate);
    }

    #[test]
    fn sizes_have_a_geometric_mean_and_an_interval_of_factors() {
        let estimate = geometric_mean(&[100.0, 1_000.0, 10_000.0]).unwrap();
        assert!((estimate.center - 1_000.0).abs() < 1e-9);
        let [low, high] = ends(&estimate);
        assert!(
            (low * high - 1e6).abs() < 1e-3 && low > 0.0,
            "even on the logarithm, and never below 0"
        );
        let even = geometric_mean(&[7.0, 7.0]).unwrap();
        assert_eq!((even.center, even.ci95), (7.0, None));
        let empty = geometric_mean(&[0.0, 4.0]).unwrap();
        assert_eq!((empty.center, empty.ci95), (2.0, None));
        assert_eq!((geometric_mean(&[]), geometric_mean(&[-1.0])), (None, None));
    }

    #[test]
    fn sizes_of_two_sides_have_the_same_kind_of_mean() {
        let sizes = [100.0, 1_000.0, 10_000.0];
        assert_eq!(
            paired_sizes([&sizes, &[0.0, 1_000.0, 10_000.0]]),
            [Some(3_700.0), Some(11_000.0 / 3.0)]
        );
        let [one, other] = paired_sizes([&sizes, &[1_000.0]]);
        assert!(
            [one, other]
                .iter()
                .flatten()
                .all(|mean| (mean - 1_000.0).abs() < 1e-9)
        );
        assert_eq!(paired_sizes([&[], &[0.0]]), [None, Some(0.0)]);
    }

    #[test]
    fn a_level_has_an_interval_and_no_p() {
        let estimate = level(&[4.1, 3.3, 4.4, 3.8]).unwrap();
        assert!((estimate.center - 3.9).abs() < 1e-12);
        assert!(close(ends(&estimate), [3.153650, 4.646350]));
        assert_eq!(estimate.p, None);
    }

    #[test]
    fn a_level_is_clipped_to_the_scale() {
        assert_eq!(ends(&level(&[0.5, 4.5]).unwrap()), [0.0, 5.0]);
        assert_eq!(ends(&level(&[4.9, 5.0, 4.7]).unwrap())[1], 5.0);
        assert!(ends(&interval(&[4.9, 5.0, 4.7]).unwrap())[1] > 5.0);
        assert_eq!(level(&[4.0, 5.5]), None);
        assert_eq!(level(&[4.0, -0.1]), None);
    }

    #[test]
    fn a_share_is_clipped_and_equal_shares_have_no_interval() {
        // mean .5, s .408248, t(.975, 3) = 3.182446
        assert!(close(
            ends(&share(&[0.0, 0.5, 0.5, 1.0]).unwrap()),
            [0.0, 1.0]
        ));
        assert!(close(
            ends(&share(&[0.4, 0.5, 0.5, 0.6]).unwrap()),
            [0.370077, 0.629923]
        ));
        let none = share(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((none.center, none.ci95, none.p), (0.0, None, None));
        assert_eq!(
            (share(&[]), share(&[1.2]), share_difference(&[-1.2])),
            (None, None, None)
        );
        assert_eq!(ends(&share_difference(&[-0.9, 0.8]).unwrap()), [-1.0, 1.0]);
    }

    #[test]
    fn no_cluster_and_one_cluster_have_no_interval() {
        assert_eq!(interval(&[]), None);
        let one = interval(&[0.7]).unwrap();
        assert_eq!(
            (one.center, one.ci95, one.p, one.se, one.degenerate),
            (0.7, None, None, None, false)
        );
    }

    #[test]
    fn two_clusters_have_a_very_wide_interval() {
        let two = interval(&[0.0, 2.0]).unwrap();
        assert!((ends(&two)[1] - 1.0 - 12.7062).abs() < 5e-5);
    }

    #[test]
    fn equal_values_do_not_show_their_noise() {
        let zero = interval(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!(
            (zero.ci95, zero.p, zero.degenerate),
            (None, Some(1.0), true)
        );
        let half = interval(&[0.5; 5]).unwrap();
        assert_eq!((half.ci95, half.p, half.degenerate), (None, None, true));
        assert_eq!(
            level(&[5.0; 3]).unwrap().ci95,
            None,
            "a level at the ceiling"
        );
    }

    #[test]
    fn a_floor_stands_in_for_noise_that_clusters_do_not_show() {
        let floor = |floor| NoiseKnowledge {
            floor: Some(floor),
            usual_variance: None,
        };
        // t = 1 / 0.0745 = 13.42 with 2 degrees of freedom
        let even = estimate(&[-1.0; 3], floor(0.0745)).unwrap();
        assert!((even.p.unwrap() - 0.00551).abs() < 1e-5 && even.floored && even.degenerate);
        let noisy = estimate(&[-0.4, -0.6, -0.74], floor(0.0745)).unwrap();
        assert!(
            !noisy.floored && noisy.p > even.p,
            "more consistent evidence counts more"
        );
    }

    #[test]
    fn a_usual_variance_is_shared_and_a_larger_one_is_not() {
        let usual = |usual_variance| NoiseKnowledge {
            floor: None,
            usual_variance: Some(usual_variance),
        };
        // own variance .0091667; (4 · .02 + 3 · .0091667) / 7 = .0153571
        let shared = estimate(&[0.6, 0.4, 0.4, 0.5], usual(0.02)).unwrap();
        assert!((shared.se.unwrap().powi(2) * 4.0 - 0.107_5 / 7.0).abs() < 1e-9);
        assert_eq!(shared.df, 7);
        let noisy = estimate(&[2.0, -2.0, 1.0, -1.0], usual(0.02)).unwrap();
        assert_eq!(
            (noisy.df, noisy.se),
            (3, interval(&[2.0, -2.0, 1.0, -1.0]).unwrap().se)
        );
    }

    #[test]
    fn one_value_that_is_not_a_number_gives_no_estimate() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
            assert_eq!(interval(&[1.0, bad, 2.0]), None);
            assert_eq!(level(&[1.0, bad]), None);
        }
    }

    #[test]
    fn an_interval_is_written_as_its_two_ends() {
        assert_eq!(
            serde_json::to_string(&Interval::new(1.5, -0.5)).unwrap(),
            "[-0.5,1.5]"
        );
    }

    #[test]
    fn a_one_sided_bound_lies_below_the_mean() {
        // t(.95, 3) = 2.35336, s = 0.0957427, mean .475
        assert!((lower_bound(&[0.6, 0.4, 0.4, 0.5]).unwrap() - 0.362340).abs() < 1e-5);
        assert_eq!(
            (
                lower_bound(&[2.0, 2.0]),
                lower_bound(&[1.0]),
                lower_bound(&[])
            ),
            (Some(2.0), None, None)
        );
    }
}

#[cfg(test)]
mod rerun_tests {
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
