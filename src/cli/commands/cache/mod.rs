//! `compeval cache`: look at, prune, verify and move what was kept.
//!
//! Commands that only read take a snapshot and run beside a writer; the others open the store for themselves.

mod diff;
mod entry;
mod filter;
mod inspect;
mod limits;
mod ls;
mod prune;
mod reach;
mod stats;
mod transfer;
mod verify;

use std::path::PathBuf;

use clap::Subcommand;

use crate::cache::{CacheError, Snapshot};
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{given, open_snapshot, project_paths_of};
use crate::cli::terminal::{Console, Meaning};
use filter::CacheFilter;
use prune::PruneArgs;

pub(crate) use diff::hunk_lines;
pub(crate) use entry::{EntryJson, output_of, provenance};
pub(crate) use inspect::{InputJson, input_lines, inputs_json};

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List entries
    Ls(CacheFilter),
    /// Show one entry: output and provenance
    Show {
        /// A unique prefix of its key
        key: String,
        /// Print the stored bytes alone
        #[arg(long)]
        raw: bool,
        /// List the inputs too
        #[arg(long)]
        inputs: bool,
    },
    /// Compare two entries input by input
    Diff {
        /// A unique key prefix
        a: String,
        /// A unique key prefix
        b: String,
    },
    /// Sum up by stage, model and age
    Stats,
    /// Remove entries and give their space back
    Prune(PruneArgs),
    /// Re-hash everything
    Verify,
    /// Write entries to one file
    Export {
        /// The file to write
        file: PathBuf,
        /// Only what this result set stands on
        #[arg(long)]
        label: Option<String>,
    },
    /// Add the entries of an exported file
    Import {
        /// The file to read
        file: PathBuf,
    },
}

pub(crate) fn run(common: &Common, command: &CacheCommand, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    match command {
        CacheCommand::Ls(filter) => ls::run(&snapshot(&paths.cache, console)?, filter, console),
        CacheCommand::Show { key, raw, inputs } => {
            inspect::run(&snapshot(&paths.cache, console)?, key, *raw, *inputs, console)
        }
        CacheCommand::Diff { a, b } => diff::run(&snapshot(&paths.cache, console)?, a, b, console),
        CacheCommand::Stats => stats::run(&snapshot(&paths.cache, console)?, &paths.results, console),
        CacheCommand::Prune(args) => prune::run(common, &paths, args, console),
        CacheCommand::Verify => verify::run(&paths.cache, console),
        CacheCommand::Export { file, label } => {
            let snapshot = snapshot(&paths.cache, console)?;
            transfer::export(&snapshot, &paths.results, &given(common, file), label.as_deref(), console)
        }
        CacheCommand::Import { file } => transfer::import(&paths.cache, &given(common, file), console),
    }
}

/// A snapshot; damage met on the way is told.
pub(crate) fn snapshot(cache: &std::path::Path, console: &Console) -> Result<Snapshot, Failure> {
    let snapshot = open_snapshot(cache)?;
    for notice in snapshot.notices() {
        console.eprint(&format!("{} {notice}", console.paint(Meaning::Warning, "cache:")));
    }
    Ok(snapshot)
}

/// A key or a file that the user named wrongly is wrong input; anything else is an error.
fn failure(error: CacheError) -> Failure {
    let is_input = matches!(
        error,
        CacheError::BadPrefix { .. }
            | CacheError::UnknownPrefix { .. }
            | CacheError::AmbiguousPrefix { .. }
            | CacheError::BadTarget { .. }
            | CacheError::BadImport { .. }
    );
    let failure = Failure::from(error);
    if is_input { failure.exiting(Exit::BadInput) } else { failure }
}
