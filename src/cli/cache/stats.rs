//! `cache stats`: what is there, by stage, by model, by age, and what it has saved.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use super::super::console::{Console, Meaning};
use super::super::failure::{Exit, Failure};
use super::super::words::{money, short, size};
use super::entry::model_of;
use super::filter::now_ms;
use super::verify::entries_of;
use crate::action::ActionKey;
use crate::cache::{Lookup, Meta, Record, Snapshot};
use crate::results::{ResultsFolder, labels};
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
    /// Adds an entry.
    pub(super) fn add(&mut self, record: &Record) {
        self.entries += 1;
        self.bytes += record.stored_bytes();
        let add = |sum: Option<u64>, tokens: Option<Tokens>| match (sum, tokens) {
            (sum, None) => sum,
            (sum, Some(tokens)) => Some(sum.unwrap_or(0).saturating_add(tokens.0)),
        };
        self.input_tokens = add(self.input_tokens, record.usage.input);
        self.output_tokens = add(self.output_tokens, record.usage.output);
        self.usd = add_known(self.usd, record.cost);
        self.usd_known += record.cost.unwrap_or_default();
        self.unpriced += u64::from(record.cost.is_none());
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
    by_stage: BTreeMap<String, Sums>,
    by_model: BTreeMap<String, Sums>,
    by_age: Vec<AgeJson>,
    /// What the results in `results/` did not have to pay, because others had; null where nothing tells.
    saved: Option<Saved>,
}

#[derive(Debug, Serialize)]
struct AgeJson {
    age: &'static str,
    #[serde(flatten)]
    sums: Sums,
}

/// What was not paid for again.
#[derive(Clone, Copy, Debug, Serialize)]
struct Saved {
    /// Result sets looked at.
    labels: u64,
    /// Times that a result set stands on an entry which another one stands on too.
    hits: u64,
    usd: Option<Usd>,
}

const AGES: [(&str, u64); 4] = [("today", 1), ("this week", 7), ("this month", 30), ("older", u64::MAX)];

pub(super) fn run(snapshot: &Snapshot, results: &Path, console: &Console) -> Result<Exit, Failure> {
    let by_age = AGES.iter().map(|(age, _)| AgeJson { age, sums: Sums::default() }).collect();
    let mut stats = StatsJson { by_age, ..StatsJson::default() };
    let now = now_ms();
    let mut costs = HashMap::new();
    for record in snapshot.records() {
        let model = snapshot.meta(&record).map_or_else(|_| "(damaged)".to_owned(), |meta: Meta| model_of(&meta));
        stats.total.add(&record);
        stats.by_stage.entry(record.stage.name().to_owned()).or_default().add(&record);
        stats.by_model.entry(model).or_default().add(&record);
        let days = now.saturating_sub(record.created) / 86_400_000;
        let place = AGES.iter().position(|(_, limit)| days < *limit).unwrap_or(AGES.len() - 1);
        if let Some(age) = stats.by_age.get_mut(place) {
            age.sums.add(&record);
        }
        costs.insert(record.key, record.cost);
    }
    stats.by_age.retain(|age| age.sums.entries > 0);
    stats.saved = saved(results, &costs, console);
    console.json(&stats);
    if !console.is_json() {
        console.say(&told(&stats, console));
    }
    Ok(Exit::Done)
}

/// What result sets share: all but the first that stand on an entry had it for nothing.
fn saved(results: &Path, costs: &HashMap<ActionKey, Option<Usd>>, console: &Console) -> Option<Saved> {
    let mut times: HashMap<ActionKey, u64> = HashMap::new();
    let mut seen = 0;
    for label in labels(results).ok()? {
        match ResultsFolder::of(results, &label).manifest() {
            Ok(manifest) => {
                seen += 1;
                manifest.keys.iter().for_each(|key| *times.entry(*key).or_default() += 1);
            }
            Err(error) => console.remark(&format!("{} {error}", console.paint(Meaning::Warning, "skipped:"))),
        }
    }
    let mut saved = Saved { labels: seen, hits: 0, usd: Some(Usd(0.0)) };
    for (key, times) in times {
        let hits = times.saturating_sub(1);
        saved.hits += hits;
        let cost = costs.get(&key).copied().flatten();
        if hits > 0 {
            saved.usd = add_known(saved.usd, cost.map(|Usd(cost)| Usd(cost * hits as f64)));
        }
    }
    (seen > 0).then_some(saved)
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
    let saved = stats.saved.filter(|saved| saved.hits > 0).map(|saved| {
        let share = format!("{} result sets share {}", saved.labels, entries_of(saved.hits));
        format!("\n\n{share}, which saved at least {}.", console.paint(Meaning::Good, &money(saved.usd)))
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
