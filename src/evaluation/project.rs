//! Opens the project and its cache, and reads the git commit of the project.
//!
//! git itself is not started, because it executes programs that the repository's configuration names, and because
//! nothing else in a run needs it: the files of the repository are read.

use std::path::{Path, PathBuf};

use super::error::EvaluationError;
use super::event::{Event, Listening};
use crate::entries::key_of;
use crate::pipeline::{
    OpenError, OpenRequest, Opened, Pipeline, Problems, ProjectPaths, open, project_paths,
};
use base::files::{read_text, this_command};
use models::{ApiKey, ModelUse};
use store::cache::{CacheSnapshot, Store};

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
    paths
        .keys
        .iter()
        .for_each(|variable| drop(ApiKey::from_environment(variable)));
    Ok(paths)
}

/// The models of all stages of the matrix.
pub fn stage_models(pipeline: &Pipeline) -> impl Iterator<Item = &ModelUse> {
    let compressors = pipeline
        .methods
        .iter()
        .filter_map(|method| method.strategy.model());
    compressors
        .chain(pipeline.answerers.iter().map(|answerer| &answerer.model))
        .chain(pipeline.judges.iter().map(|judge| &judge.model))
}

/// Refuses to begin if a model that will be asked has no key. The error has the name of the variable, never its value.
///
/// # Errors
/// The first variable that is not set.
pub fn require_keys<'m>(
    models: impl IntoIterator<Item = &'m ModelUse>,
) -> Result<(), EvaluationError> {
    for model in models {
        let Some(api_key) = &model.provider.api_key else {
            continue;
        };
        if variable(&api_key.0).is_none_or(|key| key.trim().is_empty()) {
            let (variable, provider) = (api_key.0.to_string(), model.provider.name.to_string());
            return Err(EvaluationError::MissingKey { variable, provider });
        }
    }
    Ok(())
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
    Some(
        file.parent()?
            .join(read_trimmed(file)?.strip_prefix(start)?),
    )
}

fn packed(git: &Path, name: &str) -> Option<String> {
    let refs = read_trimmed(&git.join("packed-refs"))?;
    let mut named = refs
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, known)| *known == name);
    named.find_map(|(id, _)| object(id))
}

/// The text, if it is the name of an object: 40 digits of SHA-1, or 64 of SHA-256.
fn object(text: &str) -> Option<String> {
    let is_name =
        [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| text.to_ascii_lowercase())
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
