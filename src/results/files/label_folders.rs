//! The folders of a label, how a set replaces another, and the right of a run to write: a run writes its files into a
//! separate folder, and replaces the results of its label only when it is complete.
//!
//! 1. A run holds the lock of its label. It writes into `results/LABEL` if the label has no results, otherwise into
//!    `results/.incomplete/LABEL`. An earlier incomplete set there is replaced, because its outputs are in the cache.
//! 2. The manifest with the outcome is written last, when all other files are on disk. This is the commit.
//! 3. A complete set takes the place of the published one: `results/LABEL` is renamed to `results/.replaced/LABEL`, then
//!    `results/.incomplete/LABEL` to `results/LABEL`. An incomplete set does so only if the published one is incomplete,
//!    too, and is of another design or does not have more rows.
//! 4. The replaced set is removed if the new design has all of its rows; otherwise it becomes `LABEL~1`.
//!
//! After a crash the files show which step is next: a complete set in `.incomplete` is past step 2, and a set in
//! `.replaced` is past the first rename of step 3. The next process that opens the label does the rest. Exchanging both
//! folders in one system call is not an alternative: it needs a journal that records which of them is the new one, and
//! not every file system supports it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::design::Design;
use super::edits::design_conflicts;
use super::folder::{ResultsFolder, names};
use super::manifest::{Manifest, Outcome};
use super::{FolderError, Label};
use crate::action::StageName;
use crate::parts::PartNumber;
use base::files::{self, FileError, StagedFile, copy_mode, this_command};
use base::guarded;
use base::lock::{FileLock, LockError};

/// The folder of incomplete sets that did not replace the results of their label.
pub(super) const INCOMPLETE: &str = ".incomplete";
/// The folder of sets between the two renames that replace them.
pub(super) const REPLACED: &str = ".replaced";
const LOCKS: &str = ".locks";
/// The folder of the parts of labels: `.parts/LABEL/I-of-N`.
const PARTS: &str = ".parts";
/// The cache in the folder of a part.
const CACHE: &str = "cache";

/// The folders of a label, whether or not they exist.
#[derive(Clone, Debug)]
pub(crate) struct LabelFolders {
    results: PathBuf,
    label: Label,
}

impl LabelFolders {
    pub(crate) fn new(results: &Path, label: &Label) -> LabelFolders {
        LabelFolders {
            results: results.to_owned(),
            label: label.clone(),
        }
    }

    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    pub(super) fn published(&self) -> ResultsFolder {
        ResultsFolder::new(&self.results, &self.label)
    }

    pub(super) fn incomplete(&self) -> ResultsFolder {
        ResultsFolder::new(&self.results.join(INCOMPLETE), &self.label)
    }

    pub(super) fn replaced(&self) -> ResultsFolder {
        ResultsFolder::new(&self.results.join(REPLACED), &self.label)
    }

    pub(super) fn numbered(&self, number: u32) -> ResultsFolder {
        ResultsFolder::new(&self.results, &self.label.earlier(number))
    }

    /// `LABEL~1`, `LABEL~2` and so on, up to the first that does not exist.
    pub(crate) fn earlier(&self) -> Vec<(Label, ResultsFolder)> {
        let numbered = (1..).map(|number| (self.label.earlier(number), self.numbered(number)));
        numbered
            .take_while(|(_, folder)| folder.path().exists())
            .collect()
    }

    /// Takes the lock that a run holds from beginning to end.
    pub(super) fn lock_run(&self) -> Result<FileLock, FolderError> {
        self.lock("run")
    }

    /// Takes the lock for writing reports and for publishing.
    pub(super) fn lock_files(&self) -> Result<FileLock, FolderError> {
        self.lock("files")
    }

    fn lock(&self, what: &str) -> Result<FileLock, FolderError> {
        let folder = self.results.join(LOCKS);
        guarded::create_folder(&folder)?;
        let path = folder.join(format!("{}.{what}", self.label));
        FileLock::acquire(&path, &this_command()).map_err(|error| match error {
            LockError::Held(holder) => FolderError::Held {
                label: self.label.clone(),
                holder,
            },
            LockError::Io(error) => FileError::new("lock", &path, error).into(),
        })
    }

    /// Finishes the publication of a process that was killed during it.
    ///
    /// # Errors
    /// The folder is in use for more than 2 s, or the file system refuses.
    pub(super) fn recover(&self) -> Result<(), FolderError> {
        if !self.is_replaced() && !self.is_committed() {
            return Ok(());
        }
        let _lock = self.lock_files()?;
        if self.is_replaced() {
            if !self.published().path().exists() {
                let next = self.incomplete();
                let source = if next.exists() { next } else { self.replaced() };
                rename(source.path(), self.published().path())?;
            }
            self.retire()?;
        } else if self.is_committed() {
            self.swap()?;
        }
        Ok(())
    }

