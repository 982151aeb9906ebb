//! The remote through which the parts of a run are merged: each part pushes its outputs and its record, and the merge
//! reads both.

use super::engine::runtime;
use super::error::EvaluationError;
use super::event::Listening;
use super::merge::Merge;
use super::part::{PartOfRun, PartRequest};
use super::remote::report_warnings;
use crate::parts::Assignment;
use crate::pipeline::Pipeline;
use crate::results::{Label, Manifest};
use store::cache::Store;
use store::remote::{GivenRemote, PartName, RemoteError, RemoteSettings, SharedCache};

/// Connects to the remote of the parts and reads what it has. If the parts are merged, the result includes their
/// records.
///
/// # Errors
/// There is no remote, or it cannot be read; there is nothing to merge.
pub(super) fn connect_parts(
    role: PartRequest,
    given: GivenRemote,
    pipeline: &Pipeline,
    part: Option<&PartOfRun>,
    label: &Label,
    listening: &Listening<'_>,
) -> Result<(SharedCache, Option<Merge>), EvaluationError> {
    let Some(settings) = role.remote(given).resolve(&pipeline.remote)? else {
        return Err(EvaluationError::NoRemote);
    };
    let (assignment, number) = match role {
        PartRequest::Run(_) => (
            part.map(|part| part.record.assignment),
            part.map(|part| part.record.number.index()),
        ),
        PartRequest::Merge(of) => (Some(Assignment::new(pipeline, of).digest()), None),
    };
    let shared = SharedCache::new(RemoteSettings {
        assignment,
        part: number,
        ..settings
    })?;
    let runtime = runtime()?;
    runtime.block_on(shared.load())?;
    let merge = match role {
        PartRequest::Run(_) => None,
        PartRequest::Merge(of) => {
            let records = runtime.block_on(shared.part_records(label.as_str(), of.get()))?;
            report_warnings(&shared, listening);
            Some(Merge::new(pipeline, label, of, &records)?)
        }
    };
    report_warnings(&shared, listening);
    Ok((shared.reconnected()?, merge))
}

/// Pushes the outputs of a part that were not pushed while it ran, and its record, which is its manifest.
pub(super) fn push_part(
    part: &PartOfRun,
    shared: Option<SharedCache>,
    manifest: &Manifest,
    store: &Store,
) -> Result<(), RemoteError> {
    let Some(shared) = shared else { return Ok(()) };
    let content = serde_json::to_vec(manifest).map_err(|error| not_written(&shared, &error))?;
    let runtime = runtime().map_err(|error| not_written(&shared, &error))?;
    let number = part.record.number;
    let name = PartName {
        label: &manifest.label,
        index: number.index(),
        of: number.count().get(),
    };
    runtime.block_on(shared.reconnected()?.push_part(store, name, content))
}

fn not_written(shared: &SharedCache, error: &dyn std::error::Error) -> RemoteError {
    RemoteError::Failed {
        operation: "write to",
        url: shared.url().to_owned(),
        what: error.to_string(),
    }
}
