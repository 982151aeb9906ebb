//! The contract of a judge's reply: lenient about its wrapping, strict about what it grades.
//!
//! Only `criterionResults` is read; everything else is ignored, aggregates in particular.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::criterion::CriterionId;
use super::score::CriterionScore;
use base::locale::localized;
use base::say;
use base::text::{one_line, shortened};

/// How a reply breaks the contract. The judge is asked again, a bounded number of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ReplyFault {
    #[error("{}", say!("the judge's reply holds no JSON object with `criterionResults`; it begins: {_0}", "评审的回复中没有含 `criterionResults` 的 JSON 对象；开头为：{_0}"))]
    NoGrading(String),
    /// More than one, and they differ.
    #[error("{}", say!("the judge's reply holds {_0} gradings that differ; expected one", "评审的回复中有 {_0} 份不同的评分；应只有一份"))]
    SeveralGradings(usize),
    /// It is not a list.
    #[error(
        "{}",
        localized(
            "`criterionResults` in the judge's reply is not a list",
            "评审回复中的 `criterionResults` 不是列表"
        )
    )]
    NotAList,
    /// An entry lacks its id.
    #[error("{}", say!("entry {_0} of `criterionResults` has no `criterionId`", "`criterionResults` 的第 {_0} 项没有 `criterionId`"))]
    NoId(usize),
    #[error("{}", say!("the judge scored `{_0}`, which is not among the criteria it was given", "评审给 `{_0}` 打了分，而它不在所给的准则之中"))]
    Invented(String),
    /// Scored twice, and not alike.
    #[error("{}", say!("the judge scored `{_0}` more than once, and not alike", "评审给 `{_0}` 多次打分，且不一致"))]
    Contradicted(String),
    #[error("{}", say!("the judge left out `{_0}`", "评审漏掉了 `{_0}`"))]
    Missing(String),
    /// No number, a fraction, or outside the scale.
    #[error("{}", say!("the judge gave `{id}` the score {score}; expected a whole number from 0 to 5", "评审给 `{id}` 打了 {score} 分；应为 0 至 5 的整数"))]
    OffScale {
        id: String,
        /// What was given, as JSON; `null` if nothing.
        score: String,
    },
}

/// Reads a judge's reply: one score for each of `criteria`, in their order.
///
/// Code fences and prose around the JSON object are passed over, `4.0` counts as 4, the case of ids is ignored, and a
/// criterion that was scored again with the same score counts once.
pub fn read_reply(text: &str, criteria: &[CriterionId]) -> Result<Vec<CriterionScore>, ReplyFault> {
    let grading = find_grading(text)?;
    let entries = grading.as_array().ok_or(ReplyFault::NotAList)?;
    let mut found: Vec<Option<CriterionScore>> = vec![None; criteria.len()];
    for (index, entry) in entries.iter().enumerate() {
        let id = entry
            .get("criterionId")
            .and_then(Value::as_str)
            .ok_or(ReplyFault::NoId(index + 1))?
            .trim();
        let known =
            position_of(criteria, id).and_then(|at| criteria.get(at).zip(found.get_mut(at)));
        let (criterion, slot) = known.ok_or_else(|| ReplyFault::Invented(excerpt(id)))?;
        let score = read_score(criterion, entry)?;
        match slot {
            None => *slot = Some(score),
            // Small models repeat themselves; only what contradicts itself is not a grade.
            Some(first) if first.points() == score.points() => {}
            Some(_) => return Err(ReplyFault::Contradicted(criterion.to_string())),
        }
    }
    let scores = criteria.iter().zip(found);
    scores
        .map(|(id, score)| score.ok_or_else(|| ReplyFault::Missing(id.to_string())))
        .collect()
}

/// The index of the criterion with this id, whatever its case.
fn position_of(criteria: &[CriterionId], id: &str) -> Option<usize> {
    let exact = criteria.iter().position(|criterion| *criterion.0 == *id);
    exact.or_else(|| {
        let lower = id.to_lowercase();
        criteria
            .iter()
            .position(|criterion| criterion.0.to_lowercase() == lower)
    })
}

fn read_score(criterion: &CriterionId, entry: &Value) -> Result<CriterionScore, ReplyFault> {
    let given = entry.get("score").unwrap_or(&Value::Null);
    let whole = given
        .as_f64()
        .filter(|score| score.fract() == 0.0 && (0.0..=5.0).contains(score));
    let reasoning = entry.get("reasoning").and_then(Value::as_str).unwrap_or("");
    let score =
        whole.and_then(|score| CriterionScore::new(criterion.clone(), score as u8, reasoning));
    score.ok_or_else(|| ReplyFault::OffScale {
        id: criterion.to_string(),
        score: excerpt(&given.to_string()),
    })
}

const KEY: &str = "criterionResults";

/// The one value of `criterionResults` in the text.
fn find_grading(text: &str) -> Result<Value, ReplyFault> {
    let mut gradings: Vec<Value> = Vec::new();
    let mut from = 0;
    while let Some(open) = text
        .get(from..)
        .and_then(|rest| rest.find('{'))
        .map(|at| from + at)
    {
        let mut stream = serde_json::Deserializer::from_str(text.get(open..).unwrap_or(""))
            .into_iter::<Map<String, Value>>();
        from = match stream.next() {
            Some(Ok(mut object)) => match object.remove(KEY) {
                Some(grading) => {
                    gradings.push(grading);
                    open + stream.byte_offset()
                }
                None => open + 1,
            },
            _ => open + 1,
        };
    }
    gradings.dedup();
    match gradings.len() {
        1 => gradings.pop().ok_or(ReplyFault::NotAList),
        0 => Err(ReplyFault::NoGrading(excerpt(text))),
        several => Err(ReplyFault::SeveralGradings(several)),
    }
}

