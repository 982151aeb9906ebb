//! Files and folders that may be anybody's: what lies below the `results` and the `cache` of a project, which git carries
//! with it. A symbolic link there may lead to any file of the machine, a pipe waits for ever, and a device has no end. So
//! only regular files of a limited size and real folders are opened, listed, renamed and removed; anything else is an
//! error that names the path. No other file of the product calls the system for these paths.
//!
//! A folder is checked as a whole before it is used ([`check_tree`]). So the functions for single paths look at the last
//! name of a path only.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::files::{
    FileError, check_kind, check_regular, create_private_folder, read_file, text_of,
};

/// The longest file that is read as a whole, in bytes.
pub const LONGEST: u64 = 64 << 20;
/// The longest line of a file that is read line by line, in bytes.
pub const LONGEST_LINE: u64 = 32 << 20;

/// Refuses links and special files below a folder that may not exist, and a link in its place.
///
/// # Errors
/// The first of them, or a folder that cannot be read.
pub fn check_tree(root: &Path) -> Result<(), FileError> {
    check_walk(root, WalkDir::new(root).follow_root_links(false))
}

/// As [`check_tree`], for a folder that a flag or the environment named: it may be a link.
///
/// # Errors
/// As [`check_tree`].
pub fn check_below(root: &Path) -> Result<(), FileError> {
    check_walk(root, WalkDir::new(root).min_depth(1))
}

fn check_walk(root: &Path, walk: WalkDir) -> Result<(), FileError> {
    for entry in walk {
        let (path, checked) = match entry {
            Ok(entry) => (entry.path().to_owned(), check_kind(entry.file_type())),
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                (path, Err(io::Error::from(error)))
            }
        };
        match checked {
            // another process may have removed it meanwhile
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new("use", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a link in the place of any folder between `root` and the file `below` it, for files that are about to be
/// written.
///
/// # Errors
/// The first link.
pub fn check_folders(root: &Path, below: &Path) -> Result<(), FileError> {
    let folders = below.ancestors().skip(1).map(|folder| root.join(folder));
    for folder in folders.take_while(|folder| folder != root) {
        metadata(&folder).map_err(|error| FileError::new("use", &folder, error))?;
    }
    Ok(())
}

/// What is at a path; `None` if there is nothing.
///
/// # Errors
/// It is neither a regular file nor a real folder, or cannot be looked at.
pub fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => check_kind(found.file_type()).map(|()| Some(found)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

/// Whether there is anything at a path, be it a link.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Opens a file for reading.
///
/// # Errors
/// It is missing, or not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(File::options().read(true), path)
}

/// Opens a file by these options.
///
/// # Errors
/// It is not a regular file, or cannot be opened so.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    metadata(path)?;
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        #[expect(clippy::cast_possible_wrap, reason = "bits of a C integer")]
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags as i32);
    }
    check_regular(options.open(path)?)
}

/// Reads a file as a whole.
///
/// # Errors
/// It is missing, not a regular file, or longer than `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_file(open(path)?, limit)
}

/// Reads a text file of at most [`LONGEST`] bytes.
///
/// # Errors
/// As [`read`]; it is no text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text_of(path, read(path, LONGEST))
}

/// Reads the next line into `buffer`, with its end; nothing at the end of the file.
///
/// # Errors
/// The line is longer than [`LONGEST_LINE`], or is no text.
pub fn read_line(reader: &mut (impl BufRead + ?Sized), buffer: &mut String) -> io::Result<()> {
    buffer.clear();
    let read = reader.take(LONGEST_LINE + 1).read_line(buffer)?;
    if read as u64 > LONGEST_LINE {
        return Err(long_line());
    }
    Ok(())
}

/// Passes over the next line. Returns whether there was one that is whole.
///
/// # Errors
/// As [`read_line`].
pub fn skip_line(reader: &mut (impl BufRead + ?Sized)) -> io::Result<bool> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
    if line.len() as u64 > LONGEST_LINE {
        return Err(long_line());
    }
    Ok(line.ends_with(b"\n"))
}

fn long_line() -> io::Error {
    let text = format!("a line in it has more than {} MB", LONGEST_LINE >> 20);
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The lines of a file, without their ends. A line that cannot be read is the last item.
///
/// # Errors
/// As [`open`]; of each line as [`read_line`].
pub fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String, FileError>>, FileError> {
    let fault = |error| FileError::new("read", path, error);
    let mut reader = BufReader::new(open(path).map_err(fault)?);
    let mut has_failed = false;
    Ok(std::iter::from_fn(move || {
        if has_failed {
            return None;
        }
        let mut line = String::new();
        match read_line(&mut reader, &mut line) {
            Ok(()) if line.is_empty() => None,
            Ok(()) => {
                line.truncate(line.trim_end_matches(['\r', '\n']).len());
                Some(Ok(line))
            }
            Err(error) => {
                has_failed = true;
                Some(Err(fault(error)))
            }
        }
    }))
}

/// What is in a folder; nothing if it does not exist.
///
/// # Errors
/// A link or a special file is in it.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if metadata(folder)?.is_none() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        check_kind(entry.file_type()?)
            .map_err(|error| io::Error::other(format!("{}: {error}", entry.path().display())))?;
        paths.push(entry.path());
    }
    Ok(paths)
}

