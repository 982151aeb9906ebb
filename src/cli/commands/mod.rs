//! The commands: each file or folder holds one command with its own arguments.

mod cache;
mod cell;
mod check;
mod compare;
mod fixture;
mod init;
mod judge;
mod plan;
mod probes;
mod report;
mod run;
mod show;
mod why;

use clap::{CommandFactory, Parser, Subcommand};

use super::args::Common;
use super::failure::{Exit, Failure};
use super::terminal::Console;
use cache::CacheCommand;
use cell::ShowArgs;
use compare::CompareArgs;
use fixture::FixtureCommand;
use init::InitArgs;
use judge::JudgeCommand;
use plan::PlanArgs;
use probes::ProbesCommand;
use report::ReportArgs;
use run::RunArgs;

/// After an agent's history was compressed, can the agent still do its work?
#[derive(Debug, Parser)]
#[command(name = "compeval", version, max_term_width = 100, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a project that runs
    Init(InitArgs),
    /// Validate everything without calling anyone
    Check,
    /// Say what would run, what is cached, and why each stale group is stale
    Plan(PlanArgs),
    /// Run the matrix, write results, print the summary
    Run(RunArgs),
    /// Compare two labels: a verdict for each dimension
    Compare(CompareArgs),
    /// Write report.md and report.html again
    Report(ReportArgs),
    /// Show one cell, whole
    Show(ShowArgs),
    /// Explain a score: the chain of actions behind it
    Why(ShowArgs),
    /// Look at, prune, verify and move the cache
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Make fixtures from real session logs
    #[command(subcommand)]
    Fixture(FixtureCommand),
    /// Generate probe banks
    #[command(subcommand)]
    Probes(ProbesCommand),
    /// Examine a judge
    #[command(subcommand)]
    Judge(JudgeCommand),
    /// Print a completion script
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Runs the command that was typed.
pub(super) fn dispatch(cli: &Cli, console: &Console) -> Result<Exit, Failure> {
    let common = &cli.common;
    match &cli.command {
        Command::Init(args) => init::run(common, args, console),
        Command::Check => check::run(common, console),
        Command::Plan(args) => plan::run(common, args, console),
        Command::Run(args) => run::run(common, args, console),
        Command::Compare(args) => compare::run(common, args, console),
        Command::Report(args) => report::run(common, args, console),
        Command::Show(args) => show::run(common, args, console),
        Command::Why(args) => why::run(common, args, console),
        Command::Cache(command) => cache::run(common, command, console),
        Command::Fixture(command) => fixture::run(common, command, console),
        Command::Probes(command) => probes::run(common, command, console),
        Command::Judge(command) => judge::run(common, command, console),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "compeval", &mut script);
            console.raw(&script);
            Ok(Exit::Done)
        }
    }
}
