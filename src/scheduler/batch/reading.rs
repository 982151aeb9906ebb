//! Reading: what the replies of batches amount to. They are read like those to live requests.

use crate::action::ModelRequest;
use crate::entries::{BodyFormat, EntryRecord};
use crate::plan::{self, Action, FailedAction, Output};
use crate::scheduler::breakers::CircuitBreakers;
use crate::scheduler::execute::{Executor, takes_truncated};
use crate::scheduler::options::{ExecutedOutput, ExecutionError};
use base::units::Usage;
use models::{self, Dialect, ReadFault, read_billing, reply_failure};
use store::cache::Lookup;

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
    breakers: &CircuitBreakers,
    max_attempts: u32,
) -> Option<Result<ExecutedOutput, ExecutionError>> {
    let request = action.request()?;
    let record = executor.store.find(&action.key)?;
    let body = executor.store.body(&record).ok()?;
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return None;
    };
    match read_reply(
        executor,
        action,
        request,
        dialect,
        &body,
        &record.usage,
        max_attempts,
    ) {
        Ok(output) => {
            executor.outputs.note_model(
                action.work.requested_model(),
                read_billing(dialect, &body).model,
            );
            Some(Ok(executor.note_output(action, Some(record), output)))
        }
        Err(UnusableReply {
            failure,
            is_asked_again,
        }) => {
            executor.note_unreadable(Some(record), &failure.message);
            if is_asked_again {
                return None;
            }
            Some(Err(executor
                .fail(action, request, breakers, *failure, 1)
                .await))
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
    usage: &Usage,
    max_attempts: u32,
) -> Result<Output, UnusableReply> {
    let fault = match models::read(dialect, request.operation, body, None) {
        Ok(reply) if reply.truncated && !takes_truncated(action) => ReadFault::Truncated,
        Ok(reply) => {
            let read = plan::read_reply(&executor.preparer, &action.task, dialect, &reply);
            return read.map_err(|fault| UnusableReply {
                failure: Box::new(executor.unreadable(action, &fault, fault.to_string())),
                is_asked_again: action.attempts > 1,
            });
        }
        Err(fault) => fault,
    };
    let limit = request.settings.max_output_tokens;
    let (failure, is_asked_again) = reply_failure(fault, body, usage, limit, max_attempts);
    Err(UnusableReply {
        failure: Box::new(executor.failed_call(action, &failure)),
        is_asked_again,
    })
}
