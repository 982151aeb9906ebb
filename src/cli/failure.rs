//! How a command ends: exit codes, and failures with their chain and hint.

use std::error::Error;

use crate::cli::findings::render_some;
use crate::cli::terminal::Console;
use crate::evaluation::EvaluationError;
use crate::pipeline::{OpenError, Problem, Problems};
use crate::results::{FolderError, Outcome};
use crate::scheduler::{BudgetReached, RunError};
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

    /// The exit with the higher precedence: 1, 2, 4 > 130 > 6 > 5 > 7 > 100.
    pub(crate) fn and(self, other: Exit) -> Exit {
        if other.precedence() > self.precedence() {
            other
        } else {
            self
        }
    }

    fn precedence(self) -> usize {
        let rising = [
            Exit::Done,
            Exit::Regression,
            Exit::Pending,
            Exit::Incomplete,
            Exit::Budget,
            Exit::Interrupted,
        ];
        let place = rising.iter().position(|exit| *exit == self);
        place.unwrap_or(rising.len())
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

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Cache(error) => error.into(),
            RunError::File(error) => error.into(),
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
