//! The life of an action that starts a program of the user: it waits for its turn, and what the program returned is stored
//! with its cost and then read.

use std::time::Instant;

use bytes::Bytes;

use super::breakers::CircuitBreakers;
use super::execute::{ExecutedOutput, ExecutionError, Executor};
use super::program::ProgramOutput;
use crate::action::InputValue;
use crate::compress::{self, CommandSpec, Strategy};
use crate::entries::{BodyFormat, EntryMeta};
use crate::plan::{self, Action, MadeOutput, Output, Task};
use crate::results::Blame;
use base::locale::word;
use models::ModelRef;

impl Executor<'_> {
    /// The program that an action starts.
    fn command(&self, action: &Action) -> Option<&CommandSpec> {
        let pipeline = self.preparer.pipeline();
        if let Task::Answer(task) = &action.task {
            return task.recovery(pipeline)?.command.as_ref();
        }
        match &action.task.method(pipeline)?.strategy {
            Strategy::Command(spec) => Some(spec),
            _ => None,
        }
    }

    pub(super) async fn run_program(
        &self,
        action: &Action,
        stdin: &InputValue,
        breakers: &CircuitBreakers,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let missing = word("no program is declared here", "此处没有声明程序");
        let spec = self.command(action).ok_or_else(|| self.failure(action, Blame::Infrastructure, missing))?;
        // While others have its workers, the run may be stopped, or spend what it may.
        let turn = self.programs.turn(spec).await;
        if breakers.is_cancelled() {
            return Err(ExecutionError::Cancelled);
        }
        self.budget.check().map_err(ExecutionError::OverBudget)?;
        // A method answers for its compressor; a search belongs to none.
        let blame = if matches!(action.task, Task::Compress(_)) { Blame::Method } else { Blame::Infrastructure };
        let unchanged = self.preparer.pipeline().module_files.check(spec);
        unchanged.map_err(|fault| self.failure(action, Blame::Infrastructure, fault.to_string()))?;
        let stdin = Bytes::copy_from_slice(self.read_input(action, stdin)?.as_bytes());
        let began = Instant::now();
        match self.programs.run(spec, stdin, turn).await {
            Ok(output) => self.store_program_output(action, spec, output).await,
            Err(error) => {
                let message = error.to_string();
                let meta = self.describe(action, began.elapsed());
                self.store.fail(action.key, &meta.header(), "program", &message).await?;
                Err(self.failure(action, blame, message).into())
            }
        }
    }

    /// Stores what a program returned, with what its requests cost: as it says, else by the price of its model. Where
    /// neither is known, the cost is unknown. If a module has changed meanwhile, nothing is stored.
    async fn store_program_output(
        &self,
        action: &Action,
        spec: &CommandSpec,
        ProgramOutput { stdout, started, elapsed, .. }: ProgramOutput,
    ) -> Result<ExecutedOutput, ExecutionError> {
        let output = self.read_output(action, BodyFormat::Local, &stdout);
        let reported = output.as_ref().map_or_else(|_| compress::reported_usage(&stdout), Output::usage);
        let usage = reported.unwrap_or_default();
        let cost = usage.cost.or_else(|| self.prices.cost(&ModelRef::parse(spec.model.as_deref()?)?, &usage.tokens));
        if reported.is_some() || spec.model.is_some() || !spec.secrets.is_empty() {
            self.budget.charge(usage.calls.unwrap_or(0), usage.tokens, cost);
        }
        let pipeline = self.preparer.pipeline();
        let made = plan::made_output(pipeline, action, spec, stdout, started);
        let MadeOutput { action: made, stdout, sources, fault } =
            made.map_err(|fault| self.failure(action, Blame::Infrastructure, fault.to_string()))?;
        let mut meta = EntryMeta { usage: usage.tokens, cost, ..self.describe(&made, elapsed) };
        meta.sources.0.extend(sources.0);
        let record = self.store.put_reply(made.key, &meta.header(), stdout).await?;
        pipeline.module_files.note_output(action.key, made.key);
        self.note_read(&made, record, output.and_then(|output| fault.map_or(Ok(output), |fault| Err(fault.into()))))
    }
}
