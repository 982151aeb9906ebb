//! A folder of this machine or of a file server as a remote. An object appears as a whole: it is written under a
//! temporary name, synced, and linked to its own name, which fails if that exists.
//!
//! Others write to the folder, too, and a file server may stop answering. So no link is followed, only regular files are
//! read, and every call runs on a thread of its own, which is abandoned when it takes too long.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bytes::Bytes;
use futures::FutureExt;
use tokio::sync::oneshot;

use super::{MAX_OBJECT, Remote, RemoteError, RemoteFuture};
use base::files::{sync_folder, temporary_in};

/// A folder as a remote.
#[derive(Clone, Debug)]
pub(super) struct FolderRemote {
    root: PathBuf,
}

impl FolderRemote {
    pub(super) fn new(root: PathBuf) -> FolderRemote {
        FolderRemote { root }
    }

    fn get_now(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        self.check_root()?;
        let path = self.root.join(name);
        for part in [path.parent().unwrap_or(&self.root), &path] {
            match fs::symlink_metadata(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.failed("read", error)),
                Ok(meta) if part == path && !meta.is_file() => {
                    return Err(RemoteError::Refused("it is no regular file"));
                }
                Ok(meta) if part != path && !meta.is_dir() => {
                    return Err(RemoteError::Refused("its folder is a link or a file"));
                }
                Ok(meta) if meta.is_file() && meta.len() > MAX_OBJECT => {
                    return Err(RemoteError::Refused("it is too large"));
                }
                Ok(_) => {}
            }
        }
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_OBJECT).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some(bytes.into())),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    fn put_now(&self, name: &str, bytes: &[u8], replaces: bool) -> Result<bool, RemoteError> {
        self.check_root()?;
        let path = self.root.join(name);
        if path.exists() && !replaces {
            return Ok(false);
        }
        match write_object(&self.root, &path, bytes, replaces) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(self.failed("write to", error)),
        }
    }

    fn check_root(&self) -> Result<(), RemoteError> {
        let missing = |hint: String| RemoteError::missing(&self.url(), &hint);
        let folder = self.root.display();
        match fs::symlink_metadata(&self.root) {
            Ok(meta) if meta.is_dir() => Ok(()),
            Ok(_) => Err(missing(format!(
                "A remote is a folder, and {folder} is a link or a file; name the folder itself"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(format!(
                "Create it, or mount it: mkdir -m 700 {folder}"
            ))),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    fn failed(&self, operation: &'static str, error: io::Error) -> RemoteError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                RemoteError::denied(&self.url(), "Check the owner and the mode of the folder")
            }
            _ => RemoteError::failed(operation, &self.url(), error.to_string()),
        }
    }

    fn url(&self) -> String {
        format!("fs://{}", self.root.display())
    }

    /// Runs a call on a thread of its own: a file server that does not answer may block it forever, and a runtime waits
    /// for its threads when it ends.
    fn on_own_thread<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&FolderRemote) -> Result<T, RemoteError> + Send + 'static,
    ) -> RemoteFuture<'_, T> {
        let (sender, receiver) = oneshot::channel();
        let folder = self.clone();
        let started = thread::Builder::new()
            .name("remote folder".to_owned())
            .spawn(move || {
                // Nobody receives the result of a call that took too long.
                let _ = sender.send(work(&folder));
            });
        async move {
            started.map_err(|error| self.failed(operation, error))?;
            let broke_off = |_| RemoteError::failed(operation, &self.url(), "the call broke off");
            receiver.await.map_err(broke_off)?
        }
        .boxed()
    }
}

/// Writes an object that its owner can read, and the group if it can read the remote; others never.
fn write_object(root: &Path, path: &Path, bytes: &[u8], replaces: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    let mode = fs::metadata(root)?.permissions();
    match fs::create_dir(folder) {
        Ok(()) => fs::set_permissions(folder, mode.clone())?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::other(format!(
            "{} is a link or a file",
            folder.display()
        )));
    }
    let mut file = temporary_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let readable = mode.mode() & 0o440 | 0o400;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(readable))?;
    }
    let kept = if replaces {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    kept.map_err(|error| error.error)?;
    sync_folder(folder).map_err(io::Error::other)
}

impl Remote for FolderRemote {
    fn get<'a>(&'a self, name: &'a str) -> RemoteFuture<'a, Option<Bytes>> {
        let name = name.to_owned();
        self.on_own_thread("read", move |folder| folder.get_now(&name))
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes, replaces: bool) -> RemoteFuture<'a, bool> {
        let name = name.to_owned();
        self.on_own_thread("write to", move |folder| {
            folder.put_now(&name, &bytes, replaces)
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn only_regular_files_of_a_possible_size_are_read_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let remote = FolderRemote::new(folder.path().to_owned());
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("ab")).unwrap();
        symlink("/dev/zero", at("ab/zero")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at("ab/pipe"))
            .status();
        assert!(made.unwrap().success());
        File::create(at("ab/endless"))
            .unwrap()
            .set_len(MAX_OBJECT + 1)
            .unwrap();
        assert!(remote.put("ab/sound", "first".into(), false).await.unwrap());
        assert!(
            !remote
                .put("ab/sound", "second".into(), false)
                .await
                .unwrap()
        );
        symlink(at("ab/sound"), at("ab/link")).unwrap();
        symlink(at("ab"), at("cd")).unwrap();
        for (name, what) in [
            ("ab/zero", "no regular file"),
            ("ab/pipe", "no regular file"),
            ("ab/link", "no regular file"),
            ("ab/endless", "too large"),
            ("cd/sound", "a link"),
        ] {
            let error = remote.get(name).await.unwrap_err();
            assert!(
                matches!(error, RemoteError::Refused(_)) && error.to_string().contains(what),
                "{name}: {error}"
            );
        }
        assert_eq!(remote.get("ab/none").await.unwrap(), None);
        assert_eq!(remote.get("ef/none").await.unwrap(), None);
        assert_eq!(remote.get("ab/sound").await.unwrap().unwrap(), "first");
        remote.put("ab/sound", "third".into(), true).await.unwrap();
        assert_eq!(remote.get("ab/sound").await.unwrap().unwrap(), "third");
        assert!(remote.put("cd/new", "x".into(), false).await.is_err());
        assert!(!at("ab/new").exists());
        symlink(folder.path(), at("root")).unwrap();
        let linked = FolderRemote::new(at("root"));
        assert!(matches!(
            linked.get("ab/sound").await,
            Err(RemoteError::Input(_))
        ));
    }
}
