//! How a command ends: exit codes, and failures with their chain and hint; and how findings about the files of a project are
//! printed: drawn at their places, or counted by kind.

use std::error::Error;

use crate::cli::format::count;
use crate::cli::terminal::{Console, TextStyle, labelled, own_color, paint};
use crate::evaluation::EvaluationError;
use crate::pipeline::{OpenError, Problem, Problems, Severity};
use crate::results::{FolderError, Outcome};
use crate::scheduler::{BudgetReached, RunOutcome};
use base::files::{FileError, Shortage};
use base::text::shell_word;
use base::units::Usd;
use store::cache::CacheError;
use store::remote::RemoteError;

/// What a command exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// An unexpected error; a locked or damaged cache; a judge that failed its self-test.
    Error = 1,
    /// The user's input is wrong, and nothing was called.
    BadInput = 2,
    /// Nothing is selected.
    EmptySelection = 4,
    /// Some cells failed or are missing.
    Incomplete = 5,
    /// A budget stopped the run.
    Budget = 6,
    /// Work is pending.
    Pending = 7,
    /// A gate failed.
    Regression = 100,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Outcome> for Exit {
    fn from(ending: Outcome) -> Exit {
        match ending {
            Outcome::Complete => Exit::Done,
            Outcome::Pending => Exit::Pending,
            Outcome::Incomplete => Exit::Incomplete,
            Outcome::Budget => Exit::Budget,
            Outcome::Interrupted => Exit::Interrupted,
            Outcome::Running | Outcome::Broken => Exit::Error,
        }
    }
}

/// A JSON file for people, as its text.
pub(crate) fn json_file(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n")
        .map_err(|error| Failure::error(format!("failed to write JSON: {error}")))
}

/// The failure for `--json` with a flag whose output is something else.
pub(crate) fn not_as_json(flag: &str) -> Failure {
    Failure::input(format!("{flag} prints no JSON: leave out --json"))
}

/// Why a command could not do its work, and how it exits.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What is wrong, each with its place, if it is in a file of the user.
    pub(crate) problems: Problems,
}

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::error(message).exiting(Exit::BadInput)
    }

    /// Something unexpected.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure::from(Problem::error(message)).exiting(Exit::Error)
    }

    /// The same with what to do.
    pub(crate) fn hinted(mut self, text: impl Into<String>) -> Failure {
        let last = self.problems.0.pop();
        self.problems
            .0
            .extend(last.map(|problem| problem.help(text)));
        self
    }

    /// The same with another exit.
    pub(crate) fn exiting(self, exit: Exit) -> Failure {
        Failure { exit, ..self }
    }

    /// Something that the system may have refused, with what to do then; `space` says it for a full disk.
    fn from_system(message: String, shortage: Option<Shortage>, space: &str) -> Failure {
        match shortage {
            Some(shortage) => Failure::error(message).hinted(remedy(shortage, space)),
            None => Failure::error(message),
        }
    }

    /// Prints it and says how to exit.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        console.eprint(&render_some(&self.problems, console));
        self.exit
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Problems(vec![problem]).into()
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure {
            exit: Exit::BadInput,
            problems,
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        if error.is_foreign() {
            return Failure::input(chain(&error));
        }
        let space = "free some space and run again; what was kept is safe";
        Failure::from_system(chain(&error), Shortage::in_error(&error), space)
    }
}

/// What to do about a shortage; `space` says it for a full disk.
fn remedy(shortage: Shortage, space: &str) -> &str {
    match shortage {
        Shortage::Space => space,
        Shortage::FileSize => {
            "`ulimit -f` limits the size of files here: `ulimit -f unlimited` lifts that"
        }
        Shortage::OpenFiles => "`ulimit -n 1024` lets a process open that many files at once",
        Shortage::ReadOnly => {
            "work on a copy in a folder that can be written to; COMPEVAL_CACHE moves the cache"
        }
        Shortage::Threads => {
            "there is too little memory (`ulimit -v`), or there are too many processes (`ulimit -u`)"
        }
    }
}

/// What to do about a full disk that has the cache.
const SPACE_FOR_CACHE: &str = "free some space, or remove entries with `compeval cache prune`, which needs room \
     for what it keeps of one pack: at most 128 MB";

