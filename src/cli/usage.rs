//! Mistakes on the command line, in the form of all errors: what is wrong, what to do.

use std::io::ErrorKind::BrokenPipe;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::commands::Cli;
use super::failure::Exit;
use super::terminal::Console;
use base::fault::nearest;
use base::files::typed_words;

/// Prints why the arguments cannot be used, or the help or version that was asked for; returns the exit code.
pub(super) fn refuse(error: &clap::Error) -> u8 {
    // Help and version are not errors; clap knows which stream they go to.
    if !error.use_stderr() {
        let is_printed = error
            .print()
            .map_or_else(|why| why.kind() == BrokenPipe, |()| true);
        return if is_printed { Exit::Done } else { Exit::Error }.code();
    }
    // A group without a command prints its help.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Without a standard error there is nobody to tell.
        let _ = error.print();
        return Exit::BadInput.code();
    }
    let words: Vec<String> = typed_words().collect();
    let console = Console::default();
    let printed = error.render().to_string();
    let (message, mut tips) = parts_of(&printed);
    // What is missing is seen best beside what is there.
    if error.kind() == ErrorKind::MissingRequiredArgument {
        let usage = printed
            .lines()
            .find_map(|line| line.strip_prefix("Usage: "));
        tips.extend(usage.map(|usage| format!("write `{usage}`")));
    }
    console.error("error:", message);
    console.eprint(&console.help_line(advice(error, &tips, &words)));
    Exit::BadInput.code()
}

/// The message in what clap prints, with the values that it lists, and its tips.
fn parts_of(printed: &str) -> (String, Vec<String>) {
    let lines = printed
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let (tips, message): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| !line.trim().is_empty())
        .partition(|line| line.trim_start().starts_with("tip: "));
    let message = message.join("\n");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let tips = tips
        .iter()
        .filter_map(|tip| tip.trim_start().strip_prefix("tip: "));
    (message.to_owned(), tips.map(str::to_owned).collect())
}

/// What to do about it: the word that was probably meant, else clap's tip, else where the words are listed.
fn advice(error: &clap::Error, tips: &[String], words: &[String]) -> String {
    let suggestions = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    let meant = suggestions
        .into_iter()
        .find_map(|kind| match error.get(kind)? {
            ContextValue::String(word) => Some(word.clone()),
            // The most similar one is the last.
            ContextValue::Strings(words) => words.last().cloned(),
            _ => None,
        });
    if let Some(meant) = meant {
        return format!("did you mean `{meant}`?");
    }
    let program = Cli::command();
    let (path, at) = command_at(&program, words);
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        let names: Vec<&str> = at.get_subcommands().map(Command::get_name).collect();
        let meant = nearest(word, &names)
            .map(str::to_owned)
            .or_else(|| path_to(&program, word));
        return match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("commands: {}", names.join(", ")),
        };
    }
    match tips.first() {
        Some(tip) => tip.clone(),
        None => format!("`{path} --help` lists what it takes"),
    }
}

/// The last known command among these words, with how it is called.
fn command_at<'p>(program: &'p Command, words: &[String]) -> (String, &'p Command) {
    let (mut path, mut at) = (program.get_name().to_owned(), program);
    for word in words {
        if let Some(below) = at.find_subcommand(word) {
            path = format!("{path} {word}");
            at = below;
        }
    }
    (path, at)
}

/// The command of this name below another, as in `judge selftest`.
fn path_to(program: &Command, name: &str) -> Option<String> {
    let mut groups = program.get_subcommands();
    groups.find_map(|group| {
        let below = group.find_subcommand(name)?;
        Some(format!("{} {}", group.get_name(), below.get_name()))
    })
}
