//! Planning: which actions must run, and why. Run, plan, offline run, prune and why share this walk over the matrix.
//!
//! Deliberately absent: executing anything.

mod difference;
mod estimate;
mod forecast;
mod frontier;
mod outputs;
mod prepare;
mod recovery;
mod side_tasks;
mod sources;
mod status;
mod task;
mod texts;

pub use difference::{
    Change, FindText, InputChange, Reason, StaleCause, difference, differing_inputs,
};
pub use difference::{Hunk, changed_places, hunks};
pub use estimate::{CostEstimate, TooLong};
pub use forecast::{Assumptions, Forecast, ReasonGroup, StageForecast, forecast};
pub use frontier::Frontier;
pub use outputs::{LoadedContext, OutputCache, OutputUnavailable, ReportedModels};
pub use outputs::{Output, PARSER_VERSION, Unreadable, read_entry, read_output, read_reply};
pub use prepare::{Action, PrepareError, probe_of};
pub use recovery::{ReachableEntries, cached_outcome, follow, reachable};
pub use side_tasks::{
    AnswerToRegrade, asking_without_context, generation, regrading, selftest_actions,
    selftest_grades,
};
pub use sources::{SourceText, prompt_of, source_texts};
pub use status::{CachedOutput, earlier_output, look_up, reason};
pub use task::{
    AnswerTask, Blame, CompressTask, FailedAction, JudgeTask, Resolved, ResolvedContext,
    SelftestTask, SideTask, Task, TaskOutcome,
};
pub use texts::FixtureTexts;
