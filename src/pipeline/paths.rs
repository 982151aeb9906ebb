//! Paths of a project and its shared cache: all that is known without validating any file but the pipeline.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::file::tables::{self, CacheTable, Declared, PipelineTable};
use super::file::value;
use super::fixtures::fixture_files;
use super::model::SourceFile;
use super::problem::{Problem, Problems};
use super::providers::{Environment, key_variables};
use super::secrets::mask_secrets;
use super::sources::{SourceReader, out_of_bounds};
use base::guarded::check_tree;
use base::locale::Locale;
use models::ApiKeyVariable;
use store::remote::{DeclaredRemote, RemoteUrl};

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

    /// A path as people are shown it: relative to the project's folder if it lies in it, with `/`.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder)
            .map_or_else(|_| path.display().to_string(), super::sources::shown)
    }
}

/// The language that the pipeline in `file` declares, also where the project cannot be opened.
pub fn declared_locale(file: &Path, profile: Option<&str>) -> Option<Locale> {
    let (_, _, declared) = read_pipeline(file, profile, &mut Problems::default())?;
    value(&PipelineTable::of(&declared.pipeline).locale)
}

/// Finds the paths that the pipeline in `file` names. Only the file itself must be readable.
pub fn project_paths(
    file: &Path,
    profile: Option<&str>,
    environment: &Environment<'_>,
) -> Result<ProjectPaths, Problems> {
    let mut problems = Problems::default();
    let Some((reader, source, declared)) = read_pipeline(file, profile, &mut problems) else {
        return Err(problems);
    };
    let remote = declared_remote(&declared, &source, &mut problems);
    let root = reader.folder().to_path_buf();
    let [results, cache, probes] = folders(&declared, &source, environment, &root, &mut problems);
    if problems.errors() > 0 {
        return Err(problems);
    }
    let written = PipelineTable::of(&declared.pipeline).fixtures.as_ref();
    // Opening the project reports faults in single files.
    let mut ignored = Problems::default();
    let files = fixture_files(&reader, &source, written, &mut ignored);
    let fixtures = root.join(written.map_or("fixtures", |folder| &folder.value));
    let keys = key_variables(declared.providers.as_ref().map(|table| &table.value)).collect();
    Ok(ProjectPaths {
        folder: root,
        fixtures,
        files,
        probes,
        results,
        cache,
        remote,
        keys,
    })
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
    let read = reader.read(&name);
    let read = read.map_err(|why| {
        problems.push(Problem::error(format!(
            "cannot read {}: {why}",
            path.display()
        )))
    });
    // From here on, no secret that someone wrote into the file can be shown or kept.
    let file = mask_secrets(&read.ok()?);
    reader.replace(file.clone());
    let declared = tables::read(&file, profile, problems)?;
    confine(&declared, &mut reader, &file, problems);
    Some((reader, file, declared))
}

/// Results, cache and probes; `COMPEVAL_CACHE` moves the cache. Links and special files in results and cache are
/// problems: they may come with the project, and lead anywhere.
pub(super) fn folders(
    declared: &Declared,
    file: &SourceFile,
    environment: &Environment<'_>,
    root: &Path,
    problems: &mut Problems,
) -> [PathBuf; 3] {
    let [results, cache, probes] = declared_folders(declared);
    let moved = environment("COMPEVAL_CACHE").filter(|path| !path.is_empty());
    let moved =
        moved.map(|path| std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path)));
    let own_cache = moved.is_none().then_some(cache);
    for (folder, place) in [Some(results), own_cache].into_iter().flatten() {
        if let Err(error) = check_tree(&root.join(folder)) {
            let why =
                std::error::Error::source(&error).map_or(String::new(), |why| format!(": {why}"));
            let problem = Problem::error(format!("{error}{why}"));
            problems.push(problem.at_known(file, place.cloned()));
        }
    }
    [
        root.join(results.0),
        moved.unwrap_or_else(|| root.join(cache.0)),
        root.join(probes.0),
    ]
}

/// The folders of results, cache and probes as the file declares them, each with its place there, or the usual ones.
fn declared_folders(declared: &Declared) -> [(&Path, Option<&Range<usize>>); 3] {
    let table = PipelineTable::of(&declared.pipeline);
    [
        (&table.results, "results"),
        (&table.cache, "cache"),
        (&table.probes, "probes"),
    ]
    .map(|(written, usual)| match written {
        Some(folder) => (Path::new(&folder.value), Some(&folder.place)),
        None => (Path::new(usual), None),
    })
}

/// Refuses declared folders outside of the project, and has `reader` refuse files there, unless the project says
/// `allow_outside`. The cache that `COMPEVAL_CACHE` names is the user's choice, not the project's.
fn confine(
    declared: &Declared,
    reader: &mut SourceReader,
    file: &SourceFile,
    problems: &mut Problems,
) {
    let table = PipelineTable::of(&declared.pipeline);
    if value(&table.allow_outside).unwrap_or(false) {
        return;
    }
    if let Err(why) = reader.confine() {
        let folder = reader.folder().display();
        let message = format!("cannot resolve the project's folder {folder}: {why}");
        let help = "so nothing keeps the project from reading other files; allow_outside = true under [pipeline] permits that";
        problems.push(Problem::error(message).help(help));
        return;
    }
    // A folder that is not declared may be a link that leads out.
    let mut folders: Vec<(PathBuf, Option<&Range<usize>>)> = declared_folders(declared)
        .into_iter()
        .map(|(folder, place)| (folder.to_path_buf(), place))
        .collect();
    let fixtures = table.fixtures.as_ref();
    folders.push((
        fixtures.map_or("fixtures", |folder| &folder.value).into(),
        fixtures.map(|folder| &folder.place),
    ));
    for (folder, place) in folders
        .into_iter()
        .filter(|(folder, _)| reader.is_out_of_bounds(folder))
    {
        let problem = Problem::error(format!(
            "`{}` cannot be used: {}",
            folder.display(),
            out_of_bounds()
        ));
        problems.push(problem.at_known(file, place.cloned()));
    }
}

/// What the pipeline says about a remote cache.
pub(super) fn declared_remote(
    declared: &Declared,
    file: &SourceFile,
    problems: &mut Problems,
) -> DeclaredRemote {
    let table = CacheTable::of(&declared.cache);
    let url = table.remote.as_ref().and_then(|url| {
        let parsed = url.value.parse::<RemoteUrl>();
        if let Err(why) = &parsed {
            let problem = Problem::error(why.to_string()).at(file, url.place.clone());
            problems.push(problem.help("docs/shared-cache.md has examples"));
        }
        parsed.ok()
    });
    DeclaredRemote {
        url,
        mode: value(&table.remote_mode),
    }
}
