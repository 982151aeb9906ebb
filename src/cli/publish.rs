//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;

use super::failure::{Failure, chain};
use crate::action::Digest;
use crate::cache::{Lookup, Snapshot, Store};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{Finding, Frontier, Preparer, Settled, Task, find};
use crate::report::html::{self, ContextPlace, ContextText, PackShelf, PageInput, WholeRows};
use crate::report::{ReportInput, markdown};
use crate::results::{
    Comparison, Design, FolderError, ListedRow, Manifest, ResultSet, ResultsFolder, SetError, Side, Summary, Worst,
    compare, names, run_files, summarize, worst_rows,
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
    a: &str,
    b: &str,
    only_common: bool,
) -> Result<(ResultSet, Comparison), Failure> {
    let read = |text: &str| -> Result<(ResultSet, Option<String>), Failure> {
        let (folder, method) = ResultsFolder::open_side(results, text)?;
        Ok((ResultSet::read(&folder)?, method))
    };
    let ((a, a_method), (b, b_method)) = (read(a)?, read(b)?);
    let (judged, baseline) =
        (Side { set: &a, method: a_method.as_deref() }, Side { set: &b, method: b_method.as_deref() });
    let comparison = compare(judged, baseline, only_common).map_err(|error| Failure::input(error.to_string()))?;
    Ok((a, comparison))
}

/// Writes every file of a label that is made from its rows. If these are few they are at hand, with the cache that has
/// their contexts; else they are read from the folder one by one, and the page carries the summary alone. The page is
/// most of the work: the other files are written beside it.
pub(crate) fn publish<C: Lookup + PackShelf + Sync>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    manifest: Manifest,
    at_hand: Option<(Vec<ListedRow>, &C)>,
    reference: bool,
) -> Result<Published, Failure> {
    let rows = at_hand.as_ref().map(|(rows, _)| rows.as_slice());
    let (contexts, summed_up) = both(
        || at_hand.as_ref().map_or_else(BTreeMap::new, |(_, cache)| contexts(pipeline, *cache)),
        || {
            let set = gather(folder, manifest, rows)?;
            let (comparison, refused) = match compared(pipeline, &set) {
                Ok(comparison) => (comparison, None),
                Err(refusal) => (None, Some(refusal)),
            };
            let summary = summarize(&set, comparison);
            Ok::<_, Failure>((set, summary, refused))
        },
    );
    let (set, summary, refused) = summed_up?;
    let packs: &(dyn PackShelf + Sync) = at_hand.as_ref().map_or(&(), |(_, cache)| *cache);
    let (figures, page) = both(
        || write_figures(folder, &set, &summary, rows, reference),
        || {
            let whole = |range: Range<usize>| folder.rows_at(range);
            let input = page(pipeline, &summary, &set.manifest, (rows.unwrap_or_default(), &whole));
            let page = html::render(&PageInput { contexts, packs, reference, ..input }).map_err(SetError::from)?;
            Ok::<_, Failure>(folder.write(names::HTML, page)?)
        },
    );
    figures?;
    page?;
    Ok(Published { summary, manifest: set.into_manifest(), refused })
}

impl PackShelf for Store {
    fn find(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    fn keep(&self, name: Digest, pack: &str) {
        self.text(name, pack);
    }
}

impl PackShelf for Snapshot {
    fn find(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    /// A snapshot is read only.
    fn keep(&self, _: Digest, _: &str) {}
}

/// Writes summary, run files and report.md.
fn write_figures(
    folder: &ResultsFolder,
    set: &ResultSet,
    summary: &Summary,
    rows: Option<&[ListedRow]>,
    reference: bool,
) -> Result<(), Failure> {
    folder.write_json(names::SUMMARY, summary)?;
    write_run_files(folder, set)?;
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
    let mut found = Vec::new();
    for (at, score) in places {
        found.extend(folder.rows_at(at..at + 1)?.iter().map(|row| Worst::new(design, row, score)));
    }
    Ok(found)
}

fn gather(folder: &ResultsFolder, manifest: Manifest, rows: Option<&[ListedRow]>) -> Result<ResultSet, Failure> {
    Ok(match rows {
        Some(rows) => ResultSet::gather(manifest, rows.iter().map(|listed| Ok(&listed.row)))?,
        None => ResultSet::gather(manifest, folder.rows()?.scored().map(|row| row.map_err(SetError::from)))?,
    })
}

/// The comparison with the baseline that the run was given, if it was given one.
fn compared(pipeline: &Pipeline, set: &ResultSet) -> Result<Option<Comparison>, Failure> {
    let Some(baseline) = &set.manifest.compared_to else { return Ok(None) };
    let (other, method) = ResultsFolder::open_side(&pipeline.results, baseline)?;
    let other = ResultSet::read(&other)?;
    let baseline = Side { set: &other, method: method.as_deref() };
    let judged = Side { set, method: None };
    compare(judged, baseline, false).map(Some).map_err(|error| Failure::input(error.to_string()))
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

/// The contexts that the cache still has.
fn contexts<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> BTreeMap<ContextPlace, ContextText> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut frontier = Frontier::new(&preparer);
    let mut contexts = BTreeMap::new();
    while let Some(task) = frontier.next_ready() {
        let is_compression = matches!(task, Task::Compress(_));
        let action = is_compression.then(|| preparer.prepare(&task).ok()).flatten();
        let found = action.map(|action| find(lookup, &preparer, &task, &action, &HashSet::new()));
        let settled = match found {
            Some(Finding::Cached { kept, record, .. }) => {
                if let Some(text) = context_text(&preparer, lookup, &task, &record) {
                    let place = task.place(pipeline);
                    contexts.insert((kept.key, place.method.to_string(), place.point.0), text);
                }
                Settled::Kept(kept)
            }
            Some(Finding::Stale) | None => Settled::Without,
        };
        frontier.settle(&task, settled);
    }
    contexts
}

fn context_text<L: Lookup>(
    preparer: &Preparer<'_>,
    lookup: &L,
    task: &Task,
    record: &crate::cache::Record,
) -> Option<ContextText> {
    let bytes = lookup.body(record).ok()?;
    let body = crate::plan::Body { dialect: record.dialect, bytes: &bytes };
    let crate::plan::Output::Context(compressed) = preparer.read(task, body).ok()? else { return None };
    Some(compressed.context.text().map_or(ContextText::Opaque, |text| ContextText::Readable(text.to_string())))
}
