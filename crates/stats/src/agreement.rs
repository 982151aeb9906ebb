//! Agreement of two raters over the same things, and of one rater with itself: how far it strays, and whether it has changed
//! between the two sides of a comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::center::{mean, mean_of, sample_sd, sample_variance, usable};
use super::distribution::StudentT;
use super::interval::Interval;
use super::thresholds::{ALPHA_WARNING, FAR_APART, MIN_PAIRS, TINY, UPPER_TAIL};
use base::named_enum;

/// A coefficient of agreement, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// 1 is perfect; `None` with a `reason`.
    pub value: Option<f64>,
    /// Why there is no value.
    pub reason: Option<NoCoefficient>,
    /// Pairs (for alpha: units with two scores or more) that it rests on.
    pub pairs: usize,
}

named_enum! {
    /// Why a coefficient is undefined.
    pub enum NoCoefficient {
        /// All scores are equal, which shows neither agreement nor its lack.
        NoVariation = "no variation",
        /// Nothing was scored twice.
        TooFew = "too few",
        /// A score is not a usable number.
        NotANumber = "not a number",
    }
}

impl Coefficient {
    pub(super) fn new(value: Result<f64, NoCoefficient>, pairs: usize) -> Coefficient {
        Coefficient {
            value: value.ok(),
            reason: value.err(),
            pairs,
        }
    }

    /// It rests on under 30 pairs: worth a warning.
    pub fn rests_on_few(&self) -> bool {
        self.pairs < MIN_PAIRS
    }

    /// As an alpha, it is too low for even tentative conclusions.
    pub fn is_low_alpha(&self) -> bool {
        self.value.is_some_and(|value| value < ALPHA_WARNING)
    }
}

/// How two raters agree. No single number says enough: kappa depends on how the scores are spread, a rank correlation
/// does not see leniency, and shares do not know chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Things that both rated.
    pub pairs: usize,
    /// Share of equal scores; `None` without a pair.
    pub exact: Option<f64>,
    /// Share of scores at most 1 apart.
    pub within_one: Option<f64>,
    /// Mean of first minus second: above 0, the first rater is the more lenient.
    pub mean_difference: Option<f64>,
    /// Spearman's rank correlation.
    pub spearman: Coefficient,
    /// Cohen's kappa with quadratic weights.
    pub quadratic_kappa: Coefficient,
    /// Intervals: how far each number would move with other things of the same kind.
    pub ci95: AgreementIntervals,
}

/// 95% intervals of an [`Agreement`]; `None` with under 5 groups, and where leaving a group out changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgreementIntervals {
    /// Of the share of equal scores.
    pub exact: Option<Interval>,
    /// Of the share at most 1 apart.
    pub within_one: Option<Interval>,
    /// Of the mean difference.
    pub mean_difference: Option<Interval>,
    /// Of Spearman's rank correlation.
    pub spearman: Option<Interval>,
    /// Of the quadratic kappa.
    pub quadratic_kappa: Option<Interval>,
}

/// Compares two raters, given as (first, second) for each thing that both rated. Scores may lie between whole numbers.
/// If one of them is not a usable number, nothing is computed.
///
/// Pairs come in groups that are independent of one another, such as the scores of one answer: those of a group vary
/// together, and intervals that treated them as independent would be too narrow. The intervals are those of the
/// jackknife that leaves out one group at a time (Efron and Stein 1981), with Student's t.
pub fn agreement(groups: &[Vec<(f64, f64)>]) -> Agreement {
    let whole = point_agreement(&groups.concat());
    Agreement {
        ci95: intervals(groups, &whole),
        ..whole
    }
}

/// The fewest groups that give an interval.
const MIN_GROUPS: usize = 5;

