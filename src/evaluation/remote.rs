//! The shared cache of an evaluation. Entries that were made elsewhere are noted in the manifest, and compared with
//! those that the earlier results of the label used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::action::ActionKey;
use crate::results::{
    ImportedEntries, Manifest, RemoteUse, ResultsFolder, WriterEntries, open_results,
};
use store::cache::{ImportOrigin, Store, Writer};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteError, RemoteSettings, SharedCache, SharedSummary,
};

/// The public keys of the writers that are trusted.
pub fn trusted_keys(given: &GivenRemote, declared: &DeclaredRemote) -> BTreeSet<String> {
    given
        .trusted(declared)
        .iter()
        .map(|writer| writer.key.to_string())
        .collect()
}

/// Connects to the remote, if there is one. If the connection fails, this is reported, and there is no remote.
///
/// # Errors
/// The settings do not fit together, or this program was built without what the remote needs. These are errors because
/// otherwise every run would pay again.
pub fn connect_remote<T>(
    given: GivenRemote,
    declared: &DeclaredRemote,
    listening: &Listening<'_>,
    open: impl FnOnce(RemoteSettings) -> Result<T, RemoteError>,
) -> Result<Option<T>, EvaluationError> {
    if given.ignores(declared) {
        listening.report(&Event::RemoteIgnored);
    }
    let Some(settings) = given.resolve(declared)? else {
        return Ok(None);
    };
    match open(settings) {
        Ok(remote) => Ok(Some(remote)),
        Err(error @ RemoteError::NotBuilt(_)) => Err(error.into()),
        Err(error) => {
            listening.report(&Event::RemoteUnavailable(&error));
            Ok(None)
        }
    }
}

/// Reports the warnings about the remote.
pub(super) fn report_warnings(shared: &SharedCache, listening: &Listening<'_>) {
    for warning in shared.take_warnings() {
        listening.report(&Event::RemoteWarning(&warning));
    }
}

/// What was exchanged with the remote, as the manifest records it.
pub(super) fn remote_use(summary: &SharedSummary) -> RemoteUse {
    RemoteUse {
        url: summary.url.clone(),
        list: summary.list,
        packs: summary.packs,
        pulled: summary.pulled.entries,
        uploaded: summary.pushed.entries,
    }
}

/// Notes the entries that were made elsewhere, by unsigned packs and by writers.
pub(super) fn note_origins(
    store: &Store,
    folder: &ResultsFolder,
    manifest: &mut Manifest,
) -> Result<(), EvaluationError> {
    if !store.was_imported_into() {
        return Ok(());
    }
    let (mut packs, mut writers) = (BTreeMap::new(), BTreeMap::new());
    for (
        key,
        raw,
        ImportOrigin {
            remote,
            pack,
            writer,
        },
    ) in store.origins(&folder.keys()?)
    {
        match writer {
            None => *packs.entry((remote, pack)).or_default() += 1,
            Some(Writer { name, key: public }) => {
                *writers.entry((name, public)).or_default() += 1;
                manifest.pulled.insert(key, raw);
            }
        }
    }
    let imported = packs
        .into_iter()
        .map(|((file, digest), entries)| ImportedEntries {
            file,
            digest,
            entries,
        });
    manifest.imported = imported.collect();
    let written = writers
        .into_iter()
        .map(|((name, key), entries)| WriterEntries { name, key, entries });
    manifest.writers = written.collect();
    Ok(())
}

/// Reports outputs that differ from those that the earlier results of the label pin, because then the results are not
/// the same measurement.
pub(super) fn report_changed_outputs(
    results: &Path,
    manifest: &Manifest,
    listening: &Listening<'_>,
) {
    if manifest.pulled.is_empty() {
        return;
    }
    let earlier = open_results(results, &manifest.label).and_then(|folder| folder.manifest());
    let Ok(earlier) = earlier else { return };
    let pulled = manifest.pulled.iter();
    let changed = pulled.filter(|(key, raw)| {
        earlier
            .pulled
            .get(*key)
            .is_some_and(|pinned| pinned != *raw)
    });
    let changed: Vec<ActionKey> = changed.take(3).map(|(key, _)| *key).collect();
    if !changed.is_empty() {
        listening.report(&Event::OutputsChanged {
            label: &manifest.label,
            keys: &changed,
        });
    }
}
