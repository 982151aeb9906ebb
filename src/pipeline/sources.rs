//! Files on disk: the pipeline found by walking up, text files read once, and the declared inputs of programs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use walkdir::WalkDir;

use super::model::{Pipeline, SourceFile};
use super::problem::{Problem, Problems};
use base::files::{LONGEST, open_regular, read_file};

/// The name of the pipeline's file.
pub const PIPELINE_FILE: &str = "pipeline.toml";

/// Text files of a project, each read once.
pub(super) struct SourceReader {
    folder: PathBuf,
    /// The folder that no file may lie outside of, resolved; `None` where the project may read any file.
    bounds: Option<PathBuf>,
    read: BTreeMap<String, Result<SourceFile, String>>,
}

impl SourceReader {
    /// A reader of the files under `folder`.
    pub(super) fn new(folder: PathBuf) -> SourceReader {
        SourceReader {
            folder,
            bounds: None,
            read: BTreeMap::new(),
        }
    }

    /// Refuses files outside of the folder from now on, also behind symbolic links: a user who runs another's project
    /// does not intend to send other files to a provider.
    ///
    /// # Errors
    /// Why the folder cannot be resolved. What lies inside of it is unknown then, and the project must not be used.
    pub(super) fn confine(&mut self) -> Result<(), String> {
        let resolved = self.folder.canonicalize();
        self.bounds = Some(resolved.as_ref().unwrap_or(&self.folder).clone());
        resolved.map(drop).map_err(|error| describe_error(&error))
    }

    /// Whether a path leads out of the folder and that is refused.
    pub(super) fn is_out_of_bounds(&self, path: &Path) -> bool {
        self.bounds
            .as_ref()
            .is_some_and(|bounds| !resolved(&self.folder.join(path)).starts_with(bounds))
    }

    /// The folder that paths are relative to.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The text of a file, or why it cannot be read. A byte order mark at its head is dropped.
    pub(super) fn read(&mut self, path: &str) -> Result<SourceFile, String> {
        let name = path.replace('\\', "/");
        if let Some(known) = self.read.get(&name) {
            return known.clone();
        }
        let read = self.read_uncached(path);
        self.read.insert(name, read.clone());
        read
    }

    /// Reads a file as `read` does, without keeping it among the sources.
    pub(super) fn read_uncached(&self, path: &str) -> Result<SourceFile, String> {
        let file = self.folder.join(path);
        // Anything but a file is refused below, with a better reason.
        if file.is_file() && self.is_out_of_bounds(Path::new(path)) {
            return Err(out_of_bounds().to_owned());
        }
        Ok(SourceFile::new(path.replace('\\', "/"), read_text(&file)?))
    }

    /// The size of a file, as far as it can be read.
    pub(super) fn bytes(&self, path: &str) -> Option<u64> {
        let opened = open_regular(&self.folder.join(path));
        Some(opened.ok()?.metadata().ok()?.len())
    }

    /// Puts `file` in the place of what was read under its path.
    pub(super) fn replace(&mut self, file: SourceFile) {
        self.read.insert(file.path.clone(), Ok(file));
    }

    /// All files that could be read, sorted by path.
    pub(super) fn into_sources(self) -> Vec<SourceFile> {
        self.read.into_values().filter_map(Result::ok).collect()
    }
}

/// The files of fixtures and banks, as they are now; one that is gone is left out.
pub fn data_files(pipeline: &Pipeline) -> impl Iterator<Item = SourceFile> {
    let reader = SourceReader::new(pipeline.folder.clone());
    let paths = pipeline
        .fixtures
        .iter()
        .flat_map(|fixture| [&fixture.path, &fixture.bank_path]);
    paths.filter_map(move |path| reader.read_uncached(path).ok())
}

/// Why a file outside of the project is not read, and what permits it.
pub(super) fn out_of_bounds() -> &'static str {
    "it lies outside of the project's folder; allow_outside = true under [pipeline] permits that"
}

