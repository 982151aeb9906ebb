//! Performs the actions of probe generation, which are outside of the matrix: each distinct action once, from the cache
//! if it has the output.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tokio::sync::watch;

use super::breakers::CircuitBreakers;
use super::event::{Event, Listener, SkipReason};
use super::execute::{ExecutedOutput, ExecutionError, Executor};
use super::in_flight::{Ended, InFlight};
use super::job::Job;
use super::options::{RunError, SchedulerOptions, StopRequest};
use super::stats::RunStats;
use crate::action::ActionKey;
use crate::cache::Refresh;
use crate::plan::{GenerationTask, Output};

/// Performs `tasks` and returns their outputs in the same order, `None` where there is none: it failed, or nothing
/// more was to be sent.
///
/// # Errors
/// As [`super::run`].
pub async fn generate(
    executor: &Executor<'_>,
    options: &SchedulerOptions,
    mut stop: watch::Receiver<StopRequest>,
    tasks: &[GenerationTask],
    listener: &mut dyn Listener,
) -> Result<Vec<Option<Output>>, RunError> {
    let mut stats = RunStats::new(listener);
    let mut distinct: BTreeMap<ActionKey, &GenerationTask> = BTreeMap::new();
    for task in tasks {
        if let Some(earlier) = distinct.insert(task.action.key, task) {
            stats.emit(&Event::Shared { stage: earlier.stage() })?;
        }
    }
    let (breakers, outputs) = (Rc::new(CircuitBreakers::default()), BTreeMap::new());
    let waiting = distinct.into_values().collect();
    let mut round = GenerationLoop { executor, breakers, stats, waiting, outputs, skips: None };
    let mut in_flight = InFlight::new();
    loop {
        while in_flight.len() < options.jobs && !in_flight.waits_for_budget() {
            match round.next_stale(*stop.borrow())? {
                Some(NextStep::Pull(task)) => in_flight.pull(executor, task, task.action.key),
                Some(NextStep::Start(task, job)) => in_flight.start(executor, (task, *job), &round.breakers),
                None => break,
            }
        }
        if in_flight.is_empty() {
            return Ok(tasks.iter().map(|task| round.outputs.get(&task.action.key).cloned()).collect());
        }
        tokio::select! {
            Some(ended) = in_flight.next() => match ended {
                Ended::Executed { subject, result, .. } => round.complete(subject, result, &mut in_flight)?,
                Ended::Pulled { subject, result, .. } => {
                    result?;
                    round.waiting.push_front(subject);
                }
            },
            Ok(()) = stop.changed() => {
                round.stop(SkipReason::Interrupted);
                if *stop.borrow() == StopRequest::Now {
                    return Ok(vec![None; tasks.len()]);
                }
            }
        }
    }
}

/// What to do about a task that is not in the cache.
enum NextStep<'t> {
    /// The remote may have it.
    Pull(&'t GenerationTask),
    Start(&'t GenerationTask, Box<Job>),
}

/// What is left to do, and the outputs so far.
struct GenerationLoop<'r, 'e, 't> {
    executor: &'r Executor<'e>,
    breakers: Rc<CircuitBreakers>,
    stats: RunStats<'r>,
    waiting: VecDeque<&'t GenerationTask>,
    outputs: BTreeMap<ActionKey, Output>,
    /// Why what is left is skipped, once nothing more is to be sent: a provider refuses every call, or the budget is
    /// used up.
    skips: Option<SkipReason>,
}

impl<'t> GenerationLoop<'_, '_, 't> {
    /// The next task that is to be performed; those that are not are reported.
    fn next_stale(&mut self, stop: StopRequest) -> Result<Option<NextStep<'t>>, RunError> {
        while let Some(task) = self.waiting.pop_front() {
            let (stage, key, job) = (task.stage(), task.action.key, Job::of_generation(task));
            let interrupted = (stop != StopRequest::No).then_some(SkipReason::Interrupted);
            if let Some(output) = self.executor.cached_output(&job, &Refresh::default()) {
                self.stats.cached((stage, key), true, false)?;
                self.outputs.insert(key, output);
            } else if let Some(reason) = self.skips.or(interrupted) {
                self.stats.skipped(stage, reason)?;
            } else if self.executor.shared.is_some_and(|shared| shared.has(&key)) {
                return Ok(Some(NextStep::Pull(task)));
            } else {
                self.stats.emit(&Event::Started { stage })?;
                return Ok(Some(NextStep::Start(task, Box::new(job))));
            }
        }
        Ok(None)
    }

    /// Lets nothing more be sent.
    fn stop(&mut self, reason: SkipReason) {
        self.skips.get_or_insert(reason);
        self.breakers.cancel_all();
    }

    /// Takes the outcome of a task.
    fn complete(
        &mut self,
        task: &'t GenerationTask,
        result: Result<ExecutedOutput, ExecutionError>,
        others: &mut InFlight<'_, &'t GenerationTask>,
    ) -> Result<(), RunError> {
        let tripped = self.breakers.take_unreported();
        if !tripped.is_empty() {
            self.stop(SkipReason::ProviderUnavailable);
        }
        self.stats.tripped(tripped)?;
        match result {
            Ok(fresh) => {
                self.stats.completed(task.stage(), &task.action, &fresh)?;
                self.outputs.insert(task.action.key, fresh.output);
            }
            Err(ExecutionError::Store(error)) => return Err(error.into()),
            Err(ExecutionError::OverBudget(_))
                if self.executor.budget.reached().is_none() && others.wait_for_budget() =>
            {
                self.waiting.push_front(task);
            }
            Err(ExecutionError::OverBudget(_)) => {
                self.stop(SkipReason::Budget);
                self.stats.skipped(task.stage(), SkipReason::Budget)?;
            }
            Err(ExecutionError::Cancelled) => {
                self.stop(SkipReason::Interrupted);
                self.stats.skipped(task.stage(), self.skips.unwrap_or(SkipReason::Interrupted))?;
            }
            Err(ExecutionError::Failed(failure)) => self.stats.emit(&Event::Failed(&failure))?,
        }
        Ok(())
    }
}
