//! The rubric: which criteria an answer is graded by, in which dimension, with which weight.
//!
//! The built-in rubric is data in two languages; a user's own is read with the pipeline.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::{Digest, DigestBuilder};
use crate::probe::ProbeType;
use base::locale::Locale;
use base::{named_enum, text_name};

named_enum! {
    /// Whether criteria follow the type of the probe.
    #[derive(Default)]
    pub enum Scope {
        /// Each probe is graded by the criteria of its type.
        #[default]
        ByType = "by-type",
        /// Every criterion is graded on every probe.
        All = "all",
    }
}

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
    #[serde(alias = "0")]
    #[schemars(rename = "0", length(min = 1))]
    pub zero: String,
    /// 3: adequate, minor issues.
    #[serde(alias = "3")]
    #[schemars(rename = "3", length(min = 1))]
    pub three: String,
    #[serde(alias = "5")]
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

/// A TOML file with a `[[criteria]]` table for each criterion.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RubricFile {
    #[schemars(length(min = 1))]
    criteria: Vec<Criterion>,
}

/// A rubric that was checked: ids unique, weights above 0, a criterion for every probe type.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    criteria: Vec<Criterion>,
    digest: Digest,
}

static ENGLISH: LazyLock<Rubric> = LazyLock::new(|| built_in(Locale::En));
static CHINESE: LazyLock<Rubric> = LazyLock::new(|| built_in(Locale::Zh));

fn built_in(locale: Locale) -> Rubric {
    Rubric::from_text(Rubric::built_in_text(locale))
}

impl Rubric {
    /// The rubric that ships with the program, in one of its languages.
    pub fn built_in(locale: Locale) -> &'static Rubric {
        locale.pick(&ENGLISH, &CHINESE)
    }

    pub fn built_in_text(locale: Locale) -> &'static str {
        locale.pick(
            include_str!("../../assets/rubric/en.toml"),
            include_str!("../../assets/rubric/zh.toml"),
        )
    }

    /// A rubric of criteria that were checked.
    pub fn new(criteria: Vec<Criterion>) -> Rubric {
        let digest = digest_of(&criteria);
        Rubric { criteria, digest }
    }

    /// A rubric of the program.
    pub(super) fn from_text(text: &str) -> Rubric {
        let file: RubricFile = toml::from_str(text)
            .expect("the built-in rubrics are part of the program and read by its tests");
        Rubric::new(file.criteria)
    }

    /// All criteria, in the order of the file.
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }

    pub fn criterion(&self, id: &CriterionId) -> Option<&Criterion> {
        self.criteria.iter().find(|criterion| criterion.id == *id)
    }

    /// The criteria that a probe of type `kind` is graded by, in the order of the file; never empty.
    pub fn criteria_for(&self, kind: ProbeType, scope: Scope) -> Vec<&Criterion> {
        self.criteria
            .iter()
            .filter(|c| scope == Scope::All || c.applies_to.contains(&kind))
            .collect()
    }

    /// The criteria with these ids, in the order of the file.
    ///
    /// # Errors
    /// The first id that no criterion has.
    pub fn named<'i>(&self, ids: &'i [CriterionId]) -> Result<Vec<&Criterion>, &'i CriterionId> {
        match ids.iter().find(|id| self.criterion(id).is_none()) {
            Some(unknown) => Err(unknown),
            None => Ok(self
                .criteria
                .iter()
                .filter(|criterion| ids.contains(&criterion.id))
                .collect()),
        }
    }

    /// The first type of probe that is graded by the same criteria as `kind`.
    pub fn graded_alike(&self, kind: ProbeType, scope: Scope) -> ProbeType {
        let alike = ProbeType::ALL.into_iter().find(|other| {
            let mut criteria = self.criteria.iter();
            scope == Scope::All
                || criteria.all(|c| c.applies_to.contains(other) == c.applies_to.contains(&kind))
        });
        alike.unwrap_or(kind)
    }

    /// The digest of everything in the rubric that can change a score, so not of the file's comments and layout.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

fn digest_of(criteria: &[Criterion]) -> Digest {
    let mut builder = DigestBuilder::new("rubric");
    for criterion in criteria {
        builder
            .field("id", &*criterion.id.0)
            .field("dimension", criterion.dimension.name())
            .field("weight", criterion.weight.to_bits().to_le_bytes())
            .field("question", &criterion.question);
        for kind in ProbeType::ALL
            .iter()
            .filter(|kind| criterion.applies_to.contains(kind))
        {
            builder.field("applies_to", kind.name());
        }
        let anchors = &criterion.anchors;
        builder
            .field("0", &anchors.zero)
            .field("3", &anchors.three)
            .field("5", &anchors.five);
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(kind: ProbeType, scope: Scope) -> Vec<&'static str> {
        Rubric::built_in(Locale::En)
            .criteria_for(kind, scope)
            .iter()
            .map(|c| &*c.id.0)
            .collect()
    }

    #[test]
    fn both_languages_share_ids_weights_and_types() {
        let (en, zh) = (Rubric::built_in(Locale::En), Rubric::built_in(Locale::Zh));
        let [shape_en, shape_zh] = [en, zh].map(|rubric| {
            let criteria = rubric.criteria().iter();
            criteria
                .map(|c| (&c.id, c.dimension, c.weight.to_bits(), &c.applies_to))
                .collect::<Vec<_>>()
        });
        assert_eq!(shape_en, shape_zh);
        assert_eq!(en.criteria().len(), 14);
        assert_ne!(en.digest(), zh.digest());
    }

    #[test]
    fn weights_of_each_dimension_sum_to_one() {
        for dimension in Dimension::ALL {
            let of = |c: &&Criterion| c.dimension == dimension;
            let sum: f64 = Rubric::built_in(Locale::En)
                .criteria()
                .iter()
                .filter(of)
                .map(|c| c.weight)
                .sum();
            assert!((sum - 1.0).abs() < 1e-9, "{dimension}: {sum}");
        }
    }

    #[test]
    fn criteria_follow_the_probe_type() {
        let base = 6;
        assert_eq!(ids(ProbeType::Recall, Scope::ByType).len(), base + 2);
        assert!(
            !ids(ProbeType::Recall, Scope::ByType)
                .iter()
                .any(|id| id.starts_with("artifact_"))
        );
        assert_eq!(ids(ProbeType::Artifact, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(
            ids(ProbeType::Continuation, Scope::ByType),
            ids(ProbeType::Decision, Scope::ByType)
        );
        assert_eq!(ids(ProbeType::Decision, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(ids(ProbeType::Recall, Scope::All).len(), 14);
    }
}
