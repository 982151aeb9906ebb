//! The options of a run, and what becomes of it and of each action.

use tokio::sync::watch;

use super::budget::BudgetReached;
use crate::action::Work;
use crate::entries::Refresh;
use crate::plan::{CostEstimate, FailedAction, Output, ReportedModels, Resolved};
use base::files::FileError;
use base::units::Usage;
use store::cache::CacheError;

/// What a run executes, and how.
#[derive(Clone, Debug, Default)]
pub struct SchedulerOptions {
    /// Actions under way at once; 0 is the number that the providers allow.
    pub jobs: usize,
    /// Sends no request and starts no program.
    pub offline: bool,
    /// Stages whose cached outputs are ignored, then replaced.
    pub refresh: Refresh,
    /// Goes on with a judge that failed its self-test, or whose test could not be completed.
    pub allow_weak_judge: bool,
    /// Executes no cell of the matrix: only tests the judges.
    pub without_cells: bool,
    /// Whether it stays until open batches have ended.
    pub waits_for_batches: bool,
}

impl SchedulerOptions {
    /// Whether the work needs a request or a program while the run is offline.
    pub(super) fn forbids(&self, work: &Work) -> bool {
        self.offline && matches!(work, Work::Ask(_) | Work::Execute(_))
    }
}

/// What the user asked for during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopRequest {
    #[default]
    No,
    /// No new calls; what is under way is finished and stored.
    Drain,
    Now,
}

/// Returns once at least `wanted` is asked for.
pub(super) async fn stop_requested(mut stop: watch::Receiver<StopRequest>, wanted: StopRequest) {
    while *stop.borrow_and_update() < wanted {
        if stop.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    /// Whether it was to go on with judges that failed their self-tests.
    pub allow_weak_judge: bool,
    /// Whether outputs of some stage were asked for again.
    pub refreshes: bool,
    pub budget: Option<BudgetReached>,
    pub interrupted: bool,
    /// Why the cache could store nothing more, if it could not.
    pub broken: Option<String>,
    /// Judges that failed their self-test.
    pub weak_judges: Vec<String>,
    /// Judges whose self-test could not be completed.
    pub untested: Vec<UntestedJudge>,
    /// Which judges were given up, each with the reason.
    pub given_up: Vec<String>,
    /// Cells and self-test cases that were not begun, except the cases of a judge that gets no more requests.
    pub skipped: u64,
    /// Requests that were submitted in batches.
    pub submitted: u64,
    /// Batches that are open.
    pub batches: Vec<OpenBatchNote>,
    pub models: ReportedModels,
    /// The estimate from when the first stale action was met: of nothing if all was cached; `None` if there is none.
    pub forecast: Option<CostEstimate>,
    /// Cells that were never reported, by stage: a bug of this program.
    pub unaccounted: Vec<String>,
}

/// A judge whose self-test could not be completed.
#[derive(Clone, Debug)]
pub struct UntestedJudge {
    pub judge: String,
    /// Why cases could not be asked.
    pub why: String,
}

/// A batch that is open when a run ends.
#[derive(Clone, Debug)]
pub struct OpenBatchNote {
    pub nonce: String,
    pub lines: usize,
    /// How far it is.
    pub note: String,
}

/// An output that was just made.
#[derive(Debug)]
pub(super) struct ExecutedOutput {
    /// Its cost is `None` where no price is known, and 0 where no provider was asked.
    pub(super) resolved: Resolved,
    pub(super) output: Output,
    pub(super) usage: Usage,
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
