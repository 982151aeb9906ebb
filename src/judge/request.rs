//! The blinded request: what a judge is sent about one answer.
//!
//! Blinding follows from the signatures: nothing in scope here has a name of a method, fixture, model or label to leak.
//! The parts that all answers to a probe share are made once ([`JudgeQuestion`]); an answer and its context are then
//! put in by digest, without their bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::rubric::{Criterion, CriterionId};
use crate::action::{
    BuiltInTemplate, ComposedValue, InputValue, Prompt, ReplyShape, RequestTurn, Template,
    TemplateFault, Variable,
};
use crate::probe::{Probe, one_or_several_facts};
use base::fault::Fault;
use base::locale::Locale;
use lexical::facts::Fact;
use models::OutputSchema;
use sessions::transcript::Role;

/// The variables of a judge's prompt: `request`, the JSON object with everything to grade.
pub const VARIABLES: &[Variable] = &["request"];

/// The JSON object in the place of `request` in the prompt, as graders by rules read it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradingRequest {
    pub probe_question: String,
    pub model_response: String,
    /// The context it was given from, if judges may see it.
    #[serde(default)]
    pub compacted_context: Option<String>,
    /// What is known about the right answer; empty if nothing is.
    #[serde(default, deserialize_with = "text_or_object")]
    pub ground_truth: GroundTruth,
    pub rubric_criteria: Vec<CriterionId>,
}

fn expected() -> &'static str {
    "one object with `probe_question`, `model_response` and `rubric_criteria`, a list of ids; `compacted_context` \
                     and `ground_truth` may be left out"
}

impl GradingRequest {
    /// Reads a request from the text of a file.
    ///
    /// # Errors
    /// The first fault of the JSON, with its place; a request without criteria.
    pub fn read(text: &str) -> Result<GradingRequest, Fault> {
        let request: GradingRequest =
            serde_json::from_str(text).map_err(|error| Fault::json(text, 0, &error, expected()))?;
        if request.rubric_criteria.is_empty() {
            return Err(Fault::at(
                0..0,
                "`rubric_criteria` names no criterion",
                expected(),
            ));
        }
        Ok(request)
    }
}

/// The ground truth, as it is in the request; absent values are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroundTruth {
    /// What a correct answer contains; empty if no facts are known, or the transcript does not say.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several_facts"
    )]
    pub expected_facts: Vec<Fact>,
    /// What was true once and no longer is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded_facts: Vec<Fact>,
    /// A model answer; of an unanswerable probe, that the transcript does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_answer: Option<String>,
}

/// Reads a ground truth: an object, or a text, which is the model answer.
///
/// # Errors
/// It is neither.
fn text_or_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GroundTruth, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrObject {
        Text(String),
        Object(GroundTruth),
    }
    Ok(match TextOrObject::deserialize(deserializer)? {
        TextOrObject::Text(text) => GroundTruth {
            reference_answer: Some(text),
            ..GroundTruth::default()
        },
        TextOrObject::Object(truth) => truth,
    })
}

impl GroundTruth {
    /// What is known about the right answer to `probe`.
    pub fn from_probe(probe: &Probe, locale: Locale) -> GroundTruth {
        let truth = GroundTruth {
            expected_facts: probe.expected_facts.clone(),
            superseded_facts: probe.superseded_facts.clone(),
            reference_answer: probe.reference_answer.clone(),
        };
        truth.if_answerable(probe.answerable, locale)
    }

    /// The same truth if the transcript has the answer; otherwise, that it is right to admit that it does not.
    pub(super) fn if_answerable(self, answerable: bool, locale: Locale) -> GroundTruth {
        if answerable {
            return self;
        }
        let unsaid = locale.pick(
            "The transcript does not say. The right answer is to admit that; anything asserted instead is invented.",
            "对话记录没有提及。正确的回答是承认这一点；断言任何内容都属于捏造。",
        );
        let reference = [Some(unsaid), self.reference_answer.as_deref()];
        let reference = reference
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        GroundTruth {
            reference_answer: Some(reference),
            ..GroundTruth::default()
        }
    }
}

/// One probe as one judge is asked about it: everything but the answer and its context.
#[derive(Clone, Debug)]
pub struct JudgeQuestion {
    rubric: RequestTurn,
    template: Template,
    question: InputValue,
    /// `None` if nothing is known about the right answer.
    truth: Option<InputValue>,
    ids: InputValue,
    schema: ReplyShape,
    criteria: Vec<CriterionId>,
}