/// What to do where the cache can store nothing more, as its error says.
pub(crate) fn remedy_for_cache(error: &str) -> Option<&'static str> {
    Some(remedy(Shortage::in_text(error)?, SPACE_FOR_CACHE))
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Failure {
        let shortage = match &error {
            // These have only the words of the system.
            CacheError::Poisoned { cause, .. } => Shortage::in_text(cause),
            CacheError::Damaged(damage) => Shortage::in_text(&damage.what),
            error => Shortage::in_error(error),
        };
        let failure = Failure::from_system(chain(&error), shortage, SPACE_FOR_CACHE);
        match error {
            CacheError::Prefix { .. } => failure.exiting(Exit::BadInput),
            _ => failure,
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Failure {
        let exit = if error.is_input() {
            Exit::BadInput
        } else {
            Exit::Error
        };
        let failure = Failure::error(error.to_string()).exiting(exit);
        match error {
            RemoteError::ReadOnly => failure.hinted("--remote-mode read writes nothing"),
            _ => failure,
        }
    }
}

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Failure {
        match error {
            EvaluationError::Open(OpenError::Problems(problems)) => problems.into(),
            EvaluationError::Open(OpenError::Empty(empty)) => {
                Failure::from(*empty).exiting(Exit::EmptySelection)
            }
            EvaluationError::Cache(error) => error.into(),
            EvaluationError::File(error) => error.into(),
            EvaluationError::Remote(error) => error.into(),
            EvaluationError::Folder(error) => error.into(),
            EvaluationError::Runtime(_) => {
                let threads = Some(Shortage::Threads);
                Failure::from_system(chain(&error), threads, SPACE_FOR_CACHE)
            }
            error @ EvaluationError::OtherBaseline(_) => Failure::input(chain(&error)).hinted(
                "nothing was sent: undo what differs, or run the baseline again as the project is now; without --compare-to the \
                 run is not compared",
            ),
            error @ (EvaluationError::Prepare(_) | EvaluationError::Incomparable(_)) => {
                Failure::input(chain(&error))
            }
        }
    }
}

/// How a command ends whose work the user or a budget stopped, which is said.
pub(crate) fn stopped(ended: &RunOutcome, console: &Console) -> Option<Exit> {
    if ended.interrupted {
        return Some(Exit::Interrupted);
    }
    console.eprint(&budget_message(ended.budget?));
    Some(Exit::Budget)
}

/// Why nothing more may be sent, in terms of the flags that say so, and what to do. A part of a run has a share of what
/// its flags allow.
pub(crate) fn budget_message(reached: BudgetReached) -> String {
    let why = match reached {
        BudgetReached::Cost { limit, spent } => format!(
            "the next request could exceed --max-cost {limit} ({} spent or reserved)",
            Usd(spent)
        ),
        BudgetReached::Requests { limit } => format!("--max-requests {limit} were sent"),
    };
    format!("{why}; run again with a larger budget to continue")
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        let error = match error {
            FolderError::File(failed) if !failed.is_missing() => return failed.into(),
            error => error,
        };
        let hint = match &error {
            FolderError::Held { .. } => return Failure::error(error.to_string()),
            FolderError::Missing { near: None, .. } => {
                "`compeval labels ls` lists what there is".to_owned()
            }
            FolderError::OtherDesign { label, .. } => format!(
                "another --label keeps both; --replace keeps the old results as `{}`",
                label.earlier(1)
            ),
            FolderError::Protected(label) => format!(
                "another --label keeps both; `compeval labels protect --off {}` lifts the protection",
                shell_word(label.as_str())
            ),
            _ => return Failure::input(chain(&error)),
        };
        Failure::input(chain(&error)).hinted(hint)
    }
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

/// Lines of a short list: with those around it there are about eight.
const LINES: usize = 6;

/// Errors that are drawn at their places before they are counted by kind.
const DRAWN_ERRORS: usize = 5;

/// Draws a single finding or a few errors at their places; otherwise counts the findings by kind, on a few lines, with the
/// command that lists each.
pub(crate) fn render_some(problems: &Problems, console: &Console) -> String {
    let (all, errors) = (problems.0.len(), problems.errors());
    if all <= 1 || errors == all && errors <= DRAWN_ERRORS {
        return render(problems, console);
    }
    let kinds = kinds(&problems.0);
    let mut lines: Vec<String> = Vec::new();
    let mut rest = kinds.as_slice();
    while let Some(((first, alike), others)) = rest.split_first() {
        let shown = kind_lines(first, *alike);
        if lines.len() + shown.len() > LINES {
            break;
        }
        lines.extend(shown);
        rest = others;
    }
    if !rest.is_empty() {
        let findings: usize = rest.iter().map(|(_, alike)| alike + 1).sum();
        lines.push(format!(
            "and {} of {}",
            count(findings, "finding"),
            count(rest.len(), "other kind")
        ));
    }
    lines.push("each at its place: compeval check --all".to_owned());
    lines.join("\n")
}

