//! The events of a run. Progress bars, log lines, manifest and rows listen to one stream of them. Every event is emitted
//! through `RunStats` and counted on its way, so that what is reported and what is counted cannot differ.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::breakers::TrippedBreaker;
use super::options::{ExecutedOutput, RunOutcome};
use crate::action::{ActionKey, StageName};
use crate::judge::SelfTestVerdict;
use crate::pipeline::MatrixCounts;
use crate::plan::{
    Action, AnswerTask, CostEstimate, FailedAction, JudgeTask, Resolved, ResolvedContext,
};
use base::files::FileError;
use base::units::{Usage, Usd};

/// What happened. An event follows the commit of what it reports, so that a reader of events never knows more than the
/// cache.
#[derive(Clone, Debug)]
pub enum RunEvent<'a> {
    /// An output was found in the cache.
    Cached {
        stage: StageName,
        key: ActionKey,
        /// Whether it is cached only because an output above it came out unchanged: early cutoff.
        early_cutoff: bool,
    },
    /// What the rest of the run is expected to take; sent before the first stale action begins.
    Estimated(&'a CostEstimate),
    /// An action was executed and its output is in the cache.
    Completed {
        stage: StageName,
        key: ActionKey,
        /// Replies of models that it took; `None` for rules, and for programs that do not say.
        replies: Option<u64>,
        usage: Usage,
        /// What it cost; `None` where no price is known, 0 where no provider was asked.
        cost: Option<Usd>,
    },
    /// An answer that may search takes one more step, which is an action of its own.
    AnotherStep { stage: StageName },
    /// An action has no output.
    Failed(&'a FailedAction),
    /// A cell whose action is stale is not begun.
    Skipped { stage: StageName },
    /// Cells that can have no output because one above them has none.
    Blocked(MatrixCounts),
    /// A cell shares the action of another.
    Shared { stage: StageName },
    /// A cell shares an action that failed.
    SharedFailure { stage: StageName },
    /// No more calls to a provider or a model: they would all fail the same way.
    BreakerTripped(&'a TrippedBreaker),
    /// Requests wait for smaller batches, for this reason.
    BatchRefused(&'a str),
    /// A judge's self-test is done.
    SelftestCompleted {
        judge: &'a str,
        verdict: &'a SelfTestVerdict,
    },
    /// Something odd about an output that is used all the same.
    Warning(String),
    /// A compression has an output.
    Context { context: &'a Rc<ResolvedContext> },
    /// A question about planted items has a reply in form.
    Planted {
        task: &'a AnswerTask,
        reply: &'a str,
    },
    /// A judgement has an output, and so its cell can have a row.
    Judged {
        task: &'a JudgeTask,
        resolved: &'a Resolved,
    },
}

impl RunEvent<'_> {
    /// The action that has an output now.
    pub fn key(&self) -> Option<ActionKey> {
        match self {
            RunEvent::Cached { key, .. } | RunEvent::Completed { key, .. } => Some(*key),
            _ => None,
        }
    }
}

/// Receives the events of a run.
pub trait Listener {
    /// Handles one event.
    ///
    /// # Errors
    /// A listener that cannot continue, such as one that writes rows to a full disk. It ends the run.
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError>;
}

/// The events of a run and their totals.
pub(super) struct RunStats<'r> {
    listener: &'r mut dyn Listener,
    /// What is known of the outcome so far.
    pub(super) outcome: RunOutcome,
    /// Cells that are done: nothing more will be reported about them.
    finished: BTreeMap<StageName, u64>,
}

impl<'r> RunStats<'r> {
    pub(super) fn new(listener: &'r mut dyn Listener) -> RunStats<'r> {
        let outcome = RunOutcome {
            forecast: Some(CostEstimate::nothing()),
            ..RunOutcome::default()
        };
        RunStats {
            listener,
            outcome,
            finished: BTreeMap::new(),
        }
    }

    pub(super) fn emit(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        self.listener.on_event(event)
    }

    /// Reports an output that was found in the cache. Only the first cell with its action has it from there; the others
    /// share it.
    pub(super) fn cached(
        &mut self,
        stage: StageName,
        key: ActionKey,
        is_first: bool,
        early_cutoff: bool,
    ) -> Result<(), FileError> {
        self.emit(&match is_first {
            true => RunEvent::Cached {
                stage,
                key,
                early_cutoff,
            },
            false => RunEvent::Shared { stage },
        })
    }

    pub(super) fn completed(
        &mut self,
        action: &Action,
        fresh: &ExecutedOutput,
    ) -> Result<(), FileError> {
        let (stage, asked) = (action.task.stage(), action.request().is_some());
        let reported = fresh.output.usage().map(|usage| usage.calls.unwrap_or(0));
        let replies = reported.or(asked.then_some(1));
        self.emit(&RunEvent::Completed {
            stage,
            key: fresh.resolved.key,
            replies,
            usage: fresh.usage,
            cost: fresh.resolved.cost,
        })
    }

    /// Reports breakers that tripped.
    pub(super) fn tripped(&mut self, breakers: Vec<TrippedBreaker>) -> Result<(), FileError> {
        breakers
            .iter()
            .try_for_each(|breaker| self.emit(&RunEvent::BreakerTripped(breaker)))
    }

    /// Reports warnings.
    pub(super) fn note(
        &mut self,
        notes: impl IntoIterator<Item = String>,
    ) -> Result<(), FileError> {
        notes
            .into_iter()
            .try_for_each(|note| self.emit(&RunEvent::Warning(note)))
    }

    /// Reports a judge that gets no more requests.
    pub(super) fn give_up(&mut self, why: String) -> Result<(), FileError> {
        self.outcome.given_up.push(why.clone());
        self.note([why])
    }

    /// Counts a cell that is done.
    pub(super) fn resolved(&mut self, stage: StageName) {
        *self.finished.entry(stage).or_default() += 1;
    }

    /// Reports a cell that has no output, and the cells that depend on it, which can have none either.
    pub(super) fn unresolved(
        &mut self,
        stage: StageName,
        blocked: MatrixCounts,
    ) -> Result<(), FileError> {
        self.resolved(stage);
        for (stage, cells) in blocked.by_stage() {
            *self.finished.entry(stage).or_default() += cells;
        }
        self.emit(&RunEvent::Blocked(blocked))
    }

    pub(super) fn finished_cells(&self) -> u64 {
        self.finished.values().sum()
    }

    /// Compares the cells that were reported with those that were `due`.
    pub(super) fn finish(&mut self, due: MatrixCounts) {
        for (stage, due) in due.by_stage() {
            let finished = self.finished.get(&stage).copied().unwrap_or(0);
            if due != finished {
                let name = stage.name();
                self.outcome
                    .unaccounted
                    .push(format!("{finished} of {due} {name} cells"));
            }
        }
    }
}
