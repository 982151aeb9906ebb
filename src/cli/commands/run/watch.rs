//! `run --watch`: runs again what an edit made stale, and prints what changed against the last run.
//!
//! Files are polled: a pipeline has few, a poll takes well under a millisecond, and it works on every file system, those
//! of containers and of remote machines included, where change notifications get lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::args::RunArgs;
use super::finish;
use super::once::conclude;
use crate::cli::args::{Common, SelectArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count};
use crate::cli::project::{ProjectOptions, label_of, limits_of, open_snapshot, read_project};
use crate::cli::screen::Screen;
use crate::cli::terminal::{Console, TextStyle};
use crate::compress::Strategy;
use crate::evaluation::{Event, Request, evaluate, text_edits_in};
use crate::pipeline::Pipeline;
use crate::results::{
    Comparison, ComparisonScope, ResultSet, Side, compare, open_results, summarize,
};

const POLL: Duration = Duration::from_millis(300);

/// Runs, waits for an edit, runs again, until Ctrl-C. All runs have one label and share the budget.
pub(super) fn watch(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let label = label_of(&args.select)?.to_string();
    let select = SelectArgs {
        label: Some(label.clone()),
        ..args.select.clone()
    };
    let mut args = RunArgs {
        select,
        ..args.clone()
    };
    let mut limits = limits_of(&args.budget)?;
    let mut pipeline = read_project(common, &args.select, ProjectOptions::default())?.pipeline;
    let mut files = WatchedFiles::default();
    files.follow(&pipeline);
    let mut last: Option<ResultSet> = None;
    loop {
        // Later runs show what changed; all methods are in the report.
        let summary = if last.is_some() {
            console.silenced()
        } else {
            *console
        };
        let mut screen = Screen::new(&summary);
        let ended = args.request(common, &screen, &summary).and_then(|request| {
            let outcome = evaluate(Request { limits, ..request }, &mut |event| {
                if let Event::Opened {
                    pipeline: opened, ..
                } = event
                {
                    pipeline = (*opened).clone();
                    files.follow(&pipeline);
                }
                screen.on_event(event);
            })?;
            let exit = outcome.ending.into();
            conclude(outcome, exit, common, &args, &summary)
        });
        limits = screen.left_of(limits);
        match ended {
            Ok(Exit::Interrupted) => return Ok(Exit::Interrupted),
            Ok(_) => last = print_round(&pipeline, &label, last, args.comparison.all, console),
            Err(failure) if last.is_none() => return Err(failure),
            Err(failure) => drop(failure.report(console)),
        }
        // The first run has replaced what it may replace; later runs replace each other.
        args.select.refresh.clear();
        args.replace = true;
        console.note(&console.labelled(
            TextStyle::Hint,
            "watching",
            format!(
                "{}; Ctrl-C ends it",
                count(files.seen.len() as u64, Noun::File)
            ),
        ));
        // The run has found out what programs load.
        files.follow(&pipeline);
        let edited = files.wait_for_edit(&pipeline.folder);
        console.note(&console.labelled(TextStyle::Strong, "edited:", edited.join(", ")));
    }
}

/// Prints what changed against the last results, on one screen or in every table, and returns those that the label has
/// now.
fn print_round(
    pipeline: &Pipeline,
    label: &str,
    last: Option<ResultSet>,
    all: bool,
    console: &Console,
) -> Option<ResultSet> {
    let read = open_results(&pipeline.results, label).map_err(Failure::from);
    let read = read.and_then(|folder| Ok((ResultSet::read(&folder)?, folder)));
    let (now, folder) = match read {
        Ok(read) => read,
        Err(failure) => {
            failure.report(console);
            return last;
        }
    };
    let Some(before) = last else { return Some(now) };
    if now.manifest.started == before.manifest.started {
        console.note("This run is incomplete, so nothing is compared; the next edit is compared with the run before.");
        return Some(before);
    }
    let cache = open_snapshot(&pipeline.cache).ok();
    let [new, old] = [&now, &before].map(|set| Side { set, method: None });
    match compare(
        new,
        old,
        ComparisonScope::Common,
        &text_edits_in(cache.as_ref()),
    ) {
        Ok(comparison) if is_unchanged(&comparison) => {
            console.print("No answer and no grade changed since the last run.");
        }
        Ok(comparison) => {
            let comparison = Comparison {
                baseline: "the last run".to_owned(),
                ..comparison
            };
            finish::print_results(
                &summarize(&now, Some(comparison)),
                &now.manifest,
                all,
                console,
            );
        }
        Err(refusal) => console.note(&format!("Not compared with the last run: {refusal}")),
    }
    finish::print_totals(&now.manifest, &folder, console);
    Some(now)
}

