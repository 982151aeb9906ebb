//! The main result of one set: the methods by what they keep.

use crate::results::headline::{MainLevels, MainResult, MethodLevel};
use crate::results::summary::{MethodSummary, Summary};
use stats::Interval;

type Figure = fn(&MethodSummary) -> Option<(f64, Option<Interval>, usize)>;

/// The first figure of a set that any method has: retention, score, lift.
pub(super) fn main_levels(summary: &Summary, answerer: Option<&str>) -> MainResult {
    let retention: Figure =
        |method| method.retention.value.map(|value| (value, method.retention.ci95, method.overall.fixtures));
    let score: Figure =
        |method| method.overall.median.map(|value| (value, method.overall.ci95, method.overall.fixtures));
    let lift: Figure = |method| {
        let needed = method.needed.as_ref()?;
        Some((needed.lift?, needed.ci95, needed.fixtures))
    };
    let qualifies = summary.needed_points.as_ref().is_some_and(|points| !points.without_verdict);
    let levels = |figure: Figure| ranked(summary, answerer, figure);
    let found = levels(retention)
        .map(MainResult::Retention)
        .or_else(|| levels(score).map(MainResult::Scores))
        .or_else(|| levels(lift).filter(|_| qualifies).map(MainResult::Lift));
    found.unwrap_or(MainResult::Empty)
}

fn ranked(summary: &Summary, answerer: Option<&str>, figure: Figure) -> Option<MainLevels> {
    let of_primary = |method: &MethodSummary| answerer.is_none_or(|answerer| method.answerer == answerer);
    let candidates = summary.methods.iter().filter(|(_, method)| !method.is_anchor() && of_primary(method));
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
    let overlaps = |level: &MethodLevel| match (best.ci95, level.ci95) {
        (Some(best), Some(own)) => own.high() >= best.low(),
        _ => true,
    };
    let (indistinguishable, lower) = levels.map(|(level, _)| level).partition(overlaps);
    Some(MainLevels { best, indistinguishable, lower, fixtures })
}
