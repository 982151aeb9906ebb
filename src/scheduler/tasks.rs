//! The life of a task: it is resolved from the cache, by the action of another task, or by executing its own; or it has no
//! output, and then the cells that depend on it have none. What follows for cases of the judges' self-tests is up to
//! `qualification`.

use super::event::{Listener, RunEvent, RunStats};
use super::execute::Executor;
use super::in_flight::{SharedActions, is_unshared};
use super::options::{ExecutedOutput, RunError};
use super::qualification::{CaseOutcome, JudgeQualification, broken_replies};
use crate::action::{ActionKey, Repetition, StageName};
use crate::entries::Refresh;
use crate::pipeline::{AnswerCell, JudgeCell, Matrix};
use crate::plan::{
    self, Action, CachedOutput, FailedAction, Frontier, Output, OutputUnavailable, PrepareError,
    Resolved, SelftestTask, Task, TaskOutcome, follow,
};
use models::{ErrorClass, Lane};
use store::cache::Record;

/// What a task needs next.
#[allow(clippy::large_enum_variant, reason = "one at a time, and short-lived")]
pub(super) enum BegunTask {
    /// Nothing: it has its outcome, or shares the action of another task.
    Settled,
    /// Its action is to be executed.
    Stale(Action),
    /// Its output is in the cache, and is to be put into the remote before it is used.
    Unshared(Action),
}

/// All tasks of a run, and their outcomes.
pub(super) struct Tasks<'r, 'e> {
    executor: &'r Executor<'e>,
    pub(super) frontier: Frontier<'e>,
    shared: SharedActions,
    pub(super) judges: JudgeQualification<'r, 'e>,
    pub(super) stats: RunStats<'r>,
}

impl<'r, 'e> Tasks<'r, 'e> {
    /// The tasks of a walk.
    pub(super) fn new(
        executor: &'r Executor<'e>,
        frontier: Frontier<'e>,
        listener: &'r mut dyn Listener,
    ) -> Tasks<'r, 'e> {
        let judges = JudgeQualification::new(executor);
        Tasks {
            executor,
            frontier: frontier.warming_prompt_caches(),
            shared: SharedActions::default(),
            judges,
            stats: RunStats::new(listener),
        }
    }

    /// Resolves a task from the cache, or lets it share the action of another one.
    pub(super) fn begin(&mut self, task: Task) -> Result<BegunTask, RunError> {
        let action = match Action::prepare(self.executor.pipeline, &task) {
            Ok(action) => action,
            Err(error) => {
                self.fail_unprepared(&task, &error)?;
                return Ok(BegunTask::Settled);
            }
        };
        let Some(action) = self.shared.join(action) else {
            return Ok(BegunTask::Settled);
        };
        if let Some(outcome) = self.shared.failure(&action.key).cloned() {
            self.share_failure(&task, outcome)?;
            return Ok(BegunTask::Settled);
        }
        // Outputs that this run has made are current, even if their stage is refreshed.
        let is_completed = self.shared.is_completed(&action.key);
        let refresh = if is_completed {
            &Refresh::default()
        } else {
            &self.executor.options.refresh
        };
        match plan::look_up(
            self.executor.store,
            self.executor.pipeline,
            &action,
            refresh,
        ) {
            Some(_) if is_unshared(self.executor, &action.key) => Ok(BegunTask::Unshared(action)),
            Some(CachedOutput {
                resolved,
                reread,
                record,
            }) => self.begin_cached(action, resolved, reread.as_deref(), &record),
            None => Ok(BegunTask::Stale(action)),
        }
    }

    /// Resolves a task by its cached output. If that cannot be read, the store has reported the damage, and the action
    /// is executed again.
    fn begin_cached(
        &mut self,
        action: Action,
        resolved: Resolved,
        reread: Option<&Output>,
        record: &Record,
    ) -> Result<BegunTask, RunError> {
        if self.executor.verify(record, reread).is_err() {
            return Ok(BegunTask::Stale(action));
        }
        let task = &action.task;
        let output = match task {
            Task::Selftest(_) => match self.executor.outputs.read_record(task, record) {
                Ok(output) => Some(output),
                Err(_) => return Ok(BegunTask::Stale(action)),
            },
            _ => None,
        };
        self.note_used(task, &action, resolved.key);
        self.release(&action);
        let resolved = Resolved {
            unchanged: task.follows_unchanged(),
            ..resolved
        };
        let is_first = self.shared.complete(resolved.key);
        self.stats
            .cached(task.stage(), resolved.key, is_first, resolved.unchanged)?;
        self.resolve(task, resolved, output)?;
        Ok(BegunTask::Settled)
    }

