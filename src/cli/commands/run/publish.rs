//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::compared::{changed_lines_in, compared_to_baseline};
use crate::action::{Digest, DigestBuilder};
use crate::cache::{CacheSnapshot, Lookup, Record, Store};
use crate::cli::commands::context::{compress_cell, output_digest, read_context, reading_task};
use crate::cli::failure::Failure;
use crate::pipeline::{CompressCell, LoadedFixture, Matrix, Pipeline};
use crate::plan::{CompressTask, FixtureTexts, Preparer, RawBody};
use crate::probe::Probe;
use crate::report::html::{self, ChunkCache, ContextKey, ContextText, PageContext, PageInput, PageSession, ReadRows};
use crate::report::markdown;
use crate::results::{
    Design, ListedRow, Manifest, ResultSet, ResultsFolder, SetError, Summary, WorstProbe, figures_digest, names,
    run_files, summarize, take_figures, worst_rows,
};
use base::threads::both;

/// Worst probes that a report shows.
const WORST: usize = 5;

pub(crate) struct PublishedResults {
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
    /// Why it was not compared with the baseline that the run was given.
    pub(crate) refused: Option<Failure>,
}

/// Writes every file of a label that is made from its rows. If these are few they are at hand, with the cache that has
/// their contexts; else they are read from the folder one by one, and the page carries the summary alone. The files of
/// runs are half of the work: they are written beside the others. `same_as` is a set with the very same rows and
/// contexts; `reference` is whether the reports show the published reference.
pub(crate) fn publish<C: Lookup + ChunkCache + Sync>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    manifest: Manifest,
    at_hand: Option<(Vec<ListedRow>, &C)>,
    same_as: Option<&ResultsFolder>,
    reference: bool,
) -> Result<PublishedResults, Failure> {
    let at_hand = at_hand.as_ref().map(|(rows, cache)| (rows.as_slice(), *cache));
    // What cannot be taken over, for whatever reason, is made.
    let taken = |earlier| take_figures(folder, earlier, &manifest, reference).ok().flatten();
    if let Some((summary, figures)) = same_as.filter(|_| at_hand.is_none()).and_then(taken) {
        write_page_of_many(pipeline, folder, &summary, &manifest, reference)?;
        let manifest = Manifest { figures: Some(figures), ..manifest };
        return Ok(PublishedResults { summary, manifest, refused: None });
    }
    make_files(pipeline, folder, manifest, at_hand, reference)
}

/// Writes the page of many rows, which has none of them.
fn write_page_of_many(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    summary: &Summary,
    manifest: &Manifest,
    reference: bool,
) -> Result<(), Failure> {
    let read_rows: &ReadRows<'_> = &|range| folder.rows_at(range);
    let input = page(pipeline, summary, manifest, (&[], read_rows));
    let page = html::render(&PageInput { reference, ..input }).map_err(SetError::from)?;
    Ok(folder.write(names::HTML, page)?)
}

