//! The forecast: what would run, what is cached, why each stale group is stale, and what it will take.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::difference::{Change, FindText, Reason, StaleCause, difference};
use super::estimate::{CostEstimate, Estimator, TooLong};
use super::frontier::Frontier;
use super::prepare::{Action, PrepareError};
use super::recovery::cached_outcome;
use super::sources::source_texts;
use super::status::reason;
use super::task::TaskOutcome;
use crate::action::{ActionKey, CellCoordinate, Digest, StageName};
use crate::entries::{EntryLookup, Refresh};
use crate::pipeline::{Matrix, MatrixCounts, Pipeline};
use models::Prices;
use store::cache::{Lookup, Record};

/// The cells and actions of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageForecast {
    pub cells: u64,
    /// Distinct actions whose key is known.
    pub actions: u64,
    /// Actions whose output is in the cache.
    pub cached: u64,
    /// Cached actions whose output is only in the remote: a run pulls it.
    #[serde(skip_serializing_if = "is_zero")]
    pub remote: u64,
    /// Actions in a batch that is open: paid for, or about to be.
    #[serde(skip_serializing_if = "is_zero")]
    pub submitted: u64,
    /// Actions to be executed.
    pub stale: u64,
    /// Cells that wait for a stale action above them: an upper bound, its output may turn out unchanged.
    pub blocked: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Actions that are stale for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonGroup {
    pub stage: StageName,
    /// The method; `None` for the judges' self-tests.
    pub method: Option<String>,
    pub why: StaleCause,
    /// What exactly changed: `file:line`, `setting old -> new`.
    pub changed: Vec<String>,
    pub actions: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Forecast {
    pub stages: BTreeMap<StageName, StageForecast>,
    /// Why stale actions are stale, largest group first.
    pub reasons: Vec<ReasonGroup>,
    /// What has changed since the baseline, cached or not, if there is one.
    pub since_baseline: Vec<ReasonGroup>,
    /// Prompts that are too long for their models.
    pub too_long: Vec<TooLong>,
    pub estimate: CostEstimate,
    /// Whether the range of its cost rests on assumed lengths of replies, and not only on replies in the cache.
    pub assumes_lengths: bool,
}

impl Forecast {
    /// Whether anything is to be executed.
    pub fn is_pending(&self) -> bool {
        self.stages
            .values()
            .any(|stage| stage.stale + stage.submitted + stage.blocked > 0)
    }
}

/// What a forecast assumes.
#[derive(Clone, Copy, Debug)]
pub struct Assumptions<'a> {
    /// Stages whose cached outputs are ignored.
    pub refresh: &'a Refresh,
    pub prices: &'a Prices,
    /// Actions of open batches.
    pub submitted: &'a HashSet<ActionKey>,
    /// Whether reasons are wanted, with the actions of a baseline to compare with; a run needs only the numbers.
    pub explained: Option<&'a HashMap<CellCoordinate, ActionKey>>,
}

/// Walks the matrix over what `lookup` has, without doing anything.
pub fn forecast<L: Lookup>(
    pipeline: &Pipeline,
    lookup: &L,
    assumptions: Assumptions<'_>,
) -> Result<Forecast, PrepareError> {
    let estimator = Estimator::new(pipeline, lookup, assumptions.prices);
    let forecast = Forecast::default();
    let mut walk = ForecastWalk {
        pipeline,
        lookup,
        assumptions,
        forecast,
        seen: HashSet::new(),
        groups: ReasonGroups::new(),
        since_baseline: ReasonGroups::new(),
        estimator,
    };
    walk.count_cells();
    walk.walk()?;
    Ok(walk.finish())
}

/// The number of actions by what they have in common: stage, method, reason, what changed.
type ReasonGroups = BTreeMap<(StageName, Option<String>, StaleCause, Vec<Change>), u64>;

/// Adds an action to its group.
fn add_to(groups: &mut ReasonGroups, stage: StageName, method: Option<String>, reason: Reason) {
    let Reason { cause, mut changes } = reason;
    // Each action has outputs of its own: what they are says nothing of a group.
    for change in changes.iter_mut().filter(|change| !change.is_of_lines()) {
        change.texts = None;
    }
    let group = (stage, method, cause, changes);
    *groups.entry(group).or_default() += 1;
}

struct ForecastWalk<'w, L> {
    pipeline: &'w Pipeline,
    lookup: &'w L,
    assumptions: Assumptions<'w>,
    forecast: Forecast,
    seen: HashSet<ActionKey>,
    groups: ReasonGroups,
    since_baseline: ReasonGroups,
    estimator: Estimator<'w, L>,
}