impl JudgeQuestion {
    /// Puts together what stays the same for all answers to `question`.
    pub fn new(
        question: &str,
        truth: GroundTruth,
        criteria: &[&Criterion],
        locale: Locale,
        template: &Template,
    ) -> JudgeQuestion {
        let criteria_ids: Vec<CriterionId> = criteria
            .iter()
            .map(|criterion| criterion.id.clone())
            .collect();
        let rubric = instructions(locale).to_owned() + &criteria_text(criteria);
        JudgeQuestion {
            rubric: RequestTurn::Text(Role::System, Prompt::fixed("rubric", &rubric)),
            template: template.clone(),
            question: question.into(),
            truth: (truth != GroundTruth::default()).then(|| json!(truth).to_string().into()),
            ids: InputValue::from(json!(criteria_ids).to_string()),
            schema: shape(&criteria_ids),
            criteria: criteria_ids,
        }
    }

    /// The turns to send for one answer. `context` is left out where judges may not see it. It is first, so that
    /// providers' prompt caches serve it to all questions about it.
    pub fn with(
        &self,
        answer: InputValue,
        context: Option<InputValue>,
    ) -> Result<Vec<RequestTurn>, TemplateFault> {
        let fixed = &*FRAGMENTS;
        let request = match context {
            Some(context) => ComposedValue::builder()
                .fixed(&fixed.context)
                .string("context", context)
                .fixed(&fixed.next_question),
            None => ComposedValue::builder().fixed(&fixed.question),
        };
        let request = request
            .string("question", self.question.clone())
            .fixed(&fixed.answer)
            .string("answer", answer);
        let request = match self.truth.clone() {
            Some(truth) => request.fixed(&fixed.truth).raw("ground truth", truth),
            None => request,
        };
        let request = request
            .fixed(&fixed.criteria)
            .raw("criteria", self.ids.clone())
            .fixed(&fixed.end)
            .build();
        let prompt = self.template.fill("prompt", vec![("request", request)])?;
        Ok(vec![
            self.rubric.clone(),
            RequestTurn::Text(Role::User, prompt),
        ])
    }

    pub fn schema(&self) -> ReplyShape {
        self.schema.clone()
    }

    /// The criteria that a reply must score.
    pub fn criteria(&self) -> &[CriterionId] {
        &self.criteria
    }
}

/// The shape of a reply that scores these criteria. Hashing a shape takes longer than the rest of a question, and a
/// rubric needs only a few, so each is made once.
fn shape(criteria: &[CriterionId]) -> ReplyShape {
    thread_local! {
        static SHAPES: RefCell<HashMap<Vec<CriterionId>, ReplyShape>> = RefCell::default();
    }
    SHAPES.with_borrow_mut(|shapes| {
        shapes
            .entry(criteria.to_vec())
            .or_insert_with(|| ReplyShape::new(schema(criteria)))
            .clone()
    })
}

/// The prompt that ships with the program, in one of its languages.
pub fn built_in_template(locale: Locale) -> Template {
    PROMPT.get(locale)
}

static PROMPT: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/judge.md"),
    include_str!("../../assets/prompts/zh/judge.md"),
    VARIABLES,
);

/// The fixed stretches of the request, hashed once.
struct RequestFragments {
    context: InputValue,
    next_question: InputValue,
    question: InputValue,
    answer: InputValue,
    truth: InputValue,
    criteria: InputValue,
    end: InputValue,
}

static FRAGMENTS: LazyLock<RequestFragments> = LazyLock::new(|| RequestFragments {
    context: r#"{"compacted_context":"#.into(),
    // Requests are split at a blank line: what comes before is the same for all questions about a context.
    next_question: ",\n\n\"probe_question\":".into(),
    question: r#"{"probe_question":"#.into(),
    answer: r#","model_response":"#.into(),
    truth: r#","ground_truth":"#.into(),
    criteria: r#","rubric_criteria":"#.into(),
    end: "}".into(),
});

/// The built-in system message, up to the criteria.
fn instructions(locale: Locale) -> &'static str {
    let english = include_str!("../../assets/prompts/en/judge-instructions.md");
    let chinese = include_str!("../../assets/prompts/zh/judge-instructions.md");
    locale.pick(english, chinese)
}

/// The questions and anchors of criteria, each after a blank line.
fn criteria_text(criteria: &[&Criterion]) -> String {
    let mut text = String::new();
    for Criterion {
        id,
        name,
        question,
        anchors,
        ..
    } in criteria
    {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{id} ({name})\n{question}\n0: {}\n3: {}\n5: {}\n",
            anchors.zero, anchors.three, anchors.five
        );
    }
    text
}