/// The beginning of a text, on one line, to recognise it by.
fn excerpt(text: &str) -> String {
    const LENGTH: usize = 120;
    shortened(&one_line(text), LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOUND: &str = r#"{"criterionResults":[
        {"criterionId":"b_two","score":4.0,"reasoning":"good"},
        {"criterionId":"a_one","score":0,"reasoning":"wrong"}],"overall":5}"#;

    fn criteria() -> Vec<CriterionId> {
        vec!["a_one".into(), "b_two".into()]
    }

    fn points(text: &str) -> Vec<u8> {
        read_reply(text, &criteria())
            .expect("sound")
            .iter()
            .map(CriterionScore::points)
            .collect()
    }

    fn fault(text: &str) -> String {
        read_reply(text, &criteria())
            .expect_err("a fault")
            .to_string()
    }

    #[test]
    fn scores_come_in_the_order_of_the_criteria() {
        assert_eq!(points(SOUND), [0, 4]);
    }

    #[test]
    fn fences_prose_and_case_are_passed_over() {
        assert_eq!(
            points(&format!(
                "Sure {{here}} it is:\n```json\n{SOUND}\n```\nDone."
            )),
            [0, 4]
        );
        assert_eq!(points(&SOUND.replace("a_one", "A_ONE")), [0, 4]);
        assert_eq!(points(&format!("{{\"result\": {SOUND}}}")), [0, 4]);
        assert_eq!(points(&format!("{SOUND}\n{SOUND}")), [0, 4]);
    }

    #[test]
    fn every_breach_is_named() {
        assert!(fault("I would give it a 4.").contains("no JSON object with `criterionResults`"));
        assert!(
            fault(&SOUND.replace("b_two", "c_three")).contains("`c_three`, which is not among")
        );
        assert!(fault(&SOUND.replace("b_two", "A_one")).contains("`a_one` more than once"));
        assert!(fault(&SOUND.replace("4.0", "4.5")).contains("the score 4.5"));
        assert!(fault(&SOUND.replace("4.0", "6")).contains("the score 6"));
        assert!(fault(&SOUND.replace("4.0", "-1")).contains("the score -1"));
        assert!(fault(&SOUND.replace("4.0", "\"4\"")).contains("expected a whole number"));
        assert!(fault(&SOUND.replace("\"score\":4.0,", "")).contains("the score null"));
        assert!(
            fault(r#"{"criterionResults":[{"criterionId":"a_one","score":1}]}"#)
                .contains("left out `b_two`")
        );
        assert!(fault(r#"{"criterionResults":{}}"#).contains("not a list"));
        assert!(fault(r#"{"criterionResults":[{"score":1}]}"#).contains("entry 1"));
    }

    #[test]
    fn what_a_small_model_writes_inside_the_schema_is_distinguished() {
        let entry = |id: &str, score: u8| {
            format!(r#"{{"criterionId":"{id}","reasoning":"is","score":{score}}}"#)
        };
        let reply =
            |entries: &[String]| format!("{{\n  \"criterionResults\":[{}]}}", entries.join(","));
        // It counts upwards, names one criterion again and again, and leaves the others out.
        let counting: Vec<String> = (5..9).map(|score| entry("a_one", score)).collect();
        assert!(fault(&reply(&counting)).contains("the score 6"));
        assert!(
            fault(&reply(&[entry("a_one", 3), entry("a_one", 4)]))
                .contains("`a_one` more than once, and not")
        );
        assert!(fault(&reply(&[entry("a_one", 7), entry("b_two", 8)])).contains("the score 7"));
        assert!(fault(&reply(&[entry("a_one", 2)])).contains("left out `b_two`"));
        // One and the same score everywhere is sound here; the self-test catches it.
        assert_eq!(
            points(&reply(&[entry("b_two", 2), entry("a_one", 2)])),
            [2, 2]
        );
        // So is a score that is only said again.
        assert_eq!(
            points(&reply(&[
                entry("a_one", 3),
                entry("b_two", 2),
                entry("a_one", 3)
            ])),
            [3, 2]
        );
    }

    #[test]
    fn a_grading_quoted_from_the_material_does_not_slip_in() {
        let quoted = SOUND.replace("\"score\":0", "\"score\":5");
        assert!(
            fault(&format!("It says {quoted}, but I say {SOUND}"))
                .contains("2 gradings that differ")
        );
    }

    #[test]
    fn a_score_survives_a_file() {
        let scores = read_reply(SOUND, &criteria()).unwrap();
        let json = serde_json::to_string(&scores).unwrap();
        assert!(json.starts_with(r#"[{"criterionId":"a_one","score":0,"reasoning":"wrong"}"#));
        assert_eq!(
            serde_json::from_str::<Vec<CriterionScore>>(&json).unwrap(),
            scores
        );
        assert!(
            serde_json::from_str::<CriterionScore>(r#"{"criterionId":"a","score":6}"#).is_err()
        );
    }

    proptest! {
        #[test]
        fn no_reply_panics(text in "[\\PC{}\\[\\]\":,]{0,60}") {
            let _ = read_reply(&text, &criteria());
        }
    }
}
