//! What becomes of an action: an output, or why there is none.

use super::budget::BudgetReached;
use crate::plan::{FailedAction, Output, Resolved};
use base::units::{Tokens, Usage};
use store::cache::CacheError;

/// An output that was just made.
#[derive(Debug)]
pub(super) struct ExecutedOutput {
    /// Its cost is `None` where no price is known, and 0 where no provider was asked.
    pub(super) resolved: Resolved,
    pub(super) output: Output,
    pub(super) usage: Usage,
    /// Input tokens of the prefix of the request, if an earlier request of this run had the same prefix.
    pub(super) repeated: Tokens,
    /// What is odd about the usage that the provider reported.
    pub(super) usage_warning: Option<String>,
}

/// Why an action has no output.
#[derive(Debug)]
pub(super) enum ExecutionError {
    /// It failed; the run continues.
    Failed(Box<FailedAction>),
    /// The budget does not allow it.
    OverBudget(BudgetReached),
    /// It was not sent, or not again: the run is to end, or the breaker of its provider tripped.
    Cancelled,
    /// The store can write nothing more: the run ends.
    Store(CacheError),
}

impl From<FailedAction> for ExecutionError {
    fn from(failure: FailedAction) -> ExecutionError {
        ExecutionError::Failed(Box::new(failure))
    }
}

impl From<CacheError> for ExecutionError {
    fn from(error: CacheError) -> ExecutionError {
        ExecutionError::Store(error)
    }
}
