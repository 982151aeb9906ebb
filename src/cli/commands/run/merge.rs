//! `compeval merge`: combines the shards of a label into the results that one process makes from the same entries.
//!
//! 1. The shards are found and checked: one run, one assignment, each shard once.
//! 2. The entries that each shard's part of the matrix needs are copied into the project's cache, the lowest shard
//!    first. Existing entries stay.
//! 3. The matrix is run offline and published like any run. No request is sent, so a missing shard means missing cells.
//! 4. What the shards sent and paid is added up in the manifest.

use std::collections::BTreeMap;
use std::ops::Add;
use std::path::PathBuf;

use clap::Args;

use super::args::{ComparisonArgs, RunArgs};
use super::once::conclude;
use crate::action::StageName;
use crate::cache::{Layered, Store};
use crate::cli::args::{Common, OUTPUT, SelectArgs};
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::project::{given, open_snapshot, project_paths_of};
use crate::cli::screen::Screen;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{self, Ending, Event, Listening, Prepared, evaluate_prepared, open_with_store};
use crate::pipeline::Pipeline;
use crate::plan::reachable;
use crate::results::{
    Design, DesignChange, ForecastTotals, Label, Manifest, MergedShard, Outcome, ResultsFolder, ShardFolder, Unused,
    find_shards,
};
use crate::shard::{Assignment, Engine, Shard, ShardCoverage, ShardResult, collect};
use base::units::{Usage, Usd, add_known};

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The label that the shards were run with
    #[arg(value_name = "LABEL")]
    pub(crate) merged: String,
    /// Folders with shards, at any depth [default: those of this project]
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Replace results of another design; they become LABEL~1
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) comparison: ComparisonArgs,
}

impl MergeArgs {
    /// The run that the merge is.
    fn as_run(&self) -> Result<RunArgs, Failure> {
        if self.select.label.is_some() {
            return Err(Failure::input("merge takes the label as its first argument: compeval merge LABEL [DIR]..."));
        }
        if self.comparison.until_decided {
            return Err(Failure::input("merge has no fixtures to leave out: --until-decided belongs to run"));
        }
        if !self.select.refresh.is_empty() {
            return Err(Failure::input("merge asks no model, so there is nothing to --refresh"));
        }
        Ok(RunArgs {
            select: SelectArgs { label: Some(self.merged.clone()), ..self.select.clone() },
            replace: self.replace,
            comparison: self.comparison.clone(),
            offline: true,
            // Each shard has decided that for itself.
            allow_weak_judge: true,
            ..RunArgs::default()
        })
    }
}

pub(crate) fn merge(common: &Common, args: &MergeArgs, console: &Console) -> Result<Exit, Failure> {
    let run = args.as_run()?;
    let mut screen = Screen::new(console);
    let request = run.request(common, &screen, console)?;
    let mut show = |event: &Event<'_>| screen.on_event(event);
    let listening = Listening::new(&mut show);
    let prepare = || {
        let prepared = Prepared::new(request, &listening)?;
        let folders: Vec<PathBuf> = args.folders.iter().map(|folder| given(common, folder)).collect();
        let merge = Merge::of(&prepared, &folders)?;
        Ok::<_, Failure>((prepared, merge))
    };
    let cache = project_paths_of(common).ok().map(|paths| paths.cache);
    let ((prepared, mut merge), store) =
        open_with_store(cache.as_deref(), &listening, prepare, |(prepared, _)| prepared.cache())?;
    merge.copy_entries(&prepared.pipeline, &store, console)?;
    let complete = |manifest: &mut Manifest, ending| merge.complete(manifest, ending);
    let outcome = evaluate_prepared(prepared, store, complete, &listening)?;
    let exit = merge.print_unfinished(&outcome, console);
    conclude(outcome, exit, common, &run, console)
}

/// Shards that are merged.
struct Merge {
    label: Label,
    /// By number.
    shards: Vec<FoundShard>,
    assignment: Assignment,
    collected: ShardCoverage,
}

struct FoundShard {
    folder: ShardFolder,
    manifest: Manifest,
    shard: Shard,
}

impl Merge {
    /// Finds the shards of the label and checks that they belong together.
    fn of(prepared: &Prepared, folders: &[PathBuf]) -> Result<Merge, Failure> {
        let Prepared { pipeline, label, design, .. } = prepared;
        let own = [ShardFolder::all(&pipeline.results, label)];
        let folders = if folders.is_empty() { &own } else { folders };
        let mut shards = found(folders, label)?;
        shards.sort_by_key(|found| found.shard);
        let Some(first) = shards.first() else {
            let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            let message = format!("there are no shards of `{label}` in {}", places.join(", "));
            let hint = format!("compeval run --label {label} --shard 1/8   makes the first of 8");
            return Err(Failure::input(message).hinted(hint));
        };
        for found in &shards {
            check_design(found, design)?;
        }
        let assignment = Assignment::of(pipeline, first.shard.of());
        let sets: Vec<ShardResult> = shards.iter().filter_map(FoundShard::set).collect();
        let collected = collect(&sets, assignment.digest()).map_err(|error| Failure::input(error.to_string()))?;
        refuse_merged(prepared, &shards)?;
        Ok(Merge { label: label.clone(), shards, assignment, collected })
    }

