//! What contexts keep and cost: survival, attribution, tokens, fabrication.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::scores::Subset;
use super::set::{AnswerAt, Measured, ResultSet};
use crate::action::StageName;
use crate::measure::{DEFAULT_NEEDS, FactClass, break_even, tokens_per_task};
use crate::stats;
use crate::units::add_known;

/// Expected facts of all answers, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactCounts {
    /// In the context and in the answer.
    pub answered: u64,
    /// In the context, missed by the answerer.
    pub missed: u64,
    /// Lost in compression.
    pub lost: u64,
    /// Answered though not literally in the context.
    pub answered_elsewhere: u64,
    /// Of contexts that cannot be read: answered.
    pub unreadable_answered: u64,
    /// Of contexts that cannot be read: not answered.
    pub unreadable_missed: u64,
}

/// What contexts keep, and what they cost. Means are over fixtures of the means within a fixture.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Economy {
    /// 1 − context tokens / replaced tokens.
    pub compression_ratio: Option<f64>,
    /// Tokens of a context.
    pub context_tokens: Option<f64>,
    /// Tokens of the messages it replaces.
    pub replaced_tokens: Option<f64>,
    /// Share of expected facts that stand in the context.
    pub fact_survival: Option<f64>,
    /// The same without the facts that the floor method answers too; null where there is none.
    pub fact_survival_lift: Option<f64>,
    /// Expected facts by what became of them.
    pub facts: FactCounts,
    /// Share of expected facts that stand in the answer.
    pub answered_share: Option<f64>,
    /// Tokens of fetching again what one probe needs and the context lost.
    pub refetch_tokens: Option<f64>,
    /// Context tokens + k × refetch tokens, for k needs of each fact, by k.
    pub tokens_per_task: BTreeMap<u32, f64>,
    /// Needs of each fact from which the whole transcript is as cheap; null if never.
    pub break_even_k: Option<f64>,
    /// Share of answers to unanswerable probes that assert something.
    pub fabrication_rate: Option<f64>,
    /// Names in answers that occur nowhere in the transcript, a hundred answers.
    pub invented_per_100: Option<f64>,
    /// Superseded facts stated as current, in all answers.
    pub stale_facts: u64,
    /// What its distinct actions cost when they were executed, in dollars, by stage; null where a price is unknown.
    pub usd: BTreeMap<StageName, Option<f64>>,
}

/// Needs of each fact that `tokens_per_task` is given for.
pub const NEEDS: [u32; 4] = [1, 3, DEFAULT_NEEDS as u32, 30];

/// A fact of a probe.
type FactAt = (usize, usize);

/// The facts that an arm answers, in any run.
pub(super) fn answered_facts(set: &ResultSet, arm: usize) -> BTreeSet<FactAt> {
    let of = |(at, measured): (&AnswerAt, &Measured)| -> Vec<FactAt> {
        let said = measured.facts.iter().enumerate().filter(|(_, (answered, _))| *answered);
        said.map(|(fact, _)| (at.probe, fact)).collect()
    };
    answers(set, arm, None).flat_map(of).collect()
}

/// What the contexts and answers of an arm on these probes come to. `guessable` are the facts of the floor method.
pub(super) fn economy(set: &ResultSet, arm: usize, kept: &Subset, guessable: Option<&BTreeSet<FactAt>>) -> Economy {
    let mean = |of: &dyn Fn(&AnswerAt, &Measured) -> Option<f64>| mean_by_fixture(set, arm, kept, of);
    let context_tokens = mean(&|_, m| m.context_tokens.map(|tokens| tokens as f64));
    let refetch_tokens = mean(&|_, m| m.refetch.map(|tokens| tokens as f64));
    let per_task = |k: u32| Some((k, tokens_per_task(context_tokens?, refetch_tokens?, f64::from(k))));
    Economy {
        compression_ratio: mean(&|_, m| m.ratio),
        context_tokens,
        replaced_tokens: mean(&|_, m| m.replaced_tokens.map(|tokens| tokens as f64)),
        fact_survival: mean(&|_, m| m.survival),
        fact_survival_lift: guessable.and_then(|guessable| mean(&|at, m| lift(at, m, guessable))),
        facts: fact_counts(set, arm, kept),
        answered_share: mean(&|_, m| share(m.facts.iter().map(|(answered, _)| *answered))),
        refetch_tokens,
        tokens_per_task: NEEDS.into_iter().filter_map(per_task).collect(),
        break_even_k: None,
        fabrication_rate: mean(&|_, m| m.fabricated.map(|fabricated| f64::from(u8::from(fabricated)))),
        invented_per_100: mean(&|_, m| Some(100.0 * m.invented as f64)),
        stale_facts: answers(set, arm, Some(kept)).map(|(_, m)| m.stale).sum(),
        usd: costs(set, arm),
    }
}

