//! Tasks, whose inputs are known, and their outcomes, failures included. They contain indices and digests, no outputs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::texts::FixtureTexts;
use crate::action::{ActionKey, CellCoordinate, Digest, Place, Repetition, StageName, Work};
use crate::answer::{Exchange, Recovery};
use crate::compress::{self, ContextRef, Method};
use crate::judge::{CaseId, JudgeQuestion};
use crate::pipeline::{AnswerCell, CompressCell, JudgeCell, JudgeIx, Matrix, Pipeline, ProbeIx};
use crate::planted::Variant;
use crate::probe::ProbeType;
use base::units::Usd;
use models::ErrorClass;
use serde::{Deserialize, Serialize};

/// One thing to do whose inputs are known: a cell of the matrix, a case of a judge's self-test, or work beside both.
#[derive(Clone, Debug)]
pub enum Task {
    /// Work outside the matrix: probes are written or asked, answers are graded again.
    Side(Rc<SideTask>),
    /// Grade an answer whose quality is known.
    Selftest(SelftestTask),
    /// Compress up to a point.
    Compress(CompressTask),
    /// Answer a probe from a context.
    Answer(AnswerTask),
    Judge(JudgeTask),
}

/// A step in the generation of probes; or an answer of a baseline, or one of the run with a fact made false, that one judge
/// grades again. It is in no cell of the matrix, so the work comes with the task.
#[derive(Debug)]
pub struct SideTask {
    pub place: Place,
    pub stage: StageName,
    /// The judge that grades, and what its reply must score.
    pub judged: Option<(JudgeIx, JudgeQuestion)>,
    pub(super) repetition: Repetition,
    pub(super) work: Work,
}

/// A case of a self-test as one judge is asked about it.
#[derive(Clone, Debug)]
pub struct SelftestTask {
    pub judge: JudgeIx,
    pub case: CaseId,
    /// What the reply must score.
    pub question: Rc<JudgeQuestion>,
}

/// A compression that is due.
#[derive(Clone, Debug)]
pub struct CompressTask {
    pub cell: CompressCell,
    /// The context of the point before, for a method that keeps state.
    pub before: Option<Rc<ResolvedContext>>,
    pub texts: Rc<FixtureTexts>,
}

/// An answer that is due.
#[derive(Clone, Debug)]
pub struct AnswerTask {
    pub cell: AnswerCell,
    /// What it is answered from.
    pub context: Rc<ResolvedContext>,
    /// What was searched for before this step; nothing where there is no search.
    pub exchange: Rc<Exchange>,
}

/// A judgement that is due.
#[derive(Clone, Debug)]
pub struct JudgeTask {
    pub cell: JudgeCell,
    /// The context behind the answer.
    pub context: Rc<ResolvedContext>,
    pub answer: Rc<Resolved>,
    /// What was searched for before the answer.
    pub exchange: Rc<Exchange>,
}

/// The context that a compression made, by digest.
#[derive(Debug)]
pub struct ResolvedContext {
    /// The cell that it was made for.
    pub cell: CompressCell,
    /// The compression that made it.
    pub key: ActionKey,
    /// Identifies the state that it leaves to the next point.
    pub state: Option<Digest>,
    /// What is known of it without its bytes.
    pub reference: ContextRef,
    pub texts: Rc<FixtureTexts>,
    /// See [`Resolved::cost`].
    pub cost: Option<Usd>,
    /// See [`Resolved::unchanged`].
    pub unchanged: bool,
    /// Answers that wait until the first one has warmed the provider's prompt cache.
    pub(super) waiting: RefCell<Vec<Task>>,
    /// Judgements that wait likewise, by what their requests share besides the context; `None` once the first judgement
    /// has been made.
    pub(super) judging: RefCell<HashMap<SharedRubric, Option<Vec<Task>>>>,
}

/// What the requests for two judgements from one context must share to begin with the same text: the judge and the
/// criteria, which the first type of probe that has them stands for.
pub(super) type SharedRubric = (JudgeIx, Option<ProbeType>);

