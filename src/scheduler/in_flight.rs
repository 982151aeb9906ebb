//! Actions under way, the tasks that share one, and what the run takes from the remote and puts there.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{FuturesUnordered, select};

use super::execute::Executor;
use super::options::{ExecutedOutput, ExecutionError};
use super::qualification::CaseOutcome;
use crate::action::ActionKey;
use crate::entries::Refresh;
use crate::plan::{self, Action, Blame, CachedOutput, FailedAction, Resolved, Task};
use store::cache::CacheError;
use store::remote::{Found, SharedCache};

/// An action that is no longer under way.
#[allow(clippy::large_enum_variant, reason = "one at a time, and short-lived")]
pub(super) enum EndedAction {
    Executed {
        action: Action,
        result: Result<ExecutedOutput, ExecutionError>,
    },
    /// The remote was asked for its output, which is in the cache now if there was one.
    Pulled {
        action: Action,
        result: Result<Found, CacheError>,
    },
}

type Ongoing<'r> = FuturesUnordered<Pin<Box<dyn Future<Output = EndedAction> + 'r>>>;

/// The actions under way.
pub(super) struct InFlight<'r> {
    actions: Ongoing<'r>,
    /// Calls to the remote.
    pulls: Ongoing<'r>,
    /// Whether the rest of the budget is reserved for these actions.
    waits_for_budget: bool,
}

impl<'r> InFlight<'r> {
    pub(super) fn new() -> InFlight<'r> {
        InFlight {
            actions: FuturesUnordered::new(),
            pulls: FuturesUnordered::new(),
            waits_for_budget: false,
        }
    }

    pub(super) fn start<'e: 'r>(&mut self, executor: &'r Executor<'e>, action: Action) {
        self.actions.push(Box::pin(async move {
            let result = executor.execute(&action).await;
            let result = share(executor, &action, result).await;
            EndedAction::Executed { action, result }
        }));
    }

    /// Asks the remote for the output of an action; with `is_local`, for one that the local cache has.
    pub(super) fn pull<'e: 'r>(
        &mut self,
        executor: &'r Executor<'e>,
        action: Action,
        is_local: bool,
    ) {
        self.pulls.push(Box::pin(async move {
            let result = pull(executor, &action, is_local).await;
            EndedAction::Pulled { action, result }
        }));
    }
}

impl InFlight<'_> {
    /// How many actions are executed.
    pub(super) fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether the remote is asked for as much at once as it may be.
    pub(super) fn is_pulling_enough(&self) -> bool {
        self.pulls.len() >= SharedCache::AT_ONCE
    }

    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.pulls.is_empty()
    }

    /// The action that ends next; `None` if nothing is under way.
    pub(super) async fn next(&mut self) -> Option<EndedAction> {
        let ended = select(&mut self.actions, &mut self.pulls).next().await;
        if matches!(ended, Some(EndedAction::Executed { .. })) || self.actions.is_empty() {
            self.waits_for_budget = false;
        }
        ended
    }

    /// Nothing more begins until one of these actions ends and frees some of the budget. Returns whether there is one.
    pub(super) fn wait_for_budget(&mut self) -> bool {
        self.waits_for_budget |= !self.actions.is_empty();
        !self.actions.is_empty()
    }

    pub(super) fn waits_for_budget(&self) -> bool {
        self.waits_for_budget
    }
}

/// The actions that this run has met: tasks with the same action share one execution, and one failure.
#[derive(Debug, Default)]
pub(super) struct SharedActions {
    /// Actions under way, with the other tasks that wait for them.
    waiting: HashMap<ActionKey, Vec<Task>>,
    completed: HashSet<ActionKey>,
    /// Actions that failed, with the outcome of every case that has one of them.
    failed: HashMap<ActionKey, CaseOutcome>,
}

impl SharedActions {
    /// Lets the task of an action wait if another task's execution of it is under way; else returns the action.
    pub(super) fn join(&mut self, action: Action) -> Option<Action> {
        match self.waiting.get_mut(&action.key) {
            Some(waiting) => {
                waiting.push(action.task);
                None
            }
            None => Some(action),
        }
    }

    pub(super) fn begin(&mut self, key: ActionKey) {
        self.waiting.insert(key, Vec::new());
    }

    /// The action is no longer under way. Returns the tasks that waited for it.
    pub(super) fn finish(&mut self, key: &ActionKey) -> Vec<Task> {
        self.waiting.remove(key).unwrap_or_default()
    }

