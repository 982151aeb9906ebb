//! The main result of one set: the methods by what they keep.

use serde::{Deserialize, Serialize};

use super::MainResult;
use crate::results::summary::{MethodSummary, Summary};
use stats::Interval;

/// A method's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodLevel {
    /// The method.
    pub method: String,
    /// Its retention, score or recall.
    pub value: f64,
    /// 95% interval; null on one fixture.
    pub ci95: Option<Interval>,
    /// Tokens of a context as a share of those it replaces.
    pub tokens: Option<f64>,
}

/// Methods by their figure, without ceiling and floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainLevels {
    /// The method with the highest figure.
    pub best: MethodLevel,
    /// Methods whose interval overlaps that of the best one: no order is known between them and it. Highest first.
    pub indistinguishable: Vec<MethodLevel>,
    /// Methods below the best one, highest first.
    pub lower: Vec<MethodLevel>,
    /// Fixtures that the figure of the best method rests on.
    pub fixtures: usize,
}

type Figure = fn(&MethodSummary) -> Option<(f64, Option<Interval>, usize)>;

/// The first figure of a set that any method has: retention, score, recall.
pub(super) fn main_levels(summary: &Summary, answerer: Option<&str>) -> MainResult {
    let retention: Figure =
        |method| method.retention.value.map(|value| (value, method.retention.ci95, method.overall.fixtures));
    let score: Figure =
        |method| method.overall.median.map(|value| (value, method.overall.ci95, method.overall.fixtures));
    let recall: Figure = |method| {
        let needed = method.needed.as_ref()?;
        Some((needed.recall?, needed.ci95, needed.fixtures))
    };
    let figures: [(Figure, fn(MainLevels) -> MainResult); 3] =
        [(retention, MainResult::Retention), (score, MainResult::Scores), (recall, MainResult::Recall)];
    let found = figures.into_iter().find_map(|(figure, result)| ranked(summary, answerer, figure).map(result));
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
