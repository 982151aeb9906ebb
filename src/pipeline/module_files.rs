//! The files of the modules that programs load, as they are on disk. A run hashes each file once, when it is first asked
//! for, so that all lookups and outputs of the run use one version of it. A file that changes meanwhile is an error.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::action::{ActionKey, Digest, LoadedModules, SourceRef, Sources, package_input};
use crate::compress::{CommandSpec, ListedModules};

/// The largest file of a module, in bytes.
const LARGEST: u64 = 64 << 20;

/// Why the modules that a program lists cannot be inputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleFault {
    /// The output is of another version of the file than the run's, or of two; it must not be stored.
    #[error(
        "`{_0}` was changed after the run had read it or the program had started: this output is used for nothing and not \
         stored, and this method makes no more in this run; run again"
    )]
    Changed(String),
    #[error(
        "the program has loaded `{_0}`, which is neither below the folder of the pipeline nor below one of `module_roots`: \
         add its folder there, as in module_roots = [\"../my-agent\"]"
    )]
    Outside(String),
    #[error(
        "the program says that it has loaded `{path}`, which cannot be read: {why}; it has to list files that stay where they are"
    )]
    Unreadable { path: String, why: String },
}

/// What a run knows of the files that programs load. All users of a pipeline share it.
#[derive(Debug, Default)]
pub struct ModuleFiles {
    /// The files by path; `None` for one that could not be read.
    seen: Mutex<HashMap<PathBuf, Option<SeenFile>>>,
    /// The fault of each program of which a file has changed since, by the program's arguments.
    changed: Mutex<HashMap<Vec<String>, ModuleFault>>,
    /// Keys of outputs in the cache by the key of their declared inputs; `None` before the cache was searched.
    outputs: Mutex<Option<HashMap<ActionKey, Vec<ActionKey>>>>,
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenFile {
    digest: Digest,
    stamp: Stamp,
}

/// Size and time of a file, which change when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    /// When the metadata changed, which nobody can set back or ahead; when the content changed, where the system does not
    /// report that.
    written: SystemTime,
}

impl ModuleFiles {
    /// The digest of a file, by its path relative to `folder`, as the file was when it was first asked for; `None` if it
    /// could not be read.
    pub fn digest(&self, folder: &Path, path: &str) -> Option<Digest> {
        let file = folder.join(path);
        let mut seen = lock(&self.seen);
        let found = seen.entry(file).or_insert_with_key(|file| read(file).ok());
        found.as_ref().map(|found| found.digest)
    }

