//! A job: an action with what it is performed for, a cell of the matrix, a case of a judge's self-test, or a step in
//! the generation of probes. What differs between these is decided here, so that executing an action is the same for
//! all.

use std::rc::Rc;
use std::sync::Arc;

use super::outputs::{OutputCache, OutputUnavailable};
use crate::action::{Digest, Sources, StageName};
use crate::answer;
use crate::cache::{EntryCoordinate, Store};
use crate::compress::{CommandSpec, Strategy};
use crate::judge::{self, JudgeQuestion};
use crate::plan::{
    self, Action, CurrentSources, GenerationTask, Output, Preparer, RawBody, SelftestTask, SourceText, Task, Unreadable,
};
use crate::probe::read_candidates;
use crate::results::{Blame, FailedAction, FailureLocation};
use models::{Completion, Dialect, Operation, ReadFault};

/// What an action under way is for.
#[expect(clippy::large_enum_variant, reason = "few at a time, and short-lived: a box would cost more than it saves")]
pub(super) enum ActionTask {
    Cell(Task),
    Selftest(SelftestTask),
}

/// An action and what it is performed for.
pub(super) struct Job {
    pub(super) action: Action,
    purpose: Purpose,
    place: FailureLocation,
    pub(super) stage: StageName,
    /// By this the cache finds the latest action.
    pub(super) coordinate: EntryCoordinate,
    /// What the inputs were made from.
    pub(super) sources: Sources,
    /// Replies that may break the contract before the action fails.
    pub(super) attempts: u32,
}

enum Purpose {
    Cell(Task),
    Selftest(Rc<JudgeQuestion>),
    Generation,
    /// A probe is asked without a context.
    Floor,
}

impl Job {
    pub(super) fn of(preparer: &Preparer<'_>, task: &ActionTask, action: Action) -> Job {
        match task {
            ActionTask::Cell(task) => Job::of_cell(preparer, task, action),
            ActionTask::Selftest(task) => Job::of_selftest(preparer, task),
        }
    }

    fn of_cell(preparer: &Preparer<'_>, task: &Task, action: Action) -> Job {
        let pipeline = preparer.pipeline();
        let place = task.coordinate(pipeline);
        let judge = match task {
            Task::Judge(task) => pipeline.judges.get(task.cell.judge.0),
            Task::Compress(_) | Task::Answer(_) => None,
        };
        Job {
            coordinate: plan::cache_coordinate(&place, action.repetition),
            sources: CurrentSources::of(pipeline, task).sources(),
            attempts: judge.map_or(1, |judge| judge.attempts),
            place: FailureLocation::Cell(place),
            stage: task.stage(),
            purpose: Purpose::Cell(task.clone()),
            action,
        }
    }

    pub(super) fn of_selftest(preparer: &Preparer<'_>, task: &SelftestTask) -> Job {
        let cell = task.cell.clone();
        Job {
            coordinate: task.coordinate(),
            sources: CurrentSources::of_judge(preparer.pipeline(), task.judge).sources(),
            attempts: task.attempts,
            place: FailureLocation::Selftest { judge: cell.judge, case: cell.case },
            stage: StageName::Selftest,
            purpose: Purpose::Selftest(task.question.clone()),
            action: task.action.clone(),
        }
    }

    pub(super) fn of_generation(task: &GenerationTask) -> Job {
        let GenerationTask { fixture, point, probe, prompt: (text, path), attempts, action } = task;
        let prompt = Some(SourceText::prompt(text, path.as_deref()));
        Job {
            coordinate: EntryCoordinate {
                fixture: Some(fixture.clone()),
                point: Some(*point),
                probe: probe.as_ref().map(|probe| format!("floor/{probe}")),
                repetition: action.repetition,
                ..EntryCoordinate::default()
            },
            sources: CurrentSources { prompt, ..CurrentSources::default() }.sources(),
            attempts: *attempts,
            place: FailureLocation::Generation { fixture: fixture.clone(), point: *point, probe: probe.clone() },
            stage: task.stage(),
            purpose: if probe.is_some() { Purpose::Floor } else { Purpose::Generation },
            action: action.clone(),
        }
    }

    /// The output of the last action in this place.
    pub(super) fn earlier_output(&self, store: &Store) -> Option<Digest> {
        plan::earlier_output(store, &self.coordinate, &self.action)
    }