/// With the number of needs from which `full`, the whole transcript, is as cheap.
pub(super) fn with_break_even(economy: Economy, full: &Economy) -> Economy {
    let costs = |economy: &Economy| economy.context_tokens.zip(economy.refetch_tokens);
    let break_even_k = costs(&economy).zip(costs(full)).and_then(|(own, full)| break_even(own, full));
    Economy { break_even_k, ..economy }
}

fn answers<'s>(
    set: &'s ResultSet,
    arm: usize,
    kept: Option<&'s Subset>,
) -> impl Iterator<Item = (&'s AnswerAt, &'s Measured)> {
    let at = |probe, n| AnswerAt { arm, probe, run: n, answer_n: n };
    let own = set.answers.range(at(0, 0)..=at(usize::MAX, u32::MAX));
    own.filter(move |(at, _)| kept.is_none_or(|kept| kept.contains(&at.probe)))
}

/// The mean over fixtures of the means over probes of the means over answers, of what is known; a fixture counts the
/// same however many probes it has.
fn mean_by_fixture(
    set: &ResultSet,
    arm: usize,
    kept: &Subset,
    of: &dyn Fn(&AnswerAt, &Measured) -> Option<f64>,
) -> Option<f64> {
    let mut by_probe: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for (at, measured) in answers(set, arm, Some(kept)) {
        let fixture = set.probes.get(at.probe).map(|probe| probe.fixture);
        if let Some((fixture, value)) = fixture.zip(of(at, measured)) {
            by_probe.entry((fixture, at.probe)).or_default().push(value);
        }
    }
    let mut by_fixture: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for ((fixture, _), values) in &by_probe {
        by_fixture.entry(*fixture).or_default().extend(stats::mean(values));
    }
    let means: Vec<f64> = by_fixture.values().filter_map(|values| stats::mean(values)).collect();
    stats::mean(&means)
}

fn lift(at: &AnswerAt, measured: &Measured, guessable: &BTreeSet<FactAt>) -> Option<f64> {
    let own = measured.facts.iter().enumerate().filter(|(fact, _)| !guessable.contains(&(at.probe, *fact)));
    let stood: Option<Vec<bool>> =
        own.map(|(_, (_, class))| class.map(|c| matches!(c, FactClass::Answered | FactClass::Missed))).collect();
    share(stood?)
}

fn share(held: impl IntoIterator<Item = bool>) -> Option<f64> {
    crate::measure::share(held)
}

/// The sums over distinct actions; one unknown price makes a sum unknown.
fn costs(set: &ResultSet, arm: usize) -> BTreeMap<StageName, Option<f64>> {
    let mut sums = BTreeMap::new();
    for ((_, stage, _), usd) in set.costs.iter().filter(|((own, _, _), _)| *own == arm) {
        let sum = sums.entry(*stage).or_insert(Some(0.0));
        *sum = add_known(*sum, *usd);
    }
    sums
}

fn fact_counts(set: &ResultSet, arm: usize, kept: &Subset) -> FactCounts {
    let mut counts = FactCounts::default();
    for (answered, class) in answers(set, arm, Some(kept)).flat_map(|(_, measured)| &measured.facts) {
        let count = match (class, answered) {
            (Some(FactClass::Answered), _) => &mut counts.answered,
            (Some(FactClass::Missed), _) => &mut counts.missed,
            (Some(FactClass::Lost), _) => &mut counts.lost,
            (Some(FactClass::AnsweredElsewhere), _) => &mut counts.answered_elsewhere,
            (None, true) => &mut counts.unreadable_answered,
            (None, false) => &mut counts.unreadable_missed,
        };
        *count += 1;
    }
    counts
}
