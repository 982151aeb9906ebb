//! What a design can show before it is paid for.
//!
//! The variance of the mean difference of two methods, with G clusters, p items each, R runs, a answers and j gradings:
//!
//! V = F/G + P/(G·p) + e(R)/(R·G) · (C + PC/p + A/(p·a) + J/(p·a·j))
//!
//! F and P are how the difference varies over clusters and items; C, PC, A and J are the noise of runs, added over both
//! methods. e(R) is the price of a median over R runs in place of a mean.

use serde::Serialize;

use super::distribution::{StudentT, normal_cdf};
use super::thresholds::{ALPHA, MARGIN, MIN_CLUSTERS, POWER};

/// The variances of a difference of two methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DifferenceVariances {
    /// F: of the difference over clusters.
    pub fixture: f64,
    /// P: of the difference over the items of a cluster.
    pub probe: f64,
    /// C: of runs as wholes.
    pub compress_run: f64,
    /// PC: of an item in a run.
    pub compress_probe: f64,
    /// A: of answers.
    pub answer: f64,
    /// J: of gradings.
    pub judge: f64,
}

/// How often everything is measured. The number of items may be a mean over clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampleSizes {
    /// G, the clusters.
    pub fixtures: usize,
    /// p, the items of a cluster.
    pub probes: f64,
    /// R, the runs of each cluster.
    pub runs: u32,
    /// a, the answers per run and item.
    pub answers: u32,
    /// j, the gradings per answer.
    pub judgements: u32,
}

/// The variance of the median of `runs` normal values divided by that of their mean; beyond the table, its limit.
fn median_factor(runs: u32) -> f64 {
    const FACTORS: [f64; 9] = [1.0, 1.0, 1.346, 1.192, 1.434, 1.288, 1.473, 1.346, 1.495];
    let place = (runs.max(1) - 1) as usize;
    FACTORS
        .get(place)
        .copied()
        .unwrap_or(std::f64::consts::FRAC_PI_2)
}

/// The conditions of a verdict; `None` if the design has too few clusters for one.
fn finding(design: &SampleSizes) -> Option<Finding> {
    let df = design.fixtures.checked_sub(1)?;
    (design.fixtures >= MIN_CLUSTERS).then_some(Finding {
        df,
        alpha: ALPHA,
        margin: MARGIN,
    })
}

impl DifferenceVariances {
    /// V, the variance of the mean difference.
    fn variance_of_mean(&self, design: &SampleSizes) -> f64 {
        let (clusters, items, runs) = (
            design.fixtures as f64,
            design.probes,
            f64::from(design.runs),
        );
        let (answers, gradings) = (f64::from(design.answers), f64::from(design.judgements));
        let within = self.compress_run
            + self.compress_probe / items
            + self.answer / (items * answers)
            + self.judge / (items * answers * gradings);
        self.fixture / clusters
            + self.probe / (clusters * items)
            + median_factor(design.runs) / (runs * clusters) * within
    }

    /// The smallest true difference that gets a verdict in 80% of repetitions; `None` where there is no verdict.
    pub fn smallest_detectable(&self, design: &SampleSizes) -> Option<f64> {
        finding(design)?.smallest_at(self.variance_of_mean(design).sqrt())
    }
}

/// Points of the integrals: 20 give the same as 200, to one part in a hundred.
const POINTS: u32 = 20;
/// The relative precision of the search.
const PRECISION: f64 = 1e-3;
/// Where the search gives up: far above any score.
const MOST: f64 = 1e6;

/// The conditions on which a difference counts as found: it is significant and at least the margin.
///
/// The smallest true difference that is found in 80% of repetitions is usually computed as (t(1−α/2) + t(.8)) · se (Bloom 1995,
/// Evaluation Review 19). That takes the standard error as known, so fewer than 80% of the differences that it names are
/// found. Here every repetition has a standard error of its own, and one that was estimated from the data is itself
/// uncertain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    /// Degrees of freedom of the standard error.
    pub df: usize,
    /// The level of the two-sided test.
    pub alpha: f64,
    /// The smallest difference that gets a verdict.
    pub margin: f64,
}

/// Values of the ratio of an estimated variance to the true one, with their weights: χ² with `df` degrees of freedom,
/// divided by `df`. They are midpoints on a log scale, where the density is smooth and close to a normal one.
fn variance_ratios(df: usize) -> Vec<(f64, f64)> {
    let (df, sd) = (df as f64, (2.0 / df as f64).sqrt());
    let (low, high) = (-12.0 * sd, 4.0 * sd);
    let logs =
        (0..POINTS).map(|step| low + (high - low) * (f64::from(step) + 0.5) / f64::from(POINTS));
    let points: Vec<(f64, f64)> = logs
        .map(|log| (log.exp(), (df / 2.0 * (log - log.exp() + 1.0)).exp()))
        .collect();
    let total: f64 = points.iter().map(|(_, weight)| weight).sum();
    points
        .into_iter()
        .map(|(ratio, weight)| (ratio, weight / total))
        .collect()
}

fn mean_over(ratios: &[(f64, f64)], value: impl Fn(f64) -> f64) -> f64 {
    ratios
        .iter()
        .map(|(ratio, weight)| weight * value(*ratio))
        .sum()
}