fn make_files<C: Lookup + ChunkCache + Sync>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    manifest: Manifest,
    at_hand: Option<(&[ListedRow], &C)>,
    reference: bool,
) -> Result<PublishedResults, Failure> {
    let (rows, cache) = at_hand.unzip();
    let design = manifest.design.clone();
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let (found, summed_up) = both(
        || at_hand.map_or_else(BTreeMap::new, |(rows, cache)| find_contexts(rows, &design, preparer, cache)),
        || {
            let set = gather(folder, manifest, rows)?;
            let lines = changed_lines_in(cache);
            let (comparison, refused) = match compared_to_baseline(pipeline, &set, &lines) {
                Ok(comparison) => (comparison, None),
                Err(refusal) => (None, Some(refusal)),
            };
            let summary = summarize(&set, comparison);
            Ok::<_, Failure>((set, summary, refused))
        },
    );
    let (set, summary, refused) = summed_up?;
    let (run_files, others) = both(
        || write_run_files(folder, &set),
        || {
            write_figures(folder, &set, &summary, rows, reference)?;
            let contexts = cache.map_or_else(BTreeMap::new, |cache| page_contexts(&found, preparer, cache));
            let chunks: &(dyn ChunkCache + Sync) = cache.map_or(&(), |cache| cache);
            let read_rows = |range: Range<usize>| folder.rows_at(range);
            let input = page(pipeline, &summary, &set.manifest, (rows.unwrap_or_default(), &read_rows));
            let page = html::render(&PageInput { contexts, chunks, reference, ..input }).map_err(SetError::from)?;
            Ok::<_, Failure>(folder.write(names::HTML, page)?)
        },
    );
    run_files?;
    others?;
    let manifest = set.manifest;
    // Few rows are read faster than what they were made into.
    let figures = if rows.is_none() { figures_digest(folder, &manifest, reference)? } else { None };
    Ok(PublishedResults { summary, manifest: Manifest { figures, ..manifest }, refused })
}

impl ChunkCache for Store {
    fn get_chunk(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    fn put_chunk(&self, name: Digest, chunk: &str) {
        self.keep_derived(name, chunk.as_bytes());
    }
}

impl ChunkCache for CacheSnapshot {
    fn get_chunk(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }
}

/// Writes summary and report.md.
fn write_figures(
    folder: &ResultsFolder,
    set: &ResultSet,
    summary: &Summary,
    rows: Option<&[ListedRow]>,
    reference: bool,
) -> Result<(), Failure> {
    folder.write_json(names::SUMMARY, summary)?;
    let worst = worst(folder, set.design(), rows)?;
    let text = markdown(summary, &set.manifest, &worst, reference);
    Ok(folder.write(names::MARKDOWN, text)?)
}

/// The worst probes; of their rows all is read.
fn worst(folder: &ResultsFolder, design: &Design, rows: Option<&[ListedRow]>) -> Result<Vec<WorstProbe>, SetError> {
    let places = match rows {
        Some(rows) => worst_rows(design, rows.iter().map(|listed| Ok::<_, SetError>(&listed.row)), WORST)?,
        None => worst_rows(design, folder.rows()?.scored(), WORST)?,
    };
    let rows = folder.rows_in(&places.iter().map(|(at, _)| *at).collect())?;
    Ok(places.iter().filter_map(|(at, score)| Some(WorstProbe::new(design, rows.get(at)?, *score))).collect())
}

pub(super) fn gather(
    folder: &ResultsFolder,
    manifest: Manifest,
    rows: Option<&[ListedRow]>,
) -> Result<ResultSet, Failure> {
    let set = match rows {
        Some(rows) => ResultSet::gather(manifest, rows.iter().map(|listed| Ok(&listed.row)))?,
        None => ResultSet::gather(manifest, folder.rows()?.scored().map(|row| row.map_err(SetError::from)))?,
    };
    Ok(set.with_compressions(folder)?)
}

fn write_run_files(folder: &ResultsFolder, set: &ResultSet) -> Result<(), Failure> {
    let mut written = HashSet::new();
    for file in run_files(set) {
        let path = folder.run_file(&file.fixture, file.run);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        folder.write_json(&name, &file)?;
        written.insert(path);
    }
    Ok(folder.remove_run_files(&written)?)
}

pub(super) fn page<'a>(
    pipeline: &'a Pipeline,
    summary: &'a Summary,
    manifest: &'a Manifest,
    rows: (&'a [ListedRow], &'a ReadRows<'a>),
) -> PageInput<'a> {
    let cells: u64 = summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let too_many = (rows.0.is_empty() && cells > 0).then(|| {
        format!("{cells} cells are too many for one page: its folder has them, and `compeval show` shows each.")
    });
    let mut page = PageInput {
        banks: banks(pipeline),
        sessions: sessions(pipeline, &manifest.design),
        ..PageInput::new(manifest, summary, &pipeline.rubric, rows)
    };
    page.notes.extend(too_many);
    page
}

