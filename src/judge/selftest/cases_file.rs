//! Cases of the user's own: a JSON list of judge requests, each with the quality of its answer.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::{Case, CaseId, Quality, SelfTest};
use crate::judge::criterion::{CriterionId, Dimension};
use crate::judge::request::{GradingRequest, GroundTruth, text_or_object};
use crate::probe::ProbeType;
use base::fault::Fault;
use base::locale::Locale;
use lexical::facts::Fact;

/// A case in a file: a request as a judge gets it, with what is known about the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseEntry {
    id: Option<String>,
    /// Decides which criteria apply; `recall` if it is left out.
    #[serde(rename = "type")]
    probe_type: Option<ProbeType>,
    probe_question: String,
    model_response: String,
    compacted_context: Option<String>,
    #[serde(default, deserialize_with = "text_or_object")]
    ground_truth: GroundTruth,
    /// What is scored; the criteria of the type if it is left out.
    rubric_criteria: Option<Vec<CriterionId>>,
    /// How good the answer is, by dimension.
    labels: BTreeMap<Dimension, Quality>,
}

fn shape() -> &'static str {
    "a list of objects with `probe_question`, `model_response` and `labels`, such as {\"accuracy\": \"right\"}; \
                     `type`, `ground_truth`, `compacted_context` and `rubric_criteria` may be left out"
}

/// Reads cases from the text of a JSON file.
///
/// # Errors
/// The first fault of the JSON, with its place; a case without labels; an id that is used twice.
pub fn read_selftest(text: &str) -> Result<SelfTest, Fault> {
    let entries: Vec<CaseEntry> =
        serde_json::from_str(text).map_err(|error| Fault::json(text, 0, &error, shape()))?;
    let mut cases: Vec<Case> = Vec::new();
    for (nth, entry) in entries.into_iter().enumerate() {
        let case = entry.into_case(nth + 1);
        if case.labels.is_empty() {
            return Err(Fault::at(
                0..0,
                format!("case `{}` has no labels", case.id),
                "say how good its answer is",
            ));
        }
        if cases.iter().any(|other| other.id == case.id) {
            return Err(Fault::at(
                0..0,
                format!("two cases have the id `{}`", case.id),
                "ids are unique within a file",
            ));
        }
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(Fault::at(0..0, "the file holds no cases", shape()));
    }
    Ok(SelfTest::new(cases))
}

impl CaseEntry {
    fn into_case(self, nth: usize) -> Case {
        let id = CaseId(self.id.unwrap_or_else(|| format!("case-{nth}")));
        let request = GradingRequest {
            probe_question: self.probe_question,
            model_response: self.model_response,
            compacted_context: self.compacted_context,
            ground_truth: self.ground_truth,
            rubric_criteria: Vec::new(),
        };
        Case {
            labels: self.labels,
            probe_type: self.probe_type.unwrap_or(ProbeType::Recall),
            criteria: self.rubric_criteria,
            ..Case::from_request(id, request)
        }
    }
}

/// The texts that cases are drawn from. They have slots in braces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Templates {
    pub context: String,
    pub outdated_context: String,
    /// Lines that make a context longer.
    pub padding: Vec<String>,
    /// Sentences without content that make an answer longer.
    pub filler: Vec<String>,
    /// Instructions to the judge, put after a wrong answer.
    pub injections: Vec<String>,
    /// What stands between the parts of an answer.
    pub joint: String,
    /// Slots of numbers, each with the least and the greatest.
    pub numbers: BTreeMap<String, [u64; 2]>,
    /// Slots of words, each with the words to draw from. These may have slots themselves.
    pub pools: BTreeMap<String, Vec<String>>,
    /// Slots that are drawn together: a decision with its reasons.
    pub records: Vec<BTreeMap<String, Vec<String>>>,
    pub questions: Vec<QuestionTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionTemplate {
    #[serde(rename = "type")]
    pub probe_type: ProbeType,
    /// The two dimensions that its answers are labelled in.
    pub dimensions: [Dimension; 2],
    pub question: String,
    pub expected_facts: Vec<Fact>,
    #[serde(default)]
    pub superseded_facts: Vec<Fact>,
    pub answers: Vec<AnswerTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerTemplate {
    /// In the dimensions of the question, in their order.
    pub quality: [Quality; 2],
    /// A question that the record does not answer, asked instead.
    pub unanswerable: Option<String>,
    /// The answer, unless it has parts.
    #[serde(default)]
    pub answer: String,
    /// The parts that it is put together from, each with its phrasings.
    #[serde(default)]
    pub parts: Vec<Vec<String>>,
    /// What stands between the parts; `None` is what the language has.
    pub joint: Option<String>,
    /// Whether the parts stay in their order.
    #[serde(default)]
    pub fixed_order: bool,
}

static ENGLISH: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/en.toml")));
static CHINESE: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/zh.toml")));

fn read(text: &str) -> Templates {
    toml::from_str(text).expect("the templates are part of the program and read by its tests")
}

impl Templates {
    pub(super) fn built_in(locale: Locale) -> &'static Templates {
        locale.pick(&ENGLISH, &CHINESE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_judge_request_with_labels() {
        let test = read_selftest(
            r#"[{"probe_question": "Which port?", "model_response": "8081", "ground_truth": {"expected_facts": ["8081"]},
                 "rubric_criteria": ["accuracy_factual"],
                 "type": "decision", "labels": {"accuracy": "right", "continuity": "half"}},
                {"id": "b", "probe_question": "Why?", "model_response": "no idea", "labels": {"accuracy": "wrong"}}]"#,
        )
        .expect("cases");
        let [first, second] = &test.cases[..] else {
            panic!("{test:?}")
        };
        assert_eq!(
            first.criteria.as_deref(),
            Some(&[CriterionId("accuracy_factual".into())][..])
        );
        assert_eq!(
            (first.id.0.as_str(), first.probe_type, first.labels.len()),
            ("case-1", ProbeType::Decision, 2)
        );
        assert_eq!(
            (
                second.id.0.as_str(),
                second.context.as_deref(),
                second.truth.expected_facts.len()
            ),
            ("b", None, 0)
        );
    }

    #[test]
    fn faults_have_their_place_and_say_what_is_expected() {
        let fault = |text: &str| format!("{:?}", read_selftest(text).expect_err("a fault"));
        assert!(fault("[]").contains("holds no cases"));
        assert!(fault("[{").contains("EOF"));
        let entry = r#"{"id": "a", "probe_question": "?", "model_response": "", "labels": {"accuracy": "right"}}"#;
        assert!(fault(&format!("[{entry}, {entry}]")).contains("two cases have the id `a`"));
        assert!(
            fault(&format!("[{}]", entry.replace("right", "good")))
                .contains("unknown variant `good`")
        );
        assert!(
            fault(&format!(
                "[{}]",
                entry.replace(r#""accuracy": "right""#, "")
            ))
            .contains("no labels")
        );
    }
}