/// The lines of a kind of findings: how many, what and where; for errors, a second line says what to do.
fn kind_lines(first: &Problem, alike: usize) -> Vec<String> {
    let (style, word) = word_of(first);
    let label = match alike {
        0 => format!("{word}:"),
        _ => format!("{}:", count(alike + 1, word)),
    };
    let more = (alike > 0).then(|| format!("and {alike} like it"));
    let place = place_of(first)
        .into_iter()
        .chain(more)
        .collect::<Vec<_>>()
        .join(" ");
    let text = labelled(style, &label, first.message());

    match (first.severity(), first.advice()) {
        (Severity::Error, advice) if !place.is_empty() || advice.is_some() => {
            let below = join_parts([&place, advice.unwrap_or_default()]);
            vec![text, format!("  {}", paint(TextStyle::Dim, &below))]
        }
        _ => vec![join_parts([&text, &place])],
    }
}

fn join_parts(parts: [&str; 2]) -> String {
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The first finding of each kind and how many others there are, errors first, in the order in which each kind is first
/// seen. An error without a place names its file in its message, so each is a kind of its own.
fn kinds(problems: &[Problem]) -> Vec<(&Problem, usize)> {
    let mut kinds: Vec<(&Problem, usize)> = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        for problem in problems
            .iter()
            .filter(|problem| problem.severity() == severity)
        {
            let is_alone = severity == Severity::Error && problem.position().is_none();
            let known = kinds.iter_mut().find(|(first, _)| {
                !is_alone && first.severity() == severity && pattern(first) == pattern(problem)
            });
            match known {
                Some((_, alike)) => *alike += 1,
                None => kinds.push((problem, 0)),
            }
        }
    }
    kinds
}

/// A message without what differs from one finding of a kind to the next: quotations, paths, numbers, excerpts.
fn pattern(problem: &Problem) -> String {
    let message = problem
        .message()
        .split(" in message ")
        .next()
        .unwrap_or_default();
    let quoted = message.split(['`', '"']).step_by(2);
    let words = quoted.flat_map(str::split_whitespace);
    words
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '/'))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Faults in files: what is wrong, the place in the file, what to do.
pub(crate) fn render(problems: &Problems, console: &Console) -> String {
    let mut lines = Vec::new();
    for problem in &problems.0 {
        let (style, word) = word_of(problem);
        lines.push(console.labelled_prose(style, &format!("{word}:"), problem));
        let excerpt = problem.excerpt(console.width(), console.colors);
        lines.extend(excerpt.map(|excerpt| own_color(&excerpt)));
        lines.extend(problem.advice().map(|advice| console.help_line(advice)));
    }
    lines.join("\n")
}

/// The style and the word of the severity of `problem`.
fn word_of(problem: &Problem) -> (TextStyle, &'static str) {
    match problem.severity() {
        Severity::Error => (TextStyle::Bad, "error"),
        Severity::Warning => (TextStyle::Warning, "warning"),
    }
}

fn place_of(problem: &Problem) -> Option<String> {
    problem
        .position()
        .map(|(file, line, column)| format!("{file}:{line}:{column}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::Cli;
    use crate::pipeline::SourceFile;

    fn console() -> Console {
        let words = ["compeval", "--color", "never", "check"];
        Console::new(
            &<Cli as clap::Parser>::parse_from(words).common,
            base::locale::Locale::En,
        )
    }

    fn printed(problems: &Problems) -> String {
        let text = render_some(problems, &console());
        console().for_output(&text).into_owned()
    }

    #[test]
    fn a_few_errors_are_drawn_at_their_places() {
        let error = |path| Problem::error("odd").at(&SourceFile::new(path, "[1,\n22]"), 1..2);
        let all = Problems(["a", "b"].map(error).into());
        insta::assert_snapshot!(printed(&all), @r#"
    error: odd
       ╭─[a:1:2]
     1 │ [1,
       ·  ─
     2 │ 22]
       ╰────
    error: odd
       ╭─[b:1:2]
     1 │ [1,
       ·  ─
     2 │ 22]
       ╰────
    "#);
    }

    #[test]
    fn several_kinds_are_counted() {
        let file = SourceFile::new("p", "[1,\n22]");
        let fact = |name: &str| {
            Problem::error(format!("probe `{name}`: fact \"{name}\" is short")).help("longer")
        };
        let all = Problems(vec![
            Problem::warning("fixtures/a.json has 500 KB"),
            fact("p1").at(&file, 1..2),
            fact("p2").at(&file, 4..6),
            Problem::warning("fixtures/b.json has 600 KB"),
        ]);
        insta::assert_snapshot!(printed(&all), @r#"
        2 errors: probe `p1`: fact "p1" is short
          p:1:2 and 1 like it · longer
        2 warnings: fixtures/a.json has 500 KB · and 1 like it
        each at its place: compeval check --all
        "#);
    }
}
