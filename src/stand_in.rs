//! The built-in stand-in for a model: rules that compress by extraction, answer by retrieval and judge by matching.
//!
//! It is given the very values that a model's prompt would hold, by the names of the template's variables, and nothing
//! else: no fixture, no bank, no method. Deterministic, without key or network, and labelled as what it is wherever
//! its results are shown.
//!
//! Deliberately absent: any knowledge of particular fixtures, and any access to what a model in its place would not see.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::action::{INSTRUCTIONS, SEARCHES_LEFT, Stage};
use crate::judge::{CriterionId, GradingRequest};
use crate::probe::propose_candidates;
use base::locale::Locale;
use base::words::is_chinese;
use lexical::notes::SessionOutline;
use lexical::{Aspect, GradedAnswer, LiteralGrade, SummaryPrompt, read_transcript};
use sessions::transcript::{Message, Role};

/// The reply in a stage. Values that are not given count as empty. What is read of them:
/// - a summary, from the variables of a compress prompt and [`INSTRUCTIONS`];
/// - an answer, or a search for one, or a reply about planted items, from `context`, `question`, [`INSTRUCTIONS`] and [`SEARCHES_LEFT`];
/// - grades, from `request`; [`INSTRUCTIONS`] say in which language;
/// - probes, from `transcript`.
pub fn reply(stage: Stage, values: &BTreeMap<&str, Arc<str>>) -> String {
    let value = |name: &str| values.get(name).map_or("", |text| &**text);
    match stage {
        Stage::Compress => lexical::summarize(&SummaryPrompt {
            transcript: value("transcript"),
            previous_summary: value("previous_summary"),
            focus_topic: value("focus_topic"),
            target_tokens: value("target_tokens").trim().parse().ok(),
            instructions: value(INSTRUCTIONS),
        }),
        Stage::Answer => {
            let (context, question) = (value("context"), value("question"));
            if let Some(reply) = lexical::answer_about_tasks(context, question) {
                return reply;
            }
            let may_search = value(SEARCHES_LEFT).parse().is_ok_and(|left: u32| left > 0);
            let search = may_search
                .then(|| lexical::search_for(context, question))
                .flatten();
            search.unwrap_or_else(|| lexical::answer(context, question))
        }
        Stage::Judge => judge(value("request"), value(INSTRUCTIONS)),
        Stage::Probes => propose(value("transcript")),
    }
}

/// Grades the request's answer on each of its criteria; the JSON of the judge's contract. A request that cannot be
/// read is graded on nothing, which the contract refuses. Reasons are in the language of the judge's `instructions`.
fn judge(request: &str, instructions: &str) -> String {
    let locale = locale_of(instructions);
    let results: Vec<serde_json::Value> = match serde_json::from_str::<GradingRequest>(request) {
        Ok(request) => {
            let grade = LiteralGrade::new(&graded_answer(&request), locale);
            let results = request.rubric_criteria.iter().map(|id| {
                let score = grade.score(aspect(id).unwrap_or(Aspect::Completeness));
                json!({"criterionId": id, "score": score, "reasoning": grade.reasoning()})
            });
            results.collect()
        }
        Err(_) => Vec::new(),
    };
    json!({"criterionResults": results}).to_string()
}

fn graded_answer(request: &GradingRequest) -> GradedAnswer<'_> {
    GradedAnswer {
        question: &request.probe_question,
        answer: &request.model_response,
        context: request.compacted_context.as_deref(),
        expected_facts: &request.ground_truth.expected_facts,
        superseded_facts: &request.ground_truth.superseded_facts,
        reference_answer: request.ground_truth.reference_answer.as_deref(),
    }
}

/// What a criterion of the built-in rubrics grades; `None` for one of a user's own rubric.
fn aspect(criterion: &CriterionId) -> Option<Aspect> {
    Some(match criterion.0.as_ref() {
        "accuracy_factual" | "accuracy_technical" => Aspect::Accuracy,
        "context_conversation_state" => Aspect::Currency,
        "context_artifact_state" | "artifact_files_created" => Aspect::FilesNamed,
        "artifact_files_modified" => Aspect::FilesDescribed,
        "artifact_key_details" => Aspect::Details,
        "continuity_todo_state" => Aspect::OpenWork,
        "continuity_reasoning" => Aspect::Reasons,
        "instruction_format" => Aspect::Form,
        "instruction_constraints" => Aspect::Constraints,
        "completeness_coverage" | "completeness_depth" | "continuity_work_state" => {
            Aspect::Completeness
        }
        _ => return None,
    })
}

