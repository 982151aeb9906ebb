//! The take-over of files: where a run would write what the published set of its label has, only the manifest is written.
//!
//! That is known from the digests of the rows of all contexts, and from the manifest: the files of a set are made from
//! these alone. Files that were edited or removed are made anew, as are those of a comparison, which rest on another set.

use super::error::EvaluationError;
use crate::action::{Digest, DigestBuilder};
use crate::report::REPORTS;
use crate::results::{LabelWriter, MadeFiles, Manifest, Outcome, ResultsFolder, Summary, names};
use base::files::read_text;

/// The published set of a label, whose files a run may take over.
pub(super) struct PublishedFiles {
    folder: ResultsFolder,
    manifest: Manifest,
    pub(super) made: MadeFiles,
}

impl PublishedFiles {
    /// The set that the run would replace, if a run that begins with this manifest may come to the same files.
    pub(super) fn find(writer: &LabelWriter, begun: &Manifest) -> Option<PublishedFiles> {
        let folder = writer.replaced()?;
        let manifest = folder.manifest().ok()?;
        let is_same = manifest.design == begun.design && manifest.files == begun.files;
        let made = manifest.made.clone().filter(|_| is_same && begun.compared_to.is_none())?;
        Some(PublishedFiles { folder, manifest, made })
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &ResultsFolder {
        &self.folder
    }

    /// The summary of the set, if a run with this manifest would write the very same files. `keys` is the digest of its
    /// file of keys, `source` that of what the other files would be made from.
    pub(super) fn summary(&self, manifest: &Manifest, source: Digest, keys: Digest) -> Option<Summary> {
        let is_same = self.made.source == source
            && self.made.files.get(names::KEYS) == Some(&keys)
            && self.manifest.has_same_results(manifest)
            && self.folder.file_digests().ok()? == self.made.files;
        let text = is_same.then(|| read_text(&self.folder.file(names::SUMMARY)).ok())??;
        serde_json::from_str(&text).ok()
    }
}

/// Identifies what the files of a set are made from beside its manifest; `None` of a set whose files rest on more, and of
/// one that is incomplete. `rows` identifies the rows of all contexts.
pub(super) fn source_of_files(manifest: &Manifest, rows: Option<Digest>, reference: bool) -> Option<Digest> {
    let is_whole = manifest.outcome == Outcome::Complete && manifest.part.is_none() && manifest.merged.is_empty();
    let rows = rows.filter(|_| is_whole && manifest.compared_to.is_none())?;
    let mut source = DigestBuilder::new("files of a result set");
    source.field("reports", REPORTS.to_le_bytes()).field("reference", [u8::from(reference)]).field("rows", rows.0);
    Some(source.finish())
}

/// What a set that was just written was made from, and its files.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn made_files(folder: &ResultsFolder, source: Digest) -> Result<MadeFiles, EvaluationError> {
    Ok(MadeFiles { source, files: folder.file_digests()? })
}