    /// The paths of all files that were asked for, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = lock(&self.seen).keys().cloned().collect();
        paths.sort();
        paths
    }

    /// The version that the file of a package says now; `None` if it says none. It explains a change.
    pub fn package_version(&self, folder: &Path, path: &str) -> Option<String> {
        version_in(&String::from_utf8_lossy(&fs::read(folder.join(path)).ok()?))
    }

    /// Turns what a program listed into inputs, and into sources: the files with the versions of packages, which show
    /// later whether these are still the same. The program was started at `started`.
    ///
    /// # Errors
    /// A file is gone, cannot be read, lies outside the folders, or was written after the run first read it or after the
    /// program started. After a change, later outputs of the program are refused, too ([`ModuleFiles::check`]).
    pub fn make_inputs(
        &self,
        spec: &CommandSpec,
        listed: &ListedModules,
        started: SystemTime,
    ) -> Result<(LoadedModules, Sources), ModuleFault> {
        let made = self.make_unchanged_inputs(spec, listed, started);
        if let Err(fault @ ModuleFault::Changed(_)) = &made {
            lock(&self.changed).insert(spec.argv.clone(), fault.clone());
        }
        made
    }

    /// Checks that outputs of a program can still be stored in this run.
    ///
    /// # Errors
    /// A file of the program has changed.
    pub fn check(&self, spec: &CommandSpec) -> Result<(), ModuleFault> {
        lock(&self.changed)
            .get(&spec.argv)
            .cloned()
            .map_or(Ok(()), Err)
    }

    fn make_unchanged_inputs(
        &self,
        spec: &CommandSpec,
        listed: &ListedModules,
        started: SystemTime,
    ) -> Result<(LoadedModules, Sources), ModuleFault> {
        let (mut modules, mut sources) = (LoadedModules::default(), Sources::default());
        let roots = Root::all(spec);
        for path in &listed.modules {
            let name = locate(spec, &roots, path)?;
            let digest = self.digest_unchanged(&spec.folder.join(&name), &name, started)?;
            modules.files.push((name, digest));
        }
        modules.files.sort();
        modules.files.dedup();
        let mut packages = listed.packages.clone();
        packages.sort();
        packages.dedup();
        for (at, package) in packages.iter().enumerate() {
            let alike = packages
                .get(..at)
                .unwrap_or_default()
                .iter()
                .filter(|other| other.name == package.name)
                .count();
            // Node may load two versions of one package.
            let name = if alike == 0 {
                package.name.clone()
            } else {
                format!("{} ({})", package.name, alike + 1)
            };
            let path = package_path(spec, &package.path);
            let digest = self.digest_unchanged(&spec.folder.join(&path), &path, started)?;
            sources.0.insert(
                package_input(&name).into(),
                SourceRef {
                    digest,
                    path: Some(path),
                },
            );
            modules.packages.push((name, package.version.clone()));
        }
        Ok((modules, sources))
    }

    /// The digest of a file, unless the file has changed.
    fn digest_unchanged(
        &self,
        file: &Path,
        name: &str,
        started: SystemTime,
    ) -> Result<Digest, ModuleFault> {
        let stamp = Stamp::read(file).map_err(|error| unreadable(name, &error))?;
        // The program may have loaded a version that has been undone since.
        if stamp.written >= started {
            return Err(ModuleFault::Changed(name.to_owned()));
        }
        let mut seen = lock(&self.seen);
        let before = seen.get(file).and_then(Option::as_ref);
        if let Some(before) = before.filter(|before| before.stamp == stamp) {
            return Ok(before.digest);
        }
        let now = read(file).map_err(|error| unreadable(name, &error))?;
        let after = Stamp::read(file).map_err(|error| unreadable(name, &error))?;
        if now.stamp != stamp
            || after != stamp
            || before.is_some_and(|before| before.digest != now.digest)
        {
            return Err(ModuleFault::Changed(name.to_owned()));
        }
        let digest = now.digest;
        seen.insert(file.to_path_buf(), Some(now));
        Ok(digest)
    }

    /// The keys of the outputs in the cache that were made of the declared inputs, the oldest first. `scan` finds the keys
    /// for all declared inputs; only the first call needs it.
    pub fn outputs(
        &self,
        declared: &ActionKey,
        scan: impl FnOnce() -> HashMap<ActionKey, Vec<ActionKey>>,
    ) -> Vec<ActionKey> {
        let mut outputs = lock(&self.outputs);
        outputs
            .get_or_insert_with(scan)
            .get(declared)
            .cloned()
            .unwrap_or_default()
    }

    /// Adds an output that was just stored. One without modules, which has the key of its declared inputs, is left out.
    pub fn note_output(&self, declared: ActionKey, key: ActionKey) {
        if declared == key {
            return;
        }
        if let Some(outputs) = lock(&self.outputs).as_mut() {
            let known = outputs.entry(declared).or_default();
            known.retain(|other| *other != key);
            known.push(key);
        }
    }
}

impl Stamp {
    fn read(file: &Path) -> io::Result<Stamp> {
        let metadata = fs::metadata(file)?;
        if !metadata.is_file() {
            let what = "it is no regular file".to_owned();
            return Err(io::Error::other(what));
        }
        if metadata.len() > LARGEST {
            let what = format!("it has over {} MiB", LARGEST >> 20);
            return Err(io::Error::other(what));
        }
        let modified = metadata.modified()?;
        Ok(Stamp {
            bytes: metadata.len(),
            written: changed(&metadata).unwrap_or(modified),
        })
    }
}

