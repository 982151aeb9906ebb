//! The questions that a reader looks at first: what a comparison or a method lost most.

use std::collections::BTreeSet;

use crate::results::comparison::changes::Flip;
use crate::results::comparison::values::{Comparison, MethodComparison};
use crate::results::result_set::ProbePlace;
use crate::results::summary::{MethodSummary, Summary};
use crate::results::worst::LossCause;
use crate::results::worst::WorstProbe;

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
