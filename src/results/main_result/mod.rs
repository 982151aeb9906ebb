//! Finds the main result of a result set, and the questions to look at first.
//!
//! No order is claimed between methods whose intervals overlap. A retention is given only where it is defined. The only
//! result of an incomplete set is that it is incomplete.

mod change;
mod lost;

pub use lost::{QuestionChange, first_questions};

use super::files::manifest::{Manifest, Outcome};
use super::headline::{MainLevels, MainResult, MethodLevel};
use super::summary::{MethodSummary, Summary};
use stats::Interval;

/// The share of missing cells above which nothing else is reported.
const MAX_MISSING: f64 = 0.1;

/// The main result of a set, or of its comparison if there is one.
pub fn main_result(summary: &Summary, manifest: &Manifest) -> MainResult {
    if let Some(incomplete) = too_many_missing(summary, manifest) {
        return incomplete;
    }
    let primary = primary_answerer(manifest);
    match &summary.comparison {
        Some(comparison) => change::main_change(comparison, manifest),
        None if summary.scale.cause.is_some() => {
            MainResult::Unscaled { difference: summary.scale.difference.unwrap_or_default() }
        }
        None if summary.lexical => MainResult::Sample,
        None => main_levels(summary, primary),
    }
}

/// The first declared answerer, whose results are the main ones; `None` where nothing is answered.
fn primary_answerer(manifest: &Manifest) -> Option<&str> {
    manifest.design.answerers.first().map(|asked| asked.name.as_str())
}

/// The result of a set in which too many cells are missing.
fn too_many_missing(summary: &Summary, manifest: &Manifest) -> Option<MainResult> {
    let methods = &summary.methods;
    let judged: u64 = methods.values().map(|method| method.cells.judged).sum();
    let failed: u64 = methods.values().map(|method| method.cells.failed).sum();
    let missing: u64 = methods.values().map(|method| method.cells.missing).sum();
    let expected = judged + failed + missing;
    let was_stopped = matches!(manifest.outcome, Outcome::Budget | Outcome::Pending | Outcome::Interrupted);
    let is_sparse = (failed + missing) as f64 > MAX_MISSING * expected as f64;
    (was_stopped || is_sparse).then_some(MainResult::Incomplete { judged, failed, expected })
}

/// Takes the figure of a method, its interval, and the number of fixtures behind it.
type Figure = fn(&MethodSummary) -> Option<(f64, Option<Interval>, usize)>;

/// The first figure of a set that any method has: retention, score, lift.
fn main_levels(summary: &Summary, answerer: Option<&str>) -> MainResult {
    let qualifies = summary.needed_points.as_ref().is_some_and(|points| !points.without_verdict);
    rank_methods(summary, answerer, retention)
        .map(MainResult::Retention)
        .or_else(|| rank_methods(summary, answerer, score).map(MainResult::Scores))
        .or_else(|| rank_methods(summary, answerer, lift).filter(|_| qualifies).map(MainResult::Lift))
        .unwrap_or(MainResult::Empty)
}

fn retention(method: &MethodSummary) -> Option<(f64, Option<Interval>, usize)> {
    method.retention.value.map(|value| (value, method.retention.ci95, method.overall.fixtures))
}

fn score(method: &MethodSummary) -> Option<(f64, Option<Interval>, usize)> {
    method.overall.median.map(|value| (value, method.overall.ci95, method.overall.fixtures))
}

fn lift(method: &MethodSummary) -> Option<(f64, Option<Interval>, usize)> {
    let needed = method.needed.as_ref()?;
    Some((needed.lift?, needed.ci95, needed.fixtures))
}

fn rank_methods(summary: &Summary, answerer: Option<&str>, figure: Figure) -> Option<MainLevels> {
    let candidates = summary
        .methods
        .iter()
        .filter(|(_, method)| !method.is_anchor() && answerer.is_none_or(|answerer| method.answerer == answerer));
    let mut levels: Vec<(MethodLevel, usize)> = candidates
        .filter_map(|(name, method)| {
            let (value, ci95, fixtures) = figure(method)?;
            let tokens = method.economy.compression_ratio.map(|removed| 1.0 - removed);
            Some((MethodLevel { method: name.clone(), value, ci95, tokens }, fixtures))
        })
        .collect();
    // stable: equals stay in the order of the pipeline
    levels.sort_by(|(a, _), (b, _)| b.value.total_cmp(&a.value));
    let mut levels = levels.into_iter();
    let (best, fixtures) = levels.next()?;
    let (indistinguishable, lower) = levels.map(|(level, _)| level).partition(|level| match (best.ci95, level.ci95) {
        (Some(best), Some(interval)) => interval.high() >= best.low(),
        _ => true,
    });
    Some(MainLevels { best, indistinguishable, lower, fixtures })
}
