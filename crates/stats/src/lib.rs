//! Statistics: what repeated, clustered measurements can show, and what they cannot.
//!
//! A *cluster* is the unit of evidence. Inside it, *items* are measured in several *runs*; every cluster gives one
//! number, and intervals, tests and verdicts rest on those numbers alone, so that a cluster weighs the same however
//! many items it has.
//!
//! Invariants: the same input gives the same output, since nothing here draws random numbers; no output is ever NaN or
//! infinite, a value that cannot be computed is `None` with a reason beside it; nothing panics on any input. A number
//! that is not finite, or beyond 1e60, is never computed with: it is refused, or counted as missing where cells may be
//! missing.
//!
//! Nothing here knows what the numbers stand for. The words that people read in results (`few fixtures`,
//! `compress_run`) occur only in serialized names.
//!
//! ```
//! use compeval_stats::{Paired, Verdict, run_values, verdicts};
//!
//! // The scores of two sides in four clusters. A table has a row per item and a column per run, here one of each.
//! let scores = [(4.1, 3.5), (3.3, 2.9), (4.4, 4.0), (3.8, 3.3)];
//! let clusters = scores.map(|(a, b)| (run_values(&[[Some(a)]]), run_values(&[[Some(b)]])));
//! let paired = Paired::between(&clusters).expect("every cluster has a value on both sides");
//!
//! let test = verdicts(&[paired])[0];
//! assert_eq!(test.verdict, Verdict::Improved);
//! assert!(test.ci95.is_some_and(|interval| interval.low() > 0.3));
//! ```

mod agreement;
mod center;
mod components;
mod distribution;
mod exact;
mod families;
mod interval;
mod pairing;
mod power;
#[cfg(test)]
mod properties_tests;
mod retention;
mod verdict;

pub use agreement::{
    Agreement, AgreementIntervals, Coefficient, NoCoefficient, Regrading, RepeatSpread, agreement,
    krippendorff_alpha, regraded_answers, repeat_spread,
};
pub use center::{
    MissingCounts, RunValues, combined_runs, mean, mean_of, median, run_values, sample_sd,
};
pub use components::{Component, Components, NoComponent, Observation, PairClasses, components};
pub use exact::{FailureCounts, FailureTest, RiseTest, failure_tests};
pub use families::{
    FamilyVerdicts, MethodDifferences, MethodVerdicts, PairTest, Separation, family_verdicts,
    pair_tests,
};
pub use interval::{
    Estimate, Interval, NoRerun, Rerun, geometric_mean, interval, level, lower_bound, paired_sizes,
    rerun_interval, share, share_difference,
};
pub use pairing::Paired;
pub use power::{DifferenceVariances, SampleSizes};
pub use retention::{NoRetention, Retention, retention};
pub use verdict::{DifferenceTest, NoEvidenceReason, Verdict, holm, untestable, verdicts};

/// Every threshold of the statistics, in one place. Those without a derivation beside them are conventions.
pub mod thresholds {
    /// Two-sided error rate of each family of tests.
    pub const ALPHA: f64 = 0.05;

    /// Coverage of every interval: the quantile is taken at half of `ALPHA` on either side.
    pub(super) const UPPER_TAIL: f64 = 1.0 - ALPHA / 2.0;

    /// The power at which the smallest detectable change is stated.
    pub const POWER: f64 = 0.8;

    /// The smallest difference, in points of the scale, that is worth a verdict. It does not suffice by itself:
    /// `tools/coverage` measures how often some dimension moves by as much when nothing has changed.
    pub const MARGIN: f64 = 0.3;

    /// The same for the mean over several methods, whose noise is smaller.
    pub const PRIMARY_MARGIN: f64 = 0.2;

    /// The smallest rise of a failure rate that is worth a verdict: 2 percentage points.
    pub const MIN_RATE_INCREASE: f64 = 0.02;

    /// The degrees of freedom (d₀) that the mean variance of several methods adds to the variance of each.
    pub const PRIOR_DF: usize = 4;

    /// A variance of more than this many times the mean one is not drawn towards it: without the limit, a method ten
    /// times as noisy as the others has false findings in 7% of comparisons, with it in 3%.
    pub const MAX_VARIANCE_RATIO: f64 = 1.5;

    /// The fewest methods that share their variances.
    pub const MIN_METHODS_TO_SHARE: usize = 2;

    /// The variance of a difference of two grades, each rounded to a whole number: two of 1/12.
    pub const ROUNDING_VARIANCE: f64 = 2.0 / 12.0;

    /// The fewest clusters that a verdict may rest on.
    pub const MIN_CLUSTERS: usize = 3;

    /// Share of missing cells, on either side, above which there is no verdict.
    pub const MAX_MISSING: f64 = 0.10;

    /// The smallest share of its items that a run must have to count.
    pub const MIN_RUN_SHARE: f64 = 0.5;

    /// A smallest detectable change above this, in points, is worth a warning: the comparison is nearly blind.
    pub const MDD_WARNING: f64 = 1.0;

    /// Mean span between ceiling and floor, in points, under which retention is undefined.
    pub const MIN_SPAN: f64 = 0.5;

    /// Mean span between ceiling and floor, in points, under which the items hardly measure anything: a warning.
    pub const SPAN_WARNING: f64 = 1.0;

    /// The fewest clusters whose variance is used.
    pub const MIN_CLUSTERS_FOR_VARIANCE: usize = 4;

    /// Pairs (or units) under which a coefficient of agreement is shown with a warning.
    pub const MIN_PAIRS: usize = 30;

    /// Krippendorff's own lower bound for tentative conclusions (Content Analysis, 2004): below it, a warning.
    pub const ALPHA_WARNING: f64 = 0.667;

    /// Two gradings of one thing that differ by this many points, or more, are far apart.
    pub const FAR_APART: f64 = 2.0;

    /// A probe's score from which its answer is called good, bad below: the middle of the scale.
    pub const GOOD: f64 = 2.5;

    /// The smallest step between bad and good, in points, that is reported: smaller ones are noise about the middle.
    pub const MIN_FLIP: f64 = 1.0;

    /// The ends of the scale of scores.
    pub const SCALE: (f64, f64) = (0.0, 5.0);

    /// The ends of what a difference of two scores can be.
    pub(super) const DIFFERENCES: (f64, f64) = (SCALE.0 - SCALE.1, SCALE.1 - SCALE.0);

    /// A standard deviation or difference below this is rounding, and treated as 0.
    pub(super) const TINY: f64 = 1e-9;
}
