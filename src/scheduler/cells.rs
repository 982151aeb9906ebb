//! What follows from the outputs of cells: which tasks are ready, and the rows. A cell without an output takes those that
//! depend on it with it.

use std::rc::Rc;

use super::event::Event;
use super::execute::Executor;
use super::in_flight::SharedActions;
use super::options::RunError;
use super::outputs::OutputUnavailable;
use super::row_cache::{FoundRows, RowCache};
use super::rows::RowBuilder;
use super::stats::RunStats;
use crate::action::{ActionKey, StageName};
use crate::cache::Refresh;
use crate::pipeline::{CellCoordinate, Place};
use crate::plan::{
    Action, CompressTask, Frontier, JudgeTask, Output, Resolved, ResolvedContext, Task, TaskOutcome, follow,
};
use crate::results::FailedAction;
use models::{ErrorClass, ReadFault};

/// The walk over the tasks with all that it resolves cells by.
pub(super) struct Cells<'r, 'e> {
    executor: &'r Executor<'e>,
    refresh: &'r Refresh,
    frontier: Frontier<'e>,
    pub(super) shared: SharedActions,
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

    /// Notes that an action is in use at the place of a task.
    pub(super) fn note_used(&self, task: &Task, action: &Action) {
        self.row_cache.note_used(task, action);
    }

    fn fail(&mut self, task: &Task, failure: &FailedAction, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        stats.emit(&Event::Failed(failure))?;
        self.unresolved(task, stats)
    }

    /// A cell has no output: those that depend on it have none either.
    pub(super) fn unresolved(&mut self, task: &Task, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        let blocked = self.frontier.resolve(task, TaskOutcome::Unresolved);
        if let Some(context) = task.context() {
            self.row_cache.abandon(context.cell);
        }
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
        Ok(stats.cached((stage, resolved.key), is_first, resolved.unchanged)?)
    }

    /// A cell has an output; `output` is it, where it was just read.
    pub(super) fn resolve(
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
        let outcome = match follow(self.executor.store, &self.executor.preparer, task, resolved, output.as_ref()) {
            Ok(outcome) => outcome,
            Err(error) => {
                let place = task.place(self.executor.preparer.pipeline());
                let failure = FailedAction::new(place, task.stage(), Some(resolved.key), error.to_string());
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
            _ => Ok(()),
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
            ..FailedAction::new(
                task.place(preparer.pipeline()),
                task.stage(),
                Some(key),
                ReadFault::Truncated.to_string(),
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
                let place = Place::Cell(place);
                let failure = FailedAction::new(place, StageName::Compress, Some(context.key), error.to_string());
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
                self.cached(StageName::Answer, &Resolved { unchanged: context.unchanged, ..*answer }, stats)?;
                stats.resolved(StageName::Answer);
            }
            self.cached(StageName::Judge, &Resolved { unchanged: context.unchanged, ..*judgement }, stats)?;
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
                let place = Place::Cell(place);
                let failure = FailedAction::new(place, StageName::Judge, Some(resolved.key), error.to_string());
                let failure = FailedAction { hint: Some(OutputUnavailable::REMEDY.to_owned()), ..failure };
                self.row_cache.abandon(task.context.cell);
                Ok(stats.emit(&Event::Failed(&failure))?)
            }
        }
    }
}
