//! The result of a request to a program: its output, or why there is none.

use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;

use base::files::system_words;

/// The line that a worker writes once it can take requests.
pub(super) const READY: &str = "{\"ready\":true}";
/// After this many failed starts in a row, a method is given up.
pub(super) const MOST_FAILED_STARTS: u32 = 3;
/// The most that a program may write to standard output for one request.
pub(super) const MAX_OUTPUT: u64 = 32 << 20;

/// Why a program yielded no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("could not start `{program}`: {}", system_words(source))]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("`{program}` did not finish within {} s{}", timeout.as_secs(), tail(stderr))]
    TimedOut {
        program: String,
        timeout: Duration,
        stderr: String,
    },
    #[error("`{program}` ended with {}{}", status, tail(stderr))]
    Failed {
        program: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("`{program}` wrote more than {} MiB to standard output", MAX_OUTPUT >> 20)]
    TooMuchOutput { program: String },
    #[error("lost the connection to `{program}`: {source}")]
    Broken {
        program: String,
        source: std::io::Error,
    },
    #[error("the worker `{program}` {fault}{}", tail(stderr))]
    Worker {
        program: String,
        fault: WorkerFault,
        stderr: String,
    },
    #[error(
        "`{program}` could not be started {0} times and is not started again; the last time: {last}",
        MOST_FAILED_STARTS
    )]
    GivenUp { program: String, last: String },
    #[error(
        "`{program}` is declared deterministic, but a fresh process returned another result for the same request; \
         take `deterministic = true` away, or let no request depend on the ones before"
    )]
    NotDeterministic { program: String },
}

/// How a worker broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkerFault {
    #[error(
        "was not ready within {_0} s: it has to write the line {READY} once it can take requests"
    )]
    NotReady(u64),
    #[error("began with the line {_0:?}; expected {READY}")]
    NotGreeted(String),
    #[error("ended before it was ready")]
    EndedEarly,
    #[error("ended while it waited for a request")]
    EndedIdle,
    #[error("ended during a request")]
    Ended,
    #[error("did not answer within {_0} s")]
    TimedOut(u64),
    #[error(
        "wrote a line to standard output that is no answer: {_0:?}; logs belong to standard error"
    )]
    NotAnswer(String),
    #[error("answered the request {found} when it was asked {asked}")]
    WrongId { asked: u64, found: String },
    #[error("wrote more than its answer: {_0:?}")]
    AnsweredTwice(String),
    #[error("took more than {_0} MiB of memory")]
    TooLarge(u64),
}

fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let last = lines
        .get(lines.len().saturating_sub(5)..)
        .unwrap_or_default();
    if last.is_empty() {
        String::new()
    } else {
        format!("; its last output:\n  {}", last.join("\n  "))
    }
}

/// The output of a program for one request.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub stdout: Bytes,
    /// What it wrote to standard error meanwhile; only the end of a long text.
    pub(super) stderr: String,
    /// From the request to the answer; the start of a worker is not part of it.
    pub elapsed: Duration,
}
