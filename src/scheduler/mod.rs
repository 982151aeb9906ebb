//! The scheduler: executes what is stale, as fast as providers allow, within the budget, and emits an event for each
//! step.
//!
//! `run` is an event loop over components that own their state and know nothing of the loop: `tasks` (the outcome of
//! each task, and what follows from it; that for the judges' self-tests is in `qualification`), `batch` (requests that
//! are sent in batches), `breakers` (models that are unavailable, or not asked any more), `event` (events and counts) and
//! `in_flight`. They are called downwards; none calls back.
//!
//! Invariant: an event follows the commit of what it reports. Deliberately absent: printing, paths, statistics.

mod batch;
mod breakers;
mod budget;
mod event;
mod execute;
mod in_flight;
mod options;
mod program;
mod qualification;
mod run;
mod supervisor;
mod tasks;

pub use breakers::{CircuitBreakers, TrippedBreaker};
pub use budget::{Budget, BudgetLimits, BudgetReached, Spent};
pub use event::{Listener, RunEvent};
pub use execute::Executor;
pub use options::{
    OpenBatchNote, RunError, RunOutcome, SchedulerOptions, StopRequest, UntestedJudge,
};
pub use program::Programs;
pub use run::{run, run_tasks};
pub use supervisor::{supervise_if_asked, use_supervisor};
