//! Locks between processes.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::{Shortage, open_options};
use crate::guarded::{open, open_with, remove_file};

/// An exclusive lock on a file, held until it is dropped. The system releases it however the process ends. On a file
/// system without locks a marker file stands for the lock. A killed process leaves it behind, and the error of the next
/// process says to remove it.
#[derive(Debug)]
pub struct FileLock {
    #[expect(dead_code, reason = "held for its lock")]
    file: File,
    #[expect(dead_code, reason = "removed when it is dropped")]
    marker: Option<LockMarker>,
}

/// A file that exists while a process holds a lock, on file systems without locks.
#[derive(Debug)]
struct LockMarker(PathBuf);

impl LockMarker {
    /// Creates the marker of the lock `path`, which only one process can do.
    fn create(path: &Path, command: &str) -> Result<LockMarker, LockError> {
        // Appended to the whole name, so that locks that differ only in their extension have different markers.
        let mut name = path.as_os_str().to_owned();
        name.push(".held");
        let marker = PathBuf::from(name);
        let mut options = open_options(&marker);
        options.read(true).write(true).create_new(true);
        match open_with(&mut options, &marker) {
            Ok(mut file) => {
                let created = LockMarker(marker);
                write_holder(&mut file, command).map_err(LockError::Io)?;
                Ok(created)
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let holder = match open(&marker) {
                    Ok(mut file) => read_holder(&mut file),
                    Err(error) => return Err(LockError::Io(error)),
                };
                let advice = "this file system has no locks, so that file stands for one; remove it if the process is gone";
                Err(LockError::Held(format!(
                    "{holder}, as {} says: {advice}",
                    marker.display()
                )))
            }
            Err(error) => Err(LockError::Io(error)),
        }
    }
}

impl Drop for LockMarker {
    fn drop(&mut self) {
        let _ = remove_file(&self.0);
    }
}

/// Whether the error says that the file system has no locks.
pub fn has_no_locks(error: &io::Error) -> bool {
    /// `ENOLCK`, which has no kind; 77 on macOS and the BSDs.
    const NO_LOCKS: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(NO_LOCKS)
}

/// Why a lock was not acquired.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it: its command, id and start time.
    Held(String),
    /// The lock file cannot be opened or locked.
    Io(io::Error),
}

impl FileLock {
    /// Locks `path`, a file that exists only for this lock, and writes the holder into it: `command` as the user typed
    /// it.
    ///
    /// # Errors
    /// If another process holds it for 2 s. The wait is for a process that was just killed, which holds it for a
    /// moment.
    pub fn acquire(path: &Path, command: &str) -> Result<FileLock, LockError> {
        const TIMEOUT: Duration = Duration::from_secs(2);
        const INTERVAL: Duration = Duration::from_millis(50);
        let mut options = open_options(path);
        options.read(true).write(true).create(true).truncate(false);
        let mut file = open_with(&mut options, path).map_err(LockError::Io)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(e)) if has_no_locks(&e) => {
                    let marker = Some(LockMarker::create(path, command)?);
                    return Ok(FileLock { file, marker });
                }
                Err(TryLockError::Error(e)) => return Err(LockError::Io(e)),
                Err(TryLockError::WouldBlock) if began.elapsed() < TIMEOUT => {
                    std::thread::sleep(INTERVAL)
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held(read_holder(&mut file)));
                }
            }
        }
        write_holder(&mut file, command).map_err(LockError::Io)?;
        Ok(FileLock { file, marker: None })
    }
}

/// Writes the holder of a lock into its file. A full disk is no reason to refuse the lock: the command that frees room
/// needs it too.
fn write_holder(file: &mut File, command: &str) -> io::Result<()> {
    let since = crate::clock::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    let command: String = command.chars().filter(|c| !c.is_control()).collect();
    let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
    let process = std::process::id();
    let written = emptied.and_then(|_| {
        write!(
            file,
            "process {process} (compeval {command}, since {since})"
        )
    });
    written.or_else(|error| match Shortage::in_error(&error) {
        Some(Shortage::Space | Shortage::FileSize) => Ok(()),
        _ => Err(error),
    })
}

fn read_holder(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(400).read_to_end(&mut bytes));
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process that has not written its name yet".into(),
    }
}
