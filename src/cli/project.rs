//! The project at hand: the pipeline found, read and checked, once for every command.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::cache::{CacheError, CacheSnapshot, LockHolder, Store};
use crate::cli::args::{Common, SelectArgs, StagesArg};
use crate::cli::environment::variable;
use crate::cli::failure::{Exit, Failure};
use crate::cli::findings::render_some;
use crate::cli::terminal::Console;
use crate::pipeline::{
    MatrixSelection, OpenError, OpenRequest, Opened, Overrides, Pipeline, Problems, ProjectPaths, find_pipeline, open,
    project_paths,
};
use crate::results::Label;
use base::files::this_command;
use base::threads::both;
use models::{ApiKey, ModelUse};

/// How strictly a project is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProjectOptions {
    /// As strictly as `check` does.
    pub(crate) strict: bool,
    /// Whether calls will be made.
    pub(crate) needs_keys: bool,
    /// Whether the banks do not matter, nor whether there is any fixture.
    pub(crate) without_banks: bool,
    /// Processes that share the providers' limits.
    pub(crate) sharers: Option<NonZeroU32>,
}

/// The folder a command works in.
pub(crate) fn folder(common: &Common) -> PathBuf {
    common.directory.clone().unwrap_or_else(|| PathBuf::from("."))
}

/// A path as the user gave it: relative to the folder the command works in.
pub(crate) fn given(common: &Common, path: &Path) -> PathBuf {
    common.directory.as_ref().map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// Opens the project and prints its warnings.
pub(crate) fn open_project(
    common: &Common,
    select: &SelectArgs,
    opening: ProjectOptions,
    console: &Console,
) -> Result<Pipeline, Failure> {
    let Opened { pipeline, warnings, .. } = read_project(common, select, opening)?;
    print_warnings(console, &warnings);
    Ok(pipeline)
}

pub(crate) fn read_project(common: &Common, select: &SelectArgs, opening: ProjectOptions) -> Result<Opened, Failure> {
    let file = find_pipeline(&folder(common), common.config.as_deref())?;
    let request = OpenRequest {
        file,
        profile: common.profile.clone(),
        selection: MatrixSelection {
            fixtures: non_empty(&select.fixtures),
            methods: non_empty(&select.methods),
            probes: non_empty(&select.probes),
        },
        overrides: Overrides {
            runs: select.runs,
            model: select.model.clone(),
            compressor_model: select.compressor_model.clone(),
            answer_model: select.answer_model.clone(),
            judge_model: select.judge_model.clone(),
            focus_topic: select.focus_topic.clone(),
            lane: select.lane,
        },
        strict: opening.strict,
        allow_unproven: select.allow_unproven,
        needs_keys: opening.needs_keys,
        spans: select.points,
        compress_only: select.stages == Some(StagesArg::Compress),
        without_banks: opening.without_banks,
        sharers: opening.sharers,
    };
    let opened = open(&request, &variable);
    if let Ok(Opened { pipeline, .. }) = &opened {
        // Also where nothing is sent: a fixture may contain a key.
        let variables = pipeline.providers.values().filter_map(|provider| provider.api_key.as_ref());
        variables.for_each(|name| drop(ApiKey::from_environment(name)));
    }
    opened.map_err(|error| match error {
        OpenError::Problems(problems) => problems.into(),
        OpenError::Empty(empty) => Failure::input(empty.why).hinted(empty.help).exiting(Exit::EmptySelection),
    })
}

/// The paths of the project, without validating its files.
pub(crate) fn project_paths_of(common: &Common) -> Result<ProjectPaths, Failure> {
    let file = find_pipeline(&folder(common), common.config.as_deref())?;
    let paths = project_paths(&file, common.profile.as_deref(), &variable)?;
    // What is printed may contain a key that no file has in one piece: a text in several parts.
    paths.keys.iter().for_each(|variable| drop(ApiKey::from_environment(variable)));
    Ok(paths)
}

/// Refuses to begin where a model that will be asked has no key. Says the variable's name, never its value.
pub(crate) fn require_keys<'m>(models: impl IntoIterator<Item = &'m ModelUse>) -> Result<(), Failure> {
    for model in models {
        let Some(api_key) = &model.provider.api_key else { continue };
        if variable(&api_key.0).is_none_or(|key| key.trim().is_empty()) {
            let name = &model.provider.name;
            let message = format!("{} is not set, and provider `{name}` needs the key in it", api_key.0);
            let hint = format!("export {}=…, or name another variable: api_key_env in [providers.{name}]", api_key.0);
            return Err(Failure::input(message).hinted(hint));
        }
    }
    Ok(())
}

/// The label on the command line; the time where there is none.
pub(crate) fn label_of(select: &SelectArgs) -> Result<Label, Failure> {
    match &select.label {
        Some(text) => Label::new(text).map_err(|error| Failure::input(error.to_string())),
        None => Ok(Label::of_time(base::clock::now())),
    }
}

fn non_empty(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

/// Prints warnings: one at its place, several by kind.
pub(crate) fn print_warnings(console: &Console, warnings: &Problems) {
    if !warnings.is_empty() {
        console.note(&render_some(warnings, console));
    }
}

/// Opens the cache for writing and does `first` what must have gone well before it is made; side by side if it is there
/// already, since both take a while.
pub(crate) fn with_store<T>(
    common: &Common,
    console: &Console,
    first: impl FnOnce() -> Result<T, Failure>,
    cache: impl FnOnce(&T) -> &Path,
) -> Result<(T, Store), Failure> {
    let paths = project_paths_of(common).ok().filter(|paths| Store::is_in(&paths.cache));
    let Some(paths) = paths else {
        let done = first()?;
        let store = open_store(cache(&done), console)?;
        return Ok((done, store));
    };
    let (store, done) = both(|| open_without_notices(&paths.cache), first);
    if let Ok(store) = &store {
        print_notices(store, console);
    }
    Ok((done?, store?))
}

/// Opens the cache for writing; `COMPEVAL_CACHE` moves it, which the pipeline has seen to.
pub(crate) fn open_store(cache: &Path, console: &Console) -> Result<Store, Failure> {
    refuse_file(cache)?;
    let store = open_without_notices(cache)?;
    print_notices(&store, console);
    Ok(store)
}

fn open_without_notices(cache: &Path) -> Result<Store, CacheError> {
    Store::open(cache, &LockHolder { command: this_command() })
}

/// Prints the notices of the cache.
pub(crate) fn print_notices(store: &Store, console: &Console) {
    for notice in store.notices() {
        console.warn("cache:", notice);
    }
}

/// Opens the cache for reading, also while another process writes.
pub(crate) fn open_snapshot(cache: &Path) -> Result<CacheSnapshot, Failure> {
    refuse_file(cache)?;
    Ok(CacheSnapshot::open(cache)?)
}

/// A cache is a folder.
fn refuse_file(cache: &Path) -> Result<(), Failure> {
    if !cache.exists() || cache.is_dir() {
        return Ok(());
    }
    let hint = "name another folder by `cache` in [pipeline] or by COMPEVAL_CACHE, or move that file away";
    Err(Failure::input(format!("the cache {} is a file, not a folder", cache.display())).hinted(hint))
}
