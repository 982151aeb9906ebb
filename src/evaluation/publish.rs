//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, HashSet};

use super::comparison::{compared_to_baseline, text_edits_in};
use super::contexts::{find_contexts, page_contexts};
use super::error::EvaluationError;
use crate::action::{Digest, DigestBuilder};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::Preparer;
use crate::probe::Probe;
use crate::report::html::{self, ChunkCache, PageInput, PageSession, ReadRows};
use crate::report::{headline, markdown};
use crate::results::{
    Design, ListedRow, Manifest, ResultSet, ResultsFolder, SetError, Summary, WorstProbe, names,
    run_files, summarize, worst_rows,
};
use base::threads::both;
use store::cache::{CacheSnapshot, Lookup, Store};

/// The maximum number of worst probes that a report shows.
const WORST: usize = 15;

/// The files of a label that were made from its rows.
#[derive(Debug)]
pub struct PublishedResults {
    pub summary: Summary,
    pub manifest: Manifest,
    /// Why the results were not compared with the baseline of the run.
    pub refused: Option<EvaluationError>,
}

/// Writes every file of a label that is made from its rows. If the rows are few, `at_hand` has them and the cache with
/// their contexts. Otherwise they are read from the folder one by one, and the page has only the summary. The files of
/// runs are half of the work, so they are written in parallel to the others. `reference` is whether the reports show
/// the published scores.
///
/// # Errors
/// Rows cannot be read, or a file cannot be written.
pub fn publish<C: Lookup + ChunkCache + Sync>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    manifest: Manifest,
    at_hand: Option<(Vec<ListedRow>, &C)>,
    reference: bool,
) -> Result<PublishedResults, EvaluationError> {
    let at_hand = at_hand
        .as_ref()
        .map(|(rows, cache)| (rows.as_slice(), *cache));
    let (rows, cache) = at_hand.unzip();
    let design = manifest.design.clone();
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let (found, summed_up) = both(
        || {
            at_hand.map_or_else(BTreeMap::new, |(rows, cache)| {
                find_contexts(rows, &design, preparer, cache)
            })
        },
        || {
            let set = gather(folder, manifest, rows)?;
            // A summary needs some large pieces, and what reading the rows left is in small ones.
            let lines = text_edits_in(cache);
            // The manifest has the regradings from the end of the run.
            let (comparison, refused) = match compared_to_baseline(pipeline, &set, &lines) {
                Ok(compared) => (compared.map(|(comparison, _)| comparison), None),
                Err(refusal) => (None, Some(refusal)),
            };
            let mut summary = summarize(&set, comparison);
            summary.headline = Some(headline(&summary, &set.manifest));
            summary.worst = worst(folder, &set, rows)?;
            Ok::<_, EvaluationError>((set, summary, refused))
        },
    );
    let (set, summary, refused) = summed_up?;
    let (run_files, others) = both(
        || write_run_files(folder, &set),
        || {
            write_summary(folder, &set, &summary, reference)?;
            let contexts = cache.map_or_else(BTreeMap::new, |cache| {
                page_contexts(&found, preparer, cache)
            });
            let chunks: &(dyn ChunkCache + Sync) = cache.map_or(&(), |cache| cache);
            let read_rows = |at| folder.rows_at(at);
            let rows = rows.unwrap_or_default();
            let page = page_input(pipeline, &summary, &set.manifest, rows, &read_rows);
            let published = reference.then(|| crate::report::reference(page.locale));
            let page = html::render(&PageInput {
                contexts,
                chunks,
                sections: page
                    .sections
                    .iter()
                    .cloned()
                    .chain(published.into_iter().flatten())
                    .collect(),
                ..page
            });
            Ok::<_, EvaluationError>(folder.write(names::HTML, page.map_err(SetError::from)?)?)
        },
    );
    run_files?;
    others?;
    Ok(PublishedResults {
        summary,
        manifest: set.manifest,
        refused,
    })
}

impl ChunkCache for Store {
    fn get_chunk(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }

    fn put_chunk(&self, name: Digest, chunk: &str) {
        self.keep_memo(name, chunk.as_bytes());
    }
}

impl ChunkCache for CacheSnapshot {
    fn get_chunk(&self, name: &Digest) -> Option<String> {
        self.read_text(name)
    }
}

/// Writes `summary.json` and `report.md`.
fn write_summary(
    folder: &ResultsFolder,
    set: &ResultSet,
    summary: &Summary,
    reference: bool,
) -> Result<(), EvaluationError> {
    folder.write_json(names::SUMMARY, summary)?;
    let text = markdown(summary, &set.manifest, reference);
    Ok(folder.write(names::MARKDOWN, text)?)
}

/// The worst probes. Only their rows are read with their texts.
fn worst(
    folder: &ResultsFolder,
    set: &ResultSet,
    rows: Option<&[ListedRow]>,
) -> Result<Vec<WorstProbe>, SetError> {
    let (design, apart) = (set.design(), set.contexts_apart());
    let places = match rows {
        Some(rows) => worst_rows(
            design,
            rows.iter().map(|listed| Ok::<_, SetError>(&listed.row)),
            &apart,
            WORST,
        )?,
        None => worst_rows(design, folder.rows()?.scored(), &apart, WORST)?,
    };
    let rows = folder.rows_in(&places.iter().map(|(at, _)| *at).collect())?;
    Ok(places
        .iter()
        .filter_map(|(at, score)| Some(WorstProbe::new(design, rows.get(at)?, *score)))
        .collect())
}

pub(super) fn gather(
    folder: &ResultsFolder,
    manifest: Manifest,
    rows: Option<&[ListedRow]>,
) -> Result<ResultSet, EvaluationError> {
    let set = match rows {
        Some(rows) => ResultSet::gather(manifest, rows.iter().map(|listed| Ok(&listed.row)))?,
        None => ResultSet::gather(
            manifest,
            folder
                .rows()?
                .scored()
                .map(|row| row.map_err(SetError::from)),
        )?,
    };
    Ok(set.with_compressions(folder)?)
}

fn write_run_files(folder: &ResultsFolder, set: &ResultSet) -> Result<(), EvaluationError> {
    let mut written = HashSet::new();
    for file in run_files(set) {
        let path = folder.run_file(&file.fixture, file.run);
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        folder.write_json(&name, &file)?;
        written.insert(path);
    }
    Ok(folder.remove_run_files(&written)?)
}

pub(super) fn page_input<'a>(
    pipeline: &'a Pipeline,
    summary: &'a Summary,
    manifest: &'a Manifest,
    rows: &'a [ListedRow],
    read_rows: &'a ReadRows<'a>,
) -> PageInput<'a> {
    let cells: u64 = summary
        .methods
        .iter()
        .map(|(_, method)| method.cells.judged)
        .sum();
    let too_many = (rows.is_empty() && cells > 0).then(|| {
        format!("{cells} cells are too many for one page: its folder has them, and `compeval show` shows each.")
    });
    let mut page = PageInput {
        banks: banks(pipeline),
        sessions: sessions(pipeline, &manifest.design),
        ..PageInput::new(manifest, summary, &pipeline.rubric, rows, read_rows)
    };
    page.notes.extend(too_many);
    page
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
        let mut digest = DigestBuilder::new("session");
        digest
            .field("transcript", now.transcript.0)
            .field("points", now.points.0);
        let session = PageSession {
            digest: digest.finish(),
            messages: &loaded.fixture.messages,
            start: loaded.fixture.start(),
            points: &loaded.points,
        };
        is_same.then_some((loaded.name(), session))
    });
    sessions.collect()
}
