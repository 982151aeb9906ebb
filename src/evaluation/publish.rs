//! The files of a label, from its rows: summary, report.md, report.html; and the contexts of recorded cells, read
//! from the cache by the current pipeline.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::event::EvaluationError;
use crate::action::ActionKey;
use crate::pipeline::{Chain, CompressCell, FixtureIx, MethodIx, Pipeline, PointIx};
use crate::plan::{CompressTask, FixtureTexts, Output, Task, read_entry};
use crate::probe::Probe;
use crate::report::html::{self, ContextKey, PageInput, PageSession, ReadContext};
use crate::report::{Block, TextStyle, headline, markdown};
use crate::results::{
    Comparison, Design, FolderError, ResultSet, ResultsFolder, Row, Summary, WorstProbe, names,
    summarize, worst_rows,
};
use store::cache::Lookup;

/// The maximum number of worst probes that a report shows.
const WORST: usize = 15;

/// Writes every file of a label that is made from its rows, with what it was compared with. If the rows are many, the page has
/// only the summary.
///
/// # Errors
/// Rows cannot be read, or a file cannot be written.
pub fn publish<C: Lookup>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    set: &ResultSet,
    comparison: Option<Comparison>,
    cache: &C,
) -> Result<Summary, EvaluationError> {
    let mut summary = summarize(set, comparison);
    summary.headline = Some(headline(&summary, &set.manifest));
    summary.worst = worst(folder, set)?;
    folder.write_json(names::SUMMARY, &summary)?;
    let text = markdown(&summary, &set.manifest);
    folder.write(names::MARKDOWN, text)?;
    write_page(pipeline, folder, set, &summary, cache)?;
    Ok(summary)
}

/// Writes the page. It has the cells and their contexts if they are few.
fn write_page<C: Lookup>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    set: &ResultSet,
    summary: &Summary,
    cache: &C,
) -> Result<(), EvaluationError> {
    let few = folder.few_rows()?;
    let rows = few.as_deref().unwrap_or_default();
    let name = |row: &Row| row.method.clone();
    let mut page = PageInput {
        banks: banks(pipeline),
        sessions: sessions(pipeline, set.design()),
        contexts: page_contexts(rows, set.design(), name, pipeline, cache),
        ..PageInput::new(&set.manifest, summary, &pipeline.rubric, rows)
    };
    if few.is_none() {
        let methods = summary.methods.values();
        let cells: u64 = methods.map(|method| method.cells.judged).sum();
        let text = format!(
            "{cells} cells are too many for one page: its folder has them, and `compeval show` shows each."
        );
        page.front.push(Block::Sentence(TextStyle::Plain, text));
    }
    Ok(folder.write(names::HTML, html::render(&page))?)
}

/// The worst probes. Only their rows are read with their texts.
fn worst(folder: &ResultsFolder, set: &ResultSet) -> Result<Vec<WorstProbe>, FolderError> {
    let places = worst_rows(set, WORST);
    let rows = folder.rows_in(&places.iter().map(|(at, _)| *at).collect())?;
    Ok(places
        .iter()
        .filter_map(|(at, score)| Some(WorstProbe::new(rows.get(at)?, *score)))
        .collect())
}

pub(super) fn banks(pipeline: &Pipeline) -> BTreeMap<&str, &[Probe]> {
    pipeline
        .fixtures
        .iter()
        .map(|loaded| (loaded.name(), loaded.bank.probes.as_slice()))
        .collect()
}

/// The sessions that did not change since the run.
pub(super) fn sessions<'a>(
    pipeline: &'a Pipeline,
    design: &Design,
) -> BTreeMap<&'a str, PageSession<'a>> {
    let sessions = pipeline.fixtures.iter().filter_map(|loaded| {
        let recorded = design.fixture(loaded.name())?.digests;
        let now = loaded.digests;
        let is_same = recorded.transcript == now.transcript && recorded.points == now.points;
        let session = PageSession {
            messages: &loaded.fixture.messages,
            start: loaded.fixture.start(),
            points: &loaded.points,
        };
        is_same.then_some((loaded.name(), session))
    });
    sessions.collect()
}

/// The compression of a row's context as a cell of the current pipeline. `None` if the transcript, its points, or the
/// strategy of the method changed since, because then the current pipeline would read the output wrongly.
pub fn compress_cell(pipeline: &Pipeline, design: &Design, row: &Row) -> Option<CompressCell> {
    let mut fixtures = pipeline.fixtures.iter().enumerate();
    let (fixture, loaded) = fixtures.find(|(_, loaded)| loaded.name() == row.fixture)?;
    let recorded = design.fixture(&row.fixture)?.digests;
    let mut methods = pipeline.methods.iter().enumerate();
    let (method, current) = methods.find(|(_, method)| *method.name.0 == *row.method)?;
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

/// A context as it was recorded under this key, if it is still in the cache and the current pipeline reads it; the inner
/// `None` is a context that only its provider can read.
pub fn recorded_context<L: Lookup>(
    pipeline: &Pipeline,
    cell: CompressCell,
    key: &ActionKey,
    cache: &L,
) -> Option<Option<String>> {
    let loaded = pipeline.fixtures.get(cell.chain.fixture.0)?;
    let texts = Rc::new(FixtureTexts::from_chain(cell.chain, loaded));
    let task = Task::Compress(CompressTask::to_read(cell, texts));
    match read_entry(cache, pipeline, &task, *key).ok()? {
        Output::Context(compressed) => Some(compressed.context.text().map(|text| text.to_string())),
        _ => None,
    }
}

/// The contexts of `rows`, each with the name that `name` gives the row's method, and read only when the page needs it:
/// those of all fixtures would need too much memory.
pub(super) fn page_contexts<'a, L: Lookup>(
    rows: &[Row],
    design: &Design,
    name: impl Fn(&Row) -> String,
    pipeline: &'a Pipeline,
    cache: &'a L,
) -> BTreeMap<ContextKey, ReadContext<'a>> {
    let mut contexts: BTreeMap<ContextKey, ReadContext<'a>> = BTreeMap::new();
    for row in rows {
        let key = row.keys.compress;
        let place = (key, name(row), row.point);
        if contexts.contains_key(&place) {
            continue;
        }
        if let Some(cell) = compress_cell(pipeline, design, row) {
            let read = move || recorded_context(pipeline, cell, &key, cache);
            contexts.insert(place, Rc::new(read));
        }
    }
    contexts
}
