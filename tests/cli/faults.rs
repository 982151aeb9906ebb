//! Faults of the system: every command ends with a message and a documented exit code, and leaves on disk what the next
//! run needs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::project::{Ended, Project, Running};
use super::server::Server;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const ENOLCK: i32 = 37;
const ENOTSUP: i32 = 95;

const RUN: &str = "run --label a --runs 1 --methods full,nothing --model lexical --quiet";

/// How many calls succeed before one fails; with `COMPEVAL_FAULTS=all` four times as many counts.
const STEPS: &[usize] = &[0, 2, 5, 14, 45, 110];
const MORE_STEPS: &[usize] = &[
    0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18, 23, 29, 37, 45, 57, 70, 90, 110, 140, 180, 230, 300,
];

/// Seconds after which a program is considered hung.
const PATIENCE: &str = "60";

/// The library that makes system calls fail; `None` if there is no compiler for C.
fn library(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("faults.c"), folder.join("faults.so"));
    std::fs::write(&source, include_str!("faults.c")).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        std::io::stderr()
            .write_all(b"skipped: there is no compiler for C\n")
            .unwrap();
        return None;
    }
    Some(library)
}

/// The program started through `timeout`, so that a hang has an exit code of its own.
fn within_patience(project: &Project, arguments: &str) -> Command {
    wrapped(project, &["timeout", "-s", "KILL", PATIENCE], arguments)
}

/// The program, started by the program `by`.
fn wrapped(project: &Project, by: &[&str], arguments: &str) -> Command {
    let plain = project.command(arguments);
    let mut command = Command::new(by[0]);
    command
        .args(&by[1..])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(project.path("."));
    command.env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.stdin(std::process::Stdio::null());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// The program with calls of these kinds failing after `after` of them.
fn faulty(project: &Project, library: &Path, arguments: &str, faults: (&str, i32, usize)) -> Ended {
    faulty_below(project, library, "", arguments, faults)
}

/// The same, but only calls on files below `below` in the project fail.
fn faulty_below(
    project: &Project,
    library: &Path,
    below: &str,
    arguments: &str,
    (calls, error, after): (&str, i32, usize),
) -> Ended {
    let mut command = within_patience(project, arguments);
    command.env("LD_PRELOAD", library).env(
        "FAULT_ROOT",
        project.path(".").canonicalize().unwrap().join(below),
    );
    command
        .env("FAULT_CALL", calls)
        .env("FAULT_ERROR", error.to_string())
        .env("FAULT_AFTER", after.to_string());
    Running::of(command).end()
}

/// Demands a message, a documented exit code, and no advice to remove sound files.
fn check_end(ended: &Ended, what: &str) {
    assert!([0, 1, 2, 5].contains(&ended.code), "{what}: {ended:?}");
    let said = ended.stderr.to_lowercase();
    assert!(
        ended.code == 0 || said.contains("error"),
        "{what}: ended with {} and no message",
        ended.code
    );
    for word in [
        "panicked",
        "a fault of compeval",
        "rm -",
        "remove this one",
        "delete",
        "damaged",
        "no evidence",
    ] {
        assert!(!said.contains(word), "{what}: `{word}` in {}", ended.stderr);
    }
}

/// Makes a first run fail at many places, and then a run that finds everything in its cache. After each failure an
/// undisturbed run must have the same results as one that never failed.
fn runs_survive(calls: &str, errors: &[i32]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return;
    };
    let sound = Project::offline();
    sound.expect(0, RUN);
    let rows = sound.rows("a");
    let steps = if std::env::var_os("COMPEVAL_FAULTS").is_some() {
        MORE_STEPS
    } else {
        STEPS
    };
    for error in errors {
        let mut failed = 0;
        for after in steps {
            let what = format!("{calls} fails with {error} after {after}");
            let project = Project::offline();
            let first = faulty(&project, &library, RUN, (calls, *error, *after));
            check_end(&first, &what);
            project.expect(0, RUN);
            assert_eq!(project.rows("a"), rows, "{what}");
            let again = faulty(&project, &library, RUN, (calls, *error, *after));
            check_end(&again, &format!("{what}, with a full cache"));
            failed += usize::from(first.code != 0) + usize::from(again.code != 0);
            if failed > 0 && (first.code, again.code) == (0, 0) {
                break;
            }
        }
        assert!(failed > 0, "no call was made to fail: {calls}");
    }
}

#[test]
fn writes_that_fail_end_with_a_message() {
    runs_survive("write", &[EIO, ENOSPC]);
}

#[test]
fn syncs_that_fail_end_with_a_message() {
    runs_survive("sync", &[EIO, ENOSPC]);
}

#[test]
fn an_index_that_fails_during_a_run_costs_nothing_and_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return;
    };
    let sound = Project::offline();
    sound.expect(0, RUN);
    let (rows, run) = (sound.rows("a"), RUN.replace(" --quiet", ""));
    let (mut failed, mut absent) = (0, 0);
    for after in STEPS {
        let project = Project::offline();
        let ended = faulty_below(
            &project,
            &library,
            "cache/index",
            &run,
            ("write,sync", EIO, *after),
        );
        assert_eq!(ended.code, 0, "the run goes on: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        let has_failed = ended
            .stderr
            .contains("Nothing is lost: it is made again from the packs");
        let is_absent = ended.stderr.contains("works without an index");
        (failed, absent) = (
            failed + usize::from(has_failed),
            absent + usize::from(is_absent),
        );
        assert_eq!(project.rows("a"), rows, "after {after}");
        let again = project.expect(0, &run.replace("label a", "label b"));
        let is_rebuilt = again
            .stderr
            .contains("the index was rebuilt from the packs");
        assert!(
            is_rebuilt || !(has_failed || is_absent),
            "after {after}: {again:?}"
        );
        let stages = project.result("b", "manifest.json")["stages"].clone();
        assert!(
            ["compress", "answer", "judge"]
                .iter()
                .all(|stage| stages[*stage]["executed"] == 0),
            "{stages}"
        );
        assert_eq!(project.rows("b"), rows, "after {after}");
        project.expect(0, "cache verify");
    }
    assert!(
        failed > 0 && absent > 0,
        "{failed} failed in the run, {absent} could not be made"
    );
}

