//! The actions that a pipeline reaches in a cache: the entries that a prune keeps and that a part needs.

use std::collections::HashSet;

use super::frontier::Frontier;
use super::prepare::{PrepareError, Preparer};
use super::recovery::cached_outcome;
use super::task::TaskOutcome;
use crate::action::{ActionKey, Stage};
use crate::entries::{EntryRecord, Refresh};
use crate::pipeline::{Matrix, Pipeline};
use store::cache::{Lookup, Record};

/// The entries that the current pipeline reaches.
#[derive(Debug, Default)]
pub struct ReachableEntries {
    /// All actions whose inputs are known, whether or not they have an output.
    pub keys: HashSet<ActionKey>,
    /// Actions without an output that can be read: what depends on them is unknown until they have run.
    pub stale: u64,
    /// Whether the pipeline generates probes; then all entries of that stage are kept.
    generates: bool,
}

impl ReachableEntries {
    pub fn contains(&self, record: &Record) -> bool {
        self.keys.contains(&record.key) || (self.generates && record.stage() == Some(Stage::Probes))
    }
}

/// Walks the pipeline over the cache, as a run would.
pub fn reachable<L: Lookup>(
    pipeline: &Pipeline,
    lookup: &L,
) -> Result<ReachableEntries, PrepareError> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut reachable = ReachableEntries {
        generates: !pipeline.generators.is_empty(),
        ..ReachableEntries::default()
    };
    let refresh = Refresh::default();
    let mut frontier = Frontier::new(&preparer);
    while let Some(task) = frontier.next_ready() {
        let action = preparer.prepare(&task)?;
        let is_new = reachable.keys.insert(action.key);
        let outcome = match cached_outcome(lookup, &preparer, &action, &refresh) {
            Some((outcome, record)) => {
                // A reply that is reused under a higher limit has a key of its own.
                reachable.keys.insert(record.key);
                outcome
            }
            None => {
                reachable.stale += u64::from(is_new);
                TaskOutcome::Unresolved
            }
        };
        frontier.resolve(&task, outcome);
    }
    Ok(reachable)
}
