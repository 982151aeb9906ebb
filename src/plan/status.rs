//! The status of an action: its output is in the cache, or it is stale, and why.

use crate::action::{Digest, InputsDocument, ModelRequest, Repetition, Stage, Work};
use crate::entries::{BodyFormat, EntryCoordinate, EntryLookup, EntryMeta, EntryRecord, Refresh};
use crate::pipeline::{CellCoordinate, Pipeline, Place};
use base::units::Tokens;
use models::{Dialect, longest_reply};
use store::cache::{EntryStatus, Lookup, Record, RemovalReason};

use super::difference::{Reason, StaleCause, difference};
use super::prepare::{Action, Preparer};
use super::reading::{Output, PARSER_VERSION, read_output};
use super::task::{Resolved, Task};

/// Whether the output of an action is in the cache.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart where it is made, never stored"
)]
pub enum ActionStatus {
    Cached {
        resolved: Resolved,
        record: Record,
        /// The output, if it had to be read to compute its digest.
        reread: Option<Box<Output>>,
    },
    /// It must be executed; [`reason`] finds out why.
    Stale,
}

/// Looks for the output of an action.
pub fn look_up<L: Lookup>(
    lookup: &L,
    preparer: &Preparer<'_>,
    action: &Action,
    refresh: &Refresh,
) -> ActionStatus {
    // A request that failed hides no reply that serves it.
    let own = lookup
        .find(&action.key)
        .filter(|record| !record.is_failed());
    let record = own.or_else(|| under_lower_limit(lookup, preparer, action));
    match record.filter(|record| !refresh.replaces(record)) {
        Some(record) => status_of(lookup, preparer, &action.task, record),
        None => ActionStatus::Stale,
    }
}

/// The status by a record. A body that was not parsed, or was parsed by other rules, is read.
fn status_of<L: Lookup>(
    lookup: &L,
    preparer: &Preparer<'_>,
    task: &Task,
    record: Record,
) -> ActionStatus {
    let (out, reread) = match &record.status {
        EntryStatus::Output {
            out,
            parser: PARSER_VERSION,
            ..
        } => (*out, None),
        EntryStatus::Failed { .. }
        | EntryStatus::Malformed {
            parser: PARSER_VERSION,
            ..
        } => return ActionStatus::Stale,
        EntryStatus::Unparsed | EntryStatus::Output { .. } | EntryStatus::Malformed { .. } => {
            let Ok(body) = lookup.body(&record) else {
                return ActionStatus::Stale;
            };
            match read_output(preparer, task, record.body_format(), &body) {
                Ok(output) => (output.digest(), Some(Box::new(output))),
                Err(_) => return ActionStatus::Stale,
            }
        }
    };
    let resolved = Resolved {
        key: record.key,
        out,
        cost: record.cost,
        unchanged: false,
    };
    ActionStatus::Cached {
        resolved,
        record,
        reread,
    }
}

/// The last reply at the place of an action, if its request had the same inputs but a lower token limit, and the reply
/// ended by itself: a higher limit would not have changed it. The record keeps its key.
fn under_lower_limit<L: Lookup>(
    lookup: &L,
    preparer: &Preparer<'_>,
    action: &Action,
) -> Option<Record> {
    let request = action.request()?;
    let coordinate = cache_coordinate(&action.task.place(preparer.pipeline()), action.repetition);
    let key = lookup.latest(&coordinate.digest(action.stage))?;
    let record = lookup.find_usable(&key)?;
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return None;
    };
    let meta = lookup.meta(&record).ok()?;
    let old = match meta.inputs.input("max_output_tokens") {
        Some(old) => Some(Tokens(old.text.as_ref()?.parse().ok()?)),
        None => None,
    };
    let mut limited = ModelRequest::clone(request);
    limited.settings.max_output_tokens = old;
    if InputsDocument::key_of(action.stage, action.repetition, &Work::Ask(limited)) != key {
        return None;
    }
    // A request to Anthropic always has a limit: without a declared one, the length of the longest reply.
    let unlimited = match dialect {
        Dialect::Anthropic => longest_reply(dialect, &request.model, None),
        _ => Tokens(u64::MAX),
    };
    let (limit, old) = (
        request.settings.max_output_tokens.unwrap_or(unlimited),
        old.unwrap_or(unlimited),
    );
    if limit < old {
        return None;
    }
    let reply = models::read(
        dialect,
        request.operation,
        &lookup.body(&record).ok()?,
        None,
    )
    .ok()?;
    (!reply.truncated).then_some(record)
}

