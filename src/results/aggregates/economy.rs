//! What contexts keep and cost: survival, attribution, tokens, fabrication.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Answers;
use super::shares::{self, Overclaim, Share};
use crate::action::StageName;
use crate::measure::{ContextShares, share};
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use crate::results::result_set::grade::MeasuredAnswer;
use stats::Interval;

/// What contexts keep, and what they cost. Means are taken within each fixture, then over fixtures; for context tokens
/// the mean over fixtures is the geometric one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Economy {
    /// 1 − context tokens / replaced tokens.
    pub compression_ratio: Option<f64>,
    /// Tokens of a context, the geometric mean over fixtures.
    pub context_tokens: Option<f64>,
    /// The interval of these tokens for other sessions like these.
    pub context_tokens_ci95: Option<Interval>,
    /// The share of expected facts that occur in the context.
    pub fact_survival: Option<f64>,
    /// The share of expected facts that occur in the summary; null where contexts are nothing but a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_survival: Option<f64>,
    /// How contexts state the expected facts; null where no context can be read.
    pub in_context: ContextShares,
    /// The share of the facts of probes with the tag `constraint` that occur in the context; null without such probes.
    pub constraints_kept: Option<f64>,
    /// `fact_survival` without the facts that the floor method answers, too; null without a floor method.
    pub fact_survival_lift: Option<f64>,
    /// Tokens of a question, failures asked again with the whole transcript; null where sizes are unknown.
    pub tokens_per_question: Option<f64>,
    /// Survival by the heading of the compression prompt that facts belong under by their words; empty without
    /// headings.
    pub survival_by_heading: Ordered<Share>,
    /// What answers do if their context lost every expected fact; null where no context can be read.
    pub overclaim: Option<Overclaim>,
    /// The share of answers to unanswerable probes that assert something.
    pub fabrication: Share,
    /// Superseded facts stated as current, in all answers.
    pub stale_facts: u64,
    /// What the method's distinct actions cost when they were executed, in dollars, by stage; null where a price is
    /// unknown.
    pub usd: BTreeMap<StageName, Option<f64>>,
}

/// A fact by its probe and its place there.
type FactAt = (usize, usize);

/// The facts that a variant answers, in any run.
pub(crate) fn answered_facts(set: &ResultSet, variant: usize) -> BTreeSet<FactAt> {
    let mut facts = BTreeSet::new();
    for measured in set.answers(variant) {
        let answered = measured
            .facts
            .iter()
            .enumerate()
            .filter(|(_, fact)| fact.answered);
        facts.extend(answered.map(|(fact, _)| (measured.at.probe, fact)));
    }
    facts
}

impl Economy {
    /// Measures contexts and answers. `guessable` are the facts that the floor method answers.
    pub(crate) fn new(answers: &Answers<'_>, guessable: Option<&BTreeSet<FactAt>>) -> Economy {
        let tokens = answers.context_tokens();
        Economy {
            compression_ratio: answers.compression_ratio(),
            context_tokens: tokens.map(|tokens| tokens.center),
            context_tokens_ci95: tokens.and_then(|tokens| tokens.ci95),
            fact_survival: answers.fact_survival(),
            summary_survival: answers.mean(|m| m.summary_survival),
            in_context: in_context(answers),
            constraints_kept: answers.mean(|m| m.survival.filter(|_| m.is_constraint)),
            fact_survival_lift: guessable
                .and_then(|guessable| answers.mean(|m| lift(m, guessable))),
            tokens_per_question: answers.mean(|m| tokens_of_question(m, guessable)),
            survival_by_heading: shares::survival_by_heading(answers),
            overclaim: Overclaim::from_answers(answers),
            fabrication: shares::fabrication(answers),
            stale_facts: answers.measured.iter().map(|m| m.stale).sum(),
            usd: costs(answers.set, answers.variant),
        }
    }
}

fn in_context(answers: &Answers<'_>) -> ContextShares {
    ContextShares {
        placed: mean_in_context(answers, |shares| shares.placed),
        denied: mean_in_context(answers, |shares| shares.denied),
        contradicted: mean_in_context(answers, |shares| shares.contradicted),
        stale: mean_in_context(answers, |shares| shares.stale),
        sound: mean_in_context(answers, |shares| shares.sound),
    }
}

fn mean_in_context(answers: &Answers<'_>, share: fn(ContextShares) -> Option<f64>) -> Option<f64> {
    answers.mean(|m| m.in_context.and_then(share))
}

/// The tokens of a question: of its context and of what its searches returned, and, where the answer lacks an expected
/// fact, of the whole transcript, with which it is asked again. This takes it that the reader notices a failure. Facts
/// that the floor answers too do not count; `None` where no other is expected.
fn tokens_of_question(
    measured: &MeasuredAnswer,
    guessable: Option<&BTreeSet<FactAt>>,
) -> Option<f64> {
    let is_guessable =
        |fact| guessable.is_some_and(|known| known.contains(&(measured.at.probe, fact)));
    let facts = measured.facts.iter().enumerate();
    let mut facts = facts.filter(|(fact, _)| !is_guessable(*fact)).peekable();
    facts.peek()?;
    let again = match facts.all(|(_, fact)| fact.answered) {
        true => 0,
        false => measured.replaced_tokens?,
    };
    let searched = measured.reach.as_ref().map_or(0, |reach| reach.tokens);
    Some((measured.context_tokens? + searched + again) as f64)
}

fn lift(measured: &MeasuredAnswer, guessable: &BTreeSet<FactAt>) -> Option<f64> {
    let own = measured
        .facts
        .iter()
        .enumerate()
        .filter(|(fact, _)| !guessable.contains(&(measured.at.probe, *fact)));
    let present: Option<Vec<bool>> = own.map(|(_, fact)| fact.is_present()).collect();
    share(present?)
}

/// What distinct actions cost, by stage; one unknown price makes a sum unknown.
fn costs(set: &ResultSet, variant: usize) -> BTreeMap<StageName, Option<f64>> {
    let of_variant = set.costs.get(variant).into_iter().flatten();
    of_variant
        .map(|(stage, actions)| (*stage, actions.iter().map(|(_, usd)| *usd).sum()))
        .collect()
}
