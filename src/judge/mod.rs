//! Judging: the rubric, the blinded request, the contract of a reply, dimension scores.
//!
//! Deliberately absent: names of methods, fixtures, models and labels. This room is not given them.

mod spec;

pub use spec::{JudgeName, JudgeSpec};