    /// Fails a task whose prompt does not render.
    fn fail_unprepared(&mut self, task: &Task, error: &PrepareError) -> Result<(), RunError> {
        let pipeline = self.executor.pipeline;
        let path = plan::prompt_of(pipeline, task).and_then(|prompt| prompt.path);
        if let Task::Selftest(case) = task {
            return self
                .judges
                .cannot_ask(case.judge, error, path, &mut self.stats);
        }
        let message = path.map_or_else(|| error.to_string(), |path| format!("{path}: {error}"));
        let failure = FailedAction::new(task.place(pipeline), task.stage(), None, message);
        self.stats.emit(&RunEvent::Failed(&failure))?;
        self.unresolved(task, CaseOutcome::Ungraded)
    }

    /// Returns an action that may be executed as far as judges are concerned. A cell waits for its judge's test or is
    /// skipped; so is a case that decides nothing any more.
    pub(super) fn qualify(&mut self, mut action: Action) -> Result<Option<Action>, RunError> {
        match action.task.clone() {
            Task::Judge(task) => match self.judges.may_grade(task.cell.judge) {
                Some(true) => {
                    // A batch sends one request of a kind live before the others.
                    let asked = action.request();
                    let begins = asked.is_none_or(|request| request.lane == Lane::Batch)
                        || self.judges.may_begin(task.cell.judge, &mut action);
                    return Ok(begins.then_some(action));
                }
                None => self.judges.wait(task.cell.judge, action.task),
                Some(false) => self.skip(action)?,
            },
            Task::Selftest(case) if self.judges.is_given_up(case.judge) => {
                self.skip(action)?;
            }
            Task::Selftest(case) => {
                let begins = self.judges.may_begin(case.judge, &mut action);
                return Ok(begins.then_some(action));
            }
            // Its judge was tested by the run before.
            Task::Side(_) | Task::Compress(_) | Task::Answer(_) => {
                return Ok(Some(action));
            }
        }
        Ok(None)
    }

    /// Notes that an action is under way: other tasks with the same one wait for it.
    pub(super) fn started(&mut self, action: &Action) {
        self.shared.begin(action.key);
    }

    /// Makes a task ready again that could not be executed yet, and those that shared its action.
    pub(super) fn put_back(&mut self, action: Action) {
        self.release(&action);
        let mut tasks = self.shared.finish(&action.key);
        tasks.insert(0, action.task);
        self.put_back_all(tasks);
    }

    /// Makes tasks ready again that could not be begun yet; the first of them comes first.
    pub(super) fn put_back_all(&mut self, tasks: Vec<Task>) {
        tasks
            .into_iter()
            .rev()
            .for_each(|task| self.frontier.put_back(task));
    }

    /// An action was executed: resolves its task and those that share it.
    pub(super) fn complete(
        &mut self,
        action: &Action,
        mut fresh: ExecutedOutput,
    ) -> Result<(), RunError> {
        let (task, key) = (&action.task, action.key);
        let sharers = self.shared.finish(&key);
        self.shared.complete(key);
        self.stats.note(fresh.usage_warning.take())?;
        self.stats.completed(action, &fresh)?;
        if let Some(judge) = task.judge() {
            self.judges.note_replies(judge, 0, &mut self.stats)?;
        }
        self.release(action);
        self.resolve(task, fresh.resolved, Some(fresh.output))?;
        for sharer in sharers {
            self.note_used(&sharer, action, fresh.resolved.key);
            self.stats.emit(&RunEvent::Shared {
                stage: sharer.stage(),
            })?;
            self.resolve(&sharer, fresh.resolved, None)?;
        }
        Ok(())
    }

