//! The cells of the matrix and the outcome of each task. A task is resolved from the cache, by the action of another
//! cell, or by executing its own; or it has no output, and then the tasks that depend on it have none either.

use std::rc::Rc;

use super::event::{Event, SkipReason};
use super::execute::{ExecutedOutput, Executor};
use super::in_flight::SharedActions;
use super::options::RunError;
use super::outputs::OutputUnavailable;
use super::row_cache::{FoundRows, RowCache};
use super::rows::RowBuilder;
use super::stats::RunStats;
use crate::action::{ActionKey, StageName};
use crate::cache::Refresh;
use crate::pipeline::CellCoordinate;
use crate::plan::{
    self, Action, ActionStatus, CompressTask, CurrentSources, Frontier, JudgeTask, Output, PrepareError, Resolved,
    ResolvedContext, Task, TaskOutcome,
};
use crate::results::{Blame, FailedAction, FailureLocation};
use models::{ErrorClass, ReadFault};

/// The walk over the matrix with all that it resolves tasks by.
pub(super) struct Cells<'r, 'e> {
    executor: &'r Executor<'e>,
    refresh: &'r Refresh,
    frontier: Frontier<'e>,
    shared: SharedActions,
    rows: RowBuilder<'e>,
    row_cache: RowCache<'r, 'e>,
}

impl<'r, 'e> Cells<'r, 'e> {
    pub(super) fn new(executor: &'r Executor<'e>, refresh: &'r Refresh, frontier: Frontier<'e>) -> Cells<'r, 'e> {
        let rows = RowBuilder::new(executor.preparer, executor.outputs, executor.store);
        let row_cache = RowCache::new(executor);
        Cells { executor, refresh, frontier, shared: SharedActions::default(), rows, row_cache }
    }

    pub(super) fn next_ready(&mut self) -> Option<Task> {
        self.frontier.next_ready()
    }

    pub(super) fn has_more(&self) -> bool {
        self.frontier.has_more()
    }

    /// Makes tasks ready again that could not be begun yet; the first of them comes first.
    pub(super) fn put_back(&mut self, tasks: Vec<Task>) {
        tasks.into_iter().rev().for_each(|task| self.frontier.put_back(task));
    }

    /// Resolves a task from the cache or lets it share the action of another cell. Returns a task whose action is to be
    /// executed.
    pub(super) fn begin(&mut self, task: Task, stats: &mut RunStats<'_>) -> Result<Option<(Task, Action)>, RunError> {
        let action = match self.executor.preparer.prepare(&task) {
            Ok(action) => action,
            Err(error) => {
                self.fail(&task, &self.not_prepared(&task, &error), stats)?;
                return Ok(None);
            }
        };
        let Some(task) = self.shared.join(&action.key, task) else { return Ok(None) };
        if self.shared.has_failed(&action.key) {
            self.share_failure(&task, stats)?;
            return Ok(None);
        }
        // What this run has just made is good, also of a stage that is to be refreshed.
        let refresh = if self.shared.is_completed(&action.key) { &Refresh::default() } else { self.refresh };
        let status = plan::look_up(self.executor.store, &self.executor.preparer, &task, &action, refresh);
        let ActionStatus::Cached { resolved, reread, record } = status else { return Ok(Some((task, action))) };
        if self.executor.verify(&record, reread.as_deref()).is_err() {
            // The store has reported the damage, and the output is made again.
            return Ok(Some((task, action)));
        }
        self.row_cache.note_used(&task, &action);
        let resolved = Resolved { unchanged: task.follows_unchanged(), ..resolved };
        self.cached(task.stage(), &resolved, stats)?;
        self.resolve(&task, resolved, None, stats)?;
        Ok(None)
    }

    fn not_prepared(&self, task: &Task, error: &PrepareError) -> FailedAction {
        let pipeline = self.executor.preparer.pipeline();
        let mut failure = FailedAction::of_cell(task.coordinate(pipeline), task.stage(), None, error);
        if let Some(path) = CurrentSources::of(pipeline, task).prompt.and_then(|prompt| prompt.path) {
            failure.message = format!("{path}: {}", failure.message);
        }
        failure
    }

    /// The action of a cell is executed from now on: other cells with the same one wait for it.
    pub(super) fn started(&mut self, key: ActionKey) {
        self.shared.begin(key);
    }

    /// The action is no longer under way. Returns the cells that waited for it.
    pub(super) fn finished(&mut self, key: &ActionKey) -> Vec<Task> {
        self.shared.finish(key)
    }

