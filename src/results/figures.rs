//! The files of figures of a large result set: `summary.json`, `report.md`, and one for each fixture and run. Where rows
//! and contexts are those of the set that is replaced, they are taken over, and no row is read.
//!
//! A digest in the manifest says whether they may be: it covers what they are made from beside rows and contexts, and the
//! files themselves, so that one that was edited or removed is made anew.

use std::path::PathBuf;

use super::files::folder::{FolderError, ResultsFolder, names};
use super::files::manifest::{FORMAT, Manifest};
use super::files::row::ROWS;
use super::summary::Summary;
use crate::action::{Digest, DigestBuilder};
use base::files;

/// Identifies the files of figures that a set has, and what of `manifest` they are made from. `None` of figures
/// that rest on another result set too.
///
/// # Errors
/// A file that cannot be read.
pub fn figures_digest(
    folder: &ResultsFolder,
    manifest: &Manifest,
    reference: bool,
) -> Result<Option<Digest>, FolderError> {
    if manifest.compared_to.is_some() {
        return Ok(None);
    }
    let path = folder.file(names::MANIFEST);
    let made_from = (
        (&manifest.label, &manifest.design, &manifest.outcome),
        (&manifest.caveats, &manifest.failures, &manifest.models),
    );
    let made_from = serde_json::to_vec(&made_from).map_err(|source| FolderError::Broken { path, source })?;
    let mut digest = DigestBuilder::new("compeval figures v3");
    digest.field("version", env!("CARGO_PKG_VERSION")).field("format", FORMAT.to_le_bytes());
    digest.field("rows", ROWS.to_le_bytes()).field("reference", [u8::from(reference)]);
    digest.field("made from", made_from);
    for path in figure_files(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        digest.field("name", name).field("file", Digest::hash(files::read_text(&path)?).0);
    }
    Ok(Some(digest.finish()))
}

/// Takes the files of figures over from `earlier`, which has the very same rows and contexts. Returns the summary, and
/// what [`figures_digest`] is of them; `None` if they have to be made anew.
///
/// # Errors
/// A file that cannot be read, or cannot be taken over.
pub fn take_figures(
    folder: &ResultsFolder,
    earlier: &ResultsFolder,
    manifest: &Manifest,
    reference: bool,
) -> Result<Option<(Summary, Digest)>, FolderError> {
    let Some(figures) = earlier.manifest()?.figures else { return Ok(None) };
    if figures_digest(earlier, manifest, reference)? != Some(figures) {
        return Ok(None);
    }
    let text = files::read_text(&earlier.file(names::SUMMARY))?;
    let Ok(summary) = serde_json::from_str(&text) else { return Ok(None) };
    for path in figure_files(earlier)? {
        files::link_or_copy(&path, &folder.path().join(path.file_name().unwrap_or_default()))?;
    }
    Ok(Some((summary, figures)))
}

/// The files of figures, by name.
fn figure_files(folder: &ResultsFolder) -> Result<Vec<PathBuf>, FolderError> {
    let mut files = folder.run_files()?;
    files.extend([names::SUMMARY, names::MARKDOWN].map(|name| folder.file(name)));
    files.sort();
    Ok(files)
}
