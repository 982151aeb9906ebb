//! The pipeline: what was declared. TOML → checked model → matrix of cells.
//!
//! Invariants: a [`Pipeline`] exists only if nothing is wrong with it; all problems of a project come at once, each
//! with the place where the user can mend it; nothing here reads an environment variable by itself.
//! Deliberately absent: network, cache, and what a strategy does.

mod builtin;
mod matrix;
mod model;

pub use matrix::{AnswerCell, Chain, CompressCell, Coordinate, Counts, JudgeCell, Matrix};
pub use model::{
    AnswererIx, FixtureDigests, FixtureIx, Generator, JudgeIx, LoadedFixture, MethodIx, Pipeline, PipelineSettings,
    PointIx, Price, ProbeIx, RubricScope, Runs, SourceFile, Tail,
};