/// A path without `..` and symbolic links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => resolved(parent).join(name),
        // `..` behind a folder that does not exist
        (Some(parent), Some(Component::ParentDir)) => {
            let mut folder = resolved(parent);
            folder.pop();
            folder
        }
        _ => path.to_path_buf(),
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    if path.is_symlink() && !path.exists() {
        return Err("it is a link to a file that does not exist".to_owned());
    }
    let bytes = open_regular(path).and_then(|file| read_file(file, LONGEST));
    let bytes = bytes.map_err(|e| describe_error(&e))?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("it is UTF-16 text, as PowerShell's > writes it: save it as UTF-8".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e
            .as_bytes()
            .iter()
            .take(e.utf8_error().valid_up_to())
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        format!("line {line} is not UTF-8 text")
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

/// An error of the file system in plain words.
pub(super) fn describe_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

fn refuse(message: String, help: &str) -> Result<PathBuf, Problems> {
    Err(Problems(vec![Problem::error(message).help(help)]))
}

/// Finds the pipeline: the file named, else `pipeline.toml` in `start` or the nearest folder above it. Returns the
/// file's absolute path.
pub fn find_pipeline(start: &Path, named: Option<&Path>) -> Result<PathBuf, Problems> {
    let start = match std::path::absolute(start) {
        Ok(start) if start.is_dir() => start,
        _ => {
            return refuse(
                format!("there is no folder {}", start.display()),
                "-C names the folder to start from",
            );
        }
    };
    if let Some(named) = named {
        let path = start.join(named);
        return match path.is_file() {
            true => Ok(path),
            false if path.is_dir() => refuse(
                format!("{} is a folder", named.display()),
                "-c names the pipeline's file, -C a folder",
            ),
            false => refuse(
                format!("there is no file {}", named.display()),
                "-c names the pipeline's file",
            ),
        };
    }
    // A broken link or a pipe of that name is found too: reading it says what is wrong.
    let mut paths = start.ancestors().map(|folder| folder.join(PIPELINE_FILE));
    match paths.find(|path| path.symlink_metadata().is_ok() && !path.is_dir()) {
        Some(path) => Ok(path),
        None => refuse(
            format!(
                "there is no {PIPELINE_FILE} in {} or any folder above it",
                start.display()
            ),
            "`compeval run --sample` runs a sample project, `compeval init` only writes it; -C names another folder, -c \
                 another file",
        ),
    }
}

/// A pattern of paths below a folder: the plain folders it begins with, and what must match below them.
pub(super) struct Pattern {
    /// Plain leading part, relative; empty if the pattern begins with a wildcard.
    plain: PathBuf,
    matcher: Option<GlobMatcher>,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Pattern, String> {
        let path = Path::new(pattern);
        if pattern.trim().is_empty() {
            return Err("the pattern is empty".to_owned());
        }
        if path.is_absolute() {
            return Err(format!(
                "`{pattern}` is an absolute path, which no other machine has"
            ));
        }
        let plain: PathBuf = path.components().take_while(is_plain).collect();
        let rest: PathBuf = path.components().skip_while(is_plain).collect();
        if rest.as_os_str().is_empty() {
            return Ok(Pattern {
                plain,
                matcher: None,
            });
        }
        let glob = GlobBuilder::new(&rest.to_string_lossy().replace('\\', "/"))
            .literal_separator(true)
            .build();
        let glob = glob.map_err(|e| format!("`{pattern}` is not a valid pattern: {}", e.kind()))?;
        Ok(Pattern {
            plain,
            matcher: Some(glob.compile_matcher()),
        })
    }

    /// The folder of the pattern's files, up to the first component with a wildcard.
    pub(super) fn base(&self) -> PathBuf {
        match self.matcher {
            Some(_) => self.plain.clone(),
            None => self
                .plain
                .parent()
                .map(Path::to_path_buf)
                .unwrap_or_default(),
        }
    }

    /// The files below `folder` that match, as relative paths with `/`, sorted. `skip` leaves folders out.
    pub(super) fn files(&self, folder: &Path, skip: impl Fn(&Path) -> bool) -> Vec<String> {
        sorted(
            self.matching(folder, skip)
                .into_iter()
                .filter(|path| folder.join(path).is_file()),
        )
    }

    fn matching(&self, folder: &Path, skip: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let base = folder.join(&self.plain);
        let Some(matcher) = &self.matcher else {
            let is_there = base.symlink_metadata().is_ok_and(|found| !found.is_dir());
            return is_there.then(|| self.plain.clone()).into_iter().collect();
        };
        let walk = WalkDir::new(&base).follow_links(true).into_iter();
        let walk = walk.filter_entry(|entry| {
            entry.depth() == 0 || !(is_derived(entry.file_name()) || skip(entry.path()))
        });
        let below = |path: &Path| path.strip_prefix(&base).map(Path::to_path_buf).ok();
        let matching = walk.filter_map(|entry| match entry {
            Ok(entry) if entry.file_type().is_dir() => None,
            Ok(entry) => below(entry.path()).filter(|path| matcher.is_match(path)),
            Err(error) => {
                let path = error.path()?;
                below(path).filter(|below| matcher.is_match(below) || path.is_dir())
            }
        });
        matching.map(|path| self.plain.join(path)).collect()
    }
}

/// Whether a part of a pattern has no wildcard.
fn is_plain(part: &Component<'_>) -> bool {
    !part
        .as_os_str()
        .to_string_lossy()
        .contains(['*', '?', '[', '{'])
}

/// Relative paths with `/`, sorted.
fn sorted(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let mut paths: Vec<String> = paths.map(|path| shown(&path)).collect();
    paths.sort();
    paths
}

/// Whether a folder is written by tools: its content says nothing about a program.
fn is_derived(name: &std::ffi::OsStr) -> bool {
    name == ".git" || name == "__pycache__"
}

/// A relative path with `/`, without `.` parts.
pub(super) fn shown(path: &Path) -> String {
    let parts = path
        .components()
        .filter(|part| !matches!(part, Component::CurDir));
    parts
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::File::create(path).expect("a file");
        }
        folder
    }

    fn matches(pattern: &str, folder: &Path) -> Vec<String> {
        Pattern::new(pattern)
            .expect("a pattern")
            .files(folder, |path| path.ends_with("cache"))
    }

    #[test]
    fn patterns_find_sorted_relative_paths() {
        let files = [
            "b.py",
            "agent/z.py",
            "agent/a/x.py",
            "agent/a/x.txt",
            "agent/__pycache__/x.py",
            "cache/c.py",
        ];
        let folder = folder(&files);
        assert_eq!(
            matches("agent/**/*.py", folder.path()),
            ["agent/a/x.py", "agent/z.py"]
        );
        assert_eq!(
            matches("**/*.py", folder.path()),
            ["agent/a/x.py", "agent/z.py", "b.py"]
        );
        assert_eq!(matches("./b.py", folder.path()), ["b.py"]);
        assert_eq!(matches("*.py", folder.path()), ["b.py"]);
        assert_eq!(matches("../*/b.py", &folder.path().join("agent")).len(), 0);
        assert_eq!(
            matches("../b.py", &folder.path().join("agent")),
            ["../b.py"]
        );
        assert!(Pattern::new("/etc/*").is_err() && Pattern::new("a[").is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_resolved_confines_and_is_an_error() {
        let outside = folder(&["secret.md"]);
        let mut reader = SourceReader::new(outside.path().join("missing"));
        assert!(
            !reader.is_out_of_bounds(Path::new("../secret.md")),
            "not confined yet"
        );
        assert_eq!(reader.confine(), Err("there is no such file".to_owned()));
        assert!(reader.is_out_of_bounds(Path::new("../secret.md")));
    }

    #[test]
    fn the_pipeline_is_found_in_a_folder_above() {
        let folder = folder(&["pipeline.toml", "a/b/c.txt"]);
        let found = find_pipeline(&folder.path().join("a/b"), None).expect("found");
        assert_eq!(found, folder.path().join("pipeline.toml"));
        let missing =
            find_pipeline(folder.path(), Some(Path::new("other.toml"))).expect_err("missing");
        assert_eq!(missing.to_string(), "there is no file other.toml");
        let a_folder = find_pipeline(folder.path(), Some(Path::new("a"))).expect_err("a folder");
        assert_eq!(a_folder.to_string(), "a is a folder");
    }
}
