//! What follows from the outputs of cells: which tasks are ready. If a cell has no output, the cells that depend on it
//! have none.

use super::event::RunEvent;
use super::execute::Executor;
use super::in_flight::SharedActions;
use super::options::RunError;
use super::stats::RunStats;
use crate::action::{ActionKey, Repetition, StageName};
use crate::pipeline::{AnswerCell, JudgeCell};
use crate::plan::{
    Action, FailedAction, Frontier, Output, OutputUnavailable, Resolved, Task, TaskOutcome, follow,
};
use models::{ErrorClass, ReadFault};

/// The walk over the tasks, and the actions that they share.
pub(super) struct Cells<'r, 'e> {
    executor: &'r Executor<'e>,
    frontier: Frontier<'e>,
    pub(super) shared: SharedActions,
}

impl<'r, 'e> Cells<'r, 'e> {
    pub(super) fn new(executor: &'r Executor<'e>, frontier: Frontier<'e>) -> Cells<'r, 'e> {
        Cells {
            executor,
            frontier,
            shared: SharedActions::default(),
        }
    }

    pub(super) fn next_ready(&mut self) -> Option<Task> {
        self.frontier.next_ready()
    }

    pub(super) fn has_more(&self) -> bool {
        self.frontier.has_more()
    }

    /// Makes tasks ready again that could not be begun yet; the first of them comes first.
    pub(super) fn put_back(&mut self, tasks: Vec<Task>) {
        tasks
            .into_iter()
            .rev()
            .for_each(|task| self.frontier.put_back(task));
    }

    fn fail(
        &mut self,
        task: &Task,
        failure: &FailedAction,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        stats.emit(&RunEvent::Failed(failure))?;
        self.unresolved(task, stats)
    }

    /// A cell has no output, so those that depend on it have none either.
    pub(super) fn unresolved(
        &mut self,
        task: &Task,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let blocked = self.frontier.resolve(task, TaskOutcome::Unresolved);
        Ok(stats.unresolved(task.stage(), blocked)?)
    }

    /// An output was found in the cache.
    pub(super) fn cached(
        &mut self,
        stage: StageName,
        resolved: &Resolved,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let is_first = self.shared.complete(resolved.key);
        Ok(stats.cached(stage, resolved.key, is_first, resolved.unchanged)?)
    }

    /// A cell has an output: `output`, if it was just read.
    pub(super) fn resolve(
        &mut self,
        task: &Task,
        resolved: Resolved,
        output: Option<Output>,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        if let Task::Compress(task) = task {
            stats.resolved(StageName::Compress);
            let context = self.frontier.context(task, resolved);
            stats.emit(&RunEvent::Context { context: &context })?;
            self.frontier.resolve_context(task, context);
            return Ok(());
        }
        let outcome = match follow(
            self.executor.store,
            &self.executor.preparer,
            task,
            resolved,
            output.as_ref(),
        ) {
            Ok(TaskOutcome::Rejected) => {
                return self.fail(task, &self.truncation(task, resolved.key), stats);
            }
            Ok(outcome) => outcome,
            Err(error) => {
                return self.fail(task, &self.unreadable(task, resolved.key, &error), stats);
            }
        };
        if let TaskOutcome::Searched(_) = outcome {
            stats.emit(&RunEvent::AnotherStep {
                stage: task.stage(),
            })?;
            self.frontier.resolve(task, outcome);
            return Ok(());
        }
        stats.resolved(task.stage());
        self.frontier.resolve(task, outcome);
        if let Some(Output::Answer(answer)) = &output {
            self.executor
                .outputs
                .put_answer(resolved.key, answer.clone());
        }
        if let Task::Answer(task) = task
            && task.context.variant().is_some()
            && let Ok(answer) = self
                .executor
                .outputs
                .answer(&Task::Answer(task.clone()), &resolved.key)
        {
            stats.emit(&RunEvent::Planted {
                task,
                reply: &answer.text,
            })?;
        }
        if let Task::Judge(task) = task {
            stats.emit(&RunEvent::Judged {
                task,
                resolved: &resolved,
            })?;
        }
        Ok(())
    }

    /// The failure of a cell whose answer was cut off. The answer stays in the cache: with another setting it is graded,
    /// and no request is sent.
    fn truncation(&self, task: &Task, key: ActionKey) -> FailedAction {
        let hint = "raise max_output_tokens of the answerer; truncated_replies = \"grade\" grades such replies";
        let failure = self.failure(task, key, ReadFault::Truncated.to_string(), hint);
        FailedAction {
            class: Some(ErrorClass::Truncated),
            ..failure
        }
    }

    /// The failure of a cell whose cached output cannot be read.
    fn unreadable(&self, task: &Task, key: ActionKey, error: &OutputUnavailable) -> FailedAction {
        self.failure(task, key, error.to_string(), OutputUnavailable::remedy())
    }

    fn failure(&self, task: &Task, key: ActionKey, message: String, hint: &str) -> FailedAction {
        let place = task.place(self.executor.preparer.pipeline());
        let failure = FailedAction::new(place, task.stage(), Some(key), message);
        FailedAction {
            hint: Some(hint.to_owned()),
            ..failure
        }
    }

    /// Notes that the output of this key is in use at the place of a task. A stale action is explained by what was used
    /// at its place last. That is not always what was made there last: a user may go back to an earlier prompt, and
    /// cells may share an action.
    pub(super) fn note_used(&self, task: &Task, action: &Action, key: ActionKey) {
        let Action {
            stage, repetition, ..
        } = *action;
        let is_one_place = match task {
            Task::Side(_) | Task::Selftest(_) => false,
            Task::Compress(_) => true,
            Task::Answer(task) => self.is_one_answer(&task.cell),
            Task::Judge(task) => self.is_one_judgement(&task.cell),
        };
        if is_one_place {
            let place = task.place(self.executor.preparer.pipeline());
            self.executor
                .store
                .note_latest(&place.digest(stage, repetition), key);
        }
    }

    /// Whether no other run has another action in the place of an answer. An answer by rules has no run number, so it
    /// shares its place with those of the other runs, whose contexts may differ.
    fn is_one_answer(&self, cell: &AnswerCell) -> bool {
        let matrix = self.executor.preparer.matrix();
        matrix.answer_repetition(cell) != Repetition::NONE
            || matrix.compress_repetition(&cell.compress) == Repetition::NONE
    }

    /// The same for a judgement: one by rules has no run number either, and the answers of the other runs may differ.
    fn is_one_judgement(&self, cell: &JudgeCell) -> bool {
        let matrix = self.executor.preparer.matrix();
        let is_one_above = matrix.answer_repetition(&cell.answer) == Repetition::NONE
            && self.is_one_answer(&cell.answer);
        matrix.judge_repetition(cell) != Repetition::NONE || is_one_above
    }
}
