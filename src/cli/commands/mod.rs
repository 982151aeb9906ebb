//! The commands: each file or folder holds one command with its own arguments. The shortest ones are here.

mod batch;
mod cache;
mod cell;
mod check;
mod compare;
mod fixture;
mod guard;
mod init;
mod judge;
mod labels;
mod observe;
mod plan;
mod planted;
mod probes;
mod report;
mod run;
mod show;
mod why;

use batch::BatchCommand;
use cache::CacheCommand;
use cell::ShowArgs;
use check::CheckArgs;
use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, Parser, Subcommand};
use compare::CompareArgs;
use fixture::FixtureCommand;
use init::InitArgs;
use judge::JudgeCommand;
use labels::LabelsCommand;
use observe::ObserveArgs;
use plan::PlanArgs;
use probes::ProbesCommand;
use report::ReportArgs;
use run::RunArgs;
use serde_json::Value;

use super::args::Common;
use super::failure::{Exit, Failure};
use super::project::check_variables;
use super::terminal::Console;
use crate::pipeline::SCHEMAS;
use guard::GuardArgs;

/// After an agent's history was compressed, can the agent still do its work?
#[derive(Debug, Parser)]
#[command(
    name = "compeval",
    version,
    arg_required_else_help = true,
    after_help = "Start: compeval run --sample    a sample project, without a key or a network",
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a project: a sample that runs offline, or an empty one
    #[command(
        after_help = "Examples:\n  compeval init            write it into this folder\n  compeval init my-project\n  \
                      compeval init my-project --empty    for your own sessions"
    )]
    Init(InitArgs),
    /// Validate the project; only --ping sends requests, one per model
    #[command(
        after_help = "Examples:\n  compeval check\n  compeval check --all     each finding at its place\n  compeval check --json    for CI"
    )]
    Check(CheckArgs),
    /// Show what a run would do and cost, and why; sends no request
    #[command(
        after_help = "Examples:\n  compeval plan\n  compeval plan --methods anchored --exit-code"
    )]
    Plan(PlanArgs),
    /// Compress, answer and grade; write the results, print the summary
    #[command(
        after_help = "Examples:\n  compeval run\n  compeval run --label new-prompt --compare-to baseline --max-cost 5\n  \
                      compeval run --methods anchored,truncate --fixtures config-reverse-proxy --runs 1",
        after_long_help = "Examples:\n  compeval run --label new-prompt --compare-to baseline --max-cost 5\n  \
                            compeval run --label nightly --part 3/8 --remote fs:///srv/nightly    one of eight processes\n  \
                            compeval run --label nightly --remote fs:///srv/nightly --offline     their results"
    )]
    Run(RunArgs),
    /// Compare two result sets, with a verdict for each dimension
    #[command(
        after_help = "Examples:\n  compeval compare new-prompt baseline\n  compeval compare new-prompt:anchored new-prompt:truncate\n  \
                      compeval compare new-prompt baseline --html changes.html"
    )]
    Compare(CompareArgs),
    /// Print results again; rewrite or open their report, export CSV
    #[command(
        after_help = "Examples:\n  compeval report baseline\n  compeval report --open              the newest, in the browser that BROWSER names\n  \
                      compeval report baseline --csv > cells.csv"
    )]
    Report(ReportArgs),
    /// Show one cell: question, context, answer, grades
    #[command(
        after_help = "Examples:\n  compeval show config-reverse-proxy\n  compeval show config-reverse-proxy --method anchored --probe p1-port --run 1"
    )]
    Show {
        #[command(flatten)]
        cell: ShowArgs,
        /// The items planted in it: what was said, what the contexts have, what was replied
        #[arg(long, conflicts_with_all = ["probe", "open"])]
        planted: bool,
    },
    /// Explain a score: the actions behind it, and what changed in them
    #[command(
        after_help = "Examples:\n  compeval why config-reverse-proxy --method anchored --probe p1-port"
    )]
    Why(ShowArgs),
    /// List, remove and protect result sets
    #[command(subcommand)]
    Labels(LabelsCommand),
    /// List and cancel open batches
    #[command(subcommand)]
    Batch(BatchCommand),
    /// List, prune and verify cached outputs
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Import session logs as fixtures; scrub fixtures again
    #[command(subcommand)]
    Fixture(FixtureCommand),
    /// Show what sessions in logs did after compactions
    #[command(
        after_help = format!("Examples:\n  compeval observe ~/.claude/projects\n  compeval observe ~/.codex/sessions --html worst.html\n\n{}", observe::formats_help())
    )]
    Observe(ObserveArgs),
    /// Say whether a summary may replace the history it was made from
    #[command(
        after_help = "Examples:\n  compeval guard --before history.json --after compacted.json\n  compeval guard --before history.json --after - --json\n\n\
                      Exit code: 0 pass, warning or unchecked, 100 reject, 2 bad input"
    )]
    Guard(GuardArgs),
    /// Generate questions about fixtures
    #[command(subcommand)]
    Probes(ProbesCommand),
    /// Test a judge, compare it with people, or let it grade an answer
    #[command(subcommand)]
    Judge(JudgeCommand),
    /// Print the JSON Schema of a file that you write
    #[command(
        after_help = "Examples:\n  compeval schema pipeline > schemas/pipeline.schema.json\n\n\
                            In pipeline.toml: #:schema ./schemas/pipeline.schema.json\n\
                            In a fixture or bank: \"$schema\": \"../schemas/bank.schema.json\""
    )]
    Schema {
        /// The kind of file
        #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
        file: String,
    },
    /// Print a shell completion script
    #[command(
        after_help = "Examples:\n  compeval completions bash > ~/.local/share/bash-completion/completions/compeval"
    )]
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Runs the parsed command.
pub(super) fn dispatch(cli: &Cli, console: &Console) -> Result<Exit, Failure> {
    check_variables()?;
    let common = &cli.common;
    let needs_no_project = matches!(
        cli.command,
        Command::Init(_)
            | Command::Observe(_)
            | Command::Guard(_)
            | Command::Schema { .. }
            | Command::Completions { .. }
    );
    let reads_no_file = matches!(
        cli.command,
        Command::Schema { .. } | Command::Completions { .. }
    );
    let unused = [
        ("--config", needs_no_project && common.config.is_some()),
        ("--profile", needs_no_project && common.profile.is_some()),
        ("--directory", reads_no_file && common.directory.is_some()),
    ];
    if let Some((flag, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::input(format!(
            "{flag} has no effect on this command; leave it out"
        )));
    }
    match &cli.command {
        Command::Init(args) => init::run(common, args, console),
        Command::Check(args) => check::run(common, args, console),
        Command::Plan(args) => plan::run(common, args, console),
        Command::Run(args) => run::run(common, args, console),
        Command::Compare(args) => compare::run(common, args, console),
        Command::Report(args) => report::run(common, args, console),
        Command::Show {
            cell,
            planted: true,
        } => planted::run(common, cell, console),
        Command::Show { cell, .. } => show::run(common, cell, console),
        Command::Why(args) => why::run(common, args, console),
        Command::Labels(command) => labels::run(common, command, console),
        Command::Cache(command) => cache::run(common, command, console),
        Command::Batch(command) => batch::run(common, command, console),
        Command::Fixture(command) => fixture::run(common, command, console),
        Command::Observe(args) => observe::run(common, args, console),
        Command::Guard(args) => guard::run(common, args, console),
        Command::Probes(command) => probes::run(common, command, console),
        Command::Judge(command) => judge::run(common, command, console),
        Command::Schema { file } => print_schema(file, console),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "compeval", &mut script);
            console.raw(&script);
            Ok(Exit::Done)
        }
    }
}

fn print_schema(file: &str, console: &Console) -> Result<Exit, Failure> {
    let make = SCHEMAS
        .iter()
        .find(|(name, _)| *name == file)
        .map(|(_, make)| make);
    console.raw(format!("{:#}\n", make.map_or(Value::Null, |make| make())).as_bytes());
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &clap::Command, path: &str) -> Vec<String> {
        let below: Vec<&clap::Command> = command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
            .collect();
        let name = |below: &clap::Command| format!("{path} {}", below.get_name()).trim().to_owned();
        match below.is_empty() {
            true => vec![path.to_owned()],
            false => below
                .into_iter()
                .flat_map(|below| leaves(below, &name(below)))
                .collect(),
        }
    }

    #[test]
    fn there_are_few_commands_and_their_list_fits_into_80_columns() {
        let mut program = Cli::command();
        let leaves = leaves(&program, "");
        assert!(leaves.len() <= 30, "{} commands: {leaves:?}", leaves.len());
        let page = program.render_help().to_string();
        let list = page.lines().take_while(|line| *line != "Options:");
        let long: Vec<&str> = list.filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, Vec::<&str>::new());
    }
}
