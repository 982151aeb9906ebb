//! `compeval init`: writes a project that runs.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use serde_json::json;

use clap::Args;

use crate::cli::args::{Common, one_of};
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::folder;
use crate::cli::terminal::{Console, TextStyle, paint};
use crate::pipeline::{
    Adapter, PIPELINE_FILE, declares_method, in_language, list, starter_files, starter_pipeline,
};
use base::files::{read_text, write_whole};
use base::guarded::check_folders;
use base::locale::Locale;
use base::text::shell_word;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder of the new project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Leave out the sample session, which would count in the averages of your own
    #[arg(long)]
    pub(crate) empty: bool,
    /// Add a compressor of your own (python, node) or of an agent: its files below `compressors/`, its table in
    /// `pipeline.toml`; the project may exist
    #[arg(long, value_name = "NAME", value_parser = one_of(&Adapter::ALL, Adapter::name))]
    pub(crate) compressor: Option<Adapter>,
}

pub(crate) fn run(common: &Common, args: &InitArgs, console: &Console) -> Result<Exit, Failure> {
    let root = folder(common).join(&args.dir);
    let is_project = root.join(PIPELINE_FILE).is_file();
    let mut names = Vec::new();
    if args.compressor.is_none() || !is_project {
        let locale = common.locale.unwrap_or_default();
        names = write_starter(&root, args.empty, locale)?;
    }
    if let Some(adapter) = args.compressor {
        let added = add_compressor(&root, adapter)?;
        names.extend(
            added
                .into_iter()
                .filter(|name| is_project || name != PIPELINE_FILE),
        );
    }
    let place = place_flag(common, &args.dir);
    let import = format!("compeval{place} fixture import LOG…");
    let next = match args.compressor {
        Some(adapter) => format!("compeval{place} run --methods {adapter}"),
        None if args.empty => import.clone(),
        None => format!("compeval{place} run"),
    };
    console.json(&json!({ "folder": root.display().to_string(), "written": names, "next": next }));
    if !(console.is_json || console.is_quiet) {
        names
            .iter()
            .for_each(|name| console.print(&format!("wrote {}", shown(&root.join(name)))));
        print_next(args, &next, &import, console);
    }
    Ok(Exit::Done)
}

/// Writes the files of a new project, all or none. Returns their paths, from `root`.
pub(super) fn write_starter(
    root: &Path,
    is_empty: bool,
    locale: Locale,
) -> Result<Vec<String>, Failure> {
    let mut files = starter_files().to_vec();
    if is_empty {
        files.retain(|(path, _)| !SAMPLE_FOLDERS.iter().any(|folder| path.starts_with(folder)));
    }
    refuse_taken(root)?;
    let files = files.into_iter().map(|(path, text)| {
        let text = in_language(path, text, locale);
        let text = match path == PIPELINE_FILE {
            true => starter_pipeline(&text, random_seed(), !is_empty),
            false => text.into_owned(),
        };
        (path.to_owned(), text)
    });
    let names = write_all(root, files.collect())?;
    for folder in SAMPLE_FOLDERS {
        let path = root.join(folder);
        let made = std::fs::create_dir_all(&path);
        made.map_err(|error| {
            Failure::error(format!("{} cannot be created: {error}", shown(&path)))
        })?;
    }
    Ok(names)
}

/// The folders of the sample session. A project without it has them, too.
const SAMPLE_FOLDERS: [&str; 2] = ["fixtures", "probes"];

fn print_next(args: &InitArgs, next: &str, import: &str, console: &Console) {
    let [next, import] = [next, import].map(|command| paint(TextStyle::Hint, command));
    let text = match (args.compressor, args.empty) {
        (Some(adapter), _) => {
            format!("What it needs: compressors/{adapter}/README.md\nRun it: {next}")
        }
        (None, true) => format!("Import your own sessions: {import}"),
        (None, false) => {
            format!("Run it offline: {next}\nThen import your own sessions: {import}")
        }
    };
    console.print(&format!("\n{text}"));
}

/// An unpredictable number: the standard library seeds its hash maps with random numbers of the system.
fn random_seed() -> u64 {
    const BELOW: u64 = 1_000_000;
    RandomState::new().hash_one("selftest") % BELOW
}

/// Refuses to overwrite files.
fn refuse_taken(root: &Path) -> Result<(), Failure> {
    if root.exists() && !root.is_dir() {
        return Err(Failure::input(format!("{} is not a folder", shown(root)))
            .hinted("name a folder, or leave the argument out"));
    }
    for (path, _) in starter_files() {
        check_folders(root, Path::new(path))?;
    }
    let mut taken: Vec<&str> = starter_files().iter().map(|(path, _)| *path).collect();
    // A dangling link counts too, so its target is not checked.
    taken.retain(|path| root.join(path).symlink_metadata().is_ok());
    if taken.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} already contains {}; nothing was written",
        shown(root),
        list(taken)
    );
    Err(Failure::input(message).hinted("choose another folder: compeval init DIR"))
}

/// Writes these files, all or none: half a project is worse than none. Returns their paths, from `root`.
fn write_all(root: &Path, files: Vec<(String, String)>) -> Result<Vec<String>, Failure> {
    let mut written = Vec::new();
    for (path, text) in files {
        if let Err(error) = write_whole(&root.join(&path), text) {
            for path in written.iter().map(|path| root.join(path)) {
                if let Err(fault) = std::fs::remove_file(&path) {
                    tracing::warn!("{} could not be removed: {fault}", path.display());
                }
            }
            return Err(error.into());
        }
        written.push(path);
    }
    Ok(written)
}

/// The flag that leads to the project from the current folder.
fn place_flag(common: &Common, dir: &Path) -> String {
    match shown(&folder(common).join(dir)) {
        here if here == "." => String::new(),
        place => format!(" -C {}", shell_word(&place)),
    }
}

/// A path without `.` components; `.` for the current folder.
fn shown(path: &Path) -> String {
    let parts: PathBuf = path
        .components()
        .filter(|part| *part != std::path::Component::CurDir)
        .collect();
    if parts.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        parts.display().to_string()
    }
}

/// Writes the files of the adapter and adds its table to `pipeline.toml` of the project at `root`: all or nothing.
/// Returns the paths, from `root`, that were written.
fn add_compressor(root: &Path, adapter: Adapter) -> Result<Vec<String>, Failure> {
    let pipeline = root.join(PIPELINE_FILE);
    let text = read_text(&pipeline)?;
    if declares_method(&text, adapter.name()) {
        let message = format!(
            "{}: there is a method `{adapter}` already; nothing was written",
            shown(&pipeline)
        );
        return Err(Failure::input(message).hinted("rename that method, or use it"));
    }
    let mut files = missing_files(root, adapter)?;
    let extended = format!("{}\n{}", text.trim_end(), adapter.table());
    files.push((PIPELINE_FILE.to_owned(), extended));
    write_all(root, files)
}

/// The files of an adapter that are missing. A file that is there with another content is not overwritten.
fn missing_files(root: &Path, adapter: Adapter) -> Result<Vec<(String, String)>, Failure> {
    let mut missing = Vec::new();
    for (path, text) in adapter.files() {
        check_folders(root, Path::new(&path))?;
        let place = root.join(&path);
        if place.symlink_metadata().is_err() {
            missing.push((path, text));
        } else if read_text(&place).ok().as_ref() != Some(&text) {
            let message = format!(
                "{} exists with different content; nothing was written",
                shown(&place)
            );
            return Err(Failure::input(message).hinted("move it away, or use it as it is"));
        }
    }
    Ok(missing)
}
