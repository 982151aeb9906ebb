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
mod spec;

pub use criterion::{Anchors, Criterion, CriterionId, Dimension};
pub use reply::{ReplyFault, read_reply};
pub use request::{
    GradingRequest, GroundTruth, GroundTruthRef, JudgePrompts, JudgeQuestion, SYSTEM_VARIABLES, VARIABLES,
    built_in_template,
};
pub use rubric::{Rubric, Scope};
#[cfg(test)]
pub(crate) use score::by_dimension;
pub use score::{CriterionScore, DimensionScores, OffScale, Score, dimension_scores, grade};
pub use selftest::{
    Case, CaseId, CaseKind, DimensionResult, INJECTION_GAIN, LENGTH_SHIFT, MAX_PADDING, MIN_SPREAD, Quality,
    SELFTEST_CASES, SelfTest, SelfTestDesign, SelfTestVerdict, allowed_misses, allowed_misses_in_all, cannot_grade,
    draw_selftest, read_selftest, verdict,
};
pub use spec::{JudgeName, JudgeSpec};
