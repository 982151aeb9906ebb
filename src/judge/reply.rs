//! The contract of a judge's reply: lenient about its wrapping, strict about what it grades.
//!
//! Only `criterionResults` is read; everything else is ignored, aggregates in particular.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::rubric::CriterionId;
use super::score::CriterionScore;
use base::text::{one_line, plain, shortened};
use base::words::WordList;

/// How a reply breaks the contract. The judge is asked again, a bounded number of times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplyFault(String);

fn fault(message: impl Into<String>) -> ReplyFault {
    ReplyFault(message.into())
}

/// Reads a judge's reply: one score for each of `criteria`, in their order.
///
/// Code fences and prose around the JSON are passed over, reasons may be badly written, fields a little differently named,
/// `4.0` and `"4 out of 5"` count as 4, only letters and digits of ids count, and a criterion that was scored again with the same score counts
/// once.
pub fn read_reply(text: &str, criteria: &[CriterionId]) -> Result<Vec<CriterionScore>, ReplyFault> {
    let grading = find_grading(text, criteria)?;
    let entries = grading
        .as_array()
        .ok_or_else(|| fault("`criterionResults` in the judge's reply is not a list"))?;
    let mut found: Vec<Option<CriterionScore>> = vec![None; criteria.len()];
    for (index, entry) in entries.iter().enumerate() {
        let id = field(entry, ID).and_then(Value::as_str).ok_or_else(|| {
            fault(format!(
                "entry {} of `criterionResults` has no `criterionId`",
                index + 1
            ))
        })?;
        let known =
            position_of(criteria, id).and_then(|at| criteria.get(at).zip(found.get_mut(at)));
        let (criterion, slot) = known.ok_or_else(|| {
            let id = excerpt(id);
            fault(format!(
                "the judge scored `{id}`, which is not among the criteria it was given"
            ))
        })?;
        let score = read_score(criterion, entry)?;
        match slot {
            None => *slot = Some(score),
            // Small models repeat themselves; only what contradicts itself is not a grade.
            Some(first) if first.points() == score.points() => {}
            Some(_) => {
                let message = "more than once, with different scores";
                return Err(fault(format!("the judge scored `{criterion}` {message}")));
            }
        }
    }
    let scores = criteria.iter().zip(found);
    scores
        .map(|(id, score)| score.ok_or_else(|| fault(format!("the judge left out `{id}`"))))
        .collect()
}

/// The index of the criterion with this id, as it is or by its letters and digits.
fn position_of(criteria: &[CriterionId], id: &str) -> Option<usize> {
    let exact = criteria.iter().position(|criterion| *criterion.0 == *id);
    exact.or_else(|| {
        criteria
            .iter()
            .position(|criterion| plain(&criterion.0) == plain(id))
    })
}

fn read_score(criterion: &CriterionId, entry: &Value) -> Result<CriterionScore, ReplyFault> {
    let given = field(entry, SCORE).unwrap_or(&Value::Null);
    let whole = given
        .as_f64()
        .or_else(|| out_of_five(given.as_str()?).parse().ok())
        .filter(|score| score.fract() == 0.0 && (0.0..=5.0).contains(score));
    let reasoning = field(entry, REASONING);
    let reasoning = reasoning.and_then(Value::as_str).unwrap_or("");
    let score =
        whole.and_then(|score| CriterionScore::new(criterion.clone(), score as u8, reasoning));
    score.ok_or_else(|| {
        let given = excerpt(&given.to_string());
        fault(format!(
            "the judge gave `{criterion}` the score {given}; expected a whole number from 0 to 5"
        ))
    })
}

/// The figure in `4`, `**4**`, `4/5` and `4 points`.
fn out_of_five(score: &str) -> &str {
    const SUFFIXES: [&str; 6] = ["/5", "/ 5", "/5.0", "out of 5", "points", "分"];
    let score = score.trim_matches([' ', '\n', '*']);
    let figure = SUFFIXES.iter().find_map(|end| score.strip_suffix(end));
    figure.unwrap_or(score).trim_end()
}

/// The names that judges give to the list of gradings, and to what an entry of it holds.
const LIST: WordList =
    WordList("criterionResults criteriaResults criteria results grades scores ratings");
