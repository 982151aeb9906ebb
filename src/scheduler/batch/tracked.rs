//! What the batch lane keeps: batches that are open, and the outcomes of their lines. The replies are read like those to
//! live requests.

use std::time::Duration;

use crate::action::ModelRequest;
use crate::entries::{BodyFormat, EntryRecord, OpenBatch};
use crate::plan::{self, Action, FailedAction, Output, Unreadable};
use crate::scheduler::budget::Reservation;
use crate::scheduler::execute::Executor;
use crate::scheduler::options::{ExecutedOutput, ExecutionError};
use models::{Dialect, reply_failure};
use store::cache::Lookup;

/// An action that no longer waits for a batch, with its output or why it has none; `None` if it is begun again: live, or in
/// the next batch.
pub(crate) type EndedLine = (Action, Option<Result<ExecutedOutput, ExecutionError>>);

/// A batch that is not closed, as this process follows it.
pub(super) struct Tracked {
    pub(super) batch: OpenBatch,
    /// What the budget holds for it.
    pub(super) reservations: Vec<Reservation>,
    /// Its last known status, for people.
    pub(super) note: String,
    pub(super) was_polled: bool,
    /// Whether waiting cannot help: its results are gone, or belong to another key.
    pub(super) is_stuck: bool,
}

impl Tracked {
    pub(super) fn new(batch: OpenBatch, reservations: Vec<Reservation>) -> Tracked {
        let note = if batch.id.is_some() {
            "submitted"
        } else {
            "not confirmed by the provider"
        };
        Tracked {
            batch,
            reservations,
            note: note.to_owned(),
            was_polled: false,
            is_stuck: false,
        }
    }

    /// Notes why waiting cannot help.
    pub(super) fn note_stuck(&mut self, note: String) {
        self.is_stuck = true;
        self.note = note;
    }
}

/// The wait after `polls` waits, each longer than the one before: up to 10 minutes if the first is 15 seconds.
pub(super) fn poll_wait(first: Duration, polls: u32) -> Duration {
    first
        .mul_f64(1.5_f64.powi(i32::try_from(polls.min(20)).unwrap_or(20)))
        .min(first * 40)
}

/// How long a batch whose creation was not confirmed may still turn up, if the first wait is 15 seconds: 10 minutes, or an
/// hour if the vendor keeps no metadata, so that only its results would name it.
pub(super) fn confirmation_wait(first: Duration, has_metadata: bool) -> Duration {
    first * if has_metadata { 40 } else { 240 }
}

/// The longest time that a vendor works on a batch.
pub(super) const LONGEST_BATCH: Duration = Duration::from_secs(24 * 3600);

/// The longest time that a vendor keeps the results of a batch.
pub(super) const LONGEST_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long the results of a batch that has ended may lack replies, if the first wait is 15 seconds: an hour.
pub(super) fn results_wait(first: Duration) -> Duration {
    first * 240
}

/// Why a reply is no output.
#[derive(Clone, Debug)]
pub(super) struct UnusableReply {
    pub(super) failure: Box<FailedAction>,
    /// Whether another reply may be one.
    pub(super) is_asked_again: bool,
}

/// Reads the stored reply to a request; `None` if the model is to be asked again.
pub(super) async fn read_stored(
    executor: &Executor<'_>,
    action: &Action,
) -> Option<Result<ExecutedOutput, ExecutionError>> {
    let request = action.request()?;
    let record = executor.store.find(&action.key)?;
    let body = executor.store.body(&record).ok()?;
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return None;
    };
    match read_reply(executor, action, request, dialect, &body) {
        Ok(output) => Some(Ok(executor.note_output(action, Some(record), output))),
        Err(UnusableReply {
            failure,
            is_asked_again,
        }) => {
            executor.note_unreadable(Some(record), &failure.message);
            if is_asked_again {
                return None;
            }
            Some(Err(executor.fail(action, request, *failure, 1).await))
        }
    }
}

/// Reads the reply to a request.
pub(super) fn read_reply(
    executor: &Executor<'_>,
    action: &Action,
    request: &ModelRequest,
    dialect: Dialect,
    body: &[u8],
) -> Result<Output, UnusableReply> {
    let format = BodyFormat::Reply(dialect);
    let fault = match plan::read_output(executor.pipeline, &action.task, format, body) {
        Ok(output) => return Ok(output),
        Err(Unreadable::Reply(fault)) => fault,
        Err(fault) => {
            return Err(UnusableReply {
                failure: Box::new(executor.unreadable(action, &fault, fault.to_string())),
                is_asked_again: action.attempts > 1,
            });
        }
    };
    let limit = request.settings.max_output_tokens;
    let (failure, is_retryable) = reply_failure(fault, dialect, body, limit);
    let provider = executor.pipeline.providers.get(&request.provider);
    Err(UnusableReply {
        failure: Box::new(executor.failed_call(action, &failure)),
        is_asked_again: is_retryable && provider.is_none_or(|spec| spec.limits.max_attempts > 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::Limits;

    #[test]
    fn polls_become_rare_and_never_stop() {
        let first = Limits::BATCH_POLL;
        assert_eq!(
            (poll_wait(first, 0).as_secs(), poll_wait(first, 3).as_secs()),
            (15, 50)
        );
        assert_eq!(
            [poll_wait(first, 12), poll_wait(first, 1000)],
            [Duration::from_secs(600); 2]
        );
        assert_eq!(
            [true, false].map(|known| confirmation_wait(first, known).as_secs()),
            [600, 3600]
        );
        assert_eq!(results_wait(first).as_secs(), 3600);
    }
}
