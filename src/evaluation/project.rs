//! Opens the project, its cache and its shared cache, and reads the git commit of the project.
//!
//! git itself is not started, because it executes programs that the repository's configuration names, and because
//! nothing else in a run needs it: the files of the repository are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use tokio::runtime::Runtime;

use super::event::{EvaluationError, Listening};
use crate::entries::{BodyFormat, EntryRecord, key_of};
use crate::parts::PartNumber;
use crate::pipeline::{
    Matrix, OpenError, OpenRequest, Opened, Pipeline, Problem, Problems, ProjectPaths, missing_key,
    open, project_paths,
};
use crate::plan::{Action, selftest_actions};
use crate::results::{Manifest, ResultsFolder};
use base::files::{read_text, this_command};
use base::threads::check_available;
use base::units::{Usage, Usd, add_known};
use models::{ApiKey, Dialect, ModelUse};
use store::cache::{CacheSnapshot, Lookup, Store};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteError, RemoteMode, RemoteSettings, SharedCache,
};

/// An environment variable, unless it is empty. Apart from keys, variables are read only here. Bytes that are no text are
/// replaced; where that would not do, the command line refuses them.
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// Reads and checks a project.
///
/// # Errors
/// The faults in its files; the selection is empty.
pub fn open_project(request: &OpenRequest) -> Result<Opened, OpenError> {
    let opened = open(request, &variable);
    if let Ok(Opened { pipeline, .. }) = &opened {
        // Keys are read even if nothing is sent, because a fixture may contain a key, which must not be shown.
        let variables = pipeline
            .providers
            .values()
            .filter_map(|provider| provider.api_key.as_ref());
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
    let keys = paths.keys.iter();
    keys.for_each(|variable| drop(ApiKey::from_environment(variable)));
    Ok(paths)
}

/// Refuses to begin if a model that will be asked has no key.
///
/// # Errors
/// The first variable that is not set.
pub fn require_keys<'m>(
    models: impl IntoIterator<Item = &'m ModelUse>,
) -> Result<(), EvaluationError> {
    let mut models = models.into_iter();
    match models.find_map(|model| missing_key(&model.provider, &variable)) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// Opens the cache for writing.
///
/// # Errors
/// The cache is a file; it is locked or damaged.
pub fn open_store(cache: &Path, listening: &Listening<'_>) -> Result<Store, EvaluationError> {
    refuse_file(cache)?;
    let store = Store::open(cache, &this_command(), key_of)?;
    report_notices(&store, listening);
    Ok(store)
}

/// Reports the notices of the cache.
pub(super) fn report_notices(store: &Store, listening: &Listening<'_>) {
    for notice in store.notices() {
        listening.warn("cache:", &notice);
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
        let message = format!("the cache {} is a file, not a folder", cache.display());
        let help = "name another folder by `cache` in [pipeline] or by COMPEVAL_CACHE, or move that file away";
        return Err(Problem::error(message).help(help).into());
    }
    Ok(())
}

/// The commit that is checked out in the repository around `folder`; `None` outside of a repository, before the first
/// commit, and if the format of the repository is unknown.
pub(super) fn commit_of(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let marker = folder
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|path| path.exists())?;
    let git = if marker.is_dir() {
        marker
    } else {
        linked(&marker, "gitdir: ")?
    };
    let head = read_trimmed(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else {
        return object(&head);
    };
    // A worktree has its own HEAD; its branches are in the folder of the repository.
    let common = linked(&git.join("commondir"), "").unwrap_or_else(|| git.clone());
    let loose = [&git, &common]
        .into_iter()
        .find_map(|folder| object(&read_trimmed(&folder.join(name))?));
    loose.or_else(|| packed(&common, name))
}

fn read_trimmed(file: &Path) -> Option<String> {
    Some(read_text(file).ok()?.trim().to_owned())
}

/// The path that a file contains after `start`, relative to the file's folder.
fn linked(file: &Path, start: &str) -> Option<PathBuf> {
    let named = read_trimmed(file)?;
    Some(file.parent()?.join(named.strip_prefix(start)?))
}

fn packed(git: &Path, name: &str) -> Option<String> {
    let refs = read_trimmed(&git.join("packed-refs"))?;
    let mut known = refs.lines().filter_map(|line| line.split_once(' '));
    known.find_map(|(id, known)| object(id).filter(|_| known == name))
}

/// The text, if it is the name of an object: 40 digits of SHA-1, or 64 of SHA-256.
fn object(text: &str) -> Option<String> {
    let is_name =
        [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| text.to_ascii_lowercase())
}

/// A runtime on this thread.
///
/// # Errors
/// The system refuses it, or does not start its threads.
pub fn runtime() -> Result<Runtime, EvaluationError> {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    // The runtime panics if it cannot start a thread for a computation, so those that it has are kept.
    check_available(threads).map_err(EvaluationError::Runtime)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(threads)
        .thread_keep_alive(Duration::MAX)
        .build()
        .map_err(EvaluationError::Runtime)
}

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
        listening.note(
            "note:",
            "CI is set, so the remote of the pipeline is not used; COMPEVAL_REMOTE names one",
        );
    }
    let Some(settings) = given.resolve(declared)? else {
        return Ok(None);
    };
    match open(settings) {
        Ok(remote) => Ok(Some(remote)),
        Err(error @ RemoteError::NotBuilt(_)) => Err(error.into()),
        Err(error) => {
            let text = format!("{error}; this command continues without it");
            listening.warn("remote:", &text);
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
    if Matrix(pipeline).counts().judge == 0 {
        return Ok(());
    }
    let cases: Vec<_> = selftest_actions(pipeline)
        .into_iter()
        .filter(|case| case.request().is_some())
        .collect();
    let is_missing = |case: &&Action| store.find_usable(&case.key).is_none();
    let pulls = cases
        .iter()
        .filter(is_missing)
        .map(|case| shared.pull(store, &case.key));
    runtime()?.block_on(async {
        let mut pulls = futures::stream::iter(pulls).buffer_unordered(SharedCache::AT_ONCE);
        while let Some(pulled) = pulls.next().await {
            pulled?;
        }
        Ok::<(), EvaluationError>(())
    })?;
    match cases.iter().filter(is_missing).count() {
        0 => Ok(()),
        cases => {
            let url = shared.exchanged().url;
            let message = format!(
                "the judges' self-test is not in {url}: {cases} of its cases are missing, and every part would ask them"
            );
            let help =
                format!("`compeval judge selftest --remote {url}` asks them once, for all parts");
            Err(Problem::error(message).help(help).into())
        }
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
        if is_asked || record.summary.usage != Usage::default() {
            usage = Some(usage.map_or(record.summary.usage, |sum: Usage| {
                sum + record.summary.usage
            }));
        }
        usd = add_known(usd, record.summary.cost);
    }
    (manifest.usage, manifest.usd) = (usage.unwrap_or_default(), usd);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::files::write_whole;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write_whole(&folder.path().join(path), text).unwrap();
        }
        folder
    }

    fn found(files: &[(&str, &str)], below: &str) -> Option<String> {
        let folder = repository(files);
        base::files::create_private_folder(&folder.path().join(below)).unwrap();
        commit_of(&folder.path().join(below))
    }

    #[test]
    fn loose_packed_and_detached_heads_are_read_from_any_folder_below() {
        let id = Some(ID.to_owned());
        let main = (".git/HEAD", "ref: refs/heads/main\n");
        let line = format!("{ID}\n");
        assert_eq!(
            found(&[main, (".git/refs/heads/main", &line)], "evals/agent"),
            id
        );
        let packed = format!(
            "# pack-refs with: peeled\n{} refs/heads/other\n{ID} refs/heads/main\n",
            "a".repeat(40)
        );
        assert_eq!(found(&[main, (".git/packed-refs", &packed)], "."), id);
        assert_eq!(found(&[(".git/HEAD", &line)], "."), id);
    }

    #[test]
    fn a_worktree_has_its_own_head_and_the_branches_of_its_repository() {
        let files = [
            ("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
            ("repo/.git/worktrees/tree/HEAD", "ref: refs/heads/topic\n"),
            ("repo/.git/worktrees/tree/commondir", "../..\n"),
            ("repo/.git/refs/heads/topic", ID),
        ];
        assert_eq!(found(&files, "tree"), Some(ID.to_owned()));
    }

    #[test]
    fn what_is_no_commit_is_none() {
        assert_eq!(
            found(&[(".git/HEAD", "ref: refs/heads/main\n")], "."),
            None,
            "no commit yet"
        );
        assert_eq!(
            found(
                &[
                    (".git/HEAD", "ref: refs/../../secret\n"),
                    ("secret", "not an id")
                ],
                "."
            ),
            None
        );
        assert_eq!(found(&[(".git", "nonsense")], "."), None);
    }
}
