//! What a run takes from the remote and puts there.

use std::time::Duration;

use super::execute::Executor;
use super::options::{ExecutedOutput, ExecutionError};
use crate::action::ActionKey;
use crate::entries::Refresh;
use crate::plan::{self, Action, Blame, CachedOutput, FailedAction, Resolved};
use store::cache::CacheError;
use store::remote::Found;

/// Whether an output that the cache has is still to be put into the remote.
pub(super) fn is_unshared(executor: &Executor<'_>, key: &ActionKey) -> bool {
    executor
        .shared
        .is_some_and(|shared| shared.is_written() && shared.may_have(key))
}

/// Asks the remote for the output of an action. With `is_local` the cache has one, which is put into the remote unless
/// that has one.
pub(super) async fn pull(
    executor: &Executor<'_>,
    action: &Action,
    is_local: bool,
) -> Result<Found, CacheError> {
    let (Some(shared), key) = (executor.shared, &action.key) else {
        return Ok(Found::Nothing);
    };
    match is_local {
        true if executor.refresh.has(action.stage) => {
            shared.put(executor.store, key, true).await?;
        }
        true => shared.reconcile(executor.store, key).await?,
        false if executor.takes_failures => return shared.pull_outcome(executor.store, key).await,
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
            let (key, replaces) = (&fresh.resolved.key, executor.refresh.has(action.stage));
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
        &executor.preparer,
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
        place: action.task.place(executor.preparer.pipeline()),
        stage: action.task.stage(),
        key: Some(action.key),
        ..failure
    })
}
