//! Whether a method fails more often by its own fault than its baseline, on these fixtures.
//!
//! The unit is the *chain*, a fixture in a run. A chain failed if the method failed anywhere in it. Cells would be a
//! poor unit, because all cells below a failed compression fail with it. One compression of a deterministic method
//! serves all runs, so these runs are one chain: three copies of one failure are no more evidence than one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::changes::ComparedVariants;
use crate::plan::{Blame, FailedAction};
use crate::results::aggregates::contexts::{contexts, have_same_points};
use crate::results::files::design::MethodInfo;
use crate::results::result_set::VariantRef;
use base::locale::Locale;
use base::say;
use stats::{FailureCounts, FailureTest};

/// How often a method failed by its own fault, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reliability {
    /// Chains that were run on both sides, and that the method failed.
    #[serde(flatten)]
    pub counts: FailureCounts,
    /// One-sided, within fixtures; the family is all methods.
    #[serde(flatten)]
    pub test: FailureTest,
    /// Every chain that fails now and did not fail in the baseline.
    pub newly_failing: Vec<FailedChain>,
}

impl Reliability {
    /// Whether anything fails that did not fail in the baseline, with or without a regression.
    pub fn is_worse(&self) -> bool {
        self.test.regressed || !self.newly_failing.is_empty()
    }

    /// Whether something fails that did not fail in the baseline, without a regression.
    pub fn is_only_new(&self) -> bool {
        self.is_worse() && !self.test.regressed
    }
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

impl FailedChain {
    /// The chain and its failure.
    pub fn words(&self, locale: Locale) -> String {
        let (fixture, message) = (&self.fixture, &self.message);
        match self.run {
            Some(run) => say!(
                locale,
                "{fixture} · run {run}: {message}",
                "{fixture} · 第 {run} 次：{message}"
            ),
            None => say!(
                locale,
                "{fixture} · all runs: {message}",
                "{fixture} · 各次：{message}"
            ),
        }
    }
}

/// The chains of a method on one fixture: those that were run, and the first failure of those that failed.
#[derive(Default)]
struct Chains<'s> {
    observed: BTreeSet<Option<u32>>,
    failed: BTreeMap<Option<u32>, &'s FailedAction>,
}

/// The chains of both sides, by fixture.
pub(crate) struct ChainPairs<'s> {
    fixtures: BTreeMap<&'s str, (Chains<'s>, Chains<'s>)>,
}

impl<'s> ChainPairs<'s> {
    pub(super) fn from_matched(matched: &ComparedVariants<'s>) -> ChainPairs<'s> {
        let (mut own, mut other) = (chains(&matched.judged), chains(&matched.baseline));
        let both = common_fixtures(matched).into_iter().map(|name| {
            let (own, other) = (own.remove(name), other.remove(name));
            (name, (own.unwrap_or_default(), other.unwrap_or_default()))
        });
        ChainPairs {
            fixtures: both.collect(),
        }
    }

    /// The counts of each fixture, from which the method is tested.
    pub(crate) fn counts(&self) -> Vec<FailureCounts> {
        let counts = self.fixtures.values().map(|(own, base)| FailureCounts {
            failed: own.failed.len(),
            chains: own.observed.len(),
            baseline_failed: base.failed.len(),
            baseline_chains: base.observed.len(),
        });
        counts.collect()
    }

    /// The counts with the result of the test.
    pub(crate) fn judged(&self, test: FailureTest) -> Reliability {
        Reliability {
            counts: FailureCounts::sum(&self.counts()),
            test,
            newly_failing: self.newly_failing(),
        }
    }

    fn newly_failing(&self) -> Vec<FailedChain> {
        let mut chains = Vec::new();
        for (fixture, (own, base)) in self
            .fixtures
            .iter()
            .filter(|(_, (_, base))| !base.failed.contains_key(&None))
        {
            // One compression for all runs is not new where the baseline failed in each of its runs.
            let fails_always = !base.failed.is_empty() && base.failed.len() == base.observed.len();
            let new = own.failed.iter().filter(|(run, _)| match run {
                Some(_) => !base.failed.contains_key(run),
                None => !fails_always,
            });
            chains.extend(new.map(|(run, failure)| FailedChain {
                fixture: (*fixture).to_owned(),
                run: *run,
                message: failure.message.lines().next().unwrap_or("").to_owned(),
            }));
        }
        chains
    }
}

/// The fixtures with probes that both sides asked; where nothing is asked, those with the same points.
fn common_fixtures<'s>(matched: &ComparedVariants<'s>) -> BTreeSet<&'s str> {
    let (judged, baseline) = (matched.judged, matched.baseline);
    if judged.answerer.is_none() {
        let names = judged
            .set
            .design()
            .fixtures
            .iter()
            .map(|fixture| fixture.name.as_str());
        return names
            .filter(|name| have_same_points(judged.set, baseline.set, name))
            .collect();
    }
    let probes = matched.probes.keys();
    probes
        .filter_map(|probe| judged.fixture_of(*probe))
        .collect()
}

/// The chain of a run: the run itself, or `None` if one compression serves all runs.
fn chain_of(method: &MethodInfo, run: u32) -> Option<u32> {
    (!method.deterministic).then_some(run)
}

/// The chains of a variant, by fixture. A chain was run if it failed, or if one of its cells was judged; where nothing
/// is answered, if its context was made.
fn chains<'s>(own: &VariantRef<'s>) -> BTreeMap<&'s str, Chains<'s>> {
    let mut fixtures: BTreeMap<&str, Chains<'_>> = BTreeMap::new();
    for grade in own.grades() {
        if let Some(fixture) = own.fixture_of(grade.at.probe) {
            let observed = &mut fixtures.entry(fixture).or_default().observed;
            observed.insert(chain_of(own.method, grade.at.run));
        }
    }
    if own.answerer.is_none() {
        for context in contexts(own.set, &own.method.name) {
            let observed = &mut fixtures.entry(&context.fixture).or_default().observed;
            observed.insert(chain_of(own.method, context.run));
        }
    }
    let failures = own.set.manifest.failures.iter();
    for failure in failures.filter(|failure| failure.blame == Blame::Method) {
        let Some(at) = failure.place.recorded_cell() else {
            continue;
        };
        let is_same_answerer = at
            .answerer
            .as_deref()
            .is_none_or(|name| name == own.variant.answerer);
        if *at.method == *own.method.name && is_same_answerer {
            let chains = fixtures.entry(&at.fixture).or_default();
            let chain = chain_of(own.method, at.run);
            chains.observed.insert(chain);
            chains.failed.entry(chain).or_insert(failure);
        }
    }
    fixtures
}
