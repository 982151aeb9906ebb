//! The command line: arguments, one file per command, console, failure. The only room that prints.

mod budget_args;
mod args;
mod console;
mod grid;
mod failure;
mod project;
mod allowance;
mod traffic;
mod board;
mod progress;
mod interrupts;
mod engine;
mod record;
mod hearing;
mod publish;
mod words;
mod typed;
mod pager;
mod cell;
mod subject;
mod edited;
mod chain;
mod causes;
mod ending;
mod run;
mod init;
mod check;
mod plan;
mod compare;
mod report;
mod show;
mod why;
mod cache;
mod fixture;
mod probes;
mod judge;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use console::Console;
use failure::{Exit, Failure};

/// Runs the program with the arguments of this process; returns its exit code.
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows which stream is theirs.
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = error.print();
            return if asked { Exit::Done.code() } else { Exit::BadInput.code() };
        }
    };
    let console = Console::new(&cli.common);
    start_logging(cli.common.verbose, &console);
    match dispatch(&cli, &console) {
        Ok(exit) => exit.code(),
        Err(failure) => failure.report(&console).code(),
    }
}

fn dispatch(cli: &Cli, console: &Console) -> Result<Exit, Failure> {
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

/// Logs to standard error: once asked what the program does, twice every request.
fn start_logging(verbose: u8, console: &Console) {
    let level = match verbose {
        0 => return,
        1 => "compeval=info",
        2 => "compeval=debug",
        _ => "compeval=trace",
    };
    let logs =
        tracing_subscriber::fmt().with_env_filter(level).with_writer(std::io::stderr).with_ansi(console.colors());
    // A second start can only come from a test in this process, and the first one serves it.
    let _ = logs.with_target(false).try_init();
}