/// When the metadata of a file last changed, as it does with the content; `None` if the system does not say it.
#[cfg(unix)]
fn changed(metadata: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(metadata.ctime())
        .ok()
        .filter(|seconds| *seconds > 0)?;
    let since = std::time::Duration::new(seconds, u32::try_from(metadata.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> Option<SystemTime> {
    None
}

fn read(file: &Path) -> io::Result<SeenFile> {
    let stamp = Stamp::read(file)?;
    Ok(SeenFile {
        digest: Digest::hash(fs::read(file)?),
        stamp,
    })
}

fn unreadable(path: &str, error: &io::Error) -> ModuleFault {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
    };
    ModuleFault::Unreadable {
        path: path.to_owned(),
        why,
    }
}

/// A folder that modules may lie in.
struct Root<'s> {
    /// The beginning of paths in this folder; empty for the folder of the pipeline.
    name: &'s str,
    folder: PathBuf,
    /// The folder with links resolved.
    real: PathBuf,
}

impl<'s> Root<'s> {
    /// The folders that exist, the pipeline's first.
    fn all(spec: &'s CommandSpec) -> Vec<Root<'s>> {
        let declared = spec.module_roots.iter().flatten().map(String::as_str);
        let folders = std::iter::once("")
            .chain(declared)
            .map(|name| (name, normalized(&spec.folder.join(name))));
        folders
            .filter_map(|(name, folder)| {
                Some(Root {
                    name,
                    real: folder.canonicalize().ok()?,
                    folder,
                })
            })
            .collect()
    }

    /// The path, relative to the folder of the pipeline, of a file in this folder.
    fn path_of(&self, file: &Path) -> Option<String> {
        let below = file
            .strip_prefix(&self.folder)
            .or_else(|_| file.strip_prefix(&self.real))
            .ok()?;
        let below = below.to_string_lossy().replace('\\', "/");
        Some(if self.name.is_empty() {
            below
        } else {
            format!("{}/{below}", self.name)
        })
    }
}

/// The path of a module relative to the folder of the pipeline. A link keeps its own name, because it may lead to another
/// file later.
fn locate(spec: &CommandSpec, roots: &[Root<'_>], path: &str) -> Result<String, ModuleFault> {
    let file = normalized(&spec.folder.join(path));
    let real = file
        .canonicalize()
        .map_err(|error| unreadable(path, &error))?;
    let is_inside = roots.iter().any(|root| real.starts_with(&root.real));
    let named = roots.iter().find_map(|root| root.path_of(&file));
    named
        .filter(|_| is_inside)
        .ok_or_else(|| ModuleFault::Outside(path.to_owned()))
}

/// The path of the file that says the version of a package; relative to the folder of the pipeline if it lies in there.
fn package_path(spec: &CommandSpec, path: &str) -> String {
    let file = normalized(&spec.folder.join(path));
    file.strip_prefix(&spec.folder)
        .unwrap_or(&file)
        .to_string_lossy()
        .replace('\\', "/")
}

/// A path without `.` and `..`. Links are not looked at.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normalized.pop()),
            other => normalized.push(other),
        }
    }
    normalized
}

