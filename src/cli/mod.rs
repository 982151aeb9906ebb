//! The command line: arguments, one file per command, console, failure. The only room that prints.

mod args;
mod console;
mod failure;
mod project;
mod engine;
mod record;
mod run;

use clap::Parser;
use clap::error::ErrorKind;

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
    match dispatch(&cli, &console) {
        Ok(exit) => exit.code(),
        Err(failure) => failure.report(&console).code(),
    }
}

fn dispatch(cli: &Cli, console: &Console) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Run(args) => run::run(&cli.common, args, console),
        _ => Err(Failure::error("not yet")),
    }
}
