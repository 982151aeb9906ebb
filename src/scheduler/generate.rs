//! Performs what is asked outside of the matrix: each distinct action once, from the cache where it stands.

use std::collections::{BTreeMap, VecDeque};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use super::doors::Doors;
use super::errand::Errand;
use super::event::{Event, Listener, SkipReason};
use super::perform::{Fresh, NoOutput, Performer};
use super::run::{RunError, SchedulerOptions, Stop, is_asked};
use crate::action::ActionKey;
use crate::cache::{Lookup, Record};
use crate::plan::{GenerationTask, Output};

/// Performs `tasks` and returns their outputs in the same order, `None` where there is none: it failed, or nothing
/// more was to be sent.
///
/// # Errors
/// As [`super::run`].
pub async fn generate<L: Listener>(
    performer: &Performer<'_>,
    options: &SchedulerOptions,
    mut stop: watch::Receiver<Stop>,
    tasks: &[GenerationTask],
    listener: &mut L,
) -> Result<Vec<Option<Output>>, RunError> {
    let mut distinct: BTreeMap<ActionKey, &GenerationTask> = BTreeMap::new();
    for task in tasks {
        if let Some(earlier) = distinct.insert(task.action.key, task) {
            listener.on_event(&Event::Shared { stage: earlier.stage() })?;
        }
    }
    let (doors, outputs) = (&Doors::default(), BTreeMap::new());
    let waiting = distinct.into_values().collect();
    let mut round =
        Round { performer, doors, listener, waiting, outputs, is_squeezed: false, reason: SkipReason::Interrupted };
    let mut flights = FuturesUnordered::new();
    loop {
        while flights.len() < options.jobs && !round.is_squeezed {
            let Some((task, errand)) = round.next(*stop.borrow())? else { break };
            flights.push(perform(performer, task, errand, doors));
        }
        if flights.is_empty() {
            return Ok(tasks.iter().map(|task| round.outputs.get(&task.action.key).cloned()).collect());
        }
        tokio::select! {
            Some((task, result)) = flights.next() => round.land(task, result, !flights.is_empty())?,
            Ok(()) = stop.changed() => {
                doors.close_all();
                if *stop.borrow() == Stop::Now {
                    return Ok(vec![None; tasks.len()]);
                }
            }
        }
    }
}

async fn perform<'t>(
    performer: &Performer<'_>,
    task: &'t GenerationTask,
    errand: Errand,
    doors: &Doors,
) -> (&'t GenerationTask, Result<Fresh, NoOutput>) {
    (task, performer.perform(&errand, &task.action, doors).await)
}

/// What is left to do, and what came of the rest.
struct Round<'r, 'e, 't, L> {
    performer: &'r Performer<'e>,
    /// All closed once nothing more is to be sent: one provider refuses every call, or the budget is used up.
    doors: &'r Doors,
    listener: &'r mut L,
    waiting: VecDeque<&'t GenerationTask>,
    outputs: BTreeMap<ActionKey, Output>,
    /// What is left of the budget is set aside for what is under way.
    is_squeezed: bool,
    /// Why what is left is skipped.
    reason: SkipReason,
}

impl<'t, L: Listener> Round<'_, '_, 't, L> {
    /// The next task that is to be performed; those that are not are settled.
    fn next(&mut self, stop: Stop) -> Result<Option<(&'t GenerationTask, Errand)>, RunError> {
        while let Some(task) = self.waiting.pop_front() {
            let (stage, errand) = (task.stage(), Errand::of_generation(task));
            if let Some(output) = cached(self.performer, &errand, task, self.listener)? {
                self.outputs.insert(task.action.key, output);
            } else if self.doors.are_closed() || stop != Stop::No {
                let reason = if stop == Stop::No { self.reason } else { SkipReason::Interrupted };
                self.listener.on_event(&Event::Skipped { stage, reason })?;
            } else {
                self.listener.on_event(&Event::Started { stage })?;
                return Ok(Some((task, errand)));
            }
        }
        Ok(None)
    }

    /// Tells what came of a task. `others` are under way: what they do not use of the budget comes free again.
    fn land(
        &mut self,
        task: &'t GenerationTask,
        result: Result<Fresh, NoOutput>,
        others: bool,
    ) -> Result<(), RunError> {
        self.is_squeezed = false;
        for closed in self.doors.untold() {
            self.doors.close_all();
            self.reason = SkipReason::ProviderUnavailable;
            self.listener.on_event(&Event::BreakerTripped(&closed))?;
        }
        let (stage, key) = (task.stage(), task.action.key);
        match result {
            Ok(Fresh { output, usage, cost, unchanged, .. }) => {
                let asked = is_asked(&task.action.work);
                self.listener.on_event(&Event::Completed { stage, key, asked, usage, cost, unchanged })?;
                self.outputs.insert(key, output);
            }
            Err(NoOutput::Store(error)) => return Err(error.into()),
            Err(NoOutput::OverBudget(_)) if others && self.performer.budget.reached().is_none() => {
                self.is_squeezed = true;
                self.waiting.push_front(task);
            }
            Err(NoOutput::OverBudget(_) | NoOutput::CalledOff) => {
                self.doors.close_all();
                if self.performer.budget.reached().is_some() {
                    self.reason = SkipReason::Budget;
                }
                self.listener.on_event(&Event::Skipped { stage, reason: self.reason })?;
            }
            Err(NoOutput::Failed(failure)) => {
                self.listener.on_event(&Event::Failed(&failure))?;
            }
        }
        Ok(())
    }
}

/// The output of an action outside of the matrix, if it stands in the cache and reads.
fn cached<L: Listener>(
    performer: &Performer<'_>,
    errand: &Errand,
    task: &GenerationTask,
    listener: &mut L,
) -> Result<Option<Output>, RunError> {
    let (stage, key) = (errand.stage, task.action.key);
    let read = || {
        let record = performer.store.find(&key).filter(Record::is_usable)?;
        let bytes = performer.store.body(&record).ok()?;
        let output = errand.read_body(&performer.preparer, record.dialect, &bytes).ok()?;
        performer.store.touch(&record);
        Some(output)
    };
    let output = read();
    if output.is_some() {
        listener.on_event(&Event::Cached { stage, key, early_cutoff: false })?;
    }
    Ok(output)
}
