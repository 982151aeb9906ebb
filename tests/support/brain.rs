//! A rule-based model for test servers. It summarizes by keeping lines with figures, answers with the lines that match
//! the question, and grades by the facts in the answer. It sees nothing but the text of a request.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::sync::LazyLock;

use base::locale::Locale;
use compeval::judge::{
    Case, CaseKind, CriterionId, Dimension, Quality, Rubric, SelfTest, SelfTestDesign,
    draw_selftest,
};
use serde_json::{Value, json};

/// What a request asks for, as its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    Compression,
    Answer,
    Grades,
}

/// All text of the messages of a chat request.
pub fn text_of(request: &Value) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    texts.join("\n")
}

pub fn wanted(text: &str) -> Wanted {
    if text.contains("<material>") {
        Wanted::Grades
    } else if text.contains("\nQuestion: ") {
        Wanted::Answer
    } else {
        Wanted::Compression
    }
}

/// The reply to a chat request.
pub fn reply(request: &Value) -> String {
    let text = text_of(request);
    match wanted(&text) {
        Wanted::Compression => notes(&text),
        Wanted::Answer => answer(&text),
        Wanted::Grades => grades(&text).unwrap_or_else(|| "the material cannot be read".to_owned()),
    }
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> &'t str {
    // Instructions may name the tags before the tags that enclose the material.
    let inner = text.rsplit_once(open).map_or("", |(_, rest)| rest);
    inner.split_once(close).map_or("", |(inner, _)| inner)
}

/// The headings that the prompt asks for. All lines with a figure stand below the first one.
fn notes(prompt: &str) -> String {
    let standing = between(prompt, "<standing_notes>", "</standing_notes>");
    let transcript = between(prompt, "<transcript>", "</transcript>");
    let material = format!("{standing}\n{transcript}");
    let outside = prompt.replace(transcript, "").replace(standing, "");
    let headings: Vec<&str> = outside
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    let mut lines: Vec<&str> = Vec::new();
    for line in material
        .lines()
        .filter(|line| line.contains(|c: char| c.is_ascii_digit()))
    {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let mut text = String::new();
    for (nth, heading) in headings.iter().enumerate() {
        let body = if nth == 0 {
            lines.join("\n")
        } else {
            "(none)".to_owned()
        };
        text.push_str(&format!("{heading}\n{body}\n\n"));
    }
    if text.is_empty() {
        format!("Notes:\n{}", lines.join("\n"))
    } else {
        text
    }
}

/// The three lines that share the most words with the question.
fn answer(prompt: &str) -> String {
    let (before, question) = prompt.rsplit_once("\nQuestion: ").unwrap_or_default();
    let context = between(before, "<context>", "</context>");
    let asked: Vec<String> = words(question).collect();
    let mut found: Vec<(usize, &str)> = context
        .lines()
        .map(|line| {
            (
                words(line).filter(|word| asked.contains(word)).count(),
                line,
            )
        })
        .filter(|(shared, _)| *shared > 0)
        .collect();
    found.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    if found.is_empty() {
        return "What was kept does not hold the answer.".to_owned();
    }
    found
        .iter()
        .take(3)
        .map(|(_, line)| *line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= 4)
        .map(str::to_lowercase)
}

/// The material between the marks of a judge's prompt.
pub fn material(prompt: &str) -> Option<Value> {
    // The answer inside may hold the closing mark too.
    let inner = prompt
        .split_once("\n<material>\n")?
        .1
        .rsplit_once("\n</material>\n")?
        .0;
    serde_json::from_str(inner).ok()
}

/// The self-test cases of projects without a seed of their own, in both languages. The size of contexts changes neither
/// questions nor answers.
fn selftests() -> &'static [SelfTest; 2] {
    static TESTS: LazyLock<[SelfTest; 2]> = LazyLock::new(|| {
        [Locale::En, Locale::Zh].map(|locale| {
            draw_selftest(
                locale,
                SelfTestDesign {
                    seed: 0,
                    padding: 1000,
                },
            )
        })
    });
    &TESTS
}

/// The case of the self-test that a judge is asked about; `None` if it is asked about an answer of the run.
pub fn case_of(brief: &Value) -> Option<&'static Case> {
    let asks = |case: &&Case| {
        brief["model_response"] == *case.answer && brief["probe_question"] == *case.question
    };
    selftests()
        .iter()
        .find_map(|test| test.cases.iter().find(asks))
}

/// How good the answer of a case is in a dimension; `None` where it has no label. A lengthened copy is as good as its
/// original.
pub fn quality_of(case: &Case, dimension: Dimension) -> Option<Quality> {
    let labelled = match &case.kind {
        CaseKind::Lengthened(of) => selftests().iter().find_map(|test| {
            let original = test.case(of)?;
            case.answer
                .starts_with(&original.answer)
                .then_some(original)
        })?,
        CaseKind::Labelled | CaseKind::Injection => case,
    };
    labelled.labels.get(&dimension).copied()
}

/// A reply that gives each criterion a score by its dimension.
pub fn graded_by(brief: &Value, score: impl Fn(Dimension) -> u64) -> Option<String> {
    let dimension = |id: &Value| {
        let criterion =
            Rubric::built_in(Locale::En).criterion(&CriterionId::from(id.as_str().unwrap_or("")));
        criterion.map_or(Dimension::Accuracy, |criterion| criterion.dimension)
    };
    let entry = |id: &Value| json!({"criterionId": id, "score": score(dimension(id)), "reasoning": "by the answer"});
    let results: Vec<Value> = brief["rubric_criteria"]
        .as_array()?
        .iter()
        .map(entry)
        .collect();
    Some(json!({"criterionResults": results}).to_string())
}

/// The scores of a judge that knows how good each answer is.
pub fn sound(case: &Case, dimension: Dimension) -> u64 {
    match quality_of(case, dimension) {
        Some(Quality::Right) => 5,
        Some(Quality::Half) => 3,
        Some(Quality::Wrong) | None => 1,
    }
}

/// A reply that gives all criteria asked for the same score.
pub fn graded(brief: &Value, score: u64) -> Option<String> {
    let entry =
        |id: &Value| json!({"criterionId": id, "score": score, "reasoning": "by the facts stated"});
    let results: Vec<Value> = brief["rubric_criteria"]
        .as_array()?
        .iter()
        .map(entry)
        .collect();
    Some(json!({"criterionResults": results}).to_string())
}

/// Five for an answer with all expected facts, less for some, the least for none. Facts are looked for literally. That
/// is too crude to pass the self-test, so the quality of its answers is looked up.
fn grades(prompt: &str) -> Option<String> {
    let brief = material(prompt)?;
    if let Some(case) = case_of(&brief) {
        return graded_by(&brief, |dimension| sound(case, dimension));
    }
    let said = brief["model_response"].as_str()?.to_lowercase();
    let facts = brief["ground_truth"]["expected_facts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let states = |fact: &Value| match fact {
        Value::Array(spellings) => spellings
            .iter()
            .filter_map(Value::as_str)
            .any(|s| said.contains(&s.to_lowercase())),
        fact => fact
            .as_str()
            .is_some_and(|fact| said.contains(&fact.to_lowercase())),
    };
    let score = match facts.iter().filter(|fact| states(fact)).count() {
        _ if facts.is_empty() => {
            5 * u64::from(said.contains("does not") || said.contains("not say"))
        }
        stated => (5 * stated / facts.len()) as u64,
    };
    graded(&brief, score)
}
