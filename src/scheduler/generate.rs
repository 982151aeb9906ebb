//! Performs what is asked outside of the matrix: each distinct action once, from the cache where it stands.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use super::errand::Errand;
use super::event::{Event, Listener};
use super::perform::{Fresh, NoOutput, Performer};
use super::run::{Options, RunError, Stop, is_asked};
use crate::action::ActionKey;
use crate::cache::{Lookup, Record};
use crate::plan::{GenerationTask, Output};

/// Performs `tasks` and returns their outputs in the same order, `None` where there is none: it failed, or the user
/// stopped before.
///
/// # Errors
/// As [`super::run`].
pub async fn generate<L: Listener>(
    performer: &Performer<'_>,
    options: &Options,
    mut stop: watch::Receiver<Stop>,
    tasks: &[GenerationTask],
    listener: &mut L,
) -> Result<Vec<Option<Output>>, RunError> {
    let mut distinct: BTreeMap<ActionKey, &GenerationTask> = BTreeMap::new();
    for task in tasks {
        distinct.entry(task.action.key).or_insert(task);
    }
    let mut outputs: BTreeMap<ActionKey, Output> = BTreeMap::new();
    let mut flights = FuturesUnordered::new();
    let mut waiting = distinct.into_values();
    let mut hopeless = false;
    loop {
        while !hopeless && *stop.borrow() == Stop::No && flights.len() < options.jobs {
            let Some(task) = waiting.next() else { break };
            let errand = Errand::of_generation(task);
            if let Some(output) = cached(performer, &errand, task, listener)? {
                outputs.insert(task.action.key, output);
                continue;
            }
            listener.hear(&Event::Started { stage: errand.stage })?;
            flights.push(async move { (task, performer.perform(&errand, &task.action).await) });
        }
        if flights.is_empty() {
            return Ok(tasks.iter().map(|task| outputs.get(&task.action.key).cloned()).collect());
        }
        tokio::select! {
            Some((task, result)) = flights.next() => {
                if let Some(output) = land(task, result, listener, &mut hopeless)? {
                    outputs.insert(task.action.key, output);
                }
            }
            Ok(()) = stop.changed() => {
                if *stop.borrow() == Stop::Now {
                    return Ok(vec![None; tasks.len()]);
                }
            }
        }
    }
}

/// Tells what came of an action. A failure that every further call would meet ends the calling.
fn land<L: Listener>(
    task: &GenerationTask,
    result: Result<Fresh, NoOutput>,
    listener: &mut L,
    hopeless: &mut bool,
) -> Result<Option<Output>, RunError> {
    let (stage, key) = (Errand::of_generation(task).stage, task.action.key);
    match result {
        Ok(Fresh { output, usage, cost, saved, unchanged, .. }) => {
            let asked = is_asked(&task.action.work);
            listener.hear(&Event::Kept { stage, key, asked, usage, cost, saved, unchanged })?;
            Ok(Some(output))
        }
        Err(NoOutput::Store(error)) => Err(error.into()),
        Err(NoOutput::OverBudget(_)) => {
            listener.hear(&Event::HeldBack { stage })?;
            Ok(None)
        }
        Err(NoOutput::Failed(failure)) => {
            *hopeless |= failure.class.is_some_and(|class| class.is_terminal());
            listener.hear(&Event::Failed(&failure))?;
            Ok(None)
        }
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
        errand.read_body(&performer.preparer, record.dialect, &bytes).ok()
    };
    let output = read();
    if output.is_some() {
        performer.store.touch([key]);
        listener.hear(&Event::Cached { stage, key, spared: false })?;
    }
    Ok(output)
}