fn is_unchanged(comparison: &Comparison) -> bool {
    comparison
        .methods
        .values()
        .all(|method| !method.is_changed() && method.fixtures.compared() > 0)
}

/// When a file was written, and its length; `None` where there is none.
type FileStamp = Option<(SystemTime, u64)>;

/// The files of a pipeline, as they were at the last look.
#[derive(Default)]
struct WatchedFiles {
    seen: BTreeMap<PathBuf, FileStamp>,
    /// Folders in which a new file with one of these extensions may belong to the pipeline, each with the files that it
    /// had when it was first looked at. Of those, only the files of the pipeline are watched: a run with `--fixtures` has
    /// nothing to do with the others.
    folders: BTreeMap<(PathBuf, OsString), BTreeSet<PathBuf>>,
}

impl WatchedFiles {
    /// Watches the files of the pipeline besides those watched before: an edit may bring one back.
    fn follow(&mut self, pipeline: &Pipeline) {
        let folder = &pipeline.folder;
        let data = pipeline
            .fixtures
            .iter()
            .flat_map(|loaded| [folder.join(&loaded.path), folder.join(&loaded.bank_path)]);
        let programs = pipeline
            .methods
            .iter()
            .flat_map(|method| match &method.strategy {
                Strategy::Command(command) => command
                    .files
                    .iter()
                    .map(|(file, _)| command.folder.join(file))
                    .collect(),
                _ => Vec::new(),
            });
        let listed: Vec<PathBuf> = data.chain(programs).collect();
        for file in &listed {
            let (Some(folder), Some(extension)) = (file.parent(), file.extension()) else {
                continue;
            };
            let known = self
                .folders
                .entry((folder.to_owned(), extension.to_owned()));
            known.or_insert_with(|| files_in(folder, extension).collect());
        }
        let sources = pipeline
            .sources
            .iter()
            .map(|source| folder.join(&source.path));
        for file in sources.chain([pipeline.file.clone()]).chain(listed) {
            let stamp = stamp(&file);
            self.seen.entry(file).or_insert(stamp);
        }
    }

    fn now(&self) -> BTreeMap<PathBuf, FileStamp> {
        let new = self
            .folders
            .iter()
            .flat_map(|((folder, extension), known)| {
                files_in(folder, extension).filter(move |path| !known.contains(path))
            });
        self.seen
            .keys()
            .cloned()
            .chain(new)
            .map(|path| (path.clone(), stamp(&path)))
            .collect()
    }

    /// Waits until files differ from when they were last looked at, and then until they stay the same for a poll.
    fn wait_for_edit(&mut self, folder: &Path) -> Vec<String> {
        let mut now = self.now();
        while now == self.seen {
            std::thread::sleep(POLL);
            now = self.now();
        }
        loop {
            std::thread::sleep(POLL);
            let next = self.now();
            if next == now {
                break;
            }
            now = next;
        }
        let mut edited = Vec::new();
        for (path, stamp) in &now {
            if self.seen.get(path) != Some(stamp) {
                edited.push(
                    path.strip_prefix(folder)
                        .unwrap_or(path)
                        .display()
                        .to_string(),
                );
            }
        }
        self.seen = now;
        edited
    }
}

/// The files of a folder with this extension.
fn files_in(folder: &Path, extension: &OsStr) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    paths.filter(move |path| path.extension() == Some(extension))
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
