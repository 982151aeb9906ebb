//! The check of judges with answers of the run. Some answers that were graded well are changed: one expected fact is
//! made false wherever it is mentioned. Then they are graded again. A judge that checks facts grades nearly all of them
//! lower. If a judge does not, it passed its self-test by other means, and its grades in this run are not reliable.

use std::collections::BTreeMap;

use super::error::EvaluationError;
use super::event::Listening;
use super::recorder::RunKeys;
use super::regrade::{AnswerRows, Regrader, digest_of_answer, name_of_answer, spread};
use crate::action::Digest;
use crate::judge::{Dimension, grade};
use crate::pipeline::JudgeIx;
use crate::plan::{AnswerToRegrade, Output, Task, regrading};
use crate::results::{
    AnswerScores, Design, FalseFactCheck, ResultsFolder, Row, ScoredRow, SetError,
};
use lexical::facts::with_false_value;

/// The lowest grade of an answer that can be used for the check.
const GOOD: f64 = 3.0;
/// The maximum number of expected facts. With more facts, one false fact may not lower the grade.
const MOST_FACTS: usize = 4;

/// An answer in which a fact was made false.
struct FalseAnswer {
    /// The grade of the original answer.
    before: f64,
    task: Task,
}

/// Whether there is a judge to check.
pub(super) fn has_judge_to_check(regrader: &Regrader<'_>) -> bool {
    regrader.pipeline.settings.regrade
        && regrader
            .pipeline
            .judges
            .iter()
            .any(|judge| judge.model.is_asked())
}

/// Checks each judge that is a model. A judge is not checked if there are too few answers in which a fact can be made
/// false, or if the judge may not be asked.
///
/// # Errors
/// Rows cannot be read; the cache or a file cannot be written.
pub(super) fn check_judges(
    regrader: &Regrader<'_>,
    folder: &ResultsFolder,
    design: &Design,
    listening: &Listening<'_>,
    keys: &mut RunKeys,
) -> Result<Vec<FalseFactCheck>, EvaluationError> {
    let mut checks = Vec::new();
    for (at, judge) in regrader
        .pipeline
        .judges
        .iter()
        .enumerate()
        .filter(|(_, judge)| judge.model.is_asked())
    {
        let answers = false_answers(regrader, JudgeIx(at), &judge.name.0, folder, design)?;
        let tasks: Vec<Task> = answers.iter().map(|answer| answer.task.clone()).collect();
        let outputs = regrader.perform(&tasks, listening, keys)?;
        let graded = answers
            .iter()
            .zip(&outputs)
            .filter_map(|(answer, output)| match output {
                Some(Output::Grades(grades)) => {
                    let scores = grade(&regrader.pipeline.rubric, grades);
                    let scores = scores
                        .iter()
                        .map(|(dimension, score)| (dimension, score.value()))
                        .collect();
                    Some(fact_score(&scores)? < answer.before)
                }
                _ => None,
            });
        let lower: Vec<bool> = graded.collect();
        let Some(of) = FalseFactCheck::SIZES
            .into_iter()
            .find(|size| lower.len() >= *size)
        else {
            continue;
        };
        let lower = lower.into_iter().take(of).filter(|lower| *lower).count();
        checks.push(FalseFactCheck {
            judge: judge.name.0.to_string(),
            lower,
            of,
        });
    }
    Ok(checks)
}

/// The answers that a judge grades in a check, at most as many as the larger check needs; none if there are too few for
/// the smaller check.
fn false_answers(
    regrader: &Regrader<'_>,
    judge: JudgeIx,
    name: &str,
    folder: &ResultsFolder,
    design: &Design,
) -> Result<Vec<FalseAnswer>, EvaluationError> {
    let [whole, fewest] = FalseFactCheck::SIZES;
    let chosen = spread(candidates(name, folder)?, 4 * whole);
    let rows = folder
        .rows_in(&chosen.iter().flatten().copied().collect())
        .map_err(SetError::from)?;
    let rows = chosen.iter().flatten().filter_map(|place| rows.get(place));
    let answers: Vec<FalseAnswer> = rows
        .filter_map(|row| false_answer(regrader, judge, design, row))
        .take(whole)
        .collect();
    Ok(if answers.len() < fewest {
        Vec::new()
    } else {
        answers
    })
}

fn false_answer(
    regrader: &Regrader<'_>,
    judge: JudgeIx,
    design: &Design,
    row: &Row,
) -> Option<FalseAnswer> {
    let probe = regrader.probe(row)?;
    let truths = [probe.expected_facts.as_slice(), &probe.superseded_facts].concat();
    let text = probe
        .expected_facts
        .iter()
        .find_map(|fact| with_false_value(&row.answer, fact, &truths))?;
    let context = regrader.context(design, row)?;
    let name = name_of_answer(row);
    let answer = AnswerToRegrade {
        name: &name,
        probe,
        text: &text,
        context: context.as_deref(),
    };
    let task = regrading(regrader.pipeline, judge, answer, None).ok()?;
    Some(FalseAnswer {
        before: fact_score(&row.dimensions)?,
        task,
    })
}

/// The answers that a judge graded well, by their digests, so that their order is arbitrary.
fn candidates(
    judge: &str,
    folder: &ResultsFolder,
) -> Result<BTreeMap<Digest, AnswerRows>, EvaluationError> {
    let mut found = BTreeMap::new();
    for (place, row) in folder.rows()?.scored().enumerate() {
        let row = row.map_err(SetError::from)?;
        if row.judge == judge && is_candidate(&row) {
            found.insert(
                digest_of_answer(&row),
                AnswerRows {
                    fixture: row.fixture,
                    places: vec![place],
                },
            );
        }
    }
    Ok(found)
}

fn is_candidate(row: &ScoredRow) -> bool {
    let is_good = fact_score(&row.dimensions).is_some_and(|score| score >= GOOD);
    row.judge_n == 1
        && row.open_book.is_none()
        && (1..=MOST_FACTS).contains(&row.facts.len())
        && is_good
}

/// The mean of the two dimensions that are about facts.
fn fact_score(scores: &AnswerScores) -> Option<f64> {
    Some((scores.get(&Dimension::Accuracy)? + scores.get(&Dimension::Completeness)?) / 2.0)
}
