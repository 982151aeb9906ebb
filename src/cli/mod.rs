//! The command line: arguments, one file per command, console, failures. The only module that prints.

mod args;
mod changes;
mod commands;
mod failure;
mod findings;
mod format;
mod interrupts;
mod project;
mod screen;
mod terminal;
mod usage;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::pipeline::{declared_locale, find_pipeline};
use crate::scheduler::{supervise_if_asked, use_supervisor};
use args::Common;
use commands::{Cli, dispatch};
use failure::{Exit, Failure};
use interrupts::prepare_process;
use project::folder;
use terminal::{Console, LogWriter};

/// Runs the program with the arguments of this process; returns its exit code.
pub fn main() -> u8 {
    if let Some(code) = supervise_if_asked() {
        return code;
    }
    use_supervisor();
    if std::env::args_os().len() == 1 && find_pipeline(Path::new("."), None).is_err() {
        return introduce();
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::MissingSubcommand => {
            return without_command(&error);
        }
        Err(error) => return usage::refuse(&error),
    };
    choose_language(&cli.common);
    let console = Console::new(&cli.common);
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

/// Parses the arguments of this process.
fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&Cli::command().try_get_matches_from(std::env::args_os())?)
}

/// Decides the language: the one on the command line, else that of the project, whether or not it can be opened.
fn choose_language(common: &Common) {
    if let Some(locale) = common.locale {
        return locale.choose();
    }
    let find = |config| find_pipeline(&folder(common), config).ok();
    // Where the file that was named is not there, the project of the folder still has a language.
    let file = find(common.config.as_deref()).or_else(|| find(None));
    let text = file.and_then(|file| base::files::read_text(&file).ok());
    if let Some(locale) = text.as_deref().and_then(declared_locale) {
        locale.set_of_project();
    }
}

/// What to print for global flags without a command: the introduction where the folder has no project, else clap's error.
fn without_command(error: &clap::Error) -> u8 {
    let mut program = Cli::command().ignore_errors(true);
    program.build();
    let matches = program.try_get_matches_from_mut(std::env::args_os());
    let matches = matches
        .ok()
        .filter(|matches| matches.subcommand_name().is_none());
    let common = matches
        .as_ref()
        .and_then(|matches| Common::from_arg_matches(matches).ok());
    // A file or a folder that is not there is a mistake of the user, and says nothing of a project.
    let common =
        common.filter(|common| !common.json && common.config.is_none() && folder(common).is_dir());
    if let Some(common) = common.filter(|common| find_pipeline(&folder(common), None).is_err()) {
        choose_language(&common);
        return introduce();
    }
    usage::refuse(error)
}

/// Prints an introduction, for `compeval` without a command where there is no project yet.
fn introduce() -> u8 {
    Console::plain().print(
        "compeval measures whether an agent can still do its work after its history was\ncompressed.\n\
         There is no project here. Try:\n\n  \
         compeval init   write a sample project that runs offline\n  \
         compeval run    run it and print the scores\n\n\
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
    let logs = tracing_subscriber::fmt()
        .with_env_filter(level)
        .with_writer(|| LogWriter)
        .with_ansi(console.colors);
    // A second start can only come from a test in this process, and the first one serves it.
    let _ = logs.with_target(false).try_init();
}
