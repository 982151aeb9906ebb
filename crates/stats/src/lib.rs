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
pub mod thresholds;
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