const ID: WordList = WordList("criterionId criterion_id criterion id name");
const SCORE: WordList = WordList("score points grade rating");
const REASONING: WordList = WordList("reasoning reason rationale explanation comment");

fn field(object: &Value, names: WordList) -> Option<&Value> {
    let fields = object.as_object()?;
    let named = |name: &str| fields.iter().find(|(key, _)| plain(key) == plain(name));
    names.iter().find_map(|name| Some(named(name)?.1))
}

/// The one list of gradings in the text, as sound JSON or as what was meant to be.
fn find_grading(text: &str, criteria: &[CriterionId]) -> Result<Value, ReplyFault> {
    let mut gradings = gradings_in(text, criteria)?;
    if gradings.is_empty() {
        gradings = gradings_in(&mended(text), criteria)?;
    }
    if gradings.is_empty() {
        gradings.extend(figures_in(text));
    }
    if gradings.len() > 1 {
        // The form may be shown before it is filled in.
        let is_known = |entry: &Value| {
            let id = field(entry, ID).and_then(Value::as_str);
            id.is_some_and(|id| position_of(criteria, id).is_some())
        };
        gradings.retain(|grading| {
            grading
                .as_array()
                .is_some_and(|list| list.iter().any(is_known))
        });
    }
    gradings.dedup();
    if gradings.len() > 1 {
        let count = gradings.len();
        return Err(fault(format!(
            "the judge's reply holds {count} different sets of grades; expected one"
        )));
    }
    gradings.pop().ok_or_else(|| {
        fault(if text.contains("riterion") && text.contains("score") {
            let place = place_of_fault(text);
            format!("the judge's grading is not valid JSON: {place}")
        } else {
            let seen = excerpt(text);
            format!(
                "the judge's reply holds no JSON object with `criterionResults`; it begins: {seen}"
            )
        })
    })
}

/// Every list of gradings that stands in a text as JSON.
fn gradings_in(text: &str, criteria: &[CriterionId]) -> Result<Vec<Value>, ReplyFault> {
    let mut gradings: Vec<Value> = Vec::new();
    let mut from = 0;
    while let Some(open) = text
        .get(from..)
        .and_then(|rest| rest.find(['{', '[']))
        .map(|at| from + at)
    {
        let rest = text.get(open..).unwrap_or("");
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let grading = match stream.next() {
            Some(Ok(value)) => grading_of(&value, criteria),
            _ => None,
        };
        let length = grading.as_ref().map_or(1, |_| stream.byte_offset());
        if grading.is_some() {
            refuse_repeated_keys(rest.get(..length).unwrap_or(""))?;
        }
        from = open + length;
        gradings.extend(grading);
    }
    Ok(gradings)
}

/// The list that a value holds: under its name, as a list of entries, or as an object of scores by criterion.
fn grading_of(value: &Value, criteria: &[CriterionId]) -> Option<Value> {
    let is_entry = |entry: &Value| field(entry, ID).is_some() && field(entry, SCORE).is_some();
    let list = match value {
        Value::Array(entries) => {
            return (!entries.is_empty() && entries.iter().all(is_entry)).then(|| value.clone());
        }
        value => match field(value, LIST) {
            Some(list) => list,
            None if criteria.iter().all(|id| value.get(&*id.0).is_some()) => value,
            None => return None,
        },
    };
    match list {
        Value::Object(by_criterion)
            if by_criterion
                .keys()
                .any(|id| position_of(criteria, id).is_some()) =>
        {
            let entries = by_criterion.iter().map(|(id, given)| match given {
                Value::Object(given) => {
                    let mut entry = given.clone();
                    entry.insert("criterionId".to_owned(), id.clone().into());
                    Value::Object(entry)
                }
                score => serde_json::json!({"criterionId": id, "score": score}),
            });
            Some(entries.collect())
        }
        list => Some(list.clone()),
    }
}

