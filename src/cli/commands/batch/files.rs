//! `compeval batch export` and `import`: requests to a file that an engine reads, and its results back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::cli::args::{Common, SelectArgs};
use crate::cli::command_line::CommandLine;
use crate::cli::engine::{RunOptions, models, run_matrix, runtime};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, money, shell_word};
use crate::cli::project::{ProjectOptions, given, open_project, open_store, read_project};
use crate::cli::terminal::{Console, Progress, RunLog, TextStyle, print_failures};
use crate::pipeline::Pipeline;
use crate::scheduler::{
    BatchOptions, BudgetLimits, ExportOptions, ExportOutcome, ImportedBatch, ImportedResults, RunOutcome,
    import_results,
};
use models::{Lane, ModelRef};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only requests to this model, as PROVIDER/MODEL: an engine serves one model
    #[arg(long, value_name = "MODEL")]
    only: Option<String>,
    #[command(flatten)]
    select: SelectArgs,
    /// Also export grades of a judge that failed its self-test or has not had it yet
    #[arg(long)]
    allow_weak_judge: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BatchImportArgs {
    /// The engine's output, and its error file if there is one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Wait for missing results instead of exporting their requests again
    #[arg(long)]
    keep_open: bool,
}

/// Failures that are printed by name.
const SHOWN: usize = 5;

/// Walks the matrix without sending anything, and writes what would be sent.
pub(super) fn export(common: &Common, args: &ExportArgs, console: &Console) -> Result<Exit, Failure> {
    let file = std::path::absolute(given(common, &args.file));
    let file = file.map_err(|error| Failure::input(format!("{}: {error}", args.file.display())))?;
    if file.exists() {
        let message = format!("{} exists: its requests may be at an engine", file.display());
        return Err(Failure::input(message).hinted("name another file"));
    }
    let model = args.only.as_deref().map(model_named).transpose()?;
    let pipeline = open_for_export(common, &args.select, console)?;
    let store = open_store(&pipeline.cache, console)?;
    let export = Some(ExportOptions { file: file.clone(), model });
    let options = RunOptions {
        offline: true,
        allow_weak_judge: args.allow_weak_judge,
        refresh: args.select.refresh.iter().copied().collect(),
        batches: BatchOptions { export, ..BatchOptions::default() },
        ..RunOptions::default()
    };
    let progress = Progress::of_run(&pipeline, BudgetLimits::default(), console);
    let mut log = RunLog::new(&progress);
    let ended = run_matrix(&pipeline, &store, &options, &progress, &mut log)?;
    store.close()?;
    print_failures(&log.failures, SHOWN, console);
    print_exported(&ended, &file, console)
}

fn model_named(text: &str) -> Result<ModelRef, Failure> {
    let expected = || Failure::input(format!("`{text}` is no model: expected PROVIDER/MODEL"));
    ModelRef::parse(text).ok_or_else(expected)
}

/// Opens the project. Where it has no model in the file lane, answers and grades of all that can be are exported.
fn open_for_export(common: &Common, select: &SelectArgs, console: &Console) -> Result<Pipeline, Failure> {
    let opening = ProjectOptions::default();
    let declared = read_project(common, select, opening)?.pipeline;
    let is_declared = models(&declared).any(|model| model.lane == Lane::File);
    let lane = if is_declared { select.lane } else { Some(Lane::File) };
    open_project(common, &SelectArgs { lane, ..select.clone() }, opening, console)
}

#[derive(Serialize)]
struct ExportJson<'a> {
    /// Null where nothing was written.
    file: Option<&'a Path>,
    batch: Option<String>,
    requests: usize,
    /// Requests that are ready too: to other models, or more than a file takes.
    left: u64,
}

fn print_exported(ended: &RunOutcome, file: &Path, console: &Console) -> Result<Exit, Failure> {
    let left = ended.not_exported;
    let (batch, requests) = match &ended.exported {
        Some(ExportOutcome::Written { nonce, requests }) => (Some(nonce.to_string()), *requests),
        Some(ExportOutcome::SeveralModels(models)) => return Err(several_models(models)),
        Some(ExportOutcome::Nothing) | None => (None, 0),
    };
    let written = batch.as_ref().map(|_| file);
    console.report(&ExportJson { file: written, batch, requests, left }, || match written {
        Some(file) => {
            console.print(&format!("{}: {}", file.display(), count(requests, "request")));
            if left > 0 {
                console.print(&format!("{} more are ready: export them to another file", count(left, "request")));
            }
            let next = CommandLine::current().of_project().command("batch import RESULTS");
            console.print(&format!("{} run an engine on it, then {next}", console.paint(TextStyle::Hint, "next:")));
        }
        None => {
            let open = if ended.batches.is_empty() { "" } else { "; what is out comes first (`compeval batch ls`)" };
            console.print(&format!("No request is ready{open}."));
        }
    });
    Ok(if ended.interrupted { Exit::Interrupted } else { Exit::Done })
}

/// An engine serves one model.
fn several_models(models: &BTreeMap<ModelRef, usize>) -> Failure {
    let listed: Vec<String> = models.iter().map(|(model, requests)| format!("{model} ({requests})")).collect();
    let message = format!("requests to {} models are ready, and a file has one: {}", models.len(), listed.join(", "));
    let first = models.keys().next().map(ToString::to_string).unwrap_or_default();
    Failure::input(message).hinted(format!("--only {}", shell_word(&first)))
}

/// Stores results and closes the batches that they answer.
pub(super) fn import(
    common: &Common,
    cache: &Path,
    args: &BatchImportArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let files: Vec<PathBuf> = args.files.iter().map(|file| given(common, file)).collect();
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        return Err(Failure::input(format!("there is no file {}", missing.display())));
    }
    let store = open_store(cache, console)?;
    let imported = runtime()?.block_on(import_results(&store, &files, args.keep_open));
    store.close()?;
    let imported = imported?;
    warn_of_lines(&imported, console);
    if imported.batches.is_empty() {
        let message = "no line answers an open batch; nothing was imported";
        return Err(Failure::input(message).hinted("compeval batch ls"));
    }
    console.report(&imported, || {
        imported.batches.iter().for_each(|batch| console.print(&batch_line(batch)));
        let next = CommandLine::current().of_project().command("run");
        console.print(&format!("{} {next}", console.paint(TextStyle::Hint, "next:")));
    });
    Ok(Exit::Done)
}

fn warn_of_lines(imported: &ImportedResults, console: &Console) {
    let ImportedResults { foreign, repeated, unreadable, .. } = imported;
    let warn = |lines: u64, of: &str| {
        if lines > 0 {
            console.warn("import:", format!("left out {} {of}", count(lines, "line")));
        }
    };
    if let Some((file, first, lines)) = unreadable {
        warn(*lines, &format!("without a result (the first: {}:{first})", file.display()));
    }
    warn(*foreign, "of no open batch");
    warn(*repeated, "with a second result");
}

fn batch_line(batch: &ImportedBatch) -> String {
    let ImportedBatch { nonce, stored, failed, unfinished, charge, is_closed } = batch;
    let mut parts = vec![format!("{stored} stored")];
    parts.extend((*failed > 0).then(|| format!("{failed} failed")));
    let then = if *is_closed { "missing, to be exported again" } else { "still missing" };
    parts.extend((*unfinished > 0).then(|| format!("{unfinished} {then}")));
    parts.extend(charge.filter(|usd| usd.0 > 0.0).map(|usd| money(Some(usd))));
    format!("{nonce}: {}", parts.join(", "))
}
