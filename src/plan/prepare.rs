//! Makes the action of a task: the work and its key. Only this file joins the stages' pure functions with the matrix.

use std::rc::Rc;

use crate::action::{
    ActionKey, BuiltInStrategy, InputValue, InputsDocument, ModelRequest, Repetition, RequestTurn,
    Stage, StageName, Work,
};
use crate::answer::{self, AnswerFault, AnswerInput};
use crate::compress::{self, CompressInput, Strategy};
use crate::judge::{GroundTruth, JudgeQuestion, JudgeSpec};
use crate::pipeline::{AnswerCell, JudgeIx, Matrix, PLANTED_NEXT, Pipeline, TailMode};
use crate::probe::Probe;
use models::Operation;

use super::sources::sources_of;
use super::task::{AnswerTask, CompressTask, JudgeTask, SelftestTask, Task};
use super::texts::FixtureTexts;

/// A piece of work with its key, and the task that it is for.
#[derive(Clone, Debug)]
pub struct Action {
    pub task: Task,
    pub stage: Stage,
    /// The repetition; none where rules compute the output, or a program yields the same each time.
    pub repetition: Repetition,
    pub key: ActionKey,
    /// Replies that may break the contract of the stage before the action fails.
    pub attempts: u32,
    /// Replies of batches to it that cannot be used and are not in the cache, because its output is.
    pub unusable: u32,
    /// What is to be done.
    pub work: Work,
}

impl Action {
    /// The action of a task.
    pub fn prepare(pipeline: &Pipeline, task: &Task) -> Result<Action, PrepareError> {
        let (stage, repetition, work) = match task {
            Task::Side(task) => (task.stage.stage(), task.repetition, task.work.clone()),
            Task::Selftest(task) => selftest(pipeline, task)?,
            Task::Compress(task) => compress(pipeline, task)?,
            Task::Answer(task) => answer(pipeline, task)?,
            Task::Judge(task) => judge(pipeline, task)?,
        };
        let repetition = match work {
            Work::Compute(_) => Repetition::NONE,
            Work::Ask(_) | Work::Execute(_) => repetition,
        };
        Ok(Action {
            task: task.clone(),
            stage,
            repetition,
            key: InputsDocument::key_of(stage, repetition, &work),
            attempts: attempts(pipeline, task),
            unusable: 0,
            work,
        })
    }

    /// The request, if a model is asked.
    pub fn request(&self) -> Option<&ModelRequest> {
        match &self.work {
            Work::Ask(request) => Some(request),
            Work::Execute(_) | Work::Compute(_) => None,
        }
    }

    /// The inputs behind the key, with the files that they are made from.
    pub fn inputs(&self, pipeline: &Pipeline) -> InputsDocument {
        let sources = sources_of(pipeline, &self.task);
        InputsDocument::new(self.stage, self.repetition, &self.work, sources)
    }
}

