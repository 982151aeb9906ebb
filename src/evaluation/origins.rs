//! Entries that were made elsewhere: noted in the manifest, and compared with those that the earlier
//! results of the label used.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::action::{ActionKey, Digest};
use crate::results::{ImportedEntries, Manifest, ResultsFolder, WriterEntries, open_results};
use store::cache::{ImportOrigin, Store, Writer};

/// Notes the entries that were made elsewhere: by files and by writers.
pub(super) fn note_origins(
    store: &Store,
    folder: &ResultsFolder,
    manifest: &mut Manifest,
) -> Result<(), EvaluationError> {
    if !store.was_imported_into() {
        return Ok(());
    }
    let (mut files, mut writers) = (BTreeMap::new(), BTreeMap::new());
    for (key, raw, ImportOrigin { file, digest, writer }) in store.origins(&folder.keys()?) {
        match writer {
            None => *files.entry((file, digest)).or_default() += 1,
            Some(Writer { name, key: public }) => {
                *writers.entry((name, public)).or_default() += 1;
                manifest.pulled.insert(key, raw);
            }
        }
    }
    let imported = |((file, digest), entries)| ImportedEntries { file, digest, entries };
    manifest.imported = files.into_iter().map(imported).collect();
    let written = |((name, key), entries)| WriterEntries { name, key, entries };
    manifest.writers = writers.into_iter().map(written).collect();
    Ok(())
}

/// Reports outputs that differ from those that the earlier results of the label pin: they are not the same
/// measurement.
pub(super) fn report_changed_outputs(results: &Path, manifest: &Manifest, listening: &Listening<'_>) {
    if manifest.pulled.is_empty() {
        return;
    }
    let earlier = open_results(results, &manifest.label).and_then(|folder| folder.manifest());
    let Ok(earlier) = earlier else { return };
    let differs = |(key, raw): &(&ActionKey, &Digest)| earlier.pulled.get(key).is_some_and(|pinned| pinned != *raw);
    let changed: Vec<ActionKey> = manifest.pulled.iter().filter(differs).take(3).map(|(key, _)| *key).collect();
    if !changed.is_empty() {
        listening.report(&Event::OutputsChanged { label: &manifest.label, keys: &changed });
    }
}
