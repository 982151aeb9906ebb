//! Judging: the judges that a pipeline declares, the rubric, the blinded request, the contract of a reply, dimension
//! scores.
//!
//! Deliberately absent: names of methods, fixtures, models and labels. Nothing in this module gets them.

mod reply;
mod request;
mod rubric;
mod score;
mod selftest;

pub use reply::{ReplyFault, read_reply};
pub use request::{GradingRequest, GroundTruth, JudgeQuestion, VARIABLES, built_in_template};
pub use rubric::{Anchors, Criterion, CriterionId, Dimension, Rubric, RubricFile, Scope};
#[cfg(test)]
pub(crate) use score::by_dimension;
pub use score::{CriterionScore, DimensionScores, Score, dimension_scores, grade};
pub use selftest::{
    Case, CaseId, CaseKind, DimensionResult, Quality, SELFTEST_CASES, SelfTest, SelfTestDesign,
    SelfTestVerdict, UnqualifiedJudge, draw_selftest, verdict,
};

use crate::action::Template;
use base::text_name;
use models::ModelUse;

text_name! {
    /// The name of a judge in results; part of no cache key.
    pub struct JudgeName;
}

#[derive(Clone, Debug)]
pub struct JudgeSpec {
    pub name: JudgeName,
    pub model: ModelUse,
    /// The prompt (variable: `request`).
    pub template: Template,
    /// How many replies may break the contract before the cell fails.
    pub attempts: u32,
}
