//! Tasks that are not cells of the matrix: the generation of probes, the self-tests of the judges, and regradings of
//! answers: of a baseline as they were, or of the run with a fact made false.

use std::rc::Rc;

use super::outputs::Output;
use super::outputs::read_entry;
use super::prepare::{Action, PrepareError, judge_request, question_about};
use super::task::{SelftestTask, SideTask, Task};
use super::texts::FixtureTexts;
use crate::action::{Digest, ModelRequest, Place, Repetition, StageName, Work};
use crate::answer::{self, AnswerInput, Exchange};
use crate::compress::ContextRef;
use crate::judge::{Case, CriterionScore, JudgeQuestion};
use crate::pipeline::{Generator, JudgeIx, Pipeline, PointIx};
use crate::probe::{Probe, generation_work, probes_per_point};
use store::cache::Lookup;

/// Asks for probes about the span that `point` takes away.
pub fn generation(
    generator: &Generator,
    texts: &FixtureTexts,
    point: PointIx,
) -> Result<Task, PrepareError> {
    let wanted = probes_per_point(texts.loaded().points.len());
    let work = generation_work(
        &generator.model,
        &generator.template,
        texts.span(point).text,
        &wanted,
    )?;
    Ok(Task::Side(Rc::new(SideTask {
        place: Place::Generation {
            fixture: texts.loaded().name().to_owned(),
            point: point.number().0,
            probe: None,
        },
        stage: StageName::Probes,
        judged: None,
        repetition: Repetition::NONE,
        work,
    })))
}

/// Asks the first answerer a probe without any context. The action is the one that the method `none` asks for in the first
/// run.
pub fn asking_without_context(
    pipeline: &Pipeline,
    fixture: &str,
    point: u32,
    probe: &Probe,
) -> Result<Task, PrepareError> {
    let answerer = pipeline.answerers.first().ok_or(PrepareError::Coordinate)?;
    let context = ContextRef::Readable {
        text: Digest::hash(""),
    };
    let exchange = &Exchange::default();
    let input = AnswerInput {
        system: None,
        locale: pipeline.settings.locale,
        context: &context,
        tail: None,
        question: &probe.question,
        exchange,
    };
    let work = answer::prepare(answerer, &input)?;
    Ok(Task::Side(Rc::new(SideTask {
        place: Place::Generation {
            fixture: fixture.to_owned(),
            point,
            probe: Some(probe.id.to_string()),
        },
        stage: StageName::Answer,
        judged: None,
        repetition: Repetition {
            compress: Some(1),
            answer: Some(1),
            judge: None,
        },
        work,
    })))
}

/// All cases of all judges, under the rubric and locale in force.
pub(super) fn selftests(pipeline: &Pipeline) -> impl Iterator<Item = Task> {
    (0..pipeline.judges.len()).flat_map(move |judge| {
        pipeline
            .selftest
            .cases
            .iter()
            .map(move |case| selftest(pipeline, JudgeIx(judge), case))
    })
}

fn selftest(pipeline: &Pipeline, judge: JudgeIx, case: &Case) -> Task {
    let (settings, spec) = (&pipeline.settings, pipeline.judge(judge));
    let criteria = case.criteria_in(&pipeline.rubric, settings.rubric_scope);
    let truth = case.ground_truth(settings.locale);
    let question = JudgeQuestion::new(
        &case.question,
        truth,
        &criteria,
        settings.locale,
        &spec.template,
    );
    Task::Selftest(SelftestTask {
        judge,
        case: case.id.clone(),
        question: Rc::new(question),
    })
}

/// The actions of the self-tests, as far as their prompts render.
pub fn selftest_actions(pipeline: &Pipeline) -> Vec<Action> {
    selftests(pipeline)
        .filter_map(|task| Action::prepare(pipeline, &task).ok())
        .collect()
}

/// The grades of the self-tests that `lookup` has and that can be read, in the order of judges and cases.
pub fn selftest_grades(pipeline: &Pipeline, lookup: &impl Lookup) -> Vec<Vec<CriterionScore>> {
    let grades = selftests(pipeline).filter_map(|task| {
        let key = Action::prepare(pipeline, &task).ok()?.key;
        match read_entry(lookup, pipeline, &task, key) {
            Ok(Output::Grades(grades)) => Some(grades),
            _ => None,
        }
    });
    grades.collect()
}

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

/// Asks a judge to grade an answer again, as it was asked before. `occasion` identifies the purpose: for the same
/// purpose, the reply in the cache is used.
///
/// # Errors
/// The judge's prompt does not render.
pub fn regrading(
    pipeline: &Pipeline,
    judge: JudgeIx,
    answer: AnswerToRegrade<'_>,
    occasion: Digest,
) -> Result<Task, PrepareError> {
    let question = question_about(pipeline, answer.probe, judge);
    let turns = question.with(answer.text.into(), answer.context.map(Into::into))?;
    let request = judge_request(pipeline.judge(judge), turns, &question);
    let work = Work::request(ModelRequest {
        occasion: Some(occasion),
        ..request
    });
    Ok(Task::Side(Rc::new(SideTask {
        place: Place::Regrading {
            judge: pipeline.judge(judge).name.0.to_string(),
            answer: answer.name.to_owned(),
        },
        stage: StageName::Regrade,
        judged: Some((judge, question)),
        // Its occasion sets it apart from every repetition.
        repetition: Repetition::NONE,
        work,
    })))
}
