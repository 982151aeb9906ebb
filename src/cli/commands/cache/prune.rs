//! `cache prune`: takes entries out, says which and what they would cost to make again, and gives the space back.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::entry::model_of;
use super::filter::{CacheFilter, Filter, Names};
use super::limits::parse_size;
use super::reach::{Reached, kept_by_labels, reached, sources_of_labels};
use super::snapshot;
use super::stats::Sums;
use super::verify::entries_of;
use crate::action::Digest;
use crate::cache::{Lookup, Record, Snapshot, Store, disk_bytes};
use crate::cli::args::{Common, SelectArgs, StageArg};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, duration, size};
use crate::cli::project::{Opening, open_project, open_store, print_notices, read_project};
use crate::cli::terminal::{Console, Meaning};
use crate::pipeline::ProjectPaths;
use crate::provider::{ModelRef, Prices};
use crate::units::Usd;

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// What the current pipeline does not reach and no label in results/ names
    #[arg(long)]
    pub(crate) unreachable: bool,
    /// What is older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// The least recently used, until the cache takes no more than this on disk (2GB, 500MB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// What is of this stage
    #[arg(long)]
    pub(crate) stage: Option<StageArg>,
    /// What this model answered
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is to go.
struct Wanted {
    filter: Filter,
    unreachable: bool,
    /// Bytes that the cache may take on disk.
    most: Option<u64>,
}

/// What goes, grouped for people.
#[derive(Debug, Default, Serialize)]
struct Going {
    entries: u64,
    bytes: u64,
    /// Bytes by which the cache takes less of the disk; null where nothing was done.
    freed: Option<u64>,
    /// Bytes that it takes now.
    disk: u64,
    /// What it would cost to make again, at today's prices where none was known.
    again: Again,
    groups: Vec<Group>,
    dry_run: bool,
    /// Whether more may have to go: to a size, what the index will take is not known before.
    #[serde(skip)]
    is_least: bool,
    /// Why nothing goes, where that can be told.
    #[serde(skip)]
    why: Option<String>,
    #[serde(skip)]
    all: Sums,
}

#[derive(Debug, Default, Serialize)]
struct Again {
    usd: Option<Usd>,
    unpriced: u64,
    /// One after the other, as long as it took.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Group {
    stage: &'static str,
    model: String,
    #[serde(flatten)]
    sums: Sums,
}

pub(super) fn run(common: &Common, paths: &ProjectPaths, args: &PruneArgs, console: &Console) -> Result<Exit, Failure> {
    let wanted = Wanted::new(args)?;
    let prices = todays_prices(common);
    let before = disk_bytes(&paths.cache);
    let mut going = Going { disk: before, dry_run: args.dry_run, ..Going::default() };
    if args.dry_run {
        let snapshot = snapshot(&paths.cache, console)?;
        let choice = choose(&snapshot, &wanted, common, paths, console)?;
        going.plan(&snapshot, &prices, choice, wanted.most);
    } else {
        let store = open_store(&paths.cache, console)?;
        let choice = choose(&store, &wanted, common, paths, console)?;
        going.prune(&store, &prices, choice, &paths.cache, wanted.most)?;
        print_notices(&store, console);
        store.close()?;
        going.disk = disk_bytes(&paths.cache);
        going.freed = Some(before.saturating_sub(going.disk));
    }
    going.again = Again { usd: going.all.usd, unpriced: going.all.unpriced, ..going.again };
    tell(&going, before, console);
    Ok(Exit::Done)
}

/// The prices that making something again would have: the pipeline's where it can be read.
fn todays_prices(common: &Common) -> Prices {
    let opening = Opening { without_banks: true, ..Opening::default() };
    let project = read_project(common, &SelectArgs::default(), opening);
    project.map(|opened| Prices::new(opened.pipeline.prices)).unwrap_or_default()
}

