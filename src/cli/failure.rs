//! How a command ends: exit codes, and failures with their chain and hint.

use std::error::Error;

use crate::cli::findings::render_some;
use crate::cli::format::money;
use crate::cli::terminal::Console;
use crate::evaluation::{DearestReply, EvaluationError};
use crate::pipeline::{OpenError, Problems};
use crate::results::{FolderError, Outcome};
use crate::scheduler::{BudgetReached, RunError};
use base::files::{FileError, Shortage, system_words};
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

    fn precedence(self) -> u8 {
        match self {
            Exit::Error | Exit::BadInput | Exit::EmptySelection => 6,
            Exit::Interrupted => 5,
            Exit::Budget => 4,
            Exit::Incomplete => 3,
            Exit::Pending => 2,
            Exit::Regression => 1,
            Exit::Done => 0,
        }
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
        Failure::error(message).exiting(Exit::BadInput)
    }

    /// Something unexpected.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure::Message {
            exit: Exit::Error,
            message: message.into(),
            hint: None,
        }
    }

    /// The same with what to do.
    pub(crate) fn hinted(mut self, text: impl Into<String>) -> Failure {
        if let Failure::Message { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// The same with another exit.
    pub(crate) fn exiting(mut self, other: Exit) -> Failure {
        if let Failure::Message { exit, .. } = &mut self {
            *exit = other;
        }
        self
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
        match self {
            Failure::Problems(problems) => {
                console.eprint(&render_some(problems, console));
                Exit::BadInput
            }
            Failure::Message {
                exit,
                message,
                hint,
            } => {
                console.error("error:", message);
                if let Some(hint) = hint {
                    console.eprint(&console.help_line(hint));
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
        Failure::from_system(chain(&error), shortage, SPACE_FOR_CACHE)
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
            EvaluationError::Open(OpenError::Empty(empty)) => Failure::input(empty.message())
                .hinted(empty.advice().unwrap_or_default())
                .exiting(Exit::EmptySelection),
            EvaluationError::Cache(error) => error.into(),
            EvaluationError::File(error) => error.into(),
            EvaluationError::Remote(error) => error.into(),
            EvaluationError::Folder(error) => error.into(),
            EvaluationError::Runtime(_) => {
                let threads = Some(Shortage::Threads);
                Failure::from_system(chain(&error), threads, SPACE_FOR_CACHE)
            }
            error @ EvaluationError::ClockStopped => Failure::error(error.to_string()),
            error => {
                let failure = Failure::input(message(&error));
                match hint_for(&error) {
                    Some(hint) => failure.hinted(hint),
                    None => failure,
                }
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

/// What is wrong with a request, in terms of the flags that made it.
fn message(error: &EvaluationError) -> String {
    match error {
        EvaluationError::UnknownPrice { model, .. } => {
            format!("--max-cost needs known prices, and the price of `{model}` is unknown")
        }
        EvaluationError::CostLimit {
            limit,
            reply,
            expected,
            ..
        } => {
            let estimate =
                expected.map(|usd| format!(", and the run is estimated at {}", money(Some(usd))));
            format!(
                "--max-cost {} is less than one reply of `{}` may cost: {} for {} tokens{}",
                limit.0,
                reply.model,
                money(Some(reply.usd)),
                reply.tokens.0,
                estimate.unwrap_or_default()
            )
        }
        error => chain(error),
    }
}

/// What to do about a request that cannot be evaluated.
fn hint_for(error: &EvaluationError) -> Option<String> {
    Some(match error {
        EvaluationError::UnknownPrice { model, file } => format!("declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
            file.display()),
        EvaluationError::CostLimit { limit, share, reply, expected } => {
            cost_limit_hint(*limit, *share, reply, *expected)
        }
        EvaluationError::MissingKey { variable, provider } => format!("export {variable}=…, or name another variable: api_key_env in [providers.{provider}]"),
        EvaluationError::CacheIsFile(_) => "name another folder by `cache` in [pipeline] or by COMPEVAL_CACHE, or move that file away"
        .to_owned(),
        EvaluationError::NoSelftest { url, .. } => {
            format!("`compeval judge selftest --remote {url}` asks them once, for all parts")
        }
        error => return part_hint(error).or_else(|| comparison_hint(error)).map(str::to_owned),
    })
}

/// The smallest limit that works, and what lowers the cost of one reply.
fn cost_limit_hint(limit: Usd, share: f64, reply: &DearestReply, expected: Option<Usd>) -> String {
    let least = expected.map_or(reply.usd.0, |expected| expected.0.min(reply.usd.0));
    let all = limit.0;
    let least = all + (least - limit.0) / share;
    let amount = format!("--max-cost {:.2} works", (least * 100.0).ceil() / 100.0);
    match reply.is_limited {
        true => format!(
            "{amount}, or a lower max_output_tokens where `{}` is asked",
            reply.model
        ),
        false => format!(
            "{amount}, or max_output_tokens where `{}` is asked: it is missing there",
            reply.model
        ),
    }
}

/// What to do about parts that cannot be run.
fn part_hint(error: &EvaluationError) -> Option<&'static str> {
    Some(match error {
        EvaluationError::BatchedPart { .. } => "--lane live, or run the matrix in one process",
        EvaluationError::PartIsRunning { .. } => {
            "give each process a number of its own, from 1/N to N/N"
        }
        EvaluationError::NoRemote => "--remote fs:///srv/compeval, or COMPEVAL_REMOTE",
        _ => return None,
    })
}

/// What to do about a comparison that cannot be made.
fn comparison_hint(error: &EvaluationError) -> Option<&'static str> {
    Some(match error {
        EvaluationError::TooManyCells(_) => "compare without --html",
        EvaluationError::OtherBaseline(_) => {
            "nothing was sent: undo what differs, or run the baseline again as the project is now; without --compare-to the \
             run is not compared"
        }
        _ => return None,
    })
}

/// A wrong key or file is bad input; anything else is an error.
pub(crate) fn import_failure(error: CacheError) -> Failure {
    let is_input = matches!(
        error,
        CacheError::Prefix { .. } | CacheError::BadImport { .. }
    );
    let failure = Failure::from(error);
    if is_input {
        failure.exiting(Exit::BadInput)
    } else {
        failure
    }
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
        let words = inner
            .downcast_ref()
            .map_or_else(|| inner.to_string(), system_words);
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}
