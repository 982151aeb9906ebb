//! `compeval cache`: list, show, compare, prune, verify and share entries.
//!
//! Commands that only read use a snapshot and can run beside a writer; the others open the store exclusively.

mod diff;
mod entry;
mod filter;
mod key;
mod ls;
mod maintenance;
mod prune;
mod reach;
mod remote;
mod show;
mod stats;

use clap::Subcommand;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::project_paths_of;
use crate::cli::remote::RemoteArgs;
use crate::cli::terminal::Console;
use filter::CacheFilter;
use key::KeyArgs;
use prune::PruneArgs;

pub(crate) use diff::hunk_lines;
pub(crate) use entry::{EntryJson, output_of, provenance, snapshot};
pub(crate) use filter::parse_age;
pub(crate) use show::{InputJson, input_lines, inputs_json};

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List entries
    #[command(
        after_help = "Examples:\n  compeval cache ls --stage judge\n  compeval cache ls --method anchored --older-than 30d"
    )]
    Ls(CacheFilter),
    /// Show one entry, output and provenance; or compare two, input by input
    #[command(
        after_help = "Examples:\n  compeval cache show 3f2a --inputs\n  compeval cache show 3f2a 91bc    what differs"
    )]
    Show {
        /// A unique prefix of its key
        key: String,
        /// The entry to compare it with
        other: Option<String>,
        /// Print only the stored bytes
        #[arg(long, conflicts_with = "other")]
        raw: bool,
        /// Also list the inputs
        #[arg(long, conflicts_with = "other")]
        inputs: bool,
    },
    /// Summarize by stage, model and age
    #[command(
        after_help = "Examples:\n  compeval cache stats\n  compeval cache stats --shared",
        mut_args(|arg| match arg.get_id().as_str() {
            "remote" | "trust" | "remote_mode" => arg.requires("shared"),
            _ => arg,
        })
    )]
    Stats {
        /// Summarize the shared cache instead, by writer
        #[arg(long)]
        shared: bool,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Upload what was made here to the shared cache
    #[command(after_help = "Examples:\n  compeval cache push --label baseline")]
    Push {
        /// Only what this result set needs
        #[arg(long)]
        label: Option<String>,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Add everything from the shared cache that is not here; `run` pulls what it needs automatically
    #[command(after_help = "Examples:\n  compeval cache pull --remote fs:///srv/compeval")]
    Pull(RemoteArgs),
    /// Remove entries and free their space
    #[command(
        after_help = "Examples:\n  compeval cache prune --unreachable --dry-run\n  compeval cache prune --older-than 30d"
    )]
    Prune(PruneArgs),
    /// Make a key pair that signs what is pushed, and print it. Nothing is stored
    #[command(after_help = "Examples:\n  compeval cache key --name ci")]
    Key(KeyArgs),
    /// Check the hash of every entry
    #[command(after_help = "Examples:\n  compeval cache verify")]
    Verify,
}

pub(crate) fn run(common: &Common, command: &CacheCommand, console: &Console) -> Result<Exit, Failure> {
    // A key needs no project.
    let paths = || project_paths_of(common);
    match command {
        CacheCommand::Ls(filter) => ls::run(&snapshot(&paths()?.cache, console)?, filter, console),
        CacheCommand::Show { key, other: Some(other), .. } => {
            diff::run(&snapshot(&paths()?.cache, console)?, key, other, console)
        }
        CacheCommand::Show { key, other: None, raw, inputs } => {
            show::run(&snapshot(&paths()?.cache, console)?, key, *raw, *inputs, console)
        }
        CacheCommand::Key(args) => key::run(args, console),
        CacheCommand::Stats { shared: true, remote } => remote::stats(&paths()?, remote, console),
        CacheCommand::Push { label, remote } => remote::push(&paths()?, remote, label.as_deref(), console),
        CacheCommand::Pull(remote) => remote::pull(&paths()?, remote, console),
        CacheCommand::Stats { .. } => {
            let paths = paths()?;
            stats::run(&snapshot(&paths.cache, console)?, &paths.results, console)
        }
        CacheCommand::Prune(args) => prune::run(common, &paths()?, args, console),
        CacheCommand::Verify => maintenance::verify(&paths()?.cache, console),
    }
}