fn intervals(groups: &[Vec<(f64, f64)>], whole: &Agreement) -> AgreementIntervals {
    if groups.len() < MIN_GROUPS {
        return AgreementIntervals::default();
    }
    let partial: Vec<Agreement> = (0..groups.len())
        .map(|left_out| point_agreement(&pairs_without(groups, left_out)))
        .collect();
    let jackknife =
        |value: fn(&Agreement) -> Option<f64>| jackknife_interval(&partial, whole, value);
    AgreementIntervals {
        exact: jackknife(|part| part.exact).map(|ci| ci.clipped(0.0, 1.0)),
        within_one: jackknife(|part| part.within_one).map(|ci| ci.clipped(0.0, 1.0)),
        mean_difference: jackknife(|part| part.mean_difference),
        spearman: jackknife(|part| part.spearman.value).map(|ci| ci.clipped(-1.0, 1.0)),
        quadratic_kappa: jackknife(|part| part.quadratic_kappa.value)
            .map(|ci| ci.clipped(-1.0, 1.0)),
    }
}

fn pairs_without(groups: &[Vec<(f64, f64)>], left_out: usize) -> Vec<(f64, f64)> {
    let others = groups
        .iter()
        .enumerate()
        .filter(|(group, _)| *group != left_out);
    others
        .flat_map(|(_, pairs)| pairs.iter().copied())
        .collect()
}

/// The interval about a value of `whole`, from the same value of each of `partial`, which lacks one group.
fn jackknife_interval(
    partial: &[Agreement],
    whole: &Agreement,
    value: fn(&Agreement) -> Option<f64>,
) -> Option<Interval> {
    let values: Option<Vec<f64>> = partial.iter().map(value).collect();
    let count = partial.len() as f64;
    // The standard error of the jackknife: the spread of the values, times (G − 1) / √G.
    let se = sample_sd(&values?).filter(|sd| *sd > TINY)? * (count - 1.0) / count.sqrt();
    let reach = StudentT::new(partial.len() - 1)?.quantile(UPPER_TAIL)? * se;
    Interval::around(value(whole)?, reach)
}

fn point_agreement(pairs: &[(f64, f64)]) -> Agreement {
    let all_usable = pairs.iter().all(|(a, b)| usable(*a) && usable(*b));
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let known = if all_usable {
        differences.as_slice()
    } else {
        &[]
    };
    let computable = match (pairs.len() > 1, all_usable) {
        (_, false) => Err(NoCoefficient::NotANumber),
        (false, true) => Err(NoCoefficient::TooFew),
        (true, true) => Ok(pairs),
    };
    let spearman = computable.and_then(|pairs| spearman(pairs).ok_or(NoCoefficient::NoVariation));
    let kappa =
        computable.and_then(|pairs| quadratic_kappa(pairs).ok_or(NoCoefficient::NoVariation));
    Agreement {
        pairs: pairs.len(),
        exact: share(known, |d| d.abs() < TINY),
        within_one: share(known, |d| d.abs() < 1.0 + TINY),
        mean_difference: mean(known),
        spearman: Coefficient::new(spearman, pairs.len()),
        quadratic_kappa: Coefficient::new(kappa, pairs.len()),
        ci95: AgreementIntervals::default(),
    }
}

fn share(values: &[f64], holds: impl Fn(&f64) -> bool) -> Option<f64> {
    let count = values.iter().filter(|x| holds(x)).count();
    (!values.is_empty()).then(|| count as f64 / values.len() as f64)
}

/// 1 − mean (a − b)² over its expectation if scores were dealt out by chance (Cohen 1968, Psychological Bulletin 70).
/// With quadratic weights no categories are needed: that expectation is the mean of (a_i − b_j)² over all i and j.
fn quadratic_kappa(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mean_a, mean_b) = (mean(&a)?, mean(&b)?);
    let spread_a = mean_of(a.iter().map(|x| (x - mean_a).powi(2)))?;
    let spread_b = mean_of(b.iter().map(|x| (x - mean_b).powi(2)))?;
    let by_chance = spread_a + spread_b + (mean_a - mean_b).powi(2);
    let observed = mean_of(pairs.iter().map(|(a, b)| (a - b).powi(2)))?;
    (by_chance > TINY * TINY).then(|| 1.0 - observed / by_chance)
}

