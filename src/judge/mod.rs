//! Judging: the rubric, the blinded request, the contract of a reply, dimension scores.
//!
//! Deliberately absent: names of methods, fixtures, models and labels. Nothing in this module gets them.

mod reply;
mod request;
mod criterion;
mod rubric;
mod rubric_file;
mod score;
mod selftest;
mod selftest_verdict;
mod spec;
#[cfg(test)]
pub(crate) mod fakes;

pub use criterion::{Anchors, Criterion, CriterionId, Dimension};
pub use reply::{ReplyFault, read_reply};
pub use request::{GradingRequest, GroundTruth, GroundTruthRef, JudgeQuestion, VARIABLES, built_in_template};
pub use rubric::{Rubric, Scope};
pub use score::{CriterionScore, DimensionScores, OffScale, Score, dimension_scores, grade};
pub use selftest::{Case, CaseId, CaseKind, Expected, SelfTest};
pub use selftest_verdict::{
    CaseKindResult, INJECTION_GAIN, MAX_MISSES, MIN_SPREAD, MISSES_OF_A_KIND, SelfTestVerdict, cannot_pass, verdict,
};
pub use spec::{JudgeName, JudgeSpec};
