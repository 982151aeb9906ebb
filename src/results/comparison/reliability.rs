//! Whether a method fails more often by its own fault than its baseline, on these fixtures.
//!
//! The unit is the *chain*, a fixture in a run: it has failed if the method failed anywhere in it. Cells are no unit, for
//! a failed compression takes all cells below it along. One compression of a deterministic method serves all runs, so
//! that its runs are one chain: three copies of one failure are no more evidence than one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::changes::ComparedVariants;
use crate::results::files::failure::{Blame, FailedAction};
use crate::results::result_set::set::{ResultSet, VariantRef};
use base::say;
use stats::{FailureCounts, FailureTest};

/// How often a method failed by itself, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reliability {
    /// Chains that the method failed.
    pub failed: usize,
    /// Of so many that were run.
    pub chains: usize,
    /// Chains that the baseline failed.
    pub baseline_failed: usize,
    /// Of so many chains that were run.
    pub baseline_chains: usize,
    /// One-sided p of the exact test within fixtures, by itself.
    pub p: f64,
    /// The same adjusted for all methods, by Holm.
    pub p_adjusted: f64,
    /// Worse on these fixtures: an adjusted p of at most .025, and 2 percentage points more.
    pub regressed: bool,
    /// Every chain that fails now and did not in the baseline.
    pub newly_failing: Vec<FailedChain>,
}

/// A chain that its method failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedChain {
    /// The fixture.
    pub fixture: String,
    /// The run; null where one compression serves all runs.
    pub run: Option<u32>,
    /// The first line of the first failure in it.
    pub message: String,
}

impl std::fmt::Display for FailedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.run {
            Some(run) => {
                write!(f, "{}", say!("{} · run {run}: {}", "{} · 第 {run} 次：{}", self.fixture, self.message))
            }
            None => write!(f, "{}", say!("{} · all runs: {}", "{} · 各次：{}", self.fixture, self.message)),
        }
    }
}

/// The chains of a method on one fixture: those that were run, and what failed.
#[derive(Default)]
struct Chains<'s> {
    observed: BTreeSet<Option<u32>>,
    failed: BTreeMap<Option<u32>, &'s FailedAction>,
}

/// The chains of both sides, by fixture.
pub(in crate::results) struct ChainPairs<'s> {
    fixtures: BTreeMap<&'s str, (Chains<'s>, Chains<'s>)>,
}

impl<'s> ChainPairs<'s> {
    pub(in crate::results) fn from_matched(matched: &ComparedVariants<'s>) -> ChainPairs<'s> {
        let name = |probe: &usize| matched.judged.fixture_name(matched.judged.scores.fixture_of(*probe)?);
        let mut fixtures: BTreeMap<&str, (Chains<'_>, Chains<'_>)> =
            matched.probes.keys().filter_map(name).map(|name| (name, Default::default())).collect();
        let (mut own, mut other) = (chains(matched.judged, &matched.pair.a), chains(matched.baseline, &matched.pair.b));
        for (name, sides) in &mut fixtures {
            *sides = (own.remove(name).unwrap_or_default(), other.remove(name).unwrap_or_default());
        }
        ChainPairs { fixtures }
    }

    /// What the test of the method rests on.
    pub(in crate::results) fn counts(&self) -> Vec<FailureCounts> {
        let of = |(own, base): &(Chains<'_>, Chains<'_>)| FailureCounts {
            failed: own.failed.len(),
            chains: own.observed.len(),
            baseline_failed: base.failed.len(),
            baseline_chains: base.observed.len(),
        };
        self.fixtures.values().map(of).collect()
    }

    /// The counts with the result of the test.
    pub(in crate::results) fn judged(&self, test: &FailureTest) -> Reliability {
        let counts = self.counts();
        let sum = |of: fn(&FailureCounts) -> usize| counts.iter().map(of).sum();
        Reliability {
            failed: sum(|counts| counts.failed),
            chains: sum(|counts| counts.chains),
            baseline_failed: sum(|counts| counts.baseline_failed),
            baseline_chains: sum(|counts| counts.baseline_chains),
            p: test.p,
            p_adjusted: test.p_adjusted,
            regressed: test.regressed,
            newly_failing: self.newly_failing(),
        }
    }

    fn newly_failing(&self) -> Vec<FailedChain> {
        let of = |(fixture, (own, base)): (&&str, &(Chains<'_>, Chains<'_>))| -> Vec<FailedChain> {
            let is_new = |run: &Option<u32>| !base.failed.contains_key(run) && !base.failed.contains_key(&None);
            let new = own.failed.iter().filter(|(run, _)| is_new(run));
            let chain = |(run, failure): (&Option<u32>, &&FailedAction)| FailedChain {
                fixture: (*fixture).to_owned(),
                run: *run,
                message: failure.message.lines().next().unwrap_or_default().to_owned(),
            };
            new.map(chain).collect()
        };
        self.fixtures.iter().flat_map(of).collect()
    }
}

/// The chains of a method with its answerer, by fixture: a chain was run if it failed, or if a cell of it was judged.
fn chains<'s>(set: &'s ResultSet, of: &VariantRef<'_>) -> BTreeMap<&'s str, Chains<'s>> {
    let mut found: BTreeMap<&str, Chains<'_>> = BTreeMap::new();
    let unit = |run: u32| (!of.method.deterministic).then_some(run);
    for grade in set.grades(of.place) {
        if let Some(fixture) = set.scores.fixture_of(grade.at.probe).and_then(|place| set.fixture_name(place)) {
            found.entry(fixture).or_default().observed.insert(unit(grade.at.run));
        }
    }
    for failure in set.manifest.failures.iter().filter(|failure| failure.blame == Blame::Method) {
        let Some(at) = failure.place.recorded_cell() else { continue };
        let is_read = at.answerer.as_deref().is_none_or(|name| name == of.variant.answerer);
        let is_own = *at.method == *of.method.name && is_read;
        if is_own {
            let chains = found.entry(&at.fixture).or_default();
            chains.observed.insert(unit(at.run));
            chains.failed.entry(unit(at.run)).or_insert(failure);
        }
    }
    found
}