    /// An action failed: its task has no output, nor have those that share it.
    pub(super) fn fail(&mut self, action: &Action, failure: &FailedAction) -> Result<(), RunError> {
        let task = &action.task;
        let sharers = self.shared.finish(&action.key);
        self.stats.emit(&RunEvent::Failed(failure))?;
        // A judge that writes until the token limit was asked, and would be no better another time.
        let was_answered = failure.class.is_none_or(ErrorClass::was_answered);
        if let Some(judge) = task.judge().filter(|_| was_answered) {
            self.judges.note_replies(
                judge,
                broken_replies(failure, action.attempts),
                &mut self.stats,
            )?;
        }
        self.release(action);
        let outcome = if was_answered {
            CaseOutcome::Ungraded
        } else {
            CaseOutcome::Unasked(Some(failure.message_with_hint()))
        };
        self.shared.fail(action.key, outcome.clone());
        self.unresolved(task, outcome.clone())?;
        sharers
            .iter()
            .try_for_each(|sharer| self.share_failure(sharer, outcome.clone()))
    }

    /// The action of a task failed for another task. If the task is a case, `outcome` is its outcome.
    fn share_failure(&mut self, task: &Task, outcome: CaseOutcome) -> Result<(), RunError> {
        self.stats.emit(&RunEvent::SharedFailure {
            stage: task.stage(),
        })?;
        self.unresolved(task, outcome)
    }

    /// A task is not executed in this run, nor are those that share its action.
    pub(super) fn skip(&mut self, action: Action) -> Result<(), RunError> {
        self.release(&action);
        let mut tasks = self.shared.finish(&action.key);
        tasks.push(action.task);
        for task in tasks {
            let is_given_up =
                matches!(&task, Task::Selftest(case) if self.judges.is_given_up(case.judge));
            self.stats.outcome.skipped += u64::from(!is_given_up);
            self.stats.emit(&RunEvent::Skipped {
                stage: task.stage(),
            })?;
            self.unresolved(
                &task,
                CaseOutcome::Unasked(self.executor.breakers.reason(&action.work)),
            )?;
        }
        Ok(())
    }

    /// Makes the tasks ready that waited for the reply of a judge to this action.
    fn release(&mut self, action: &Action) {
        if let Some(judge) = action.task.judge() {
            let released = self.judges.ended(judge, &action.key);
            self.put_back_all(released);
        }
    }

    /// What follows from the output of a task: from `output`, if it was just read.
    fn resolve(
        &mut self,
        task: &Task,
        resolved: Resolved,
        output: Option<Output>,
    ) -> Result<(), RunError> {
        match task {
            Task::Side(_) => Ok(()),
            Task::Selftest(case) => {
                let output = match output {
                    Some(output) => Ok(output),
                    None => self.executor.outputs.read(task, &resolved.key),
                };
                let outcome = match output {
                    Ok(Output::Grades(grades)) => self.judges.graded(&grades),
                    Ok(_) => CaseOutcome::Ungraded,
                    // The judge graded it; that the cache cannot be read says nothing of the judge.
                    Err(error) => CaseOutcome::Unasked(Some(error.to_string())),
                };
                self.settle(case, outcome)
            }
            Task::Compress(_) | Task::Answer(_) | Task::Judge(_) => {
                self.resolve_cell(task, resolved, output)
            }
        }
    }

    /// What follows if a task has no output. If the task is a case, `outcome` is its outcome.
    fn unresolved(&mut self, task: &Task, outcome: CaseOutcome) -> Result<(), RunError> {
        match task {
            Task::Side(_) => Ok(()),
            Task::Selftest(case) => self.settle(case, outcome),
            Task::Compress(_) | Task::Answer(_) | Task::Judge(_) => self.unresolved_cell(task),
        }
    }

    /// Notes the outcome of a case. A verdict releases the cells that waited for it, or ends the run.
    fn settle(&mut self, case: &SelftestTask, outcome: CaseOutcome) -> Result<(), RunError> {
        let released = self.judges.settle(case, outcome, &mut self.stats)?;
        self.put_back_all(released);
        if self.judges.has_unacceptable() {
            self.executor.breakers.cancel_all();
        }
        Ok(())
    }

