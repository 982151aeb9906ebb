//! `cache stats`: entries, size and cost by stage, model and age, and what the cache has saved.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde::Serialize;

use super::entry::{DAMAGED, empty_cache, model_of, model_words};
use crate::action::{ActionKey, Digest};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count, left, money, right, short, size};
use crate::cli::terminal::{Console, TextStyle};
use crate::entries::{EntryMeta, EntryRecord};
use crate::results::{Manifest, ResultsFolder, all_sets, labels};
use base::units::{Tokens, Usd, add_known};
use store::cache::{CacheSnapshot, DiskUsage, EntryHeader, Lookup, Record, now_ms};

/// Totals over entries. One unknown price makes `usd` unknown; `usd_known` is the sum of the known ones.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct EntryTotals {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Over the entries that report tokens; null if none does.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// Null if a price is unknown.
    pub(super) usd: Option<Usd>,
    pub(super) usd_known: Usd,
    /// Entries with an unknown price.
    pub(super) unpriced: u64,
}

impl Default for EntryTotals {
    fn default() -> EntryTotals {
        let nothing = Usd(0.0);
        EntryTotals {
            entries: 0,
            bytes: 0,
            input_tokens: None,
            output_tokens: None,
            usd: Some(nothing),
            usd_known: nothing,
            unpriced: 0,
        }
    }
}

impl EntryTotals {
    pub(super) fn add(&mut self, record: &Record, cost: Option<Usd>) {
        self.entries += 1;
        self.bytes += record.stored_bytes();
        self.input_tokens = add_reported(self.input_tokens, record.usage.input);
        self.output_tokens = add_reported(self.output_tokens, record.usage.output);
        self.usd = add_known(self.usd, cost);
        self.usd_known += cost.unwrap_or_default();
        self.unpriced += u64::from(cost.is_none());
    }

    /// The cost, with the number of unpriced entries.
    pub(super) fn money(&self) -> String {
        match self.unpriced {
            0 => money(self.usd),
            n if n == self.entries => money(None),
            n => format!("{} + {n} unpriced", money(Some(self.usd_known))),
        }
    }

    fn line(&self, name: &str, is_narrow: bool) -> String {
        let EntryTotals {
            entries,
            bytes,
            input_tokens,
            output_tokens,
            ..
        } = *self;
        let (size, money) = (size(bytes), self.money());
        if is_narrow {
            return format!("  {} {entries:>8} {size:>9}  {money}", left(name, 20));
        }
        let (input, output) = (short(input_tokens), short(output_tokens));
        format!(
            "  {} {entries:>8} {size:>9} {input:>10} {output:>10}  {money}",
            left(name, 26)
        )
    }
}

/// A sum of the tokens that were reported; `None` if none were.
fn add_reported(sum: Option<u64>, tokens: Option<Tokens>) -> Option<u64> {
    match tokens {
        None => sum,
        Some(tokens) => Some(sum.unwrap_or(0).saturating_add(tokens.0)),
    }
}

#[derive(Debug, Default, Serialize)]
struct StatsJson {
    total: EntryTotals,
    disk: DiskUsage,
    by_stage: BTreeMap<String, EntryTotals>,
    by_model: BTreeMap<String, EntryTotals>,
    by_age: Vec<AgeGroup>,
    /// What the last runs of the result sets did not pay; null if there are none.
    saved: Option<CacheSavings>,
}

#[derive(Debug, Serialize)]
struct AgeGroup {
    age: &'static str,
    #[serde(flatten)]
    sums: EntryTotals,
}

/// What was not paid again: a lower bound, because a result set records only its last run.
#[derive(Clone, Copy, Debug, Serialize)]
struct CacheSavings {
    /// The number of result sets.
    labels: u64,
    /// The outputs that the last run of each found in the cache.
    hits: u64,
    /// What they cost when they were made; null if a price is unknown.
    usd: Option<Usd>,
}

impl CacheSavings {
    fn describe(&self, console: &Console) -> String {
        let (sets, outputs) = (
            count(self.labels, Noun::ResultSet),
            count(self.hits, Noun::Output),
        );
        let cost = self.usd.map(|usd| {
            format!(
                ", which cost {} to make",
                console.paint(TextStyle::Good, &money(Some(usd)))
            )
        });
        let cost = cost.unwrap_or_default();
        format!(
            "\nIn their last runs, {sets} found {outputs} in the cache{cost}; earlier runs are not recorded."
        )
    }
}

type EntryCosts = HashMap<ActionKey, Option<Usd>>;

