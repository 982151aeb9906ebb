//! `compeval labels`: lists, removes and protects result sets.

mod list;

use std::path::Path;

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::report::refresh_result_index;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{given_results, project_paths_of};
use crate::cli::terminal::Console;
use crate::results::{
    FolderError, LabelWriterError, ResultsFolder, lock_results, open_results, remove_results,
};
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
        LabelsCommand::Ls => list::run(&results, console),
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
