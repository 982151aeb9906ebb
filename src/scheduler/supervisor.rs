//! The process between compeval and a user's program, on Linux: when compeval or the program ends, it ends the program
//! and everything that the program started.
//!
//! A program may start others, in other process groups and sessions, and compeval may be ended by a signal that it
//! cannot catch (SIGKILL). So compeval starts itself as a supervisor: one small process for each program. The kernel
//! makes it the parent of all orphans below it (`PR_SET_CHILD_SUBREAPER`), so that it finds them all, and sends it
//! SIGTERM when compeval ends (`PR_SET_PDEATHSIG`). Only a SIGKILL of the supervisor itself leaves processes behind.
//! Elsewhere there is no such signal: there a program has a process group of its own, which is killed as long as
//! compeval lives.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The argument by which compeval starts itself as a supervisor.
const ARGUMENT: &str = "__supervise";

/// How the standard error of a supervisor begins that could not start the program.
pub(super) const NOT_STARTED: &str = "compeval could not start the program: ";

/// The executable to start as a supervisor. Unset in tests and other programs that use this library: their executable
/// does not know the argument.
static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Starts programs under a supervisor from now on, on systems that support it. To be called by the program compeval.
pub fn use_supervisor() {
    if cfg!(target_os = "linux")
        && let Ok(executable) = std::env::current_exe()
    {
        let _ = EXECUTABLE.set(executable);
    }
}

/// Whether programs are started under a supervisor.
pub(super) fn is_supervised() -> bool {
    EXECUTABLE.get().is_some()
}

/// The command line that runs `argv` under a supervisor; `None` where there is none.
pub(super) fn supervised(argv: &[String]) -> Option<Vec<OsString>> {
    let executable = EXECUTABLE.get()?;
    let own = [
        executable.clone().into_os_string(),
        ARGUMENT.into(),
        std::process::id().to_string().into(),
    ];
    Some(
        own.into_iter()
            .chain(argv.iter().map(OsString::from))
            .collect(),
    )
}

/// Runs a program under supervision, if this process was started for that. Returns its exit code.
#[cfg(target_os = "linux")]
pub fn supervise_if_asked() -> Option<u8> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let parent: i32 = arguments.next()?.to_str()?.parse().ok()?;
    Some(linux::supervise(parent, arguments.collect()))
}

/// Runs a program under supervision, if this process was started for that. Returns its exit code.
#[cfg(not(target_os = "linux"))]
pub fn supervise_if_asked() -> Option<u8> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::{self, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use rustix::process::{
        Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
        set_parent_process_death_signal, wait,
    };
    use tokio::process::Command;
    use tokio::signal::unix::{SignalKind, signal};

    use super::NOT_STARTED;

    const FAILED: u8 = 127;

    pub(super) fn supervise(parent: i32, argv: Vec<OsString>) -> u8 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let ended = runtime.and_then(|runtime| runtime.block_on(run(parent, argv)));
        kill_descendants();
        match ended {
            Ok(Some(status)) => end_alike(status),
            // Compeval has ended, or wants the program to.
            Ok(None) => FAILED,
            Err(error) => {
                let _ = writeln!(io::stderr(), "{NOT_STARTED}{error}");
                FAILED
            }
        }
    }

    /// The status of the program; `None` if it is to be ended before.
    async fn run(parent: i32, argv: Vec<OsString>) -> io::Result<Option<ExitStatus>> {
        let mut terminated = signal(SignalKind::terminate())?;
        set_child_subreaper(Some(getpid()))?;
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // Compeval may have ended before the signal was set up.
        if getppid()
            .map(Pid::as_raw_nonzero)
            .is_none_or(|now| now.get() != parent)
        {
            return Ok(None);
        }
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program).args(arguments).spawn()?;
        tokio::select! {
            ended = child.wait() => ended.map(Some),
            _ = terminated.recv() => Ok(None),
        }
    }

    /// Kills everything below this process. The children of what is killed become children of this process and are killed
    /// in the next round.
    fn kill_descendants() {
        loop {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            let children = children();
            if children.is_empty() {
                return;
            }
            for child in children {
                let _ = kill_process(child, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn children() -> Vec<Pid> {
        let own = getpid().as_raw_nonzero().get().to_string();
        let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().into_string().ok());
        let children = pids.filter(|pid| parent_of(pid).is_some_and(|parent| parent == own));
        children
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect()
    }

    fn parent_of(pid: &str) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // pid (name) state parent …; the name may contain anything
        let (_, fields) = stat.rsplit_once(") ")?;
        fields.split(' ').nth(1).map(str::to_owned)
    }

    /// Ends this process as the program ended.
    fn end_alike(status: ExitStatus) -> u8 {
        if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
            let _ = kill_process(getpid(), signal);
        }
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(FAILED)
    }
}
