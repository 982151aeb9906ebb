//! Limits that the system sets a process, and the signals by which it would end one without a word.
//!
//! A write beyond `ulimit -f` and a lack of memory end a process by a signal, which leaves neither a message nor a
//! documented exit code. Here the first becomes an error of the write. At the second Rust prints how much memory it
//! asked for and aborts: the exit code becomes that of an error.

#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
#[cfg(unix)]
use signal_hook::consts::{SIGABRT, SIGXFSZ};
#[cfg(unix)]
use signal_hook::flag;

use crate::cli::failure::{Exit, Failure};

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