    /// No task may go unreported: one that waits for something that will not come fails, by name.
    pub(super) fn fail_waiting(&mut self) -> Result<(), RunError> {
        let message =
            "this cell waited for an output that never arrived; this is a bug in compeval";
        let hint = "run again, and please report it";
        for task in self.judges.drain().into_iter().chain(self.shared.drain()) {
            self.report_failure(&task, None, message.to_owned(), hint)?;
            self.unresolved(&task, CaseOutcome::Unasked(None))?;
        }
        Ok(())
    }

    /// A cell has no output, so those that depend on it have none either.
    fn unresolved_cell(&mut self, task: &Task) -> Result<(), RunError> {
        let blocked = self.frontier.resolve(task, TaskOutcome::Unresolved);
        Ok(self.stats.unresolved(task.stage(), blocked)?)
    }

    /// A cell has an output: `output`, if it was just read.
    fn resolve_cell(
        &mut self,
        task: &Task,
        resolved: Resolved,
        output: Option<Output>,
    ) -> Result<(), RunError> {
        if let Task::Compress(task) = task {
            self.stats.resolved(StageName::Compress);
            let context = self.frontier.context(task, resolved);
            self.stats.emit(&RunEvent::Context { context: &context })?;
            self.frontier.resolve_context(task, context);
            return Ok(());
        }
        let outcome = match follow(
            self.executor.store,
            self.executor.pipeline,
            task,
            resolved,
            output.as_ref(),
        ) {
            Ok(outcome) => outcome,
            Err(error) => {
                let key = Some(resolved.key);
                self.report_failure(task, key, error.to_string(), OutputUnavailable::remedy())?;
                return self.unresolved_cell(task);
            }
        };
        if let TaskOutcome::Searched(_) = outcome {
            self.stats.emit(&RunEvent::AnotherStep {
                stage: task.stage(),
            })?;
            self.frontier.resolve(task, outcome);
            return Ok(());
        }
        self.stats.resolved(task.stage());
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
            self.stats.emit(&RunEvent::Planted {
                task,
                reply: &answer.text,
            })?;
        }
        if let Task::Judge(task) = task {
            self.stats.emit(&RunEvent::Judged {
                task,
                resolved: &resolved,
            })?;
        }
        Ok(())
    }

    /// Reports the failure of a task that no attempt was made for.
    fn report_failure(
        &mut self,
        task: &Task,
        key: Option<ActionKey>,
        message: String,
        hint: &str,
    ) -> Result<(), RunError> {
        let place = task.place(self.executor.pipeline);
        let failure = FailedAction {
            hint: Some(hint.to_owned()),
            ..FailedAction::new(place, task.stage(), key, message)
        };
        Ok(self.stats.emit(&RunEvent::Failed(&failure))?)
    }

    /// Notes that the output of this key is in use at the place of a task. A stale action is explained by what was used
    /// at its place last. That is not always what was made there last: a user may go back to an earlier prompt, and
    /// cells may share an action.
    fn note_used(&self, task: &Task, action: &Action, key: ActionKey) {
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
            let place = task.place(self.executor.pipeline);
            self.executor
                .store
                .note_latest(&place.digest(stage, repetition), key);
        }
    }

    /// Whether no other run has another action in the place of an answer. An answer by rules has no run number, so it
    /// shares its place with those of the other runs, whose contexts may differ.
    fn is_one_answer(&self, cell: &AnswerCell) -> bool {
        let pipeline = self.executor.pipeline;
        Matrix(pipeline).answer_repetition(cell) != Repetition::NONE
            || Matrix(pipeline).compress_repetition(&cell.compress) == Repetition::NONE
    }

    /// The same for a judgement: one by rules has no run number either, and the answers of the other runs may differ.
    fn is_one_judgement(&self, cell: &JudgeCell) -> bool {
        let pipeline = self.executor.pipeline;
        let is_one_above = Matrix(pipeline).answer_repetition(&cell.answer) == Repetition::NONE
            && self.is_one_answer(&cell.answer);
        Matrix(pipeline).judge_repetition(cell) != Repetition::NONE || is_one_above
    }
}
