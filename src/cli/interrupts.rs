//! Requests to stop: Ctrl-C, SIGTERM and SIGHUP. The first drains, the second stops immediately, and a third ends the
//! process, whatever it is doing. A job scheduler sends SIGTERM and a closed terminal SIGHUP: both leave the same
//! report that Ctrl-C does.
//!
//! A write beyond `ulimit -f` and a lack of memory would end the process by a signal as well, which leaves neither a message
//! nor a documented exit code. Here the first becomes an error of the write. At the second Rust prints how much memory it
//! asked for and aborts: the exit code becomes that of an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};

use tokio::sync::watch;

use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::terminal::Console;
use crate::scheduler::StopRequest;
#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
#[cfg(unix)]
use signal_hook::consts::{SIGABRT, SIGXFSZ};
#[cfg(unix)]
use signal_hook::flag;

/// Handles Ctrl-C on a thread of its own, so that it works while the rest of the process is blocked.
pub(crate) struct Interrupts {
    /// What the user asked for so far.
    pub(crate) stop: watch::Receiver<StopRequest>,
    state: Arc<InterruptState>,
}

/// What the thread and the work share.
struct InterruptState {
    stop: watch::Sender<StopRequest>,
    received: AtomicU64,
    is_over: AtomicBool,
    /// Whether the thread was started.
    is_handled: AtomicBool,
}

/// What the `nth` Ctrl-C asks of the run, counted from 1; `None` ends the process. After the work only the process is
/// left to stop, which is safe: every file is written atomically.
fn requested(nth: u64, is_over: bool) -> Option<StopRequest> {
    match nth {
        _ if is_over => None,
        1 => Some(StopRequest::Drain),
        2 => Some(StopRequest::Now),
        _ => None,
    }
}

impl Interrupts {
    /// The interrupts of work to come: until it begins, Ctrl-C ends the process.
    pub(crate) fn new() -> Interrupts {
        let state = Arc::<InterruptState>::default();
        Interrupts {
            stop: state.stop.subscribe(),
            state,
        }
    }

    /// Handles Ctrl-C until the process ends; for the work that begins now, none was received yet.
    pub(crate) fn work_begins(&self, console: &Console) {
        self.state.received.store(0, Ordering::Relaxed);
        // Receivers are notified only if this takes back a request.
        self.state
            .stop
            .send_if_modified(|asked| std::mem::replace(asked, StopRequest::No) != StopRequest::No);
        self.state.is_over.store(false, Ordering::Relaxed);
        if self.state.is_handled.swap(true, Ordering::Relaxed) {
            return;
        }
        let (state, console) = (self.state.clone(), *console);
        let (ready, is_ready) = mpsc::channel::<()>();
        let started = std::thread::Builder::new()
            .name("interrupts".to_owned())
            .spawn(move || {
                if let Err(error) = state.forward_signals(console, ready) {
                    tracing::warn!("Ctrl-C is not handled: {}", chain(&error));
                }
            });
        if let Err(error) = started {
            console.warn(
                "warning:",
                format!("Ctrl-C is not handled, and ends the run at once: {error}"),
            );
        }
        // The thread drops its end once signals are handled: a Ctrl-C before that would end the run without a report.
        let _ = is_ready.recv();
    }

    /// The work is over: what follows takes a moment, and the next Ctrl-C ends the process.
    pub(crate) fn work_is_over(&self) {
        self.state.is_over.store(true, Ordering::Relaxed);
    }
}

impl Default for InterruptState {
    fn default() -> InterruptState {
        InterruptState {
            stop: watch::Sender::new(StopRequest::No),
            received: AtomicU64::new(0),
            is_over: AtomicBool::new(true),
            is_handled: AtomicBool::new(false),
        }
    }
}

impl InterruptState {
    /// Drops `ready` as soon as signals are handled.
    fn forward_signals(&self, console: Console, ready: Sender<()>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut signals = Signals::new()?;
            drop(ready);
            loop {
                signals.next().await?;
                let nth = self.received.fetch_add(1, Ordering::Relaxed) + 1;
                match requested(nth, self.is_over.load(Ordering::Relaxed)) {
                    Some(stop) => drop(self.stop.send_replace(stop)),
                    None => {
                        console.leave(Exit::Interrupted.code(), "stopped; finished work is saved")
                    }
                }
            }
        })
    }
}

/// The signals that ask the program to stop.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> std::io::Result<()> {
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = self.terminate.recv() => Ok(()),
            _ = self.hang_up.recv() => Ok(()),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

/// Files that the smallest run has open at once, with some to spare.
#[cfg(unix)]
const FEWEST_FILES: u64 = 32;

/// Files that every run may have open, if the system lets a process ask for so many.
#[cfg(unix)]
const ENOUGH_FILES: u64 = 4096;

/// Makes the signals into errors, and asks for enough open files.
///
/// # Errors
/// The process may open fewer files than any run needs.
#[cfg(unix)]
pub(crate) fn prepare_process() -> Result<(), Failure> {
    // Without a handler the process ends as it did before.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let always = Arc::new(AtomicBool::new(true));
    let _ = flag::register_conditional_shutdown(SIGABRT, i32::from(Exit::Error.code()), always);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH_FILES, |most| most.min(ENOUGH_FILES));
    let mut files = current;
    if current.is_some_and(|now| now < wanted)
        && setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                maximum,
            },
        )
        .is_ok()
    {
        files = Some(wanted);
    }
    match files {
        Some(files) if files < FEWEST_FILES => {
            let message = format!(
                "this process may open {files} files at once, and {FEWEST_FILES} are needed"
            );
            Err(Failure::error(message).hinted("`ulimit -n 1024` lets it open that many"))
        }
        _ => Ok(()),
    }
}

/// There are no such signals here.
#[cfg(not(unix))]
pub(crate) fn prepare_process() -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drains_the_second_stops_and_one_more_ends_it() {
        let requests = [1, 2, 3, 4].map(|nth| requested(nth, false));
        assert_eq!(
            requests,
            [Some(StopRequest::Drain), Some(StopRequest::Now), None, None]
        );
        assert_eq!(
            requested(1, true),
            None,
            "no work is left that could be drained"
        );
    }
}
