//! Which chains each part runs.
//!
//! 1. The unit is a method on a fixture, with all points and repetitions: a point needs the one before it, and
//!    repetitions share what is deterministic.
//! 2. Units that share an action by construction stay together: two methods that differ in nothing but their name, two
//!    fixtures that begin alike, `none` where two fixtures ask the same question. In one process such an action is
//!    executed once. Executed in two parts it is paid for twice, and of two different outputs the merge can use only
//!    one: what depends on the other one would be lost.
//! 3. The largest unit first, each to the part that has the least; equal ones by digest. So no part exceeds the mean by
//!    more than the largest unit.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::PartNumber;
use super::cost::{FixtureSizes, chain_cost};
use super::engine::Engine;
use crate::action::{BuiltInStrategy, Digest};
use crate::compress::{Method, Strategy};
use crate::pipeline::{
    Chain, CompressCell, FixtureDigests, FixtureIx, Matrix, MethodIx, Pipeline, TailMode,
};
use crate::plan::{CompressTask, FixtureTexts, Preparer, Task};

/// What the manifest of a part says about the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    #[serde(flatten)]
    pub number: PartNumber,
    /// Identifies the assignment of chains to parts ([`Assignment::digest`]).
    pub assignment: Digest,
    /// The engine that gave the number; `None` where the user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// The chains of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartChains {
    pub chains: BTreeSet<(FixtureIx, MethodIx)>,
    /// Estimated, in tokens read.
    pub cost: u64,
}

/// The chains of all parts. Every part computes the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    parts: Vec<PartChains>,
    digest: Digest,
}

/// A chain as it is hashed into the digest of an assignment.
#[derive(Serialize)]
struct AssignedChain<'p> {
    fixture: &'p str,
    digests: FixtureDigests,
    method: &'p str,
    part: usize,
}

impl Assignment {
    /// Assigns the whole matrix of `pipeline`.
    pub fn new(pipeline: &Pipeline, parts: NonZeroU32) -> Assignment {
        let matrix = Matrix::new(pipeline);
        let mut parts = vec![PartChains::default(); parts.get() as usize];
        let units = units(pipeline, &matrix);
        let weights: Vec<(u64, Digest)> = units.iter().map(|unit| (unit.cost, unit.id)).collect();
        for (unit, at) in units.into_iter().zip(distribute(&weights, parts.len())) {
            let Some(part) = parts.get_mut(at) else {
                continue;
            };
            part.cost += unit.cost;
            part.chains.extend(unit.chains);
        }
        let digest = assignment_digest(pipeline, &parts);
        Assignment { parts, digest }
    }

    /// The chains of a part; empty if `part` counts another number of parts.
    pub fn part(&self, part: PartNumber) -> PartChains {
        let part = self
            .parts
            .get(part.index() as usize - 1)
            .filter(|_| part.count().get() as usize == self.parts.len());
        part.cloned().unwrap_or_default()
    }

    /// Identifies the assignment: parts of different ones cannot be merged.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn chains(&self) -> usize {
        self.parts.iter().map(|part| part.chains.len()).sum()
    }

    fn cost(&self) -> u64 {
        self.parts.iter().map(|part| part.cost).sum()
    }

    /// The fraction of the work that a part has, from 0 to 1. The budget is divided by it, so that a part without
    /// chains gets none.
    pub fn share(&self, part: PartNumber) -> f64 {
        let all = self.cost();
        if all == 0 {
            1.0 / self.parts.len() as f64
        } else {
            self.part(part).cost as f64 / all as f64
        }
    }

    /// The work of the largest part, as a multiple of the mean.
    pub fn largest_to_mean(&self) -> f64 {
        let largest = self.parts.iter().map(|part| part.cost).max().unwrap_or(0);
        let mean = self.cost() as f64 / self.parts.len() as f64;
        if mean > 0.0 {
            largest as f64 / mean
        } else {
            1.0
        }
    }
}

/// Chains that stay together.
#[derive(Debug)]
struct Unit {
    chains: Vec<(FixtureIx, MethodIx)>,
    cost: u64,
    /// The digest of its first chain.
    id: Digest,
}

