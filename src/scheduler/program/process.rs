//! A process of the user's program: it gets no shell and no undeclared variable, and its time and output are bounded.
//!
//! All processes that the program starts end with it, whether it succeeds, fails or times out, or the run is stopped. A
//! server that a compressor leaves behind would otherwise hold ports and memory for the rest of the matrix. On Linux a
//! [`supervisor`](crate::scheduler::supervisor) ensures this, even after SIGKILL; elsewhere the program leads its own process
//! group, and the group is killed.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::compress::CommandSpec;
use crate::scheduler::supervisor::{NOT_STARTED, is_supervised, supervised};
use base::redaction::{add_key, redact_bytes};

/// The bytes of standard error that are shown, from its end.
const ERROR_TAIL: usize = 8 << 10;

/// The bytes before them that are kept unseen: a key is found only if the part of it that is not shown is there, too.
const UNSEEN: usize = 8 << 10;

/// Redacts the values of the program's secrets from now on.
pub(super) fn redact_secrets(spec: &CommandSpec) {
    for secret in spec.secrets.iter().filter_map(std::env::var_os) {
        add_key(&secret.to_string_lossy());
    }
}

/// Starts the program, passes it `stdin` and returns what it wrote to standard output and to standard error.
///
/// # Errors
/// Why there is no output, worded for the user.
pub(super) async fn run(spec: &CommandSpec, stdin: Bytes) -> Result<(Bytes, String), String> {
    let program = spec.argv.join(" ");
    let mut child = start(spec).map_err(|error| not_started(&program, &error))?;
    let mut group = ProcessGroup::from_child(&child);
    let errors = Arc::new(Mutex::new(String::new()));
    let communication = communicate(&mut child, &mut group, stdin, Arc::clone(&errors));
    let ended = tokio::time::timeout(spec.timeout, communication).await;
    let stderr = std::mem::take(&mut *errors.lock().unwrap_or_else(PoisonError::into_inner));
    if !stderr.is_empty() {
        tracing::debug!(program, stderr, "the program wrote to standard error");
    }
    match ended {
        Err(_) => Err(format!(
            "`{program}` did not finish within {} s{}",
            spec.timeout.as_secs(),
            tail(&stderr)
        )),
        Ok(Err(error)) => Err(lost(&program, &error)),
        Ok(Ok((status, _))) if !status.success() && stderr.starts_with(NOT_STARTED) => {
            let why = stderr.trim_start_matches(NOT_STARTED).trim_end();
            Err(not_started(&program, why))
        }
        Ok(Ok((status, _))) if !status.success() => Err(failed(&program, status, &stderr)),
        Ok(Ok((_, output))) if output.len() as u64 > MAX_OUTPUT => Err(too_much_output(&program)),
        Ok(Ok((_, output))) => Ok((redact_bytes(&output).into_owned().into(), stderr)),
    }
}

pub(super) fn not_started(program: &str, why: impl Display) -> String {
    format!("could not start `{program}`: {why}")
}

pub(super) fn lost(program: &str, error: &std::io::Error) -> String {
    format!("lost the connection to `{program}`: {error}")
}

pub(super) fn failed(program: &str, status: ExitStatus, stderr: &str) -> String {
    format!("`{program}` ended with {status}{}", tail(stderr))
}

pub(super) fn too_much_output(program: &str) -> String {
    let limit = MAX_OUTPUT >> 20;
    format!("`{program}` wrote more than {limit} MiB to standard output")
}

/// Starts the program with pipes, in its own process group.
pub(super) fn start(spec: &CommandSpec) -> std::io::Result<Child> {
    let argv =
        supervised(&spec.argv).unwrap_or_else(|| spec.argv.iter().map(OsString::from).collect());
    let (program, arguments) = argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&spec.folder)
        .env_clear();
    for name in ["PATH", "HOME"].into_iter().chain(spec.variables()) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    #[cfg(unix)]
    command.process_group(0);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Feeds and reads the child at once, so that neither side can block the other.
async fn communicate(
    child: &mut Child,
    group: &mut ProcessGroup,
    stdin: Bytes,
    stderr: Arc<Mutex<String>>,
) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (mut input, output, errors) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut pipe) = input.take() {
            // A program may answer without reading all of its input. Then the pipe is closed, which is not an error.
            let _ = pipe.write_all(&stdin).await;
            let _ = pipe.shutdown().await;
        }
    };
    let read = async {
        let mut bytes = Vec::new();
        if let Some(pipe) = output {
            pipe.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await?;
        }
        Ok::<_, std::io::Error>(bytes)
    };
    let (_, bytes, ()) = tokio::join!(feed, read, keep_end(errors, stderr));
    let bytes = bytes?;
    if bytes.len() as u64 > MAX_OUTPUT {
        group.end();
    }
    let status = child.wait().await?;
    group.leader_ended();
    Ok((
        if bytes.len() as u64 > MAX_OUTPUT {
            ExitStatus::default()
        } else {
            status
        },
        bytes,
    ))
}

