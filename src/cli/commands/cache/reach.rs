//! The entries that a prune keeps: those that the current pipeline reaches, and those of result sets.

use std::collections::HashSet;
use std::path::Path;

use crate::action::{ActionKey, Digest, Stage};
use crate::cache::Lookup;
use crate::cli::failure::{Failure, chain};
use crate::pipeline::{JudgeIx, Matrix, Pipeline};
use crate::plan::{ActionStatus, Frontier, Preparer, TaskOutcome, look_up};
use crate::results::{ResultsFolder, labels};

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
    let labels = labels(results).unwrap_or_default();
    let manifests = labels.iter().filter_map(|label| ResultsFolder::of(results, label).manifest().ok());
    manifests.flat_map(|manifest| manifest.files.into_values()).collect()
}

/// The entries of all result sets. An unreadable manifest stops the prune, because the entries of that result set would
/// be lost.
pub(super) fn kept_by_labels(results: &Path) -> Result<HashSet<ActionKey>, Failure> {
    let mut keys = HashSet::new();
    for label in labels(results)? {
        let manifest = ResultsFolder::of(results, &label).manifest().map_err(|error| {
            Failure::error(format!("nothing was pruned: {}", chain(&error)))
                .hinted(format!("the entries of `{label}` are unknown; run it again, or delete its folder"))
        })?;
        keys.extend(manifest.keys);
    }
    Ok(keys)
}
