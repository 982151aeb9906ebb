//! Parts of a matrix that run as processes of their own, on any engine that starts numbered tasks, and share results
//! through a remote.
//!
//! Every part computes the same assignment from the design only: parts do not communicate, and none looks at a cache,
//! which differs from machine to machine. Everything here is pure; `evaluation` reads the environment and the remote.
//!
//! Deliberately absent: starting machines, sending work, and waiting. Job arrays do that.

mod assignment;
mod cost;
mod engine;
mod number;

pub use assignment::{Assignment, PartChains, PartRecord};
pub use engine::{Engine, EngineError};
pub use number::{PartArgument, PartFault, PartNumber};
