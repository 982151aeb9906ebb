//! Builds the command line that a hint suggests: another command with the flags of this one that it accepts. Without
//! them a hint that is copied would work on another project, with other models or without a budget.

use std::borrow::Cow;
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::cli::command_list::unused_flags;
use base::text::shell_word;

/// Flags that select the project.
const PROJECT: [&str; 4] = ["directory", "config", "profile", "locale"];

/// The command line of this process: one process has one, and every hint starts from it. It is static because errors
/// that are made far from the arguments have hints, too.
static CURRENT: OnceLock<CommandLine> = OnceLock::new();

/// The beginning of a command in a text.
const COMMAND: &str = "`compeval ";

/// A text as the user reads it: each command in it, which stands between backquotes, has the flags of this process that
/// select the project. Most texts are made where these are not known.
pub(crate) fn with_project_flags(text: &str) -> Cow<'_, str> {
    if text.contains(COMMAND) {
        CommandLine::current().of_project().complete(text).into()
    } else {
        text.into()
    }
}

/// The flags of a command line, each with its argument id and its text, and the commands that could take them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLine {
    program: Command,
    /// The command that was typed, as `cache ls`; empty where there was none.
    command: String,
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

    /// Reads the flags of the subcommand in `matches`; where there is none, those of the program. `program` must be
    /// built.
    pub(crate) fn new(program: Command, matches: &ArgMatches) -> CommandLine {
        let flags = match matches.subcommand() {
            Some((name, matches)) => program
                .find_subcommand(name)
                .map(|command| flags(command, matches)),
            None => Some(flags(&program, matches)),
        };
        CommandLine {
            command: command_of(matches),
            flags: flags.unwrap_or_default(),
            program,
        }
    }

    /// The first of its flags that has no effect on its command, as it was typed.
    pub(crate) fn unused_flag(&self) -> Option<&str> {
        unused_flags(&self.command)
            .iter()
            .find_map(|name| self.typed(name))
    }

    /// Only the flags that select the project.
    pub(crate) fn of_project(self) -> CommandLine {
        self.only(&PROJECT)
    }

    /// Only the flag that selects the folder.
    pub(crate) fn of_folder(self) -> CommandLine {
        self.only(&["directory"])
    }

    /// Only the flags that select the project, the result set, and the answers with a search in it.
    pub(crate) fn of_results(self) -> CommandLine {
        let [directory, config, profile, locale] = PROJECT;
        self.only(&[
            "label", "partial", "open", directory, config, profile, locale,
        ])
    }

    fn only(mut self, names: &[&str]) -> CommandLine {
        self.flags
            .retain(|(name, _)| names.contains(&name.as_str()));
        self
    }

    /// All flags but one.
    pub(crate) fn without(mut self, unwanted: &str) -> CommandLine {
        self.flags.retain(|(name, _)| name != unwanted);
        self
    }

    /// The flag called `name` as it was typed.
    pub(crate) fn typed(&self, name: &str) -> Option<&str> {
        self.flags
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, words)| words.as_str())
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

    /// `command`, followed by the flags that it accepts and does not have yet.
    pub(crate) fn command(&self, command: &str) -> String {
        let target = command.split(' ').try_fold(&self.program, |program, word| {
            program.find_subcommand(word).ok_or(program)
        });
        let (Ok(target) | Err(target)) = target;
        let known = self.flags.iter().filter(|(name, words)| {
            target
                .get_arguments()
                .any(|arg| arg.get_id() == name.as_str())
                && !unused_flags(command).contains(&name.as_str())
                && !format!(" {command} ").contains(&format!(" {words} "))
        });
        format!(
            "compeval {command}{}",
            known
                .map(|(_, words)| format!(" {words}"))
                .collect::<String>()
        )
    }

    /// A text in which each command between backquotes has the flags that it accepts.
    fn complete(&self, text: &str) -> String {
        let mut completed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, (command, after))) = rest
            .split_once(COMMAND)
            .and_then(|(before, from)| Some((before, from.split_once('`')?)))
        {
            let name = command.split(' ').next().unwrap_or_default();
            let command = match self.program.find_subcommand(name) {
                Some(_) => self.command(command),
                None => format!("compeval {command}"),
            };
            completed.push_str(&format!("{before}`{command}`"));
            rest = after;
        }
        completed + rest
    }
}

/// The names of the subcommands in `matches`, as `cache ls`.
fn command_of(matches: &ArgMatches) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut at = matches;
    while let Some((name, below)) = at.subcommand() {
        names.push(name);
        at = below;
    }
    names.join(" ")
}