    /// Copies what the shards need into the project's cache.
    fn copy_entries(&mut self, pipeline: &Pipeline, store: &Store, console: &Console) -> Result<(), Failure> {
        for found in &self.shards {
            let cache = open_snapshot(&found.folder.cache())?;
            for notice in cache.notices() {
                console.warn("cache:", format_args!("shard {}: {notice}", found.shard));
            }
            let part = Pipeline { part: Some(self.assignment.part(found.shard).chains), ..pipeline.clone() };
            let reached = reachable(&part, &Layered { upper: store, lower: &cache });
            let reached = reached.map_err(|error| Failure::input(chain(&error)))?;
            store.import_from_cache(&cache, &reached.keys)?;
            let lacks_entries = reached.stale > 0 && !self.collected.incomplete.contains(&found.shard);
            if lacks_entries {
                let text = format!(
                    "shard {} lacks {} of the entries that it needs: its cache is damaged, or was not copied whole",
                    found.shard, reached.stale
                );
                console.warn("warning:", text);
                self.collected.incomplete.push(found.shard);
            }
        }
        Ok(())
    }

    /// Adds to the manifest what the shards did.
    fn complete(&self, manifest: &mut Manifest, ending: Ending) {
        let shards: Vec<&Manifest> = self.shards.iter().map(|found| &found.manifest).collect();
        add_shards(manifest, &shards);
        if ending == Ending::Complete {
            manifest.failures.clear();
        } else if matches!(manifest.outcome, Outcome::Pending | Outcome::Complete) {
            manifest.outcome = Outcome::Incomplete;
        }
    }

    /// Says which shards are unfinished, and which judges failed in one. Returns the exit of the merge.
    fn print_unfinished(&self, outcome: &evaluation::Outcome, console: &Console) -> Exit {
        let mut exit = Exit::from(outcome.ending);
        if outcome.ending != Ending::Complete {
            self.print_shards(&self.collected.unfinished(), console);
            // The merge asks no model: what is pending in it is missing.
            exit = if exit == Exit::Pending { Exit::Incomplete } else { exit.and(Exit::Incomplete) };
        }
        let caveats = &outcome.manifest.caveats;
        if !caveats.weak_judges.is_empty() && !caveats.allow_weak_judge {
            console
                .error("judge:", format_args!("failed its self-test in a shard: {}", caveats.weak_judges.join(", ")));
            exit = exit.and(Exit::Error);
        }
        exit
    }

    fn print_shards(&self, unfinished: &[Shard], console: &Console) {
        let of = self.shards.first().map_or(0, |found| found.shard.of().get());
        let names =
            |shards: &[Shard]| shards.iter().map(|shard| shard.index().to_string()).collect::<Vec<_>>().join(", ");
        let ShardCoverage { missing, incomplete, engine } = &self.collected;
        if !missing.is_empty() {
            console.warn("incomplete:", format_args!("of {of} shards these are missing: {}", names(missing)));
        }
        if !incomplete.is_empty() {
            console.warn("incomplete:", format_args!("these shards have work left: {}", names(incomplete)));
        }
        let label = &self.label;
        if unfinished.is_empty() {
            let text = format!(
                "shards have different outputs of actions that they share; `compeval run --label {label}` asks for what \
                 depends on those that were left out"
            );
            console.warn("incomplete:", text);
        } else {
            let again = Engine::start_again(*engine, unfinished);
            let text = format!(
                "run them again ({again}), then merge; or run what is left in one process: compeval run --label {label}"
            );
            console.eprint(&console.labelled(TextStyle::Hint, "hint:", text));
        }
    }
}

impl FoundShard {
    fn set(&self) -> Option<ShardResult> {
        let is_complete = self.manifest.outcome == Outcome::Complete;
        Some(ShardResult { place: self.folder.path().display().to_string(), record: self.manifest.shard?, is_complete })
    }
}

/// The shards of a label in these folders. A folder that is named twice, or inside another one, counts once.
fn found(folders: &[PathBuf], label: &Label) -> Result<Vec<FoundShard>, Failure> {
    let mut all: BTreeMap<PathBuf, FoundShard> = BTreeMap::new();
    for folder in folders {
        if !folder.is_dir() && folders.len() > 1 {
            return Err(Failure::input(format!("there is no folder {}", folder.display())));
        }
        for (shard_folder, labels) in find_shards(folder)? {
            if !labels.contains(label) {
                continue;
            }
            let manifest = shard_folder.open(label)?.manifest()?;
            let Some(record) = manifest.shard else { continue };
            let path = shard_folder.path().canonicalize().unwrap_or_else(|_| shard_folder.path().to_owned());
            all.insert(path, FoundShard { folder: shard_folder, shard: record.shard, manifest });
        }
    }
    Ok(all.into_values().collect())
}

