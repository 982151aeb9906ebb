//! What `why` explains: a judged cell, or one that failed, and the actions behind it, as recorded and as the current project
//! would run them.

use std::collections::{BTreeMap, HashMap};

use crate::action::{ActionKey, CellCoordinate, Place, Stage};
use crate::cli::commands::cell::{MissingCell, SelectedCell};
use crate::entries::{EntryLookup, EntryMeta, Refresh};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{
    Action, FailedAction, Frontier, PrepareError, Preparer, Reason, TaskOutcome, cached_outcome,
    difference, reason,
};
use crate::results::{Manifest, Row};
use store::cache::{CacheSnapshot, Lookup, Record};

/// One action of the chain.
pub(crate) struct ChainStep<'a> {
    pub(crate) place: ChainPlace,
    /// The recorded action; `None` if it is no longer known.
    pub(crate) key: Option<ActionKey>,
    pub(crate) entry: Option<(Record, EntryMeta)>,
    pub(crate) state: StepState,
    /// The failure, if this is the action that failed.
    pub(crate) failure: Option<&'a FailedAction>,
}

/// The state of an action in the current project, and what differs from the action that the score depends on.
pub(crate) enum StepState {
    /// Unchanged, and its output is cached.
    Cached,
    /// It would run.
    Stale(Reason),
    /// Its inputs changed, and the new version is cached; what changed is unknown if those of the recorded action are.
    Superseded(Option<Reason>),
    /// It waits for a stale action above it.
    Blocked,
    /// The current project does not have it.
    Absent,
}

/// A place of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChainPlace {
    pub(crate) stage: Stage,
    pub(crate) point: u32,
    /// The number of the step of an open-book answer, from 2.
    pub(crate) step: Option<u32>,
}

/// An action of the current project.
struct CurrentAction {
    action: Action,
    place: Place,
    /// The key of its output, if that is cached.
    cached: Option<ActionKey>,
}

/// The chain behind a cell: compressions up to its point, its answer, its grades. Without a pipeline, what was kept. Also
/// returns why the current project cannot make an action of the chain, if it cannot.
pub(crate) fn chain_of<'a>(
    snapshot: &CacheSnapshot,
    pipeline: Option<&Pipeline>,
    subject: &ExplainedCell<'a>,
) -> (Vec<ChainStep<'a>>, Option<PrepareError>) {
    let (now, fault) = pipeline
        .map(|pipeline| walk(snapshot, pipeline, &subject.place))
        .unwrap_or_default();
    let mut steps = Vec::new();
    let mut is_stale = false;
    for place in places(pipeline, subject) {
        let ChainPlace { stage, point, step } = place;
        let is_own = point == subject.place.point.0;
        let current = now.get(&place);
        let recorded = if is_own {
            subject.key_of(stage, step)
        } else {
            None
        };
        let key = recorded.or_else(|| latest(snapshot, stage, current?));
        let record = key.and_then(|key| snapshot.find(&key));
        let entry = record.and_then(|record| Some((record.clone(), snapshot.meta(&record).ok()?)));
        let state = match pipeline.zip(current) {
            Some((pipeline, now)) => {
                let meta = entry.as_ref().map(|(_, meta)| meta);
                state_of(snapshot, pipeline, now, key, meta)
            }
            None if is_stale => StepState::Blocked,
            None => StepState::Absent,
        };
        is_stale |= matches!(state, StepState::Stale(_));
        let failure = if is_own {
            subject.failure_in(stage, step)
        } else {
            None
        };
        steps.push(ChainStep {
            place,
            key,
            entry,
            state,
            failure,
        });
    }
    (steps, fault)
}

/// The places of the chain, in order.
fn places(pipeline: Option<&Pipeline>, subject: &ExplainedCell<'_>) -> Vec<ChainPlace> {
    let CellCoordinate {
        point: cell_point,
        run,
        ..
    } = subject.place;
    let matrix = pipeline.map(Matrix::new);
    let chain = matrix
        .as_ref()
        .and_then(|matrix| matrix.chains().find(|chain| chain.run == run));
    let before = matrix.iter().zip(chain).flat_map(|(matrix, chain)| {
        let keeps_state = matrix.keeps_state(chain.method);
        let points = matrix.compressions(chain).map(|cell| cell.point.number());
        points
            .filter(|point| keeps_state && *point < cell_point)
            .collect::<Vec<_>>()
    });
    let before = before.map(|point| ChainPlace {
        stage: Stage::Compress,
        point: point.0,
        step: None,
    });
    let stages = subject.stages().flat_map(|stage| {
        let steps = if stage == Stage::Answer {
            subject.answer_steps()
        } else {
            vec![None]
        };
        steps.into_iter().map(move |step| ChainPlace {
            stage,
            point: cell_point.0,
            step,
        })
    });
    before.chain(stages).collect()
}

/// The action behind a score if the results do not record it: the last one at its coordinate.
fn latest(snapshot: &CacheSnapshot, stage: Stage, now: &CurrentAction) -> Option<ActionKey> {
    now.cached
        .or_else(|| snapshot.latest(&now.place.digest(stage, now.action.repetition)))
}

