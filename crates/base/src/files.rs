//! Atomic writes and locks: a file is complete or absent, also after a crash.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::redaction::redact_bytes;

/// A file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} `{}`", path.display())]
pub struct FileError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// What the system says of a failed operation.
pub fn system_words(error: &io::Error) -> String {
    error.to_string()
}

impl FileError {
    /// An error while doing `verb` to `path`.
    pub fn new(verb: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError {
            verb,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Writes `path` durably, through a temporary file in the same folder that is then renamed. Creates the folder if it
/// does not exist. API keys are redacted.
pub fn write_whole(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
    StagedFile::write(path, bytes)?.commit_durably()
}

/// Like [`write_whole`], but only the owner can read the file, whatever its folder. For pages that quote whole
/// transcripts and are written wherever the user chose.
pub fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
    let staged = StagedFile::write(path, bytes)?;
    staged
        .file
        .persist(path)
        .map_err(|error| FileError::new("write", path, error.error))?;
    sync_folder(folder_of(path))
}

/// Like [`write_whole`], but the name is durable only after [`sync_folder`]. For several files in one folder.
pub fn write_unsynced_name(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
    StagedFile::write(path, bytes)?.commit()
}

/// A file whose bytes are on disk under a temporary name.
#[derive(Debug)]
pub struct StagedFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl StagedFile {
    /// Writes the bytes durably to a temporary file in the folder of `path`. API keys are redacted.
    pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<StagedFile, FileError> {
        let written = write_temporary(folder_of(path), bytes.as_ref());
        let file = written.map_err(|e| FileError::new("write", path, e))?;
        Ok(StagedFile {
            file,
            path: path.to_owned(),
        })
    }

    /// Renames the file to its final name, durably.
    pub fn commit_durably(self) -> Result<(), FileError> {
        let folder = folder_of(&self.path).to_owned();
        self.commit()?;
        sync_folder(&folder)
    }

    /// Renames the file to its final name, which is durable after [`sync_folder`].
    pub fn commit(self) -> Result<(), FileError> {
        let opened = open_to_others(self.file.path());
        let named = opened.and_then(|()| self.file.persist(&self.path).map_err(|e| e.error));
        named
            .map(drop)
            .map_err(|e| FileError::new("write", &self.path, e))
    }
}

/// Writes the bytes durably to a temporary file in `folder`, which is created if it is missing.
fn write_temporary(folder: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    fs::create_dir_all(folder)?;
    let mut file = temporary_in(folder)?;
    file.write_all(&redact_bytes(bytes))?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Creates a temporary file in `folder`.
pub fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".")
        .suffix(TEMPORARY)
        .tempfile_in(folder)
}

/// Creates a temporary file with `text`, for another program to edit. It is removed when dropped.
pub fn temporary_file(text: &str, suffix: &str) -> Result<tempfile::NamedTempFile, FileError> {
    let created = tempfile::Builder::new()
        .prefix("compeval-")
        .suffix(suffix)
        .tempfile();
    let written = created.and_then(|mut file| {
        file.write_all(&redact_bytes(text.as_bytes()))?;
        Ok(file)
    });
    written.map_err(|error| FileError::new("write", &std::env::temp_dir(), error))
}

/// Whether this is the name of a temporary file. A leftover one is from a process that was killed while it wrote.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

/// The end of the names of temporary files.
const TEMPORARY: &str = ".tmp";

/// Makes the bytes of a finished temporary file durable and renames it to `path`. The new name is durable after
/// [`sync_folder`].
pub fn persist(file: tempfile::NamedTempFile, path: &Path) -> Result<(), FileError> {
    file.as_file()
        .sync_all()
        .map_err(|e| FileError::new("write", path, e))?;
    StagedFile {
        file,
        path: path.to_owned(),
    }
    .commit()
}

/// Removes a file, if there is one.
///
/// # Errors
/// If there is one and it cannot be removed.
pub fn remove_if_there(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Makes created, renamed and removed names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    if cfg!(unix) {
        File::open(folder)
            .and_then(|f| f.sync_all())
            .map_err(|e| FileError::new("sync", folder, e))?;
    }
    Ok(())
}

/// The folder of a file; for a bare name, the current folder.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Creates a folder that only its owner can enter, and the missing ones above it: caches and results contain whole
/// transcripts. An existing folder keeps its mode.
pub fn create_private_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .recursive(true)
        .create(path)
        .map_err(|e| FileError::new("create", path, e))
}

/// Options for opening `path`. A file that they create is private to its owner if its folder is.
pub fn open_options(path: &Path) -> fs::OpenOptions {
    if is_private(folder_of(path)) {
        private_options()
    } else {
        File::options()
    }
}

/// Options for opening a file. One that they create is private to its owner, whatever its folder.
pub fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Gives a new folder, and the files in it, the mode of the folder that it replaces, unless that one is private.
pub fn copy_mode(old: &Path, new: &Path) -> Result<(), FileError> {
    #[cfg(unix)]
    if !is_private(old) {
        let mode = mode(old).unwrap_or(0o755);
        set_mode(new, mode).map_err(|e| FileError::new("share", new, e))?;
        for file in fs::read_dir(new).into_iter().flatten().flatten() {
            if file.file_type().is_ok_and(|kind| kind.is_file()) {
                let path = file.path();
                set_mode(&path, mode & 0o644).map_err(|e| FileError::new("share", &path, e))?;
            }
        }
    }
    #[cfg(not(unix))]
    let _ = (old, new);
    Ok(())
}

