//! The user's own programs: started once for each request, or as workers that answer one request after the other.

mod memory;
mod pool;
mod process;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::compress::{CommandSpec, Protocol};
use pool::WorkerPool;

/// The most that a program may write to standard output for one request.
const MAX_OUTPUT: u64 = 32 << 20;

/// Why a program yielded no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("could not start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("`{program}` did not finish within {} s{}", timeout.as_secs(), tail(stderr))]
    TimedOut { program: String, timeout: Duration, stderr: String },
    #[error("`{program}` ended with {status}{}", tail(stderr))]
    Failed { program: String, status: ExitStatus, stderr: String },
    #[error("`{program}` wrote more than {} MiB to standard output", MAX_OUTPUT >> 20)]
    TooMuchOutput { program: String },
    #[error("lost the connection to `{program}`: {source}")]
    Broken { program: String, source: std::io::Error },
    #[error("the worker `{program}` {fault}{}", tail(stderr))]
    Worker { program: String, fault: WorkerFault, stderr: String },
    #[error(
        "`{program}` could not be started {0} times and is not started again; the last time: {last}",
        pool::MOST_FAILED_STARTS
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
    #[error("was not ready within {0} s: it has to write the line {ready} once it can take requests", ready = worker::READY)]
    NotReady(u64),
    #[error("began with the line {0:?}; expected {ready}", ready = worker::READY)]
    NotGreeted(String),
    #[error("ended before it was ready")]
    EndedEarly,
    #[error("ended while it waited for a request")]
    EndedIdle,
    #[error("ended during a request")]
    Ended,
    #[error("did not answer within {0} s")]
    TimedOut(u64),
    #[error("wrote a line to standard output that is no answer: {0:?}; logs belong to standard error")]
    NotAnswer(String),
    #[error("answered the request {found} when it was asked {asked}")]
    WrongId { asked: u64, found: String },
    #[error("wrote more than its answer: {0:?}")]
    AnsweredTwice(String),
    #[error("took more than {0} MiB of memory")]
    TooLarge(u64),
}

fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("; its last words:\n  {}", last.join("\n  ")) }
}

/// The output of a program for one request.
#[derive(Debug)]
pub(super) struct ProgramOutput {
    pub(super) stdout: Bytes,
    /// What it wrote to standard error meanwhile; of a long text the end.
    stderr: String,
    /// From the request to the answer; the start of a worker is not part of it.
    pub(super) elapsed: Duration,
}

/// The programs of a run. Workers end when this is dropped.
#[derive(Debug, Default)]
pub struct Programs {
    pools: RefCell<BTreeMap<Vec<String>, Rc<WorkerPool>>>,
    talk: RefCell<BTreeMap<Vec<String>, Talk>>,
}

/// How often a program wrote to standard error.
#[derive(Debug, Default)]
struct Talk {
    executions: u32,
    with_words: u32,
    last_line: String,
}

impl Programs {
    /// Passes `stdin` to the program and returns its answer.
    pub(super) async fn run(&self, spec: &CommandSpec, stdin: Bytes) -> Result<ProgramOutput, ProgramError> {
        process::redact_secrets(spec);
        let output = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).ask(spec, stdin).await?,
            Protocol::Once { .. } => {
                let began = Instant::now();
                let (stdout, stderr) = process::run(spec, stdin).await?;
                ProgramOutput { stdout, stderr, elapsed: began.elapsed() }
            }
        };
        self.note(spec, &output.stderr);
        Ok(output)
    }

    fn pool(&self, spec: &CommandSpec) -> Rc<WorkerPool> {
        let mut pools = self.pools.borrow_mut();
        Rc::clone(pools.entry(spec.argv.clone()).or_insert_with(|| Rc::new(WorkerPool::new(spec))))
    }

    fn note(&self, spec: &CommandSpec, stderr: &str) {
        let mut talk = self.talk.borrow_mut();
        let talk = talk.entry(spec.argv.clone()).or_default();
        talk.executions += 1;
        if let Some(line) = stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            talk.with_words += 1;
            talk.last_line = line.trim().to_owned();
        }
    }

    /// Notes on programs that wrote to standard error in most executions, which may explain their results, and on workers
    /// that were replaced though no request failed.
    pub(super) fn notes(&self) -> Vec<String> {
        let talk = self.talk.borrow();
        let talkative = talk.iter().filter(|(_, talk)| talk.with_words * 2 > talk.executions);
        let note = |(argv, talk): (&Vec<String>, &Talk)| {
            let Talk { executions, with_words, last_line } = talk;
            let program = argv.join(" ");
            format!("`{program}` wrote to standard error in {with_words} of {executions} executions, last: {last_line}")
        };
        let replaced =
            self.pools.borrow().iter().flat_map(|(argv, pool)| pool.notes(&argv.join(" "))).collect::<Vec<_>>();
        talkative.map(note).chain(replaced).collect()
    }
}

#[cfg(test)]
mod tests;
