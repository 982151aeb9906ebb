//! Whether the output of an action is in the cache, and why it is not.

use crate::action::{Digest, InputsDocument, ModelRequest, Place, Repetition, Stage, Work};
use crate::entries::{BodyFormat, EntryLookup, EntryMeta, EntryRecord, Refresh};
use crate::pipeline::Pipeline;
use base::units::Tokens;
use models::{Dialect, longest_reply};
use store::cache::{EntryStatus, Lookup, Record};

use super::difference::{Reason, StaleCause, difference};
use super::outputs::{Output, PARSER_VERSION, read_output};
use super::prepare::Action;
use super::task::{Resolved, Task};

/// An output that is in the cache.
#[derive(Clone, Debug)]
pub struct CachedOutput {
    pub resolved: Resolved,
    pub record: Record,
    /// The output, if it had to be read to compute its digest.
    pub reread: Option<Box<Output>>,
}

/// Looks for the output of an action; `None` if it must be executed, and [`reason`] finds out why.
pub fn look_up<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
    refresh: &Refresh,
) -> Option<CachedOutput> {
    // A request that failed hides no reply that serves it.
    let own = lookup
        .find(&action.key)
        .filter(|record| !record.is_failed());
    let record = own.or_else(|| under_lower_limit(lookup, pipeline, action));
    let record = record.filter(|record| !refresh.replaces(record))?;
    read_record(lookup, pipeline, &action.task, record)
}

/// The output by its record. A body that was not parsed, or was parsed by other rules, is read.
fn read_record<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    task: &Task,
    record: Record,
) -> Option<CachedOutput> {
    let (out, reread) = match &record.status {
        EntryStatus::Output {
            out,
            parser: PARSER_VERSION,
        } => (*out, None),
        EntryStatus::Failed { .. }
        | EntryStatus::Malformed {
            parser: PARSER_VERSION,
            ..
        } => return None,
        EntryStatus::Unparsed | EntryStatus::Output { .. } | EntryStatus::Malformed { .. } => {
            let body = lookup.body(&record).ok()?;
            let output = read_output(pipeline, task, record.body_format(), &body).ok()?;
            (output.digest(), Some(Box::new(output)))
        }
    };
    let resolved = Resolved {
        key: record.key,
        out,
        cost: record.summary.cost,
        unchanged: false,
    };
    Some(CachedOutput {
        resolved,
        record,
        reread,
    })
}

/// The last reply at the place of an action, if its request had the same inputs but a lower token limit, and the reply
/// ended by itself: a higher limit would not have changed it. The record keeps its key.
fn under_lower_limit<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
) -> Option<Record> {
    let request = action.request()?;
    let place = action.task.place(pipeline);
    let key = lookup.latest(&place.digest(action.stage, action.repetition))?;
    let record = lookup.find_usable(&key)?;
    let BodyFormat::Reply(dialect) = record.body_format() else {
        return None;
    };
    let meta = lookup.meta(&record).ok()?;
    let old = match meta.inputs.input("max_output_tokens") {
        Some(old) => Some(Tokens(old.text.as_ref()?.parse().ok()?)),
        None => None,
    };
    if old == request.settings.max_output_tokens {
        return None;
    }
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
    match earlier(lookup, &action.task.place(pipeline), action) {
        Some(old) => Reason::from(difference(&old.inputs, &action.inputs(pipeline))),
        None => StaleCause::NotCached.into(),
    }
}

/// The last action made for a place. A place that was deterministic and is sampled now, or the other way round, is
/// the same place to a person.
fn earlier<L: Lookup>(lookup: &L, place: &Place, action: &Action) -> Option<EntryMeta> {
    let stage = action.stage;
    let sampled = Repetition {
        compress: Some(1),
        answer: (stage >= Stage::Answer).then_some(1),
        judge: (stage >= Stage::Judge).then_some(1),
    };
    let other = match action.repetition {
        Repetition::NONE => sampled,
        _ => Repetition::NONE,
    };
    [action.repetition, other]
        .into_iter()
        .find_map(|repetition| {
            let key = lookup.latest(&place.digest(stage, repetition))?;
            lookup.meta(&lookup.find(&key)?).ok()
        })
}

/// The digest of the output of the last action made for a place.
pub fn earlier_output<L: Lookup>(lookup: &L, place: &Place, action: &Action) -> Option<Digest> {
    let key = lookup.latest(&place.digest(action.stage, action.repetition))?;
    match lookup.find(&key)?.status {
        EntryStatus::Output { out, .. } => Some(out),
        EntryStatus::Unparsed | EntryStatus::Malformed { .. } | EntryStatus::Failed { .. } => None,
    }
}