    /// The program that this job starts.
    pub(super) fn command<'p>(&self, preparer: &Preparer<'p>) -> Option<&'p CommandSpec> {
        match &self.purpose {
            Purpose::Cell(Task::Compress(task)) => {
                match &preparer.pipeline().methods.get(task.cell.chain.method.0)?.strategy {
                    Strategy::Command(spec) => Some(spec),
                    _ => None,
                }
            }
            Purpose::Cell(Task::Answer(task)) => task.recovery(preparer.pipeline())?.command.as_ref(),
            _ => None,
        }
    }

    /// Whether a reply that the token limit cut off is an output: of an answer, which is graded or not as its answerer
    /// wants it.
    pub(super) fn takes_truncated(&self) -> bool {
        matches!(self.purpose, Purpose::Cell(Task::Answer(_)))
    }

    /// Whose fault it is if the program of this job fails: a method's, or that of a search that belongs to none.
    pub(super) fn blame_of_program(&self) -> Blame {
        match &self.purpose {
            Purpose::Cell(Task::Compress(_)) => Blame::Method,
            _ => Blame::Infrastructure,
        }
    }

    pub(super) fn read_reply(
        &self,
        preparer: &Preparer<'_>,
        dialect: Dialect,
        reply: &Completion,
    ) -> Result<Output, Unreadable> {
        match &self.purpose {
            Purpose::Cell(task) => plan::read_reply(preparer, task, dialect, reply),
            _ if reply.truncated => Err(ReadFault::Truncated.into()),
            Purpose::Selftest(question) => Ok(Output::Grades(judge::read_reply(&reply.text, question.criteria())?)),
            Purpose::Floor => Ok(Output::Answer(answer::read(&reply.text, false)?)),
            Purpose::Generation => {
                let (candidates, unreadable) = read_candidates(&reply.text)?;
                Ok(Output::Probes { candidates, unreadable })
            }
        }
    }

    pub(super) fn read_body(
        &self,
        preparer: &Preparer<'_>,
        dialect: Option<Dialect>,
        bytes: &[u8],
    ) -> Result<Output, Unreadable> {
        match &self.purpose {
            Purpose::Cell(task) => plan::read_output(preparer, task, RawBody { dialect, bytes }),
            Purpose::Selftest(_) | Purpose::Generation | Purpose::Floor => {
                let dialect = dialect.unwrap_or(Dialect::Lexical);
                let reply = models::read(dialect, Operation::Generate, bytes, None)?;
                self.read_reply(preparer, dialect, &reply)
            }
        }
    }

    /// The text that a digest among the inputs stands for.
    pub(super) fn text_of(
        &self,
        outputs: &OutputCache<'_, Store>,
        digest: &Digest,
    ) -> Result<Arc<str>, OutputUnavailable> {
        match &self.purpose {
            Purpose::Cell(task) => outputs.text_of(task, digest),
            Purpose::Selftest(_) | Purpose::Generation | Purpose::Floor => Err(OutputUnavailable::Unnamed(*digest)),
        }
    }

    /// How many requests of the run begin as this one does.
    pub(super) fn prefix_uses(&self, preparer: &Preparer<'_>) -> u32 {
        let matrix = preparer.matrix();
        let uses = match &self.purpose {
            Purpose::Cell(Task::Answer(task)) => {
                matrix.answers(task.cell.compress).filter(|other| other.answerer == task.cell.answerer).count()
            }
            Purpose::Cell(Task::Judge(task)) => task.requests_of_its_rubric(preparer.pipeline(), matrix).count(),
            // The transcript: once for questions, once for each probe that is made again.
            Purpose::Generation => 2,
            // Each case of a self-test has its own context.
            Purpose::Cell(Task::Compress(_)) | Purpose::Selftest(_) | Purpose::Floor => 1,
        };
        u32::try_from(uses).unwrap_or(u32::MAX)
    }

    /// A failure of this job.
    pub(super) fn failure(&self, blame: Blame, message: impl Into<String>) -> FailedAction {
        let (place, stage, key) = (self.place.clone(), self.stage, Some(self.action.key));
        FailedAction { place, stage, key, blame, class: None, message: message.into(), hint: None }
    }

    /// An output that does not read is the method's fault where the method made it.
    pub(super) fn unreadable(&self, fault: &Unreadable, message: String) -> FailedAction {
        let blame = match fault {
            Unreadable::Context(_) => Blame::Method,
            Unreadable::Reply(_) | Unreadable::Grades(_) | Unreadable::Search(_) | Unreadable::Place(_) => {
                Blame::Infrastructure
            }
        };
        self.failure(blame, message)
    }

    /// An input that cannot be read from the cache.
    pub(super) fn unavailable(&self, error: &OutputUnavailable) -> FailedAction {
        let hint = Some(OutputUnavailable::REMEDY.to_owned());
        FailedAction { hint, ..self.failure(Blame::Infrastructure, error.to_string()) }
    }
}
