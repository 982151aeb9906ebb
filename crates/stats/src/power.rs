//! What a design can show before it is paid for.
//!
//! The variance of the mean difference of two methods, with G clusters, p items each, R runs, a answers and j gradings:
//!
//! V = F/G + P/(G·p) + e(R)/(R·G) · (C + PC/p + A/(p·a) + J/(p·a·j))
//!
//! F and P are how the difference varies over clusters and items; C, PC, A and J are the noise of runs, added over both
//! methods. e(R) is the price of a median over R runs in place of a mean.

use serde::Serialize;

use super::detectable::Finding;
use super::thresholds::{ALPHA, MARGIN, MIN_CLUSTERS};

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
        finite(finding(design)?.smallest_at(self.variance_of_mean(design).sqrt())?)
    }

    /// The chance that a true difference gets a verdict; `None` where there is no verdict.
    pub fn power(&self, design: &SampleSizes, difference: f64) -> Option<f64> {
        let se = finite(self.variance_of_mean(design).sqrt()).filter(|se| *se > 0.0)?;
        finite(finding(design)?.power(difference, se)?)
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
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
    fn power_and_the_smallest_detectable_difference_agree() {
        for fixtures in [3, 8, 24, 200] {
            let design = SampleSizes { fixtures, ..DESIGN };
            let smallest = VARIANCES.smallest_detectable(&design).unwrap();
            assert!(
                (VARIANCES.power(&design, smallest).unwrap() - 0.8).abs() < 2e-3,
                "{fixtures}"
            );
            assert!(VARIANCES.power(&design, 2.0 * smallest) > VARIANCES.power(&design, smallest));
            assert!(smallest > MARGIN);
        }
    }

    #[test]
    fn fixtures_buy_more_than_runs_at_the_same_price() {
        let wide = SampleSizes {
            fixtures: 24,
            runs: 1,
            ..DESIGN
        };
        assert!(
            VARIANCES.power(&wide, 0.4).unwrap() > VARIANCES.power(&DESIGN, 0.4).unwrap() + 0.15
        );
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
        assert_eq!(
            (
                VARIANCES.smallest_detectable(&two),
                VARIANCES.power(&two, 1.0)
            ),
            (None, None)
        );
        assert_eq!(
            DifferenceVariances::default().power(&DESIGN, MARGIN),
            None,
            "no noise is known"
        );
    }
}
