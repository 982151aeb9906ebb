//! A folder of this machine or of a file server as a remote. An object appears as a whole: it is written under a
//! temporary name, synced, and linked to its own name, which fails if that exists.
//!
//! Others write to the folder, too, and a file server may stop answering. So only regular files of a plausible size are
//! read, and every operation runs on a thread of its own, which is abandoned when it takes too long.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use tokio::sync::oneshot;

use super::backend::{BackendFuture, ListedObject, Remote, RemoteError, WriteOutcome};
use base::files::{is_temporary, sync_folder, temporary_in};

/// Larger objects, and larger ranges of them, are not read.
const MAX_OBJECT: u64 = 256 << 20;

/// A folder that takes longer than this counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder as a remote.
#[derive(Clone, Debug)]
pub(super) struct FolderRemote {
    root: PathBuf,
}

impl FolderRemote {
    pub(super) fn new(root: PathBuf) -> FolderRemote {
        FolderRemote { root }
    }

    fn failed(&self, operation: &'static str) -> impl Fn(io::Error) -> RemoteError {
        let url = self.url();
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => RemoteError::Denied {
                url: url.clone(),
                hint: "Check the owner and the mode of the folder",
            },
            _ => RemoteError::failed(operation, &url, error.to_string()),
        }
    }

    fn check_root(&self) -> Result<(), RemoteError> {
        let is_folder = fs::metadata(&self.root).map(|meta| meta.is_dir());
        match is_folder {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.missing("It is a file, and a remote is a folder")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(&format!(
                "Create it, or mount it: mkdir -m 700 {}",
                self.root.display()
            ))),
            Err(error) => Err(self.failed("read")(error)),
        }
    }

    fn missing(&self, hint: &str) -> RemoteError {
        RemoteError::Missing {
            url: self.url(),
            hint: hint.to_owned(),
        }
    }

    fn list_now(&self, folder: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.check_root()?;
        let failed = self.failed("list");
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut objects = Vec::new();
        for entry in entries {
            let entry = entry.map_err(&failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_temporary(&name) {
                continue;
            }
            let name = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            // Links are followed, as they are when the object is read.
            match fs::metadata(entry.path()) {
                Ok(meta) => objects.push(ListedObject {
                    name,
                    bytes: meta.len(),
                    written: meta.modified().ok(),
                }),
                // removed in the meantime, or a link to nothing
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(objects)
    }

    fn read_now(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, RemoteError> {
        let path = self.root.join(name);
        let length = match fs::metadata(&path) {
            Ok(meta) if !meta.is_file() => {
                return Err(refused(name, "it is no regular file"));
            }
            Ok(meta) => range
                .as_ref()
                .map_or(meta.len(), |range| range.end.saturating_sub(range.start)),
            Err(error) => return Err(self.unread(name, error)),
        };
        if length > MAX_OBJECT {
            return Err(refused(name, "it is too large"));
        }
        let start = range.as_ref().map_or(0, |range| range.start);
        let bytes = read_up_to(&path, start, length).map_err(|error| self.unread(name, error))?;
        if range.is_some() && bytes.len() as u64 != length {
            return Err(self.unread(name, io::ErrorKind::NotFound.into()));
        }
        Ok(Bytes::from(bytes))
    }

    fn unread(&self, name: &str, error: io::Error) -> RemoteError {
        match error.kind() {
            io::ErrorKind::NotFound => self
                .check_root()
                .err()
                .unwrap_or_else(|| RemoteError::NotFound(name.to_owned())),
            _ => self.failed("read")(error),
        }
    }

    /// Runs an operation on a thread of its own: a file server that does not answer may block it forever, and a runtime
    /// waits for its threads when it ends.
    fn on_own_thread<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&FolderRemote) -> Result<T, RemoteError> + Send + 'static,
    ) -> BackendFuture<'_, T> {
        let (sender, receiver) = oneshot::channel();
        let folder = self.clone();
        let started = thread::Builder::new()
            .name("remote folder".to_owned())
            .spawn(move || {
                // Nobody receives the result of an operation that took too long.
                let _ = sender.send(work(&folder));
            });
        async move {
            started.map_err(self.failed(operation))?;
            let what = match tokio::time::timeout(PATIENCE, receiver).await {
                Ok(Ok(result)) => return result,
                Ok(Err(_)) => "the operation broke off".to_owned(),
                Err(_) => format!("there was no answer within {} s", PATIENCE.as_secs()),
            };
            Err(RemoteError::failed(operation, &self.url(), what))
        }
        .boxed()
    }

    fn url(&self) -> String {
        format!("fs://{}", self.root.display())
    }

    fn write_now(
        &self,
        name: &str,
        bytes: &[u8],
        is_replaced: bool,
    ) -> Result<WriteOutcome, RemoteError> {
        self.check_root()?;
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        let failed = self.failed("write to");
        create_alike(folder, &self.root).map_err(&failed)?;
        if path.exists() && !is_replaced {
            return Ok(WriteOutcome::Exists);
        }
        match self.put(folder, &path, bytes, is_replaced) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(WriteOutcome::Exists);
            }
            Err(error) => return Err(failed(error)),
        }
        sync_folder(folder)
            .map_err(|error| RemoteError::failed("write to", &self.url(), error.to_string()))?;
        Ok(WriteOutcome::Written)
    }

    fn put(&self, folder: &Path, path: &Path, bytes: &[u8], is_replaced: bool) -> io::Result<()> {
        let mut file = temporary_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        share_file(file.path(), &self.root)?;
        let kept = if is_replaced {
            file.persist(path)
        } else {
            file.persist_noclobber(path)
        };
        kept.map(drop).map_err(|error| error.error)
    }

    fn delete_now(&self, name: &str) -> Result<(), RemoteError> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove from")(error))
            }
            _ => Ok(()),
        }
    }

    fn check_private_now(&self) -> Result<(), RemoteError> {
        self.check_root()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            const OTHERS: u32 = 0o007;
            let mode = fs::metadata(&self.root)
                .map_err(self.failed("read"))?
                .permissions()
                .mode();
            if mode & OTHERS != 0 {
                let url = self.url();
                return Err(RemoteError::Public {
                    url,
                    hint: format!("chmod o= {}", self.root.display()),
                });
            }
        }
        Ok(())
    }
}

