//! The workers of one kind: started on demand, kept while they behave, replaced when they do not.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::process::{MOST_FAILED_STARTS, ProgramError, ProgramOutput, WorkerFault};
use super::worker::Worker;
use crate::compress::{CommandSpec, Protocol};

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
            Protocol::One | Protocol::Two => (1, spec.timeout),
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

    /// Waits until one more request may be under way.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// Asks a worker.
    pub(super) async fn ask(
        &self,
        spec: &CommandSpec,
        stdin: Bytes,
    ) -> Result<ProgramOutput, ProgramError> {
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
                return Err(ProgramError::NotDeterministic {
                    program: spec.argv.join(" "),
                });
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
            self.note_replaced(&fault);
        }
    }

    fn note_replaced(&self, fault: &WorkerFault) {
        let (times, last) = &mut *self.replaced.borrow_mut();
        *times += 1;
        *last = fault.to_string();
    }

    /// Why workers were replaced though no request failed, if any were.
    pub(super) fn note(&self, program: &str) -> Option<String> {
        let (times, fault) = &*self.replaced.borrow();
        (*times > 0).then(|| format!("the worker `{program}` {fault}; replaced {times} times"))
    }

    async fn start(&self, spec: &CommandSpec) -> Result<Worker, ProgramError> {
        if self.failed_starts.get() >= MOST_FAILED_STARTS {
            let last = self.last_failure.borrow().clone();
            return Err(ProgramError::GivenUp {
                program: spec.argv.join(" "),
                last,
            });
        }
        let started = Worker::start(spec, self.start_timeout).await;
        match &started {
            Ok(_) => self.failed_starts.set(0),
            Err(error) => {
                self.failed_starts.set(self.failed_starts.get() + 1);
                *self.last_failure.borrow_mut() = error.to_string();
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
