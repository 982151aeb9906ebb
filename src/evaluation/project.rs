//! Opens the project and its cache.

use std::path::Path;

use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::entries::key_of;
use crate::pipeline::{OpenError, OpenRequest, Opened, Pipeline, Problems, ProjectPaths, open, project_paths};
use base::files::this_command;
use base::threads::both;
use models::{ApiKey, ModelUse};
use store::cache::{CacheError, CacheSnapshot, Store};

/// An environment variable, unless it is empty. Apart from keys, variables are read only here.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads and checks a project.
///
/// # Errors
/// The faults in its files; the selection is empty.
pub fn open_project(request: &OpenRequest) -> Result<Opened, OpenError> {
    let opened = open(request, &variable);
    if let Ok(Opened { pipeline, .. }) = &opened {
        // Keys are read even if nothing is sent, because a fixture may contain a key, which must not be shown.
        let variables = pipeline.providers.values().filter_map(|provider| provider.api_key.as_ref());
        variables.for_each(|name| drop(ApiKey::from_environment(name)));
    }
    opened
}

/// The paths of a project. Its files are not validated.
///
/// # Errors
/// The faults because of which the paths are unknown.
pub fn paths_of_project(file: &Path, profile: Option<&str>) -> Result<ProjectPaths, Problems> {
    let paths = project_paths(file, profile, &variable)?;
    // Keys are read because printed text may contain a key although each file has only a piece of it.
    paths.keys.iter().for_each(|variable| drop(ApiKey::from_environment(variable)));
    Ok(paths)
}

/// The models of all stages of the matrix.
pub fn stage_models(pipeline: &Pipeline) -> impl Iterator<Item = &ModelUse> {
    let compressors = pipeline.methods.iter().filter_map(|method| method.strategy.model());
    compressors
        .chain(pipeline.answerers.iter().map(|answerer| &answerer.model))
        .chain(pipeline.judges.iter().map(|judge| &judge.model))
}

/// Refuses to begin if a model that will be asked has no key. The error has the name of the variable, never its value.
///
/// # Errors
/// The first variable that is not set.
pub fn require_keys<'m>(models: impl IntoIterator<Item = &'m ModelUse>) -> Result<(), EvaluationError> {
    for model in models {
        let Some(api_key) = &model.provider.api_key else { continue };
        if variable(&api_key.0).is_none_or(|key| key.trim().is_empty()) {
            let (variable, provider) = (api_key.0.to_string(), model.provider.name.to_string());
            return Err(EvaluationError::MissingKey { variable, provider });
        }
    }
    Ok(())
}

/// Opens the cache for writing and does `first`. A new cache is created only after `first` succeeded. If the cache
/// exists at `existing`, both are done in parallel, since both take a while.
///
/// # Errors
/// Those of `first`; the cache is locked or damaged.
pub fn open_with_store<T, E: From<EvaluationError>>(
    existing: Option<&Path>,
    listening: &Listening<'_>,
    first: impl FnOnce() -> Result<T, E>,
    cache: impl FnOnce(&T) -> &Path,
) -> Result<(T, Store), E> {
    let Some(existing) = existing.filter(|cache| Store::is_in(cache)) else {
        let done = first()?;
        let store = open_store(cache(&done), listening)?;
        return Ok((done, store));
    };
    let (store, done) = both(|| open_without_notices(existing), first);
    if let Ok(store) = &store {
        report_notices(store, listening);
    }
    Ok((done?, store.map_err(EvaluationError::from)?))
}

/// Opens the cache for writing.
///
/// # Errors
/// The cache is a file; it is locked or damaged.
pub fn open_store(cache: &Path, listening: &Listening<'_>) -> Result<Store, EvaluationError> {
    refuse_file(cache)?;
    let store = open_without_notices(cache)?;
    report_notices(&store, listening);
    Ok(store)
}

fn open_without_notices(cache: &Path) -> Result<Store, CacheError> {
    Store::open(cache, &this_command(), key_of)
}

/// Reports the notices of the cache.
pub(super) fn report_notices(store: &Store, listening: &Listening<'_>) {
    for notice in store.notices() {
        listening.report(&Event::CacheNotice(&notice));
    }
}

/// Opens the cache for reading, which is possible while another process writes to it.
///
/// # Errors
/// The cache is a file, or damaged.
pub fn open_snapshot(cache: &Path) -> Result<CacheSnapshot, EvaluationError> {
    refuse_file(cache)?;
    Ok(CacheSnapshot::open(cache)?)
}

/// Refuses a file in the place of the cache, which is a folder.
fn refuse_file(cache: &Path) -> Result<(), EvaluationError> {
    if cache.exists() && !cache.is_dir() {
        return Err(EvaluationError::CacheIsFile(cache.to_owned()));
    }
    Ok(())
}
