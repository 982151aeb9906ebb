//! A folder as a remote, of this machine or of a file server. An object appears whole: it is written under a temporary
//! name, synced, and linked to its own, which fails if that exists.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::backend::{ListedObject, Remote, WriteOutcome};
use super::error::RemoteError;
use base::files::{is_temporary, sync_folder, temporary_in};

#[derive(Debug)]
pub(super) struct FolderRemote {
    root: PathBuf,
}

impl FolderRemote {
    pub(super) fn new(root: PathBuf) -> FolderRemote {
        FolderRemote { root }
    }

    fn failed(&self, operation: &'static str) -> impl Fn(io::Error) -> RemoteError {
        let url = format!("fs://{}", self.root.display());
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                RemoteError::Denied { url: url.clone(), hint: "Check the owner and the mode of the folder" }
            }
            _ => RemoteError::Failed { operation, url: url.clone(), what: error.to_string() },
        }
    }

    fn check_root(&self) -> Result<(), RemoteError> {
        let is_there = fs::metadata(&self.root).map(|meta| meta.is_dir());
        match is_there {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.missing("It is a file, and a remote is a folder")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.missing(&format!("Create it, or mount it: mkdir -m 700 {}", self.root.display())))
            }
            Err(error) => Err(self.failed("read")(error)),
        }
    }

    fn missing(&self, hint: &str) -> RemoteError {
        RemoteError::Missing { url: format!("fs://{}", self.root.display()), hint: hint.to_owned() }
    }

    fn list_now(&self, folder: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.check_root()?;
        let failed = self.failed("list");
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(&failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_temporary(&name) {
                continue;
            }
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match entry.metadata() {
                Ok(meta) => found.push(ListedObject { name, bytes: meta.len(), written: meta.modified().ok() }),
                // removed in the meantime
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }

    fn read_now(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, RemoteError> {
        let read = || {
            let mut file = File::open(self.root.join(name))?;
            let mut bytes = Vec::new();
            let Some(range) = range else {
                file.read_to_end(&mut bytes)?;
                return io::Result::Ok(bytes);
            };
            let length = range.end.saturating_sub(range.start);
            file.seek(SeekFrom::Start(range.start))?;
            file.take(length).read_to_end(&mut bytes)?;
            if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        match read() {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.check_root()?;
                Err(RemoteError::NotFound(name.to_owned()))
            }
            Err(error) => Err(self.failed("read")(error)),
        }
    }

    fn write_now(&self, name: &str, bytes: &[u8], is_replaced: bool) -> Result<WriteOutcome, RemoteError> {
        self.check_root()?;
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        let failed = self.failed("write to");
        create_alike(folder, &self.root).map_err(&failed)?;
        if path.exists() && !is_replaced {
            return Ok(WriteOutcome::Exists);
        }
        let write = || {
            let mut file = temporary_in(folder)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            share_file(file.path(), &self.root)?;
            let kept = if is_replaced { file.persist(&path) } else { file.persist_noclobber(&path) };
            kept.map(drop).map_err(|error| error.error)
        };
        match write() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(WriteOutcome::Exists),
            Err(error) => return Err(failed(error)),
        }
        sync_folder(folder).map_err(|error| RemoteError::Failed {
            operation: "write to",
            url: format!("fs://{}", self.root.display()),
            what: error.to_string(),
        })?;
        Ok(WriteOutcome::Written)
    }

    fn delete_now(&self, name: &str) -> Result<(), RemoteError> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove from")(error)),
            _ => Ok(()),
        }
    }

    fn check_private_now(&self) -> Result<(), RemoteError> {
        self.check_root()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            const OTHERS: u32 = 0o007;
            let mode = fs::metadata(&self.root).map_err(self.failed("read"))?.permissions().mode();
            if mode & OTHERS != 0 {
                let url = format!("fs://{}", self.root.display());
                return Err(RemoteError::Public { url, hint: format!("chmod o= {}", self.root.display()) });
            }
        }
        Ok(())
    }
}

/// Creates the folder of an object, with the mode of the remote: a group may share it.
fn create_alike(folder: &Path, root: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => fs::set_permissions(folder, fs::metadata(root)?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets those read an object who can read the remote.
fn share_file(path: &Path, root: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(root)?.permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o440 | 0o400))?;
    }
    #[cfg(not(unix))]
    let _ = (path, root);
    Ok(())
}

impl Remote for FolderRemote {
    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ListedObject>, RemoteError>> {
        ready(self.list_now(folder)).boxed()
    }

    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BoxFuture<'a, Result<Bytes, RemoteError>> {
        ready(self.read_now(name, range)).boxed()
    }

    fn write_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<WriteOutcome, RemoteError>> {
        ready(self.write_now(name, &bytes, false)).boxed()
    }

    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), RemoteError>> {
        ready(self.write_now(name, &bytes, true).map(drop)).boxed()
    }

    fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RemoteError>> {
        ready(self.delete_now(name)).boxed()
    }

    fn check_private<'a>(&'a self) -> BoxFuture<'a, Result<(), RemoteError>> {
        ready(self.check_private_now()).boxed()
    }
}
