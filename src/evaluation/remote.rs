//! The shared cache of an evaluation.

use std::collections::BTreeSet;

use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::results::RemoteUse;
use store::remote::{DeclaredRemote, GivenRemote, RemoteError, RemoteSettings, SharedCache, SharedSummary};

/// The public keys of the writers that are trusted.
pub fn trusted_keys(given: &GivenRemote, declared: &DeclaredRemote) -> BTreeSet<String> {
    given.trusted(declared).iter().map(|writer| writer.key.to_string()).collect()
}

/// Connects to the remote, if there is one. One that cannot be connected to is reported and left out.
///
/// # Errors
/// The settings do not fit together, or this program was built without what the remote needs: every run would pay
/// again.
pub fn connect_remote<T>(
    given: GivenRemote,
    declared: &DeclaredRemote,
    listening: &Listening<'_>,
    open: impl FnOnce(RemoteSettings) -> Result<T, RemoteError>,
) -> Result<Option<T>, EvaluationError> {
    if given.ignores(declared) {
        listening.report(&Event::RemoteIgnored);
    }
    let Some(settings) = given.resolve(declared)? else { return Ok(None) };
    match open(settings) {
        Ok(remote) => Ok(Some(remote)),
        Err(error @ RemoteError::NotBuilt(_)) => Err(error.into()),
        Err(error) => {
            listening.report(&Event::RemoteUnavailable(&error));
            Ok(None)
        }
    }
}

/// Reports what there is to be said about the remote.
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