impl Finding {
    /// The chance that a true difference is found, if the true standard error is `se`; `None` without degrees of
    /// freedom.
    #[cfg(test)]
    fn power(&self, difference: f64, se: f64) -> Option<f64> {
        let critical = self.critical()?;
        Some(self.chance(difference, se, critical, &variance_ratios(self.df)))
    }

    /// The smallest difference that is found in 80% of repetitions, if the true standard error is `se`.
    pub(super) fn smallest_at(&self, se: f64) -> Option<f64> {
        let (critical, ratios) = (self.critical()?, variance_ratios(self.df));
        self.search(se, |difference| {
            self.chance(difference, se, critical, &ratios)
        })
    }

    /// The same if `se` was estimated: the chance is averaged over the true errors that it may come from.
    pub(super) fn smallest_estimated(&self, se: f64) -> Option<f64> {
        let (critical, ratios) = (self.critical()?, variance_ratios(self.df));
        self.search(se, |difference| {
            mean_over(&ratios, |ratio| {
                self.chance(difference, se / ratio.sqrt(), critical, &ratios)
            })
        })
    }

    fn critical(&self) -> Option<f64> {
        StudentT::new(self.df)?.quantile(1.0 - self.alpha / 2.0)
    }

    fn chance(&self, difference: f64, se: f64, critical: f64, ratios: &[(f64, f64)]) -> f64 {
        mean_over(ratios, |ratio| {
            normal_cdf((difference - self.margin.max(critical * se * ratio.sqrt())) / se)
        })
    }

    /// The smallest difference that is found with a chance of [`POWER`], to within [`PRECISION`].
    fn search(&self, se: f64, chance: impl Fn(f64) -> f64) -> Option<f64> {
        if !(se > 0.0 && se.is_finite()) {
            return None;
        }
        let (mut low, mut high) = (0.0, self.margin + self.critical()? * se);
        while chance(high) < POWER && high < MOST {
            low = high;
            high *= 2.0;
        }
        while high - low > PRECISION * high {
            let middle = (low + high) / 2.0;
            if chance(middle) < POWER {
                low = middle
            } else {
                high = middle
            }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIANCES: DifferenceVariances = DifferenceVariances {
        fixture: 0.06,
        probe: 0.36,
        compress_run: 0.18,
        compress_probe: 0.10,
        answer: 0.18,
        judge: 0.30,
    };
    const DESIGN: SampleSizes = SampleSizes {
        fixtures: 8,
        probes: 10.0,
        runs: 3,
        answers: 1,
        judgements: 1,
    };
    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 6e-5
    }

    #[test]
    fn the_worked_design_comes_out() {
        assert!(near(VARIANCES.variance_of_mean(&DESIGN), 0.02535));
        let more = SampleSizes { runs: 5, ..DESIGN };
        assert!(VARIANCES.smallest_detectable(&more) < VARIANCES.smallest_detectable(&DESIGN));
    }

    #[test]
    fn without_enough_there_is_nothing_to_say() {
        let empty = SampleSizes {
            probes: 0.0,
            ..DESIGN
        };
        assert_eq!(VARIANCES.smallest_detectable(&empty), None);
        let two = SampleSizes {
            fixtures: 2,
            ..DESIGN
        };
        assert_eq!(VARIANCES.smallest_detectable(&two), None);
        let quiet = DifferenceVariances::default();
        assert_eq!(
            quiet.smallest_detectable(&DESIGN),
            None,
            "no noise is known"
        );
    }

    fn finding(df: usize, margin: f64) -> Finding {
        Finding {
            df,
            alpha: 0.05,
            margin,
        }
    }

    #[test]
    fn a_known_error_asks_for_a_little_more_than_the_usual_formula() {
        // the formula: t(.975, 7) + t(.8, 7) = 2.3646 + .8960 = 3.2606, and 5.3634 with 2 degrees of freedom
        for (df, expected) in [(7, 3.270), (2, 5.654)] {
            let smallest = finding(df, 0.0).smallest_at(1.0).unwrap();
            assert!((smallest - expected).abs() < 0.01 * expected, "{smallest}");
            assert!((finding(df, 0.0).power(smallest, 1.0).unwrap() - POWER).abs() < 1e-3);
        }
    }

    #[test]
    fn an_estimated_error_asks_for_much_more_where_there_are_few_clusters() {
        for (df, expected) in [(2, 8.775), (4, 4.678), (11, 3.327)] {
            let smallest = finding(df, 0.0).smallest_estimated(1.0).unwrap();
            assert!((smallest - expected).abs() < 0.01 * expected, "{smallest}");
        }
    }

    #[test]
    fn without_noise_to_speak_of_the_margin_is_the_limit() {
        let smallest = finding(7, 0.3).smallest_at(0.001).unwrap();
        assert!((smallest - 0.3008).abs() < 1e-3, "{smallest}");
        assert_eq!(
            (
                finding(7, 0.3).smallest_at(0.0),
                finding(0, 0.3).smallest_at(1.0)
            ),
            (None, None)
        );
        assert_eq!(finding(7, 0.3).smallest_estimated(f64::NAN), None);
    }
}