/// Pearson's correlation of average ranks; `None` if either side does not vary.
fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (rank_deviations(&a), rank_deviations(&b));
    let norm = (dot_product(&a, &a) * dot_product(&b, &b)).sqrt();
    (norm > 0.0).then(|| (dot_product(&a, &b) / norm).clamp(-1.0, 1.0))
}

fn dot_product(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Ranks less their mean; equal values share the mean of their ranks.
fn rank_deviations(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let center = (values.len() as f64 + 1.0) / 2.0;
    let deviations = values.iter().map(|x| {
        let below = sorted.partition_point(|other| other < x);
        let not_above = sorted.partition_point(|other| other <= x);
        (below + 1 + not_above) as f64 / 2.0 - center
    });
    deviations.collect()
}

/// How far one rater strays when rating the same things again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatSpread {
    /// Standard deviation of one rating about the rater's own mean, in points.
    pub sigma: f64,
    /// Share of pairs of ratings that lie 2 points or more apart.
    pub far_share: f64,
    /// Pairs of ratings of the same thing.
    pub pairs: usize,
}

/// The spread of a rater, from a list of repeated ratings for each thing: σ² is half the mean squared difference over
/// all pairs of ratings of the same thing. `None` if nothing was rated twice, or if a rating is not a usable number.
pub fn repeat_spread(things: &[Vec<f64>]) -> Option<RepeatSpread> {
    if !things.iter().flatten().all(|x| usable(*x)) {
        return None;
    }
    let (mut squares, mut far, mut pairs) = (0.0, 0_usize, 0_usize);
    for ratings in things {
        for (place, one) in ratings.iter().enumerate() {
            for other in ratings.iter().skip(place + 1) {
                squares += (one - other).powi(2);
                far += usize::from((one - other).abs() > FAR_APART - TINY);
                pairs += 1;
            }
        }
    }
    let count = pairs as f64;
    (pairs > 0).then(|| RepeatSpread {
        sigma: (squares / count / 2.0).sqrt(),
        far_share: far as f64 / count,
        pairs,
    })
}

/// How many answers of the baseline are graded again to check a difference of this many points.
pub fn regraded_answers(difference: f64) -> usize {
    if difference.abs() >= 1.0 { 20 } else { 60 }
}

/// The same answers, graded twice: then, and today.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regrading {
    /// The number of answers.
    pub answers: usize,
    /// The mean over the answers of the second grade minus the first.
    pub shift: f64,
    /// The variance of this mean; `None` with one answer.
    pub variance: Option<f64>,
}

impl Regrading {
    /// From grades of the same answers, in the same order; `None` without a pair of usable numbers.
    pub fn between(first: &[f64], second: &[f64]) -> Option<Regrading> {
        let shifts: Vec<f64> = first
            .iter()
            .zip(second)
            .map(|(first, second)| second - first)
            .collect();
        let answers = shifts.len();
        Some(Regrading {
            answers,
            shift: mean_of(shifts.iter().copied())?,
            variance: sample_variance(&shifts).map(|variance| variance / answers as f64),
        })
    }

    /// Whether the judge has changed in the direction of a difference, by half of it or more: its shift is beyond chance.
    pub fn explains(&self, difference: f64) -> bool {
        let t = StudentT::new(self.answers.saturating_sub(1)).and_then(|t| t.quantile(UPPER_TAIL));
        let half = t
            .zip(self.variance)
            .map(|(t, variance)| t * variance.sqrt());
        difference != 0.0
            && self.shift * difference.signum() >= EXPLAINED * difference.abs()
            && half.is_some_and(|half| self.shift.abs() > half)
    }
}

/// The part of a difference from which on the judge's shift explains it.
const EXPLAINED: f64 = 0.5;

