//! The published files of a label. If a run would write the same files again, it keeps them and writes only the manifest.
//!
//! Whether the files would be the same follows from the manifest and from the digests of the rows of all contexts,
//! because the files are made only from these. Files that were edited or removed are written again. So are the files of
//! a run with a baseline, because they also depend on another set.

use super::error::EvaluationError;
use crate::action::{Digest, DigestBuilder};
use crate::report::REPORTS;
use crate::results::{LabelWriter, MadeFiles, Manifest, Outcome, ResultsFolder, Summary, names};
use base::files::read_text;

/// The published set of a label, whose files a run may keep.
pub(super) struct PublishedFiles {
    folder: ResultsFolder,
    manifest: Manifest,
    pub(super) made: MadeFiles,
}

impl PublishedFiles {
    /// The set that the run would replace, if a run that begins with this manifest may have the same files.
    pub(super) fn find(writer: &LabelWriter, begun: &Manifest) -> Option<PublishedFiles> {
        let folder = writer.replaced()?;
        let manifest = folder.manifest().ok()?;
        let is_same = manifest.design == begun.design && manifest.files == begun.files;
        let made = manifest
            .made
            .clone()
            .filter(|_| is_same && begun.compared_to.is_none())?;
        Some(PublishedFiles {
            folder,
            manifest,
            made,
        })
    }

    /// The folder of the published set.
    pub(super) fn folder(&self) -> &ResultsFolder {
        &self.folder
    }

    /// The summary of the set, if a run with this manifest would write the same files. `keys` is the digest of its file
    /// of keys; `source` is the digest of what its other files would be made from.
    pub(super) fn summary(
        &self,
        manifest: &Manifest,
        source: Digest,
        keys: Digest,
    ) -> Option<Summary> {
        let is_same = self.made.source == source
            && self.made.files.get(names::KEYS) == Some(&keys)
            && self.manifest.has_same_results(manifest)
            && self.folder.file_digests().ok()? == self.made.files;
        if !is_same {
            return None;
        }
        serde_json::from_str(&read_text(&self.folder.file(names::SUMMARY)).ok()?).ok()
    }
}

/// The digest of what the files of a set are made from besides its manifest; `None` if the set is incomplete, or if its
/// files also depend on something else. `rows` is the digest of the rows of all contexts.
pub(super) fn source_of_files(
    manifest: &Manifest,
    rows: Option<Digest>,
    reference: bool,
) -> Option<Digest> {
    let is_whole = manifest.outcome == Outcome::Complete
        && manifest.part.is_none()
        && manifest.merged.is_empty();
    let rows = rows.filter(|_| is_whole && manifest.compared_to.is_none())?;
    let mut source = DigestBuilder::new("files of a result set");
    source
        .field("reports", REPORTS.to_le_bytes())
        .field("reference", [u8::from(reference)])
        .field("rows", rows.0);
    Some(source.finish())
}

/// The source and the files of a set that was just written.
///
/// # Errors
/// A file cannot be read.
pub(super) fn made_files(
    folder: &ResultsFolder,
    source: Digest,
) -> Result<MadeFiles, EvaluationError> {
    Ok(MadeFiles {
        source,
        files: folder.file_digests()?,
    })
}
