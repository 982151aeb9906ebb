//! What an action is performed for: a cell of the matrix, or a case of a judge's self-test.

use std::sync::Arc;

use super::shelf::{OutputCache, OutputUnavailable};
use crate::action::StageName;
use crate::action::{Digest, Sources, Work};
use crate::answer;
use crate::cache::{Coordinate, Store};
use crate::compress::{CommandSpec, Strategy};
use crate::judge;
use crate::lexical;
use crate::plan::{
    self, Action, Body, CurrentSources, GenerationTask, Output, Preparer, SelftestTask, SourceText, Task, Unreadable,
    completion,
};
use crate::probe::read_candidates;
use crate::provider::{Completion, Dialect, Operation};
use crate::results::{Blame, Place};

/// What an action is performed for.
pub(super) struct Errand {
    purpose: Purpose,
    pub(super) place: Place,
    pub(super) stage: StageName,
    /// The place by which the cache finds the latest action.
    pub(super) coordinate: Coordinate,
    /// What the inputs were made from.
    pub(super) sources: Sources,
    /// Replies that break the contract, before it is given up.
    pub(super) attempts: u32,
}

#[expect(clippy::large_enum_variant, reason = "one at a time, and short-lived: a box would cost more than it saves")]
enum Purpose {
    Cell(Task),
    Selftest(SelftestTask),
    /// Probes are written.
    Generation,
    /// A probe is asked without a context.
    Floor,
}

impl Errand {
    pub(super) fn of_task(preparer: &Preparer<'_>, task: &Task, action: &Action) -> Errand {
        let pipeline = preparer.pipeline();
        let place = task.place(pipeline);
        let judge = match task {
            Task::Judge(task) => pipeline.judges.get(task.cell.judge.0),
            Task::Compress(_) | Task::Answer(_) => None,
        };
        Errand {
            coordinate: plan::cache_coordinate(&place, action.replica),
            sources: CurrentSources::of(pipeline, task).sources(),
            attempts: judge.map_or(1, |judge| judge.attempts),
            place: Place::Cell(place),
            stage: task.stage(),
            purpose: Purpose::Cell(task.clone()),
        }
    }

    pub(super) fn of_selftest(preparer: &Preparer<'_>, task: &SelftestTask) -> Errand {
        let cell = preparer.selftest_cell(task);
        let spec = preparer.pipeline().judges.get(task.judge.0);
        Errand {
            coordinate: preparer.selftest_coordinate(task),
            sources: CurrentSources::of_judge(preparer.pipeline(), task.judge).sources(),
            attempts: spec.map_or(1, |spec| spec.attempts),
            place: Place::Selftest { judge: cell.judge, case: cell.case },
            stage: StageName::Selftest,
            purpose: Purpose::Selftest(task.clone()),
        }
    }

    pub(super) fn of_generation(task: &GenerationTask) -> Errand {
        let GenerationTask { fixture, point, probe, prompt: (text, path), attempts, action } = task;
        Errand {
            coordinate: Coordinate {
                fixture: Some(fixture.clone()),
                point: Some(*point),
                probe: probe.as_ref().map(|probe| format!("floor/{probe}")),
                replica: action.replica,
                ..Coordinate::default()
            },
            sources: CurrentSources {
                prompt: Some(SourceText::prompt(text, path.as_deref())),
                ..CurrentSources::default()
            }
            .sources(),
            attempts: *attempts,
            place: Place::Generation { fixture: fixture.clone(), point: *point, probe: probe.clone() },
            stage: task.stage(),
            purpose: if probe.is_some() { Purpose::Floor } else { Purpose::Generation },
        }
    }

    /// What the last action in this place put out.
    pub(super) fn earlier_output(&self, store: &Store, action: &Action) -> Option<Digest> {
        plan::earlier_output(store, &self.coordinate, action)
    }

    pub(super) fn lexical_task(&self) -> lexical::Task {
        match &self.purpose {
            Purpose::Cell(Task::Compress(_)) => lexical::Task::Compress,
            Purpose::Cell(Task::Answer(_)) | Purpose::Floor => lexical::Task::Answer,
            Purpose::Generation => lexical::Task::Probes,
            Purpose::Cell(Task::Judge(_)) | Purpose::Selftest(_) => lexical::Task::Judge,
        }
    }

    /// The program that this errand starts.
    pub(super) fn command<'p>(&self, preparer: &Preparer<'p>) -> Option<&'p CommandSpec> {
        let Purpose::Cell(Task::Compress(task)) = &self.purpose else { return None };
        match &preparer.pipeline().methods.get(task.cell.chain.method.0)?.strategy {
            Strategy::Command(spec) => Some(spec),
            _ => None,
        }
    }

    pub(super) fn read_reply(&self, preparer: &Preparer<'_>, reply: &Completion) -> Result<Output, Unreadable> {
        match &self.purpose {
            Purpose::Cell(task) => preparer.read_reply(task, reply),
            Purpose::Selftest(task) => Ok(Output::Grades(judge::read_reply(&reply.text, task.question.criteria())?)),
            Purpose::Floor => Ok(Output::Answer(answer::read(&reply.text)?)),
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
            Purpose::Cell(task) => preparer.read(task, Body { dialect, bytes }),
            Purpose::Selftest(_) | Purpose::Generation | Purpose::Floor => {
                let reply = completion(dialect.unwrap_or(Dialect::Lexical), Operation::Generate, bytes)?;
                self.read_reply(preparer, &reply)
            }
        }
    }

    /// The text that a digest among the inputs stands for.
    pub(super) fn resolve(
        &self,
        outputs: &OutputCache<'_, Store>,
        digest: &Digest,
    ) -> Result<Arc<str>, OutputUnavailable> {
        match &self.purpose {
            Purpose::Cell(task) => outputs.resolve(task, digest),
            Purpose::Selftest(_) | Purpose::Generation | Purpose::Floor => Err(OutputUnavailable::Unnamed(*digest)),
        }
    }

    /// The model that was asked for.
    pub(super) fn requested_model(&self, action: &Action) -> Option<String> {
        match &action.work {
            Work::Ask(request) => Some(format!("{}/{}", request.provider, request.model)),
            Work::Execute(_) | Work::Compute(_) => None,
        }
    }

    /// An output that does not read is the method's fault where the method made it.
    pub(super) fn blame_for(&self, fault: &Unreadable) -> Blame {
        match fault {
            Unreadable::Context(_) => Blame::Method,
            Unreadable::Reply(_) | Unreadable::Grades(_) | Unreadable::Place(_) => Blame::Infrastructure,
        }
    }
}