impl Wanted {
    fn new(args: &PruneArgs) -> Result<Wanted, Failure> {
        let PruneArgs { unreachable, older_than, max_size, stage, model, dry_run: _ } = args;
        let flags = [*unreachable, older_than.is_some(), max_size.is_some(), stage.is_some(), model.is_some()];
        if !flags.contains(&true) {
            let message = "cache prune needs to be told what may go";
            return Err(Failure::input(message).hinted(
                "--unreachable, --older-than 30d, --max-size 2GB, --stage S or --model M; of several, all must hold. \
                 --dry-run only says what would go",
            ));
        }
        let most = max_size.as_deref().map(most).transpose()?;
        let filter = CacheFilter {
            stage: *stage,
            model: model.clone(),
            older_than: older_than.clone(),
            ..CacheFilter::default()
        };
        Ok(Wanted { filter: Filter::new(&filter)?, unreachable: *unreachable, most })
    }
}

/// What the folder of a cache without any entry takes, generously.
const EMPTY: u64 = 1_000_000;

fn most(max_size: &str) -> Result<u64, Failure> {
    match parse_size(max_size) {
        Ok(most) if most >= EMPTY => Ok(most),
        Ok(_) => Err(Failure::input(format!("--max-size: an empty cache alone takes up to {} on disk", size(EMPTY)))),
        Err(why) => Err(Failure::input(format!("--max-size: {why}"))),
    }
}

/// The entries that may go, the least recently used first.
struct Choice {
    records: Vec<Record>,
    /// Which names there are, where one was asked for that no entry has.
    advice: Option<String>,
    /// What result sets were made from: its texts stay.
    sources: HashSet<Digest>,
}

/// Chooses the entries that may go.
fn choose<L: Lookup>(
    lookup: &L,
    wanted: &Wanted,
    common: &Common,
    paths: &ProjectPaths,
    console: &Console,
) -> Result<Choice, Failure> {
    let mut records = lookup.records();
    records.retain(|record| wanted.filter.admits(record));
    let mut names = Names::default();
    if wanted.filter.names_anything() {
        records.retain(|record| {
            let meta = lookup.meta(record).ok().inspect(|meta| names.note(meta));
            meta.is_some_and(|meta| wanted.filter.admits_names(&meta))
        });
    }
    if wanted.unreachable {
        let kept = kept_by_labels(&paths.results)?;
        let pipeline = open_project(common, &SelectArgs::default(), Opening::default(), console)?;
        let reached = reached(&pipeline, lookup)?;
        warn_of_stale(&reached, console);
        records.retain(|record| !kept.contains(&record.key) && !reached.holds(&record.key, record.stage));
    }
    records.sort_by_cached_key(|record| (lookup.last_used(record), record.created, record.key));
    Ok(Choice { records, advice: wanted.filter.advice(&names), sources: sources_of_labels(&paths.results) })
}

/// What hangs on a stale action may be reached again once that has run: better told than lost.
fn warn_of_stale(reached: &Reached, console: &Console) {
    if reached.stale > 0 {
        let stale = count(reached.stale, "action");
        console.eprint(&format!(
            "{} {stale} of the pipeline have no output here; what was made from an earlier one counts as unreachable. \
             `compeval run` first keeps what turns out unchanged",
            console.paint(Meaning::Warning, "note:")
        ));
    }
}

impl Going {
    /// What would go: of a cache that is too large what runs make again, and then entries.
    fn plan(&mut self, snapshot: &Snapshot, prices: &Prices, choice: Choice, most: Option<u64>) {
        let named =
            snapshot.scan().filter_map(|entry| entry.meta.ok()).flat_map(|meta| meta.texts().collect::<Vec<_>>());
        let space = snapshot.space(&named.chain(choice.sources).collect());
        let left = if space.total > most.unwrap_or(0) { space.total - space.derived } else { space.total };
        self.is_least = most.is_some();
        let is_enough = || match left < space.total {
            true => format!("without rows and pages, which runs make again, it takes {} on disk.", size(left)),
            false => fits(left),
        };
        self.why = choice.advice.or_else(|| most.map(|_| is_enough()));
        let records = match most {
            Some(most) => choice.records.split_at(enough(&choice.records, space.entries, left, most)).0,
            None => &choice.records,
        };
        self.add(snapshot, prices, records);
    }

