//! `compeval labels`: lists, removes and protects result sets, and shows their scores over time.

mod trend;

use std::path::Path;

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use crate::action::Digest;
use crate::cli::args::Common;
use crate::cli::command_line::{CommandLine, with_project_flags};
use crate::cli::commands::report::refresh_result_index;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{display_width, left, right};
use crate::cli::project::{given_results, project_paths_of};
use crate::cli::terminal::{Console, TextStyle};
use crate::report::short_time;
use crate::results::{
    FolderError, LabelWriterError, Manifest, MethodInfo, Outcome, ResultsFolder, incomplete_beside,
    labels, lock_results, names, open_results, remove_results,
};
use base::clock::moment;
use base::files::read_text;
use base::text::shell_word;
use trend::TrendArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LabelsCommand {
    /// List the result sets, newest first
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
    /// Show scores over time and commits
    #[command(after_help = "Examples:\n  compeval labels trend\n  \
                            compeval labels trend 'nightly-*' --method anchored --html trend.html")]
    Trend(TrendArgs),
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
        LabelsCommand::Trend(args) => trend::run(common, &results, args, console),
        LabelsCommand::Protect { labels, off } => protect(common, &results, labels, !off, console),
    }
}

#[derive(Serialize)]
struct LabelJson {
    label: String,
    started: String,
    /// Results of equal designs can be made by the same run.
    design: String,
    complete: bool,
    outcome: Outcome,
    /// Judged cells; null if the rows cannot be read.
    cells: Option<u64>,
    /// Cells that the design has.
    expected: u64,
    /// The method with the highest score among those that compress, and its score; null if nothing is judged.
    best: Option<BestJson>,
    protected: bool,
    /// Judged cells of an incomplete later run; null if there is none.
    incomplete_run: Option<u64>,
    /// Whether no questions were asked, so that there are no cells.
    #[serde(skip)]
    is_compress_only: bool,
}

#[derive(Serialize)]
struct BestJson {
    method: String,
    overall: f64,
}

impl LabelJson {
    fn new(folder: &ResultsFolder, manifest: &Manifest) -> LabelJson {
        let design = &manifest.design;

        let text = serde_json::to_string(design).unwrap_or_default();
        LabelJson {
            label: folder.label(),
            started: manifest.started.clone(),
            design: Digest::hash(text).short(),
            complete: manifest.outcome == Outcome::Complete,
            outcome: manifest.outcome,
            cells: folder.row_count().ok(),
            expected: design
                .methods
                .iter()
                .map(|method| design.cells_of(method))
                .sum(),
            best: best(folder, manifest),
            protected: folder.is_protected(),
            incomplete_run: incomplete_beside(folder)
                .map(|beside| beside.row_count().unwrap_or_default()),
            is_compress_only: design.answerers.is_empty(),
        }
    }
}

/// The method with the highest score; `None` where built-in rules stood in for a model, which says nothing of methods.
fn best(folder: &ResultsFolder, manifest: &Manifest) -> Option<BestJson> {
    if manifest.design.is_lexical() {
        return None;
    }
    let summary: Value =
        serde_json::from_str(&read_text(&folder.file(names::SUMMARY)).ok()?).ok()?;
    let scored = summary
        .get("methods")?
        .as_object()?
        .iter()
        .filter_map(|(key, method)| {
            let name = key.split('/').next().unwrap_or(key);
            let overall = method.get("overall")?.get("median")?.as_f64()?;
            let is_anchor = manifest
                .design
                .method(name)
                .is_some_and(MethodInfo::is_anchor);
            (!is_anchor).then(|| BestJson {
                method: key.clone(),
                overall,
            })
        });
    scored.max_by(|a, b| a.overall.total_cmp(&b.overall))
}

fn list(results: &Path, console: &Console) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    for label in labels(results)? {
        let read = open_results(results, label.as_str())
            .and_then(|folder| Ok((folder.manifest()?, folder)));
        match read {
            Ok((manifest, folder)) => found.push(LabelJson::new(&folder, &manifest)),
            Err(error) => console.warn("skipped:", error),
        }
    }
    found.sort_by(|a, b| (moment(&b.started), &b.label).cmp(&(moment(&a.started), &a.label)));
    console.report(&found, || print(&found, console));
    Ok(Exit::Done)
}

fn print(found: &[LabelJson], console: &Console) {
    if found.is_empty() {
        let none = "There are no results; `compeval run` makes some.";
        return console.note(&with_project_flags(none));
    }
    let width = found
        .iter()
        .map(|label| display_width(&label.label))
        .max()
        .unwrap_or(0)
        .max(5);
    let when = match console.is_narrow() {
        true => String::new(),
        false => format!("{}  {}  ", left("began (UTC)", 16), left("design", 12)),
    };
    let head = format!(
        "{}  {when}{}  {}  {}",
        left("label", width),
        right("cells", 13),
        left("outcome", 11),
        "best method",
    );
    console.print(&console.paint(TextStyle::Strong, &head));
    for label in found {
        console.print(&line(label, width, console));
    }
}

/// How a run ended, as it is printed.
fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Complete => "complete",
        Outcome::Incomplete => "incomplete",
        Outcome::Budget => "budget",
        Outcome::Pending => "pending",
        Outcome::Interrupted => "interrupted",
    }
}

fn line(label: &LabelJson, width: usize, console: &Console) -> String {
    let began = short_time(&label.started);
    let judged = label
        .cells
        .map_or_else(|| "–".to_owned(), |cells| cells.to_string());
    let cells = match label.is_compress_only {
        true => "–".to_owned(),
        false => format!("{judged}/{}", label.expected),
    };
    let best = label.best.as_ref().map_or_else(
        || "–".to_owned(),
        |b| format!("{} {:.2}", b.method, b.overall),
    );
    let outcome = left(outcome_word(label.outcome), 11);
    let meaning = if label.complete {
        TextStyle::Good
    } else {
        TextStyle::Warning
    };
    let mut notes = String::new();
    if label.is_compress_only {
        notes.push_str("  contexts only");
    }
    if label.protected {
        notes.push_str("  protected");
    }
    if let Some(cells) = label.incomplete_run {
        notes.push_str(&format!("  (a later run is incomplete: {cells} cells)"));
    }
    let outcome = console.paint(meaning, &outcome);
    let when = if console.is_narrow() {
        String::new()
    } else {
        format!("{began:<16}  {:<12}  ", label.design)
    };
    format!(
        "{}  {when}{cells:>13}  {outcome}  {best}{notes}",
        left(&label.label, width)
    )
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
            LabelWriterError::Protected(label) => protected_error(label.as_str()),
            error => error.into(),
        })?;
        console.inform(&format!("Removed {}.", folder.label()));
        removed.push(folder.label());
    }
    console.json(&json!({ "removed": removed }));
    if let Err(error) = refresh_result_index(results) {
        console.warn("the page of all result sets is out of date:", error);
    }
    Ok(Exit::Done)
}

fn protected_error(label: &str) -> Failure {
    Failure::input(format!(
        "the results `{label}` are protected; nothing was removed"
    ))
    .hinted(
        CommandLine::current()
            .of_project()
            .command(&format!("labels protect --off {}", shell_word(label))),
    )
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
