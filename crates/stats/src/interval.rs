//! The cluster t interval: mean ± t(.975, G−1) · s/√G over the values of G clusters.
//!
//! Valid, and at worst too wide, when clusters differ in size and noise (Ibragimov and Müller 2010, Journal of Business
//! & Economic Statistics 28). `tools/coverage.rs` measures how often it covers the truth.

use serde::{Deserialize, Serialize};

use super::center::{mean, sample_sd, usable};
use super::distribution::StudentT;
use super::thresholds::{SCALE, TINY, UPPER_TAIL};

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
        (usable(one) && usable(other)).then(|| Interval { low: one.min(other), high: one.max(other) })
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

    /// Distance of the ends.
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

    pub(super) fn clipped(self, (floor, ceiling): (f64, f64)) -> Interval {
        Interval { low: self.low.clamp(floor, ceiling), high: self.high.clamp(floor, ceiling) }
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
    /// 95% cluster t interval; `None` with one cluster.
    pub ci95: Option<Interval>,
    /// Two-sided p of a true mean of 0; `None` with one cluster, and for a level, where 0 is no hypothesis.
    pub p: Option<f64>,
    /// Standard error of the mean; `None` with one cluster.
    pub se: Option<f64>,
    /// G, the number of clusters.
    pub clusters: usize,
    /// All clusters gave the same value: the interval is a point, and says nothing of noise.
    pub degenerate: bool,
}

/// The mean of one value a cluster, with its interval and p.
///
/// If all values are equal (sd under 1e-9) the interval is that point, and p is 1 for a mean of 0. For another mean p is
/// the smaller one of a sign test, 2^(1−G), and of a t test with the spread that rounding alone causes: a sign test
/// alone would need six clusters to see a loss of any size. `None` for no values, or if one of them is no usable
/// number: silently leaving it out would change what is estimated.
pub fn interval(values: &[f64]) -> Option<Estimate> {
    let center = mean(values)?;
    let clusters = values.len();
    let lone = Estimate { center, ci95: None, p: None, se: None, clusters, degenerate: false };
    let (Some(sd), Some(t)) = (sample_sd(values), StudentT::new(clusters - 1)) else { return Some(lone) };
    if sd < TINY {
        return Some(degenerate(center, clusters, t));
    }
    let se = sd / (clusters as f64).sqrt();
    let ci95 = Interval::around(center, t.quantile(UPPER_TAIL)? * se);
    Some(Estimate { ci95, p: Some(t.two_sided_p(center / se)), se: Some(se), ..lone })
}

/// The lower end of the one-sided 95% t interval of the mean of `values`, taken as independent; their mean if they do not
/// differ. `None` under 2 values.
pub fn lower_bound(values: &[f64]) -> Option<f64> {
    let (center, sd, t) = (mean(values)?, sample_sd(values)?, StudentT::new(values.len() - 1)?);
    Some(center - t.quantile(0.95)? * sd / (values.len() as f64).sqrt())
}

fn degenerate(center: f64, clusters: usize, t: StudentT) -> Estimate {
    let center = if center.abs() < TINY { 0.0 } else { center };
    let p = if center == 0.0 { 1.0 } else { p_of_equal(center, clusters, t) };
    let ci95 = Interval::new(center, center);
    Estimate { center, ci95, p: Some(p), se: Some(0.0), clusters, degenerate: true }
}

/// Equal values hide their spread. That of one pair of grades, each rounded to a whole number, bounds it from above:
/// a cluster's value is a mean over several.
fn p_of_equal(center: f64, clusters: usize, t: StudentT) -> f64 {
    let sign = 0.5_f64.powf((clusters - 1) as f64);
    let rounding_sd = (2.0_f64 / 12.0).sqrt();
    sign.min(t.two_sided_p(center * (clusters as f64).sqrt() / rounding_sd))
}

/// The mean of one score a cluster, its interval clipped to the scale of 0 to 5. No p.
///
/// `None` for no values, or if one of them does not lie on the scale.
pub fn level(values: &[f64]) -> Option<Estimate> {
    let (floor, ceiling) = SCALE;
    if !values.iter().all(|x| (floor - TINY..=ceiling + TINY).contains(x)) {
        return None;
    }
    let estimate = interval(values)?;
    let center = estimate.center.clamp(floor, ceiling);
    Some(Estimate { center, ci95: estimate.ci95.map(|ci| ci.clipped(SCALE)), p: None, ..estimate })
}

