//! `cache prune`: takes entries out, says which and what they would cost to make again, and gives the space back.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::args::{CacheFilter, Common, PruneArgs, SelectArgs};
use super::super::console::{Console, Meaning};
use super::super::failure::{Exit, Failure};
use super::super::project::{Opening, open_project, open_store, tell_notices};
use super::super::words::{count, duration, size};
use super::entry::model_of;
use super::filter::{Filter, Names};
use super::limits::parse_size;
use super::reach::{Reached, kept_by_labels, reached};
use super::snapshot;
use super::stats::Sums;
use super::verify::entries_of;
use crate::cache::{Lookup, Record};
use crate::pipeline::Places;

/// What is to go.
struct Wanted {
    filter: Filter,
    unreachable: bool,
    /// Bytes of entries to keep at most.
    most: Option<u64>,
}

/// What goes, grouped for people.
#[derive(Debug, Default, Serialize)]
struct Going {
    entries: u64,
    bytes: u64,
    /// Bytes by which the cache's files became smaller; null where nothing was done.
    freed: Option<u64>,
    /// What it would cost to make again.
    again: Again,
    groups: Vec<Group>,
    dry_run: bool,
    /// Which names there are, where one was asked for that no entry has.
    #[serde(skip)]
    advice: Option<String>,
    #[serde(skip)]
    all: Sums,
}

#[derive(Debug, Default, Serialize)]
struct Again {
    usd: Option<crate::units::Usd>,
    unpriced: u64,
    /// One after the other, as long as it took.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Group {
    stage: String,
    model: String,
    #[serde(flatten)]
    sums: Sums,
}

pub(super) fn run(common: &Common, places: &Places, args: &PruneArgs, console: &Console) -> Result<Exit, Failure> {
    let wanted = Wanted::new(args)?;
    if args.dry_run {
        let snapshot = snapshot(&places.cache, console)?;
        let choice = choose(&snapshot, &wanted, common, places, console)?;
        tell(&Going { dry_run: true, ..going(&snapshot, choice) }, console);
        return Ok(Exit::Done);
    }
    let store = open_store(&places.cache, console)?;
    let choice = choose(&store, &wanted, common, places, console)?;
    let keys: Vec<_> = choice.records.iter().map(|record| record.key).collect();
    let mut going = going(&store, choice);
    going.freed = Some(store.prune(&keys)?.freed);
    tell(&going, console);
    tell_notices(&store, console);
    store.close()?;
    Ok(Exit::Done)
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
        let most = max_size.as_deref().map(parse_size).transpose();
        let filter = CacheFilter {
            stage: *stage,
            model: model.clone(),
            older_than: older_than.clone(),
            ..CacheFilter::default()
        };
        Ok(Wanted {
            filter: Filter::new(&filter)?,
            unreachable: *unreachable,
            most: most.map_err(|why| Failure::input(format!("--max-size: {why}")))?,
        })
    }
}

/// The entries that go.
struct Choice {
    records: Vec<Record>,
    /// Which names there are, where one was asked for that no entry has.
    advice: Option<String>,
}

/// Chooses the entries that go.
fn choose<L: Lookup>(
    lookup: &L,
    wanted: &Wanted,
    common: &Common,
    places: &Places,
    console: &Console,
) -> Result<Choice, Failure> {
    let all = lookup.records();
    let total: u64 = all.iter().map(Record::stored_bytes).sum();
    let mut records: Vec<Record> = all.into_iter().filter(|record| wanted.filter.admits(record)).collect();
    let mut names = Names::default();
    if wanted.filter.names_anything() {
        records.retain(|record| {
            let meta = lookup.meta(record).ok().inspect(|meta| names.note(meta));
            meta.is_some_and(|meta| wanted.filter.admits_names(&meta))
        });
    }
    if wanted.unreachable {
        let kept = kept_by_labels(&places.results)?;
        let pipeline = open_project(common, &SelectArgs::default(), Opening::default(), console)?;
        let reached = reached(&pipeline, lookup)?;
        warn_of_stale(&reached, console);
        records.retain(|record| !kept.contains(&record.key) && !reached.holds(&record.key, record.stage));
    }
    if let Some(most) = wanted.most {
        records = least_recently_used(lookup, records, total.saturating_sub(most));
    }
    Ok(Choice { records, advice: wanted.filter.advice(&names) })
}

/// What hangs on a stale action may be reached again once that has run: better told than lost.
fn warn_of_stale(reached: &Reached, console: &Console) {
    if reached.stale > 0 {
        let stale = count(reached.stale, "action");
        console.tell(&format!(
            "{} {stale} of the pipeline have no output here; what was made from an earlier one counts as unreachable. \
             `compeval run` first keeps what turns out unchanged",
            console.paint(Meaning::Warning, "note:")
        ));
    }
}

/// The least recently used of `records`, until they make up `excess` bytes.
fn least_recently_used<L: Lookup>(lookup: &L, mut records: Vec<Record>, excess: u64) -> Vec<Record> {
    records.sort_by_cached_key(|record| (lookup.last_used(record), record.created, record.key));
    let mut bytes = 0;
    let needed = records.iter().take_while(|record| {
        let is_needed = bytes < excess;
        bytes += record.stored_bytes();
        is_needed
    });
    let needed = needed.count();
    records.truncate(needed);
    records
}

fn going<L: Lookup>(lookup: &L, Choice { records, advice }: Choice) -> Going {
    let mut groups: BTreeMap<(String, String), Sums> = BTreeMap::new();
    let mut all = Sums::default();
    for record in &records {
        let model = lookup.meta(record).map_or_else(|_| "(damaged)".to_owned(), |meta| model_of(&meta));
        groups.entry((record.stage.name().to_owned(), model)).or_default().add(record);
        all.add(record);
    }
    let seconds = records.iter().map(|record| record.latency_ms as f64 / 1000.0).sum();
    Going {
        entries: all.entries,
        bytes: all.bytes,
        freed: None,
        again: Again { usd: all.usd, unpriced: all.unpriced, seconds },
        groups: groups.into_iter().map(|((stage, model), sums)| Group { stage, model, sums }).collect(),
        dry_run: false,
        advice,
        all,
    }
}

fn tell(going: &Going, console: &Console) {
    console.json(going);
    if going.entries == 0 {
        let freed = going.freed.filter(|freed| *freed > 0);
        let freed = freed.map(|freed| format!(" The disk has {} more: what runs make again went.", size(freed)));
        let why = going.advice.as_deref().unwrap_or("no entry is like that.");
        console.say(&format!("Nothing is to go: {why}{}", freed.unwrap_or_default()));
        return;
    }
    for Group { stage, model, sums } in &going.groups {
        let entries = entries_of(sums.entries);
        console.say(&format!("  {stage:<9} {model:<24} {entries:>14} {:>9}   {}", size(sums.bytes), sums.money()));
    }
    let again = format!("{} and {} of calls to make again", going.all.money(), duration(going.again.seconds));
    let (entries, bytes) = (entries_of(going.entries), size(going.bytes));
    console.say(&match going.freed {
        None => format!("{} {entries}, {bytes}: {again}.", console.paint(Meaning::Warning, "Would go:")),
        Some(freed) => {
            let gone = console.paint(Meaning::Good, "Gone:");
            format!("{gone} {entries}, {bytes}: {again}. The disk has {} more.", size(freed))
        }
    });
}
