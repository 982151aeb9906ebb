//! Contexts of recorded cells, read from the cache by the current pipeline.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::action::ActionKey;
use crate::entries::{BodyFormat, EntryRecord};
use crate::pipeline::{Chain, CompressCell, FixtureIx, MethodIx, Pipeline, PointIx};
use crate::plan::{CompressTask, FixtureTexts, Output, Preparer, Task, read_output};
use crate::report::html::{ContextKey, ContextText, ReadContext};
use crate::results::{Design, Row};
use store::cache::Lookup;

/// The compression of a row's context as a cell of the current pipeline. `None` if the transcript, its points, or the
/// strategy of the method changed since, because then the current pipeline would read the output wrongly.
pub fn compress_cell(pipeline: &Pipeline, design: &Design, row: &Row) -> Option<CompressCell> {
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

/// A context as it was recorded under this key, if it is still in the cache; the inner `None` is as in [`read_context`].
pub(super) fn recorded_context<L: Lookup>(
    preparer: Preparer<'_>,
    cell: CompressCell,
    key: &ActionKey,
    cache: &L,
) -> Option<Option<String>> {
    let record = cache.find(key)?;
    let body = cache.body(&record).ok()?;
    let task = reading_task(preparer.pipeline(), cell)?;
    read_context(preparer, task, record.body_format(), &body)
}

/// The contexts of `rows`, each read only when the page needs it: those of all fixtures would need too much memory.
pub(super) fn page_contexts<'a, L: Lookup>(
    rows: &[Row],
    design: &Design,
    preparer: Preparer<'a>,
    cache: &'a L,
) -> BTreeMap<ContextKey, ReadContext<'a>> {
    let mut contexts: BTreeMap<ContextKey, ReadContext<'a>> = BTreeMap::new();
    for row in rows {
        let key = row.keys.compress;
        let place = (key, row.method.clone(), row.point);
        if contexts.contains_key(&place) {
            continue;
        }
        if let Some(cell) = compress_cell(preparer.pipeline(), design, row) {
            let read = move || {
                let text = recorded_context(preparer, cell, &key, cache)?;
                Some(text.map_or(ContextText::Opaque, ContextText::Readable))
            };
            contexts.insert(place, Rc::new(read));
        }
    }
    contexts
}