fn read_up_to(path: &Path, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates the folder of an object, with the mode of the remote: a group may share it.
fn create_alike(folder: &Path, root: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => fs::set_permissions(folder, fs::metadata(root)?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder != root => {
            create_alike(folder.parent().unwrap_or(root), root)?;
            create_alike(folder, root)
        }
        Err(error) => Err(error),
    }
}

/// Makes an object readable for everybody who can read the remote.
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

fn refused(object: &str, what: &'static str) -> RemoteError {
    RemoteError::Refused {
        object: object.to_owned(),
        what,
    }
}

impl Remote for FolderRemote {
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>> {
        let below = folder.to_owned();
        self.on_own_thread("list", move |folder| folder.list_now(&below))
    }

    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes> {
        let name = name.to_owned();
        self.on_own_thread("read", move |folder| folder.read_now(&name, range))
    }

    fn write_if_absent<'a>(
        &'a self,
        name: &'a str,
        bytes: Bytes,
    ) -> BackendFuture<'a, WriteOutcome> {
        let name = name.to_owned();
        self.on_own_thread("write to", move |folder| {
            folder.write_now(&name, &bytes, false)
        })
    }

    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()> {
        let name = name.to_owned();
        self.on_own_thread("write to", move |folder| {
            folder.write_now(&name, &bytes, true).map(drop)
        })
    }

    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()> {
        let name = name.to_owned();
        self.on_own_thread("remove from", move |folder| folder.delete_now(&name))
    }

    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()> {
        self.on_own_thread("read", FolderRemote::check_private_now)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn only_regular_files_of_a_possible_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let remote = FolderRemote::new(folder.path().to_owned());
        let at = |name: &str| folder.path().join(name);
        symlink("/dev/zero", at("zero")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .unwrap()
                .success()
        );
        File::create(at("endless"))
            .unwrap()
            .set_len(MAX_OBJECT + 1)
            .unwrap();
        std::fs::write(at("sound"), "entries").unwrap();
        symlink(at("sound"), at("link")).unwrap();
        for (name, what) in [
            ("zero", "no regular file"),
            ("pipe", "no regular file"),
            ("endless", "too large"),
        ] {
            let error = remote.read(name, None).await.unwrap_err();
            assert!(error.to_string().contains(what), "{name}: {error}");
            assert!(
                name == "endless" || remote.read(name, Some(0..8)).await.is_err(),
                "{name}"
            );
        }
        let huge = remote.read("endless", Some(0..MAX_OBJECT + 1)).await;
        assert!(matches!(huge, Err(RemoteError::Refused { .. })));
        for name in ["sound", "link"] {
            assert_eq!(remote.read(name, Some(0..7)).await.unwrap(), "entries");
        }
        assert!(
            matches!(
                remote.read("sound", Some(0..9)).await,
                Err(RemoteError::NotFound(_))
            ),
            "it ends before"
        );
    }
}
