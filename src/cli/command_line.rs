//! Builds the command line that a hint suggests: another command with the flags of this one that it accepts.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};

use crate::cli::commands::Cli;
use crate::cli::format::shell_word;

/// Flags that say which project is meant.
const PROJECT: [&str; 3] = ["directory", "config", "profile"];

/// The flags of a command line, each with its argument id and its text.
pub(crate) struct CommandLine {
    program: Command,
    flags: Vec<(String, String)>,
}

impl CommandLine {
    /// Those of this process.
    pub(crate) fn current() -> CommandLine {
        CommandLine::of(std::env::args_os())
    }

    fn of<W: Into<OsString> + Clone>(words: impl IntoIterator<Item = W>) -> CommandLine {
        let mut program = Cli::command();
        program.build();
        let matches = program.try_get_matches_from_mut(words).ok();
        let given = matches.as_ref().and_then(ArgMatches::subcommand);
        let flags = given.and_then(|(name, matches)| Some(flags(program.find_subcommand(name)?, matches)));
        CommandLine { flags: flags.unwrap_or_default(), program }
    }

    /// Only those that say which project is meant.
    pub(crate) fn of_project(self) -> CommandLine {
        self.only(&PROJECT)
    }

    /// Only those that say which project and which result set is meant.
    pub(crate) fn of_results(self) -> CommandLine {
        let [directory, config, profile] = PROJECT;
        self.only(&["label", directory, config, profile])
    }

    fn only(mut self, names: &[&str]) -> CommandLine {
        self.flags.retain(|(name, _)| names.contains(&name.as_str()));
        self
    }

    /// All but one.
    pub(crate) fn without(mut self, unwanted: &str) -> CommandLine {
        self.flags.retain(|(name, _)| name != unwanted);
        self
    }

    /// With `--label` as given, in the place of one that was given.
    pub(crate) fn with_label(self, label: &str) -> CommandLine {
        self.with("label", &format!("--label {}", shell_word(label)))
    }

    /// With a flag as given, in the place of one that was given.
    pub(crate) fn with(mut self, name: &str, words: &str) -> CommandLine {
        match self.flags.iter_mut().find(|(known, _)| known == name) {
            Some((_, given)) => words.clone_into(given),
            None => self.flags.push((name.to_owned(), words.to_owned())),
        }
        self
    }

    /// `command`, and behind it those flags that it takes.
    pub(crate) fn command(&self, command: &str) -> String {
        let target =
            command.split(' ').try_fold(&self.program, |program, word| program.find_subcommand(word).ok_or(program));
        let (Ok(target) | Err(target)) = target;
        let is_taken = |name: &str| target.get_arguments().any(|arg| arg.get_id() == name);
        let flags = self.flags.iter().filter(|(name, _)| is_taken(name)).map(|(_, words)| format!(" {words}"));
        format!("compeval {command}{}", flags.collect::<String>())
    }
}

/// The flags that were given, by name, in their order.
fn flags(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let is_typed = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut given: Vec<&Arg> = command.get_arguments().filter(is_typed).collect();
    given.sort_by_key(|arg| matches.index_of(arg.get_id().as_str()));
    given.into_iter().map(|arg| (arg.get_id().to_string(), words(arg, matches))).collect()
}

/// A flag as it can be given.
fn words(arg: &Arg, matches: &ArgMatches) -> String {
    let id = arg.get_id().as_str();
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => String::new(),
    };
    match arg.get_action() {
        ArgAction::SetTrue => name,
        ArgAction::Count => vec![name; usize::from(matches.get_count(id))].join(" "),
        _ => {
            let raw = matches.get_raw(id).into_iter().flatten();
            let values: Vec<String> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
            let values = match arg.get_value_delimiter() {
                Some(delimiter) => vec![values.join(&delimiter.to_string())],
                None => values,
            };
            let text = values.iter().map(|value| match value.starts_with('-') && name.starts_with("--") {
                // else it would be taken for a flag
                true => format!("{name}={}", shell_word(value)),
                false => format!("{name} {}", shell_word(value)),
            });
            text.collect::<Vec<String>>().join(" ").trim_start().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> CommandLine {
        CommandLine::of(line.split(' '))
    }

    #[test]
    fn flags_are_repeated_where_the_command_takes_them() {
        let plan = given("compeval plan --methods=a,b --refresh answer --refresh judge --runs 4 -C dir --exit-code");
        let run = "compeval run --methods a,b --refresh answer --refresh judge --runs 4 -C dir";
        assert_eq!(plan.command("run"), run);
        let run = given("compeval run -vv --max-cost 2 --offline --label x --judge-model m/j --focus-topic it's");
        let again = run.without("offline").with_label("y");
        let topic = r"--focus-topic 'it'\''s'";
        let text = format!("compeval run -v -v --max-cost 2 --label y --judge-model m/j {topic}");
        assert_eq!(again.command("run"), text);
        assert_eq!(again.command("plan"), format!("compeval plan -v -v --label y --judge-model m/j {topic}"));
        assert_eq!(given("compeval plan --focus-topic=-x").command("run"), "compeval run --focus-topic=-x");
        assert_eq!(again.command("judge selftest"), "compeval judge selftest -v -v --max-cost 2 --judge-model m/j");
    }

    #[test]
    fn a_look_at_the_same_results_repeats_where_they_are() {
        let show = given("compeval show f --method m --json --label a --profile ci").of_results();
        assert_eq!(show.command("why f --method n"), "compeval why f --method n --label a --profile ci");
        assert_eq!(show.of_project().command("plan"), "compeval plan --profile ci");
    }
}
