//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use crate::action::Digest;
use crate::cache::{Lookup, Record, Snapshot, Store};
use crate::cli::failure::{Failure, chain};
use crate::pipeline::{CompressCell, Matrix, Pipeline};
use crate::plan::{
    ActionStatus, Body, CompressTask, FixtureTexts, Frontier, Output, Preparer, Task, TaskOutcome, changed_places,
    look_up,
};
use crate::report::html::{self, ContextPlace, ContextText, PackShelf, PageContext, PageInput, WholeRows};
use crate::report::{ReportInput, markdown};
use crate::results::{
    ChangedLines, Comparison, ComparisonScope, Design, FolderError, ListedRow, Manifest, ResultSet, ResultsFolder,
    SetError, Side, Summary, Worst, compare, names, run_files, summarize, worst_rows,
};
use crate::threads::both;

/// Worst probes that a report shows.
const WORST: usize = 5;

/// What was published.
pub(crate) struct Published {
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
    /// Why it was not compared with the baseline that the run was given.
    pub(crate) refused: Option<Failure>,
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Failure {
        Failure::input(chain(&error))
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        Failure::input(chain(&error))
    }
}

/// Reads both sides of a comparison and compares them.
pub(crate) fn compare_sides(
    results: &Path,
    (a, b): (&str, &str),
    scope: ComparisonScope,
    lines: ChangedLines<'_>,
) -> Result<(ResultSet, Comparison), Failure> {
    let read = |text: &str| -> Result<(ResultSet, Option<String>), Failure> {
        let (folder, method) = ResultsFolder::open_side(results, text)?;
        Ok((ResultSet::read(&folder)?, method))
    };
    let ((a, a_method), (b, b_method)) = (read(a)?, read(b)?);
    let (judged, baseline) =
        (Side { set: &a, method: a_method.as_deref() }, Side { set: &b, method: b_method.as_deref() });
    let comparison = compare(judged, baseline, scope, lines).map_err(|error| Failure::input(error.to_string()))?;
    Ok((a, comparison))
}

/// Finds the lines in which texts that the cache has differ; without the cache or a text, the path alone.
pub(crate) fn changed_lines_in<C: Lookup>(cache: Option<&C>) -> impl Fn(&str, &Digest, &Digest) -> Vec<String> {
    move |path, before, after| {
        let text = |digest| cache.and_then(|cache| cache.read_text(digest));
        text(before)
            .zip(text(after))
            .map_or_else(|| vec![path.to_owned()], |(before, after)| changed_places(path, &before, &after))
    }
}