pub(crate) fn banks(pipeline: &Pipeline) -> BTreeMap<&str, &[Probe]> {
    pipeline.fixtures.iter().map(|loaded| (loaded.name(), loaded.bank.probes.as_slice())).collect()
}

/// The sessions that are as they were when they were run.
pub(crate) fn sessions<'a>(pipeline: &'a Pipeline, design: &Design) -> BTreeMap<&'a str, PageSession<'a>> {
    let session = |loaded: &'a LoadedFixture| {
        let recorded = design.fixture(loaded.name())?.digests;
        let now = loaded.digests;
        let is_same = recorded.transcript == now.transcript && recorded.points == now.points;
        let mut digest = DigestBuilder::new("session");
        digest.field("transcript", now.transcript.0).field("points", now.points.0);
        let session = PageSession {
            digest: digest.finish(),
            messages: &loaded.fixture.messages,
            start: loaded.fixture.start(),
            points: &loaded.points,
        };
        is_same.then_some((loaded.name(), session))
    };
    pipeline.fixtures.iter().filter_map(session).collect()
}

/// A context in the cache. It holds no text of its fixture: those of all fixtures would be too much.
pub(crate) struct CachedContext {
    digest: Digest,
    cell: CompressCell,
    record: Record,
}

impl CachedContext {
    fn read<L: Lookup>(&self, preparer: Preparer<'_>, cache: &L) -> Option<ContextText> {
        let bytes = cache.body(&self.record).ok()?;
        let task = reading_task(preparer.pipeline(), self.cell)?;
        let text = read_context(preparer, task, RawBody { dialect: self.record.dialect, bytes: &bytes })?;
        Some(text.map_or(ContextText::Opaque, ContextText::Readable))
    }
}

/// The contexts of `rows` that are still in the cache. Each row names the key of its context, so the matrix is not walked
/// a second time.
pub(crate) fn find_contexts<L: Lookup>(
    rows: &[ListedRow],
    design: &Design,
    preparer: Preparer<'_>,
    cache: &L,
) -> BTreeMap<ContextKey, CachedContext> {
    let pipeline = preparer.pipeline();
    let mut contexts = BTreeMap::new();
    let mut tried = BTreeSet::new();
    // Rows of a fixture follow one another, and its texts are shared among them.
    let mut texts: Option<Rc<FixtureTexts>> = None;
    for ListedRow { row, .. } in rows {
        let place = (row.keys.compress, row.method.clone(), row.point);
        if !tried.insert(place.clone()) {
            continue;
        }
        let Some(cell) = compress_cell(pipeline, design, row) else { continue };
        let task = match texts.take().filter(|texts| texts.fixture() == cell.chain.fixture) {
            Some(texts) => Some(CompressTask::to_read(cell, texts)),
            None => reading_task(pipeline, cell),
        };
        let (Some(task), Some(method)) = (task, pipeline.methods.get(cell.chain.method.0)) else { continue };
        texts = Some(task.texts.clone());
        let Some(record) = cache.find(&row.keys.compress) else { continue };
        if let Some(out) = output_digest(cache, preparer, &task, &record) {
            contexts.insert(place, CachedContext { digest: task.reference(method, out).digest(), cell, record });
        }
    }
    contexts
}

/// The contexts found, to be read when the page needs them.
pub(crate) fn page_contexts<'a, L: Lookup>(
    found: &'a BTreeMap<ContextKey, CachedContext>,
    preparer: Preparer<'a>,
    cache: &'a L,
) -> BTreeMap<ContextKey, PageContext<'a>> {
    let of = |found: &'a CachedContext| PageContext {
        digest: found.digest,
        read: Rc::new(move || found.read(preparer, cache)),
    };
    found.iter().map(|(place, found)| (place.clone(), of(found))).collect()
}