/// Walks the part of the matrix that leads to the cell. Also returns why an action there cannot be made, if so.
fn walk(
    snapshot: &CacheSnapshot,
    pipeline: &Pipeline,
    cell: &CellCoordinate,
) -> (HashMap<ChainPlace, CurrentAction>, Option<PrepareError>) {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut frontier = Frontier::new(&preparer);
    let (mut found, mut fault, refresh) = (HashMap::new(), None, Refresh::default());
    while let Some(task) = frontier.next_ready() {
        let place = task.place(pipeline);
        let Some(at) = place.cell().filter(|place| leads_to(place, cell)) else {
            frontier.resolve(&task, TaskOutcome::Unresolved);
            continue;
        };
        let action = match preparer.prepare(&task) {
            Ok(action) => action,
            Err(error) => {
                fault.get_or_insert(error);
                frontier.resolve(&task, TaskOutcome::Unresolved);
                continue;
            }
        };
        let output = cached_outcome(snapshot, &preparer, &action, &refresh);
        let cached = output.as_ref().map(|(_, record)| record.key);
        let outcome = output.map_or(TaskOutcome::Unresolved, |(outcome, _)| outcome);
        frontier.resolve(&task, outcome);
        let of_chain = ChainPlace {
            stage: action.stage,
            point: at.point.0,
            step: at.step,
        };
        let current = CurrentAction {
            place,
            action,
            cached,
        };
        found.insert(of_chain, current);
    }
    (found, fault)
}

/// Whether a cell depends on what is at `place`.
fn leads_to(place: &CellCoordinate, cell: &CellCoordinate) -> bool {
    place.fixture == cell.fixture
        && place.method == cell.method
        && place.run == cell.run
        && place.variant == cell.variant
        && place.point <= cell.point
        && (place.probe.is_none() || place.probe == cell.probe)
        && (place.answerer.is_none() || place.answerer == cell.answerer)
        && (place.judge.is_none() || place.judge == cell.judge)
        && (place.answer_n.is_none() || place.answer_n == cell.answer_n)
        && (place.judge_n.is_none() || place.judge_n == cell.judge_n)
}

/// The state of an action, compared with the one that is recorded, whose `meta` may be lost while its output is not.
fn state_of(
    snapshot: &CacheSnapshot,
    pipeline: &Pipeline,
    now: &CurrentAction,
    key: Option<ActionKey>,
    meta: Option<&EntryMeta>,
) -> StepState {
    if now.cached.is_some() && key == now.cached {
        return StepState::Cached;
    }
    let changed = meta
        .filter(|_| key != Some(now.action.key))
        .map(|old| Reason::from(difference(&old.inputs, &now.action.inputs(pipeline))));
    if now.cached.is_some() {
        return StepState::Superseded(changed);
    }
    let current = || reason(snapshot, pipeline, &now.action, &Refresh::default());
    StepState::Stale(changed.unwrap_or_else(current))
}

/// A cell of a result set.
pub(crate) struct ExplainedCell<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) place: CellCoordinate,
    /// The actions before the one that answered, for an open-book answer. If it failed, their keys are not recorded.
    pub(crate) steps: Vec<Option<ActionKey>>,
    /// The keys of its actions, as far as the results record them.
    pub(crate) keys: BTreeMap<Stage, ActionKey>,
    /// The judged row; `None` where nothing was judged.
    pub(crate) row: Option<&'a Row>,
    /// What failed, if that is why nothing was judged.
    pub(crate) failure: Option<&'a FailedAction>,
}

impl<'a> ExplainedCell<'a> {
    pub(crate) fn overall(&self) -> Option<f64> {
        self.row.and_then(|row| row.overall)
    }

    /// The recorded action of a stage at its point, or of a step towards the answer.
    pub(crate) fn key_of(&self, stage: Stage, step: Option<u32>) -> Option<ActionKey> {
        let at = step.map_or(0, |step| step as usize - 1);
        match self.steps.get(at) {
            Some(key) if stage == Stage::Answer => *key,
            _ => self.keys.get(&stage).copied(),
        }
    }

    /// The numbers of the steps of the answer, the last of which is the answer itself; `None` for the first.
    pub(crate) fn answer_steps(&self) -> Vec<Option<u32>> {
        let later = (2..).take(self.steps.len());
        std::iter::once(None).chain(later.map(Some)).collect()
    }

    pub(crate) fn judged(selected: &'a SelectedCell) -> ExplainedCell<'a> {
        let row = &selected.row;
        let keys = [
            (Stage::Compress, row.keys.compress),
            (Stage::Answer, row.keys.answer),
            (Stage::Judge, row.keys.judge),
        ];
        let steps = row
            .open_book
            .iter()
            .flat_map(|open| &open.steps)
            .map(|step| Some(step.key))
            .collect();
        ExplainedCell {
            manifest: &selected.manifest,
            place: row.place(),
            keys: keys.into(),
            steps,
            row: Some(row),
            failure: None,
        }
    }

    /// The cell that failed; `None` where nothing did.
    pub(crate) fn failed(missing: &'a MissingCell) -> Option<ExplainedCell<'a>> {
        let failure = missing.failure.as_ref()?;
        let place = failure.place.recorded_cell()?.clone();
        let keys = failure.key.map(|key| (failure.stage.stage(), key));
        let steps = vec![None; place.step.map_or(0, |step| step as usize - 1)];
        Some(ExplainedCell {
            manifest: &missing.manifest,
            place,
            keys: keys.into_iter().collect(),
            steps,
            row: None,
            failure: Some(failure),
        })
    }

    /// The stages at its point, in order, down to what failed.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        let last = self
            .failure
            .map_or(Stage::Judge, |failure| failure.stage.stage());
        [Stage::Compress, Stage::Answer, Stage::Judge]
            .into_iter()
            .filter(move |stage| *stage <= last)
    }

    /// What failed in a stage at its point, or in a step towards the answer.
    pub(crate) fn failure_in(&self, stage: Stage, step: Option<u32>) -> Option<&'a FailedAction> {
        self.failure
            .filter(|failure| failure.stage == stage.into() && self.place.step == step)
    }
}
