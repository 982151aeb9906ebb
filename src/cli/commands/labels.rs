//! `compeval labels`: lists result sets, the newest first, with their scores over time and commits; removes and protects
//! them.

use std::path::Path;

use clap::Subcommand;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::Digest;
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{given_results, project_paths_of};
use crate::cli::terminal::{Console, TextStyle, paint};
use crate::report::{TextTable, known, short_time};
use crate::results::{
    Design, FolderError, Manifest, Outcome, ResultsFolder, incomplete_beside, labels, lock_results,
    names, open_results, remove_results,
};
use base::clock::moment;
use base::guarded::read_text;
use base::text::shell_word;

#[derive(Debug, Subcommand)]
pub(crate) enum LabelsCommand {
    /// List the result sets, newest first, with their scores over time and commits
    #[command(after_help = "Examples:\n  compeval labels ls")]
    Ls,
    /// Remove result sets; the outputs behind them stay in the cache until it is pruned
    #[command(after_help = "Examples:\n  compeval labels rm old-prompt")]
    Rm {
        /// The labels
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Protect result sets: no run replaces them, and `labels rm` refuses them
    #[command(
        after_help = "Examples:\n  compeval labels protect baseline\n  compeval labels protect baseline --off"
    )]
    Protect {
        /// The labels
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
        /// Lift the protection
        #[arg(long)]
        off: bool,
    },
}

pub(crate) fn run(
    common: &Common,
    command: &LabelsCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    let results = project_paths_of(common)?.results;
    match command {
        LabelsCommand::Ls => list(&results, console),
        LabelsCommand::Rm { labels } => remove(common, &results, labels, console),
        LabelsCommand::Protect { labels, off } => protect(common, &results, labels, !off, console),
    }
}