/// Creates a private folder, and the missing ones above it.
///
/// # Errors
/// There is something else in its place.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    metadata(path).map_err(|error| FileError::new("create", path, error))?;
    create_private_folder(path)
}

/// Renames a file or a folder.
///
/// # Errors
/// It is something else.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    metadata(from)?;
    fs::rename(from, to)
}

/// Removes a file, if it is there. Of a link, this removes the link.
///
/// # Errors
/// It cannot be removed.
pub fn remove_file(path: &Path) -> io::Result<()> {
    found(fs::remove_file(path))
}

/// Removes a folder with all that is in it, if it is there. Links in it are removed and not followed.
///
/// # Errors
/// It is something else, or cannot be removed.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    match metadata(path)? {
        Some(_) => found(fs::remove_dir_all(path)),
        None => Ok(()),
    }
}

/// Removes a folder, if it is empty.
pub fn remove_empty(path: &Path) {
    let _ = fs::remove_dir(path);
}

fn found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The size of a folder on disk as `du` reports it: whole blocks, including the folders. Anything that does not exist
/// or cannot be read counts as 0.
pub fn disk_bytes(folder: &Path) -> u64 {
    let entries = WalkDir::new(folder).into_iter().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| allocated(&meta))
        .sum()
}

#[cfg(unix)]
fn allocated(meta: &Metadata) -> u64 {
    const BLOCK: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(meta) * BLOCK
}

#[cfg(not(unix))]
fn allocated(meta: &Metadata) -> u64 {
    meta.len()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;
    use crate::files::open_regular;

    /// A folder with a file, a folder, a link to each, a pipe and an endless file.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        io::Write::write_all(&mut File::create(at("file")).unwrap(), b"text\n").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("folder"), at("away")).unwrap();
        mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
        File::create(at("endless"))
            .and_then(|file| file.set_len(1 << 40))
            .unwrap();
        folder
    }

    #[test]
    fn only_regular_files_of_limited_size_are_read_and_only_real_folders_listed() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(read_text(&at("file")).unwrap(), "text\n");
        for name in ["link", "pipe", "endless", "folder", "missing"] {
            let error = read_text(&at(name)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        for name in ["link", "pipe"] {
            let options = &mut File::options();
            assert!(open_with(options.write(true).create(true), &at(name)).is_err());
            assert!(rename(&at(name), &at("other")).is_err() && exists(&at(name)));
        }
        for name in ["away", "link", "pipe"] {
            assert!(list(&at(name)).is_err() && remove_folder(&at(name)).is_err());
            assert!(create_folder(&at(name)).is_err() && exists(&at(name)));
        }
        assert!(
            list(&at("missing")).unwrap().is_empty() && list(&at("folder")).unwrap().is_empty()
        );
        assert_eq!(fs::read(at("file")).unwrap(), b"text\n");
        assert!(open_regular(&at("link")).is_ok() && open_regular(&at("pipe")).is_err());
    }

    #[test]
    fn a_tree_is_refused_for_what_is_anywhere_in_it() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        assert!(check_tree(&root).is_ok() && check_below(&root).is_ok());
        fs::create_dir_all(root.join("a/b")).unwrap();
        assert!(check_tree(&root).is_ok());
        let link = outer.path().join("link");
        symlink(&root, &link).unwrap();
        assert!(check_tree(&link).is_err() && check_below(&link).is_ok());
        symlink("/", root.join("a/b/c")).unwrap();
        let error = check_below(&link).unwrap_err().to_string();
        assert!(error.contains("link/a/b/c"), "{error}");
        assert!(check_tree(&root).is_err());
        assert!(check_folders(&root, Path::new("a/b/x")).is_ok());
        assert!(check_folders(&root, Path::new("a/b/c/x")).is_err());
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut buffer = String::new();
        let error = read_line(&mut io::BufReader::new(io::repeat(b'x')), &mut buffer).unwrap_err();
        assert!(error.to_string().contains("a line in it"), "{error}");
        let error = skip_line(&mut io::BufReader::new(io::repeat(b'x'))).unwrap_err();
        assert!(error.to_string().contains("a line in it"), "{error}");
    }

    #[test]
    fn lines_end_after_one_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        fs::write(&path, b"whole\n\xff\xff\n\xff\n").unwrap();
        let read: Vec<bool> = lines(&path).unwrap().map(|line| line.is_ok()).collect();
        assert_eq!(read, [true, false]);
    }
}
