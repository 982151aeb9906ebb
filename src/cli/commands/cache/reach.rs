//! The entries that a prune keeps: those that the current pipeline reaches, and those of result sets.

use std::collections::HashSet;
use std::path::Path;

use crate::action::{ActionKey, Digest};
use crate::cli::failure::{Failure, chain};
use crate::pipeline::Pipeline;
use crate::plan::{self, ReachableEntries};
use crate::results::{Outcome, all_sets};
use base::say;
use store::cache::{Lookup, Record};

/// Walks the pipeline over the cache, as a run would.
pub(super) fn reachable<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> Result<ReachableEntries, Failure> {
    plan::reachable(pipeline, lookup).map_err(|error| Failure::input(chain(&error)))
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
        let read = set.manifest().and_then(|manifest| Ok((manifest, set.known_keys()?)));
        let (manifest, known) = read.map_err(|error| {
            Failure::error(say!("nothing was pruned: {}", "没有清理任何内容：{}", chain(&error))).hinted(say!(
                "the entries of {} are unknown; move that folder away to prune them",
                "{} 的条目未知；移走该文件夹后可清理",
                set.path().display()
            ))
        })?;
        keys.extend(known);
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
