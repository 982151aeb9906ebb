//! Where things lie in the cache folder, and whether a folder is a cache at all.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::error::CacheError;
use super::pack::PackHeader;

/// The version of the folder's layout and of everything in it.
pub(super) const FORMAT: u32 = 1;

const FORMAT_PREFIX: &str = "compeval cache format ";
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
# This folder is a cache of compeval. Backup programs may leave it out.\n";

/// The paths in a cache folder.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: PathBuf,
}

/// What a folder is, before anything in it is touched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing there, or nothing in it.
    Nothing,
    /// A cache of a format we know.
    Cache,
    /// Our packs, but the FORMAT file is lost or unreadable.
    Unlabelled,
}

impl Layout {
    pub(super) fn new(root: &Path) -> Layout {
        Layout { root: root.to_owned() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    pub(super) fn packs(&self) -> PathBuf {
        self.root.join("packs")
    }

    pub(super) fn damaged(&self) -> PathBuf {
        self.packs().join("damaged")
    }

    pub(super) fn pack(&self, id: u32) -> PathBuf {
        self.packs().join(format!("{id:08}.pack"))
    }

    /// Where a pack is written anew before it takes the old one's place.
    pub(super) fn rewrite(&self, id: u32) -> PathBuf {
        self.packs().join(format!("{id:08}.rewrite"))
    }

    /// The numbers of all packs, in the order in which they were begun.
    pub(super) fn pack_ids(&self) -> Result<Vec<u32>, CacheError> {
        let folder = self.packs();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(CacheError::io("list", &folder)(e)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(CacheError::io("list", &folder))?.file_name();
            ids.extend(name.to_str().and_then(pack_id));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Says what the folder is, reading only.
    pub(super) fn inspect(&self) -> Result<Found, CacheError> {
        let path = self.root.join("FORMAT");
        match fs::read(&path) {
            Ok(bytes) => match format_of(&bytes) {
                Some(found) if found > FORMAT => Err(CacheError::NewerFormat { path, found, known: FORMAT }),
                Some(_) => Ok(Found::Cache),
                None => self.inspect_unlabelled("FORMAT".into()),
            },
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                match self.foreign_entry()? {
                    None => Ok(Found::Nothing),
                    Some(found) => self.inspect_unlabelled(found),
                }
            }
            Err(e) => Err(CacheError::io("read", &path)(e)),
        }
    }

    /// A file that an empty cache folder would not hold.
    fn foreign_entry(&self) -> Result<Option<String>, CacheError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(CacheError::io("list", &self.root)(e)),
        };
        for entry in entries {
            let name = entry.map_err(CacheError::io("list", &self.root))?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && name != "LOCK" && name != "CACHEDIR.TAG" {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// A folder without a readable FORMAT is ours if it holds a pack of ours, or empty folders of ours.
    fn inspect_unlabelled(&self, found: String) -> Result<Found, CacheError> {
        let ids = self.pack_ids()?;
        let ours = |id: &u32| {
            let mut start = [0; PackHeader::LEN];
            let read = File::open(self.pack(*id)).and_then(|mut file| file.read_exact(&mut start));
            read.is_ok() && PackHeader::decode(&start).is_ok()
        };
        if ids.iter().any(ours) {
            return Ok(Found::Unlabelled);
        }
        Err(CacheError::NotACache { path: self.root.clone(), found })
    }

    /// Makes what is missing of the folder, and labels it. The packs' folder comes last, so that what a crash
    /// leaves behind still counts as empty.
    pub(super) fn establish(&self) -> Result<(), CacheError> {
        fs::create_dir_all(&self.root).map_err(CacheError::io("create", &self.root))?;
        let format = format!("{FORMAT_PREFIX}{FORMAT}\n");
        for (name, text) in [("CACHEDIR.TAG", TAG), ("FORMAT", &format)] {
            let path = self.root.join(name);
            if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
                continue;
            }
            self.write_whole(&path, text.as_bytes())?;
        }
        let packs = self.packs();
        fs::create_dir_all(&packs).map_err(CacheError::io("create", &packs))
    }

    /// Writes a small file so that it is there whole or not at all.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), CacheError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let fresh = path.with_file_name(format!(".{name}.new"));
        let write = || {
            let mut file = File::create(&fresh)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&fresh, path)
        };
        write().map_err(CacheError::io("write", path))
    }

    /// Makes names in a folder durable: files made, renamed or removed there.
    pub(super) fn sync_folder(&self, folder: &Path) -> Result<(), CacheError> {
        if cfg!(unix) {
            File::open(folder).and_then(|f| f.sync_all()).map_err(CacheError::io("sync", folder))?;
        }
        Ok(())
    }
}

fn pack_id(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".pack")?;
    (digits.len() >= 8 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn format_of(bytes: &[u8]) -> Option<u32> {
    std::str::from_utf8(bytes).ok()?.strip_prefix(FORMAT_PREFIX)?.trim_end().parse().ok().filter(|n| *n > 0)
}
