//! The entries that a prune keeps: those that the current pipeline reaches, and those of result sets.

use std::collections::HashSet;
use std::path::Path;

use crate::action::{ActionKey, Digest, Stage};
use crate::cache::{Lookup, Record};
use crate::cli::failure::{Failure, chain};
use crate::pipeline::{JudgeIx, Matrix, Pipeline};
use crate::plan::{ActionStatus, Frontier, Preparer, TaskOutcome, look_up};
use crate::results::{Outcome, all_sets};

/// The entries that the current pipeline reaches.
#[derive(Debug, Default)]
pub(super) struct ReachableEntries {
    /// All actions whose inputs are known, whether or not they have an output.
    keys: HashSet<ActionKey>,
    /// Stale actions: what depends on them is unknown until they have run.
    pub(super) stale: u64,
    /// Whether the pipeline generates probes; then all entries of that stage are kept.
    generates: bool,
}

impl ReachableEntries {
    pub(super) fn contains(&self, key: &ActionKey, stage: Stage) -> bool {
        self.keys.contains(key) || (stage == Stage::Probes && self.generates)
    }
}

/// Walks the pipeline over the cache, as a run would.
pub(super) fn reachable<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> Result<ReachableEntries, Failure> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut reachable = ReachableEntries { generates: !pipeline.generators.is_empty(), ..ReachableEntries::default() };
    let refused = |error: crate::plan::PrepareError| Failure::input(chain(&error));
    for judge in 0..pipeline.judges.len() {
        let tests = preparer.selftest(JudgeIx(judge)).map_err(refused)?;
        reachable.keys.extend(tests.into_iter().map(|test| test.action.key));
    }
    let refresh = HashSet::new();
    let mut frontier = Frontier::new(&preparer);
    while let Some(task) = frontier.next_ready() {
        let action = preparer.prepare(&task).map_err(refused)?;
        let is_new = reachable.keys.insert(action.key);
        let outcome = match look_up(lookup, &preparer, &task, &action, &refresh) {
            ActionStatus::Cached { resolved, .. } => TaskOutcome::Resolved(resolved),
            ActionStatus::Stale => {
                reachable.stale += u64::from(is_new);
                TaskOutcome::Unresolved
            }
        };
        frontier.resolve(&task, outcome);
    }
    Ok(reachable)
}

/// The digests of the files that result sets were made from: `why` compares their texts with edited files. Unreadable
/// manifests are skipped.
pub(super) fn sources_of_labels(results: &Path) -> HashSet<Digest> {
    let sets = all_sets(results).unwrap_or_default();
    sets.iter().filter_map(|set| set.manifest().ok()).flat_map(|manifest| manifest.files.into_values()).collect()
}

/// The entries of all result sets, complete or not. A set whose run was killed does not know all of its entries: those
/// made since it began are kept too. An unreadable manifest stops the prune, because the entries of that result set
/// would be lost.
pub(super) fn kept_by_labels(results: &Path, lookup: &impl Lookup) -> Result<HashSet<ActionKey>, Failure> {
    let mut keys = HashSet::new();
    let mut since: Option<i64> = None;
    for set in all_sets(results)? {
        let manifest = set.manifest().map_err(|error| {
            Failure::error(format!("nothing was pruned: {}", chain(&error))).hinted(format!(
                "the entries of {} are unknown; move that folder away to prune them",
                set.path().display()
            ))
        })?;
        keys.extend(set.known_keys());
        if manifest.outcome == Outcome::Running {
            let began = manifest.started.parse::<jiff::Timestamp>().map_or(0, |time| time.as_millisecond());
            since = Some(since.map_or(began, |known| known.min(began)));
        }
    }
    if let Some(since) = since {
        let is_new = |record: &Record| record.created.cast_signed() >= since;
        keys.extend(lookup.records().into_iter().filter(is_new).map(|record| record.key));
    }
    Ok(keys)
}
