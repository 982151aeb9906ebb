//! Plan: what is due, and why. The walk that run, plan, offline run, prune and why share.
//!
//! Deliberately absent: doing anything.

mod prepare;
mod frontier;
mod below;
mod reading;
mod standing;
mod selftest;
mod generate;
mod today;
mod lines;
mod explain;
mod estimate;
mod forecast;

pub use estimate::{Estimate, Worst};
pub use explain::{Explained, Explainer};
pub use forecast::{Assumptions, Forecast, ReasonGroup, StageForecast, TooLong, forecast};
pub use frontier::{AnswerTask, CompressTask, Frontier, JudgeTask, Kept, Settled, SettledAnswer, SettledContext, Task};
pub use generate::GenerationTask;
pub use lines::{Hunk, Side, changed_lines, changed_places, hunks};
pub use prepare::{Action, FixtureTexts, PrepareError, Preparer, judge_request, probe_of};
pub use reading::{Body, Output, READER, Unreadable, completion};
pub use selftest::{SelftestCell, SelftestTask};
pub use standing::{Finding, Reason, cache_coordinate, earlier_output, find, reason};
pub use today::{Origin, Today, origins, shown};