/// Proposes probes about a rendered transcript, in the shape that a model's reply has.
fn propose(transcript: &str) -> String {
    let span =
        read_transcript(transcript).unwrap_or_else(|| vec![Message::text(Role::User, transcript)]);
    let texts: Vec<&str> = span
        .iter()
        .filter(|message| message.role != Role::Tool)
        .map(|message| message.content.as_str())
        .collect();
    let candidates = propose_candidates(
        &SessionOutline::from_messages(&span),
        locale_of(&texts.concat()),
    );
    json!({ "probes": candidates }).to_string()
}

fn locale_of(text: &str) -> Locale {
    if is_chinese(text) {
        Locale::Zh
    } else {
        Locale::En
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{
        Rubric, Scope, SelfTestDesign, SelfTestVerdict, draw_selftest, grade, read_reply, verdict,
    };
    use crate::probe::{ProbeType, read_candidates};

    fn self_tested(locale: Locale, seed: u64) -> SelfTestVerdict {
        let (test, rubric) = (
            draw_selftest(
                locale,
                SelfTestDesign {
                    seed,
                    padding: 1000,
                },
            ),
            Rubric::built_in(locale),
        );
        let grades = test.cases.iter().map(|case| {
            let criteria = rubric.criteria_for(case.probe_type, Scope::ByType);
            let ids: Vec<CriterionId> = criteria.iter().map(|criterion| criterion.id.clone()).collect();
            let request = json!({
                "probe_question": case.question, "model_response": case.answer, "compacted_context": case.context,
                "rubric_criteria": ids,
                "ground_truth": {
                    "expected_facts": case.truth.expected_facts, "superseded_facts": case.truth.superseded_facts,
                    "reference_answer": if case.answerable { None } else { Some("The transcript does not say.") },
                }
            });
            let scores = read_reply(&judge(&request.to_string(), ""), &ids).expect("keeps the contract");
            (case.id.clone(), grade(rubric, &scores))
        });
        verdict(&test, &grades.collect())
    }

    #[test]
    fn the_self_test_is_passed_in_both_languages_whatever_the_seed() {
        for locale in [Locale::En, Locale::Zh] {
            for seed in 0..40 {
                let verdict = self_tested(locale, seed);
                assert!(verdict.passed, "{locale:?} {seed}: {verdict:#?}");
            }
        }
    }

    #[test]
    fn each_criterion_of_the_built_in_rubrics_has_an_aspect() {
        for locale in [Locale::En, Locale::Zh] {
            let rubric = Rubric::built_in(locale);
            let criteria = ProbeType::ALL
                .into_iter()
                .flat_map(|kind| rubric.criteria_for(kind, Scope::ByType));
            criteria.for_each(|one| {
                assert!(aspect(&one.id).is_some(), "{} is graded by no rule", one.id)
            });
        }
    }

    #[test]
    fn a_request_that_is_no_json_grades_nothing() {
        assert_eq!(judge("no json", ""), r#"{"criterionResults":[]}"#);
    }

    #[test]
    fn reasons_are_in_the_language_of_the_instructions() {
        let request = json!({"probe_question": "Which port?", "model_response": "8081 and 8080",
            "ground_truth": {"expected_facts": ["8081", "nginx"], "superseded_facts": ["8080"]},
            "rubric_criteria": ["accuracy_factual"]});
        let reply = judge(&request.to_string(), Rubric::built_in_text(Locale::Zh));
        assert!(
            reply.contains("按字面匹配。找到的事实：“8081”。缺少的事实：“nginx”。"),
            "{reply}"
        );
    }

    #[test]
    fn a_rendered_transcript_yields_candidates_as_a_reply() {
        let span = "[user]\nFix the retry.\n\n[assistant]\nGoing with linear back-off instead of 2 ** n.\n\
                    [call write_file] {\"path\":\"app/retry.py\",\"content\":\"DELAY = 3\"}\n\n[result write_file]\nok";
        let (candidates, unreadable) = read_candidates(&propose(span)).expect("a reply");
        assert_eq!(unreadable, 0);
        let kinds: Vec<ProbeType> = candidates.iter().map(|candidate| candidate.kind).collect();
        assert!(
            kinds.contains(&ProbeType::Artifact) && kinds.contains(&ProbeType::Decision),
            "{candidates:?}"
        );
        assert_eq!(read_candidates(&propose("")).expect("a reply").0, []);
    }

    #[test]
    fn the_plan_as_it_stood_last_is_asked_for() {
        let span = "[user]\nGo on.\n\n[assistant]\n\n\
                    [call TodoWrite] {\"todos\":[{\"content\":\"Write the parser\",\"status\":\"completed\"},\
                    {\"content\":\"Run the slow tests\",\"status\":\"pending\"}]}\n\n[result TodoWrite]\nok";
        let (candidates, _) = read_candidates(&propose(span)).expect("a reply");
        let plan = candidates
            .iter()
            .find(|c| c.kind == ProbeType::Continuation)
            .expect("a candidate");
        assert_eq!(plan.expected_facts, ["Run the slow tests"]);
    }
}