/// A schema within the vendors' strict modes: every property is required, no others are allowed, and numbers and lists
/// have no bounds. The scale is listed instead: a server that holds its model to the schema then yields no score beyond
/// it.
fn schema(criteria: &[CriterionId]) -> OutputSchema {
    let result = json!({
        "type": "object",
        "properties": {
            "criterionId": { "type": "string", "enum": criteria },
            "score": { "type": "integer", "enum": [0, 1, 2, 3, 4, 5], "description": "a whole number from 0 to 5" },
            "reasoning": { "type": "string", "description": "the evidence, in one or two sentences" },
        },
        "required": ["criterionId", "score", "reasoning"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": { "criterionResults": { "type": "array", "items": result } },
        "required": ["criterionResults"],
        "additionalProperties": false,
    });
    OutputSchema {
        name: "grading",
        schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Digest;
    use crate::judge::{Rubric, Scope};
    use crate::probe::ProbeType;
    use std::convert::Infallible;
    use std::sync::Arc;

    fn facts() -> Vec<Fact> {
        vec![
            Fact {
                spellings: vec!["8081".into()],
            },
            Fact {
                spellings: vec!["10 s".into(), "10s".into()],
            },
        ]
    }

    fn asked(truth: GroundTruth, locale: Locale) -> JudgeQuestion {
        let criteria = Rubric::built_in(locale).criteria_for(ProbeType::Recall, Scope::ByType);
        let template = &built_in_template(locale);
        JudgeQuestion::new("Which \"port\"?", truth, &criteria, locale, template)
    }

    fn texts(turns: &[RequestTurn]) -> Vec<String> {
        let resolve = |_: &Digest| Ok::<Arc<str>, Infallible>("fetched".into());
        let text = |turn: &RequestTurn| match turn {
            RequestTurn::Text(_, prompt) => prompt.text(&resolve).unwrap().to_string(),
            other => panic!("unexpected turn {other:?}"),
        };
        turns.iter().map(text).collect()
    }

    fn brief(user: &str) -> (GradingRequest, serde_json::Value) {
        let json = user
            .split("<material>\n")
            .nth(1)
            .and_then(|rest| rest.split("\n</material>").next())
            .unwrap();
        (
            serde_json::from_str(json).unwrap(),
            serde_json::from_str(json).unwrap(),
        )
    }

    #[test]
    fn the_request_has_question_answer_context_truth_and_criteria() {
        let superseded_facts = vec![Fact {
            spellings: vec!["8080".into()],
        }];
        let truth = GroundTruth {
            expected_facts: facts(),
            superseded_facts,
            reference_answer: None,
        };
        let turns = asked(truth, Locale::En)
            .with("It is\n8081".into(), Some("a </material> b".into()))
            .unwrap();
        let user = texts(&turns).remove(1).replace("a </material> b", "a b");
        let (read, value) = brief(&user);
        assert_eq!(read.model_response, "It is\n8081");
        assert_eq!(read.ground_truth.expected_facts, facts());
        assert_eq!(
            value["ground_truth"],
            json!({"expected_facts": ["8081", ["10 s", "10s"]], "superseded_facts": ["8080"]})
        );
        assert_eq!(value["probe_question"], "Which \"port\"?");
        assert_eq!(value["compacted_context"], "a b");
        assert_eq!(value["rubric_criteria"].as_array().unwrap().len(), 8);
        assert_eq!(value.as_object().unwrap().len(), 5);
    }

    #[test]
    fn absent_values_are_left_out_and_an_empty_context_is_not_absent() {
        let truth = GroundTruth {
            reference_answer: Some("none".to_owned()),
            ..GroundTruth::default()
        };
        let without = texts(
            &asked(truth.clone(), Locale::En)
                .with("a".into(), None)
                .unwrap(),
        );
        let (_, value) = brief(&without[1]);
        assert_eq!(value.get("compacted_context"), None);
        assert_eq!(value["ground_truth"], json!({"reference_answer": "none"}));
        let empty = texts(
            &asked(truth, Locale::En)
                .with("".into(), Some("".into()))
                .unwrap(),
        );
        assert_eq!(brief(&empty[1]).1["compacted_context"], "");
        let unknown = texts(
            &asked(GroundTruth::default(), Locale::En)
                .with("a".into(), None)
                .unwrap(),
        );
        assert_eq!(brief(&unknown[1]).1.get("ground_truth"), None);
    }

    #[test]
    fn a_request_in_a_file_is_the_object_that_a_judge_gets() {
        let whole = r#"{"probe_question": "Which port?", "model_response": "8081", "compacted_context": "port 8081",
            "ground_truth": {"expected_facts": "8081"}, "rubric_criteria": ["accuracy_factual"]}"#;
        let read = GradingRequest::read(whole).unwrap();
        assert_eq!(
            read.ground_truth.expected_facts,
            [Fact {
                spellings: vec!["8081".into()]
            }]
        );
        let bare = r#"{"probe_question": "?", "model_response": "", "rubric_criteria": ["accuracy_factual"]}"#;
        assert_eq!(
            GradingRequest::read(bare).unwrap().ground_truth,
            GroundTruth::default()
        );
        let fault = |text: &str| GradingRequest::read(text).unwrap_err();
        let misspelt = whole.replace("ground_truth", "ground_thruth");
        assert!(fault(&misspelt).message.contains("ground_thruth"));
        assert!(
            fault(&bare.replace("\"accuracy_factual\"", ""))
                .message
                .contains("no criterion")
        );
    }

    #[test]
    fn an_unanswerable_probe_says_so_in_the_language_of_the_rubric() {
        for (locale, words) in [(Locale::En, "does not say"), (Locale::Zh, "没有提及")] {
            let truth = GroundTruth::default().if_answerable(false, locale);
            let turns = texts(&asked(truth, locale).with("a".into(), None).unwrap());
            let (read, _) = brief(&turns[1]);
            assert!(read.ground_truth.reference_answer.unwrap().contains(words));
        }
    }

    #[test]
    fn the_system_text_holds_the_criteria_that_apply_and_no_others() {
        let turns = texts(
            &asked(GroundTruth::default(), Locale::Zh)
                .with("a".into(), None)
                .unwrap(),
        );
        assert!(turns[0].contains("accuracy_factual (事实)"));
        assert!(!turns[0].contains("artifact_files_created"));
    }

    #[test]
    fn the_schema_accepts_the_contract_and_nothing_else() {
        let schema = asked(GroundTruth::default(), Locale::En).schema();
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        let document = schema.schema().schema.clone();
        compiler.add_resource("urn:reply", document).unwrap();
        let index = compiler.compile("urn:reply", &mut schemas).unwrap();
        let is_valid = |reply: &serde_json::Value| schemas.validate(reply, index).is_ok();
        let entry =
            |id: &str| json!({"criterionResults":[{"criterionId":id,"score":4,"reasoning":"r"}]});
        assert!(is_valid(&entry("accuracy_factual")));
        assert!(!is_valid(&entry("overall")));
        let off_scale = entry("accuracy_factual").to_string().replace("4", "6");
        assert!(!is_valid(&serde_json::from_str(&off_scale).unwrap()));
        assert!(!is_valid(&json!({"criterionResults":[], "overall": 5})));
    }

    /// Neither the fields beside a question in its bank nor the names of methods and providers appear in the bytes.
    #[test]
    fn judge_request_names_no_method() {
        let probe: Probe = serde_json::from_value(json!({
            "id": "LEAK-probe-id", "type": "recall", "question": "Which port?", "expected_facts": ["8081"],
            "tags": ["LEAK-tag"]
        }))
        .unwrap();
        for locale in [Locale::En, Locale::Zh] {
            let question = asked(GroundTruth::from_probe(&probe, locale), locale);
            let turns = question
                .with("8081".into(), Some("port 8081".into()))
                .unwrap();
            let bytes = format!(
                "{}{}",
                texts(&turns).concat(),
                question.schema().schema().schema
            )
            .to_lowercase();
            assert!(!bytes.contains("leak"));
            for word in [
                "anchored",
                "regenerative",
                "truncate",
                "opaque",
                "fixture",
                "lexical",
                "openai",
                "anthropic",
            ] {
                assert!(!bytes.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn digests_stand_for_the_bytes() {
        let question = asked(GroundTruth::default(), Locale::En);
        let named = question
            .with(InputValue::Output(Digest::hash("fetched")), None)
            .unwrap();
        let held = question.with("fetched".into(), None).unwrap();
        let digest = |turns: &[RequestTurn]| match &turns[1] {
            RequestTurn::Text(_, prompt) => prompt.digest(),
            other => panic!("unexpected turn {other:?}"),
        };
        assert_eq!(digest(&named), digest(&held));
        assert_eq!(texts(&named), texts(&held));
    }
}
