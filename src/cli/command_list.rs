//! The commands in groups by purpose, the global flags that they do not use, and the names that they had in earlier
//! versions.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

/// The commands by purpose, in the order in which a newcomer needs them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["init", "check"]),
    ("Evaluate", &["plan", "run"]),
    (
        "Read results",
        &["show", "why", "compare", "report", "labels"],
    ),
    ("Sessions and probes", &["observe", "fixture", "probes"]),
    ("Judges", &["judge"]),
    (
        "Cache and tools",
        &["cache", "batch", "schema", "completions", "man"],
    ),
];

/// Commands of earlier versions, each with its replacement; `None` if it has none.
const FORMER: [(&str, Option<&str>); 11] = [
    ("open", Some("compeval report --open")),
    ("merge", Some("compeval run --parts N --remote URL")),
    ("trend", Some("compeval labels trend")),
    ("key", Some("compeval cache key")),
    ("cache diff", Some("compeval cache show KEY KEY")),
    (
        "cache export",
        Some("compeval cache push --remote fs:///FOLDER"),
    ),
    (
        "cache import",
        Some("compeval cache pull --remote fs:///FOLDER"),
    ),
    ("cache upgrade", None),
    ("fixture stats", Some("compeval check --all")),
    ("batch export", None),
    ("batch import", None),
];

/// Flags of earlier versions, each with its replacement.
const FORMER_FLAGS: [(&str, &str); 3] = [
    ("--shard", "--part I/N --remote URL"),
    ("--selftest", "compeval judge selftest --remote URL"),
    ("--export", "--remote URL"),
];

/// The global flags that have no effect on a command, by their ids. `command` may have arguments behind its name.
pub(crate) fn unused_flags(command: &str) -> &'static [&'static str] {
    let mut words = command.split(' ');
    match (words.next().unwrap_or_default(), words.next()) {
        ("init" | "observe", _) => &["config", "profile"],
        ("cache", Some("key")) => &["directory", "config", "profile"],
        ("schema" | "man" | "completions", _) => &["directory", "config", "profile", "json"],
        _ => &[],
    }
}

/// Gives the program a help page with its commands in groups.
pub(super) fn with_groups(program: Command) -> Command {
    let page = help_page(&program);
    program.help_template(page)
}

fn help_page(program: &Command) -> StyledStr {
    let styles = program.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .map(|name| name.len())
        .max()
        .unwrap_or(0);
    let mut page = StyledStr::new();
    // Writing to memory cannot fail.
    let _ = write!(
        page,
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n"
    );
    for (title, names) in GROUPS {
        let _ = writeln!(page, "\n{header}{title}:{header:#}");
        for name in names {
            let about = program
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map(ToString::to_string);
            let about = about.unwrap_or_default();
            let _ = writeln!(page, "  {literal}{name:<width$}{literal:#}  {about}");
        }
    }
    let _ = write!(
        page,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    page
}

/// The error for a command of an earlier version, with its replacement; `None` if these words never named one. `unknown`
/// is the word that is not a command.
pub(super) fn former_command(words: &[String], unknown: &str) -> Option<String> {
    let (former, successor) = FORMER.iter().find(|(former, _)| {
        let parts: Vec<&str> = former.split(' ').collect();
        parts.last() == Some(&unknown) && words.windows(parts.len()).any(|window| window == parts)
    })?;
    Some(match successor {
        Some(successor) => format!("`compeval {former}` is now `{successor}`"),
        None => format!("`compeval {former}` was removed, and nothing takes its place"),
    })
}

/// The error for a flag of an earlier version, with its replacement; `None` if there never was one.
pub(super) fn former_flag(words: &[String]) -> Option<String> {
    let flags = words.iter().filter_map(|word| word.split('=').next());
    let (former, successor) = FORMER_FLAGS
        .iter()
        .find(|(former, _)| flags.clone().any(|flag| flag == *former))?;
    Some(format!("{former} is now `{successor}`"))
}

/// The subcommands of the last known command among these words.
pub(super) fn commands_at<'p>(program: &'p Command, words: &[String]) -> Vec<&'p str> {
    let mut at = program;
    for word in words {
        at = at.find_subcommand(word).unwrap_or(at);
    }
    at.get_subcommands().map(Command::get_name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::commands::Cli;

    fn leaves(command: &Command, path: &str) -> Vec<String> {
        let below: Vec<&Command> = command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
            .collect();
        let name = |below: &Command| format!("{path} {}", below.get_name()).trim().to_owned();
        match below.is_empty() {
            true => vec![path.to_owned()],
            false => below
                .into_iter()
                .flat_map(|below| leaves(below, &name(below)))
                .collect(),
        }
    }

    #[test]
    fn every_command_is_in_one_group_and_there_are_few() {
        let program = Cli::command();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let known: BTreeSet<&str> = program.get_subcommands().map(Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "a command is in two groups");
        let leaves = leaves(&program, "");
        assert!(leaves.len() <= 34, "{} commands: {leaves:?}", leaves.len());
    }

    #[test]
    fn the_list_of_commands_fits_into_80_columns() {
        let page = help_page(&Cli::command()).to_string();
        let long: Vec<&str> = page
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert_eq!(long, Vec::<&str>::new());
    }

    #[test]
    fn a_former_word_is_no_command_and_its_successor_is_one() {
        let program = Cli::command();
        let all = leaves(&program, "");
        for (former, successor) in FORMER {
            assert!(
                !all.iter().any(|leaf| leaf == former),
                "{former} is a command"
            );
            let words: Vec<String> = former.split(' ').map(str::to_owned).collect();
            let text = words
                .last()
                .and_then(|unknown| former_command(&words, unknown))
                .unwrap_or_default();
            let Some(successor) = successor else { continue };
            assert!(text.ends_with(&format!("is now `{successor}`")), "{text}");
            let named = successor.trim_start_matches("compeval ");
            assert!(
                all.iter().any(|leaf| named.starts_with(leaf.as_str())),
                "{successor} names no command"
            );
        }
        let of_words = |line: &str, unknown: &str| {
            former_command(
                &line.split(' ').map(str::to_owned).collect::<Vec<String>>(),
                unknown,
            )
        };
        assert_eq!(of_words("run", "run"), None);
        assert_eq!(
            of_words("labells trend", "labells"),
            None,
            "a misspelled command is not that of an argument"
        );
        assert_eq!(of_words("-C open rum", "rum"), None);
        let flag = |word: &str| former_flag(&["run".to_owned(), word.to_owned()]);
        assert_eq!(
            flag("--shard=3/8").as_deref(),
            Some("--shard is now `--part I/N --remote URL`")
        );
        assert_eq!(flag("--part"), None);
    }
}
