//! The result of a request to a program: its output, or why there is none.

use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use base::files::system_words;
use base::say;

/// The line that a worker writes once it can take requests.
pub(super) const READY: &str = "{\"ready\":true}";
/// After this many failed starts in a row, a method is given up.
pub(super) const MOST_FAILED_STARTS: u32 = 3;
/// The most that a program may write to standard output for one request.
pub(super) const MAX_OUTPUT: u64 = 32 << 20;

/// Why a program yielded no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("{}", say!("could not start `{program}`: {}", "无法启动 `{program}`：{}", system_words(source)))]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("{}", say!("`{program}` did not finish within {} s{}", "`{program}` 没有在 {} 秒内结束{}", timeout.as_secs(), tail(stderr)))]
    TimedOut {
        program: String,
        timeout: Duration,
        stderr: String,
    },
    #[error("{}", say!("`{program}` ended with {}{}", "`{program}` 以{}结束{}", ending(*status), tail(stderr)))]
    Failed {
        program: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("{}", say!("`{program}` wrote more than {} MiB to standard output", "`{program}` 向标准输出写了超过 {} MiB", MAX_OUTPUT >> 20))]
    TooMuchOutput { program: String },
    #[error("{}", say!("lost the connection to `{program}`: {source}", "与 `{program}` 的连接中断：{source}"))]
    Broken {
        program: String,
        source: std::io::Error,
    },
    #[error("{}", say!("the worker `{program}` {fault}{}", "工作进程 `{program}` {fault}{}", tail(stderr)))]
    Worker {
        program: String,
        fault: WorkerFault,
        stderr: String,
    },
    #[error("{}", say!("`{program}` could not be started {0} times and is not started again; the last time: {last}", "`{program}` 已有 {0} 次无法启动，不再启动；最后一次：{last}" ,
        MOST_FAILED_STARTS))]
    GivenUp { program: String, last: String },
    #[error("{}", say!("`{program}` is declared deterministic, but a fresh process returned another result for the same request; \
         take `deterministic = true` away, or let no request depend on the ones before", "`{program}` 声明为确定性的，但新进程对同一请求返回了不同的结果；请去掉 `deterministic = true`，或使请求不依赖之前的请求"))]
    NotDeterministic { program: String },
}

/// How a worker broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkerFault {
    #[error("{}", say!("was not ready within {_0} s: it has to write the line {READY} once it can take requests", "没有在 {_0} 秒内就绪：能接受请求后应写出一行 {READY}"))]
    NotReady(u64),
    #[error("{}", say!("began with the line {_0:?}; expected {READY}", "首行为 {_0:?}；应为 {READY}"))]
    NotGreeted(String),
    #[error("{}", say!("ended before it was ready", "在就绪前结束"))]
    EndedEarly,
    #[error("{}", say!("ended while it waited for a request", "在等待请求时结束"))]
    EndedIdle,
    #[error("{}", say!("ended during a request", "在请求期间结束"))]
    Ended,
    #[error("{}", say!("did not answer within {_0} s", "没有在 {_0} 秒内应答"))]
    TimedOut(u64),
    #[error("{}", say!("wrote a line to standard output that is no answer: {_0:?}; logs belong to standard error", "向标准输出写了不是应答的一行：{_0:?}；日志应写到标准错误"))]
    NotAnswer(String),
    #[error("{}", say!("answered the request {found} when it was asked {asked}", "被问 {asked} 时应答了请求 {found}"))]
    WrongId { asked: u64, found: String },
    #[error("{}", say!("wrote more than its answer: {_0:?}", "写出的多于应答：{_0:?}"))]
    AnsweredTwice(String),
    #[error("{}", say!("took more than {_0} MiB of memory", "占用内存超过 {_0} MiB"))]
    TooLarge(u64),
}

/// How a process ended: in English in the words of the system.
fn ending(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => say!("{status}", "退出码 {code} "),
        None => say!("{status}", "“{status}”"),
    }
}

fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let last = lines
        .get(lines.len().saturating_sub(5)..)
        .unwrap_or_default();
    if last.is_empty() {
        String::new()
    } else {
        say!(
            "; its last words:\n  {}",
            "；其最后输出：\n  {}",
            last.join("\n  ")
        )
    }
}

/// The output of a program for one request.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub stdout: Bytes,
    /// What it wrote to standard error meanwhile; only the end of a long text.
    pub(super) stderr: String,
    /// A time just before the process that answered was started.
    pub started: SystemTime,
    /// From the request to the answer; the start of a worker is not part of it.
    pub elapsed: Duration,
}
