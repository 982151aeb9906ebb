//! `cache prune`: removes entries, reports what they cost, and frees disk space. With `--unreachable` it keeps what the
//! current pipeline reaches and what result sets refer to.

use std::collections::HashSet;
use std::path::Path;

use clap::Args;
use serde_json::json;

use super::entry::{CacheFilter, EntryTotals, OriginFilter, snapshot};
use crate::action::{ActionKey, Digest};
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::format::{count, size, with_fields};
use crate::cli::project::{open_project, open_request, open_store, print_notices};
use crate::cli::terminal::{Console, TextStyle, paint};
use crate::entries::EntryLookup;
use crate::evaluation::EvaluationError;
use crate::pipeline::ProjectPaths;
use crate::plan::{ReachableEntries, reachable};
use crate::results::{Outcome, all_sets};
use base::clock::moment;
use store::cache::{Lookup, Record, disk_bytes};

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Entries that the current pipeline does not reach and no label in results/ needs
    #[arg(long)]
    pub(crate) unreachable: bool,
    #[command(flatten)]
    pub(crate) origin: OriginFilter,
    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(super) fn run(
    common: &Common,
    paths: &ProjectPaths,
    args: &PruneArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    if !args.unreachable && args.origin.older_than.is_none() && args.origin.remote.is_none() {
        return Err(
            Failure::input("cache prune needs a condition for what to remove").hinted(
                "--unreachable, --older-than 30d or --remote URL; several must all hold. --dry-run only reports what would be removed",
            ),
        );
    }
    let before = disk_bytes(&paths.cache);
    let removed = if args.dry_run {
        let snapshot = snapshot(&paths.cache, console)?;
        choose(&snapshot, args, common, paths, console)?
    } else {
        prune(args, common, paths, console)?
    };
    let disk = disk_bytes(&paths.cache);
    let totals = EntryTotals::of(&removed);
    let fields = json!({
        "freed": (!args.dry_run).then(|| before.saturating_sub(disk)),
        "disk": disk,
        "dry_run": args.dry_run,
    });
    console.json(&with_fields(&totals, fields));
    report(&totals, args.dry_run, disk, console);
    Ok(Exit::Done)
}

fn prune(
    args: &PruneArgs,
    common: &Common,
    paths: &ProjectPaths,
    console: &Console,
) -> Result<Vec<Record>, Failure> {
    let store = open_store(&paths.cache, console)?;
    let chosen = choose(&store, args, common, paths, console)?;
    let keys: Vec<ActionKey> = chosen.iter().map(|record| record.key).collect();
    // The texts of what results were made from are kept.
    store.prune(&keys, &sources_of_labels(&paths.results))?;
    print_notices(&store, console);
    store.close()?;
    Ok(chosen)
}

fn choose<L: Lookup>(
    lookup: &L,
    args: &PruneArgs,
    common: &Common,
    paths: &ProjectPaths,
    console: &Console,
) -> Result<Vec<Record>, Failure> {
    let filter = CacheFilter {
        origin: args.origin.clone(),
        ..CacheFilter::default()
    };
    let mut records = lookup.records();
    records.retain(|record| {
        let meta = || lookup.meta(record);
        let is_named = || meta().is_ok_and(|meta| filter.admits_names(&meta));
        filter.admits(record) && (args.origin.remote.is_none() || is_named())
    });
    if args.unreachable {
        let kept = kept_by_labels(&paths.results, lookup)?;
        let pipeline = open_project(&open_request(common)?, console)?;
        let reachable = reachable(&pipeline, lookup).map_err(EvaluationError::from)?;
        warn_about_stale(&reachable, console);
        records.retain(|record| !kept.contains(&record.key) && !reachable.contains(record));
    }
    Ok(records)
}

/// The digests of the files that result sets were made from: `why` compares their texts with edited files. Unreadable
/// manifests are skipped.
fn sources_of_labels(results: &Path) -> HashSet<Digest> {
    let sets = all_sets(results).unwrap_or_default();
    sets.iter()
        .filter_map(|set| set.manifest().ok())
        .flat_map(|manifest| manifest.files.into_values())
        .collect()
}

/// The entries of all result sets, complete or not. A set whose run was killed does not know all of its entries: those
/// made since it began are kept too. An unreadable manifest stops the prune, because the entries of that result set
/// would be lost.
fn kept_by_labels(results: &Path, lookup: &impl Lookup) -> Result<HashSet<ActionKey>, Failure> {
    let mut keys = HashSet::new();
    let mut since: Option<i64> = None;
    for set in all_sets(results)? {
        let read = set
            .manifest()
            .and_then(|manifest| Ok((manifest, set.known_keys()?)));
        let (manifest, known) = read.map_err(|error| {
            Failure::error(format!("nothing was pruned: {}", chain(&error))).hinted(format!(
                "the entries of {} are unknown; move that folder away to prune them",
                set.path().display()
            ))
        })?;
        keys.extend(known);
        if manifest.outcome == Outcome::Running {
            // Without a readable time, all entries are kept.
            let began = moment(&manifest.started).map_or(0, |time| time.as_millisecond());
            since = Some(since.map_or(began, |known| known.min(began)));
        }
    }
    if let Some(since) = since {
        let recent = lookup
            .records()
            .into_iter()
            .filter(|record| record.summary.created.cast_signed() >= since);
        keys.extend(recent.map(|record| record.key));
    }
    Ok(keys)
}

/// Entries that depend on a stale action may become reachable again once it has run.
fn warn_about_stale(reachable: &ReachableEntries, console: &Console) {
    if reachable.stale > 0 {
        let stale = count(reachable.stale, "action");
        let text = "of the pipeline have no readable output in the cache; entries made from their earlier outputs count as \
                    unreachable. To keep those that turn out unchanged, use `compeval run` first";
        console.warn("note:", format_args!("{stale} {text}"));
    }
}

/// Says what is, or would be, removed, and the size of the cache now.
fn report(totals: &EntryTotals, is_dry: bool, disk: u64, console: &Console) {
    let disk = size(disk);
    if totals.entries == 0 {
        console.print(&format!(
            "Nothing to remove: no entry matches. The cache takes {disk} on disk."
        ));
        return;
    }
    let head = match is_dry {
        true => paint(TextStyle::Warning, "Would remove:"),
        false => paint(TextStyle::Good, "Removed:"),
    };
    console.print(&format!("{head} {totals}. The cache takes {disk} on disk."));
}
