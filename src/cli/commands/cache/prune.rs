//! `cache prune`: removes entries, reports what making them again would cost, and frees disk space. With
//! `--unreachable` it keeps what the current pipeline reaches and what result sets refer to.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::entry::{DAMAGED, model_of, model_words, snapshot};
use super::filter::{CacheFilter, EntryFilter, EntryNames, parse_size};
use super::remote;
use super::stats::{EntryTotals, sources_of_labels};
use crate::action::{ActionKey, Digest, Stage};
use crate::cli::args::{Common, REMOTE, SelectArgs};
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::format::{Noun, count, duration, left, right, size};
use crate::cli::project::{ProjectOptions, open_project, open_store, print_notices, read_project};
use crate::cli::remote::RemoteArgs;
use crate::cli::terminal::{Console, TextStyle};
use crate::entries::{EntryLookup, EntryRecord};
use crate::pipeline::{Pipeline, ProjectPaths};
use crate::plan::{self, ReachableEntries};
use crate::results::{Outcome, all_sets};
use base::clock::moment;
use base::files::this_command;
use base::units::Usd;
use models::{ModelRef, Prices};
use store::cache::{CacheSnapshot, Lookup, Record, Store, disk_bytes, prune_without_room};

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Entries that the current pipeline does not reach and no label in results/ needs
    #[arg(long)]
    pub(crate) unreachable: bool,
    /// Entries older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// The least recently used entries, until the cache takes no more than this on disk (2GB, 500MB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Entries of this stage
    #[arg(long)]
    pub(crate) stage: Option<Stage>,
    /// Entries answered by this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Entries signed by this writer: a name or a public key
    #[arg(long)]
    pub(crate) writer: Option<String>,
    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Prune the shared cache instead: with --delete, what no label there needs is marked, and deleted 30 days later
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        default_missing_value = "",
        visible_alias = "shared",
        conflicts_with_all = ["unreachable", "older_than", "max_size", "stage", "model", "writer"],
        help_heading = REMOTE
    )]
    pub(crate) remote: Option<String>,
    /// With --remote: mark and delete instead of only counting
    #[arg(long, requires = "remote", conflicts_with = "dry_run", help_heading = REMOTE)]
    pub(crate) delete: bool,
}

/// Which entries to remove.
struct PruneCriteria {
    filter: EntryFilter,
    unreachable: bool,
    /// The largest size of the cache on disk, in bytes.
    most: Option<u64>,
}

/// What is, or would be, removed.
#[derive(Debug, Default, Serialize)]
struct PrunePlan {
    entries: u64,
    bytes: u64,
    /// Freed disk space in bytes; null for a dry run.
    freed: Option<u64>,
    /// Size of the cache on disk, in bytes.
    disk: u64,
    /// The cost of making the entries again, at today's prices where the paid price is unknown.
    again: RemakeCost,
    groups: Vec<PruneGroup>,
    dry_run: bool,
    /// Whether the real prune may remove more: the future size of the index is unknown.
    #[serde(skip)]
    is_least: bool,
    /// Why nothing is removed, if that is known.
    #[serde(skip)]
    why: Option<String>,
    #[serde(skip)]
    all: EntryTotals,
}

#[derive(Debug, Default, Serialize)]
struct RemakeCost {
    usd: Option<Usd>,
    unpriced: u64,
    /// The sum of the latencies.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct PruneGroup {
    stage: &'static str,
    model: String,
    #[serde(flatten)]
    sums: EntryTotals,
}

