//! Parts of a matrix that run as processes of their own, on any engine that starts numbered tasks, and share outputs
//! through a remote.
//!
//! 1. The unit is a method on a fixture, with all points and repetitions: a point needs the one before it, and
//!    repetitions share what is deterministic.
//! 2. Units that share an action by construction stay together: two methods that differ in nothing but their name, two
//!    fixtures that begin alike, `none` where two fixtures ask the same question. In one process such an action is
//!    executed once. Executed in two parts it is paid for twice, and of two different outputs only one can be used: what
//!    depends on the other one would be lost.
//! 3. Units go to parts by the hash of their names. So every part computes the same from the design alone: parts do not
//!    communicate, and none looks at a cache, which differs from machine to machine.
//!
//! Deliberately absent: starting machines, sending work, and waiting. Job arrays do that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::action::{BuiltInStrategy, Digest};
use crate::compress::{Method, Strategy};
use crate::pipeline::{Chain, CompressCell, FixtureIx, Matrix, MethodIx, Pipeline, TailMode};
use crate::plan::{Action, CompressTask, FixtureTexts, Task};

/// The number of a part, from 1, and how many parts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartNumber {
    index: NonZeroU32,
    of: NonZeroU32,
}

impl PartNumber {
    /// The most parts of a run.
    pub const MOST: u32 = 10_000;

    /// # Errors
    /// A number outside of 1 to `of`, or an `of` that is none: what was expected.
    pub fn new(index: u32, of: u32) -> Result<PartNumber, String> {
        let most = PartNumber::MOST;
        let count = NonZeroU32::new(of)
            .filter(|of| of.get() <= most)
            .ok_or_else(|| format!("the number of parts is from 1 to {most}"))?;
        let inside = NonZeroU32::new(index).filter(|index| *index <= count);
        let index = inside.ok_or_else(|| {
            format!("there is no part {index} of {of}: parts are numbered from 1 to {of}")
        })?;
        Ok(PartNumber { index, of: count })
    }

    /// How many parts there are.
    pub fn count(self) -> NonZeroU32 {
        self.of
    }

    /// What each part may use of a common limit, from 0 to 1.
    pub fn share(self) -> f64 {
        1.0 / f64::from(self.of.get())
    }

    /// The name of its folder.
    pub fn folder(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }

    /// The chains of `pipeline` that this part runs: methods on fixtures.
    pub fn chains(self, pipeline: &Pipeline) -> BTreeSet<(FixtureIx, MethodIx)> {
        let ours = u64::from(self.index.get() - 1);
        let units = units(pipeline).into_iter();
        units
            .filter(|unit| unit.hash() % u64::from(self.of.get()) == ours)
            .flat_map(|unit| unit.chains)
            .collect()
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for PartNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<PartNumber, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        let (index, of) = numbers.ok_or("expected I/N, as in 3/8")?;
        PartNumber::new(index, of)
    }
}

/// Chains that stay together.
#[derive(Debug)]
struct Unit {
    chains: Vec<(FixtureIx, MethodIx)>,
    /// The lowest digest of the names of a chain: the same in whatever order the pipeline lists them.
    id: Digest,
}

impl Unit {
    fn hash(&self) -> u64 {
        let Digest([a, b, c, d, e, f, g, h, ..]) = self.id;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

fn units(pipeline: &Pipeline) -> Vec<Unit> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut groups = DisjointSets::default();
    let mut first: BTreeMap<Digest, usize> = BTreeMap::new();
    for (at, fixture) in pipeline.fixtures.iter().enumerate() {
        let texts = Rc::new(FixtureTexts::new(FixtureIx(at), fixture));
        for method in 0..pipeline.methods.len() {
            let chain = Chain {
                fixture: FixtureIx(at),
                method: MethodIx(method),
                run: 1,
                variant: None,
            };
            let number = groups.add();
            chains.push(chain);
            for shared in shared_actions(pipeline, chain, &texts) {
                groups.join(number, *first.entry(shared).or_insert(number));
            }
        }
    }
    let mut units: BTreeMap<usize, Unit> = BTreeMap::new();
    for (number, chain) in chains.into_iter().enumerate() {
        let id = chain_digest(pipeline, chain);
        let unit = units.entry(groups.root(number)).or_insert(Unit {
            chains: Vec::new(),
            id,
        });
        unit.chains.push((chain.fixture, chain.method));
        unit.id = unit.id.min(id);
    }
    units.into_values().collect()
}

/// Identifies a chain by its names.
fn chain_digest(pipeline: &Pipeline, chain: Chain) -> Digest {
    let (fixture, method) = (
        pipeline.fixture(chain.fixture).name(),
        &pipeline.method(chain.method).name,
    );
    Digest::hash(format!("{fixture}\0{method}"))
}

/// Identifies the actions of a chain whose keys depend only on the design: its first compression, or all compressions if
/// none needs the one before, by their keys; and the answers of a method that keeps nothing, by their questions.
fn shared_actions(pipeline: &Pipeline, chain: Chain, texts: &Rc<FixtureTexts>) -> Vec<Digest> {
    let known = if Matrix(pipeline).keeps_state(chain.method) {
        1
    } else {
        usize::MAX
    };
    let cells: Vec<CompressCell> = Matrix(pipeline).compressions(chain).collect();
    let compressions = cells
        .iter()
        .take(known)
        .map(|cell| CompressTask::to_read(*cell, texts.clone()));
    let compressions =
        compressions.filter_map(|task| Action::prepare(pipeline, &Task::Compress(task)).ok());
    let mut shared: Vec<Digest> = compressions.map(|action| action.key.0).collect();
    if keeps_nothing(pipeline, pipeline.method(chain.method)) {
        let probes = cells
            .iter()
            .flat_map(|cell| &texts.loaded().selected[cell.point.0]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{OpenRequest, open, starter_files};

    #[test]
    fn a_part_is_read_or_refused_by_what_is_wrong() {
        let read = |text: &str| text.parse::<PartNumber>();
        assert_eq!(read("3/8"), PartNumber::new(3, 8));
        let refused = |text| read(text).unwrap_err();
        for outside in ["9/8", "0/8"] {
            assert!(
                refused(outside).starts_with("there is no part"),
                "{outside}"
            );
        }
        for count in ["1/0", "1/10001"] {
            assert_eq!(refused(count), "the number of parts is from 1 to 10000");
        }
        for odd in [
            "",
            "3",
            "3/",
            "/8",
            "-1/8",
            "3/8/2",
            "a/b",
            "3 / 8",
            "99999999999/8",
        ] {
            assert_eq!(refused(odd), "expected I/N, as in 3/8", "{odd}");
        }
    }

    #[test]
    fn each_chain_is_in_one_part() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in starter_files() {
            base::files::write_whole(&folder.path().join(path), text).unwrap();
        }
        let request = OpenRequest {
            file: folder.path().join("pipeline.toml"),
            ..OpenRequest::default()
        };
        let pipeline = open(&request, &|_| None).unwrap().pipeline;
        let parts =
            (1..=12).flat_map(|index| PartNumber::new(index, 12).unwrap().chains(&pipeline));
        let parts: Vec<_> = parts.collect();
        let all: BTreeSet<_> = parts.iter().copied().collect();
        let chains = pipeline.fixtures.len() * pipeline.methods.len();
        assert_eq!((parts.len(), all.len()), (chains, chains));
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
