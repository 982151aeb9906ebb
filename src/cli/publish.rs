//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::failure::{Failure, chain};
use crate::cache::Lookup;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{Finding, Frontier, Preparer, Settled, Task, find};
use crate::report::html::{self, ContextText, PageInput};
use crate::report::{ReportInput, markdown};
use crate::results::{
    Comparison, FolderError, Manifest, ResultSet, ResultsFolder, Row, SetError, Side, Summary, compare, names,
    run_files, summarize, worst,
};

/// Worst probes that a report shows.
const WORST: usize = 5;
/// Cells up to which the page carries them all; a larger matrix keeps its summary there, and its cells in the file.
const CELLS_ON_A_PAGE: usize = 25_000;

/// What was published.
pub(crate) struct Published {
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
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

/// Writes every file of a label that is made from its rows.
pub(crate) fn publish<L: Lookup>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    lookup: &L,
    reference: bool,
) -> Result<Published, Failure> {
    let rows = rows_at_hand(folder)?;
    let set = match &rows {
        Some(rows) => ResultSet::gather(folder.manifest()?, rows.iter().map(Ok))?,
        None => ResultSet::read(folder)?,
    };
    let comparison = match &set.manifest.compared_to {
        Some(baseline) => {
            let (other, method) = ResultsFolder::open_side(&pipeline.results, baseline)?;
            let other = ResultSet::read(&other)?;
            let baseline = Side { set: &other, method: method.as_deref() };
            let judged = Side { set: &set, method: None };
            Some(compare(judged, baseline, false).map_err(|error| Failure::input(error.to_string()))?)
        }
        None => None,
    };
    let summary = summarize(&set, comparison);
    folder.write_json(names::SUMMARY, &summary)?;
    write_run_files(folder, &set)?;
    let worst = match &rows {
        Some(rows) => worst(set.design(), rows.iter().map(Ok::<_, SetError>), WORST)?,
        None => worst(set.design(), folder.rows()?, WORST).map_err(SetError::from)?,
    };
    let manifest = set.manifest.clone();
    drop(set);
    let text = markdown(&ReportInput { summary: &summary, manifest: &manifest, worst: &worst, reference });
    folder.write(names::MARKDOWN, text)?;
    let page = page(pipeline, lookup, &summary, &manifest, rows.as_deref(), reference);
    folder.write(names::HTML, page)?;
    Ok(Published { summary, manifest })
}

fn write_run_files(folder: &ResultsFolder, set: &ResultSet) -> Result<(), Failure> {
    let mut written = Vec::new();
    for file in run_files(set) {
        let path = folder.run_file(&file.fixture, file.run);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        folder.write_json(&name, &file)?;
        written.push(path);
    }
    Ok(folder.remove_run_files(&written)?)
}

/// All rows, read once for everything that is made of them; `None` if they are too many to be kept in memory.
fn rows_at_hand(folder: &ResultsFolder) -> Result<Option<Vec<Row>>, Failure> {
    if folder.rows()?.lines()? > CELLS_ON_A_PAGE {
        return Ok(None);
    }
    Ok(Some(folder.rows()?.collect::<Result<_, _>>().map_err(SetError::from)?))
}

fn page<L: Lookup>(
    pipeline: &Pipeline,
    lookup: &L,
    summary: &Summary,
    manifest: &Manifest,
    rows: Option<&[Row]>,
    reference: bool,
) -> String {
    let too_many = rows.is_none().then(|| {
        let cells: u64 = summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
        format!("{cells} cells are too many for one page: they are in cells.jsonl, and `compeval show` shows each.")
    });
    let rows = rows.unwrap_or_default();
    let banks = pipeline.fixtures.iter().map(|f| (f.name(), f.bank.probes.as_slice())).collect();
    let contexts = if rows.is_empty() { BTreeMap::new() } else { contexts(pipeline, lookup) };
    let mut page =
        PageInput { banks, contexts, reference, ..PageInput::new(manifest, summary, &pipeline.rubric, rows) };
    page.notes.extend(too_many);
    html::render(&page)
}

/// The contexts that the cache still has, by the compression that made them.
fn contexts<L: Lookup>(pipeline: &Pipeline, lookup: &L) -> BTreeMap<crate::action::ActionKey, ContextText> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let mut frontier = Frontier::new(&preparer);
    let mut contexts = BTreeMap::new();
    while let Some(task) = frontier.next_ready() {
        let settled = match (&task, preparer.prepare(&task)) {
            (Task::Compress(_), Ok(action)) => match find(lookup, &preparer, &task, &action, &HashSet::new()) {
                Finding::Cached { kept, record, .. } => {
                    if let Some(text) = context_text(&preparer, lookup, &task, &record) {
                        contexts.insert(kept.key, text);
                    }
                    Settled::Kept(kept)
                }
                Finding::Stale => Settled::Without,
            },
            _ => Settled::Without,
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
