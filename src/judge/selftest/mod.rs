//! The self-test of a judge: answers of known quality, sent as ordinary judge requests, and what they say about it.
//!
//! The cases are drawn from templates with the seed of a project, so that no model can have memorised them. Each
//! answer is labelled in two dimensions; some answers come again as lengthened copies, and some try to instruct the judge.

mod draw;
mod verdict;

pub use draw::{SELFTEST_CASES, SelfTestDesign, draw_selftest};
pub use verdict::{DimensionResult, SelfTestVerdict, verdict};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::judge::request::{GradingRequest, GroundTruth};
use crate::judge::rubric::{Criterion, CriterionId, Dimension, Rubric, Scope};
use crate::probe::ProbeType;
use base::locale::Locale;

/// The id of a case of the self-test, as in `completeness-artifact_trail-2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub String);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How good an answer is in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Its score belongs above the midpoint of the judge's scale.
    Right,
    /// Between the judge's medians of right and of wrong answers.
    Half,
    /// Below the midpoint. An honest "not said" about a fact that the context lost is wrong, too: the score of a method
    /// has to fall when its contexts lose facts, however politely the answerer says so.
    Wrong,
}

/// A judge that failed its self-test in some dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnqualifiedJudge {
    /// Its name.
    pub judge: String,
    /// The dimensions, in the order of tables.
    pub dimensions: Vec<Dimension>,
}

/// What a case tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// Whether the judge knows how good the answer is.
    Labelled,
    /// Whether the judge grades the same content alike at three times the length of this case.
    Lengthened(CaseId),
    /// Whether the judge follows an instruction inside a wrong answer.
    Injection,
}

/// One answer to be graded, with all that goes into an ordinary judge request.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub id: CaseId,
    pub kind: CaseKind,
    /// The dimensions in which the quality of the answer is known; empty unless it is labelled.
    pub labels: BTreeMap<Dimension, Quality>,
    pub question: String,
    pub probe_type: ProbeType,
    /// What is scored; `None` for the criteria of the probe type.
    pub criteria: Option<Vec<CriterionId>>,
    /// What is known about the right answer.
    pub truth: GroundTruth,
    /// False where the record does not say.
    pub answerable: bool,
    /// The context the answer was given from; `None` sends none.
    pub context: Option<String>,
    pub answer: String,
}

impl Case {
    /// A request to be graded whose quality nobody knows.
    pub fn from_request(id: CaseId, request: GradingRequest) -> Case {
        Case {
            id,
            kind: CaseKind::Labelled,
            labels: BTreeMap::new(),
            question: request.probe_question,
            probe_type: ProbeType::Recall,
            criteria: Some(request.rubric_criteria),
            truth: request.ground_truth,
            answerable: true,
            context: request.compacted_context,
            answer: request.model_response,
        }
    }

    /// The criteria of a rubric that it is graded by; none if it names one that the rubric does not have.
    pub fn criteria_in<'r>(&self, rubric: &'r Rubric, scope: Scope) -> Vec<&'r Criterion> {
        match &self.criteria {
            Some(ids) => rubric.named(ids).unwrap_or_default(),
            None => rubric.criteria_for(self.probe_type, scope),
        }
    }

    /// The ground truth of its request.
    pub fn ground_truth(&self, locale: Locale) -> GroundTruth {
        self.truth.clone().if_answerable(self.answerable, locale)
    }
}

/// The cases that one judge is asked about, each graded once.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    pub cases: Vec<Case>,
    /// The labelled dimensions that the rubric does not measure on a case.
    unmeasured: BTreeMap<CaseId, BTreeSet<Dimension>>,
}

impl SelfTest {
    /// A self-test whose labels all count.
    pub fn new(cases: Vec<Case>) -> SelfTest {
        SelfTest {
            cases,
            unmeasured: BTreeMap::new(),
        }
    }

    /// The same cases, of whose labels only those count that the rubric measures. Without this, a case that got no
    /// grade counts against the judge also in a dimension that nobody asked it to grade.
    pub fn measured_by(&self, rubric: &Rubric, scope: Scope) -> SelfTest {
        let unmeasured = self.cases.iter().map(|case| {
            let measured = case
                .criteria_in(rubric, scope)
                .into_iter()
                .map(|criterion| criterion.dimension);
            let measured: BTreeSet<Dimension> = measured.collect();
            let labelled: BTreeSet<Dimension> = case.labels.keys().copied().collect();
            (case.id.clone(), &labelled - &measured)
        });
        SelfTest {
            unmeasured: unmeasured.collect(),
            cases: self.cases.clone(),
        }
    }

    pub fn case(&self, id: &CaseId) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == *id)
    }

    /// The cases with a label in a dimension, as far as it is measured.
    fn labelled(&self, dimension: Dimension) -> impl Iterator<Item = (&Case, Quality)> {
        let cases = self.cases.iter().filter(move |case| {
            self.unmeasured
                .get(&case.id)
                .is_none_or(|unmeasured| !unmeasured.contains(&dimension))
        });
        cases.filter_map(move |case| Some((case, *case.labels.get(&dimension)?)))
    }
}
