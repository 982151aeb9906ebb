//! Finds the main result of a result set.
//!
//! Methods are ordered by their paired differences. A retention is given only where it is defined. The only result of an
//! incomplete set is that it is incomplete.

mod change;

use change::is_sparse;

use super::aggregates::cells::CellCounts;
use super::files::manifest::{Manifest, Outcome};
use super::headline::{MainLevels, MainResult};
use super::summary::Summary;
use crate::action::StageName;

/// The main result of a set, or of its comparison if there is one.
pub fn main_result(summary: &Summary, manifest: &Manifest) -> MainResult {
    if let Some(incomplete) = too_many_missing(summary, manifest) {
        return incomplete;
    }
    match &summary.comparison {
        Some(comparison) => {
            MainResult::Change(Box::new(change::main_change(comparison, summary, manifest)))
        }
        None if summary.scale.is_narrow() => MainResult::Unscaled {
            difference: summary.scale.difference.unwrap_or_default(),
        },
        None if summary.lexical => MainResult::DryRun,
        None => main_levels(summary, manifest).map_or(MainResult::Unscored, MainResult::Levels),
    }
}

/// The methods by their score, with what the best one keeps of the score of the whole transcript, or its score; `None`
/// where no method has a score.
fn main_levels(summary: &Summary, manifest: &Manifest) -> Option<MainLevels> {
    let ranking = summary.ranking.as_ref()?;
    let best = summary.methods.get(&ranking.best)?;
    let retention = best.retention.value;
    Some(MainLevels {
        best: ranking.best.clone(),
        value: retention.or(best.overall.median)?,
        is_retention: retention.is_some(),
        ci95: match retention {
            Some(_) => best.retention.ci95,
            None => best.overall.ci95,
        },
        tokens: best.compression_ratio().map(|removed| 1.0 - removed),
        others: ranking.others.clone(),
        above_full: ranking.above_full.clone(),
        fixtures: ranking.fixtures,
        one_run: manifest.design.has_one_sample(),
    })
}

/// The result of a set in which too many cells are missing; where nothing is answered, contexts.
fn too_many_missing(summary: &Summary, manifest: &Manifest) -> Option<MainResult> {
    let methods = summary.methods.values();
    let (judged, failed, expected) = match manifest.design.answerers.is_empty() {
        false => {
            let judged: u64 = methods.clone().map(|method| method.cells.judged).sum();
            let failed: u64 = methods.clone().map(|method| method.cells.failed).sum();
            let missing: u64 = methods.map(|method| method.cells.missing).sum();
            (judged, failed, judged + failed + missing)
        }
        true => {
            let made: u64 = methods
                .clone()
                .map(|method| method.compression.contexts)
                .sum();
            let expected: u64 = methods.map(|method| method.compression.expected).sum();
            let failures = manifest
                .failures
                .iter()
                .filter(|failure| failure.stage == StageName::Compress);
            (made, failures.count() as u64, expected)
        }
    };
    let was_stopped = matches!(
        manifest.outcome,
        Outcome::Budget | Outcome::Pending | Outcome::Interrupted
    );
    // In a comparison, methods with gaps are named, as long as others have none.
    let mut methods = summary
        .methods
        .values()
        .filter(|method| !method.is_anchor());
    let has_whole = summary.comparison.is_some()
        && methods.any(|method| {
            let CellCounts {
                judged,
                failed,
                missing,
                ..
            } = method.cells;
            !is_sparse(failed + missing, judged + failed + missing)
        });
    let is_incomplete = is_sparse(expected.saturating_sub(judged), expected) && !has_whole;
    (was_stopped || is_incomplete).then_some(MainResult::Incomplete {
        judged,
        failed,
        expected,
    })
}
