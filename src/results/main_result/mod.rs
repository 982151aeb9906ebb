//! Finds the main result of a result set, and the questions to look at first.
//!
//! No order is claimed between methods whose intervals overlap, a retention is given only where it is defined, and of an
//! incomplete set only that it is incomplete.

mod change;
mod levels;
mod lost;

pub use lost::{QuestionChange, first_questions};

use super::files::manifest::{Manifest, Outcome};
use super::headline::{MainResult, MissingCells, NarrowScale};
use super::summary::Summary;

/// The share of missing cells above which nothing else is said.
const MAX_MISSING: f64 = 0.1;

/// The main result of a set, or of its comparison if there is one.
pub fn main_result(summary: &Summary, manifest: &Manifest) -> MainResult {
    if let Some(missing) = too_many_missing(summary, manifest) {
        return MainResult::Incomplete(missing);
    }
    let primary = primary_answerer(manifest);
    match &summary.comparison {
        Some(comparison) => change::main_change(comparison, manifest),
        None if summary.scale.cause.is_some() => {
            MainResult::Unscaled(NarrowScale { difference: summary.scale.difference.unwrap_or_default() })
        }
        None if summary.lexical => MainResult::Sample,
        None => levels::main_levels(summary, primary),
    }
}

/// The first declared answerer, whose results are the main ones; `None` where nothing is answered.
fn primary_answerer(manifest: &Manifest) -> Option<&str> {
    manifest.design.answerers.first().map(|asked| asked.name.as_str())
}

fn too_many_missing(summary: &Summary, manifest: &Manifest) -> Option<MissingCells> {
    let counts = || summary.methods.values().map(|method| method.cells);
    let judged = counts().map(|cells| cells.judged).sum();
    let failed = counts().map(|cells| cells.failed).sum();
    let missing: u64 = counts().map(|cells| cells.missing).sum();
    let expected = judged + failed + missing;
    let was_stopped = matches!(manifest.outcome, Outcome::Budget | Outcome::Pending | Outcome::Interrupted);
    let is_sparse = (failed + missing) as f64 > MAX_MISSING * expected as f64;
    (was_stopped || is_sparse).then_some(MissingCells { judged, failed, expected })
}