/// Makes everything in a private folder private too: for a library that creates files by itself.
pub fn make_files_private(folder: &Path) {
    #[cfg(unix)]
    for entry in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|_| is_private(folder))
    {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_symlink() {
            continue;
        }
        // An error is harmless: nobody else can enter the folder.
        let mode = if kind.is_dir() { 0o700 } else { 0o600 };
        let _ = set_mode(&entry.path(), mode);
        if kind.is_dir() {
            make_files_private(&entry.path());
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    let metadata = fs::metadata(path).ok()?;
    Some(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// Whether only the owner can enter a folder.
#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    mode(folder).is_some_and(|mode| mode & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    false
}

/// Makes a finished file readable for others, unless its folder is private. Temporary files are private.
#[cfg(unix)]
fn open_to_others(path: &Path) -> io::Result<()> {
    if is_private(folder_of(path)) {
        return Ok(());
    }
    set_mode(path, 0o644)
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether an open file is still the one at `path`.
#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// On these systems an open file cannot be removed.
#[cfg(not(unix))]
pub fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether a path leads to a pipe, a socket or a device: reading may wait forever, or have no end.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|e| FileError::new("read", path, e))
}

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
        match open_options(&marker)
            .read(true)
            .write(true)
            .create_new(true)
            .open(&marker)
        {
            Ok(mut file) => {
                let created = LockMarker(marker);
                write_holder(&mut file, command).map_err(LockError::Io)?;
                Ok(created)
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let holder = match File::open(&marker) {
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
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether the error says that the file system has no locks.
fn has_no_locks(error: &io::Error) -> bool {
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
        let open = open_options(path)
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = open.map_err(LockError::Io)?;
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

    /// Locks `path`, a file that exists only for this lock, unless another process holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<FileLock>> {
        let file = private_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { file, marker: None })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The folder of this user that the processes of all projects share; `None` if it cannot be found or created.
pub fn user_folder() -> Option<PathBuf> {
    let base = folder_from_env("XDG_RUNTIME_DIR")
        .or_else(|| folder_from_env("XDG_CACHE_HOME"))
        .or_else(|| Some(folder_from_env("HOME")?.join(".cache")))
        .or_else(|| folder_from_env("LOCALAPPDATA"))?;
    let folder = base.join("compeval");
    create_private_folder(&folder).ok().map(|()| folder)
}

/// The folder that an environment variable names.
fn folder_from_env(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// The command of this process, as the user typed it.
pub fn this_command() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

/// Writes the holder of a lock into its file. A full disk is no reason to refuse the lock: the command that frees room
/// needs it too.
fn write_holder(file: &mut File, command: &str) -> io::Result<()> {
    let since = crate::clock::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    let command: String = command.chars().filter(|c| !c.is_control()).collect();
    let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
    let written = emptied.and_then(|_| {
        write!(
            file,
            "process {} (compeval {command}, since {since})",
            std::process::id()
        )
    });
    written.or_else(|error| {
        if is_out_of_space(&error) {
            Ok(())
        } else {
            Err(error)
        }
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

/// Whether an error says that the disk is full.
pub fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A limit of the system that its user can lift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The disk or the quota is full.
    Space,
    /// A file would become larger than the process may write (`ulimit -f`).
    FileSize,
    /// The process has as many open files as it may (`ulimit -n`).
    OpenFiles,
    /// The file system can only be read.
    ReadOnly,
}

impl Shortage {
    /// The shortage that the system reports among the causes of an error.
    pub fn in_error(error: &(dyn std::error::Error + 'static)) -> Option<Shortage> {
        let causes = std::iter::successors(Some(error), |&error| error.source());
        causes
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .find_map(|cause| match cause.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Shortage::Space),
                io::ErrorKind::FileTooLarge => Some(Shortage::FileSize),
                io::ErrorKind::ReadOnlyFilesystem => Some(Shortage::ReadOnly),
                // Too many open files have no kind.
                _ => Shortage::in_text(&cause.to_string()),
            })
    }

    /// The shortage that the text of an error reports: libraries pass errors on as texts.
    pub fn in_text(text: &str) -> Option<Shortage> {
        const SIGNS: [(Shortage, &[&str]); 4] = [
            (
                Shortage::Space,
                &[
                    "No space left on device",
                    "Disk quota exceeded",
                    "os error 28)",
                    "os error 122)",
                ],
            ),
            (Shortage::FileSize, &["File too large", "os error 27)"]),
            (
                Shortage::OpenFiles,
                &["Too many open files", "os error 24)", "os error 23)"],
            ),
            (
                Shortage::ReadOnly,
                &["Read-only file system", "os error 30)"],
            ),
        ];
        let (shortage, _) = SIGNS
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)))?;
        Some(*shortage)
    }
}
