//! Whether the shards that were found can be merged, and which ones are missing.

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::number::Shard;
use crate::action::Digest;

/// What the manifest of a shard says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    #[serde(flatten)]
    pub shard: Shard,
    /// Names the assignment of chains to shards ([`super::Assignment::digest`]).
    pub assignment: Digest,
    /// The engine that gave the number; `None` where the user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// A shard as it was found: its place in words, its record, whether it did all of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardResult {
    pub place: String,
    pub record: ShardRecord,
    pub is_complete: bool,
}

/// Why shards cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectError {
    #[error("shards of {one} and of {other} are mixed: {} and {}", places.0, places.1)]
    Counts { one: u32, other: u32, places: (String, String) },
    #[error("shard {shard} was found twice: {} and {}; name the folder that is to be merged", places.0, places.1)]
    Twice { shard: Shard, places: (String, String) },
    #[error(
        "{place} was run with another assignment of chains to shards than this project has now; run it again with the \
         project, the options and the version of compeval that this merge has"
    )]
    Assignment { place: String },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardCoverage {
    /// Those that were not found.
    pub missing: Vec<Shard>,
    /// Those that were found and have work left.
    pub incomplete: Vec<Shard>,
    /// The engine of all shards, where it is one.
    pub engine: Option<Engine>,
}

impl ShardCoverage {
    /// The shards that have to be run, in order.
    pub fn unfinished(&self) -> Vec<Shard> {
        let mut shards: Vec<Shard> = self.missing.iter().chain(&self.incomplete).copied().collect();
        shards.sort();
        shards
    }
}

/// Checks the shards found, sorted by number, against the assignment of the project as it is now.
pub fn collect(found: &[ShardResult], assignment: Digest) -> Result<ShardCoverage, CollectError> {
    let Some(first) = found.first() else { return Ok(ShardCoverage::default()) };
    let of = first.record.shard.of();
    let places = |other: &ShardResult| (first.place.clone(), other.place.clone());
    if let Some(other) = found.iter().find(|set| set.record.shard.of() != of) {
        let (one, other_count) = (of.get(), other.record.shard.of().get());
        return Err(CollectError::Counts { one, other: other_count, places: places(other) });
    }
    for pair in found.windows(2) {
        if let [one, other] = pair
            && one.record.shard == other.record.shard
        {
            let places = (one.place.clone(), other.place.clone());
            return Err(CollectError::Twice { shard: one.record.shard, places });
        }
    }
    if let Some(other) = found.iter().find(|set| set.record.assignment != assignment) {
        return Err(CollectError::Assignment { place: other.place.clone() });
    }
    let has = |shard: &Shard| found.iter().any(|set| set.record.shard == *shard);
    let all = (1..=of.get()).filter_map(|index| Shard::new(index, of.get()).ok());
    let is_incomplete = |set: &&ShardResult| !set.is_complete;
    let engine = first.record.engine.filter(|engine| found.iter().all(|set| set.record.engine == Some(*engine)));
    Ok(ShardCoverage {
        missing: all.filter(|shard| !has(shard)).collect(),
        incomplete: found.iter().filter(is_incomplete).map(|set| set.record.shard).collect(),
        engine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(index: u32, of: u32, assignment: &str) -> ShardResult {
        let record = ShardRecord {
            shard: Shard::new(index, of).unwrap(),
            assignment: Digest::of(assignment),
            engine: Some(Engine::Slurm),
        };
        ShardResult { place: format!("{assignment}/{index}"), record, is_complete: true }
    }

    fn collected(found: &[ShardResult]) -> Result<ShardCoverage, CollectError> {
        collect(found, Digest::of("a"))
    }

    #[test]
    fn missing_and_incomplete_shards_have_to_be_run_again() {
        let unfinished = ShardResult { is_complete: false, ..set(1, 4, "a") };
        let found = collected(&[unfinished, set(2, 4, "a"), set(4, 4, "a")]).unwrap();
        assert_eq!(found.missing, [Shard::new(3, 4).unwrap()]);
        assert_eq!(found.unfinished(), [1, 3].map(|index| Shard::new(index, 4).unwrap()));
        assert_eq!(found.engine, Some(Engine::Slurm));
    }

    #[test]
    fn shards_that_do_not_belong_together_are_named() {
        let why = |found: &[ShardResult]| collected(found).unwrap_err().to_string();
        assert_eq!(why(&[set(1, 4, "a"), set(2, 8, "a")]), "shards of 4 and of 8 are mixed: a/1 and a/2");
        let twice = ShardResult { place: "b/1".to_owned(), ..set(1, 4, "a") };
        assert!(why(&[set(1, 4, "a"), twice]).starts_with("shard 1/4 was found twice: a/1 and b/1"));
        assert!(why(&[set(1, 4, "a"), set(2, 4, "other")]).starts_with("other/2 was run with another assignment"));
    }
}
