//! One worker: a process that reads a request a line and writes an answer a line, one at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::process::{
    MAX_OUTPUT, ProcessGroup, READY, failed, keep_end, lost, not_started, start, tail,
    too_much_output,
};
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
    pub(super) async fn start(spec: &CommandSpec, patience: Duration) -> Result<Worker, String> {
        let program = spec.argv.join(" ");
        let mut child = start(spec).map_err(|error| not_started(&program, &error))?;
        let group = ProcessGroup::from_child(&child);
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(not_started(&program, "it has no pipes"));
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
            Err(_) => Err(worker.fault(&format!(
                "was not ready within {} s: it has to write the line {READY} once it can take requests",
                patience.as_secs()
            ))),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) => Err(worker.ended("ended before it was ready").await),
            Ok(Ok(Some(line))) if is_ready(&line) => Ok(worker),
            Ok(Ok(Some(line))) => {
                let found = quoted(&line);
                Err(worker.fault(&format!("began with the line {found:?}; expected {READY}")))
            }
        }
    }

    /// Asks one request, a JSON object, and returns the answer without its id. After an error the worker must not be
    /// used again.
    pub(super) async fn ask(
        &mut self,
        request: &[u8],
        patience: Duration,
    ) -> Result<Bytes, String> {
        self.asked += 1;
        let answered = tokio::time::timeout(patience, self.exchange(request)).await;
        let line = match answered {
            Err(_) => {
                let fault = format!("did not answer within {} s", patience.as_secs());
                return Err(self.fault(&fault));
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) => return Err(self.ended("ended during a request").await),
            Ok(Ok(Some(line))) => line,
        };
        self.answer(&line)
    }

    /// What is wrong with a worker that waits for its next request: it has ended, or has written something unasked.
    pub(super) fn idle_fault(&mut self) -> Option<String> {
        match self.answers.fill_buf().now_or_never()? {
            Ok([]) | Err(_) => Some("ended while it waited for a request".to_owned()),
            Ok(rest) => Some(more_than_asked(rest)),
        }
    }

    /// What it wrote to standard error since this was last called.
    pub(super) fn take_stderr(&self) -> String {
        std::mem::take(&mut *self.errors.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let body = request.strip_prefix(b"{").unwrap_or(request);
        let line = [format!("{{\"id\":{},", self.asked).as_bytes(), body, b"\n"].concat();
        // A worker that has ended reads nothing; its last output says more than the closed pipe.
        let _ = self.requests.write_all(&line).await;
        let _ = self.requests.flush().await;
        self.read_line().await
    }

    async fn read_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = Vec::new();
        match read_line(&mut self.answers, &mut line).await {
            Err(error) => Err(lost(&self.program, &error)),
            Ok(_) if line.len() as u64 > MAX_OUTPUT => Err(too_much_output(&self.program)),
            Ok(is_whole) => Ok(is_whole.then_some(line)),
        }
    }

    /// The answer in a line, without its id.
    fn answer(&self, line: &[u8]) -> Result<Bytes, String> {
        let object = serde_json::from_slice::<Map<String, Value>>(line).ok();
        let identified = object.and_then(|mut object| Some((object.remove("id")?, object)));
        let (id, object) = identified.ok_or_else(|| {
            let found = quoted(line);
            self.fault(&format!(
                "wrote a line to standard output that is no answer: {found:?}; logs belong to standard error"
            ))
        })?;
        let asked = self.asked;
        if id.as_u64() != Some(asked) {
            return Err(self.fault(&format!(
                "answered the request {id} when it was asked {asked}"
            )));
        }
        if !self.answers.buffer().is_empty() {
            return Err(self.fault(&more_than_asked(self.answers.buffer())));
        }
        let bytes = Value::Object(object).to_string().into_bytes();
        Ok(redact_bytes(&bytes).into_owned().into())
    }

    /// The message for a worker that broke the protocol so.
    fn fault(&self, fault: &str) -> String {
        format!(
            "the worker `{}` {fault}{}",
            self.program,
            tail(&self.take_stderr())
        )
    }

    /// The error of a worker whose output ended.
    async fn ended(&mut self, fault: &str) -> String {
        const LAST_WORDS: Duration = Duration::from_secs(2);
        match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.group.leader_ended();
                // The task that collects its standard error may not have read all of it yet.
                tokio::task::yield_now().await;
                match status.success() {
                    true => self.fault(fault),
                    false => failed(&self.program, status, &self.take_stderr()),
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

fn more_than_asked(rest: &[u8]) -> String {
    format!("wrote more than its answer: {:?}", quoted(rest))
}

fn quoted(line: &[u8]) -> String {
    const SHOWN: usize = 200;
    shortened(redact(String::from_utf8_lossy(line).trim()).as_ref(), SHOWN)
}
