//! Atomic writes, and reads of limited size: a file is complete or absent, also after a crash.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::redaction::redact_bytes;

/// A file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} `{}`", path.display())]
pub struct FileError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
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

    /// Whether there is a link or a special file, which is not used.
    pub fn is_foreign(&self) -> bool {
        self.source.kind() == io::ErrorKind::InvalidInput
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

/// Refuses links, pipes, sockets and devices: a link may lead anywhere, reading a pipe may wait for ever, and a device may
/// have no end.
///
/// # Errors
/// What it is.
pub fn check_kind(kind: fs::FileType) -> io::Result<()> {
    let what = if kind.is_symlink() {
        "it is a symbolic link, and links are not followed here; remove it"
    } else if !kind.is_file() && !kind.is_dir() {
        "it is a pipe, a socket or a device, not a regular file"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Refuses an open file that is not a regular one.
///
/// # Errors
/// What it is.
pub fn check_regular(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    check_kind(kind).map(|()| file)
}

/// Opens a regular file, which may be behind a link, for reading.
///
/// # Errors
/// It is missing, or not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_kind(fs::metadata(path)?.file_type())?;
    check_regular(File::open(path)?)
}

/// Reads an open file as a whole.
///
/// # Errors
/// It is longer than `limit` bytes.
pub fn read_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = file.metadata()?.len();
    if length <= limit {
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= limit {
            return Ok(bytes);
        }
    }
    let text = format!(
        "it has {} MB, and at most {} are read",
        length >> 20,
        limit >> 20
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// The longest file that is read as a whole, in bytes: one put there by mistake must not fill the memory.
pub const LONGEST: u64 = 256 << 20;

/// Reads a stream to its end. A pipe or a device may have none.
///
/// # Errors
/// It cannot be read, or is longer than [`LONGEST`] bytes.
pub fn read_stream(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let text = format!("it is longer than {} MB", LONGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

/// Reads a file of any kind, as [`read_stream`] does.
///
/// # Errors
/// As `read_stream`, or it cannot be opened.
pub fn read_any(path: &Path) -> io::Result<Vec<u8>> {
    read_stream(File::open(path)?)
}

/// Reads a regular text file of at most [`LONGEST`] bytes, which may be behind a link.
///
/// # Errors
/// It is missing, too long, or no text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let bytes = open_regular(path).and_then(|file| read_file(file, LONGEST));
    text_of(path, bytes)
}

/// The bytes of a file that was read, as text.
///
/// # Errors
/// It could not be read, or is no text.
pub fn text_of(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<String, FileError> {
    let text = bytes.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    text.map_err(|error| FileError::new("read", path, error))
}

/// The command of this process, as the user typed it.
pub fn this_command() -> String {
    typed_words().collect::<Vec<_>>().join(" ")
}

/// The arguments of this process, as far as they are text.
pub fn typed_words() -> impl Iterator<Item = String> {
    let typed = std::env::args_os().skip(1);
    typed.map(|word| word.to_string_lossy().into_owned())
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
    /// No thread can be started (`ulimit -v`, `ulimit -u`).
    Threads,
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
                // Too many open files have no kind, and a lack of threads has one that says less.
                _ => Shortage::in_text(&cause.to_string()),
            })
    }

    /// The shortage that the text of an error reports: libraries pass errors on as texts.
    pub fn in_text(text: &str) -> Option<Shortage> {
        const SIGNS: [(Shortage, &[&str]); 5] = [
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
            (Shortage::Threads, &["start a thread", "os error 11)"]),
        ];
        let (shortage, _) = SIGNS
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)))?;
        Some(*shortage)
    }
}