fn units(pipeline: &Pipeline, matrix: &Matrix) -> Vec<Unit> {
    let preparer = Preparer::new(pipeline, matrix);
    let mut chains: Vec<(Chain, u64)> = Vec::new();
    let mut groups = DisjointSets::default();
    let mut first: BTreeMap<Digest, usize> = BTreeMap::new();
    for (at, fixture) in pipeline.fixtures.iter().enumerate() {
        let sizes = FixtureSizes::from_loaded(fixture);
        let texts = Rc::new(FixtureTexts::new(FixtureIx(at), fixture));
        for method in 0..pipeline.methods.len() {
            let chain = Chain {
                fixture: FixtureIx(at),
                method: MethodIx(method),
                run: 1,
                injection: None,
            };
            let number = groups.add();
            chains.push((chain, chain_cost(pipeline, matrix, chain, &sizes)));
            for shared in shared_actions(&preparer, chain, &texts) {
                groups.join(number, *first.entry(shared).or_insert(number));
            }
        }
    }
    let mut units: BTreeMap<usize, Unit> = BTreeMap::new();
    for (number, (chain, cost)) in chains.into_iter().enumerate() {
        let id = chain_digest(pipeline, chain);
        let unit = units.entry(groups.root(number)).or_insert(Unit {
            chains: Vec::new(),
            cost: 0,
            id,
        });
        unit.chains.push((chain.fixture, chain.method));
        unit.cost += cost;
    }
    units.into_values().collect()
}

/// Identifies a chain: the same on every machine, and in whatever order the pipeline lists its methods.
fn chain_digest(pipeline: &Pipeline, chain: Chain) -> Digest {
    let (fixture, method) = (
        pipeline.fixture(chain.fixture).name(),
        &pipeline.method(chain.method).name,
    );
    Digest::hash(format!("{fixture}\0{method}"))
}

/// Identifies the actions of a chain whose keys depend only on the design: its first compression, or all compressions if
/// none needs the one before, by their keys; and the answers of a method that keeps nothing, by their questions.
fn shared_actions(preparer: &Preparer<'_>, chain: Chain, texts: &Rc<FixtureTexts>) -> Vec<Digest> {
    let (pipeline, matrix) = (preparer.pipeline(), preparer.matrix());
    let known = if matrix.keeps_state(chain.method) {
        1
    } else {
        usize::MAX
    };
    let cells: Vec<CompressCell> = matrix.compressions(chain).collect();
    let compressions = cells
        .iter()
        .take(known)
        .map(|cell| CompressTask::to_read(*cell, texts.clone()));
    let compressions = compressions.filter_map(|task| preparer.prepare(&Task::Compress(task)).ok());
    let mut shared: Vec<Digest> = compressions.map(|action| action.key.0).collect();
    if keeps_nothing(pipeline, pipeline.method(chain.method)) {
        let probes = cells
            .iter()
            .flat_map(|cell| matrix.probes(chain.fixture, cell.point));
        let probes = probes.filter_map(|probe| texts.loaded().probe(*probe));
        shared.extend(probes.map(|probe| Digest::hash(&probe.question)));
    }
    shared
}

fn keeps_nothing(pipeline: &Pipeline, method: &Method) -> bool {
    matches!(method.strategy, Strategy::Rule(BuiltInStrategy::None))
        && pipeline.settings.tail == TailMode::None
}

/// Disjoint sets of numbers, each with its lowest as its root.
#[derive(Debug, Default)]
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn root(&self, mut number: usize) -> usize {
        while let Some(&above) = self.0.get(number).filter(|above| **above != number) {
            number = above;
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(above) = self.0.get_mut(one.max(other)) {
            *above = one.min(other);
        }
    }
}

/// The part of each unit: the largest first, each to the part that has the least.
fn distribute(units: &[(u64, Digest)], parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|at| {
        units
            .get(*at)
            .map(|(cost, id)| (std::cmp::Reverse(*cost), id.0))
    });
    let mut loads: BTreeSet<(u64, usize)> = (0..parts).map(|part| (0, part)).collect();
    let mut assigned = vec![0; units.len()];
    for at in order {
        let (Some((load, part)), Some((cost, _))) = (loads.pop_first(), units.get(at)) else {
            break;
        };
        loads.insert((load + cost, part));
        if let Some(assigned) = assigned.get_mut(at) {
            *assigned = part;
        }
    }
    assigned
}