/// An age of entries as it is printed; JSON has the English name.
fn age_word(age: &'static str) -> &'static str {
    match age {
        "today" => "today",
        "this week" => "this week",
        "this month" => "this month",
        _ => "older",
    }
}

const AGES: [(&str, u64); 4] = [
    ("today", 1),
    ("this week", 7),
    ("this month", 30),
    ("older", u64::MAX),
];

pub(super) fn run(
    snapshot: &CacheSnapshot,
    results: &Path,
    console: &Console,
) -> Result<Exit, Failure> {
    let by_age = AGES
        .iter()
        .map(|(age, _)| AgeGroup {
            age,
            sums: EntryTotals::default(),
        })
        .collect();
    let mut stats = StatsJson {
        by_age,
        ..StatsJson::default()
    };
    let now = now_ms();
    let (mut costs, mut named) = (EntryCosts::new(), sources_of_labels(results));
    for record in snapshot.records() {
        let header = snapshot.header(&record).ok();
        named.extend(header.iter().flat_map(EntryHeader::texts));
        let meta = header.and_then(EntryMeta::from_header);
        let model = meta.map_or_else(|| DAMAGED.to_owned(), |meta| model_of(&meta));
        stats.total.add(&record, record.cost);
        stats
            .by_stage
            .entry(record.stage_name().to_owned())
            .or_default()
            .add(&record, record.cost);
        stats
            .by_model
            .entry(model)
            .or_default()
            .add(&record, record.cost);
        let days = now.saturating_sub(record.created) / 86_400_000;
        let place = AGES
            .iter()
            .position(|(_, limit)| days < *limit)
            .unwrap_or(AGES.len() - 1);
        if let Some(age) = stats.by_age.get_mut(place) {
            age.sums.add(&record, record.cost);
        }
        costs.insert(record.key, record.cost);
    }
    stats.by_age.retain(|age| age.sums.entries > 0);
    stats.disk = snapshot.disk_usage(&named);
    stats.saved = sum_savings(results, &costs, console);
    console.report(&stats, || console.print(&describe(&stats, console)));
    Ok(Exit::Done)
}

/// The digests of the files that result sets were made from: `why` compares their texts with edited files. Unreadable
/// manifests are skipped.
pub(super) fn sources_of_labels(results: &Path) -> HashSet<Digest> {
    let sets = all_sets(results).unwrap_or_default();
    sets.iter()
        .filter_map(|set| set.manifest().ok())
        .flat_map(|manifest| manifest.files.into_values())
        .collect()
}

fn sum_savings(results: &Path, costs: &EntryCosts, console: &Console) -> Option<CacheSavings> {
    let mut saved = CacheSavings {
        labels: 0,
        hits: 0,
        usd: Some(Usd(0.0)),
    };
    for label in labels(results).ok()? {
        let folder = ResultsFolder::new(results, &label);
        match folder
            .manifest()
            .and_then(|manifest| Ok((manifest, folder.keys()?)))
        {
            Ok((manifest, keys)) => {
                let hits: u64 = manifest.stages.values().map(|stage| stage.cached).sum();
                saved.labels += 1;
                saved.hits += hits;
                if hits > 0 {
                    saved.usd = add_known(saved.usd, not_paid(&manifest, &keys, costs));
                }
            }
            Err(error) => console.note(&console.labelled(TextStyle::Warning, "skipped:", error)),
        }
    }
    (saved.labels > 0).then_some(saved)
}

/// The cost of a result set's entries minus what its last run paid for them; `None` if either is unknown.
fn not_paid(manifest: &Manifest, keys: &BTreeSet<ActionKey>, costs: &EntryCosts) -> Option<Usd> {
    let worth = keys.iter().try_fold(0.0, |sum, key| {
        Some(sum + costs.get(key).copied().flatten()?.0)
    })?;
    let paid = manifest.usd?.0 - manifest.unused.usd?.0;
    Some(Usd((worth - paid).max(0.0)))
}

fn describe(stats: &StatsJson, console: &Console) -> String {
    if stats.total.entries == 0 {
        return empty_cache();
    }
    let is_narrow = console.is_narrow();

    let (name, tokens) = match is_narrow {
        true => (22, String::new()),
        false => (
            28,
            format!(" {} {}", right("tokens in", 10), right("tokens out", 10)),
        ),
    };
    let (entries, bytes) = (right("entries", 8), right("size", 9));
    let head = format!("{:<name$} {entries} {bytes}{tokens}  {}", "", "cost");
    let mut text = vec![
        console.paint(TextStyle::Strong, &head),
        stats.total.line("all", is_narrow),
    ];
    for (heading, groups) in [("by stage", &stats.by_stage), ("by model", &stats.by_model)] {
        text.push(console.paint(TextStyle::Dim, heading));
        text.extend(
            groups
                .iter()
                .map(|(name, sums)| sums.line(&model_words(name), is_narrow)),
        );
    }
    text.push(console.paint(TextStyle::Dim, "by age"));
    text.extend(
        stats
            .by_age
            .iter()
            .map(|age| age.sums.line(age_word(age.age), is_narrow)),
    );
    let DiskUsage {
        total,
        entries,
        derived,
        index,
        other,
    } = stats.disk;
    let [entries, derived, index, other] = [entries, derived, index, other].map(size);
    let on_disk = format!(
        "\nSize on disk: {} (entries {entries}; rows and report data, which runs derive again, {derived}; index {index}; \
         other {other}).",
        console.paint(TextStyle::Strong, &size(total))
    );
    text.push(console.prose(&on_disk));
    let saved = stats
        .saved
        .filter(|saved| saved.hits > 0)
        .map(|saved| console.prose(&saved.describe(console)));
    format!("{}{}", text.join("\n"), saved.unwrap_or_default())
}
