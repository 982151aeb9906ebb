//! Builds the command line that a hint suggests: another command with the flags of this one that it accepts. Without
//! them a hint that is copied would work on another project, with other models or without a budget.

use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use base::text::shell_word;

/// Flags that select the project.
const PROJECT: [&str; 4] = ["directory", "config", "profile", "locale"];

/// The command line of this process: one process has one, and every hint starts from it. It is static because errors
/// that are made far from the arguments have hints, too.
static CURRENT: OnceLock<CommandLine> = OnceLock::new();

/// The flags of a command line, each with its argument id and its text, and the commands that could take them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLine {
    program: Command,
    flags: Vec<(String, String)>,
}

impl CommandLine {
    /// The command line of this process; without flags if none was set.
    pub(crate) fn current() -> CommandLine {
        CURRENT.get().cloned().unwrap_or_default()
    }

    /// Sets the command line of this process; only the first call has an effect.
    pub(crate) fn set_current(self) {
        let _ = CURRENT.set(self);
    }

    /// Reads the flags of the subcommand in `matches`. `program` must be built.
    pub(crate) fn new(program: Command, matches: &ArgMatches) -> CommandLine {
        let subcommand = matches.subcommand();
        let flags = subcommand.and_then(|(name, matches)| Some(flags(program.find_subcommand(name)?, matches)));
        CommandLine { flags: flags.unwrap_or_default(), program }
    }

    /// Only the flags that select the project.
    pub(crate) fn of_project(self) -> CommandLine {
        self.only(&PROJECT)
    }

    /// Only the flags that select the project and the result set.
    pub(crate) fn of_results(self) -> CommandLine {
        let [directory, config, profile, locale] = PROJECT;
        self.only(&["label", directory, config, profile, locale])
    }

    fn only(mut self, names: &[&str]) -> CommandLine {
        self.flags.retain(|(name, _)| names.contains(&name.as_str()));
        self
    }

    /// All flags but one.
    pub(crate) fn without(mut self, unwanted: &str) -> CommandLine {
        self.flags.retain(|(name, _)| name != unwanted);
        self
    }

    /// The flag called `name` as it was typed.
    pub(crate) fn typed(&self, name: &str) -> Option<&str> {
        self.flags.iter().find(|(known, _)| known == name).map(|(_, words)| words.as_str())
    }

    /// Sets or replaces `--label`.
    pub(crate) fn with_label(self, label: &str) -> CommandLine {
        self.with("label", &format!("--label {}", shell_word(label)))
    }

    /// Sets or replaces a flag.
    pub(crate) fn with(mut self, name: &str, words: &str) -> CommandLine {
        match self.flags.iter_mut().find(|(known, _)| known == name) {
            Some((_, given)) => words.clone_into(given),
            None => self.flags.push((name.to_owned(), words.to_owned())),
        }
        self
    }

    /// `command`, followed by the flags that it accepts.
    pub(crate) fn command(&self, command: &str) -> String {
        let target =
            command.split(' ').try_fold(&self.program, |program, word| program.find_subcommand(word).ok_or(program));
        let (Ok(target) | Err(target)) = target;
        let known =
            self.flags.iter().filter(|(name, _)| target.get_arguments().any(|arg| arg.get_id() == name.as_str()));
        format!("compeval {command}{}", known.map(|(_, words)| format!(" {words}")).collect::<String>())
    }
}

/// The flags on the command line, in their order.
fn flags(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut given: Vec<&Arg> = command.get_arguments().collect();
    given.retain(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine));
    given.sort_by_key(|arg| matches.index_of(arg.get_id().as_str()));
    given.into_iter().map(|arg| (arg.get_id().to_string(), words(arg, matches))).collect()
}

/// The text of a flag.
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
    use clap::CommandFactory;

    use super::*;

    fn given(line: &str) -> CommandLine {
        let mut program = crate::cli::commands::Cli::command();
        program.build();
        let matches = program.try_get_matches_from_mut(line.split(' ')).unwrap();
        CommandLine::new(program, &matches)
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
