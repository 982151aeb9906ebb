//! The rubric: which criteria an answer is graded by, in which dimension, with which weight.
//!
//! The built-in rubric is data in two languages; a user's own is read by `rubric_file`.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::rubric_file;
use crate::action::{Digest, DigestBuilder};
use crate::fault::Fault;
use crate::locale::Locale;
use crate::probe::ProbeType;

/// What is graded: one of six sides of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Facts and technical notions are right.
    Accuracy,
    /// The answer fits the state of the conversation and its artifacts.
    ContextAwareness,
    /// It knows which files were created and changed.
    ArtifactTrail,
    /// It covers the question, in enough detail.
    Completeness,
    /// Work can go on from it.
    Continuity,
    /// It keeps to the form and the constraints asked for.
    InstructionFollowing,
}

impl Dimension {
    /// All dimensions, in the order of tables.
    pub const ALL: [Dimension; 6] = [
        Dimension::Accuracy,
        Dimension::ContextAwareness,
        Dimension::ArtifactTrail,
        Dimension::Completeness,
        Dimension::Continuity,
        Dimension::InstructionFollowing,
    ];

    /// The dimension's name in rubrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Accuracy => "accuracy",
            Dimension::ContextAwareness => "context_awareness",
            Dimension::ArtifactTrail => "artifact_trail",
            Dimension::Completeness => "completeness",
            Dimension::Continuity => "continuity",
            Dimension::InstructionFollowing => "instruction_following",
        }
    }

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
        match locale {
            Locale::En => en,
            Locale::Zh => zh,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The id of a criterion, unique within its rubric (letters apart in case only count as one).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CriterionId(pub Arc<str>);

impl From<&str> for CriterionId {
    fn from(text: &str) -> CriterionId {
        CriterionId(text.into())
    }
}

impl fmt::Display for CriterionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What three points of the scale look like; 1, 2 and 4 lie between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchors {
    /// 0: fails completely.
    pub zero: String,
    /// 3: adequate, minor issues.
    pub three: String,
    /// 5: nothing to object.
    pub five: String,
}

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Its id.
    pub id: CriterionId,
    /// What people call it; the id where the rubric gives no name.
    pub name: String,
    /// The dimension it belongs to.
    pub dimension: Dimension,
    /// Its weight within the dimension: finite, above 0; renormalised over the criteria that apply.
    pub weight: f64,
    /// The probe types it is graded on.
    pub applies_to: Vec<ProbeType>,
    /// What the judge asks of the answer.
    pub question: String,
    /// What the scale means.
    pub anchors: Anchors,
}

/// Whether criteria follow the type of the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each probe is graded by the criteria of its type.
    #[default]
    ByType,
    /// Every criterion is graded on every probe.
    All,
}

/// A rubric that was checked: ids unique, weights above 0, a criterion for every probe type.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    criteria: Vec<Criterion>,
    digest: Digest,
}

static ENGLISH: LazyLock<Rubric> = LazyLock::new(|| built_in(include_str!("../../assets/rubric/en.toml")));
static CHINESE: LazyLock<Rubric> = LazyLock::new(|| built_in(include_str!("../../assets/rubric/zh.toml")));

fn built_in(text: &str) -> Rubric {
    Rubric::read(text).expect("the built-in rubrics are part of the program and read by its tests")
}

impl Rubric {
    /// The rubric that ships with the program, in one of its languages.
    pub fn built_in(locale: Locale) -> &'static Rubric {
        match locale {
            Locale::En => &ENGLISH,
            Locale::Zh => &CHINESE,
        }
    }

    /// Reads a rubric from the text of its TOML file.
    ///
    /// # Errors
    /// All faults, each with its place: TOML syntax, unknown keys, dimensions and probe types, missing or empty
    /// texts and anchors, repeated ids, weights that are not finite and above 0, probe types nothing applies to.
    pub fn read(text: &str) -> Result<Rubric, Vec<Fault>> {
        let criteria = rubric_file::read(text)?;
        let digest = digest_of(&criteria);
        Ok(Rubric { criteria, digest })
    }

    /// All criteria, in the order of the file.
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }

    /// The criterion of this id.
    pub fn criterion(&self, id: &CriterionId) -> Option<&Criterion> {
        self.criteria.iter().find(|criterion| criterion.id == *id)
    }

    /// The criteria that a probe of type `kind` is graded by, in the order of the file; never empty.
    pub fn criteria_for(&self, kind: ProbeType, scope: Scope) -> Vec<&Criterion> {
        self.criteria.iter().filter(|c| scope == Scope::All || c.applies_to.contains(&kind)).collect()
    }

    /// Names everything in the rubric that can change a score; comments and layout of the file do not.
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
        for kind in ProbeType::ALL.iter().filter(|kind| criterion.applies_to.contains(kind)) {
            builder.field("applies_to", kind.name());
        }
        let anchors = &criterion.anchors;
        builder.field("0", &anchors.zero).field("3", &anchors.three).field("5", &anchors.five);
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(kind: ProbeType, scope: Scope) -> Vec<&'static str> {
        Rubric::built_in(Locale::En).criteria_for(kind, scope).iter().map(|c| &*c.id.0).collect()
    }

    #[test]
    fn both_languages_share_ids_weights_and_types() {
        let (en, zh) = (Rubric::built_in(Locale::En), Rubric::built_in(Locale::Zh));
        let shape = |rubric: &Rubric| -> Vec<_> {
            let of = |c: &Criterion| (c.id.clone(), c.dimension, c.weight.to_bits(), c.applies_to.clone());
            rubric.criteria().iter().map(of).collect()
        };
        assert_eq!(shape(en), shape(zh));
        assert_eq!(en.criteria().len(), 14);
        assert_ne!(en.digest(), zh.digest());
    }

    #[test]
    fn weights_of_each_dimension_sum_to_one() {
        for dimension in Dimension::ALL {
            let of = |c: &&Criterion| c.dimension == dimension;
            let sum: f64 = Rubric::built_in(Locale::En).criteria().iter().filter(of).map(|c| c.weight).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{dimension}: {sum}");
        }
    }

    #[test]
    fn criteria_follow_the_probe_type() {
        let base = 6;
        assert_eq!(ids(ProbeType::Recall, Scope::ByType).len(), base + 2);
        assert!(!ids(ProbeType::Recall, Scope::ByType).iter().any(|id| id.starts_with("artifact_")));
        assert_eq!(ids(ProbeType::Artifact, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(ids(ProbeType::Continuation, Scope::ByType), ids(ProbeType::Decision, Scope::ByType));
        assert_eq!(ids(ProbeType::Decision, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(ids(ProbeType::Recall, Scope::All).len(), 14);
    }
}
