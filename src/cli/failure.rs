//! How a command ends: exit codes, and failures with their chain and hint.

use std::error::Error;

use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::cache::CacheError;
use crate::cli::terminal::{Console, TextStyle, own_color};
use crate::files::{FileError, says_out_of_space};
use crate::pipeline::{Problem, Problems, Severity};

/// What a command exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// An unexpected error; a locked or damaged cache; a judge that failed its self-test.
    Error,
    /// The user's input is wrong, and nothing was called.
    BadInput,
    /// Nothing is selected.
    EmptySelection,
    /// Some cells failed or are missing.
    Incomplete,
    /// A budget stopped the run.
    Budget,
    /// Work is pending.
    Pending,
    /// A gate failed.
    Regression,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Error => 1,
            Exit::BadInput => 2,
            Exit::EmptySelection => 4,
            Exit::Incomplete => 5,
            Exit::Budget => 6,
            Exit::Pending => 7,
            Exit::Regression => 100,
            Exit::Interrupted => 130,
        }
    }

    /// The exit with the higher precedence: 130 > 6 > 5 > 7 > 100.
    pub(crate) fn and(self, other: Exit) -> Exit {
        let rank = |exit: Exit| match exit {
            Exit::Error | Exit::BadInput | Exit::EmptySelection => 6,
            Exit::Interrupted => 5,
            Exit::Budget => 4,
            Exit::Incomplete => 3,
            Exit::Pending => 2,
            Exit::Regression => 1,
            Exit::Done => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Faults in the user's files, each with its place.
    Problems(Problems),
    /// Anything else, in words.
    Message {
        /// How to exit.
        exit: Exit,
        /// What happened.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::Message { exit: Exit::BadInput, message: message.into(), hint: None }
    }

    /// Something unexpected.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure::Message { exit: Exit::Error, message: message.into(), hint: None }
    }

    /// The same with what to do.
    pub(crate) fn hinted(self, text: impl Into<String>) -> Failure {
        match self {
            Failure::Message { exit, message, .. } => Failure::Message { exit, message, hint: Some(text.into()) },
            problems => problems,
        }
    }

    /// The same with another exit.
    pub(crate) fn exiting(self, exit: Exit) -> Failure {
        match self {
            Failure::Message { message, hint, .. } => Failure::Message { exit, message, hint },
            problems => problems,
        }
    }

    /// Whether a full disk is the cause.
    pub(crate) fn is_out_of_space(&self) -> bool {
        matches!(self, Failure::Message { message, .. } if says_out_of_space(message))
    }

    /// Prints it and says how to exit.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        match self {
            Failure::Problems(problems) => {
                console.eprint(&render(problems, console));
                Exit::BadInput
            }
            Failure::Message { exit, message, hint } => {
                console.error("error:", message);
                if let Some(hint) = hint {
                    console.eprint(&console.labelled(TextStyle::Hint, "hint:", hint));
                }
                *exit
            }
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Problems(problems)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let hint = error.is_out_of_space().then(|| "free some space and run again; what was kept is safe".to_owned());
        Failure::Message { exit: Exit::Error, message: chain(&error), hint }
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Failure {
        let failure = Failure::error(chain(&error));
        let hint = "free some space, or remove entries with `compeval cache prune`, which needs no room";
        if failure.is_out_of_space() { failure.hinted(hint) } else { failure }
    }
}

/// Faults in files, each with its place, as miette draws them.
pub(crate) fn render(problems: &Problems, console: &Console) -> String {
    let theme = if console.colors() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(console.width()).with_links(false);
    let mut text = String::new();
    for (problem, alike) in group_repeated(&problems.0) {
        if handler.render_report(&mut text, &problem.drawn(console.width())).is_err() {
            text.push_str(problem.message());
            text.push('\n');
        }
        if !alike.is_empty() {
            text.push_str(&format!("  also: {}\n", places(&alike)));
        }
    }
    own_color(text.trim_end())
}

/// Groups warnings with equal text: the first is rendered, the others are listed by position.
fn group_repeated(problems: &[Problem]) -> Vec<(&Problem, Vec<&Problem>)> {
    let mut groups: Vec<(&Problem, Vec<&Problem>)> = Vec::new();
    for problem in problems {
        let is_alike = |(first, _): &&mut (&Problem, Vec<&Problem>)| {
            (first.kind(), first.message(), first.advice()) == (problem.kind(), problem.message(), problem.advice())
        };
        let may_repeat = problem.kind() == Severity::Warning && problem.position().is_some();
        match groups.iter_mut().find(is_alike).filter(|_| may_repeat) {
            Some((_, alike)) => alike.push(problem),
            None => groups.push((problem, Vec::new())),
        }
    }
    groups
}

/// Where problems stand; of many the first.
fn places(problems: &[&Problem]) -> String {
    const SHOWN: usize = 4;
    let place = |(file, line, column): (&str, usize, usize)| format!("{file}:{line}:{column}");
    let mut places: Vec<String> = problems.iter().filter_map(|p| p.position()).take(SHOWN).map(place).collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN) {
        places.push(format!("and {more} more"));
    }
    places.join(", ")
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::Cli;
    use crate::pipeline::SourceFile;

    #[test]
    fn a_warning_that_repeats_is_drawn_once_with_its_places_and_an_error_each_time() {
        let file = |path: &str| SourceFile {
            path: path.into(),
            digest: crate::action::Digest::of("[1,\n22]"),
            text: "[1,\n22]".into(),
        };
        let warning = |path| Problem::warning("few").help("ask more").at(&file(path), 4..6);
        let error = |path| Problem::error("odd").at(&file(path), 1..2);
        let mut all: Vec<Problem> = ["a", "b", "c", "d", "e", "f", "g"].map(warning).into();
        all.extend(["a", "b"].map(error));
        let common = <Cli as clap::Parser>::parse_from(["compeval", "--color", "never", "check"]).common;
        insta::assert_snapshot!(render(&Problems(all), &Console::new(&common)), @r#"
     ⚠ few
      ╭─[a:2:1]
    1 │ [1,
    2 │ 22]
      · ──
      ╰────
     help: ask more
     also: b:2:1, c:2:1, d:2:1, e:2:1, and 2 more
     × odd
      ╭─[a:1:2]
    1 │ [1,
      ·  ─
    2 │ 22]
      ╰────
     × odd
      ╭─[b:1:2]
    1 │ [1,
      ·  ─
    2 │ 22]
      ╰────
    "#);
    }
}
