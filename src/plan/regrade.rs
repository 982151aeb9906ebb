//! Regrading as tasks: answers that judges grade once more, of a baseline as they were, or of the run with a fact made false.

use std::rc::Rc;

use super::prepare::{PrepareError, judge_request, question_about};
use super::task::{RegradeTask, Task};
use crate::action::{Digest, ModelRequest, Work};
use crate::pipeline::{JudgeIx, Pipeline};
use crate::probe::Probe;

/// An answer, as a judge sees it.
#[derive(Clone, Copy, Debug)]
pub struct AnswerToRegrade<'a> {
    /// Which one, in names.
    pub name: &'a str,
    pub probe: &'a Probe,
    pub text: &'a str,
    /// The context behind it; `None` where judges do not see it or only its provider can read it.
    pub context: Option<&'a str>,
}

/// Asks every judge to grade an answer again, as it was asked before. `occasion` identifies what this is done for: as long as
/// that is the same, the reply in the cache is.
///
/// # Errors
/// A judge's prompt does not render.
pub fn regradings(
    pipeline: &Pipeline,
    answer: AnswerToRegrade<'_>,
    occasion: Digest,
) -> Result<Vec<Task>, PrepareError> {
    (0..pipeline.judges.len()).map(|judge| regrading(pipeline, JudgeIx(judge), answer, Some(occasion))).collect()
}

/// Asks one judge to grade an answer again, or as it is now. Without an occasion an equal request is in the cache.
///
/// # Errors
/// The judge's prompt does not render.
pub fn regrading(
    pipeline: &Pipeline,
    judge: JudgeIx,
    answer: AnswerToRegrade<'_>,
    occasion: Option<Digest>,
) -> Result<Task, PrepareError> {
    let question = question_about(pipeline, answer.probe, judge);
    let turns = question.with(answer.text.into(), answer.context.map(Into::into))?;
    let request = judge_request(pipeline.judge(judge), turns, &question);
    let work = Work::request(ModelRequest { occasion, ..request });
    Ok(Task::Regrade(Rc::new(RegradeTask { judge, answer: answer.name.to_owned(), question, work })))
}
