//! How a command ends: exit codes, and failures with their chain and hint.

use std::error::Error;

use crate::cache::CacheError;
use crate::cli::findings::render_some;
use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::Problems;
use crate::remote::RemoteError;
use crate::results::{FolderError, LabelLockError, LabelWriterError, SetError};
use crate::scheduler::RunError;
use base::files::{FileError, says_out_of_space};

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
                console.eprint(&render_some(problems, console));
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
        let hint = "free some space, or remove entries with `compeval cache prune`, which needs no free space";
        if failure.is_out_of_space() { failure.hinted(hint) } else { failure }
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
        let exit = if error.is_input() { Exit::BadInput } else { Exit::Error };
        Failure::error(error.to_string()).exiting(exit)
    }
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Failure {
        Failure::input(chain(&error))
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        Failure::input(chain(&error))
    }
}

impl From<LabelLockError> for Failure {
    fn from(error: LabelLockError) -> Failure {
        match error {
            LabelLockError::Held { .. } => Failure::error(error.to_string()),
            LabelLockError::File(error) => error.into(),
        }
    }
}

impl From<LabelWriterError> for Failure {
    fn from(error: LabelWriterError) -> Failure {
        match error {
            LabelWriterError::Lock(error) => error.into(),
            LabelWriterError::Folder(error) => error.into(),
            refused => Failure::input(refused.to_string()),
        }
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