/// Krippendorff's alpha with the ordinal metric: how far several observers agree, beyond chance ("Computing Krippendorff's
/// Alpha-Reliability", 2011). Scores on a scale with anchors are ordinal: how far 3 and 4 lie apart is not known to be as far
/// as 4 and 5.
///
/// Alpha over units, each given as the list of its scores, by any number of observers; missing scores are simply not
/// listed. Units with fewer than two scores are ignored. 1 is perfect agreement, 0 that of chance.
pub fn krippendorff_alpha(units: &[Vec<u8>]) -> Coefficient {
    let rated: Vec<&[u8]> = units
        .iter()
        .map(Vec::as_slice)
        .filter(|unit| unit.len() > 1)
        .collect();
    let table = Coincidences::from_units(&rated);
    let value = match (table.total > 0.0, table.counts.len() > 1) {
        (false, _) => Err(NoCoefficient::TooFew),
        (true, false) => Err(NoCoefficient::NoVariation),
        (true, true) => table.alpha().ok_or(NoCoefficient::NoVariation),
    };
    Coefficient::new(value, rated.len())
}

/// How often two values occur in the same unit. A unit weighs as much as it has scores.
#[derive(Default)]
struct Coincidences {
    /// o_ck, for the pairs that occur
    meetings: BTreeMap<(u8, u8), f64>,
    /// n_c
    counts: BTreeMap<u8, f64>,
    /// n
    total: f64,
}

impl Coincidences {
    fn from_units(units: &[&[u8]]) -> Coincidences {
        let mut table = Coincidences::default();
        for unit in units {
            let mut score_counts: BTreeMap<u8, f64> = BTreeMap::new();
            for score in *unit {
                *score_counts.entry(*score).or_default() += 1.0;
            }
            let others = unit.len() as f64 - 1.0;
            for (c, count) in &score_counts {
                for (k, other) in &score_counts {
                    let pairs = if c == k {
                        count * (count - 1.0)
                    } else {
                        count * other
                    };
                    *table.meetings.entry((*c, *k)).or_default() += pairs / others;
                }
                *table.counts.entry(*c).or_default() += count;
            }
            table.total += unit.len() as f64;
        }
        table
    }

    /// 1 − (n−1) Σ o δ² / Σ n_c n_k δ²
    fn alpha(&self) -> Option<f64> {
        let observed: f64 = self
            .meetings
            .iter()
            .map(|((c, k), o)| o * self.distance(*c, *k))
            .sum();
        let expected: f64 = self
            .counts
            .iter()
            .map(|(c, n_c)| {
                self.counts
                    .iter()
                    .map(|(k, n_k)| n_c * n_k * self.distance(*c, *k))
                    .sum::<f64>()
            })
            .sum();
        (expected > 0.0).then(|| 1.0 - (self.total - 1.0) * observed / expected)
    }

    /// δ², the squared distance of two values: it grows with the number of scores between them.
    fn distance(&self, c: u8, k: u8) -> f64 {
        if c == k {
            return 0.0;
        }
        let between: f64 = self.counts.range(c.min(k)..=c.max(k)).map(|(_, n)| n).sum();
        (between - (self.count_of(c) + self.count_of(k)) / 2.0).powi(2)
    }