#[test]
fn files_that_cannot_be_created_end_with_a_message() {
    runs_survive("create", &[EMFILE, EACCES]);
}

#[test]
fn folders_and_renames_that_fail_end_with_a_message() {
    runs_survive("mkdir,rename", &[EROFS]);
}

#[test]
fn reads_that_fail_end_with_a_message() {
    runs_survive("read", &[EIO]);
}

#[test]
fn files_that_cannot_be_opened_or_listed_end_with_a_message() {
    runs_survive("open,list", &[EMFILE]);
}

#[test]
fn file_systems_without_locks_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return;
    };
    for error in [ENOLCK, ENOTSUP] {
        let project = Project::offline();
        for arguments in [
            RUN,
            RUN,
            "cache verify",
            "cache prune --older-than 0s",
            "report a",
            "labels protect a",
        ] {
            let ended = faulty(&project, &library, arguments, ("lock", error, 0));
            assert_eq!(ended.code, 0, "{arguments}: {ended:?}");
        }
        let left: Vec<_> = project
            .files(".")
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "held"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_read_only_copy_can_be_read_and_a_run_in_it_says_why_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return;
    };
    let project = Project::offline();
    project.expect(0, RUN);
    project.expect(0, &RUN.replace("label a", "label b"));
    let before = project.files(".");
    let read_only = |arguments: &str| {
        faulty(
            &project,
            &library,
            arguments,
            ("create,mkdir,rename,write", EROFS, 0),
        )
    };
    let readers = [
        "check",
        "plan --model lexical",
        "show harbor --label a",
        "labels ls",
        "compare a b",
        "cache ls",
        "cache verify",
    ];
    for reader in readers {
        let ended = read_only(reader);
        assert_eq!(ended.code, 0, "{reader}: {ended:?}");
    }
    for writer in [
        RUN,
        "run --label new --model lexical",
        "cache prune --older-than 0s",
        "report a",
        "labels rm a",
    ] {
        let ended = read_only(writer);
        check_end(&ended, writer);
        assert_eq!(ended.code, 1, "{writer}: {ended:?}");
        ended.says(&[
            "Read-only file system",
            "work on a copy in a folder that can be written to",
        ]);
    }
    assert_eq!(project.files("."), before);
    let pack = project.files("cache/packs").remove(0);
    let mut bytes = std::fs::read(&pack).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&pack, &bytes).unwrap();
    let ended = read_only("cache verify");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("can only be read"), "{ended:?}");
    assert_eq!(std::fs::read(&pack).unwrap(), bytes);
}

/// The run under a limit of the shell.
fn limited(project: &Project, limit: &str) -> Ended {
    let script =
        format!("ulimit {limit} || exit 99; exec timeout -s KILL {PATIENCE} \"$0\" \"$@\"");
    Running::of(wrapped(project, &["sh", "-c", &script], RUN)).end()
}

#[test]
fn a_limit_on_open_files_is_named() {
    for files in [8, 16, 24] {
        let project = Project::offline();
        let ended = limited(&project, &format!("-n {files}"));
        assert_eq!(ended.code, 1, "{ended:?}");
        ended.says(&[
            &format!("may open {files} files at once, and 32 are needed"),
            "ulimit -n 1024",
        ]);
        assert!(!project.exists("cache"), "nothing was begun");
    }
    assert_eq!(limited(&Project::offline(), "-n 32").code, 0);
}

#[test]
fn more_requests_than_open_files_end_with_a_message() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 500");
    let script = format!("ulimit -n 34; exec timeout -s KILL {PATIENCE} \"$0\" \"$@\"");
    let run = "run --label a --quiet";
    let ended = Running::of(wrapped(&project, &["sh", "-c", &script], run)).end();
    check_end(&ended, "34 open files");
    project.expect(0, run);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    for blocks in [8, 64, 200] {
        let project = Project::offline();
        let ended = limited(&project, &format!("-f {blocks}"));
        check_end(&ended, &format!("{blocks} blocks"));
        assert_eq!(ended.code, 1, "{ended:?}");
        ended.says(&["File too large", "`ulimit -f unlimited` lifts that"]);
        project.expect(0, RUN);
    }
}

#[test]
fn a_lack_of_memory_ends_with_a_message_and_the_exit_code_of_an_error() {
    for kilobytes in [100_000, 110_000, 120_000, 130_000, 150_000, 200_000] {
        let project = Project::offline();
        let ended = limited(&project, &format!("-v {kilobytes}"));
        assert!([0, 1].contains(&ended.code), "{kilobytes}: {ended:?}");
        let says_why = [
            "memory allocation of",
            "there is too little memory (`ulimit -v`)",
            "Cannot allocate memory",
            "not enough memory",
        ];
        assert!(
            ended.code == 0 || says_why.iter().any(|words| ended.stderr.contains(words)),
            "{ended:?}"
        );
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        project.expect(0, RUN);
    }
}