    /// An action was executed: resolves its cell and the `sharers`, which have the same.
    pub(super) fn complete(
        &mut self,
        task: &Task,
        action: &Action,
        (mut fresh, sharers): (ExecutedOutput, Vec<Task>),
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let (stage, key) = (task.stage(), action.key);
        self.shared.complete(key);
        stats.warn(key, std::mem::take(&mut fresh.warnings))?;
        stats.completed(stage, action, &fresh)?;
        let resolved = Resolved { key, out: fresh.out, cost: fresh.cost, unchanged: fresh.unchanged };
        self.resolve(task, resolved, Some(fresh.output), stats)?;
        for sharer in sharers {
            self.row_cache.note_used(&sharer, action);
            stats.emit(&Event::Shared { stage })?;
            self.resolve(&sharer, resolved, None, stats)?;
        }
        Ok(())
    }

    /// An action failed: its cell has no output, nor have the `sharers`.
    pub(super) fn fail_shared(
        &mut self,
        task: &Task,
        key: ActionKey,
        (failure, sharers): (&FailedAction, Vec<Task>),
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        self.shared.fail(key);
        self.fail(task, failure, stats)?;
        sharers.iter().try_for_each(|sharer| self.share_failure(sharer, stats))
    }

    fn share_failure(&mut self, task: &Task, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        stats.emit(&Event::SharedFailure { stage: task.stage() })?;
        self.unresolved(task, stats)
    }

    fn fail(&mut self, task: &Task, failure: &FailedAction, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        stats.emit(&Event::Failed(failure))?;
        self.unresolved(task, stats)
    }

    pub(super) fn skip(&mut self, task: &Task, reason: SkipReason, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        stats.skipped(task.stage(), reason)?;
        self.unresolved(task, stats)
    }

    fn unresolved(&mut self, task: &Task, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        let blocked = self.frontier.resolve(task, TaskOutcome::Unresolved);
        if let Some(context) = task.context() {
            self.row_cache.abandon(context.cell);
        }
        Ok(stats.unresolved(task.stage(), blocked)?)
    }

    fn cached(&mut self, stage: StageName, resolved: &Resolved, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        let is_first = self.shared.complete(resolved.key);
        Ok(stats.cached((stage, resolved.key), is_first, resolved.unchanged)?)
    }

    fn resolve(
        &mut self,
        task: &Task,
        resolved: Resolved,
        output: Option<Output>,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        if let Some(failure) = self.rejected(task, resolved.key, output.as_ref()) {
            return self.fail(task, &failure, stats);
        }
        if let Task::Compress(task) = task {
            stats.resolved(StageName::Compress);
            return self.resolve_context(task, resolved, stats);
        }
        let outcome = match plan::follow(self.executor.store, &self.executor.preparer, task, resolved, output.as_ref())
        {
            Ok(outcome) => outcome,
            Err(error) => {
                let place = task.coordinate(self.executor.preparer.pipeline());
                let failure = FailedAction::of_cell(place, task.stage(), Some(resolved.key), &error);
                let failure = FailedAction { hint: Some(OutputUnavailable::REMEDY.to_owned()), ..failure };
                return self.fail(task, &failure, stats);
            }
        };
        if let TaskOutcome::Searched(_) = outcome {
            self.frontier.resolve(task, outcome);
            return Ok(());
        }
        stats.resolved(task.stage());
        self.frontier.resolve(task, outcome);
        if let Some(Output::Answer(answer)) = &output {
            self.executor.outputs.put_answer(resolved.key, answer.clone());
        }
        match task {
            Task::Judge(judge) => self.make_row(judge, &resolved, output, stats),
            Task::Compress(_) | Task::Answer(_) => Ok(()),
        }
    }

    /// The failure of a cell whose answer was cut off by the token limit, where its answerer takes that for one. The
    /// answer stays in the cache: with another setting it is graded, and no request is sent.
    fn rejected(&self, task: &Task, key: ActionKey, output: Option<&Output>) -> Option<FailedAction> {
        const HINT: &str = "raise max_output_tokens of the answerer; truncated_replies = \"grade\" grades such replies";
        let preparer = &self.executor.preparer;
        if !task.fails_truncated(preparer.pipeline()) {
            return None;
        }
        let is_truncated = match output {
            Some(Output::Answer(answer)) => answer.truncated,
            _ => self.executor.outputs.answer(task, &key).is_ok_and(|answer| answer.truncated),
        };
        let failure = || FailedAction {
            class: Some(ErrorClass::Truncated),
            hint: Some(HINT.to_owned()),
            ..FailedAction::of_cell(
                task.coordinate(preparer.pipeline()),
                task.stage(),
                Some(key),
                &ReadFault::Truncated,
            )
        };
        is_truncated.then(failure)
    }

