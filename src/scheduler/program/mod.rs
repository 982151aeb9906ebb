//! The user's own programs: started once for each request, or as workers that answer one request after the other. Workers
//! are started on demand, kept while they behave, and replaced when they do not.

mod process;
mod worker;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::compress::{CommandSpec, Protocol};
use process::MOST_FAILED_STARTS;
pub(super) use process::ProgramOutput;
use worker::Worker;

/// What tells workers apart: the command line and the names of variables. Methods may start the same program with other
/// variables, and then a worker of one does not answer in place of one of the other.
type Started = (Vec<String>, Vec<String>);

/// The programs of a run. Workers end when this is dropped.
#[derive(Debug, Default)]
pub struct Programs {
    pools: RefCell<BTreeMap<Started, Rc<WorkerPool>>>,
    stderr_counts: RefCell<BTreeMap<Vec<String>, StderrCounts>>,
}

/// How often a program wrote to standard error.
#[derive(Debug, Default)]
struct StderrCounts {
    executions: u32,
    with_output: u32,
    last_line: String,
}

impl Programs {
    /// Waits until the program may be started: if it has workers, until one of them is free. It is as long as the result
    /// lives.
    pub(super) async fn turn(&self, spec: &CommandSpec) -> Option<OwnedSemaphorePermit> {
        match spec.protocol {
            // The semaphore is never closed.
            Protocol::Lines { .. } => self.pool(spec).room.clone().acquire_owned().await.ok(),
            Protocol::Process => None,
        }
    }

    /// Passes `stdin` to the program and returns its answer.
    ///
    /// # Errors
    /// Why there is none, worded for the user.
    pub(super) async fn run(
        &self,
        spec: &CommandSpec,
        stdin: Bytes,
        _turn: Option<OwnedSemaphorePermit>,
    ) -> Result<ProgramOutput, String> {
        process::redact_secrets(spec);
        let output = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).ask(spec, stdin).await?,
            Protocol::Process => {
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
        let variables = spec.variables().map(str::to_owned).collect();
        let mut pools = self.pools.borrow_mut();
        let pool = pools.entry((spec.argv.clone(), variables));
        Rc::clone(pool.or_insert_with(|| Rc::new(WorkerPool::new(spec))))
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
            .filter_map(|((argv, _), pool)| pool.note(&argv.join(" ")))
            .collect::<Vec<_>>();
        notes.chain(replaced).collect()
    }
}

/// One in this many requests to a deterministic method is repeated in a fresh process, to find workers whose answers
/// depend on earlier requests.
const REPEATED_ONE_IN: u64 = 20;
/// The position of the repeated one: not the first, which a worker answers as a fresh process would.
const REPEATED: u64 = 10;

#[derive(Debug)]
pub(super) struct WorkerPool {
    idle: RefCell<Vec<Worker>>,
    room: Arc<Semaphore>,
    start_timeout: Duration,
    failed_starts: Cell<u32>,
    last_failure: RefCell<String>,
    requests: Cell<u64>,
    /// How many workers were replaced though no request failed, and why, the last time.
    replaced: RefCell<(u32, String)>,
}

impl WorkerPool {
    pub(super) fn new(spec: &CommandSpec) -> WorkerPool {
        let (workers, start_timeout) = match spec.protocol {
            Protocol::Lines {
                workers,
                start_timeout,
            } => (workers.get(), start_timeout),
            Protocol::Process => (1, spec.timeout),
        };
        WorkerPool {
            idle: RefCell::default(),
            room: Arc::new(Semaphore::new(workers as usize)),
            start_timeout,
            failed_starts: Cell::new(0),
            last_failure: RefCell::default(),
            requests: Cell::new(0),
            replaced: RefCell::default(),
        }
    }

    /// Asks a worker.
    pub(super) async fn ask(
        &self,
        spec: &CommandSpec,
        stdin: Bytes,
    ) -> Result<ProgramOutput, String> {
        let mut worker = match self.take_idle() {
            Some(worker) => worker,
            None => self.start(spec).await?,
        };
        self.requests.set(self.requests.get() + 1);
        let is_repeated = spec.deterministic && self.requests.get() % REPEATED_ONE_IN == REPEATED;
        let _ = worker.take_stderr();
        let began = Instant::now();
        // A worker whose request fails is dropped: nobody knows what it would write next.
        let stdout = worker.ask(&stdin, spec.timeout).await?;
        let output = ProgramOutput {
            stdout,
            stderr: worker.take_stderr(),
            elapsed: began.elapsed(),
        };
        self.idle.borrow_mut().push(worker);
        if is_repeated {
            let again = self.start(spec).await?.ask(&stdin, spec.timeout).await?;
            if compared_fields(&again) != compared_fields(&output.stdout) {
                return Err(format!(
                    "`{}` is declared deterministic, but a fresh process returned another result for the same request; \
                     take `deterministic = true` away, or let no request depend on the ones before",
                    spec.argv.join(" ")
                ));
            }
        }
        Ok(output)
    }

    fn take_idle(&self) -> Option<Worker> {
        loop {
            let mut worker = self.idle.borrow_mut().pop()?;
            let Some(fault) = worker.idle_fault() else {
                return Some(worker);
            };
            let (times, last) = &mut *self.replaced.borrow_mut();
            (*times, *last) = (*times + 1, fault);
        }
    }

    /// Why workers were replaced though no request failed, if any were.
    pub(super) fn note(&self, program: &str) -> Option<String> {
        let (times, fault) = &*self.replaced.borrow();
        (*times > 0).then(|| format!("the worker `{program}` {fault}; replaced {times} times"))
    }

    async fn start(&self, spec: &CommandSpec) -> Result<Worker, String> {
        if self.failed_starts.get() >= MOST_FAILED_STARTS {
            return Err(format!(
                "`{}` could not be started {MOST_FAILED_STARTS} times and is not started again; the last time: {}",
                spec.argv.join(" "),
                self.last_failure.borrow()
            ));
        }
        let started = Worker::start(spec, self.start_timeout).await;
        match &started {
            Ok(_) => self.failed_starts.set(0),
            Err(error) => {
                self.failed_starts.set(self.failed_starts.get() + 1);
                self.last_failure.borrow_mut().clone_from(error);
            }
        }
        started
    }
}

/// The fields that must be the same in two answers to the same request.
fn compared_fields(answer: &[u8]) -> Option<Map<String, Value>> {
    let mut object: Map<String, Value> = serde_json::from_slice(answer).ok()?;
    object.retain(|key, _| ["summary", "messages", "state", "compressed"].contains(&key.as_str()));
    Some(object)
}

#[cfg(test)]
mod tests;