/// Why a stale action is stale: what has become of its output, or what has changed since the last action in the same
/// place.
pub fn reason<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
    refresh: &Refresh,
) -> Reason {
    if refresh.has(action.stage) {
        return StaleCause::Refreshed.into();
    }
    match lookup.find(&action.key).map(|record| record.status) {
        Some(EntryStatus::Failed { class, .. }) => return Reason::failed(&class),
        Some(EntryStatus::Malformed { .. }) => {
            return Reason::failed("the reply could not be used");
        }
        Some(EntryStatus::Unparsed | EntryStatus::Output { .. }) => {
            return StaleCause::Damaged.into();
        }
        None => {}
    }
    match lookup.removed(&action.key) {
        Some(RemovalReason::Pruned) => return StaleCause::Pruned.into(),
        Some(RemovalReason::Damaged) => return StaleCause::Damaged.into(),
        None => {}
    }
    let coordinate = cache_coordinate(&action.task.place(pipeline), action.repetition);
    match earlier(lookup, &coordinate, action.stage) {
        Some(old) => Reason::from(difference(&old.inputs, &action.inputs(pipeline))),
        None => StaleCause::NeverRun.into(),
    }
}

/// The last action made for a place. A place that was deterministic and is sampled now, or the other way round, is
/// the same place to a person.
fn earlier<L: Lookup>(lookup: &L, coordinate: &EntryCoordinate, stage: Stage) -> Option<EntryMeta> {
    let sampled = Repetition {
        compress: Some(1),
        answer: (stage >= Stage::Answer).then_some(1),
        judge: (stage >= Stage::Judge).then_some(1),
    };
    let other = if coordinate.repetition == Repetition::NONE {
        sampled
    } else {
        Repetition::NONE
    };
    let other = EntryCoordinate {
        repetition: other,
        ..coordinate.clone()
    };
    [coordinate, &other].into_iter().find_map(|place| {
        let key = lookup.latest(&place.digest(stage))?;
        lookup.meta(&lookup.find(&key)?).ok()
    })
}

/// The digest of the output of the last action made for a place.
pub fn earlier_output<L: Lookup>(
    lookup: &L,
    coordinate: &EntryCoordinate,
    action: &Action,
) -> Option<Digest> {
    let key = lookup.latest(&coordinate.digest(action.stage))?;
    match lookup.find(&key)?.status {
        EntryStatus::Output { out, .. } => Some(out),
        EntryStatus::Unparsed | EntryStatus::Malformed { .. } | EntryStatus::Failed { .. } => None,
    }
}

/// A place as the cache keeps it.
pub fn cache_coordinate(place: &Place, repetition: Repetition) -> EntryCoordinate {
    match place {
        Place::Cell(cell) => cell_coordinate(cell, repetition),
        Place::Selftest { judge, case } => EntryCoordinate {
            judge: Some(judge.clone()),
            probe: Some(format!("selftest/{case}")),
            repetition,
            ..EntryCoordinate::default()
        },
        Place::Regrading { judge, answer } => EntryCoordinate {
            judge: Some(judge.clone()),
            probe: Some(format!("regrade/{answer}")),
            repetition,
            ..EntryCoordinate::default()
        },
        Place::Generation {
            fixture,
            point,
            probe,
        } => EntryCoordinate {
            fixture: Some(fixture.clone()),
            point: Some(*point),
            probe: probe
                .as_ref()
                .map(|probe| format!("without-context/{probe}")),
            repetition,
            ..EntryCoordinate::default()
        },
    }
}

/// A cell as the cache keeps it. Runs of a deterministic action are one place.
pub fn cell_coordinate(place: &CellCoordinate, repetition: Repetition) -> EntryCoordinate {
    let answerer = place.answerer.as_ref().map(|name| match place.step {
        Some(step) => format!("{name}{STEP}{step}"),
        None => name.to_string(),
    });
    let probe = place.probe.as_deref().unwrap_or("context");
    let planted = place
        .variant
        .map(|number| format!("planted/{number}/{probe}"));
    EntryCoordinate {
        fixture: Some(place.fixture.to_string()),
        point: Some(place.point.0),
        method: Some(place.method.to_string()),
        probe: planted.or(place.probe.as_ref().map(ToString::to_string)),
        answerer,
        judge: place.judge.as_ref().map(ToString::to_string),
        repetition,
    }
}

/// Stands between the name of an answerer and the number of a step after the first.
const STEP: &str = " step ";

/// The answerer of a coordinate, and whether its action is a step after the first; `None` for a judgement.
pub(super) fn answerer_and_step(coordinate: &EntryCoordinate) -> Option<(&str, bool)> {
    let answerer = coordinate
        .answerer
        .as_deref()
        .filter(|_| coordinate.judge.is_none())?;
    Some(match answerer.rsplit_once(STEP) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => (name, true),
        _ => (answerer, false),
    })
}
