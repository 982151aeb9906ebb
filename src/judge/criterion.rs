//! A criterion: the dimension it belongs to, its weight, and what its scale means.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::probe::ProbeType;
use base::locale::Locale;
use base::{named_enum, text_name};

named_enum! {
    /// What is graded: one side of an answer.
    #[derive(JsonSchema)]
    pub enum Dimension {
        /// Facts and technical notions are right.
        Accuracy = "accuracy",
        /// The answer fits the state of the conversation and its artifacts.
        ContextAwareness = "context_awareness",
        /// It knows which files were created and changed.
        ArtifactTrail = "artifact_trail",
        /// It covers the question, in enough detail.
        Completeness = "completeness",
        /// Work can go on from it.
        Continuity = "continuity",
        /// It keeps to the form and the constraints asked for.
        InstructionFollowing = "instruction_following",
    }
}

impl Dimension {
    /// The dimension's heading in tables and reports.
    pub fn label(self, locale: Locale) -> &'static str {
        let (en, zh) = match self {
            Dimension::Accuracy => ("accuracy", "准确性"),
            Dimension::ContextAwareness => ("context", "上下文感知"),
            Dimension::ArtifactTrail => ("artifact", "产物追踪"),
            Dimension::Completeness => ("complete", "完整性"),
            Dimension::Continuity => ("continuity", "连续性"),
            Dimension::InstructionFollowing => ("instruction", "指令遵循"),
        };
        locale.pick(en, zh)
    }
}

text_name! {
    /// The id of a criterion, unique within its rubric (letters apart in case only count as one).
    #[derive(JsonSchema)]
    pub struct CriterionId;
}

/// What three points of the scale look like; 1, 2 and 4 lie between.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(deny_unknown_fields)]
pub struct Anchors {
    #[schemars(rename = "0", length(min = 1))]
    pub zero: String,
    /// 3: adequate, minor issues.
    #[schemars(rename = "3", length(min = 1))]
    pub three: String,
    #[schemars(rename = "5", length(min = 1))]
    pub five: String,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(deny_unknown_fields)]
pub struct Criterion {
    pub id: CriterionId,
    /// What people call it; the id where the rubric gives no name.
    #[schemars(default)]
    pub name: String,
    /// The dimension it belongs to.
    pub dimension: Dimension,
    /// Its weight within the dimension: finite, above 0; renormalised over the criteria that apply.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub weight: f64,
    /// The probe types it is graded on.
    #[serde(default = "all_types")]
    #[schemars(default, length(min = 1))]
    pub applies_to: Vec<ProbeType>,
    /// What the judge asks of the answer.
    pub question: String,
    /// What the scale means.
    pub anchors: Anchors,
}

fn all_types() -> Vec<ProbeType> {
    ProbeType::ALL.to_vec()
}
