//! The shared cache of an evaluation.

use futures::StreamExt;

use super::engine::runtime;
use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::entries::{BodyFormat, EntryRecord, key_of};
use crate::parts::PartNumber;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::selftest_actions;
use crate::results::{Manifest, ResultsFolder};
use base::units::{Usage, Usd, add_known};
use models::Dialect;
use store::cache::{Lookup, Store};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteError, RemoteMode, RemoteSettings, SharedCache,
};

/// What flags and environment say of the remote of a run: a part writes it, and offline it is read, if it is named on
/// the command line.
pub(super) fn remote_of_run(
    given: GivenRemote,
    part: Option<PartNumber>,
    offline: bool,
) -> Option<GivenRemote> {
    let mode = match (part, offline) {
        (Some(_), false) => Some(RemoteMode::Write),
        (_, true) => Some(RemoteMode::Read),
        (None, false) => given.mode,
    };
    (given.is_named || !offline).then_some(GivenRemote { mode, ..given })
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

/// Connects to the remote of a run.
///
/// # Errors
/// As [`connect_remote`].
pub fn connect_shared(
    given: GivenRemote,
    declared: &DeclaredRemote,
    listening: &Listening<'_>,
) -> Result<Option<SharedCache>, EvaluationError> {
    connect_remote(given, declared, listening, |settings| {
        SharedCache::new(settings, key_of)
    })
}

/// Refuses to begin a part whose judges are untested, because every part would ask the same cases. Cases that the remote
/// has are pulled.
///
/// # Errors
/// Cases are missing; the cache cannot be written.
pub(super) fn require_selftest(
    pipeline: &Pipeline,
    shared: &SharedCache,
    store: &Store,
) -> Result<(), EvaluationError> {
    if Matrix::new(pipeline).counts().judge == 0 {
        return Ok(());
    }
    let cases: Vec<_> = selftest_actions(pipeline)
        .into_iter()
        .filter(|case| case.request().is_some())
        .collect();
    let unknown = cases
        .iter()
        .filter(|case| store.find_usable(&case.key).is_none());
    let pulls = unknown.map(|case| shared.pull(store, &case.key));
    runtime()?.block_on(async {
        let mut pulls = futures::stream::iter(pulls).buffer_unordered(SharedCache::AT_ONCE);
        while let Some(pulled) = pulls.next().await {
            pulled?;
        }
        Ok::<(), EvaluationError>(())
    })?;
    let missing = cases
        .iter()
        .filter(|case| store.find_usable(&case.key).is_none());
    match missing.count() {
        0 => Ok(()),
        cases => Err(EvaluationError::NoSelftest {
            url: shared.exchanged().url,
            cases,
        }),
    }
}

/// Counts what the entries of a result set cost, whoever made them: a run that asks nobody, and takes everything from a
/// remote, shows what its parts paid.
pub(super) fn add_spending(
    store: &Store,
    folder: &ResultsFolder,
    manifest: &mut Manifest,
) -> Result<(), EvaluationError> {
    let keys = folder.keys()?;
    let records = keys.iter().filter_map(|key| store.find(key));
    let (mut usage, mut usd) = (None, Some(Usd(0.0)));
    for record in records {
        let is_asked = matches!(record.body_format(), BodyFormat::Reply(dialect) if dialect != Dialect::Lexical);
        manifest.requests_sent += u64::from(is_asked);
        if is_asked || record.usage != Usage::default() {
            usage = Some(usage.map_or(record.usage, |sum: Usage| sum + record.usage));
        }
        usd = add_known(usd, record.cost);
    }
    (manifest.usage, manifest.usd) = (usage.unwrap_or_default(), usd);
    Ok(())
}