    /// The action has an output. Returns whether it is the first task with this action.
    pub(super) fn complete(&mut self, key: ActionKey) -> bool {
        self.completed.insert(key)
    }

    pub(super) fn is_completed(&self, key: &ActionKey) -> bool {
        self.completed.contains(key)
    }

    pub(super) fn fail(&mut self, key: ActionKey, outcome: CaseOutcome) {
        self.failed.insert(key, outcome);
    }

    /// The outcome of a case with this action, if the action failed.
    pub(super) fn failure(&self, key: &ActionKey) -> Option<&CaseOutcome> {
        self.failed.get(key)
    }

    /// Takes the tasks that still wait: none, unless this program has a bug.
    pub(super) fn drain(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.waiting)
            .into_values()
            .flatten()
            .collect()
    }
}

/// Whether an output that the cache has is still to be exchanged with the remote: it is to be put there, or this run
/// merges parts, and the parts continued from the output of the remote.
pub(super) fn is_unshared(executor: &Executor<'_>, key: &ActionKey) -> bool {
    executor.shared.is_some_and(|shared| {
        (shared.is_written() || executor.options.offline) && shared.may_have(key)
    })
}

/// Asks the remote for the output of an action. With `is_local` the cache has one, which that of the remote replaces, or
/// which is put into a remote that has none and is written.
pub(super) async fn pull(
    executor: &Executor<'_>,
    action: &Action,
    is_local: bool,
) -> Result<Found, CacheError> {
    let (Some(shared), key) = (executor.shared, &action.key) else {
        return Ok(Found::Nothing);
    };
    match is_local {
        true if !shared.is_written() => drop(shared.pull(executor.store, key).await?),
        true if executor.options.refresh.has(action.stage) => {
            shared.put(executor.store, key, true).await?;
        }
        true => shared.reconcile(executor.store, key).await?,
        // What failed elsewhere has failed here, too: nothing is asked.
        false if executor.options.offline => return shared.pull_outcome(executor.store, key).await,
        false => return shared.pull(executor.store, key).await,
    }
    Ok(Found::Output)
}

/// Puts what became of an action into the remote. An output that is there already takes the place of the one that was
/// just made, before anything depends on it.
pub(super) async fn share(
    executor: &Executor<'_>,
    action: &Action,
    result: Result<ExecutedOutput, ExecutionError>,
) -> Result<ExecutedOutput, ExecutionError> {
    let Some(shared) = executor.shared.filter(|shared| shared.is_written()) else {
        return result;
    };
    match result {
        Ok(fresh) => {
            let (key, replaces) = (
                &fresh.resolved.key,
                executor.options.refresh.has(action.stage),
            );
            if shared.put(executor.store, key, replaces).await? {
                theirs(executor, action, fresh)
            } else {
                Ok(fresh)
            }
        }
        Err(ExecutionError::Failed(failure)) => {
            let header = executor.describe(action, Duration::ZERO).header();
            if let Ok(content) = serde_json::to_vec(&failure) {
                shared.put_failure(&action.key, &header, &content).await;
            }
            Err(ExecutionError::Failed(failure))
        }
        Err(error) => Err(error),
    }
}

/// The output of an action that was pulled in place of the one that this run has made and paid for.
fn theirs(
    executor: &Executor<'_>,
    action: &Action,
    ours: ExecutedOutput,
) -> Result<ExecutedOutput, ExecutionError> {
    let cached = plan::look_up(
        executor.store,
        executor.pipeline,
        action,
        &Refresh::default(),
    );
    let Some(CachedOutput {
        resolved, record, ..
    }) = cached
    else {
        let message = "the output that the remote has of this action cannot be read";
        return Err(executor
            .failure(action, Blame::Infrastructure, message)
            .into());
    };
    let output = executor.outputs.read_record(&action.task, &record);
    Ok(ExecutedOutput {
        output: output.map_err(|error| executor.unavailable(action, &error))?,
        resolved: Resolved {
            cost: ours.resolved.cost,
            ..resolved
        },
        ..ours
    })
}

/// Why an action failed elsewhere, as `share` stored it.
pub(super) fn read_failure(
    executor: &Executor<'_>,
    action: &Action,
    content: &[u8],
) -> Option<FailedAction> {
    let failure: FailedAction = serde_json::from_slice(content).ok()?;
    Some(FailedAction {
        place: action.task.place(executor.pipeline),
        stage: action.task.stage(),
        key: Some(action.key),
        ..failure
    })
}