/// Reads standard error until it ends and keeps the last part of it. Keys are redacted before it is cut.
pub(super) async fn keep_end(pipe: Option<impl AsyncRead + Unpin>, kept: Arc<Mutex<String>>) {
    let Some(mut pipe) = pipe else { return };
    let (mut tail, mut shown_from, mut chunk) = (Vec::new(), 0, [0_u8; 4096]);
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The text was taken: the next one begins here.
        if kept.is_empty() {
            shown_from = tail.len();
        }
        tail.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if tail.len() - shown_from > 2 * ERROR_TAIL {
            shown_from = tail.len() - ERROR_TAIL;
        }
        let excess = shown_from.saturating_sub(UNSEEN);
        tail.drain(..excess);
        shown_from -= excess;
        let redacted = redact_bytes(&tail);
        *kept =
            String::from_utf8_lossy(redacted.get(shown_from..).unwrap_or_default()).into_owned();
    }
}

/// The process group that a child leads. Ended when dropped.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(not(unix))]
    leader: Option<()>,
    is_supervised: bool,
}

impl ProcessGroup {
    #[cfg(unix)]
    pub(super) fn from_child(child: &Child) -> ProcessGroup {
        let leader = child
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        ProcessGroup {
            leader,
            is_supervised: is_supervised(),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn from_child(_: &Child) -> ProcessGroup {
        ProcessGroup {
            leader: None,
            is_supervised: is_supervised(),
        }
    }

    /// The leader has ended. A supervisor has left nothing behind, and its process id may be another process's by now.
    pub(super) fn leader_ended(&mut self) {
        if self.is_supervised {
            self.leader = None;
        }
        self.end();
    }

    /// Ends the group, once. A supervisor kills what is below it before it ends; it is not killed itself.
    fn end(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader.take() {
            use rustix::process::{Signal, kill_process, kill_process_group};
            // An error means that the group is empty, as it should be.
            let _ = match self.is_supervised {
                true => kill_process(leader, Signal::TERM),
                false => kill_process_group(leader, Signal::KILL),
            };
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// The line that a worker writes once it can take requests.
pub(super) const READY: &str = "{\"ready\":true}";
/// After this many failed starts in a row, a method is given up.
pub(super) const MOST_FAILED_STARTS: u32 = 3;
/// The most that a program may write to standard output for one request.
pub(super) const MAX_OUTPUT: u64 = 32 << 20;

/// The last lines of standard error, to be added to a message.
pub(super) fn tail(stderr: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compress::Protocol;

    fn spec(script: &str) -> CommandSpec {
        CommandSpec {
            argv: vec!["sh".into(), "-c".into(), script.into()],
            model: None,
            folder: ".".into(),
            files: Vec::new(),
            environment: vec![("CARGO_MANIFEST_DIR".into(), None)],
            secrets: Vec::new(),
            identity: None,
            protocol: Protocol::default(),
            deterministic: true,
            timeout: Duration::from_secs(20),
        }
    }

    #[tokio::test]
    async fn hands_over_input_and_returns_output() {
        assert_eq!(
            run(&spec("cat"), Bytes::from("{\"a\":1}")).await.unwrap().0,
            "{\"a\":1}"
        );
    }

    #[tokio::test]
    async fn only_declared_variables_are_seen() {
        let names = run(
            &spec("env | cut -d= -f1 | grep -v -e PWD -e SHLVL -e '^_$' | sort"),
            Bytes::new(),
        )
        .await
        .unwrap()
        .0;
        assert_eq!(names, "CARGO_MANIFEST_DIR\nHOME\nPATH\n");
    }

    #[tokio::test]
    async fn a_failure_carries_the_last_words() {
        let error = run(&spec("echo trouble >&2; exit 3"), Bytes::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("trouble"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_key_is_redacted_also_where_standard_error_is_cut() {
        /// Five chunks are the first that are too many.
        const WRITTEN: usize = 5 * 4096;
        let key = "sk-cut-9f8e7d6c5b4a39281706";
        add_key(key);
        for unseen in 1..key.len() {
            let seen = key.len() - unseen;
            let before = "x".repeat(WRITTEN - ERROR_TAIL - unseen);
            let after = "y".repeat(ERROR_TAIL - seen);
            let kept = Arc::default();
            keep_end(
                Some(format!("{before}{key}{after}").as_bytes()),
                Arc::clone(&kept),
            )
            .await;
            assert_eq!(
                *kept.lock().unwrap(),
                format!("{}{after}", "*".repeat(seen))
            );
        }
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_its_children() {
        let mut slow = spec("sleep 600 & echo waiting for $! >&2; wait");
        slow.timeout = Duration::from_secs(1);
        let error = run(&slow, Bytes::new()).await.unwrap_err().to_string();
        let (text, pid) = error.rsplit_once("waiting for ").unwrap();
        assert!(text.contains("did not finish"), "{error}");
        #[cfg(target_os = "linux")]
        wait_until_ended(pid.trim()).await;
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }

    /// Whether the process still runs; a dead one that nobody has waited for does not.
    #[cfg(target_os = "linux")]
    fn is_running(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[cfg(target_os = "linux")]
    async fn wait_until_ended(pid: &str) {
        for _ in 0..1000 {
            if !is_running(pid) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {pid} still runs");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it() {
        let left = "sleep 600 >/dev/null 2>&1 </dev/null & echo $!";
        let (output, _) = run(&spec(left), Bytes::new()).await.unwrap();
        wait_until_ended(String::from_utf8_lossy(&output).trim()).await;
    }

    #[tokio::test]
    async fn input_larger_than_a_pipe_and_unread_does_not_block() {
        assert_eq!(
            run(&spec("echo done"), Bytes::from(vec![b'x'; 1 << 20]))
                .await
                .unwrap()
                .0,
            "done\n"
        );
    }
}
