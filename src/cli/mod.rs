//! The command line: arguments, one file per command, console, failures. The only module that prints.

mod access;
mod args;
mod browser;
mod command_line;
mod commands;
mod completion;
mod failure;
mod findings;
mod format;
mod interrupts;
mod live;
mod notices;
mod screen;
mod loopback;
mod project;
mod remote;
mod run_log;
mod shard;
mod stop_reasons;
mod terminal;

use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::pipeline::find_pipeline;
use crate::scheduler::{supervise_if_asked, use_supervisor};
use command_line::CommandLine;
use commands::{Cli, dispatch};
use failure::Exit;
use terminal::{Console, LogWriter};

/// Runs the program with the arguments of this process; returns its exit code.
pub fn main() -> u8 {
    if let Some(code) = supervise_if_asked() {
        return code;
    }
    use_supervisor();
    completion::complete_if_asked(Cli::command);
    if std::env::args_os().len() == 1 && find_pipeline(Path::new("."), None).is_err() {
        return introduce();
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; clap knows which stream they go to.
            let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
            let knows_no_better = error.kind() == ErrorKind::InvalidSubcommand
                && error.get(clap::error::ContextKind::SuggestedSubcommand).is_none();
            let is_printed = error.print().map_or_else(|error| is_closed(&error), |()| true);
            if knows_no_better {
                let program = Cli::command();
                let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
                Console::plain().eprint(&format!("commands: {}", names.join(", ")));
            }
            return match is_requested {
                true if is_printed => Exit::Done.code(),
                true => Exit::Error.code(),
                false => Exit::BadInput.code(),
            };
        }
    };
    let console = Console::new(&cli.common);
    start_logging(cli.common.verbose, &console);
    let exit = dispatch(&cli, &console).unwrap_or_else(|failure| failure.report(&console));
    match Console::output_error() {
        None => exit.code(),
        Some(error) => {
            console.eprint(&format!("error: standard output could not be written: {error}"));
            Exit::Error.code()
        }
    }
}

/// Parses the arguments of this process, once for the command and for the hints that repeat its flags.
fn parse() -> Result<Cli, clap::Error> {
    let mut program = Cli::command();
    program.build();
    let matches = program.try_get_matches_from_mut(std::env::args_os())?;
    let cli = Cli::from_arg_matches(&matches)?;
    CommandLine::new(program, &matches).set_current();
    Ok(cli)
}

/// What a user sees who types `compeval` where there is no project yet.
fn introduce() -> u8 {
    Console::plain().print(
        "compeval measures whether an agent can still do its work after its history was compressed.\n\
         There is no project here. Try:\n\n  \
         compeval init               write a sample project that runs offline\n  \
         compeval run                run it and print the scores\n\n\
         `compeval --help` lists all commands.",
    );
    Exit::Done.code()
}

/// Logs to standard error: `-v` logs what the program does, `-vv` every request.
fn start_logging(verbose: u8, console: &Console) {
    let level = match verbose {
        0 => return,
        1 => "compeval=info",
        2 => "compeval=debug",
        _ => "compeval=trace",
    };
    let logs = tracing_subscriber::fmt().with_env_filter(level).with_writer(|| LogWriter).with_ansi(console.colors);
    // A second start can only come from a test in this process, and the first one serves it.
    let _ = logs.with_target(false).try_init();
}