    /// Prunes; to a size in rounds, since what an entry takes beside itself is known only once it is gone.
    fn prune(
        &mut self,
        store: &Store,
        prices: &Prices,
        choice: Choice,
        folder: &Path,
        most: Option<u64>,
    ) -> Result<(), Failure> {
        let Some(most) = most else {
            self.why = choice.advice;
            return self.take(store, prices, &choice.records, &choice.sources);
        };
        if self.disk <= most {
            self.why = choice.advice.or_else(|| Some(fits(self.disk)));
            return Ok(());
        }
        // what runs make again, and what was replaced
        store.prune(&[], &choice.sources)?;
        let mut left = choice.records.as_slice();
        // when it closes the index writes a little more
        let aim = most - most / 50;
        loop {
            // an entry is not to go for bytes that the index takes for nothing
            store.shrink_index()?;
            let kept = store.records().iter().map(Record::stored_bytes).sum();
            let disk = disk_bytes(folder);
            let (round, rest) = left.split_at(enough(left, kept, disk, aim));
            if round.is_empty() {
                let is_enough =
                    (disk <= most).then(|| "rows and pages, which runs make again, were enough.".to_owned());
                self.why = choice.advice.or(is_enough);
                return Ok(());
            }
            // the round before has moved them
            let round: Vec<Record> = round.iter().filter_map(|record| store.find(&record.key)).collect();
            self.take(store, prices, &round, &choice.sources)?;
            left = rest;
        }
    }

    fn take(
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
            let model = meta.as_ref().map_or_else(|| "(damaged)".to_owned(), model_of);
            let asked = meta.and_then(|meta| ModelRef::parse(meta.requested_model.as_deref()?));
            let cost = record.cost.or_else(|| prices.cost(&asked?, &record.usage));
            self.all.add(record, cost);
            self.group(record.stage.name(), model).add(record, cost);
            self.again.seconds += record.latency_ms as f64 / 1000.0;
        }
        (self.entries, self.bytes) = (self.all.entries, self.all.bytes);
    }

    fn group(&mut self, stage: &'static str, model: String) -> &mut Sums {
        let place = self.groups.binary_search_by(|group| (group.stage, &group.model).cmp(&(stage, &model)));
        let place = place.unwrap_or_else(|place| {
            self.groups.insert(place, Group { stage, model, sums: Sums::default() });
            place
        });
        &mut self.groups[place].sums
    }
}

/// How many of `records` must go, so that a cache which takes `disk` bytes for `kept` bytes of entries takes `most`.
fn enough(records: &[Record], kept: u64, disk: u64, most: u64) -> usize {
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
    // not too few at a time: every round writes packs anew
    let least = records.len().div_ceil(50);
    needed.count().max(least)
}

fn fits(disk: u64) -> String {
    format!("the cache takes {} on disk.", size(disk))
}

fn tell(going: &Going, before: u64, console: &Console) {
    console.json(going);
    let is_changed = going.entries > 0 || going.disk != before;
    let disk = going.freed.filter(|_| is_changed).map(|_| format!(" {}", disk_told(before, going.disk)));
    let disk = disk.unwrap_or_default();
    if going.entries == 0 {
        let why = going.why.as_deref().unwrap_or("no entry is like that.");
        console.print(&format!("Nothing is to go: {why}{disk}"));
        return;
    }
    for Group { stage, model, sums } in &going.groups {
        let entries = entries_of(sums.entries);
        console.print(&format!("  {stage:<9} {model:<24} {entries:>14} {:>9}   {}", size(sums.bytes), sums.money()));
    }
    let head = match (going.dry_run, going.is_least) {
        (true, false) => console.paint(Meaning::Warning, "Would go:"),
        (true, true) => console.paint(Meaning::Warning, "Would go, at least:"),
        (false, _) => console.paint(Meaning::Good, "Gone:"),
    };
    let again = format!("{} and {} of calls to make again", going.all.money(), duration(going.again.seconds));
    console.print(&format!("{head} {}, {}: {again}.{disk}", entries_of(going.entries), size(going.bytes)));
}

/// What the cache takes now, and how that compares.
fn disk_told(before: u64, now: u64) -> String {
    let change = match now.cmp(&before) {
        Ordering::Less => format!("{} less than before", size(before - now)),
        Ordering::Equal => "as before".to_owned(),
        Ordering::Greater => format!("{} more than before", size(now - before)),
    };
    format!("The cache takes {} on disk, {change}.", size(now))
}