fn assignment_digest(pipeline: &Pipeline, parts: &[PartChains]) -> Digest {
    let mut assigned: Vec<AssignedChain<'_>> = Vec::new();
    for (part, PartChains { chains, .. }) in parts.iter().enumerate() {
        for (fixture, method) in chains {
            let (fixture, method) = (
                pipeline.fixture(*fixture),
                &*pipeline.method(*method).name.0,
            );
            assigned.push(AssignedChain {
                fixture: fixture.name(),
                digests: fixture.digests,
                method,
                part,
            });
        }
    }
    assigned.sort_by_key(|chain| (chain.fixture, chain.method));
    Digest::of_json(&(parts.len(), assigned))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights(costs: &[u64]) -> Vec<(u64, Digest)> {
        costs
            .iter()
            .enumerate()
            .map(|(at, cost)| (*cost, Digest::hash(at.to_string())))
            .collect()
    }

    fn loads(units: &[(u64, Digest)], parts: usize) -> Vec<u64> {
        let mut loads = vec![0; parts];
        for ((cost, _), part) in units.iter().zip(distribute(units, parts)) {
            loads[part] += cost;
        }
        loads
    }

    proptest! {
        #[test]
        fn every_unit_has_one_part_and_no_part_exceeds_the_mean_by_more_than_a_unit(
            costs in prop::collection::vec(1u64..100_000, 1..200),
            parts in 1usize..40,
        ) {
            let units = weights(&costs);
            let loads = loads(&units, parts);
            let (all, largest) = (costs.iter().sum::<u64>(), costs.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(loads.iter().sum::<u64>(), all);
            let most = loads.iter().copied().max().unwrap_or(0) as f64;
            prop_assert!(most <= all as f64 / parts as f64 + largest as f64);
            prop_assert!(distribute(&units, parts).iter().all(|part| *part < parts));
        }

        #[test]
        fn small_units_are_balanced_within_15_percent(
            costs in prop::collection::vec(1u64..1000, 160..400),
            parts in 1usize..17,
        ) {
            let units = weights(&costs);
            let mean = costs.iter().sum::<u64>() as f64 / parts as f64;
            let largest = costs.iter().copied().max().unwrap_or(0) as f64;
            prop_assume!(largest <= 0.15 * mean);
            let most = loads(&units, parts).into_iter().max().unwrap_or(0) as f64;
            prop_assert!(most <= 1.15 * mean, "{} {}", most, mean);
        }

        #[test]
        fn the_order_of_units_changes_nothing(
            costs in prop::collection::vec(1u64..50, 1..60),
            parts in 1usize..12,
            turn in 0usize..60,
        ) {
            let units = weights(&costs);
            let mut turned = units.clone();
            turned.rotate_left(turn % units.len());
            let by_id = |units: &[(u64, Digest)]| -> BTreeMap<[u8; 32], usize> {
                units.iter().zip(distribute(units, parts)).map(|((_, id), part)| (id.0, part)).collect()
            };
            prop_assert_eq!(by_id(&units), by_id(&turned));
        }
    }

    /// Sessions of 5,000 to 500,000 tokens with eight methods, one of which sends the whole session with every
    /// question. `cargo test uneven_sessions -- --nocapture` prints the balance.
    #[test]
    #[allow(clippy::print_stderr, reason = "the balance is shown on request")]
    fn uneven_sessions_are_balanced_as_far_as_chains_allow() {
        const METHODS: [u64; 8] = [120, 10, 30, 30, 30, 40, 40, 40];
        for sessions in [8u32, 24, 100] {
            let length = |at: u32| 5000.0 * 100f64.powf(f64::from(at) / f64::from(sessions - 1));
            let chains =
                (0..sessions).flat_map(|at| METHODS.map(|method| method * length(at) as u64));
            let units = weights(&chains.collect::<Vec<u64>>());
            for parts in [2, 4, 8, 16, 32] {
                let loads = loads(&units, parts);
                let mean = loads.iter().sum::<u64>() as f64 / parts as f64;
                let most = loads.iter().copied().max().unwrap_or(0) as f64 / mean;
                let largest = units.iter().map(|(cost, _)| *cost).max().unwrap_or(0) as f64 / mean;
                eprintln!(
                    "{sessions:4} sessions, {parts:2} parts: largest {most:.3} of the mean (a chain {largest:.3})"
                );
                assert!(
                    most <= 1.15f64.max(largest + 1e-9),
                    "{sessions} {parts} {most} {largest}"
                );
            }
        }
    }

    #[test]
    fn groups_join_whatever_the_order() {
        let mut groups = DisjointSets::default();
        for _ in 0..6 {
            groups.add();
        }
        for (one, other) in [(5, 4), (3, 4), (0, 1)] {
            groups.join(one, other);
        }
        let roots: Vec<usize> = (0..6).map(|number| groups.root(number)).collect();
        assert_eq!(roots, [0, 0, 2, 3, 3, 3]);
    }
}
