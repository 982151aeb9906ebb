//! A result set in memory: its scores by coordinate, and estimates made of them.

pub(super) mod grade;
pub(super) mod scores;
pub(super) mod set;
pub(super) mod selection;
pub(super) mod level;