/// Writes every file of a label that is made from its rows. If these are few they are at hand, with the cache that has
/// their contexts; else they are read from the folder one by one, and the page carries the summary alone. The files of
/// runs are half of the work: they are written beside the others.
pub(crate) fn publish<C: Lookup + PackShelf + Sync>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    manifest: Manifest,
    at_hand: Option<(Vec<ListedRow>, &C)>,
    reference: bool,
) -> Result<Published, Failure> {
    let (rows, cache) = at_hand.unzip();
    let rows = rows.as_deref();
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let (found, summed_up) = both(
        || cache.map_or_else(BTreeMap::new, |cache| find_contexts(preparer, cache)),
        || {
            let set = gather(folder, manifest, rows)?;
            let lines = changed_lines_in(cache);
            let (comparison, refused) = match compared(pipeline, &set, &lines) {
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
            let packs: &(dyn PackShelf + Sync) = cache.map_or(&(), |cache| cache);
            let whole = |range: Range<usize>| folder.rows_at(range);
            let input = page(pipeline, &summary, &set.manifest, (rows.unwrap_or_default(), &whole));
            let page = html::render(&PageInput { contexts, packs, reference, ..input }).map_err(SetError::from)?;
            Ok::<_, Failure>(folder.write(names::HTML, page)?)
        },
    );
    run_files?;
    others?;
    Ok(Published { summary, manifest: set.into_manifest(), refused })
}

impl PackShelf for Store {
    fn find(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    fn keep(&self, name: Digest, pack: &str) {
        self.keep_derived(name, pack.as_bytes());
    }
}

impl PackShelf for Snapshot {
    fn find(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    /// A snapshot is read only.
    fn keep(&self, _: Digest, _: &str) {}
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
    let text = markdown(&ReportInput { summary, manifest: &set.manifest, worst: &worst, reference });
    Ok(folder.write(names::MARKDOWN, text)?)
}

/// The worst probes; of their rows all is read.
fn worst(folder: &ResultsFolder, design: &Design, rows: Option<&[ListedRow]>) -> Result<Vec<Worst>, SetError> {
    let places = match rows {
        Some(rows) => worst_rows(design, rows.iter().map(|listed| Ok::<_, SetError>(&listed.row)), WORST)?,
        None => worst_rows(design, folder.rows()?.scored(), WORST)?,
    };
    let rows = folder.rows_in(&places.iter().map(|(at, _)| *at).collect())?;
    Ok(places.iter().filter_map(|(at, score)| Some(Worst::new(design, rows.get(at)?, *score))).collect())
}

fn gather(folder: &ResultsFolder, manifest: Manifest, rows: Option<&[ListedRow]>) -> Result<ResultSet, Failure> {
    Ok(match rows {
        Some(rows) => ResultSet::gather(manifest, rows.iter().map(|listed| Ok(&listed.row)))?,
        None => ResultSet::gather(manifest, folder.rows()?.scored().map(|row| row.map_err(SetError::from)))?,
    })
}

/// The comparison with the baseline that the run was given, if it was given one.
fn compared(pipeline: &Pipeline, set: &ResultSet, lines: ChangedLines<'_>) -> Result<Option<Comparison>, Failure> {
    let Some(baseline) = &set.manifest.compared_to else { return Ok(None) };
    let (other, method) = ResultsFolder::open_side(&pipeline.results, baseline)?;
    let other = ResultSet::read(&other)?;
    let baseline = Side { set: &other, method: method.as_deref() };
    let judged = Side { set, method: None };
    compare(judged, baseline, set.manifest.compared_scope, lines)
        .map(Some)
        .map_err(|error| Failure::input(error.to_string()))
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

fn page<'a>(
    pipeline: &'a Pipeline,
    summary: &'a Summary,
    manifest: &'a Manifest,
    rows: (&'a [ListedRow], &'a WholeRows<'a>),
) -> PageInput<'a> {
    let cells: u64 = summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let too_many = (rows.0.is_empty() && cells > 0).then(|| {
        format!("{cells} cells are too many for one page: they are in cells.jsonl, and `compeval show` shows each.")
    });
    let banks = pipeline.fixtures.iter().map(|f| (f.name(), f.bank.probes.as_slice())).collect();
    let mut page = PageInput { banks, ..PageInput::new(manifest, summary, &pipeline.rubric, rows) };
    page.notes.extend(too_many);
    page
}

/// A context in the cache. It holds no text of its fixture: those of all fixtures would be too much.
struct CachedContext {
    name: Digest,
    cell: CompressCell,
    record: Record,
}

impl CachedContext {
    fn read<L: Lookup>(&self, preparer: Preparer<'_>, cache: &L) -> Option<ContextText> {
        let bytes = cache.body(&self.record).ok()?;
        let fixture = self.cell.chain.fixture;
        let texts = FixtureTexts::new(fixture, preparer.pipeline().fixtures.get(fixture.0)?);
        let task = Task::Compress(CompressTask::to_read(self.cell, Rc::new(texts)));
        let body = Body { dialect: self.record.dialect, bytes: &bytes };
        let Output::Context(compressed) = preparer.read(&task, body).ok()? else { return None };
        Some(compressed.context.text().map_or(ContextText::Opaque, |text| ContextText::Readable(text.to_string())))
    }
}

/// The contexts that the cache still has.
fn find_contexts<L: Lookup>(preparer: Preparer<'_>, cache: &L) -> BTreeMap<ContextPlace, CachedContext> {
    let mut frontier = Frontier::new(&preparer);
    let mut contexts = BTreeMap::new();
    while let Some(task) = frontier.next_ready() {
        let Task::Compress(compress) = &task else {
            frontier.resolve(&task, TaskOutcome::Unresolved);
            continue;
        };
        let action = preparer.prepare(&task).ok();
        let found = action.map(|action| look_up(cache, &preparer, &task, &action, &HashSet::new()));
        let outcome = match (found, task.method(preparer.pipeline())) {
            (Some(ActionStatus::Cached { resolved, record, .. }), Some(method)) => {
                let place = (resolved.key, method.name.to_string(), task.place(preparer.pipeline()).point.0);
                let name = compress.reference(method, resolved.out).digest();
                contexts.insert(place, CachedContext { name, cell: compress.cell, record });
                TaskOutcome::Resolved(resolved)
            }
            _ => TaskOutcome::Unresolved,
        };
        frontier.resolve(&task, outcome);
    }
    contexts
}

/// The contexts found, to be read when the page needs them.
fn page_contexts<'a, L: Lookup>(
    found: &'a BTreeMap<ContextPlace, CachedContext>,
    preparer: Preparer<'a>,
    cache: &'a L,
) -> BTreeMap<ContextPlace, PageContext<'a>> {
    let of =
        |found: &'a CachedContext| PageContext { name: found.name, read: Rc::new(move || found.read(preparer, cache)) };
    found.iter().map(|(place, found)| (place.clone(), of(found))).collect()
}