    /// Whether a complete set has not been published yet.
    fn is_committed(&self) -> bool {
        self.incomplete()
            .manifest()
            .is_ok_and(|manifest| manifest.outcome == Outcome::Complete)
    }

    /// Whether a set is between the two renames that replace it.
    fn is_replaced(&self) -> bool {
        self.replaced().path().exists()
    }

    /// Whether a finished run replaces the published set.
    pub(super) fn is_due(&self, manifest: &Manifest) -> bool {
        if manifest.outcome == Outcome::Complete {
            return true;
        }
        let Ok(current) = self.published().manifest() else {
            return false;
        };
        if current.outcome == Outcome::Complete {
            return false;
        }
        if !design_conflicts(&current.design, &manifest.design).is_empty() {
            return true;
        }
        match (self.incomplete().row_count(), self.published().row_count()) {
            (Ok(new), Ok(old)) => new >= old,
            _ => false,
        }
    }

    pub(super) fn swap(&self) -> Result<(), FileError> {
        let (published, next, old) = (self.published(), self.incomplete(), self.replaced());
        if published.path().exists() {
            copy_mode(published.path(), next.path())?;
            rename(published.path(), old.path())?;
        }
        rename(next.path(), published.path())?;
        self.retire()
    }

    /// Removes the folders of parts that are complete: the remote has what they made. A part that ended early, or that is
    /// being run, stays.
    pub(super) fn remove_parts(&self) -> Result<(), FolderError> {
        let all = self.results.join(PARTS);
        let ours = all.join(self.label.as_str());
        for folder in guarded::list(&ours).into_iter().flatten() {
            let last_run = ResultsFolder::new(&folder, &self.label).manifest();
            if !last_run.is_ok_and(|manifest| manifest.outcome == Outcome::Complete) {
                continue;
            }
            match LabelFolders::new(&folder, &self.label).lock_run() {
                Ok(_lock) => remove_folder(&folder)?,
                Err(FolderError::Held { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // only if they are empty
        guarded::remove_empty(&ours);
        guarded::remove_empty(&all);
        Ok(())
    }

    /// Removes the replaced set, or keeps it as `LABEL~1`. Files that are not ours move into the new set.
    fn retire(&self) -> Result<(), FileError> {
        let (old, new) = (self.replaced(), self.published());
        if old.path().exists() {
            // A set that cannot be read is kept.
            let both = || old.manifest().ok().zip(new.manifest().ok());
            let differ = |(old, new): (Manifest, Manifest)| {
                !design_conflicts(&old.design, &new.design).is_empty()
            };
            let is_kept = old.exists() && old.has_rows() && both().is_none_or(differ);
            if is_kept {
                self.shift(&old)?;
            } else {
                carry_over(&old, &new)?;
                remove_folder(old.path())?;
            }
        }
        for folder in [old.path(), self.incomplete().path()]
            .into_iter()
            .filter_map(Path::parent)
        {
            // only if it is empty
            guarded::remove_empty(folder);
        }
        files::sync_folder(self.results())
    }

    /// `LABEL~2` becomes `LABEL~3`, `LABEL~1` becomes `LABEL~2`, and `old` becomes `LABEL~1`.
    fn shift(&self, old: &ResultsFolder) -> Result<(), FileError> {
        old.remove_temporaries()?;
        let earlier: Vec<_> = (1..).zip(self.earlier()).collect();
        for (number, (_, folder)) in earlier.into_iter().rev() {
            rename(folder.path(), self.numbered(number + 1).path())?;
        }
        rename(old.path(), self.numbered(1).path())
    }
}

fn carry_over(old: &ResultsFolder, new: &ResultsFolder) -> Result<(), FileError> {
    for path in old.foreign_files()? {
        let Some(name) = path.file_name() else {
            continue;
        };
        let target = new.path().join(name);
        if !target.exists() {
            rename(&path, &target)?;
        }
    }
    Ok(())
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    if let Some(parent) = to.parent() {
        guarded::create_folder(parent)?;
    }
    guarded::rename(from, to).map_err(|e| FileError::new("rename", from, e))
}

/// Removes a result set, its manifest first: a folder without one is not a result set, so a crash leaves none that lacks
/// files.
pub(super) fn remove_folder(folder: &Path) -> Result<(), FileError> {
    guarded::remove_file(&folder.join(names::MANIFEST))
        .and_then(|()| guarded::remove_folder(folder))
        .map_err(|e| FileError::new("remove", folder, e))
}

/// The folder of results that has the result set of a part of a label's matrix, and the folder of its cache, whether or
/// not they exist. A part has both to itself, so that parts on one file system do not wait for each other's locks. They
/// are not inside `results/LABEL`, because publishing renames that folder while other parts may be running.
pub fn part_folders(results: &Path, label: &Label, part: PartNumber) -> [PathBuf; 2] {
    let folder = results.join(PARTS).join(label.as_str()).join(part.folder());
    let cache = folder.join(CACHE);
    [folder, cache]
}

/// The right to write the results of a label, until it is dropped.
#[derive(Debug)]
pub struct LabelWriter {
    folders: LabelFolders,
    folder: ResultsFolder,
    _lock: FileLock,
}

/// Whether no model replied to the run that wrote these results. Everything in them was made by rules at no cost, so a
/// run of another design may replace them.
fn is_without_reply(published: &ResultsFolder) -> Result<bool, FolderError> {
    let manifest = published.manifest()?;
    let mut stages = manifest
        .stages
        .iter()
        .filter(|(stage, _)| **stage != StageName::Compress)
        .peekable();
    let has_stages = stages.peek().is_some();
    let has_reply = manifest.usage.output.is_some_and(|tokens| tokens.0 > 0)
        || stages.any(|(_, counts)| counts.executed + counts.cached > 0);
    Ok(has_stages
        && !has_reply
        && !matches!(manifest.outcome, Outcome::Running | Outcome::Complete))
}

impl LabelWriter {
    /// Locks the label for a run of `design`. Changes none of its files.
    ///
    /// # Errors
    /// Another process writes the label; it is protected; it has rows of another design and `replace` is false.
    pub fn lock(
        results: &Path,
        label: &Label,
        design: &Design,
        replace: bool,
    ) -> Result<LabelWriter, FolderError> {
        if label.successor().is_some() {
            return Err(FolderError::Unusable(format!(
                "`{label}` is the label of results that were replaced; choose one without `~`"
            )));
        }
        let folders = LabelFolders::new(results, label);
        let lock = folders.lock_run()?;
        folders.recover()?;
        let (published, incomplete) = (folders.published(), folders.incomplete());
        if !published.exists() && incomplete.exists() {
            rename(incomplete.path(), published.path())?;
        }
        if !published.exists() {
            return Ok(LabelWriter {
                folders,
                folder: published,
                _lock: lock,
            });
        }
        if published.is_protected() {
            return Err(FolderError::Protected(label.clone()));
        }
        if replace {
            let mut earlier = folders.earlier().into_iter();
            if let Some((label, _)) = earlier.find(|(_, folder)| folder.is_protected()) {
                return Err(FolderError::Protected(label));
            }
        } else if published.has_rows() && !is_without_reply(&published)? {
            let conflicts = design_conflicts(&published.manifest()?.design, design);
            if !conflicts.is_empty() {
                return Err(FolderError::OtherDesign {
                    label: label.clone(),
                    conflicts,
                });
            }
        }
        Ok(LabelWriter {
            folders,
            folder: incomplete,
            _lock: lock,
        })
    }

    /// The folder that the run writes.
    pub fn folder(&self) -> &ResultsFolder {
        &self.folder
    }

    /// Begins the set anew. It lists the keys of an earlier incomplete set, so that no prune removes their entries
    /// before they are used again.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn begin(&self, manifest: &Manifest) -> Result<(), FolderError> {
        let _files = self.folders.lock_files()?;
        let mut known = BTreeSet::new();
        if self.folder.path().exists() && self.folder != self.folders.published() {
            // a set whose keys cannot be read protects no entries
            known = self.folder.known_keys().unwrap_or_default();
            remove_folder(self.folder.path())?;
        }
        self.folder.write_manifest(manifest)?;
        Ok(self.folder.write_keys(&known)?)
    }

    /// Takes the lock under which files of the set are written and published. `report` takes it, too, and may hold it for a
    /// while: a run that has ended waits for it for up to two minutes, because its results would stay unpublished.
    ///
    /// # Errors
    /// Another process holds it all this time.
    pub fn wait_for_files(&self) -> Result<FileLock, FolderError> {
        // Each try takes 2 s.
        for _ in 1..60 {
            match self.folders.lock_files() {
                Err(FolderError::Held { .. }) => {}
                locked => return locked,
            }
        }
        self.folders.lock_files()
    }

    /// Commits the set by its staged manifest, after all other files, and publishes it if that is due. Returns where it is,
    /// and whether it is beside results that the label keeps.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn publish(
        self,
        staged: StagedFile,
        manifest: &Manifest,
    ) -> Result<(ResultsFolder, bool), FileError> {
        self.folder.sync()?;
        staged.commit()?;
        self.folder.sync()?;
        let published = self.folders.published();
        if self.folder == published {
            files::sync_folder(self.folders.results())?;
            return Ok((published, false));
        }
        if !self.folders.is_due(manifest) {
            return Ok((self.folder, true));
        }
        self.folders.swap()?;
        Ok((published, false))
    }
}