impl ResolvedContext {
    /// What is planted in the session, if anything is.
    pub fn variant(&self) -> Option<&Variant> {
        Some(self.texts.loaded().variant(self.cell.chain.variant?))
    }

    /// The task that made it, as far as reading its output needs one.
    pub fn task(&self) -> Task {
        Task::Compress(CompressTask::to_read(self.cell, self.texts.clone()))
    }
}

impl Task {
    /// Whether the action that the task depends on came out unchanged: its inputs changed and its output did not.
    pub fn follows_unchanged(&self) -> bool {
        match self {
            Task::Compress(task) => task.before.as_ref().is_some_and(|before| before.unchanged),
            Task::Answer(task) => task.context.unchanged,
            Task::Judge(task) => task.answer.unchanged,
            Task::Side(_) | Task::Selftest(_) => false,
        }
    }

    pub fn stage(&self) -> StageName {
        match self {
            Task::Side(task) => task.stage,
            Task::Selftest(_) => StageName::Selftest,
            Task::Compress(_) => StageName::Compress,
            Task::Answer(_) => StageName::Answer,
            Task::Judge(_) => StageName::Judge,
        }
    }

    /// The context that it depends on, if it does.
    pub fn context(&self) -> Option<&ResolvedContext> {
        match self {
            Task::Side(_) | Task::Selftest(_) | Task::Compress(_) => None,
            Task::Answer(task) => Some(&task.context),
            Task::Judge(task) => Some(&task.context),
        }
    }

    /// The compression that it is or depends on.
    pub fn compression(&self) -> Option<CompressCell> {
        match self {
            Task::Side(_) | Task::Selftest(_) => None,
            Task::Compress(task) => Some(task.cell),
            Task::Answer(task) => Some(task.cell.compress),
            Task::Judge(task) => Some(task.cell.answer.compress),
        }
    }

    /// The method of that compression.
    pub fn method<'p>(&self, pipeline: &'p Pipeline) -> Option<&'p Method> {
        Some(pipeline.method(self.compression()?.chain.method))
    }

    /// The judge that it asks.
    pub fn judge(&self) -> Option<JudgeIx> {
        match self {
            Task::Selftest(task) => Some(task.judge),
            Task::Judge(task) => Some(task.cell.judge),
            Task::Side(task) => task.judged.as_ref().map(|(judge, _)| *judge),
            Task::Compress(_) | Task::Answer(_) => None,
        }
    }

    /// How many requests of a run begin with the same text as its own, itself included.
    pub fn prefix_uses(&self, pipeline: &Pipeline) -> u32 {
        let uses = match self {
            // The transcript: once for questions, once for each probe that is made again.
            Task::Side(task) if task.stage == StageName::Probes => 2,
            // Each case of a self-test has its own context.
            Task::Side(_) | Task::Selftest(_) | Task::Compress(_) => 1,
            Task::Answer(task) => Matrix(pipeline)
                .answers(task.cell.compress)
                .filter(|other| other.answerer == task.cell.answerer)
                .count(),
            Task::Judge(task) => task.requests_of_its_rubric(pipeline).count(),
        };
        u32::try_from(uses).unwrap_or(u32::MAX)
    }

    /// Where it is, in names.
    pub fn place(&self, pipeline: &Pipeline) -> Place {
        match self {
            Task::Side(task) => task.place.clone(),
            Task::Selftest(task) => Place::Selftest {
                judge: pipeline.judge(task.judge).name.0.to_string(),
                case: task.case.0.clone(),
            },
            Task::Compress(task) => Place::Cell(task.cell.place(pipeline)),
            Task::Answer(task) => Place::Cell(CellCoordinate {
                step: task.step(),
                ..task.cell.place(pipeline)
            }),
            Task::Judge(task) => Place::Cell(task.cell.place(pipeline)),
        }
    }
}

impl CompressTask {
    /// The task of a cell, as far as reading its output needs one.
    pub fn to_read(cell: CompressCell, texts: Rc<FixtureTexts>) -> CompressTask {
        CompressTask {
            cell,
            before: None,
            texts,
        }
    }