    fn count_of(&self, value: u8) -> f64 {
        self.counts.get(&value).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_of_half_the_loss_in_the_same_direction_explains_it() {
        let first = [3.0, 4.0, 5.0, 3.0, 4.0, 4.0];
        let second = [2.5, 3.5, 4.5, 2.5, 3.5, 3.4];
        let harsher = Regrading::between(&first, &second).unwrap();
        assert!((harsher.shift + 3.1 / 6.0).abs() < 1e-12 && harsher.answers == 6);
        assert!(harsher.explains(-1.0) && harsher.explains(-0.4));
        assert!(!harsher.explains(-1.1) && !harsher.explains(1.0) && !harsher.explains(0.0));
        let chance = Regrading::between(&first, &[0.0, 4.0, 5.0, 3.0, 4.0, 4.0]).unwrap();
        assert!(!chance.explains(-0.6), "one answer alone moved");
        let one = Regrading::between(&[2.0], &[3.0]).unwrap();
        assert!(one.variance.is_none() && !one.explains(1.5));
    }

    #[test]
    fn a_regrading_needs_answers_and_numbers() {
        assert_eq!(Regrading::between(&[], &[1.0]), None);
        assert_eq!(Regrading::between(&[f64::NAN], &[1.0]), None);
    }

    /// Pairs that are all independent of one another.
    fn agreement(pairs: &[(f64, f64)]) -> Agreement {
        super::agreement(&pairs.iter().map(|pair| vec![*pair]).collect::<Vec<_>>())
    }

    #[test]
    fn intervals_hold_the_value_and_widen_with_groups_that_move_together() {
        let pairs: Vec<(f64, f64)> = (0..40)
            .map(|n| (f64::from(n % 6), f64::from((n % 6 + n % 2).min(5))))
            .collect();
        let lone = agreement(&pairs);
        let interval = lone.ci95.quadratic_kappa.unwrap();
        assert!(
            interval.contains(lone.quadratic_kappa.value.unwrap()) && interval.width() < 0.5,
            "{lone:?}"
        );
        assert!(lone.ci95.exact.unwrap().contains(lone.exact.unwrap()));
        let twice: Vec<Vec<(f64, f64)>> = pairs.iter().map(|pair| vec![*pair; 2]).collect();
        let (doubled, separate) = (super::agreement(&twice), agreement(&twice.concat()));
        assert!(doubled.ci95.exact.unwrap().width() > 1.2 * separate.ci95.exact.unwrap().width());
    }

    #[test]
    fn the_interval_of_a_mean_is_the_t_interval() {
        // for a mean the jackknife gives s/√n: differences 1 0 1 0 1, mean .6, s .547723, t(.975, 4) = 2.776445
        let result = agreement(&[(1.0, 0.0), (2.0, 2.0), (3.0, 2.0), (4.0, 4.0), (5.0, 4.0)]);
        let interval = result.ci95.mean_difference.unwrap();
        assert!(
            (interval.low() - (0.6 - 0.680087)).abs() < 1e-5,
            "{interval:?}"
        );
        assert_eq!(
            (
                result.ci95.within_one,
                agreement(&[(1.0, 0.0); 4]).ci95.exact
            ),
            (None, None)
        );
    }

    fn zip(a: &[f64], b: &[f64]) -> Vec<(f64, f64)> {
        a.iter().copied().zip(b.iter().copied()).collect()
    }

    fn kappa(pairs: &[(f64, f64)]) -> f64 {
        agreement(pairs).quadratic_kappa.value.unwrap()
    }

    #[test]
    fn quadratic_kappa_matches_published_values() {
        let rater = |zeros: usize, ones: usize| -> Vec<f64> {
            (0..100)
                .map(|n| {
                    if n < zeros {
                        0.0
                    } else if n < zeros + ones {
                        1.0
                    } else {
                        2.0
                    }
                })
                .collect()
        };
        assert!((kappa(&zip(&rater(46, 44), &rater(50, 40))) - 0.9541).abs() < 5e-5);
        let essays = [9.0, 7.0, 8.0, 7.0, 6.0, 8.0, 3.0, 5.0, 10.0];
        let second = [8.0, 8.0, 6.0, 6.0, 7.0, 6.0, 1.0, 4.0, 8.0];
        let third = [3.0, 5.0, 6.0, 6.0, 7.0, 6.0, 1.0, 4.0, 8.0];
        assert!((kappa(&zip(&essays, &second)) - 0.758620689655).abs() < 5e-13);
        assert!((kappa(&zip(&essays, &third)) - 0.438095238095).abs() < 5e-13);
    }

    #[test]
    fn spearman_matches_known_values_with_and_without_ties() {
        let quotients = [
            106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0,
        ];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let plain = agreement(&zip(&quotients, &hours)).spearman.value.unwrap();
        assert!((plain + 29.0 / 165.0).abs() < 1e-12);
        let tied = agreement(&zip(
            &[1.0, 2.0, 2.0, 4.0, 5.0, 5.0],
            &[1.0, 3.0, 2.0, 4.0, 4.0, 5.0],
        ));
        assert!((tied.spearman.value.unwrap() - 0.940403).abs() < 5e-7);
    }

    #[test]
    fn shares_and_leniency_stand_beside_the_coefficients() {
        let result = agreement(&zip(&[5.0, 4.0, 3.0, 5.0], &[5.0, 3.0, 1.0, 4.5]));
        assert_eq!(
            (result.exact, result.within_one, result.mean_difference),
            (Some(0.25), Some(0.75), Some(0.875))
        );
        assert!(result.spearman.rests_on_few());
    }

    #[test]
    fn equal_scores_are_no_agreement() {
        let result = agreement(&[(4.0, 4.0); 40]);
        for coefficient in [result.spearman, result.quadratic_kappa] {
            assert_eq!(
                (coefficient.value, coefficient.reason),
                (None, Some(NoCoefficient::NoVariation))
            );
            assert!(!coefficient.rests_on_few());
        }
        assert_eq!(result.exact, Some(1.0));
    }

    #[test]
    fn nothing_to_compare_has_its_reason() {
        assert_eq!(agreement(&[]).spearman.reason, Some(NoCoefficient::TooFew));
        let bad = agreement(&[(1.0, 2.0), (f64::NAN, 2.0)]);
        assert_eq!(
            (bad.exact, bad.quadratic_kappa.reason),
            (None, Some(NoCoefficient::NotANumber))
        );
    }

    #[test]
    fn a_rater_is_compared_with_itself() {
        let spread =
            repeat_spread(&[vec![4.0, 5.0], vec![3.0, 3.0], vec![1.0, 3.0], vec![2.0]]).unwrap();
        assert!((spread.sigma - (5.0_f64 / 3.0 / 2.0).sqrt()).abs() < 1e-12);
        assert_eq!((spread.far_share, spread.pairs), (1.0 / 3.0, 3));
        assert_eq!(
            (
                repeat_spread(&[vec![1.0]]),
                repeat_spread(&[vec![f64::NAN, 1.0]])
            ),
            (None, None)
        );
    }

    /// The scores of four observers for twelve units; a dot is a missing score.
    fn published() -> Vec<Vec<u8>> {
        let observers = [
            "123321412...",
            "1233224125.3",
            ".3332342251.",
            "12332441251.",
        ];
        (0..12)
            .map(|unit| {
                observers
                    .iter()
                    .filter_map(|row| digit(row, unit))
                    .collect()
            })
            .collect()
    }

    fn digit(row: &str, place: usize) -> Option<u8> {
        row.chars().nth(place)?.to_digit(10)?.try_into().ok()
    }

    #[test]
    fn the_published_example_comes_out() {
        let alpha = krippendorff_alpha(&published());
        assert!((alpha.value.unwrap() - 0.815).abs() < 5e-4);
        // the twelfth unit has a single score
        assert_eq!(alpha.pairs, 11);
    }

    #[test]
    fn perfect_agreement_is_one_and_constant_scores_have_no_alpha() {
        assert_eq!(
            krippendorff_alpha(&[vec![1, 1], vec![5, 5]]).value,
            Some(1.0)
        );
        let constant = krippendorff_alpha(&[vec![4, 4], vec![4, 4]]);
        assert_eq!(
            (constant.value, constant.reason),
            (None, Some(NoCoefficient::NoVariation))
        );
        let lone = krippendorff_alpha(&[vec![4], vec![]]);
        assert_eq!(
            (lone.value, lone.reason),
            (None, Some(NoCoefficient::TooFew))
        );
    }
}
