//! Paths of a project, found without validating any file but the pipeline.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::Located;
use super::file::tables::{self, Declared, FixturePaths, PipelineTable};
use super::fixtures::{FixtureChecks, FixtureLoader};
use super::model::SourceFile;
use super::problem::{Problem, Problems};
use super::providers::{Environment, key_variables};
use super::remote::declared_remote;
use super::secrets::mask_secrets;
use super::sources::{OUT_OF_BOUNDS, Pattern, SourceReader};
use models::ApiKeyVariable;
use store::remote::DeclaredRemote;

/// The folders of a project and its fixture files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPaths {
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
    /// The cache that several machines share, as the file declares it.
    pub remote: DeclaredRemote,
    /// The variables that contain keys of providers.
    pub keys: Vec<ApiKeyVariable>,
}

impl ProjectPaths {
    /// The bank file of a fixture, absolute, whether or not it exists.
    pub fn bank_of(&self, name: &str) -> PathBuf {
        self.probes.join(format!("{name}{}", super::fixtures::BANK))
    }

    /// A path below the folder as people are shown it: relative to it, with `/`.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).map_or_else(|_| path.display().to_string(), super::sources::shown)
    }
}

/// Finds the paths that the pipeline in `file` names. Only the file itself must be readable.
pub fn project_paths(
    file: &Path,
    profile: Option<&str>,
    environment: &Environment<'_>,
) -> Result<ProjectPaths, Problems> {
    let mut problems = Problems::default();
    let Some((reader, source, declared)) = read_pipeline(file, profile, &mut problems) else { return Err(problems) };
    let remote = declared_remote(&declared, &source, &mut problems);
    if problems.errors() > 0 {
        return Err(problems);
    }
    let root = reader.folder().to_path_buf();
    let [results, cache, probes] = folders(&declared, environment, &root);
    let written = declared.pipeline.as_ref().and_then(|table| table.value.fixtures.as_ref());
    // Opening the project reports faults in single files.
    let mut ignored = Problems::default();
    let (checks, problems) = (FixtureChecks::default(), &mut ignored);
    let mut fixture_loader =
        FixtureLoader { file: &source, reader: &reader, fixtures: written, probes: None, checks, problems };
    let files = fixture_loader.fixture_files();
    let fixtures = root.join(fixture_folder(written.map(|placed| &placed.value)));
    let keys = key_variables(declared.providers.as_ref().map(|table| &table.value)).collect();
    Ok(ProjectPaths { folder: root, fixtures, files, probes, results, cache, remote, keys })
}

/// Reads the pipeline's file and what it declares; `None` if that is impossible. The reader of its other files is returned
/// with it.
pub(super) fn read_pipeline(
    path: &Path,
    profile: Option<&str>,
    problems: &mut Problems,
) -> Option<(SourceReader, SourceFile, Declared)> {
    let mut reader = SourceReader::new(path.parent().unwrap_or(Path::new(".")).to_path_buf());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unreadable = |why| problems.push(Problem::error(format!("cannot read {}: {why}", path.display())));
    // Whatever is shown or kept of the file from here on shows no secret that someone wrote into it.
    let file = mask_secrets(&reader.read(&name).map_err(unreadable).ok()?);
    reader.replace(file.clone());
    let declared = tables::read(&file, profile, problems)?;
    confine(&declared, &mut reader, &file, problems);
    Some((reader, file, declared))
}

fn fixture_folder(paths: Option<&FixturePaths>) -> PathBuf {
    match paths {
        Some(FixturePaths::Folder(folder)) => PathBuf::from(folder),
        Some(FixturePaths::Globs(globs)) => {
            globs.iter().find_map(|glob| Some(Pattern::new(&glob.value).ok()?.base())).unwrap_or_default()
        }
        None => PathBuf::from("fixtures"),
    }
}

/// Results, cache and probes; `COMPEVAL_CACHE` moves the cache.
pub(super) fn folders(declared: &Declared, environment: &Environment<'_>, root: &Path) -> [PathBuf; 3] {
    let table = declared.pipeline.as_ref().map(|table| &table.value);
    let folder = |written: Option<&Option<Located<String>>>, default: &str| {
        root.join(written.and_then(Option::as_ref).map_or(default, |placed| &placed.value))
    };
    let moved = environment("COMPEVAL_CACHE").filter(|path| !path.is_empty());
    let moved = moved.map(|path| std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path)));
    [
        folder(table.map(|t| &t.results), "results"),
        moved.unwrap_or_else(|| folder(table.map(|t| &t.cache), "cache")),
        folder(table.map(|t| &t.probes), "probes"),
    ]
}

/// Unless the project says `allow_outside`: refuses declared folders outside of its own, and has `reader` refuse files.
/// The cache that `COMPEVAL_CACHE` names is the user's choice, not the project's.
fn confine(declared: &Declared, reader: &mut SourceReader, file: &SourceFile, problems: &mut Problems) {
    let table = declared.pipeline.as_ref().map(|table| &table.value);
    if table.and_then(|table| table.allow_outside.as_ref()).is_some_and(|allowed| allowed.value) {
        return;
    }
    reader.confine();
    let mut folders: Vec<(PathBuf, Option<&std::ops::Range<usize>>)> = Vec::new();
    // A folder that is not declared may be a link that leads out.
    let named = |field: fn(&PipelineTable) -> &Option<Located<String>>, default: &str| match table.map(field) {
        Some(Some(folder)) => (PathBuf::from(&folder.value), Some(&folder.place)),
        _ => (PathBuf::from(default), None),
    };
    folders.extend([named(|t| &t.results, "results"), named(|t| &t.cache, "cache"), named(|t| &t.probes, "probes")]);
    match table.and_then(|table| table.fixtures.as_ref()) {
        Some(Located { value: FixturePaths::Folder(folder), place, .. }) => folders.push((folder.into(), Some(place))),
        Some(Located { value: FixturePaths::Globs(globs), .. }) => {
            let base = |glob: &str| Some(Pattern::new(glob).ok()?.base());
            folders.extend(globs.iter().filter_map(|glob| Some((base(&glob.value)?, Some(&glob.place)))));
        }
        None => {}
    }
    for (folder, place) in folders.into_iter().filter(|(folder, _)| reader.is_out_of_bounds(folder)) {
        let problem = Problem::error(format!("`{}` cannot be used: {OUT_OF_BOUNDS}", folder.display()));
        problems.push(match place {
            Some(place) => problem.at(file, place.clone()),
            None => problem,
        });
    }
}
