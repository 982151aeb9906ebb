//! What must stay: the entries that the current pipeline reaches, and those that result sets stand on.

use std::collections::HashSet;
use std::path::Path;

use crate::action::{ActionKey, Digest, Stage};
use crate::cache::Lookup;
use crate::cli::failure::{Failure, chain};
use crate::pipeline::{JudgeIx, Matrix, Pipeline};
use crate::plan::{ActionStatus, Frontier, Preparer, TaskOutcome, look_up};
use crate::results::{ResultsFolder, labels};

/// What the walk over the pipeline met.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Every action whose inputs are known, whether or not its output is there.
    pub(super) keys: HashSet<ActionKey>,
    /// Stale actions: what hangs on them cannot be known before they have run.
    pub(super) stale: u64,
    /// Whether the pipeline generates probes; then such entries are its own.
    pub(super) generates: bool,
}

impl Reached {
    /// Whether an entry is reached.
    pub(super) fn holds(&self, key: &ActionKey, stage: Stage) -> bool {
        self.keys.contains(key) || (stage == Stage::Probes && self.generates)
    }
}

/// Walks the pipeline over what `lookup` has, as a run would.
pub(super) fn reached<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> Result<Reached, Failure> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut reached = Reached { generates: !pipeline.generators.is_empty(), ..Reached::default() };
    let refused = |error: crate::plan::PrepareError| Failure::input(chain(&error));
    for judge in 0..pipeline.judges.len() {
        let tests = preparer.selftest(JudgeIx(judge)).map_err(refused)?;
        reached.keys.extend(tests.into_iter().map(|test| test.action.key));
    }
    let refresh = HashSet::new();
    let mut frontier = Frontier::new(&preparer);
    while let Some(task) = frontier.next_ready() {
        let action = preparer.prepare(&task).map_err(refused)?;
        let is_new = reached.keys.insert(action.key);
        let outcome = match look_up(lookup, &preparer, &task, &action, &refresh) {
            ActionStatus::Cached { resolved, .. } => TaskOutcome::Resolved(resolved),
            ActionStatus::Stale => {
                reached.stale += u64::from(is_new);
                TaskOutcome::Unresolved
            }
        };
        frontier.resolve(&task, outcome);
    }
    Ok(reached)
}

/// The files that result sets were made from, by digest: what `why` shows of an edit is told from their texts. One whose
/// manifest cannot be read is passed over.
pub(super) fn sources_of_labels(results: &Path) -> HashSet<Digest> {
    let labels = labels(results).unwrap_or_default();
    let manifests = labels.iter().filter_map(|label| ResultsFolder::of(results, label).manifest().ok());
    manifests.flat_map(|manifest| manifest.files.into_values()).collect()
}

/// Every entry that a result set stands on. One whose manifest cannot be read stops the work: what it stands on
/// would be lost.
pub(super) fn kept_by_labels(results: &Path) -> Result<HashSet<ActionKey>, Failure> {
    let mut keys = HashSet::new();
    for label in labels(results)? {
        let manifest = ResultsFolder::of(results, &label).manifest().map_err(|error| {
            Failure::error(format!("nothing was pruned: {}", chain(&error)))
                .hinted(format!("what `{label}` stands on cannot be told; run it again, or remove its folder"))
        })?;
        keys.extend(manifest.keys);
    }
    Ok(keys)
}
