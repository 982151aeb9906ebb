//! From a task to its action: the work and its key. The one place where the stages' pure functions meet the matrix.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::action::{ActionKey, Digest, Inputs, Material, Replica, Request, RequestTurn, Stage, Work};
use crate::answer::{self, AnswerFault, AnswerInput};
use crate::compress::{self, CompressInput, ContextRef, PrepareFault, SpanText};
use crate::judge::{JudgeQuestion, JudgeSpec, Truth};
use crate::pipeline::{
    AnswerCell, AnswererIx, FixtureIx, JudgeCell, JudgeIx, LoadedFixture, Matrix, Pipeline, PointIx, ProbeIx, TailMode,
};
use crate::probe::Probe;
use crate::provider::Operation;
use crate::transcript::{Message, estimate_tokens};

use super::frontier::{AnswerTask, CompressTask, JudgeTask, Task};

/// A piece of work with its name.
#[derive(Clone, Debug)]
pub struct Action {
    /// The stage.
    pub stage: Stage,
    /// The repetition; none for deterministic work.
    pub replica: Replica,
    /// The name.
    pub key: ActionKey,
    /// What is to be done.
    pub work: Work,
}

impl Action {
    pub(super) fn new(stage: Stage, replica: Replica, work: Work) -> Action {
        Action { stage, replica, key: Inputs::key_of(stage, replica, &work), work }
    }

    /// The named inputs behind the key.
    pub fn inputs(&self) -> Inputs {
        Inputs::of(self.stage, self.replica, &self.work)
    }
}