/// The text with what small models write in place of JSON mended: raw line breaks and bad escapes in strings, comments, and
/// commas before a closing bracket.
fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let (mut is_string, mut rest) = (false, text.chars().peekable());
    while let Some(c) = rest.next() {
        match (is_string, c, rest.peek().copied()) {
            (_, '"', _) => {
                is_string = !is_string;
                mended.push('"');
            }
            (true, '\\', Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                mended.push('\\');
                mended.extend(rest.next());
            }
            // `\u0041` and `C:\users` alike: a reason may show either.
            (true, '\\', _) => mended.push_str("\\\\"),
            (true, c, _) if c.is_control() => mended.push(' '),
            (false, '/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            (false, '/', Some('*')) => {
                let mut before = ' ';
                for c in rest.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            (false, '}' | ']', _) => {
                let kept = mended.trim_end().trim_end_matches(',').len();
                mended.truncate(kept);
                mended.push(c);
            }
            (_, c, _) => mended.push(c),
        }
    }
    mended
}

/// An id or a score behind its name. Quotes may be of any kind or missing, but an unquoted name stands where a key does.
static FIGURE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const QUOTE: &str = r#"["'`“”‘’]"#;
    let key = |names: WordList| {
        format!(
            r"(?:{QUOTE}|[{{,\n]\s*)(?:{}){QUOTE}?\s*[:：]\s*{QUOTE}?",
            names.0.replace(' ', "|")
        )
    };
    let (id, score) = (key(ID), key(SCORE));
    Regex::new(&format!(
        r#"(?i){id}(?<id>[^\s,{{}}"'`“”‘’]+)|{score}(?<score>-?[0-9.]+)"#
    ))
    .ok()
});

/// The figures alone, where reasons or quotes break the JSON: ids and scores in turn, each id with one score.
fn figures_in(text: &str) -> Option<Value> {
    // A grading inside a string or a web page has its quotes escaped.
    let plain = text
        .replace('\\', "")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"");
    let figures = FIGURE.as_ref()?.captures_iter(&plain);
    let found: Vec<(bool, Value)> = figures
        .filter_map(|figure| match (figure.name("id"), figure.name("score")) {
            (Some(id), _) => Some((true, id.as_str().into())),
            (_, score) => Some((false, score?.as_str().parse::<f64>().ok()?.into())),
        })
        .collect();
    let pairs = found.chunks(2).map(|pair| match pair {
        [(true, id), (false, score)] | [(false, score), (true, id)] => {
            Some(serde_json::json!({"criterionId": id, "score": score}))
        }
        _ => None,
    });
    let entries: Option<Vec<Value>> = pairs.collect();
    entries
        .filter(|entries| !entries.is_empty())
        .map(Value::from)
}

/// Where the JSON of a reply breaks, with what stands there.
fn place_of_fault(text: &str) -> String {
    let start = text.find('{').unwrap_or(0);
    let json = text.get(start..).unwrap_or("");
    let Some(error) = serde_json::from_str::<Value>(json).err() else {
        return excerpt(text);
    };
    let line = json
        .lines()
        .nth(error.line().saturating_sub(1))
        .unwrap_or("");
    let around: String = line
        .chars()
        .skip(error.column().saturating_sub(40))
        .collect();
    format!("{error}: {}", excerpt(&around))
}

/// Refuses an object in which a key stands twice.
fn refuse_repeated_keys(object: &str) -> Result<(), ReplyFault> {
    repeated_key(object).map_or(Ok(()), |key| {
        let key = excerpt(&key);
        Err(fault(format!(
            "the judge's reply has the key `{key}` twice in one object"
        )))
    })
}

/// The first key of a JSON value that stands twice in one object, if there is one. The value was read before, so it is
/// not nested without end.
fn repeated_key(json: &str) -> Option<String> {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
        return items.iter().find_map(|item| repeated_key(item.get()));
    }
    let Members(members) = serde_json::from_str(json).ok()?;
    let mut known = BTreeSet::new();
    members.into_iter().find_map(|(key, value)| {
        repeated_key(value.get()).or_else(|| (!known.insert(plain(&key))).then_some(key))
    })
}

