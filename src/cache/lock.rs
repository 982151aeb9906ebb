//! One writer at a time: a lock file that says who holds it.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::CacheError;

/// Who opens the cache for writing.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The command, as the user knows it (`run`, `cache prune`).
    pub command: String,
}

/// Held as long as it lives; the system frees it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// A process killed a moment ago keeps the lock until it is really gone.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

impl Lock {
    pub(super) fn take(path: &Path, folder: &Path, holder: &Holder) -> Result<Lock, CacheError> {
        let failed = CacheError::io("lock", path);
        let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = match open {
            Ok(file) => file,
            Err(e) => return Err(failed(e)),
        };
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(e)) => return Err(failed(e)),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(CacheError::Locked { path: folder.to_owned(), holder: read_holder(&mut file) });
                }
            }
        }
        write_holder(&mut file, holder).map_err(failed)?;
        Ok(Lock(file))
    }
}

fn write_holder(file: &mut File, holder: &Holder) -> std::io::Result<()> {
    let since = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    let command: String = holder.command.chars().filter(|c| !c.is_control()).collect();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "`compeval {command}` (process {}, since {since})", std::process::id())
}

fn read_holder(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(400).read_to_end(&mut bytes));
    let text: String = String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).collect();
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process, which has not yet said which".into(),
    }
}
