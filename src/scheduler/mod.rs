//! The scheduler: executes what is stale, as fast as providers allow, within the budget, and tells what happens.
//!
//! Invariant: told means kept; an event follows the store's word, never precedes it. Deliberately absent: printing,
//! paths, statistics.

mod ended;
mod doors;
mod lanes;
mod event;
mod budget;
mod program;
mod shelf;
mod errand;
mod perform;
mod ask;
mod selftest;
mod tally;
mod rows;
mod sheets;
mod account;
mod run;
mod recall;
mod places;
mod judged;
mod generate;
mod examine;

pub use budget::{Budget, BudgetLimits, BudgetReached, Spent};
pub use doors::TrippedBreaker;
pub use ended::{RunOutcome, UntestedJudge};
pub use event::{Event, Listener, SkipReason};
pub use generate::generate;
pub use perform::Performer;
pub use run::{RunError, SchedulerOptions, Stop, run};
pub use shelf::{LoadedContext, OutputCache, OutputUnavailable, ReportedModels};
