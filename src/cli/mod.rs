//! The command line: arguments, one file per command, console, failures. The only module that prints.

mod args;
mod changes;
mod commands;
mod failure;
mod format;
mod interrupts;
mod project;
mod screen;
mod terminal;
mod usage;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Parser;

use crate::scheduler::{supervise_if_asked, use_supervisor};
use commands::{Cli, dispatch};
use failure::{Exit, Failure};
use interrupts::prepare_process;
use project::locale_of;
use terminal::{Console, LogWriter};

/// Runs the program with the arguments of this process; returns its exit code.
pub fn main() -> u8 {
    if let Some(code) = supervise_if_asked() {
        return code;
    }
    use_supervisor();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    let console = Console::new(&cli.common, locale_of(&cli.common));
    start_logging(cli.common.verbose, &console);
    let command = AssertUnwindSafe(|| prepare_process().and_then(|()| dispatch(&cli, &console)));
    let ended = catch_unwind(command)
        .unwrap_or_else(|_| Err(Failure::error("a fault of compeval; please report it")));
    let exit = ended.unwrap_or_else(|failure| failure.report(&console));
    match Console::output_error() {
        None => exit.code(),
        Some(error) => {
            console.eprint(&format!(
                "error: standard output could not be written: {error}"
            ));
            Exit::Error.code()
        }
    }
}

/// Logs to standard error: `-v` logs what the program does, `-vv` every request.
fn start_logging(verbose: u8, console: &Console) {
    let level = match verbose {
        0 => return,
        1 => "compeval=info",
        2 => "compeval=debug",
        _ => "compeval=trace",
    };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(level)
        .with_writer(|| LogWriter)
        .with_ansi(console.colors);
    // A second start can only come from a test in this process, and the first one serves it.
    let _ = logs.with_target(false).try_init();
}
