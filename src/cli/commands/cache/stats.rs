//! `cache stats`: what is there, by stage, by model, by age, and what it has saved.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use super::entry::model_of;
use super::filter::now_ms;
use super::reach::sources_of_labels;
use crate::action::ActionKey;
use crate::cache::{Lookup, Meta, Record, Snapshot, Space};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, money, short, size};
use crate::cli::terminal::{Console, Meaning};
use crate::results::{Manifest, ResultsFolder, labels};
use crate::units::{Tokens, Usd, add_known};

/// Sums over some entries. An unknown price makes the sum unknown; what is known of it stands beside.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sums {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Of the entries that report any; null where none does.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// What they cost; null where a price is unknown.
    pub(super) usd: Option<Usd>,
    /// The part of it that is known.
    pub(super) usd_known: Usd,
    /// Entries of unknown price.
    pub(super) unpriced: u64,
}

impl Default for Sums {
    fn default() -> Sums {
        let nothing = Usd(0.0);
        Sums {
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

impl Sums {
    /// Adds an entry that cost so much.
    pub(super) fn add(&mut self, record: &Record, cost: Option<Usd>) {
        self.entries += 1;
        self.bytes += record.stored_bytes();
        let add = |sum: Option<u64>, tokens: Option<Tokens>| match (sum, tokens) {
            (sum, None) => sum,
            (sum, Some(tokens)) => Some(sum.unwrap_or(0).saturating_add(tokens.0)),
        };
        self.input_tokens = add(self.input_tokens, record.usage.input);
        self.output_tokens = add(self.output_tokens, record.usage.output);
        self.usd = add_known(self.usd, cost);
        self.usd_known += cost.unwrap_or_default();
        self.unpriced += u64::from(cost.is_none());
    }

    /// The money, with what is not known of it.
    pub(super) fn money(&self) -> String {
        match self.unpriced {
            0 => money(self.usd),
            n if n == self.entries => money(None),
            n => format!("{} + {n} unpriced", money(Some(self.usd_known))),
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct StatsJson {
    total: Sums,
    disk: Space,
    by_stage: BTreeMap<String, Sums>,
    by_model: BTreeMap<String, Sums>,
    by_age: Vec<AgeJson>,
    /// What the last runs of the results in `results/` did not have to pay; null where nothing tells.
    saved: Option<Saved>,
}

#[derive(Debug, Serialize)]
struct AgeJson {
    age: &'static str,
    #[serde(flatten)]
    sums: Sums,
}

/// What was not paid for again. Of a result set only its last run is recorded, so it is the least that was saved.
#[derive(Clone, Copy, Debug, Serialize)]
struct Saved {
    /// Result sets looked at.
    labels: u64,
    /// Outputs that the last run of each found in the cache.
    hits: u64,
    /// What those cost when they were made; null where a price is unknown.
    usd: Option<Usd>,
}

/// What each entry cost.
type Costs = HashMap<ActionKey, Option<Usd>>;

const AGES: [(&str, u64); 4] = [("today", 1), ("this week", 7), ("this month", 30), ("older", u64::MAX)];

pub(super) fn run(snapshot: &Snapshot, results: &Path, console: &Console) -> Result<Exit, Failure> {
    let by_age = AGES.iter().map(|(age, _)| AgeJson { age, sums: Sums::default() }).collect();
    let mut stats = StatsJson { by_age, ..StatsJson::default() };
    let now = now_ms();
    let (mut costs, mut named) = (Costs::new(), sources_of_labels(results));
    for record in snapshot.records() {
        let meta = snapshot.meta(&record).ok();
        named.extend(meta.iter().flat_map(Meta::texts));
        let model = meta.map_or_else(|| "(damaged)".to_owned(), |meta| model_of(&meta));
        stats.total.add(&record, record.cost);
        stats.by_stage.entry(record.stage.name().to_owned()).or_default().add(&record, record.cost);
        stats.by_model.entry(model).or_default().add(&record, record.cost);
        let days = now.saturating_sub(record.created) / 86_400_000;
        let place = AGES.iter().position(|(_, limit)| days < *limit).unwrap_or(AGES.len() - 1);
        if let Some(age) = stats.by_age.get_mut(place) {
            age.sums.add(&record, record.cost);
        }
        costs.insert(record.key, record.cost);
    }
    stats.by_age.retain(|age| age.sums.entries > 0);
    stats.disk = snapshot.space(&named);
    stats.saved = saved(results, &costs, console);
    console.json(&stats);
    if !console.is_json() {
        console.print(&told(&stats, console));
    }
    Ok(Exit::Done)
}

/// What the last run of each result set found in the cache.
fn saved(results: &Path, costs: &Costs, console: &Console) -> Option<Saved> {
    let mut saved = Saved { labels: 0, hits: 0, usd: Some(Usd(0.0)) };
    for label in labels(results).ok()? {
        match ResultsFolder::of(results, &label).manifest() {
            Ok(manifest) => {
                let hits: u64 = manifest.stages.values().map(|stage| stage.cached).sum();
                saved.labels += 1;
                saved.hits += hits;
                if hits > 0 {
                    saved.usd = add_known(saved.usd, not_paid(&manifest, costs));
                }
            }
            Err(error) => console.note(&format!("{} {error}", console.paint(Meaning::Warning, "skipped:"))),
        }
    }
    (saved.labels > 0).then_some(saved)
}

/// What a result set stands on, less what its last run paid for that; `None` where either is not known.
fn not_paid(manifest: &Manifest, costs: &Costs) -> Option<Usd> {
    let worth = manifest.keys.iter().try_fold(0.0, |sum, key| Some(sum + costs.get(key).copied().flatten()?.0))?;
    let paid = manifest.usd?.0 - manifest.unused.usd?.0;
    Some(Usd((worth - paid).max(0.0)))
}

fn told(stats: &StatsJson, console: &Console) -> String {
    if stats.total.entries == 0 {
        return "The cache is empty; `compeval run` fills it.".to_owned();
    }
    let head =
        format!("{:<28} {:>8} {:>9} {:>10} {:>10}  {}", "", "entries", "size", "tokens in", "tokens out", "cost");
    let mut text = vec![console.paint(Meaning::Strong, &head), line("all", &stats.total)];
    let groups = [
        ("by stage", stats.by_stage.iter().map(|(name, sums)| line(name, sums)).collect::<Vec<_>>()),
        ("by model", stats.by_model.iter().map(|(name, sums)| line(name, sums)).collect()),
        ("by age", stats.by_age.iter().map(|age| line(age.age, &age.sums)).collect()),
    ];
    for (heading, lines) in groups {
        text.push(console.paint(Meaning::Dim, heading));
        text.extend(lines);
    }
    let Space { total, entries, derived, index, other } = stats.disk;
    let [entries, derived, index, other] = [entries, derived, index, other].map(size);
    text.push(format!(
        "\nOn disk it takes {}: {entries} of entries, {derived} of rows and pages that runs make again by themselves, \
         {index} of index, {other} of the rest.",
        console.paint(Meaning::Strong, &size(total))
    ));
    let saved = stats.saved.filter(|saved| saved.hits > 0).map(|saved| {
        let (sets, outputs) = (count(saved.labels, "result set"), count(saved.hits, "output"));
        let cost =
            saved.usd.map(|usd| format!(", which cost {} to make", console.paint(Meaning::Good, &money(Some(usd)))));
        let cost = cost.unwrap_or_default();
        format!("\nAt their last run, {sets} found {outputs} here{cost}; earlier runs are not recorded.")
    });
    format!("{}{}", text.join("\n"), saved.unwrap_or_default())
}

fn line(name: &str, sums: &Sums) -> String {
    let Sums { entries, bytes, input_tokens, output_tokens, .. } = *sums;
    format!(
        "  {name:<26} {entries:>8} {:>9} {:>10} {:>10}  {}",
        size(bytes),
        short(input_tokens),
        short(output_tokens),
        sums.money()
    )
}