pub(super) fn run(
    common: &Common,
    paths: &ProjectPaths,
    args: &PruneArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    if let Some(url) = &args.remote {
        let remote = RemoteArgs {
            remote: Some(url.clone()).filter(|url| !url.is_empty()),
            ..RemoteArgs::default()
        };
        return remote::prune(paths, &remote, !args.delete, console);
    }
    let criteria = PruneCriteria::new(args)?;
    let prices = todays_prices(common);
    let before = disk_bytes(&paths.cache);
    let mut plan = PrunePlan {
        disk: before,
        dry_run: args.dry_run,
        ..PrunePlan::default()
    };
    if args.dry_run {
        let snapshot = snapshot(&paths.cache, console)?;
        let candidates = choose(&snapshot, &criteria, common, paths, console)?;
        plan.preview(&snapshot, &prices, candidates, criteria.most);
    } else {
        let pruned = prune(&mut plan, &criteria, &prices, common, paths, console);
        if pruned.as_ref().is_err_and(Failure::is_out_of_space) {
            let snapshot = snapshot(&paths.cache, console)?;
            let candidates = choose(&snapshot, &criteria, common, paths, console)?;
            let sources = candidates.sources.clone();
            plan = PrunePlan {
                disk: before,
                ..PrunePlan::default()
            };
            let keys = plan.preview(&snapshot, &prices, candidates, criteria.most);
            drop(snapshot);
            prune_without_room(&paths.cache, &this_command(), &keys, &sources)?;
        } else {
            pruned?;
        }
        plan.disk = disk_bytes(&paths.cache);
        plan.freed = Some(before.saturating_sub(plan.disk));
    }
    plan.again = RemakeCost {
        usd: plan.all.usd,
        unpriced: plan.all.unpriced,
        ..plan.again
    };
    report(&plan, before, console);
    Ok(Exit::Done)
}

/// Prunes by the store, which needs some room for its index and for the packs that it rewrites.
fn prune(
    plan: &mut PrunePlan,
    criteria: &PruneCriteria,
    prices: &Prices,
    common: &Common,
    paths: &ProjectPaths,
    console: &Console,
) -> Result<(), Failure> {
    let store = open_store(&paths.cache, console)?;
    let candidates = choose(&store, criteria, common, paths, console)?;
    plan.execute(&store, prices, candidates, &paths.cache, criteria.most)?;
    print_notices(&store, console);
    Ok(store.close()?)
}

/// Current prices: those of the pipeline, if it can be read.
fn todays_prices(common: &Common) -> Prices {
    let opening = ProjectOptions {
        without_banks: true,
        ..ProjectOptions::default()
    };
    let project = read_project(common, &SelectArgs::default(), opening);
    project
        .map(|opened| Prices::new(opened.pipeline.prices))
        .unwrap_or_default()
}

impl PruneCriteria {
    fn new(args: &PruneArgs) -> Result<PruneCriteria, Failure> {
        let PruneArgs {
            unreachable,
            older_than,
            max_size,
            stage,
            model,
            writer,
            dry_run: _,
            remote: _,
            delete: _,
        } = args;
        let has_filter =
            stage.is_some() || model.is_some() || writer.is_some() || older_than.is_some();
        if !(has_filter || *unreachable || max_size.is_some()) {
            let message = "cache prune needs a condition for what to remove";
            return Err(Failure::input(message).hinted(
                "--unreachable, --older-than 30d, --max-size 2GB, --stage S, --model M or --writer W; several must all hold. \
                 --dry-run only reports what would be removed",
            ));
        }
        let most = max_size.as_deref().map(parse_max_size).transpose()?;
        let filter = CacheFilter {
            stage: *stage,
            model: model.clone(),
            writer: writer.clone(),
            older_than: older_than.clone(),
            ..CacheFilter::default()
        };
        Ok(PruneCriteria {
            filter: EntryFilter::new(filter)?,
            unreachable: *unreachable,
            most,
        })
    }
}

/// An upper estimate of the size of a cache without entries.
const EMPTY: u64 = 1_000_000;

fn parse_max_size(max_size: &str) -> Result<u64, Failure> {
    match parse_size(max_size) {
        Ok(most) if most >= EMPTY => Ok(most),
        Ok(_) => Err(Failure::input(format!(
            "--max-size: even an empty cache takes up to {} on disk",
            size(EMPTY)
        ))),
        Err(why) => Err(Failure::input(format!("--max-size: {why}"))),
    }
}

/// The entries that may be removed, the least recently used first.
struct PruneCandidates {
    records: Vec<Record>,
    /// The nearest name, if a name was given that no entry has.
    advice: Option<String>,
    /// The sources of result sets: their texts are kept.
    sources: HashSet<Digest>,
}