impl<L: Lookup> ForecastWalk<'_, L> {
    fn stage(&mut self, stage: StageName) -> &mut StageForecast {
        self.forecast.stages.entry(stage).or_default()
    }

    fn count_cells(&mut self) {
        for (stage, cells) in Matrix(self.pipeline).counts().by_stage() {
            self.stage(stage).cells = cells;
        }
    }

    fn walk(&mut self) -> Result<(), PrepareError> {
        let mut frontier = Frontier::new(self.pipeline);
        while let Some(task) = frontier.next_ready() {
            let action = Action::prepare(self.pipeline, &task)?;
            let outcome = self.count(&action);
            let blocked = frontier.resolve(&task, outcome);
            self.block(&action, blocked);
        }
        Ok(())
    }

    /// Counts an action. Returns its outcome, as far as the cache has it.
    fn count(&mut self, action: &Action) -> TaskOutcome {
        let stage = action.task.stage();
        self.stage(stage).cells += u64::from(stage == StageName::Selftest);
        let is_new = self.seen.insert(action.key);
        let refresh = self.assumptions.refresh;
        let cached = cached_outcome(self.lookup, self.pipeline, action, refresh);
        if is_new {
            let now = cached.as_ref().map(|(_, record)| record.key);
            self.count_since_baseline(action, now.unwrap_or(action.key));
        }
        if let Some((outcome, record)) = cached {
            if is_new {
                self.count_cached(stage, &record);
            }
            return outcome;
        }
        if self.assumptions.submitted.contains(&action.key) {
            let counts = self.stage(stage);
            counts.actions += u64::from(is_new);
            counts.submitted += u64::from(is_new);
        } else if is_new {
            self.count_stale(action);
            self.estimator.add_later_step(action);
        }
        TaskOutcome::Unresolved
    }

    fn count_cached(&mut self, stage: StageName, record: &Record) {
        let is_remote = self.lookup.is_remote(record);
        let counts = self.stage(stage);
        counts.actions += 1;
        counts.cached += 1;
        counts.remote += u64::from(is_remote);
    }

    fn count_stale(&mut self, action: &Action) {
        let (pipeline, stage) = (self.pipeline, action.task.stage());
        let place = action.task.place(pipeline);
        let method = place.cell().map(|cell| cell.method.to_string());
        let counts = self.stage(stage);
        counts.actions += 1;
        counts.stale += 1;
        if let Some(found) = self.estimator.add_stale(stage, method.as_ref(), action) {
            self.note_too_long(found);
        }
        if self.assumptions.explained.is_some() {
            let found = reason(self.lookup, pipeline, action, self.assumptions.refresh);
            add_to(&mut self.groups, stage, method, found);
        }
    }

    /// Counts what has changed since the action that the baseline has at this place; `now` is the key of the output, or of
    /// the action that has none yet.
    fn count_since_baseline(&mut self, action: &Action, now: ActionKey) {
        let pipeline = self.pipeline;
        let Some(baseline) = self.assumptions.explained.filter(|known| !known.is_empty()) else {
            return;
        };
        let place = action.task.place(pipeline);
        let before = place
            .cell()
            .and_then(|cell| Some((cell, *baseline.get(cell)?)));
        let Some((cell, before)) = before.filter(|(_, before)| *before != now) else {
            return;
        };
        let record = self.lookup.find(&before);
        if let Some(old) = record.and_then(|record| self.lookup.meta(&record).ok()) {
            let changes = difference(&old.inputs, &action.inputs(pipeline));
            let (stage, method) = (action.task.stage(), Some(cell.method.to_string()));
            add_to(&mut self.since_baseline, stage, method, changes.into());
        }
    }

    fn note_too_long(&mut self, found: TooLong) {
        let known = &mut self.forecast.too_long;
        let of_group = (found.stage, &found.method, &found.model);
        if let Some(group) = known
            .iter_mut()
            .find(|group| (group.stage, &group.method, &group.model) == of_group)
        {
            group.longest = group.longest.max(found.longest);
            group.actions += found.actions;
        } else {
            known.push(found);
        }
    }

    fn block(&mut self, action: &Action, blocked: MatrixCounts) {
        for (stage, count) in blocked.by_stage() {
            self.stage(stage).blocked += count;
            if count > 0 {
                self.estimator.add_blocked(stage, count, action);
            }
        }
    }

    fn finish(mut self) -> Forecast {
        let current: HashMap<Digest, &str> = source_texts(self.pipeline)
            .map(|source| (source.digest, source.text))
            .collect();
        let text = |digest: &Digest| {
            let known = current.get(digest).map(ToString::to_string);
            known.or_else(|| self.lookup.read_text(digest))
        };
        self.forecast.reasons = in_words(self.groups, &text);
        self.forecast.since_baseline = in_words(self.since_baseline, &text);
        Forecast {
            estimate: self.estimator.total,
            assumes_lengths: self.estimator.assumes_lengths,
            ..self.forecast
        }
    }
}

/// The groups in words, the largest first.
fn in_words(groups: ReasonGroups, text: FindText<'_>) -> Vec<ReasonGroup> {
    let groups = groups.into_iter();
    let groups = groups.map(|((stage, method, cause, changes), actions)| ReasonGroup {
        stage,
        method,
        why: cause,
        changed: Reason { cause, changes }.words(text),
        actions,
    });
    let mut groups: Vec<ReasonGroup> = groups.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.actions));
    groups
}