    /// What is known of the context that `method` makes here of its output `out`.
    pub fn reference(&self, method: &Method, out: Digest) -> ContextRef {
        compress::context_ref(
            method,
            out,
            self.texts.kept(method, self.cell.point).as_deref(),
        )
    }
}

impl AnswerTask {
    /// How its answerer may search; `None` if it answers only from the context.
    pub fn recovery<'p>(&self, pipeline: &'p Pipeline) -> Option<&'p Recovery> {
        pipeline.answerer(self.cell.answerer).recovery.as_ref()
    }

    /// The number of the step, from 2; `None` for the first one.
    fn step(&self) -> Option<u32> {
        let steps = self.exchange.rounds.len();
        (steps > 0).then(|| u32::try_from(steps + 1).unwrap_or(u32::MAX))
    }
}

impl JudgeTask {
    /// What a request must share with this one, besides the context, to begin with the same text.
    pub(super) fn shared_rubric(&self, pipeline: &Pipeline) -> SharedRubric {
        (
            self.cell.judge,
            self.graded_as(self.cell.answer.probe, pipeline),
        )
    }

    /// The type of probe that stands for the criteria by which a probe is graded.
    fn graded_as(&self, probe: ProbeIx, pipeline: &Pipeline) -> Option<ProbeType> {
        let kind = self.context.texts.loaded().probe(probe)?.kind;
        Some(
            pipeline
                .rubric
                .graded_alike(kind, pipeline.settings.rubric_scope),
        )
    }

    /// The judgements whose requests begin with the same text as this one's.
    fn requests_of_its_rubric(&self, pipeline: &Pipeline) -> impl Iterator<Item = JudgeCell> {
        let (judge, kind) = self.shared_rubric(pipeline);
        let answers = Matrix(pipeline).answers(self.cell.answer.compress);
        let alike = answers.filter(move |answer| self.graded_as(answer.probe, pipeline) == kind);
        alike
            .flat_map(move |answer| Matrix(pipeline).judgements(answer))
            .filter(move |cell| cell.judge == judge)
    }

    /// The task whose answer is graded.
    pub fn answer_task(&self) -> Task {
        let (context, exchange) = (self.context.clone(), self.exchange.clone());
        Task::Answer(AnswerTask {
            cell: self.cell.answer,
            context,
            exchange,
        })
    }
}

/// The outcome of a task.
#[derive(Clone, Debug)]
pub enum TaskOutcome {
    Resolved(Resolved),
    /// A step of an open-book answer asked for searches: the next step follows.
    Searched(Rc<Exchange>),
    /// It has no output: it failed, or is not to be computed now.
    Unresolved,
}

/// The output of a task, by digest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolved {
    pub key: ActionKey,
    /// Digest of the output as read.
    pub out: Digest,
    /// What it cost when it was executed; `None` where no price is known.
    pub cost: Option<Usd>,
    /// Whether its inputs changed and the output did not: then what depends on it stays cached.
    pub unchanged: bool,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// Transport, rate limits, or a judge that breaks its contract: the cell is left out.
    Infrastructure,
    /// The method: its command failed, or its output is empty or too long. Such failures are a property of the method.
    Method,
}

/// An action that has no output, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAction {
    /// The first place in the matrix that needed it.
    #[serde(flatten)]
    pub place: Place,
    /// The stage of the action that failed.
    pub stage: StageName,
    /// The action; `None` if it failed before it could be named.
    pub key: Option<ActionKey>,
    /// Whose fault it is.
    pub blame: Blame,
    /// The class of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// What happened, as the user reads it.
    pub message: String,
    /// What the user can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FailedAction {
    /// A failure that is blamed on the infrastructure until more is known.
    pub fn new(
        place: Place,
        stage: StageName,
        key: Option<ActionKey>,
        message: impl Into<String>,
    ) -> FailedAction {
        let (blame, message) = (Blame::Infrastructure, message.into());
        FailedAction {
            place,
            stage,
            key,
            blame,
            class: None,
            message,
            hint: None,
        }
    }

    /// What happened and what to do, on one line.
    pub fn message_with_hint(&self) -> String {
        let hint = self
            .hint
            .as_ref()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        format!("{}{hint}", self.message)
    }
}
