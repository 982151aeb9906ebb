//! Whether a method fails more often by its own fault than its baseline, on these fixtures.
//!
//! The unit is the *chain*, a fixture in a run: it has failed if the method failed anywhere in it. Cells are no unit, for
//! a failed compression takes all cells below it along. One compression of a deterministic method serves all runs, so
//! that its runs are one chain: three copies of one failure are no more evidence than one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::changes::ComparedVariants;
use crate::results::files::design::MethodInfo;
use crate::results::files::failure::{Blame, FailedAction};
use crate::results::result_set::{ResultSet, VariantRef};
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
        let places = matched.probes.keys().filter_map(|probe| matched.judged.scores.fixture_of(*probe));
        let names = places.filter_map(|place| matched.judged.fixture_name(place));
        let mut fixtures: BTreeMap<&str, (Chains<'_>, Chains<'_>)> =
            names.map(|name| (name, Default::default())).collect();
        let (mut own, mut other) = (chains(matched.judged, &matched.pair.a), chains(matched.baseline, &matched.pair.b));
        for (name, sides) in &mut fixtures {
            *sides = (own.remove(name).unwrap_or_default(), other.remove(name).unwrap_or_default());
        }
        ChainPairs { fixtures }
    }

    /// What the test of the method rests on.
    pub(in crate::results) fn counts(&self) -> Vec<FailureCounts> {
        let counts = self.fixtures.values().map(|(own, base)| FailureCounts {
            failed: own.failed.len(),
            chains: own.observed.len(),
            baseline_failed: base.failed.len(),
            baseline_chains: base.observed.len(),
        });
        counts.collect()
    }

    /// The counts with the result of the test.
    pub(in crate::results) fn judged(&self, test: &FailureTest) -> Reliability {
        let counts = self.counts();
        Reliability {
            failed: counts.iter().map(|counts| counts.failed).sum(),
            chains: counts.iter().map(|counts| counts.chains).sum(),
            baseline_failed: counts.iter().map(|counts| counts.baseline_failed).sum(),
            baseline_chains: counts.iter().map(|counts| counts.baseline_chains).sum(),
            p: test.p,
            p_adjusted: test.p_adjusted,
            regressed: test.regressed,
            newly_failing: self.newly_failing(),
        }
    }

    fn newly_failing(&self) -> Vec<FailedChain> {
        let mut found = Vec::new();
        for (fixture, (own, base)) in self.fixtures.iter().filter(|(_, (_, base))| !base.failed.contains_key(&None)) {
            let new = own.failed.iter().filter(|(run, _)| !base.failed.contains_key(run));
            found.extend(new.map(|(run, failure)| FailedChain {
                fixture: (*fixture).to_owned(),
                run: *run,
                message: failure.message.lines().next().unwrap_or_default().to_owned(),
            }));
        }
        found
    }
}

/// The chain of a run; all runs have one where one compression serves them.
fn chain_of(method: &MethodInfo, run: u32) -> Option<u32> {
    (!method.deterministic).then_some(run)
}

/// The chains of a method with its answerer, by fixture: a chain was run if it failed, or if a cell of it was judged.
fn chains<'s>(set: &'s ResultSet, of: &VariantRef<'_>) -> BTreeMap<&'s str, Chains<'s>> {
    let mut found: BTreeMap<&str, Chains<'_>> = BTreeMap::new();
    for grade in set.grades(of.place) {
        if let Some(fixture) = set.scores.fixture_of(grade.at.probe).and_then(|place| set.fixture_name(place)) {
            found.entry(fixture).or_default().observed.insert(chain_of(of.method, grade.at.run));
        }
    }
    for failure in set.manifest.failures.iter().filter(|failure| failure.blame == Blame::Method) {
        let Some(at) = failure.place.recorded_cell() else { continue };
        let is_read = at.answerer.as_deref().is_none_or(|name| name == of.variant.answerer);
        let is_own = *at.method == *of.method.name && is_read;
        if is_own {
            let chains = found.entry(&at.fixture).or_default();
            let chain = chain_of(of.method, at.run);
            chains.observed.insert(chain);
            chains.failed.entry(chain).or_insert(failure);
        }
    }
    found
}
