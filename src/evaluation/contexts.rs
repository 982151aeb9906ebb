//! Contexts of recorded cells, read from the cache by the current pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::action::Digest;
use crate::entries::{BodyFormat, EntryRecord};
use crate::pipeline::{Chain, CompressCell, FixtureIx, MethodIx, Pipeline, PointIx};
use crate::plan::{
    CompressTask, FixtureTexts, Output, PARSER_VERSION, Preparer, Task, read_output,
};
use crate::report::html::{ContextKey, ContextText, PageContext};
use crate::results::{Design, ListedRow, Row};
use store::cache::{EntryStatus, Lookup, Record};

/// The compression of a row's context as a cell of the current pipeline. `None` if the transcript, its points, or the
/// strategy of the method changed since, because then the current pipeline would read the output wrongly.
pub fn compress_cell<Q>(
    pipeline: &Pipeline,
    design: &Design,
    row: &Row<Q>,
) -> Option<CompressCell> {
    let (fixture, loaded) = pipeline
        .fixtures
        .iter()
        .enumerate()
        .find(|(_, loaded)| loaded.name() == row.fixture)?;
    let recorded = design.fixture(&row.fixture)?.digests;
    let (method, current) = pipeline
        .methods
        .iter()
        .enumerate()
        .find(|(_, method)| *method.name.0 == *row.method)?;
    let earlier = design.method(&row.method)?;
    let is_same = recorded.transcript == loaded.digests.transcript
        && recorded.points == loaded.digests.points
        && earlier.strategy == current.strategy.name();
    let point = PointIx(usize::try_from(row.point).ok()?.checked_sub(1)?);
    let chain = Chain {
        fixture: FixtureIx(fixture),
        method: MethodIx(method),
        run: row.run,
        variant: None,
    };
    (is_same && point.0 < loaded.points.len()).then_some(CompressCell { chain, point })
}

/// The task of a cell, with everything that is needed to read its output.
pub fn reading_task(pipeline: &Pipeline, cell: CompressCell) -> Option<CompressTask> {
    let loaded = pipeline.fixtures.get(cell.chain.fixture.0)?;
    Some(CompressTask::to_read(
        cell,
        Rc::new(FixtureTexts::new(cell.chain.fixture, loaded)),
    ))
}

/// The text of a context; the inner `None` is a context that only its provider can read.
pub fn read_context(
    preparer: Preparer<'_>,
    task: CompressTask,
    format: BodyFormat,
    body: &[u8],
) -> Option<Option<String>> {
    match read_output(&preparer, &Task::Compress(task), format, body).ok()? {
        Output::Context(compressed) => Some(compressed.context.text().map(|text| text.to_string())),
        _ => None,
    }
}

/// The digest of a recorded output. The output is read again if it was never read, or if it was read by older rules.
fn output_digest<L: Lookup>(
    cache: &L,
    preparer: Preparer<'_>,
    task: &CompressTask,
    record: &Record,
) -> Option<Digest> {
    match record.status {
        EntryStatus::Output {
            out,
            parser: PARSER_VERSION,
            ..
        } => Some(out),
        EntryStatus::Unparsed | EntryStatus::Output { .. } => {
            let (task, body) = (Task::Compress(task.clone()), cache.body(record).ok()?);
            Some(
                read_output(&preparer, &task, record.body_format(), &body)
                    .ok()?
                    .digest(),
            )
        }
        EntryStatus::Malformed { .. } | EntryStatus::Failed { .. } => None,
    }
}

/// A context in the cache. It has no texts of its fixture, because the texts of all fixtures would need too much
/// memory.
pub(super) struct CachedContext {
    digest: Digest,
    cell: CompressCell,
    record: Record,
}

impl CachedContext {
    fn read<L: Lookup>(&self, preparer: Preparer<'_>, cache: &L) -> Option<ContextText> {
        let body = cache.body(&self.record).ok()?;
        let task = reading_task(preparer.pipeline(), self.cell)?;
        let text = read_context(preparer, task, self.record.body_format(), &body)?;
        Some(text.map_or(ContextText::Opaque, ContextText::Readable))
    }
}

/// The contexts of `rows` that are still in the cache. Each row has the key of its context, so the matrix does not have
/// to be walked again.
pub(super) fn find_contexts<L: Lookup>(
    rows: &[ListedRow],
    design: &Design,
    preparer: Preparer<'_>,
    cache: &L,
) -> BTreeMap<ContextKey, CachedContext> {
    let pipeline = preparer.pipeline();
    let mut contexts = BTreeMap::new();
    let mut tried = BTreeSet::new();
    // The rows of a fixture are consecutive, so they share its texts.
    let mut texts: Option<Rc<FixtureTexts>> = None;
    for ListedRow { row, .. } in rows {
        let place = (row.keys.compress, row.method.clone(), row.point);
        if !tried.insert(place.clone()) {
            continue;
        }
        let Some(cell) = compress_cell(pipeline, design, row) else {
            continue;
        };
        let task = match texts
            .take()
            .filter(|texts| texts.fixture() == cell.chain.fixture)
        {
            Some(texts) => Some(CompressTask::to_read(cell, texts)),
            None => reading_task(pipeline, cell),
        };
        let (Some(task), Some(method)) = (task, pipeline.methods.get(cell.chain.method.0)) else {
            continue;
        };
        texts = Some(task.texts.clone());
        let Some(record) = cache.find(&row.keys.compress) else {
            continue;
        };
        if let Some(out) = output_digest(cache, preparer, &task, &record) {
            contexts.insert(
                place,
                CachedContext {
                    digest: task.reference(method, out).digest(),
                    cell,
                    record,
                },
            );
        }
    }
    contexts
}

/// The contexts for the page, which reads each of them only when it needs it.
pub(super) fn page_contexts<'a, L: Lookup>(
    found: &'a BTreeMap<ContextKey, CachedContext>,
    preparer: Preparer<'a>,
    cache: &'a L,
) -> BTreeMap<ContextKey, PageContext<'a>> {
    let contexts = found.iter().map(|(place, found)| {
        let context = PageContext {
            digest: found.digest,
            read: Rc::new(move || found.read(preparer, cache)),
        };
        (place.clone(), context)
    });
    contexts.collect()
}