/// The mean of one share a cluster, its interval clipped to 0 and 1. No p, and no interval where all are equal: that
/// none of a few clusters has any does not show that none ever will.
///
/// `None` for no values, or if one of them is no share.
pub fn share(values: &[f64]) -> Option<Estimate> {
    bounded(values, (0.0, 1.0))
}

/// The same of differences of shares, from −1 to 1.
pub fn share_difference(values: &[f64]) -> Option<Estimate> {
    bounded(values, (-1.0, 1.0))
}

fn bounded(values: &[f64], (floor, ceiling): (f64, f64)) -> Option<Estimate> {
    if !values.iter().all(|x| (floor - TINY..=ceiling + TINY).contains(x)) {
        return None;
    }
    let estimate = interval(values)?;
    let ci95 = estimate.ci95.filter(|_| !estimate.degenerate).map(|ci| ci.clipped((floor, ceiling)));
    Some(Estimate { center: estimate.center.clamp(floor, ceiling), ci95, p: None, ..estimate })
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
        let found = interval(&[0.6, 0.4, 0.4, 0.5]).unwrap();
        assert!((found.center - 0.475).abs() < 1e-12);
        assert!((found.se.unwrap() - 0.047871).abs() < 5e-7);
        assert!(close(ends(&found), [0.322652, 0.627348]));
        assert!((found.p.unwrap() - 0.00217751).abs() < 5e-9);
        assert!(!found.degenerate);
    }

    #[test]
    fn a_level_has_an_interval_and_no_p() {
        let found = level(&[4.1, 3.3, 4.4, 3.8]).unwrap();
        assert!((found.center - 3.9).abs() < 1e-12);
        assert!(close(ends(&found), [3.153650, 4.646350]));
        assert_eq!(found.p, None);
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
        assert!(close(ends(&share(&[0.0, 0.5, 0.5, 1.0]).unwrap()), [0.0, 1.0]));
        assert!(close(ends(&share(&[0.4, 0.5, 0.5, 0.6]).unwrap()), [0.370077, 0.629923]));
        let none = share(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((none.center, none.ci95, none.p), (0.0, None, None));
        assert_eq!((share(&[]), share(&[1.2]), share_difference(&[-1.2])), (None, None, None));
        assert_eq!(ends(&share_difference(&[-0.9, 0.8]).unwrap()), [-1.0, 1.0]);
    }

    #[test]
    fn no_cluster_and_one_cluster_have_no_interval() {
        assert_eq!(interval(&[]), None);
        let one = interval(&[0.7]).unwrap();
        assert_eq!((one.center, one.ci95, one.p, one.se, one.degenerate), (0.7, None, None, None, false));
    }

    #[test]
    fn two_clusters_have_a_very_wide_interval() {
        let two = interval(&[0.0, 2.0]).unwrap();
        assert!((ends(&two)[1] - 1.0 - 12.7062).abs() < 5e-5);
    }

    #[test]
    fn equal_values_are_a_point() {
        let zero = interval(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((ends(&zero), zero.p, zero.degenerate), ([0.0, 0.0], Some(1.0), true));
        let half = interval(&[0.5; 5]).unwrap();
        assert_eq!((ends(&half), half.degenerate), ([0.5, 0.5], true));
    }

    #[test]
    fn equal_small_losses_need_six_clusters_and_equal_large_ones_three() {
        let p = |value: f64, clusters: usize| interval(&vec![value; clusters]).unwrap().p.unwrap();
        // t = 0.5 √5 / √(2/12) = 2.7386 with 4 degrees of freedom
        assert!((p(-0.5, 5) - 0.0519).abs() < 1e-4);
        assert_eq!(p(-0.1, 6), 0.03125);
        assert!(p(-4.0, 3) < 0.004 && p(-1.0, 3) > 0.05);
    }

    #[test]
    fn one_value_that_is_no_number_refuses_all() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
            assert_eq!(interval(&[1.0, bad, 2.0]), None);
            assert_eq!(level(&[1.0, bad]), None);
        }
    }

    #[test]
    fn an_interval_is_written_as_its_two_ends() {
        assert_eq!(serde_json::to_string(&Interval::new(1.5, -0.5)).unwrap(), "[-0.5,1.5]");
    }

    #[test]
    fn a_one_sided_bound_lies_below_the_mean() {
        // t(.95, 3) = 2.35336, s = 0.0957427, mean .475
        assert!((lower_bound(&[0.6, 0.4, 0.4, 0.5]).unwrap() - 0.362340).abs() < 1e-5);
        assert_eq!((lower_bound(&[2.0, 2.0]), lower_bound(&[1.0]), lower_bound(&[])), (Some(2.0), None, None));
    }
}
