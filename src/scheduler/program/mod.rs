//! The user's own programs: started once for each request, or as workers that answer one request after the other.

mod pool;
mod process;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base::files::system_words;
use bytes::Bytes;
use pool::WorkerPool;
use tokio::sync::OwnedSemaphorePermit;

use crate::compress::{CommandSpec, Protocol};

/// The programs of a run. Workers end when this is dropped.
#[derive(Debug, Default)]
pub struct Programs {
    pools: RefCell<BTreeMap<WorkerKind, Rc<WorkerPool>>>,
    stderr_counts: RefCell<BTreeMap<Vec<String>, StderrCounts>>,
}

/// What workers must have in common for one to answer in place of another: methods may start the same program with other
/// variables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WorkerKind {
    argv: Vec<String>,
    variables: Vec<String>,
}

impl WorkerKind {
    fn new(spec: &CommandSpec) -> WorkerKind {
        WorkerKind {
            argv: spec.argv.clone(),
            variables: spec.variables().map(str::to_owned).collect(),
        }
    }
}

/// The right to start a program, or to ask one of its workers. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct ProgramTurn {
    _permit: Option<OwnedSemaphorePermit>,
}

/// How often a program wrote to standard error.
#[derive(Debug, Default)]
struct StderrCounts {
    executions: u32,
    with_output: u32,
    last_line: String,
}

impl Programs {
    /// Waits until the program may be started: if it has workers, until one of them is free.
    pub(super) async fn turn(&self, spec: &CommandSpec) -> ProgramTurn {
        let permit = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).turn().await,
            Protocol::One | Protocol::Two => None,
        };
        ProgramTurn { _permit: permit }
    }

    /// Passes `stdin` to the program and returns its answer.
    pub(super) async fn run(
        &self,
        spec: &CommandSpec,
        stdin: Bytes,
        _turn: ProgramTurn,
    ) -> Result<ProgramOutput, ProgramError> {
        process::redact_secrets(spec);
        let output = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).ask(spec, stdin).await?,
            Protocol::One | Protocol::Two => {
                let began = Instant::now();
                let (stdout, stderr) = process::run(spec, stdin).await?;
                ProgramOutput {
                    stdout,
                    stderr,
                    elapsed: began.elapsed(),
                }
            }
        };
        self.note(spec, &output.stderr);
        Ok(output)
    }

    fn pool(&self, spec: &CommandSpec) -> Rc<WorkerPool> {
        let mut pools = self.pools.borrow_mut();
        Rc::clone(
            pools
                .entry(WorkerKind::new(spec))
                .or_insert_with(|| Rc::new(WorkerPool::new(spec))),
        )
    }

    fn note(&self, spec: &CommandSpec, stderr: &str) {
        let mut programs = self.stderr_counts.borrow_mut();
        let counts = programs.entry(spec.argv.clone()).or_default();
        counts.executions += 1;
        if let Some(line) = stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            counts.with_output += 1;
            counts.last_line = line.trim().to_owned();
        }
    }

    /// Notes on programs that wrote to standard error in most executions, which may explain their results, and on workers
    /// that were replaced though no request failed.
    pub(super) fn notes(&self) -> Vec<String> {
        let programs = self.stderr_counts.borrow();
        let talkative = programs
            .iter()
            .filter(|(_, counts)| counts.with_output * 2 > counts.executions);
        let notes = talkative.map(|(argv, StderrCounts { executions, with_output, last_line })| {
            let program = argv.join(" ");
            format!("`{program}` wrote to standard error in {with_output} of {executions} executions, last: {last_line}")
        });
        let pools = self.pools.borrow();
        let replaced = pools
            .iter()
            .flat_map(|(kind, pool)| pool.notes(&kind.argv.join(" ")))
            .collect::<Vec<_>>();
        notes.chain(replaced).collect()
    }
}

#[cfg(test)]
mod tests;

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
