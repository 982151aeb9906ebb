//! Reads `pipeline.toml` into a validated pipeline, and lays out its matrix of cells.
//!
//! Invariants: a [`Pipeline`] exists only if nothing is wrong with it; all problems of a project come at once, each
//! with its position in the file; nothing here reads an environment variable by itself.
//! Deliberately absent: network, cache, and what a strategy does.

mod matrix;
mod model;
mod problem;

mod file;
mod providers;
mod secrets;
mod sources;

mod access;
mod fixtures;
mod methods;
mod open;
mod paths;
mod programs;
mod schema;
mod select;
mod settings;
mod stages;
mod starter;
mod validation;

pub use access::{ExternalAccess, HostAccess, ProgramAccess};
pub use file::declares_method;
pub use file::rubric::read_rubric;
pub use fixtures::Banks;
pub use matrix::{
    AnswerCell, Chain, CompressCell, JudgeCell, Matrix, MatrixCounts, PLANTED_NEXT, PLANTED_STATE,
};
pub use model::{
    AnswererIx, FixtureDigests, FixtureIx, Generator, JudgeIx, LoadedFixture, MethodIx, Pipeline,
    PipelineSettings, PlantedDesign, PointIx, ProbeIx, Runs, SourceFile, TailMode, VariantIx,
};
pub use open::{OpenError, OpenRequest, Opened, open};
pub use paths::{ProjectPaths, declared_locale, project_paths};
pub use problem::{Problem, Problems, Severity, first_few, list, suggest};
pub use providers::Environment;
pub use schema::SCHEMAS;
pub use select::{MatrixSelection, Overrides};
pub use sources::{PIPELINE_FILE, data_files, find_pipeline};
pub use starter::{Adapter, in_language, starter_files, starter_pipeline};
pub use validation::missing_key;

#[cfg(test)]
mod tests;
