//! The git commit of a project, read from the files of its repository. git itself is not started, because it executes
//! programs that the repository's configuration names, and because nothing else in a run needs it.

use std::path::{Path, PathBuf};

use base::files::{is_special, read_text};

/// The commit that is checked out in the repository around `folder`; `None` outside of a repository, before the first
/// commit, and if the format of the repository is unknown.
pub(super) fn commit_of(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let marker = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let git = if marker.is_dir() { marker } else { linked(&marker, "gitdir: ")? };
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return object(&head) };
    // A worktree has its own HEAD; its branches are in the folder of the repository.
    let common = linked(&git.join("commondir"), "").unwrap_or_else(|| git.clone());
    let loose = [&git, &common].into_iter().find_map(|folder| object(&read(&folder.join(name))?));
    loose.or_else(|| packed(&common, name))
}

fn read(file: &Path) -> Option<String> {
    let text = if is_special(file) { None } else { read_text(file).ok() };
    text.map(|text| text.trim().to_owned())
}

/// The path that a file contains after `start`, relative to the file's folder.
fn linked(file: &Path, start: &str) -> Option<PathBuf> {
    Some(file.parent()?.join(read(file)?.strip_prefix(start)?))
}

fn packed(git: &Path, name: &str) -> Option<String> {
    let refs = read(&git.join("packed-refs"))?;
    let mut named = refs.lines().filter_map(|line| line.split_once(' ')).filter(|(_, known)| *known == name);
    named.find_map(|(id, _)| object(id))
}

/// The text, if it is the name of an object: 40 digits of SHA-1, or 64 of SHA-256.
fn object(text: &str) -> Option<String> {
    let is_name = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
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
        assert_eq!(found(&[main, (".git/refs/heads/main", &line)], "evals/agent"), id);
        let packed = format!("# pack-refs with: peeled\n{} refs/heads/other\n{ID} refs/heads/main\n", "a".repeat(40));
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
        assert_eq!(found(&[(".git/HEAD", "ref: refs/heads/main\n")], "."), None, "no commit yet");
        assert_eq!(found(&[(".git/HEAD", "ref: refs/../../secret\n"), ("secret", "not an id")], "."), None);
        assert_eq!(found(&[(".git", "nonsense")], "."), None);
    }
}
