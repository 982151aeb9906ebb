//! Finds the main result of a result set, and the questions to look at first: what a comparison or a method lost most.
//!
//! Methods are ordered by their paired differences. A retention is given only where it is defined. The only result of an
//! incomplete set is that it is incomplete.

mod change;

use std::collections::BTreeSet;

use self::change::is_sparse;
use super::aggregates::CellCounts;
use super::comparison::changes::Flip;
use super::comparison::values::{Comparison, MethodComparison};
use super::files::manifest::{Manifest, Outcome};
use super::headline::{MainLevels, MainResult};
use super::result_set::ProbePlace;
use super::summary::{MethodSummary, Summary};
use super::worst::{LossCause, WorstProbe};
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
        value: retention.or(best.overall.median)?,
        is_retention: retention.is_some(),
        ci95: match retention {
            Some(_) => best.retention.ci95,
            None => best.overall.ci95,
        },
        tokens: best.compression_ratio().map(|removed| 1.0 - removed),
        ranking: ranking.clone(),
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

/// A question with its scores before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionChange {
    /// The method.
    pub method: String,
    /// The probe.
    pub at: ProbePlace,
    /// Its score in the baseline; `None` where there is none.
    pub before: Option<f64>,
    /// Its score.
    pub after: f64,
    /// Facts that the context lost, or gained if the score rose; without a baseline, facts that the answer lacks.
    pub facts: Vec<String>,
    /// What lost it, as far as that is known.
    pub cause: Option<LossCause>,
}

/// The questions to look at first, each once: those that the compression lost come first. In a comparison: those that got
/// worse, the largest step first, or, if none did, those that got better. In a single set: the worst ones. Never those of
/// ceiling and floor.
pub fn first_questions(summary: &Summary) -> Vec<QuestionChange> {
    match &summary.comparison {
        Some(comparison) => changed_questions(comparison, summary),
        None => worst_questions(&summary.worst),
    }
}

fn worst_questions(worst: &[WorstProbe]) -> Vec<QuestionChange> {
    let mut seen = BTreeSet::new();
    let first = worst.iter().filter(|worst| seen.insert(&worst.at));
    let questions = first.map(|worst| QuestionChange {
        method: worst.method.clone(),
        at: worst.at.clone(),
        before: None,
        after: worst.score,
        facts: worst.lacking.clone(),
        cause: worst.cause,
    });
    questions.collect()
}

fn changed_questions(comparison: &Comparison, summary: &Summary) -> Vec<QuestionChange> {
    let is_anchor = |name: &String| {
        let method = summary.methods.get(name);
        method.is_some_and(MethodSummary::is_anchor)
    };
    let flips: Vec<(&String, &MethodComparison, &Flip)> = (comparison.methods.iter())
        .filter(|(name, _)| !is_anchor(name))
        .flat_map(|(name, compared)| {
            compared
                .differences
                .flipped
                .iter()
                .map(move |flip| (name, compared, flip))
        })
        .collect();
    let mut worse = flips.clone();
    worse.retain(|(.., flip)| flip.after < flip.before);
    if worse.is_empty() {
        worse = flips;
    }
    // stable: equals stay in the order of methods and of the matrix
    worse.sort_by(|(.., a), (.., b)| {
        let steps = [a, b].map(|flip| (flip.after - flip.before).abs());
        let ranks = [a, b].map(|flip| LossCause::rank(flip.cause));
        ranks[0].cmp(&ranks[1]).then(steps[1].total_cmp(&steps[0]))
    });
    let mut seen = BTreeSet::new();
    worse.retain(|(.., flip)| seen.insert(&flip.at));
    worse
        .into_iter()
        .map(|(name, compared, flip)| question(name, compared, flip))
        .collect()
}

fn question(method: &str, compared: &MethodComparison, flip: &Flip) -> QuestionChange {
    let differences = &compared.differences;
    let facts = if flip.after < flip.before {
        &differences.facts_lost
    } else {
        &differences.facts_gained
    };
    let facts = facts.iter().filter(|fact| fact.at == flip.at);
    QuestionChange {
        method: method.to_owned(),
        at: flip.at.clone(),
        before: Some(flip.before),
        after: flip.after,
        facts: facts.map(|fact| fact.fact.clone()).collect(),
        cause: flip.cause.filter(|_| flip.after < flip.before),
    }
}