/// The folders of all labels, each once; an error for the first that does not exist, before anything is changed.
fn open_all(
    common: &Common,
    results: &Path,
    labels: &[String],
) -> Result<Vec<ResultsFolder>, FolderError> {
    let mut folders = Vec::new();
    for label in labels {
        let folder = open_results(results, &given_results(common, label))?;
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(folders)
}

fn remove(
    common: &Common,
    results: &Path,
    labels: &[String],
    console: &Console,
) -> Result<Exit, Failure> {
    let folders = open_all(common, results, labels)?;
    if let Some(folder) = folders.iter().find(|folder| folder.is_protected()) {
        return Err(protected_error(&folder.label()));
    }
    let mut removed = Vec::new();
    for folder in folders {
        remove_results(&folder).map_err(|error| match error {
            FolderError::Protected(label) => protected_error(label.as_str()),
            error => error.into(),
        })?;
        console.inform(&format!("Removed {}.", folder.label()));
        removed.push(folder.label());
    }
    console.json(&json!({ "removed": removed }));
    Ok(Exit::Done)
}

fn protected_error(label: &str) -> Failure {
    Failure::input(format!(
        "the results `{label}` are protected; nothing was removed"
    ))
    .hinted(format!(
        "`compeval labels protect --off {}` lifts the protection",
        shell_word(label)
    ))
}

fn protect(
    common: &Common,
    results: &Path,
    labels: &[String],
    on: bool,
    console: &Console,
) -> Result<Exit, Failure> {
    let mut changed = Vec::new();
    for folder in open_all(common, results, labels)? {
        // A run under way would replace the set in spite of its protection.
        let _locks = lock_results(&folder)?;
        folder.protect(on)?;
        console.inform(&match on {
            true => format!("{} is now protected.", folder.label()),
            false => format!("{} is no longer protected.", folder.label()),
        });
        changed.push(folder.label());
    }
    console.json(&json!({ "labels": changed, "protected": on }));
    Ok(Exit::Done)
}

/// A result set as it is listed.
#[derive(Serialize)]
struct ListedLabel {
    label: String,
    started: String,
    /// The git commit of the project; null where none was recorded.
    commit: Option<String>,
    /// Results of equal designs can be made by the same run.
    design: String,
    /// Whether fixtures, questions, rubric, answerers or judges differ from those of the set with scores before, so that
    /// the scores of the two cannot be compared.
    measured_otherwise: bool,
    complete: bool,
    outcome: Outcome,
    /// Judged cells; null if the rows cannot be read.
    cells: Option<u64>,
    /// Cells that the design has.
    expected: u64,
    /// The scores of each method, in the order of the pipeline.
    methods: IndexMap<String, Value>,
    protected: bool,
    /// Judged cells of an incomplete later run; null if there is none.
    incomplete_run: Option<u64>,
    /// What there is where no question of a bank was asked.
    #[serde(skip)]
    in_place_of_cells: Option<&'static str>,
    #[serde(skip)]
    measured_with: Digest,
}

/// What is read of a `summary.json`, whatever else is in it.
#[derive(Deserialize)]
struct ListedSummary {
    methods: IndexMap<String, ListedScores>,
}

#[derive(Deserialize)]
struct ListedScores {
    overall: Value,
    dimensions: IndexMap<String, Value>,
}

/// What `summary.json` says of the scores of each method; nothing where it cannot be read.
fn scores_in(folder: &ResultsFolder) -> IndexMap<String, Value> {
    let summary = read_text(&folder.file(names::SUMMARY)).ok();
    let summary = summary.and_then(|text| serde_json::from_str::<ListedSummary>(&text).ok());
    let methods = summary.into_iter().flat_map(|summary| summary.methods);
    let methods = methods.map(|(name, method)| {
        let level = |level: &Value| json!({ "median": level["median"], "ci95": level["ci95"] });
        let dimensions = method.dimensions.iter();
        let dimensions: IndexMap<_, _> = dimensions.map(|(id, found)| (id, level(found))).collect();
        let scores = json!({ "overall": level(&method.overall), "dimensions": dimensions });
        (name, scores)
    });
    methods.collect()
}

impl ListedLabel {
    fn new(folder: &ResultsFolder, manifest: Manifest) -> ListedLabel {
        let design = &manifest.design;
        ListedLabel {
            label: folder.label(),
            design: Digest::of_json(design).short(),
            measured_otherwise: false,
            complete: manifest.outcome == Outcome::Complete,
            outcome: manifest.outcome,
            cells: folder.row_count().ok(),
            expected: design.cells(),
            methods: scores_in(folder),
            protected: folder.is_protected(),
            incomplete_run: incomplete_beside(folder)
                .map(|beside| beside.row_count().unwrap_or_default()),
            in_place_of_cells: match &design.planted {
                _ if !design.answerers.is_empty() => None,
                Some(planted) if planted.answerer.is_some() => Some("planted items"),
                _ => Some("contexts only"),
            },
            measured_with: measured_with(design),
            started: manifest.started,
            commit: manifest.commit,
        }
    }

    /// Whether anything was graded. A set of contexts alone has no answerer and no judge, so beside it every other set
    /// would look as if it had been measured in another way.
    fn has_scores(&self) -> bool {
        self.methods
            .values()
            .any(|method| method["overall"]["median"].is_number())
    }

    fn cells(&self, methods: &IndexSet<&str>) -> Vec<String> {
        let mark = if self.measured_otherwise { "≠ " } else { "" };
        let judged = known(self.cells, |cells| cells.to_string());
        let mut notes = Vec::new();
        notes.extend(self.in_place_of_cells.map(str::to_owned));
        if self.protected {
            notes.push("protected".to_owned());
        }
        if let Some(cells) = self.incomplete_run {
            notes.push(format!("a later run is incomplete: {cells} cells"));
        }
        let commit = self.commit.as_deref().unwrap_or("–");
        let mut cells = vec![
            format!("{mark}{}", self.label),
            short_time(&self.started),
            commit.chars().take(10).collect(),
            match self.in_place_of_cells {
                Some(_) => "–".to_owned(),
                None => format!("{judged}/{}", self.expected),
            },
            self.outcome.to_string(),
        ];
        cells.extend(
            methods
                .iter()
                .map(|method| score(self.methods.get(*method))),
        );
        cells.push(notes.join("; "));
        cells
    }
}

/// `3.87 [3.55, 4.19]`; a dash if nothing was measured.
fn score(method: Option<&Value>) -> String {
    let overall = method.map_or(&Value::Null, |method| &method["overall"]);
    let [low, high] = [0, 1].map(|at| overall["ci95"][at].as_f64());
    let interval = low.zip(high);
    let interval = interval.map(|(low, high)| format!(" [{low:.2}, {high:.2}]"));
    let interval = interval.unwrap_or_default();
    known(overall["median"].as_f64(), |value| {
        format!("{value:.2}{interval}")
    })
}

/// A digest of what scores depend on besides the methods.
fn measured_with(design: &Design) -> Digest {
    let fixtures: Vec<_> = design
        .fixtures
        .iter()
        .map(|fixture| (&fixture.name, &fixture.digests, &fixture.probes))
        .collect();
    let [answerers, judges] = [&design.answerers, &design.judges].map(|asked| {
        asked
            .iter()
            .map(|asked| (&asked.model, &asked.settings, asked.prompt))
            .collect::<Vec<_>>()
    });
    let (tail, context, locale) = (design.tail, design.judge_context, design.locale);
    Digest::of_json(&(
        fixtures,
        &design.rubric,
        answerers,
        judges,
        tail,
        context,
        locale,
    ))
}

fn list(results: &Path, console: &Console) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    for label in labels(results)? {
        let read = open_results(results, label.as_str())
            .and_then(|folder| Ok((folder.manifest()?, folder)));
        match read {
            Ok((manifest, folder)) => found.push(ListedLabel::new(&folder, manifest)),
            Err(error) => console.warn("skipped:", error),
        }
    }
    found.sort_by(|a, b| (moment(&b.started), &b.label).cmp(&(moment(&a.started), &a.label)));
    let mut before = None;
    for label in found.iter_mut().rev().filter(|label| label.has_scores()) {
        label.measured_otherwise = before
            .replace(label.measured_with)
            .is_some_and(|before| before != label.measured_with);
    }
    console.report(&found, || print_list(&found, console));
    Ok(Exit::Done)
}

fn print_list(found: &[ListedLabel], console: &Console) {
    if found.is_empty() {
        return console.note("There are no results; `compeval run` makes some.");
    }
    let methods: IndexSet<&str> = found
        .iter()
        .filter(|label| label.has_scores())
        .flat_map(|label| label.methods.keys().map(String::as_str))
        .collect();
    let mut columns = vec!["label", "began (UTC)", "commit", "cells", "outcome"];
    columns.extend(&methods);
    columns.push("");
    let rows = found.iter().map(|label| label.cells(&methods));
    let table = TextTable::plain(&columns, &[1, 2, 4, columns.len() - 1], rows);
    console.print(&console.table(&table));
    if found.iter().any(|label| label.measured_otherwise) {
        console.note(&paint(
            TextStyle::Dim,
            "≠ the fixtures, the questions, the rubric, the answerer or the judge changed: scores from here on cannot be \
             compared with those below.",
        ));
    }
}