fn choose<L: Lookup>(
    lookup: &L,
    criteria: &PruneCriteria,
    common: &Common,
    paths: &ProjectPaths,
    console: &Console,
) -> Result<PruneCandidates, Failure> {
    let mut records = lookup.records();
    records.retain(|record| criteria.filter.admits(record));
    let mut names = EntryNames::default();
    if criteria.filter.names_anything() {
        records.retain(|record| {
            let meta = lookup.meta(record).ok().inspect(|meta| names.add(meta));
            meta.is_some_and(|meta| criteria.filter.admits_names(&meta))
        });
    }
    if criteria.unreachable {
        let kept = kept_by_labels(&paths.results, lookup)?;
        let pipeline = open_project(
            common,
            &SelectArgs::default(),
            ProjectOptions::default(),
            console,
        )?;
        let reachable = reachable(&pipeline, lookup)?;
        warn_about_stale(&reachable, console);
        records.retain(|record| !kept.contains(&record.key) && !reachable.contains(record));
    }
    records.sort_by_cached_key(|record| (lookup.last_used(record), record.created, record.key));
    Ok(PruneCandidates {
        records,
        advice: criteria.filter.advice(&names),
        sources: sources_of_labels(&paths.results),
    })
}

/// Walks the pipeline over the cache, as a run would.
fn reachable<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> Result<ReachableEntries, Failure> {
    plan::reachable(pipeline, lookup).map_err(|error| Failure::input(chain(&error)))
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
            .filter(|record| record.created.cast_signed() >= since);
        keys.extend(recent.map(|record| record.key));
    }
    Ok(keys)
}

/// Entries that depend on a stale action may become reachable again once it has run.
fn warn_about_stale(reachable: &ReachableEntries, console: &Console) {
    if reachable.stale > 0 {
        let stale = count(reachable.stale, Noun::Action);
        let text = "of the pipeline have no readable output in the cache; entries made from their earlier outputs count as \
                    unreachable. To keep those that turn out unchanged, use `compeval run` first";
        console.warn("note:", format_args!("{stale} {text}"));
    }
}

impl PrunePlan {
    /// Computes what would be removed, and returns its keys: from a cache that is too large, first derived data, then
    /// entries.
    fn preview(
        &mut self,
        snapshot: &CacheSnapshot,
        prices: &Prices,
        candidates: PruneCandidates,
        most: Option<u64>,
    ) -> Vec<ActionKey> {
        let headers = snapshot
            .records()
            .into_iter()
            .filter_map(|record| snapshot.header(&record).ok());
        let named = headers.flat_map(|header| header.texts().collect::<Vec<_>>());
        let space = snapshot.disk_usage(&named.chain(candidates.sources).collect());
        let left = if space.total > most.unwrap_or(0) {
            space.total - space.derived
        } else {
            space.total
        };
        self.is_least = most.is_some();
        self.why = candidates.advice.or_else(|| {
            most.map(|_| match left < space.total {
                true => format!("without rows and report data, which runs derive again, the cache takes {} on disk.",
                    size(left)),
                false => disk_line(left),
            })
        });
        let records = match most {
            Some(most) => {
                candidates
                    .records
                    .split_at(number_to_remove(
                        &candidates.records,
                        space.entries,
                        left,
                        most,
                    ))
                    .0
            }
            None => &candidates.records,
        };
        self.add(snapshot, prices, records);
        records.iter().map(|record| record.key).collect()
    }

    /// Prunes. To reach a size it works in rounds, because the index space of an entry is only known once it is removed.
    fn execute(
        &mut self,
        store: &Store,
        prices: &Prices,
        candidates: PruneCandidates,
        folder: &Path,
        most: Option<u64>,
    ) -> Result<(), Failure> {
        let Some(most) = most else {
            self.why = candidates.advice;
            return self.remove(store, prices, &candidates.records, &candidates.sources);
        };
        if self.disk <= most {
            self.why = candidates.advice.or_else(|| Some(disk_line(self.disk)));
            return Ok(());
        }
        // removes derived data and replaced frames
        store.prune(&[], &candidates.sources)?;
        let mut left = candidates.records.as_slice();
        // the index writes a little more when it closes
        let aim = most - most / 50;
        loop {
            // no entry is removed because of unused space in the index
            store.shrink_index()?;
            let kept = store.records().iter().map(Record::stored_bytes).sum();
            let disk = disk_bytes(folder);
            let (round, rest) = left.split_at(number_to_remove(left, kept, disk, aim));
            if round.is_empty() {
                let is_enough = (disk <= most).then(|| {
                    "removing rows and report data, which runs derive again, was enough.".to_owned()
                });
                self.why = candidates.advice.or(is_enough);
                return Ok(());
            }
            // the previous round has moved them
            let round: Vec<Record> = round
                .iter()
                .filter_map(|record| store.find(&record.key))
                .collect();
            self.remove(store, prices, &round, &candidates.sources)?;
            left = rest;
        }
    }

