//! A project may be anybody's. What lies in it in the place of a file or a folder may be a link that leads out, a pipe
//! that nobody writes to, or a file without end: no command follows, waits, or fills the memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::project::Project;

/// The names of a project that has been run, and those that a killed process leaves.
const NAMES: &[&str] = &[
    "pipeline.toml",
    "fixtures",
    "fixtures/harbor.json",
    "probes",
    "probes/harbor.probes.json",
    "results",
    "results/.incomplete",
    "results/.incomplete/base",
    "results/.locks",
    "results/.locks/base.run",
    "results/.locks/base.files",
    "results/.parts",
    "results/.parts/base",
    "results/.replaced",
    "results/.replaced/base",
    "results/.replaced/other",
    "results/base",
    "results/base/PROTECTED",
    "results/base/cells.jsonl",
    "results/base/contexts.jsonl",
    "results/base/keys.txt",
    "results/base/manifest.json",
    "results/base/report.html",
    "results/base/report.md",
    "results/base/summary.json",
    "results/base~1",
    "cache",
    "cache/CACHEDIR.TAG",
    "cache/FORMAT",
    "cache/FORMAT.new",
    "cache/LOCK",
    "cache/index",
    "cache/index/blobs",
    "cache/index/clean",
    "cache/index/conf",
    "cache/index/db",
    "cache/packs",
    "cache/packs/00000001.pack",
    "cache/packs/00000002.pack",
];

const COMMANDS: &[&str] = &[
    "labels ls",
    "run --label base --model lexical",
    "cache verify",
    "plan",
    "labels rm base",
    "cache prune --older-than 1d",
    "check",
    "report base",
    "run --label other --runs 1 --model lexical",
    "show base",
    "cache ls",
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Link,
    Pipe,
    Endless,
}

impl Kind {
    fn put(self, place: &Path, outside: &Path) {
        match self {
            Kind::Link if place.extension().is_none() => symlink(outside, place).unwrap(),
            Kind::Link => symlink(outside.join("manifest.json"), place).unwrap(),
            Kind::Pipe => {
                let made = Command::new("mkfifo").arg(place).status().unwrap();
                assert!(made.success());
            }
            Kind::Endless => fs::File::create(place)
                .and_then(|file| file.set_len(1 << 40))
                .unwrap(),
        }
    }
}

/// All names below a folder, with the content of files.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}

/// The exit code and standard error of a command that may use 2 GB of addresses and 20 seconds.
fn end(project: &Project, arguments: &str) -> (i32, String) {
    let inner = project.command(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2097152; exec \"$@\"", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    inner
        .get_current_dir()
        .map(|folder| command.current_dir(folder));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("`{arguments}` hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code().unwrap_or(-1), stderr)
}

/// Tries these names in a project of its own, each with two of the commands, which are others for each name and kind.
fn try_names(kind: Kind, names: &[&str]) {
    let project = Project::offline();
    project.expect(0, "run --label base --model lexical");
    let outside = tempfile::tempdir().unwrap();
    let saved = outside.path().join("saved");
    let target = outside.path().join("target");
    fs::create_dir(&target).unwrap();
    for name in ["manifest.json", "cells.jsonl", "00000001.pack", "db"] {
        fs::copy(project.path("pipeline.toml"), target.join(name)).unwrap();
    }
    let before = content(&target);
    for (at, name) in names.iter().enumerate() {
        let place = project.path(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let is_saved = fs::rename(&place, &saved).is_ok();
        kind.put(&place, &target);
        for step in 0..2 {
            let command = COMMANDS[(at + kind as usize * 4 + step * 5) % COMMANDS.len()];
            let (code, stderr) = end(&project, command);
            let tried = format!("{name} is a {kind:?}: `{command}` ended with {code}: {stderr}");
            assert_ne!(code, -1, "{tried}");
            assert!(!stderr.contains("panicked"), "{tried}");
            assert_eq!(content(&target), before, "{tried}");
            let is_data = name.starts_with("results") || name.starts_with("cache");
            if kind != Kind::Endless && is_data {
                assert!(code == 2 && stderr.contains(name), "{tried}");
            }
        }
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&place).unwrap(),
            Ok(_) => fs::remove_file(&place).unwrap(),
            Err(_) => {}
        }
        if is_saved && fs::rename(&saved, &place).is_err() {
            // the command removed its folder
            let removed = fs::remove_file(&saved);
            removed.or_else(|_| fs::remove_dir_all(&saved)).unwrap();
        }
        if !project.exists("results/base/manifest.json") {
            project.expect(0, "run --label base --model lexical");
        }
    }
}

#[test]
fn no_command_follows_a_link_out_of_the_project() {
    try_names(Kind::Link, NAMES);
}

#[test]
fn no_command_waits_for_a_pipe() {
    try_names(Kind::Pipe, NAMES);
}

#[test]
fn no_command_reads_a_file_without_end() {
    try_names(Kind::Endless, NAMES);
}

#[test]
fn the_sample_and_new_projects_are_written_into_real_folders() {
    let project = Project::empty();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), project.path("compeval-sample")).unwrap();
    project
        .expect(2, "run --sample")
        .says(&["compeval-sample", "symbolic link"]);
    symlink(outside.path(), project.path("fixtures")).unwrap();
    project
        .expect(2, "init")
        .says(&["fixtures", "symbolic link"]);
    assert!(content(outside.path()).is_empty());
}

#[test]
fn only_the_user_may_name_a_link_as_the_cache() {
    let mut project = Project::offline();
    let outside = tempfile::tempdir().unwrap();
    for name in ["cache", "results"] {
        let place = project.path(name);
        symlink(outside.path(), &place).unwrap();
        for command in ["run --label a --model lexical", "cache ls", "labels ls"] {
            project.expect(2, command).says(&[name, "symbolic link"]);
        }
        fs::remove_file(&place).unwrap();
    }
    assert!(content(outside.path()).is_empty());
    let named = project.path("named");
    symlink(outside.path(), &named).unwrap();
    project.set("COMPEVAL_CACHE", &named.display().to_string());
    project.expect(0, "run --label a --model lexical");
    project.expect(0, "cache verify");
    assert!(outside.path().join("FORMAT").is_file() && !project.exists("cache"));
}