/// Why a task could not be made into work.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Of a compression.
    #[error(transparent)]
    Compress(#[from] PrepareFault),
    /// Of an answer.
    #[error(transparent)]
    Answer(#[from] AnswerFault),
    /// Of a judgement.
    #[error("the judge's prompt does not render: line {}: {}", .0.line, .0.message)]
    Judge(#[from] crate::action::TemplateFault),
    /// The matrix names something the pipeline does not have.
    #[error("the matrix names a coordinate that the pipeline does not have")]
    Coordinate,
}

/// The texts of one fixture that prompts are made of, each made when first needed.
#[derive(Debug)]
pub struct FixtureTexts {
    ix: FixtureIx,
    loaded: LoadedFixture,
    points: Vec<PointTexts>,
    questions: RefCell<HashMap<(ProbeIx, JudgeIx), Rc<JudgeQuestion>>>,
    /// See [`Preparer::asked_below`].
    pub(super) asked: RefCell<HashMap<AskedAt, Option<Digest>>>,
}

/// Where it is asked, the stand-in for the context, and who reads it.
pub(super) type AskedAt = (PointIx, Digest, Vec<AnswererIx>);

#[derive(Debug, Default)]
struct PointTexts {
    span: OnceCell<SpanText>,
    prefix: OnceCell<SpanText>,
    tail: OnceCell<SpanText>,
    index: OnceCell<Material>,
    is_worth_warming: OnceCell<bool>,
}

impl FixtureTexts {
    /// The texts of `loaded`, none of them made yet.
    pub fn new(ix: FixtureIx, loaded: &LoadedFixture) -> FixtureTexts {
        let points = loaded.points.iter().map(|_| PointTexts::default()).collect();
        FixtureTexts { ix, loaded: loaded.clone(), points, questions: RefCell::default(), asked: RefCell::default() }
    }

    /// Which fixture.
    pub fn fixture(&self) -> FixtureIx {
        self.ix
    }

    /// The fixture and its bank.
    pub fn loaded(&self) -> &LoadedFixture {
        &self.loaded
    }

    fn slice(&self, from: usize, to: usize) -> &[Message] {
        self.loaded.fixture.messages.get(from..to).unwrap_or_default()
    }

    /// Index of the first message after the point.
    pub fn end(&self, point: PointIx) -> usize {
        self.loaded.points.get(point.0).copied().unwrap_or(self.loaded.fixture.messages.len())
    }

    /// All messages before the point, a leading system message left out.
    pub fn prefix_messages(&self, point: PointIx) -> &[Message] {
        self.slice(self.loaded.fixture.start(), self.end(point))
    }

    fn span_messages(&self, point: PointIx) -> &[Message] {
        let before = point.0.checked_sub(1).map(PointIx);
        self.slice(before.map_or(self.loaded.fixture.start(), |p| self.end(p)), self.end(point))
    }

    /// The messages that `point` takes away, in the forms that work is made of.
    pub fn span(&self, point: PointIx) -> SpanText {
        let make = || SpanText::of(self.span_messages(point));
        self.points.get(point.0).map_or_else(make, |texts| texts.span.get_or_init(make).clone())
    }

    /// All messages before the point, likewise.
    pub fn prefix(&self, point: PointIx) -> SpanText {
        let make = || SpanText::of(self.prefix_messages(point));
        self.points.get(point.0).map_or_else(make, |texts| texts.prefix.get_or_init(make).clone())
    }

    /// The messages after the point, likewise.
    pub fn tail(&self, point: PointIx) -> SpanText {
        let make = || SpanText::of(self.slice(self.end(point), self.loaded.fixture.messages.len()));
        self.points.get(point.0).map_or_else(make, |texts| texts.tail.get_or_init(make).clone())
    }

    /// The deterministic artifact index of all messages before the point.
    pub fn index(&self, point: PointIx) -> Material {
        let make = || compress::artifact_index(self.prefix_messages(point)).into();
        self.points.get(point.0).map_or_else(make, |texts| texts.index.get_or_init(make).clone())
    }

    /// The index as text.
    pub fn index_text(&self, point: PointIx) -> Arc<str> {
        match self.index(point) {
            Material::Text(_, text) => text,
            Material::Output(_) | Material::Composed(_) => "".into(),
        }
    }

    /// Whether contexts of this point are long enough for a provider's prompt cache to matter.
    pub fn is_worth_warming(&self, point: PointIx) -> bool {
        /// The smallest prefix that vendors cache.
        const SHORTEST_CACHED: u64 = 1024;
        let is_long = || match self.prefix(point).text {
            Material::Text(_, text) => estimate_tokens(&text).0 >= SHORTEST_CACHED,
            Material::Output(_) | Material::Composed(_) => false,
        };
        self.points.get(point.0).is_some_and(|texts| *texts.is_worth_warming.get_or_init(is_long))
    }
}

/// Makes actions of tasks.
#[derive(Clone, Copy, Debug)]
pub struct Preparer<'p> {
    pipeline: &'p Pipeline,
    matrix: &'p Matrix,
}

impl<'p> Preparer<'p> {
    /// A preparer for one pipeline and its matrix.
    pub fn new(pipeline: &'p Pipeline, matrix: &'p Matrix) -> Preparer<'p> {
        Preparer { pipeline, matrix }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &'p Pipeline {
        self.pipeline
    }

    /// The matrix.
    pub fn matrix(&self) -> &'p Matrix {
        self.matrix
    }

    /// The action of a task.
    ///
    /// # Errors
    /// A prompt that does not render here, a context that this answerer cannot read.
    pub fn prepare(&self, task: &Task) -> Result<Action, PrepareError> {
        match task {
            Task::Compress(task) => self.compress(task),
            Task::Answer(task) => self.answer(task),
            Task::Judge(task) => self.judge(task),
        }
    }

    fn compress(&self, task: &CompressTask) -> Result<Action, PrepareError> {
        let method = self.pipeline.methods.get(task.cell.chain.method.0).ok_or(PrepareError::Coordinate)?;
        let fixture = &task.texts.loaded.fixture;
        let input = CompressInput {
            span: &task.texts.span(task.cell.point),
            prefix: &task.texts.prefix(task.cell.point),
            previous: task.before.as_ref().and_then(|before| before.state.as_ref()),
            focus_topic: self.pipeline.settings.focus_topic.as_deref(),
            fixture_model: &fixture.model,
            context_length: fixture.context_length,
            locale: self.pipeline.settings.locale,
        };
        let work = compress::prepare(method, &input)?;
        Ok(Action::new(Stage::Compress, self.matrix.compress_replica(&task.cell), work))
    }

    fn answer(&self, task: &AnswerTask) -> Result<Action, PrepareError> {
        let work = self.answer_work(&task.cell, &task.context.texts, &task.context.reference)?;
        Ok(Action::new(Stage::Answer, self.matrix.answer_replica(&task.cell), work))
    }

    pub(super) fn answer_work(
        &self,
        cell: &AnswerCell,
        texts: &FixtureTexts,
        context: &ContextRef,
    ) -> Result<Work, PrepareError> {
        let answerer = self.pipeline.answerers.get(cell.answerer.0).ok_or(PrepareError::Coordinate)?;
        let tail = (self.pipeline.settings.tail == TailMode::Verbatim).then(|| texts.tail(cell.compress.point));
        let probe = probe_of(texts, cell)?;
        let input = AnswerInput { context, tail: tail.as_ref(), question: &probe.question };
        Ok(answer::prepare(answerer, &input)?)
    }

    fn judge(&self, task: &JudgeTask) -> Result<Action, PrepareError> {
        let work = self.judge_work(&task.cell, &task.context.texts, &task.context.reference, task.answer.out)?;
        Ok(Action::new(Stage::Judge, self.matrix.judge_replica(&task.cell), work))
    }

    pub(super) fn judge_work(
        &self,
        cell: &JudgeCell,
        texts: &FixtureTexts,
        context: &ContextRef,
        answer: Digest,
    ) -> Result<Work, PrepareError> {
        let question = self.judge_question(texts, &cell.answer, cell.judge)?;
        let shown = if self.pipeline.settings.judge_context { context.text() } else { None };
        let turns = question.with(Material::Output(answer), shown)?;
        let spec = self.pipeline.judges.get(cell.judge.0).ok_or(PrepareError::Coordinate)?;
        Ok(Work::Ask(judge_request(spec, turns, &question)))
    }

    /// The part of a judge's request that does not depend on the answer, made once per probe and judge.
    pub fn judge_question(
        &self,
        texts: &FixtureTexts,
        cell: &AnswerCell,
        judge: JudgeIx,
    ) -> Result<Rc<JudgeQuestion>, PrepareError> {
        if let Some(known) = texts.questions.borrow().get(&(cell.probe, judge)) {
            return Ok(known.clone());
        }
        let probe = probe_of(texts, cell)?;
        let spec = self.pipeline.judges.get(judge.0).ok_or(PrepareError::Coordinate)?;
        let settings = &self.pipeline.settings;
        let criteria = self.pipeline.rubric.criteria_for(probe.kind, settings.rubric_scope);
        let truth = Truth::of(probe);
        let question = JudgeQuestion::new(&probe.question, truth, &criteria, settings.locale, &spec.template);
        let question = Rc::new(question);
        texts.questions.borrow_mut().insert((cell.probe, judge), question.clone());
        Ok(question)
    }
}

/// A judge's request, the same for grading and for its self-test.
pub fn judge_request(spec: &JudgeSpec, turns: Vec<RequestTurn>, question: &JudgeQuestion) -> Request {
    Request {
        provider: spec.model.provider.name.clone(),
        endpoint: spec.model.provider.endpoint.clone(),
        model: spec.model.reference.model.clone(),
        operation: Operation::Generate,
        turns,
        instructions: None,
        settings: spec.model.settings.clone(),
        schema: Some(question.schema()),
    }
}

/// The probe of a cell.
pub fn probe_of<'t>(texts: &'t FixtureTexts, cell: &AnswerCell) -> Result<&'t Probe, PrepareError> {
    texts.loaded.probe(cell.probe).ok_or(PrepareError::Coordinate)
}
