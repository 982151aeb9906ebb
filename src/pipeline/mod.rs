//! The pipeline: what was declared. TOML → checked model → matrix of cells.
//!
//! Invariants: a [`Pipeline`] exists only if nothing is wrong with it; all problems of a project come at once, each
//! with the place where the user can mend it; nothing here reads an environment variable by itself.
//! Deliberately absent: network, cache, and what a strategy does.

mod excerpt;
mod problem;
mod model;
mod matrix;
mod coordinate;

mod sources;
mod file;
mod secrets;
mod url;
mod providers;

mod desk;
mod settings;
mod methods;
mod stages;
mod select;
mod fixtures;
mod places;
mod check;
mod starter;

pub use check::{OpenError, Opened, Request, open};
pub use coordinate::Coordinate;
pub use matrix::{AnswerCell, Chain, CompressCell, Counts, JudgeCell, Matrix};
pub use model::{
    AnswererIx, FixtureDigests, FixtureIx, Generator, JudgeIx, LoadedFixture, MethodIx, Pipeline, PipelineSettings,
    PointIx, ProbeIx, Runs, SourceFile, Tail,
};
pub use places::{Places, places};
pub use problem::{Drawn, Problem, Problems, Severity, list, suggest};
pub use providers::Environment;
pub use select::{EmptySelection, Overrides, Selection};
pub use sources::{PIPELINE_FILE, find_pipeline};
pub use starter::{StarterFile, starter_files};

#[cfg(test)]
mod tests;