    fn remove(
        &mut self,
        store: &Store,
        prices: &Prices,
        records: &[Record],
        sources: &HashSet<Digest>,
    ) -> Result<(), Failure> {
        self.add(store, prices, records);
        let keys: Vec<_> = records.iter().map(|record| record.key).collect();
        store.prune(&keys, sources)?;
        Ok(())
    }

    fn add<L: Lookup>(&mut self, lookup: &L, prices: &Prices, records: &[Record]) {
        for record in records {
            let meta = lookup.meta(record).ok();
            let model = meta.as_ref().map_or_else(|| DAMAGED.to_owned(), model_of);
            let asked = meta.and_then(|meta| ModelRef::parse(meta.requested_model.as_deref()?));
            let cost = record.cost.or_else(|| prices.cost(&asked?, &record.usage));
            self.all.add(record, cost);
            self.group(record.stage_name(), model).add(record, cost);
            self.again.seconds += record.latency_ms as f64 / 1000.0;
        }
        (self.entries, self.bytes) = (self.all.entries, self.all.bytes);
    }

    fn group(&mut self, stage: &'static str, model: String) -> &mut EntryTotals {
        let place = self
            .groups
            .binary_search_by(|group| (group.stage, &group.model).cmp(&(stage, &model)));
        let place = place.unwrap_or_else(|place| {
            self.groups.insert(
                place,
                PruneGroup {
                    stage,
                    model,
                    sums: EntryTotals::default(),
                },
            );
            place
        });
        &mut self.groups[place].sums
    }
}

/// How many of `records` to remove so that a cache that takes `disk` bytes for `kept` bytes of entries takes `most`.
fn number_to_remove(records: &[Record], kept: u64, disk: u64, most: u64) -> usize {
    if disk <= most {
        return 0;
    }
    let excess = (disk - most) as f64 * kept as f64 / disk as f64;
    let mut bytes = 0;
    let needed = records.iter().take_while(|record| {
        let is_needed = (bytes as f64) < excess;
        bytes += record.stored_bytes();
        is_needed
    });
    // not too few per round, because every round rewrites packs
    let least = records.len().div_ceil(50);
    needed.count().max(least)
}

fn disk_line(disk: u64) -> String {
    format!("the cache takes {} on disk.", size(disk))
}

fn report(plan: &PrunePlan, before: u64, console: &Console) {
    console.json(plan);
    let is_changed = plan.entries > 0 || plan.disk != before;
    let disk = plan
        .freed
        .filter(|_| is_changed)
        .map(|_| format!(" {}", disk_change(before, plan.disk)));
    let disk = disk.unwrap_or_default();
    if plan.entries == 0 {
        let why = plan.why.as_deref().unwrap_or("no entry matches.");
        console.print(&format!("Nothing to remove: {why}{disk}"));
        return;
    }
    for PruneGroup { stage, model, sums } in &plan.groups {
        let entries = count(sums.entries, Noun::Entry);
        console.print(&format!(
            "  {stage:<9} {} {} {:>9}   {}",
            left(&model_words(model), 24),
            right(&entries, 14),
            size(sums.bytes),
            sums.money()
        ));
    }
    let head = match (plan.dry_run, plan.is_least) {
        (true, false) => console.paint(TextStyle::Warning, "Would remove:"),
        (true, true) => console.paint(TextStyle::Warning, "Would remove, at least:"),
        (false, _) => console.paint(TextStyle::Good, "Removed:"),
    };
    let again = format!(
        "making them again would cost {} and take {} of calls",
        plan.all.money(),
        duration(plan.again.seconds)
    );
    console.print(&format!(
        "{head} {}, {}: {again}.{disk}",
        count(plan.entries, Noun::Entry),
        size(plan.bytes)
    ));
}

/// The size of the cache now, compared with before.
fn disk_change(before: u64, now: u64) -> String {
    let change = match now.cmp(&before) {
        Ordering::Less => format!("{} less than before", size(before - now)),
        Ordering::Equal => "as before".to_owned(),
        Ordering::Greater => format!("{} more than before", size(now - before)),
    };
    format!("The cache takes {} on disk, {change}.", size(now))
}