/// Why a task could not be made into work.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("the prompt of this method does not render: line {}: {}", _0.line, _0.message)]
    Compress(crate::action::TemplateFault),
    #[error(transparent)]
    Answer(#[from] AnswerFault),
    #[error("the judge's prompt does not render: line {}: {}", _0.line, _0.message)]
    Judge(#[from] crate::action::TemplateFault),
    /// The matrix names something the pipeline does not have.
    #[error("the matrix names a coordinate that the pipeline does not have")]
    Coordinate,
}

/// What an action is made of besides its task.
type Parts = (Stage, Repetition, Work);

/// Replies that may break the contract of the stage before an action fails.
fn attempts(pipeline: &Pipeline, task: &Task) -> u32 {
    match task {
        Task::Side(task) if task.stage == StageName::Probes => pipeline.generator.attempts,
        _ => task
            .judge()
            .map_or(1, |judge| pipeline.judge(judge).attempts),
    }
}

/// A case has repetition 0, which no cell has, unless its judge answers the same each time.
fn selftest(pipeline: &Pipeline, task: &SelftestTask) -> Result<Parts, PrepareError> {
    let case = pipeline
        .selftest
        .case(&task.case)
        .ok_or(PrepareError::Coordinate)?;
    let context = case
        .context
        .clone()
        .filter(|_| pipeline.settings.judge_context)
        .map(Into::into);
    let turns = task.question.with(case.answer.clone().into(), context)?;
    let request = judge_request(pipeline.judge(task.judge), turns, &task.question);
    Ok((
        Stage::Judge,
        Repetition {
            judge: Some(0),
            ..Repetition::NONE
        },
        Work::request(request),
    ))
}

fn compress(pipeline: &Pipeline, task: &CompressTask) -> Result<Parts, PrepareError> {
    let method = pipeline.method(task.cell.chain.method);
    let fixture = &task.texts.loaded().fixture;
    let repetition = Matrix(pipeline).compress_repetition(&task.cell);
    let kept = task.texts.kept(method, task.cell.point);
    let span = kept.as_ref().map_or_else(
        || task.texts.span(task.cell.point),
        |kept| kept.span.clone(),
    );
    let is_recorded = matches!(method.strategy, Strategy::Rule(BuiltInStrategy::Recorded));
    let end = task.texts.end(task.cell.point);
    let recorded = is_recorded.then(|| fixture.recorded_context(end)).flatten();
    let input = CompressInput {
        target_tokens: method.target_tokens,
        recorded: recorded.as_deref(),
        system: fixture.system(),
        tools: &task.texts.tools(),
        offer: task.texts.tool_offer(),
        run: repetition.compress,
        kept: kept.as_deref(),
        span: &span,
        prefix: &task.texts.prefix(task.cell.point),
        previous: task.before.as_ref().and_then(|before| before.state),
        focus_topic: pipeline.settings.focus_topic.as_deref(),
        fixture_model: &fixture.model,
        context_length: fixture.context_length,
        locale: pipeline.settings.locale,
    };
    let work = compress::prepare(&method.strategy, &input).map_err(PrepareError::Compress)?;
    Ok((Stage::Compress, repetition, work))
}

fn answer(pipeline: &Pipeline, task: &AnswerTask) -> Result<Parts, PrepareError> {
    let (cell, context) = (&task.cell, &task.context);
    let (texts, point) = (&context.texts, cell.compress.point);
    let tail = (pipeline.settings.tail == TailMode::Verbatim).then(|| texts.tail(point));
    let input = AnswerInput {
        system: texts.loaded().fixture.system(),
        locale: pipeline.settings.locale,
        context: &context.reference,
        tail: tail.as_ref(),
        question: question_of(task)?,
        exchange: &task.exchange,
    };
    let work = answer::prepare(pipeline.answerer(cell.answerer), &input)?;
    Ok((
        Stage::Answer,
        Matrix(pipeline).answer_repetition(cell),
        work,
    ))
}

/// The judge sees the context with what searches returned.
fn judge(pipeline: &Pipeline, task: &JudgeTask) -> Result<Parts, PrepareError> {
    let (cell, context) = (&task.cell, &task.context);
    let question = judge_question(pipeline, &context.texts, &cell.answer, cell.judge)?;
    let shown = if pipeline.settings.judge_context {
        context.reference.text()
    } else {
        None
    };
    let shown = shown.map(|text| answer::with_excerpts(text, &task.exchange.excerpts_text()));
    let turns = question.with(InputValue::Output(task.answer.out), shown)?;
    let request = judge_request(pipeline.judge(cell.judge), turns, &question);
    Ok((
        Stage::Judge,
        Matrix(pipeline).judge_repetition(cell),
        Work::request(request),
    ))
}

/// The part of a judge's request that does not depend on the answer, made once per probe and judge.
pub(super) fn judge_question(
    pipeline: &Pipeline,
    texts: &FixtureTexts,
    cell: &AnswerCell,
    judge: JudgeIx,
) -> Result<Rc<JudgeQuestion>, PrepareError> {
    if let Some(known) = texts.questions.borrow().get(&(cell.probe, judge)) {
        return Ok(known.clone());
    }
    let question = Rc::new(question_about(pipeline, probe_of(texts, cell)?, judge));
    texts
        .questions
        .borrow_mut()
        .insert((cell.probe, judge), question.clone());
    Ok(question)
}

/// What a judge is asked about the answers to a probe.
pub(super) fn question_about(pipeline: &Pipeline, probe: &Probe, judge: JudgeIx) -> JudgeQuestion {
    let settings = &pipeline.settings;
    let criteria = pipeline
        .rubric
        .criteria_for(probe.kind, settings.rubric_scope);
    let truth = GroundTruth::from_probe(probe, settings.locale);
    JudgeQuestion::new(
        &probe.question,
        truth,
        &criteria,
        settings.locale,
        &pipeline.judge(judge).template,
    )
}

/// A judge's request, the same for grading, for regrading and for its self-test.
pub(super) fn judge_request(
    spec: &JudgeSpec,
    turns: Vec<RequestTurn>,
    question: &JudgeQuestion,
) -> ModelRequest {
    let request = ModelRequest::new(&spec.model, Operation::Generate, turns);
    ModelRequest {
        schema: Some(question.schema()),
        ..request
    }
}

/// The question of a probe, or that about what is planted.
fn question_of(task: &AnswerTask) -> Result<&str, PrepareError> {
    Ok(match task.context.variant() {
        None => &probe_of(&task.context.texts, &task.cell)?.question,
        Some(variant) if task.cell.probe == PLANTED_NEXT => &variant.next.question,
        Some(variant) => &variant.state.question,
    })
}

pub fn probe_of<'t>(texts: &'t FixtureTexts, cell: &AnswerCell) -> Result<&'t Probe, PrepareError> {
    texts
        .loaded()
        .probe(cell.probe)
        .ok_or(PrepareError::Coordinate)
}
