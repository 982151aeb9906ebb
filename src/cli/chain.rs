//! The actions behind a cell, as they were and as today's project would have them.

use std::collections::{HashMap, HashSet};

use super::cell::Chosen;
use crate::action::{ActionKey, Stage};
use crate::cache::{Coordinate, Lookup, Meta, Record, Snapshot};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{
    Action, Explained, Explainer, Finding, Frontier, Hunk, Preparer, Reason, Settled, Task, Today, cache_coordinate,
    find, hunks, reason,
};
use crate::results::Row;

/// Lines around a difference.
const AROUND: usize = 1;

/// One action of the chain.
pub(crate) struct Step {
    pub(crate) stage: Stage,
    pub(crate) point: u32,
    /// The action that the score stands on; `None` where that is not known any more.
    pub(crate) key: Option<ActionKey>,
    /// What is kept of it.
    pub(crate) entry: Option<(Record, Meta)>,
    pub(crate) state: State,
}

/// Where an action stands today.
pub(crate) enum State {
    /// Nothing has changed, and its output is there.
    Cached,
    /// It would run.
    Stale(Differs),
    /// Something has changed since, and what it is now has been computed already.
    Superseded(Differs),
    /// It waits for a stale action above it.
    Blocked,
    /// Today's project does not have it.
    Absent,
}

/// What differs from the action that the score stands on.
pub(crate) struct Differs {
    pub(crate) explained: Explained,
    /// Differing lines, by file.
    pub(crate) files: Vec<(String, Vec<Hunk>)>,
}

/// An action as today's project would have it.
struct Now<'p> {
    action: Action,
    coordinate: Coordinate,
    is_cached: bool,
    today: Today<'p>,
}

/// The chain behind a cell: compressions up to its point, its answer, its grades. Without a pipeline, what was kept.
pub(crate) fn chain_of(snapshot: &Snapshot, pipeline: Option<&Pipeline>, chosen: &Chosen) -> Vec<Step> {
    let row = &chosen.row;
    let now = pipeline.map(|pipeline| walk(snapshot, pipeline, row)).unwrap_or_default();
    let explainer = Explainer::new(snapshot);
    let mut steps = Vec::new();
    let mut is_stale = false;
    for (stage, point) in places(pipeline, row) {
        let today = now.get(&(stage, point));
        let key = recorded(snapshot, row, stage, point, today);
        let record = key.and_then(|key| snapshot.find(&key));
        let entry = record.and_then(|record| Some((record.clone(), snapshot.meta(&record).ok()?)));
        let state = match today {
            Some(today) => state(snapshot, &explainer, today, key, entry.as_ref().map(|(_, meta)| meta)),
            None if is_stale => State::Blocked,
            None => State::Absent,
        };
        is_stale |= matches!(state, State::Stale(_));
        steps.push(Step { stage, point, key, entry, state });
    }
    steps
}

/// The places of the chain, in order.
fn places(pipeline: Option<&Pipeline>, row: &Row) -> Vec<(Stage, u32)> {
    let matrix = pipeline.map(Matrix::new);
    let chain = matrix.as_ref().and_then(|matrix| matrix.chains().find(|chain| chain.run == row.run));
    let before = matrix.iter().zip(chain).flat_map(|(matrix, chain)| {
        let keeps_state = matrix.keeps_state(chain.method);
        let points = matrix.compressions(chain).map(|cell| cell.point.number().0);
        points.filter(|point| keeps_state && *point < row.point).collect::<Vec<_>>()
    });
    let before: Vec<_> = before.map(|point| (Stage::Compress, point)).collect();
    let own = [Stage::Compress, Stage::Answer, Stage::Judge].map(|stage| (stage, row.point));
    before.into_iter().chain(own).collect()
}

/// The action that the score stands on. Of earlier points the row does not tell: there it is the last one made.
fn recorded(snapshot: &Snapshot, row: &Row, stage: Stage, point: u32, now: Option<&Now<'_>>) -> Option<ActionKey> {
    match stage {
        Stage::Compress if point != row.point => {
            let now = now?;
            if now.is_cached { Some(now.action.key) } else { snapshot.latest(&now.coordinate.digest(stage)) }
        }
        Stage::Compress => Some(row.keys.compress),
        Stage::Answer => Some(row.keys.answer),
        Stage::Judge => Some(row.keys.judge),
        Stage::Probes => None,
    }
}

/// Walks the part of the matrix that leads to the cell.
fn walk<'p>(snapshot: &Snapshot, pipeline: &'p Pipeline, row: &Row) -> HashMap<(Stage, u32), Now<'p>> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut frontier = Frontier::new(&preparer);
    let (mut found, refresh) = (HashMap::new(), HashSet::new());
    while let Some(task) = frontier.next_ready() {
        let prepared = if leads_to(&task, pipeline, row) { preparer.prepare(&task).ok() } else { None };
        let Some(action) = prepared else {
            frontier.settle(&task, Settled::Without);
            continue;
        };
        let place = task.place(pipeline);
        let settled = match find(snapshot, &preparer, &task, &action, &refresh) {
            Finding::Cached { kept, .. } => Settled::Kept(kept),
            Finding::Stale => Settled::Without,
        };
        frontier.settle(&task, settled);
        let coordinate = cache_coordinate(&place, action.replica);
        let is_cached = matches!(settled, Settled::Kept(_));
        let today = Today::of(pipeline, &task);
        found.insert((action.stage, place.point.0), Now { action, coordinate, is_cached, today });
    }
    found
}

fn leads_to(task: &Task, pipeline: &Pipeline, row: &Row) -> bool {
    let place = task.place(pipeline);
    let is = |name: &Option<std::sync::Arc<str>>, wanted: &str| name.as_deref().is_none_or(|name| name == wanted);
    *place.fixture == *row.fixture
        && *place.method == *row.method
        && place.run == row.run
        && place.point.0 <= row.point
        && is(&place.probe, &row.probe)
        && is(&place.answerer, &row.answerer)
        && is(&place.judge, &row.judge)
        && place.answer_n.is_none_or(|n| n == row.answer_n)
        && place.judge_n.is_none_or(|n| n == row.judge_n)
}

fn state(
    snapshot: &Snapshot,
    explainer: &Explainer<'_, Snapshot>,
    now: &Now<'_>,
    key: Option<ActionKey>,
    old: Option<&Meta>,
) -> State {
    if now.is_cached && key == Some(now.action.key) {
        return State::Cached;
    }
    let differs = match old.filter(|_| key != Some(now.action.key)) {
        Some(old) => {
            let reason = Reason::Changed(now.action.inputs().changes_since(&old.inputs));
            differs(snapshot, explainer, now, &reason, Some(old))
        }
        None => {
            let (reason, old) = reason(snapshot, &now.action, &now.coordinate, &HashSet::new());
            differs(snapshot, explainer, now, &reason, old.as_ref())
        }
    };
    if now.is_cached { State::Superseded(differs) } else { State::Stale(differs) }
}

fn differs(
    snapshot: &Snapshot,
    explainer: &Explainer<'_, Snapshot>,
    now: &Now<'_>,
    reason: &Reason,
    old: Option<&Meta>,
) -> Differs {
    let explained = explainer.explain(reason, old.map(|old| &old.sources), &now.today);
    let lines = |origin: &crate::plan::Origin<'_>| {
        let before = old?.sources.0.get(origin.name).filter(|before| before.digest != origin.digest)?;
        let text = snapshot.read_text(&before.digest)?;
        Some((origin.shown(), hunks(&text, origin.text?, AROUND)))
    };
    Differs { explained, files: now.today.origins().filter_map(lines).collect() }
}
