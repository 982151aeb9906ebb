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
use crate::action::StageName;
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
        None if summary.scale.is_narrow() => MainResult::Unscaled {
            difference: summary.scale.difference.unwrap_or_default(),
        },
        None if summary.lexical => MainResult::Sample,
        None => main_levels(summary, primary),
    }
}

/// The first declared answerer, whose results are the main ones; `None` where nothing is answered.
fn primary_answerer(manifest: &Manifest) -> Option<&str> {
    manifest
        .design
        .answerers
        .first()
        .map(|asked| asked.name.as_str())
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
    let is_sparse = expected.saturating_sub(judged) as f64 > MAX_MISSING * expected as f64;
    (was_stopped || is_sparse).then_some(MainResult::Incomplete {
        judged,
        failed,
        expected,
    })
}

/// Takes the figure of a method, its interval, and the number of fixtures behind it.
type Figure = fn(&MethodSummary) -> Option<(f64, Option<Interval>, usize)>;

/// The first figure of a set that any method has: retention, score.
fn main_levels(summary: &Summary, answerer: Option<&str>) -> MainResult {
    rank_methods(summary, answerer, retention)
        .map(MainResult::Retention)
        .or_else(|| rank_methods(summary, answerer, score).map(MainResult::Scores))
        .unwrap_or(MainResult::Empty)
}

fn retention(method: &MethodSummary) -> Option<(f64, Option<Interval>, usize)> {
    method
        .retention
        .value
        .map(|value| (value, method.retention.ci95, method.overall.fixtures))
}

fn score(method: &MethodSummary) -> Option<(f64, Option<Interval>, usize)> {
    method
        .overall
        .median
        .map(|value| (value, method.overall.ci95, method.overall.fixtures))
}

fn rank_methods(summary: &Summary, answerer: Option<&str>, figure: Figure) -> Option<MainLevels> {
    let candidates = summary.methods.iter().filter(|(_, method)| {
        !method.is_anchor() && answerer.is_none_or(|answerer| method.answerer == answerer)
    });
    let mut ranked: Vec<RankedMethod> = candidates
        .filter_map(|(name, method)| {
            let (value, ci95, fixtures) = figure(method)?;
            let tokens = method
                .economy
                .compression_ratio
                .map(|removed| 1.0 - removed);
            Some(RankedMethod {
                level: MethodLevel {
                    method: name.clone(),
                    value,
                    ci95,
                    tokens,
                },
                fixtures,
            })
        })
        .collect();
    // stable: equals stay in the order of the pipeline
    ranked.sort_by(|a, b| b.level.value.total_cmp(&a.level.value));
    let mut ranked = ranked.into_iter();
    let best = ranked.next()?;
    let (lower, indistinguishable): (Vec<RankedMethod>, Vec<RankedMethod>) =
        ranked.partition(|other| other.is_below(&best));
    let [lower, indistinguishable]: [Vec<MethodLevel>; 2] = [lower, indistinguishable]
        .map(|methods| methods.into_iter().map(|ranked| ranked.level).collect());
    Some(MainLevels {
        fixtures: best.fixtures,
        best: best.level,
        indistinguishable,
        lower,
    })
}

/// A method with its figure, and the number of fixtures behind it.
struct RankedMethod {
    level: MethodLevel,
    fixtures: usize,
}

impl RankedMethod {
    /// Whether the whole interval is below that of the best method. A figure that is the same on several fixtures has
    /// no interval and is a point: a method that scores 0 everywhere is below one that scores 4 to 5. Two points show no
    /// order, and neither does a single fixture.
    fn is_below(&self, best: &RankedMethod) -> bool {
        let has_interval = self.level.ci95.or(best.level.ci95).is_some();
        let high = self.level.ci95.map(|ci| ci.high()).or(self.point());
        let low = best.level.ci95.map(|ci| ci.low()).or(best.point());
        has_interval && high.zip(low).is_some_and(|(high, low)| high < low)
    }

    /// The figure, if several fixtures have it.
    fn point(&self) -> Option<f64> {
        (self.fixtures > 1).then_some(self.level.value)
    }
}