/// Refuses a shard that measured something else than this project does.
fn check_design(found: &FoundShard, design: &Design) -> Result<(), Failure> {
    if found.manifest.design == *design {
        return Ok(());
    }
    let DesignChange { conflicts, additions } = DesignChange::between(&found.manifest.design, design);
    let mut differences: Vec<String> = conflicts;
    differences.extend(additions.into_iter().map(|added| format!("the shard does not have {added}")));
    if differences.is_empty() {
        // Names and orders, which change nothing that was measured.
        return Ok(());
    }
    let list: String = differences.iter().map(|difference| format!("\n  - {difference}")).collect();
    let (shard, place) = (found.shard, found.folder.path().display());
    let message =
        format!("shard {shard} in {place} is of another design than this project is now; what differs:{list}");
    Err(Failure::input(message).hinted(
        "give merge the options that the shards were run with (--runs, --methods, --model and so on), or run the shards again",
    ))
}

/// Refuses to merge again what the label's results were merged from.
fn refuse_merged(prepared: &Prepared, shards: &[FoundShard]) -> Result<(), Failure> {
    let Prepared { pipeline, label, .. } = prepared;
    let Ok(published) = ResultsFolder::of(&pipeline.results, label).manifest() else { return Ok(()) };
    let merged: Vec<MergedShard> = shards.iter().filter_map(|found| MergedShard::of(&found.manifest)).collect();
    if published.outcome != Outcome::Complete || published.merged != merged {
        return Ok(());
    }
    let message = format!("the results `{label}` were merged from these shards already; nothing was changed");
    Err(Failure::input(message).hinted(format!("compeval report {label}   writes their reports again")))
}

/// What all shards sent and paid.
fn add_shards(manifest: &mut Manifest, shards: &[&Manifest]) {
    manifest.merged = shards.iter().filter_map(|shard| MergedShard::of(shard)).collect();
    // The merge itself sent nothing.
    (manifest.requests_sent, manifest.retries, manifest.rate_limited) = (0, 0, 0);
    (manifest.usage, manifest.usd) = (Usage::default(), Some(Usd(0.0)));
    manifest.unused = Unused { usd: Some(Usd(0.0)), ..Unused::default() };
    shards.iter().for_each(|shard| manifest.add_spending(shard));
    manifest.saved_by_prompt_cache = shards.iter().fold(Usd(0.0), |all, shard| all + shard.saved_by_prompt_cache);
    manifest.wall_s = shards.iter().map(|shard| shard.wall_s).fold(0.0, f64::max);
    if let Some(started) = shards.iter().map(|shard| &shard.started).min() {
        manifest.started.clone_from(started);
    }
    manifest.forecast = shards.iter().map(|shard| shard.forecast).reduce(both_forecasts).flatten();
    manifest.failures = shards.iter().flat_map(|shard| shard.failures.iter().cloned()).collect();
    for stage in StageName::OF_RUN {
        let executed: u64 =
            shards.iter().filter_map(|shard| shard.stages.get(&stage)).map(|counts| counts.executed).sum();
        if let Some(counts) = manifest.stages.get_mut(&stage) {
            let sent = shards.iter().filter_map(|shard| shard.stages.get(&stage)).map(|counts| counts.prompt_cache);
            counts.prompt_cache = sent.fold(counts.prompt_cache, Add::add);
            // Of an action that two shards executed one output stands.
            counts.executed = (counts.executed + executed).min(counts.executed + counts.cached);
            counts.cached = counts.actions.saturating_sub(counts.executed + counts.failed);
        }
    }
    let caveats = &mut manifest.caveats;
    caveats.offline = shards.iter().any(|shard| shard.caveats.offline);
    caveats.allow_weak_judge = shards.iter().any(|shard| shard.caveats.allow_weak_judge);
    caveats.allow_unproven |= shards.iter().any(|shard| shard.caveats.allow_unproven);
    for unqualified in shards.iter().flat_map(|shard| &shard.caveats.unqualified) {
        if !caveats.unqualified.contains(unqualified) {
            caveats.unqualified.push(unqualified.clone());
        }
    }
    for judge in shards.iter().flat_map(|shard| &shard.caveats.weak_judges) {
        if !caveats.weak_judges.contains(judge) {
            caveats.weak_judges.push(judge.clone());
        }
    }
}

fn both_forecasts(a: Option<ForecastTotals>, b: Option<ForecastTotals>) -> Option<ForecastTotals> {
    let (a, b) = (a?, b?);
    Some(ForecastTotals {
        requests: a.requests + b.requests,
        input_tokens: a.input_tokens + b.input_tokens,
        output_tokens: a.output_tokens + b.output_tokens,
        usd: add_known(a.usd, b.usd),
        seconds: a.seconds.max(b.seconds),
    })
}