/// The version in the metadata of a Python package or in a `package.json`.
fn version_in(text: &str) -> Option<String> {
    if let Ok(package) = serde_json::from_str::<serde_json::Value>(text) {
        return package.get("version")?.as_str().map(str::to_owned);
    }
    let mut fields = text.lines().take_while(|line| !line.is_empty());
    fields
        .find_map(|line| line.strip_prefix("Version:"))
        .map(|version| version.trim().to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compress::{ListedPackage, Protocol};

    fn spec(folder: &Path, roots: &[&str]) -> CommandSpec {
        CommandSpec {
            argv: vec!["python3".into()],
            model: None,
            folder: folder.to_path_buf(),
            files: Vec::new(),
            environment: Vec::new(),
            secrets: Vec::new(),
            identity: None,
            module_roots: Some(roots.iter().map(|root| (*root).to_owned()).collect()),
            protocol: Protocol::default(),
            deterministic: true,
            timeout: Duration::from_secs(1),
        }
    }

    fn modules(paths: &[&str]) -> ListedModules {
        ListedModules {
            modules: paths.iter().map(|path| (*path).to_owned()).collect(),
            packages: Vec::new(),
        }
    }

    fn write(path: &Path, text: &str) {
        use std::io::Write;
        fs::File::create(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .unwrap();
    }

    /// A project beside another folder, with a file in each.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let all = tempfile::tempdir().unwrap();
        for (folder, file) in [("p", "a.py"), ("agent", "b.py")] {
            fs::DirBuilder::new()
                .create(all.path().join(folder))
                .unwrap();
            write(&all.path().join(folder).join(file), "1");
        }
        let project = all.path().join("p");
        (all, project)
    }

    fn package(version: &str, path: &str) -> ListedPackage {
        ListedPackage {
            name: "n".to_owned(),
            version: version.to_owned(),
            path: path.to_owned(),
        }
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(60)
    }

    #[test]
    fn paths_are_named_by_their_roots_and_nothing_outside_is_taken() {
        let (_all, project) = place();
        let files = ModuleFiles::default();
        let absolute = project.join("a.py");
        let listed = modules(&[absolute.to_str().unwrap(), "./a.py", "../agent/b.py"]);
        let (taken, _) = files
            .make_inputs(&spec(&project, &["../agent"]), &listed, later())
            .unwrap();
        let names: Vec<&str> = taken.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["../agent/b.py", "a.py"]);
        let outside =
            files.make_inputs(&spec(&project, &[]), &modules(&["../agent/b.py"]), later());
        assert_eq!(
            outside,
            Err(ModuleFault::Outside("../agent/b.py".to_owned()))
        );
        let gone = files
            .make_inputs(&spec(&project, &[]), &modules(&["gone.py"]), later())
            .unwrap_err();
        assert!(matches!(gone, ModuleFault::Unreadable { .. }), "{gone}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_its_name_and_does_not_lead_outside() {
        let (_all, project) = place();
        std::os::unix::fs::symlink("a.py", project.join("link.py")).unwrap();
        std::os::unix::fs::symlink("../agent/b.py", project.join("away.py")).unwrap();
        let files = ModuleFiles::default();
        let (taken, _) = files
            .make_inputs(&spec(&project, &[]), &modules(&["link.py"]), later())
            .unwrap();
        assert_eq!(taken.files[0].0, "link.py");
        let away = files.make_inputs(&spec(&project, &[]), &modules(&["away.py"]), later());
        assert_eq!(away, Err(ModuleFault::Outside("away.py".to_owned())));
    }

    #[test]
    fn a_file_that_changed_after_the_start_or_after_the_run_read_it_is_refused_from_then_on() {
        let (_all, project) = place();
        let (files, spec, listed) = (
            ModuleFiles::default(),
            spec(&project, &[]),
            modules(&["a.py"]),
        );
        let before = SystemTime::now() - Duration::from_secs(60);
        let changed = Err(ModuleFault::Changed("a.py".to_owned()));
        assert_eq!(
            files.make_inputs(&spec, &listed, before),
            changed,
            "written after the program started"
        );
        assert!(files.check(&spec).is_err());
        let files = ModuleFiles::default();
        let digest = files.digest(&project, "a.py").unwrap();
        assert_eq!(
            files.make_inputs(&spec, &listed, later()).unwrap().0.files,
            [("a.py".to_owned(), digest)]
        );
        write(&project.join("a.py"), "22");
        assert_eq!(
            files.digest(&project, "a.py"),
            Some(digest),
            "hashed once a run"
        );
        assert_eq!(files.make_inputs(&spec, &listed, later()), changed);
    }

    #[test]
    fn packages_have_the_file_of_their_version_and_one_name_each() {
        let (_all, project) = place();
        write(
            &project.join("METADATA"),
            "Metadata-Version: 2.1\nName: n\nVersion: 2.0\n\nVersion: 9",
        );
        write(
            &project.join("package.json"),
            "{\"name\":\"n\",\"version\":\"3.0\"}",
        );
        let packages = vec![
            package("3.0", "package.json"),
            package("2.0", "METADATA"),
            package("2.0", "METADATA"),
        ];
        let listed = ListedModules {
            packages,
            ..modules(&["a.py"])
        };
        let (taken, _) = ModuleFiles::default()
            .make_inputs(&spec(&project, &[]), &listed, later())
            .unwrap();
        let named = [
            ("n".to_owned(), "2.0".to_owned()),
            ("n (2)".to_owned(), "3.0".to_owned()),
        ];
        assert_eq!(taken.packages, named);
        let versions = ["METADATA", "package.json"]
            .map(|path| ModuleFiles::default().package_version(&project, path));
        assert_eq!(versions, [Some("2.0".to_owned()), Some("3.0".to_owned())]);
    }
}
