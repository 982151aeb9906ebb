//! The commands in groups by purpose.

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
    (
        "Sessions and probes",
        &["observe", "guard", "fixture", "probes"],
    ),
    ("Judges", &["judge"]),
    (
        "Cache and tools",
        &["cache", "batch", "schema", "completions"],
    ),
];

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
        assert!(leaves.len() <= 30, "{} commands: {leaves:?}", leaves.len());
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
}
