//! Where the files of a project lie, whether or not anything in them is sound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{self, Declared, Paths, Placed};
use super::fixtures::{Demands, Shelves};
use super::problem::{Problem, Problems};
use super::providers::Environment;
use super::secrets::without_secrets;
use super::sources::{Library, Pattern};

/// The folders of a project and its fixture files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The folder of `pipeline.toml`, absolute.
    pub folder: PathBuf,
    /// The folder that new fixtures go to, absolute; it need not exist.
    pub fixtures: PathBuf,
    /// The fixture files by name, relative to the folder, with `/`.
    pub files: BTreeMap<String, String>,
    /// Where probe banks lie, absolute.
    pub probes: PathBuf,
    /// Where result sets go, absolute.
    pub results: PathBuf,
    /// Where the store lies, absolute.
    pub cache: PathBuf,
}

impl Places {
    /// The bank file of a fixture, absolute, whether or not it exists.
    pub fn bank_of(&self, name: &str) -> PathBuf {
        self.probes.join(format!("{name}{}", super::fixtures::BANK))
    }

    /// A path below the folder as people are shown it: relative to it, with `/`.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).map_or_else(|_| path.display().to_string(), super::sources::shown)
    }
}

/// Finds the places that the pipeline in `file` names. Only the file itself must be readable.
///
/// # Errors
/// A pipeline that is no TOML, or has keys that nobody knows.
pub fn places(file: &Path, profile: Option<&str>, environment: &dyn Environment) -> Result<Places, Problems> {
    let root = file.parent().unwrap_or(Path::new(".")).to_path_buf();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let library = Library::new(root.clone());
    let read = library.read_apart(&name);
    let source = without_secrets(
        &read.map_err(|why| Problems(vec![Problem::error(format!("cannot read {}: {why}", file.display()))]))?,
    );
    let mut problems = Problems::default();
    let Some(declared) = file::read(&source, profile, &mut problems) else { return Err(problems) };
    let [results, cache, probes] = folders(&declared, environment, &root);
    let written = declared.pipeline.as_ref().and_then(|table| table.value.fixtures.as_ref());
    // What is wrong with single files is not asked here: whoever opens the project is told.
    let mut ignored = Problems::default();
    let (demands, problems) = (Demands::default(), &mut ignored);
    let mut shelves = Shelves { file: &source, library: &library, fixtures: written, probes: None, demands, problems };
    let files = shelves.fixture_files();
    let fixtures = root.join(fixture_folder(written.map(|placed| &placed.value)));
    Ok(Places { folder: root, fixtures, files, probes, results, cache })
}

fn fixture_folder(paths: Option<&Paths>) -> PathBuf {
    match paths {
        Some(Paths::Folder(folder)) => PathBuf::from(folder),
        Some(Paths::Globs(globs)) => {
            globs.iter().find_map(|glob| Some(Pattern::new(&glob.value).ok()?.base())).unwrap_or_default()
        }
        None => PathBuf::from("fixtures"),
    }
}

/// Results, cache and probes; `COMPEVAL_CACHE` moves the cache.
pub(super) fn folders(declared: &Declared, environment: &dyn Environment, root: &Path) -> [PathBuf; 3] {
    let table = declared.pipeline.as_ref().map(|table| &table.value);
    let folder = |written: Option<&Option<Placed<String>>>, default: &str| {
        root.join(written.and_then(Option::as_ref).map_or(default, |placed| &placed.value))
    };
    let moved = environment.var("COMPEVAL_CACHE").filter(|path| !path.is_empty());
    let moved = moved.map(|path| std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path)));
    [
        folder(table.map(|t| &t.results), "results"),
        moved.unwrap_or_else(|| folder(table.map(|t| &t.cache), "cache")),
        folder(table.map(|t| &t.probes), "probes"),
    ]
}
