//! Shards: parts of a matrix that run as processes of their own, on any engine that starts numbered tasks, and are
//! merged into one result set.
//!
//! Every shard computes the same assignment from the design alone: shards do not communicate, and none looks at a
//! cache, which differs from machine to machine. Everything here is pure; `cli` reads the environment and the folders.
//!
//! Deliberately absent: starting machines, sending work, and waiting. Job arrays do that.

mod assignment;
mod collect;
mod cost;
mod engine;
mod number;

pub use assignment::{Assignment, Part};
pub use collect::{CollectError, ShardCoverage, ShardRecord, ShardResult, collect};
pub use engine::{Engine, EngineError};
pub use number::{Shard, ShardArgument, ShardFault};
