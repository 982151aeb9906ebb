//! The cache folder: the paths in it, whether a folder is a cache, its lock, and its size on disk.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::frame::PackHeader;
use crate::cache::entry::{FORMAT, pack_name};
use crate::cache::error::CacheError;
use base::files::{create_private_folder, folder_of, open_options, sync_folder};
use base::guarded;
use base::lock::{FileLock, LockError};

/// What the FORMAT file contains before the version. A program refuses versions that it does not know.
const FORMAT_PREFIX: &str = "compeval store format ";

/// Backup programs skip folders that contain this file (<https://bford.info/cachedir/>).
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
  # This folder is a cache of compeval. Backup programs may leave it out.\n";

/// The paths in a cache folder.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// It does not exist or is empty.
    Empty,
    /// A cache in a supported format.
    Cache,
    /// It contains packs, but its FORMAT file is missing or unreadable.
    Unlabelled,
}

impl Layout {
    /// The cache in `root`, which may be a link where the user named it.
    pub(crate) fn new(root: &Path) -> Layout {
        let resolved = root.is_symlink().then(|| root.canonicalize().ok());
        Layout {
            root: resolved.flatten().unwrap_or_else(|| root.to_owned()),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    pub(crate) fn packs(&self) -> PathBuf {
        self.root.join("packs")
    }

    pub(crate) fn pack(&self, id: u32) -> PathBuf {
        self.packs().join(pack_name(id))
    }

    /// The numbers of all packs, oldest first.
    pub(crate) fn pack_ids(&self) -> Result<Vec<u32>, CacheError> {
        let folder = self.packs();
        let mut ids = Vec::new();
        for name in list(&folder)? {
            ids.extend(pack_id(&name));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Determines what the folder contains, without changing anything. Without the lock, another process may be
    /// creating the cache: a half-made cache counts as empty.
    pub(crate) fn inspect(&self) -> Result<FolderKind, CacheError> {
        guarded::check_below(&self.root)?;
        let path = self.root.join("FORMAT");
        match guarded::open(&path).and_then(read_start) {
            Ok(bytes) => match parse_format(&bytes) {
                Some(found) if found > FORMAT => Err(CacheError::Refused(format!(
                    "{} has cache format {found}, and this program supports formats up to {FORMAT}; use a newer compeval, \
                     or another cache folder",
                    path.display()
                ))),
                Some(_) => Ok(FolderKind::Cache),
                None => self.inspect_unlabelled("FORMAT".into()),
            },
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                match self.foreign_entry()? {
                    None if self.pack_ids()?.is_empty() => Ok(FolderKind::Empty),
                    found => self.inspect_unlabelled(found.unwrap_or_else(|| "packs".into())),
                }
            }
            Err(e) => Err(CacheError::io("read", &path)(e)),
        }
    }

    /// The name of a file that a cache folder would not contain before it has a FORMAT file.
    fn foreign_entry(&self) -> Result<Option<String>, CacheError> {
        for name in list(&self.root)? {
            let is_own = match &*name {
                "LOCK" | "LOCK.held" | "CACHEDIR.TAG" | "CACHEDIR.new" | "FORMAT.new" => true,
                "packs" => self.has_only(&name, is_of_packs)?,
                "index" => self.has_only(&name, is_of_index)?,
                name => name.starts_with('.'),
            };
            if !is_own {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Whether `name` is a folder in the cache and contains only known names.
    fn has_only(&self, name: &str, is_known: fn(&str) -> bool) -> Result<bool, CacheError> {
        let folder = self.root.join(name);
        if !folder.is_dir() {
            return Ok(false);
        }
        Ok(list(&folder)?.iter().all(|name| is_known(name)))
    }

    /// A folder without a readable FORMAT is a cache if it contains a pack with a valid header. It counts as empty if
    /// its packs have no header yet: then the first pack was being created.
    fn inspect_unlabelled(&self, found: String) -> Result<FolderKind, CacheError> {
        let ids = self.pack_ids()?;
        let mut has_content = false;
        for id in &ids {
            let read = guarded::open(&self.pack(*id)).and_then(read_start);
            let header = read
                .as_ref()
                .ok()
                .and_then(|start| start.first_chunk())
                .map(PackHeader::decode);
            if read.is_ok() && matches!(header, Some(Ok(_))) {
                return Ok(FolderKind::Unlabelled);
            }
            has_content |= read.is_err() || header.is_some();
        }
        let is_half_made = !ids.is_empty() && !has_content && self.foreign_entry()?.is_none();
        if is_half_made {
            Ok(FolderKind::Empty)
        } else {
            Err(CacheError::Refused(format!(
                "{} is not a cache of this version of compeval: it contains `{found}`, and no FORMAT file of this version. \
                 Nothing in it was changed. Use an empty or a new folder as the cache",
                self.root.display()
            )))
        }
    }

    /// Creates what is missing in the folder, durably. FORMAT is written before the folder of packs, so that no pack is
    /// ever without it.
    pub(crate) fn create(&self) -> Result<(), CacheError> {
        let format = format!("{FORMAT_PREFIX}{FORMAT}\n");
        for (name, text) in [("CACHEDIR.TAG", TAG), ("FORMAT", &*format)] {
            let path = self.root.join(name);
            let found = guarded::open(&path).and_then(read_start);
            if found.is_ok_and(|found| found == text.as_bytes()) {
                continue;
            }
            write_synced(&path, text.as_bytes()).map_err(CacheError::io("write", &path))?;
            self.sync_folder(&self.root)?;
        }
        let packs = self.packs();
        if !packs.is_dir() {
            create_private_folder(&packs)?;
            self.sync_folder(&self.root)?;
        }
        Ok(())
    }

    /// Creates the folder itself, and makes its name and those of the folders above it durable.
    pub(crate) fn create_root(&self) -> Result<(), CacheError> {
        let ancestors = self
            .root
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty());
        let missing: Vec<&Path> = ancestors.take_while(|folder| !folder.exists()).collect();
        create_private_folder(&self.root)?;
        missing
            .into_iter()
            .try_for_each(|folder| self.sync_folder(folder_of(folder)))
    }

    /// Makes created, renamed and removed names in a folder durable.
    pub(crate) fn sync_folder(&self, folder: &Path) -> Result<(), CacheError> {
        Ok(sync_folder(folder)?)
    }
}

/// Writes a small file completely or not at all, and durably: without FORMAT the folder would be refused.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut options = open_options(&temporary);
    options.write(true).create(true).truncate(true);
    let mut file = guarded::open_with(&mut options, &temporary)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    guarded::rename(&temporary, path)
}

/// The first bytes of a file: more than any of the small files in the folder has.
fn read_start(file: File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(1 << 10).read_to_end(&mut start)?;
    Ok(start)
}

/// The names in a folder; none if it does not exist.
fn list(folder: &Path) -> Result<Vec<String>, CacheError> {
    let paths = guarded::list(folder).map_err(CacheError::io("list", folder))?;
    let names = paths.iter().filter_map(|path| path.file_name());
    Ok(names
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// Whether the folder of packs may contain this name.
fn is_of_packs(name: &str) -> bool {
    pack_id(name).is_some()
}

/// Whether the folder of the index may contain this name.
fn is_of_index(name: &str) -> bool {
    matches!(name, "clean" | "clean.new" | "db" | "conf" | "blobs") || name.starts_with("snap.")
}

fn pack_id(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".pack")?;
    (digits.len() >= 8 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn parse_format(bytes: &[u8]) -> Option<u32> {
    std::str::from_utf8(bytes)
        .ok()?
        .strip_prefix(FORMAT_PREFIX)?
        .trim_end()
        .parse()
        .ok()
        .filter(|n| *n > 0)
}

/// Acquires the exclusive right to write to the cache in `folder`. `command` is shown to other processes that try to.
pub(crate) fn lock(path: &Path, folder: &Path, command: &str) -> Result<FileLock, CacheError> {
    FileLock::acquire(path, command).map_err(|error| match error {
        LockError::Held(holder) => CacheError::Refused(format!(
            "the cache {} is in use by {holder}. Wait until it has ended, or use another cache folder",
            folder.display()
        )),
        LockError::Io(error) => CacheError::io("lock", path)(error),
    })
}
