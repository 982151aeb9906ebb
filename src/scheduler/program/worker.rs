//! One worker: a process that reads a request a line and writes an answer a line, one at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::process::{MAX_OUTPUT, ProcessGroup, ProgramError, WorkerFault, keep_end, start};
use crate::compress::CommandSpec;
use base::redaction::{redact, redact_bytes};
use base::text::shortened;

/// A started worker. Its processes end when this is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    program: String,
    child: Child,
    group: ProcessGroup,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    errors: Arc<Mutex<String>>,
    asked: u64,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    pub(super) async fn start(
        spec: &CommandSpec,
        patience: Duration,
    ) -> Result<Worker, ProgramError> {
        let program = spec.argv.join(" ");
        let mut child = start(spec).map_err(|source| ProgramError::Start {
            program: program.clone(),
            source,
        })?;
        let group = ProcessGroup::from_child(&child);
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ProgramError::Start {
                program,
                source: std::io::ErrorKind::BrokenPipe.into(),
            });
        };
        let errors = Arc::new(Mutex::new(String::new()));
        tokio::spawn(keep_end(child.stderr.take(), Arc::clone(&errors)));
        let answers = BufReader::new(answers);
        let mut worker = Worker {
            program,
            child,
            group,
            requests,
            answers,
            errors,
            asked: 0,
        };
        let greeting = tokio::time::timeout(patience, worker.read_line()).await;
        match greeting {
            Err(_) => Err(worker.fault(WorkerFault::NotReady(patience.as_secs()))),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) => Err(worker.ended(WorkerFault::EndedEarly).await),
            Ok(Ok(Some(line))) if is_ready(&line) => Ok(worker),
            Ok(Ok(Some(line))) => Err(worker.fault(WorkerFault::NotGreeted(quoted(&line)))),
        }
    }

    /// Asks one request, a JSON object, and returns the answer without its id. After an error the worker must not be
    /// used again.
    pub(super) async fn ask(
        &mut self,
        request: &[u8],
        patience: Duration,
    ) -> Result<Bytes, ProgramError> {
        self.asked += 1;
        let answered = tokio::time::timeout(patience, self.exchange(request)).await;
        let line = match answered {
            Err(_) => return Err(self.fault(WorkerFault::TimedOut(patience.as_secs()))),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) => return Err(self.ended(WorkerFault::Ended).await),
            Ok(Ok(Some(line))) => line,
        };
        self.answer(&line)
    }

    /// What is wrong with a worker that waits for its next request: it has ended, or has written something unasked.
    pub(super) fn idle_fault(&mut self) -> Option<WorkerFault> {
        match self.answers.fill_buf().now_or_never()? {
            Ok([]) | Err(_) => Some(WorkerFault::EndedIdle),
            Ok(rest) => Some(WorkerFault::AnsweredTwice(quoted(rest))),
        }
    }

    /// What it wrote to standard error since this was last called.
    pub(super) fn take_stderr(&self) -> String {
        std::mem::take(&mut *self.errors.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>, ProgramError> {
        let body = request.strip_prefix(b"{").unwrap_or(request);
        let line = [format!("{{\"id\":{},", self.asked).as_bytes(), body, b"\n"].concat();
        // A worker that has ended reads nothing; its last output says more than the closed pipe.
        let _ = self.requests.write_all(&line).await;
        let _ = self.requests.flush().await;
        self.read_line().await
    }

    async fn read_line(&mut self) -> Result<Option<Vec<u8>>, ProgramError> {
        let mut line = Vec::new();
        let whole = read_line(&mut self.answers, &mut line).await;
        self.checked(whole, line)
    }

    fn checked(
        &self,
        whole: std::io::Result<bool>,
        line: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, ProgramError> {
        match whole {
            Err(source) => Err(ProgramError::Broken {
                program: self.program.clone(),
                source,
            }),
            Ok(_) if line.len() as u64 > MAX_OUTPUT => Err(ProgramError::TooMuchOutput {
                program: self.program.clone(),
            }),
            Ok(true) => Ok(Some(line)),
            Ok(false) => Ok(None),
        }
    }

    /// The answer in a line, without its id.
    fn answer(&self, line: &[u8]) -> Result<Bytes, ProgramError> {
        let object = serde_json::from_slice::<Map<String, Value>>(line).ok();
        let identified = object.and_then(|mut object| Some((object.remove("id")?, object)));
        let (id, object) =
            identified.ok_or_else(|| self.fault(WorkerFault::NotAnswer(quoted(line))))?;
        if id.as_u64() != Some(self.asked) {
            return Err(self.fault(WorkerFault::WrongId {
                asked: self.asked,
                found: id.to_string(),
            }));
        }
        if !self.answers.buffer().is_empty() {
            return Err(self.fault(WorkerFault::AnsweredTwice(quoted(self.answers.buffer()))));
        }
        let bytes = Value::Object(object).to_string().into_bytes();
        Ok(redact_bytes(&bytes).into_owned().into())
    }

    fn fault(&self, fault: WorkerFault) -> ProgramError {
        ProgramError::Worker {
            program: self.program.clone(),
            fault,
            stderr: self.take_stderr(),
        }
    }

    /// The error of a worker whose output ended.
    async fn ended(&mut self, fault: WorkerFault) -> ProgramError {
        const LAST_WORDS: Duration = Duration::from_secs(2);
        match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.group.leader_ended();
                let program = self.program.clone();
                // The task that collects its standard error may not have read all of it yet.
                tokio::task::yield_now().await;
                match status.success() {
                    true => self.fault(fault),
                    false => ProgramError::Failed {
                        program,
                        status,
                        stderr: self.take_stderr(),
                    },
                }
            }
            _ => self.fault(fault),
        }
    }
}

/// Continues reading a line, and stops when it is longer than allowed. Returns `false` at the end of the output.
async fn read_line(
    output: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<bool> {
    loop {
        let read = output.fill_buf().await?;
        if read.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', read);
        let taken = end.unwrap_or(read.len());
        line.extend_from_slice(read.get(..taken).unwrap_or_default());
        let consumed = taken + usize::from(end.is_some());
        output.consume(consumed);
        if end.is_some() || line.len() as u64 > MAX_OUTPUT {
            return Ok(true);
        }
    }
}

fn is_ready(line: &[u8]) -> bool {
    serde_json::from_slice::<Map<String, Value>>(line)
        .is_ok_and(|object| object.get("ready") == Some(&true.into()))
}

fn quoted(line: &[u8]) -> String {
    const SHOWN: usize = 200;
    shortened(redact(String::from_utf8_lossy(line).trim()).as_ref(), SHOWN)
}