/// The flags on the command line, in their order.
fn flags(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut given: Vec<&Arg> = command.get_arguments().collect();
    given.retain(|arg| {
        matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    });
    given.sort_by_key(|arg| matches.index_of(arg.get_id().as_str()));
    given
        .into_iter()
        .map(|arg| (arg.get_id().to_string(), words(arg, matches)))
        .collect()
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
            let values: Vec<String> = raw
                .map(|value| value.to_string_lossy().into_owned())
                .collect();
            let values = match arg.get_value_delimiter() {
                Some(delimiter) => vec![values.join(&delimiter.to_string())],
                None => values,
            };
            let text =
                values.iter().map(
                    |value| match value.starts_with('-') && name.starts_with("--") {
                        // else it would be taken for a flag
                        true => format!("{name}={}", shell_word(value)),
                        false => format!("{name} {}", shell_word(value)),
                    },
                );
            text.collect::<Vec<String>>()
                .join(" ")
                .trim_start()
                .to_owned()
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
        let plan = given(
            "compeval plan --methods=a,b --refresh answer --refresh judge --runs 4 -C dir --exit-code",
        );
        let run = "compeval run --methods a,b --refresh answer --refresh judge --runs 4 -C dir";
        assert_eq!(plan.command("run"), run);
        let run = given(
            "compeval run -vv --max-cost 2 --offline --label x --judge-model m/j --focus-topic it's",
        );
        let again = run.without("offline").with_label("y");
        let topic = r"--focus-topic 'it'\''s'";
        let text = format!("compeval run -v -v --max-cost 2 --label y --judge-model m/j {topic}");
        assert_eq!(again.command("run"), text);
        assert_eq!(
            again.command("plan"),
            format!("compeval plan -v -v --label y --judge-model m/j {topic}")
        );
        assert_eq!(
            given("compeval plan --focus-topic=-x").command("run"),
            "compeval run --focus-topic=-x"
        );
        assert_eq!(
            again.command("judge selftest"),
            "compeval judge selftest -v -v --max-cost 2 --judge-model m/j"
        );
    }

    #[test]
    fn commands_in_a_text_get_the_flags_that_select_the_project() {
        let check = given("compeval check --all -C dir --profile ci").of_project();
        let text = "`compeval probes generate a`, `compeval cache show KEY`, or `compeval init`; `compeval --help`, `-C x`";
        let completed = "`compeval probes generate a -C dir --profile ci`, `compeval cache show KEY -C dir --profile ci`, \
                         or `compeval init -C dir`; `compeval --help`, `-C x`";
        assert_eq!(check.complete(text), completed);
        assert_eq!(check.complete(completed), completed, "once is enough");
        let open = "no end: `compeval run";
        assert_eq!(
            (
                check.complete(open).as_str(),
                given("compeval check").complete(text).as_str()
            ),
            (open, text)
        );
    }

    #[test]
    fn a_command_does_not_get_flags_that_have_no_effect_on_it() {
        let check = given("compeval check -C dir -c other.toml");
        let all = ["init", "cache key --name ci", "plan"].map(|command| check.command(command));
        let expected = [
            "compeval init -C dir",
            "compeval cache key --name ci",
            "compeval plan -C dir -c other.toml",
        ];
        assert_eq!(all, expected);
        assert_eq!(
            given("compeval cache key -C dir").unused_flag(),
            Some("-C dir")
        );
        assert_eq!(given("compeval cache ls -C dir").unused_flag(), None);
        let mut program = crate::cli::commands::Cli::command().ignore_errors(true);
        program.build();
        let matches = program
            .try_get_matches_from_mut(["compeval", "-C", "dir", "--profile", "ci"])
            .unwrap();
        assert_eq!(
            CommandLine::new(program, &matches)
                .of_folder()
                .command("run"),
            "compeval run -C dir"
        );
    }

    #[test]
    fn a_look_at_the_same_results_repeats_where_they_are() {
        let open = given("compeval show f --open --label a --partial").of_results();
        assert_eq!(
            open.command("why f"),
            "compeval why f --open --label a --partial"
        );
        let show = given("compeval show f --method m --json --label a --profile ci").of_results();
        assert_eq!(
            show.command("why f --method n"),
            "compeval why f --method n --label a --profile ci"
        );
        assert_eq!(
            show.of_project().command("plan"),
            "compeval plan --profile ci"
        );
    }
}