/// The members of a JSON object, those with the same key too.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Keys)
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
        assert!(
            fault(&SOUND.replace("\"score\":4.0", "\"score\":1,\"score\":4"))
                .contains("the key `score` twice")
        );
        assert!(fault(&SOUND.replace("4.0", "4.5")).contains("the score 4.5"));
        for odd in ["6", "\"4 of 10\"", "\"4/15\"", "\"3-4\"", "\"14 points\""] {
            let message = fault(&SOUND.replace("4.0", odd));
            assert!(message.contains("expected a whole number"), "{message}");
        }
        assert!(fault(&SOUND.replace("4.0", "-1")).contains("the score -1"));
        assert!(fault(&SOUND.replace("4.0", "\"four\"")).contains("expected a whole number"));
        assert!(
            fault(&SOUND.replace("\"score\":4.0", "\"score\":1,\"Score\":4"))
                .contains("the key `Score` twice")
        );
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
                .contains("`a_one` more than once, with different scores")
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
    fn figures_are_read_where_the_rest_is_not_quite_json() {
        let with = |reason: &str| SOUND.replace("wrong", reason);
        for reply in [
            with("line one\nline two\ttab"),
            with(r"matches \d+ and \$HOME and \'x\'"),
            with(r"C:\users\main.rs"),
            with(r#"he said "E1000" there"#),
            with(r#"the regex is "a{2}", he said"#),
            SOUND.replace("},", "}, // good\n").replace("5}", "5,}"),
            SOUND
                .replace("[\n", "[ /* both */\n")
                .replace("}],", "},],"),
            SOUND
                .replace("criterionResults", "criterion_results")
                .replace("criterionId", "criterion_id"),
            SOUND
                .replace("criterionResults", "results")
                .replace("criterionId", "id")
                .replace("score", "points"),
            SOUND.replace("4.0", "\"4\""),
            r#"[{"criterion":"b_two","score":4},{"criterion":"a_one","score":0}]"#.to_owned(),
            r#"{"criterionResults":{"b_two":{"score":4},"a_one":{"score":0,"reasoning":"x"}}}"#
                .to_owned(),
            r#"{"scores":{"a_one":0,"b_two":4}}"#.to_owned(),
            r#"{"b_two":{"score":4},"a_one":{"score":"0/5"}}"#.to_owned(),
            SOUND.replace('"', "'"),
            SOUND.replace('"', "”"),
            SOUND.replace('"', "&quot;"),
            SOUND.replace("\":", "\"："),
            SOUND
                .replace("\"criterionId\"", "criterionId")
                .replace("\"score\"", "score"),
            SOUND.replace("4.0", "4 # good\n"),
            SOUND
                .replace("criterionR", "CriterionR")
                .replace("criterionI", "CriterionI"),
            SOUND.replace("a_one", "`a_one`"),
            SOUND
                .replace("a_one", "a-One")
                .replace("b_two", "**b two**"),
            SOUND.replace("4.0", "\"4 / 5\""),
            SOUND.replace("4.0", "\"4 out of 5\""),
            SOUND.replace("4.0", "\"**4**\""),
            SOUND.replace("4.0", "\"4 points\""),
            SOUND.replace("4.0", "\"4分\""),
            format!(
                "The form is {}:\n{SOUND}",
                r#"{"criterionResults":[{"criterionId":"string","score":"integer"}]}"#
            ),
            serde_json::json!({ "output": SOUND }).to_string(),
            format!("The form is {{\"criterionResults\": []}}.\n{SOUND}"),
            with("a \" b")
                .replace(
                    r#""criterionId":"a_one","score":0,"reasoning""#,
                    r#""score":0,"criterionId":"a_one","reasoning""#,
                )
                .replace(
                    r#""criterionId":"b_two","score":4.0"#,
                    r#""score":4.0,"criterionId":"b_two""#,
                ),
        ] {
            assert_eq!(points(&reply), [0, 4], "{reply}");
        }
        let cut = with("he said \"x").replace("\"score\":0", "\"score\":");
        assert!(
            fault(&cut).contains("not valid JSON: ") && fault(&cut).contains("column"),
            "{}",
            fault(&cut)
        );
        let both = format!(
            "{}{}",
            with("a \" b"),
            with("a \" b").replace("\"score\":0", "\"score\":3")
        );
        assert!(fault(&both).contains("more than once"), "{}", fault(&both));
    }

    #[test]
    fn a_grading_quoted_from_the_material_does_not_slip_in() {
        let quoted = SOUND.replace("\"score\":0", "\"score\":5");
        assert!(
            fault(&format!("It says {quoted}, but I say {SOUND}"))
                .contains("2 different sets of grades")
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
