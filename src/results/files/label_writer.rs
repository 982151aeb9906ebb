//! The right of a run to write the results of its label.

use std::collections::BTreeSet;
use std::path::Path;

use super::FolderError;
use super::design::Design;
use super::edits::design_conflicts;
use super::folder::ResultsFolder;
use super::label::Label;
use super::label_folders::{LabelFolders, LabelLockError, remove_folder, rename};
use super::manifest::{Manifest, Outcome};
use crate::action::StageName;
use base::files::{self, FileError, StagedFile};
use base::lock::FileLock;

/// The right to write the results of a label, until it is dropped.
#[derive(Debug)]
pub struct LabelWriter {
    folders: LabelFolders,
    folder: ResultsFolder,
    _lock: FileLock,
}

/// Why a run cannot write the results of its label.
#[derive(Debug, thiserror::Error)]
pub enum LabelWriterError {
    /// Another process writes them.
    #[error(transparent)]
    Lock(#[from] LabelLockError),
    /// The results are protected, or results that would have to be renamed are.
    #[error("the results `{_0}` are protected")]
    Protected(Label),
    /// Only replaced results may have such a label.
    #[error("`{_0}` is the label of results that were replaced; choose one without `~`")]
    Numbered(Label),
    /// The label has results of another design.
    #[error(
        "the results `{label}` are of another design, and this run would replace them; what differs:{}",
        list(conflicts)
    )]
    OtherDesign {
        /// The label.
        label: Label,
        /// How the designs differ.
        conflicts: Vec<String>,
    },
    /// The results of the label cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl From<FileError> for LabelWriterError {
    fn from(error: FileError) -> LabelWriterError {
        LabelWriterError::Lock(error.into())
    }
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

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("\n  - {item}")).collect()
}

/// Where the results of a run are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publication {
    /// They are the results of the label.
    Published(ResultsFolder),
    /// They are incomplete, and beside the results that the label keeps.
    Beside(ResultsFolder),
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
    ) -> Result<LabelWriter, LabelWriterError> {
        if label.successor().is_some() {
            return Err(LabelWriterError::Numbered(label.clone()));
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
            return Err(LabelWriterError::Protected(label.clone()));
        }
        if replace {
            let earlier = folders.earlier();
            if let Some((label, _)) = earlier
                .into_iter()
                .find(|(_, folder)| folder.is_protected())
            {
                return Err(LabelWriterError::Protected(label));
            }
        } else if published.has_rows() && !is_without_reply(&published)? {
            let conflicts = design_conflicts(&published.manifest()?.design, design);
            if !conflicts.is_empty() {
                return Err(LabelWriterError::OtherDesign {
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
    pub fn begin(&self, manifest: &Manifest) -> Result<(), LabelLockError> {
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
    pub fn wait_for_files(&self) -> Result<FileLock, LabelLockError> {
        // Each try takes 2 s.
        for _ in 1..60 {
            match self.folders.lock_files() {
                Err(LabelLockError::Held { .. }) => {}
                locked => return locked,
            }
        }
        self.folders.lock_files()
    }

    /// Commits the set by its staged manifest, after all other files, and publishes it if that is due.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn publish(
        self,
        staged: StagedFile,
        manifest: &Manifest,
    ) -> Result<Publication, FileError> {
        self.folder.sync()?;
        staged.commit()?;
        self.folder.sync()?;
        let published = self.folders.published();
        if self.folder == published {
            files::sync_folder(self.folders.results())?;
            return Ok(Publication::Published(published));
        }
        if !self.folders.is_due(manifest) {
            return Ok(Publication::Beside(self.folder));
        }
        self.folders.swap()?;
        Ok(Publication::Published(published))
    }
}