    /// Resolves a context, and all cells below it where their rows are cached.
    fn resolve_context(
        &mut self,
        task: &CompressTask,
        resolved: Resolved,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let context = self.frontier.context(task, resolved);
        let found = self.row_cache.find(&context, self.refresh);
        let is_cached = found.is_some();
        match found {
            Some(found) => {
                stats.emit(&Event::Context { cell: context.cell, line: &found.cached.context })?;
                self.resolve_downstream(&context, found, stats)?;
            }
            None => {
                if !stats.has_warned(&context.key)
                    && let Ok(warnings) = self.executor.outputs.warnings(&context)
                {
                    stats.warn(context.key, warnings)?;
                }
                self.add_context(&context, stats)?;
            }
        }
        self.frontier.resolve_context(task, context, is_cached);
        Ok(())
    }

    /// Measures a context and reports it.
    fn add_context(&mut self, context: &Rc<ResolvedContext>, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        match self.rows.context_line(context) {
            Ok(line) => {
                stats.emit(&Event::Context { cell: context.cell, line: &line })?;
                self.row_cache.add_context(context, line);
                Ok(())
            }
            Err(error) => {
                let place = CellCoordinate::of_compress(self.executor.preparer.pipeline(), &context.cell);
                let failure = FailedAction::of_cell(place, StageName::Compress, Some(context.key), &error);
                let failure = FailedAction { hint: Some(OutputUnavailable::REMEDY.to_owned()), ..failure };
                self.row_cache.abandon(context.cell);
                Ok(stats.emit(&Event::Failed(&failure))?)
            }
        }
    }

    /// Reports the cells below a context as their rows are cached.
    fn resolve_downstream(
        &mut self,
        context: &ResolvedContext,
        FoundRows { cells, dependencies, cached }: FoundRows,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let mut last = None;
        for (cell, [answer, judgement]) in cells.iter().zip(&dependencies) {
            if last.replace(cell.answer) != Some(cell.answer) {
                self.cached(StageName::Answer, &answer.resolved(context.unchanged), stats)?;
                stats.resolved(StageName::Answer);
            }
            self.cached(StageName::Judge, &judgement.resolved(context.unchanged), stats)?;
            stats.resolved(StageName::Judge);
        }
        stats.warn(context.key, cached.warnings)?;
        let matrix = self.executor.preparer.matrix();
        let ordinals: Vec<u64> = cells.iter().map(|cell| matrix.ordinal(cell)).collect();
        Ok(stats.emit(&Event::Rows { ordinals: &ordinals, lines: &cached.lines })?)
    }

    /// Makes the row of a judged cell and reports it.
    fn make_row(
        &mut self,
        task: &JudgeTask,
        resolved: &Resolved,
        output: Option<Output>,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let preparer = self.executor.preparer;
        let line = self.rows.line(task, resolved, output);
        match line {
            Ok(line) => {
                let ordinals = [preparer.matrix().ordinal(&task.cell)];
                stats.emit(&Event::Rows { ordinals: &ordinals, lines: &line })?;
                self.row_cache.add(task, resolved, line);
                Ok(())
            }
            Err(error) => {
                let place = CellCoordinate::of_judge(preparer.pipeline(), &task.cell);
                let failure = FailedAction::of_cell(place, StageName::Judge, Some(resolved.key), &error);
                let failure = FailedAction { hint: Some(OutputUnavailable::REMEDY.to_owned()), ..failure };
                self.row_cache.abandon(task.context.cell);
                Ok(stats.emit(&Event::Failed(&failure))?)
            }
        }
    }

    /// No cell may go unreported: one that waits for something that will not come fails, by name.
    pub(super) fn fail_waiting(&mut self, waiting: Vec<Task>, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        const HINT: &str = "run again; if it stays, please report it";
        for task in waiting.into_iter().chain(self.shared.drain()) {
            let place = FailureLocation::Cell(task.coordinate(self.executor.preparer.pipeline()));
            let message = "this cell was left waiting for what never came: a fault of compeval".to_owned();
            let (stage, blame, hint) = (task.stage(), Blame::Infrastructure, Some(HINT.to_owned()));
            self.fail(&task, &FailedAction { place, stage, key: None, blame, class: None, message, hint }, stats)?;
        }
        Ok(())
    }
}
