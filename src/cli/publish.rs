//! The files of a label, from its rows: summary, run files, report.md, report.html.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::failure::{Failure, chain};
use crate::cache::Lookup;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{Finding, Frontier, Preparer, Settled, Task, find};
use crate::report::html::{self, Anchor, ContextText, CostLine, FailureLine, MethodLine, ModelLine, ReferenceLine};
use crate::report::{ReportInput, markdown, published};
use crate::results::{
    Comparison, FolderError, Manifest, ResultSet, ResultsFolder, Row, SetError, Side, Summary, compare, names,
    run_files, summarize, worst,
};

/// Worst probes that a report shows.
const WORST: usize = 5;
/// Cells up to which the page carries them all; a larger matrix keeps its summary there, and its cells in the file.
const CELLS_ON_A_PAGE: u64 = 25_000;

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
    let set = ResultSet::read(folder)?;
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
    let rows = folder.rows()?.map(|row| row.map_err(SetError::from));
    let worst = worst(set.design(), rows, WORST)?;
    let manifest = set.manifest.clone();
    drop(set);
    let text = markdown(&ReportInput { summary: &summary, manifest: &manifest, worst: &worst, reference });
    folder.write(names::MARKDOWN, text)?;
    let page = page(pipeline, folder, lookup, &summary, &manifest, reference)?;
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

fn page<L: Lookup>(
    pipeline: &Pipeline,
    folder: &ResultsFolder,
    lookup: &L,
    summary: &Summary,
    manifest: &Manifest,
    reference: bool,
) -> Result<String, Failure> {
    let cells: u64 = summary.methods.iter().map(|(_, method)| method.cells.judged).sum();
    let mut notes = manifest.caveats.notes.clone();
    let rows: Vec<Row> = if cells <= CELLS_ON_A_PAGE {
        folder.rows()?.collect::<Result<_, _>>().map_err(SetError::from)?
    } else {
        notes.push(format!(
            "{cells} cells are too many for one page: they are in cells.jsonl, and `compeval show` shows each."
        ));
        Vec::new()
    };
    let banks = pipeline.fixtures.iter().map(|f| (f.name(), f.bank.probes.as_slice())).collect();
    let input = html::ReportInput {
        label: &manifest.label,
        locale: manifest.design.locale,
        facts: facts(manifest),
        warnings: warnings(manifest),
        notes,
        models: models(pipeline),
        methods: methods(summary, pipeline),
        rubric: &pipeline.rubric,
        banks,
        contexts: if rows.is_empty() { BTreeMap::new() } else { contexts(pipeline, lookup) },
        rows: &rows,
        summary,
        costs: costs(manifest),
        failures: failures(manifest),
        reference: if reference { published_figures() } else { Vec::new() },
    };
    Ok(html::render(&input))
}

/// What ran. No time stands here: the page is the same from the same results.
fn facts(manifest: &Manifest) -> Vec<(String, String)> {
    let design = &manifest.design;
    let cell = |name: &str, value: String| (name.to_owned(), value);
    let runs = design.runs;
    vec![
        cell("compeval", manifest.version.clone()),
        cell("fixtures", design.fixtures.len().to_string()),
        cell("runs", format!("{} compressions, {} answers, {} judgements", runs.compress, runs.answer, runs.judge)),
        cell("judge sees the context", if design.judge_context { "yes" } else { "no" }.to_owned()),
    ]
}

fn warnings(manifest: &Manifest) -> Vec<String> {
    let mut warnings = Vec::new();
    if manifest.design.is_lexical() {
        warnings.push("`lexical` took part: a rule-based stand-in for a model. Its figures show how the tool works, not how good a model is.".to_owned());
    }
    for judge in &manifest.caveats.weak_judges {
        warnings.push(format!("The judge {judge} failed its self-test: its grades may mean little."));
    }
    if manifest.caveats.allow_unproven {
        warnings.push("Facts that occur nowhere in their fixtures were let pass.".to_owned());
    }
    warnings
}

fn models(pipeline: &Pipeline) -> Vec<ModelLine> {
    let line =
        |role: &str, name: &str, model: String| ModelLine { role: role.to_owned(), name: name.to_owned(), model };
    let compress = pipeline
        .methods
        .iter()
        .filter_map(|method| Some(line("compress", &method.name.0, method.strategy.model()?.reference.to_string())));
    let answer = pipeline.answerers.iter().map(|a| line("answer", &a.name.0, a.model.reference.to_string()));
    let judge = pipeline.judges.iter().map(|j| line("judge", &j.name.0, j.model.reference.to_string()));
    compress.chain(answer).chain(judge).collect()
}

fn methods(summary: &Summary, pipeline: &Pipeline) -> Vec<MethodLine> {
    let line = |(name, method): (&str, &crate::results::MethodSummary)| MethodLine {
        name: name.to_owned(),
        strategy: method.strategy.clone(),
        model: (pipeline.methods.iter())
            .find(|m| name == &*m.name.0 || name.strip_suffix(&format!("/{}", method.answerer)) == Some(&*m.name.0))
            .and_then(|m| Some(m.strategy.model()?.reference.to_string())),
        anchor: match method.strategy.as_str() {
            "full" => Anchor::Ceiling,
            "none" => Anchor::Floor,
            _ => Anchor::Neither,
        },
    };
    summary.methods.iter().map(line).collect()
}

fn costs(manifest: &Manifest) -> Vec<CostLine> {
    let line = |(stage, counts): (&crate::action::StageName, &crate::results::StageCounts)| CostLine {
        part: stage.name().to_owned(),
        actions: Some(counts.actions),
        ..CostLine::default()
    };
    manifest.stages.iter().map(line).collect()
}

fn failures(manifest: &Manifest) -> Vec<FailureLine> {
    let line = |failure: &crate::results::Failure| FailureLine {
        place: failure.place.to_string(),
        stage: failure.stage.name().to_owned(),
        message: failure.message.clone(),
        by_method: failure.blame == crate::results::Blame::Method,
    };
    manifest.failures.iter().map(line).collect()
}

fn published_figures() -> Vec<ReferenceLine> {
    let line = |(name, [overall, dimensions @ ..], removed): (&str, [f64; 7], f64)| ReferenceLine {
        name: name.to_owned(),
        overall: Some(overall),
        dimensions: dimensions.map(Some).to_vec(),
        removed: Some(removed),
    };
    published().map(line).collect()
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
