//! The evaluation of a project: opens it, plans, runs what is stale and publishes the results.
//!
//! [`evaluate`] is the only way to run a matrix. It takes a [`Request`], reports each step as an [`Event`] to a
//! listener, and returns an [`EvaluationOutcome`]. The caller decides what is printed and which exit code follows.
//! `compeval run` is a short caller, and another program can be one, too.
//!
//! Deliberately absent: terminals, arguments, wording of results, exit codes.

mod comparison;
mod engine;
mod evaluate;
mod event;
mod project;
mod publish;
mod regrade;
mod request;
mod rows;

pub use comparison::{
    Compared, baseline_actions, check_baseline, compare_sides, compared_to_baseline,
    comparison_page, text_edits_in,
};
pub(crate) use engine::run_matrix;
pub use engine::{EngineOptions, with_engine};
pub use evaluate::{evaluate, forecast_run, require_prices};
pub use event::{
    EvaluationError, EvaluationOutcome, Event, Listening, ProgressSnapshot, RunTotals,
};
pub use project::{
    connect_remote, connect_shared, open_project, open_snapshot, open_store, paths_of_project,
    require_keys, runtime, variable,
};
pub use publish::{compress_cell, publish, recorded_context};
pub use request::{Baseline, Request};

#[cfg(test)]
mod tests;
