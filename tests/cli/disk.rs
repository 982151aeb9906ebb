//! Disks that refuse, lose or hide data.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use super::project::{Project, Running};
use super::server::{Reply, Server};

fn finished() -> (Server, Project) {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    (server, project)
}

#[test]
fn a_cache_that_is_taken_away_under_a_run_is_an_error() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Held);
    let running = project.start("run --label a --runs 1");
    server.wait_for(1);
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    server.let_go();
    let ended = running.end();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    ended.says(&["was removed or replaced while it was in use"]);
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() {
    let (_server, project) = finished();
    for command in [
        "labels ls",
        "cache ls --json",
        "plan --json",
        "show harbor",
        "run --label a --runs 1",
        "--help",
    ] {
        let mut full = project.command(command);
        full.stdout(File::options().write(true).open("/dev/full").unwrap());
        let ended = Running::of(full).end();
        assert_eq!(ended.code, 1, "{command}: {}", ended.stderr);
        let mut closed = project.command(command);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        closed.stdout(writer);
        assert_eq!(Running::of(closed).end().code, 0, "{command}");
    }
}

#[test]
fn a_closed_pipe_neither_ends_a_run_nor_changes_its_exit_code() {
    let server = Server::start();
    let project = Project::new(&server);
    for (code, label, flags) in [(0, "a", ""), (6, "b", "--refresh answer --max-requests 3")] {
        let mut command = project.command(&format!("run --label {label} --runs 1 {flags}"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        assert_eq!(Running::of(command).end().code, code, "{flags}");
        assert!(
            project.exists(&format!("results/{label}/summary.json")),
            "the run went to its end"
        );
    }
}

/// A script that runs in a project whose cache is on a small file system of its own; `None` where that is not allowed.
fn on_a_small_disk(project: &Project, script: &str) -> Option<String> {
    std::fs::create_dir_all(project.path("cache")).unwrap();
    let script = format!("set -e; mount -t tmpfs -o size=3m tmpfs cache || exit 99; {script}");
    let mut unshare = Command::new("unshare");
    unshare
        .args(["-rm", "sh", "-c", &script])
        .current_dir(project.path("."));
    unshare
        .env("COMPEVAL", env!("CARGO_BIN_EXE_compeval"))
        .env("MOCK_API_KEY", super::project::KEY);
    let output = unshare.output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if matches!(output.status.code(), Some(99 | 1)) && out.is_empty() {
        return None;
    }
    assert!(output.status.success(), "{out}\n{err}");
    Some(out)
}

#[test]
fn a_prune_needs_no_room() {
    let server = Server::start();
    let project = Project::new(&server);
    let script = "
        $COMPEVAL run --label a --runs 1 -q
        cat /dev/zero > cache/filler 2> /dev/null || true
        echo before $(df --output=avail cache | tail -1)
        $COMPEVAL cache prune --older-than 0s > /dev/null
        echo after $(df --output=avail cache | tail -1)
        $COMPEVAL cache ls --json > left.json
        rm cache/filler
        $COMPEVAL cache verify
        $COMPEVAL run --label b --runs 1 -q
    ";
    let Some(out) = on_a_small_disk(&project, script) else {
        let why = "skipped: this system does not let users mount a file system";
        writeln!(std::io::stderr(), "{why}").unwrap();
        return;
    };
    assert!(
        out.contains("before 0\n") && !out.contains("after 0\n"),
        "{out}"
    );
    let left: serde_json::Value = serde_json::from_str(&project.read("left.json")).unwrap();
    assert_eq!(left, serde_json::json!([]));
    let asked = server.asked();
    let again = asked.iter().filter(|asked| asked.earlier > 0).count();
    assert_eq!(
        again * 2,
        asked.len(),
        "what was pruned is made again, once"
    );
    assert_eq!(project.rows("a").len(), project.rows("b").len());
}

#[test]
fn a_fixture_that_cannot_be_read_is_named() {
    let project = Project::offline();
    let fixture = |name: &str| project.path(&format!("fixtures/{name}.json"));
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, fixture(name)).unwrap();
    link("/nowhere/at/all.json", "moved");
    link("/dev/null", "device");
    assert!(
        Command::new("mkfifo")
            .arg(fixture("pipe"))
            .status()
            .unwrap()
            .success()
    );
    link("somebody@host.1234", ".#harbor");
    for command in ["check", "plan", "run --label a"] {
        let ended = project.expect(2, command);
        ended.says(&[
            "cannot read the fixture fixtures/moved.json: it is a link to a file that does not exist",
            "cannot read the fixture fixtures/device.json: it is a pipe, a socket or a device",
            "cannot read the fixture fixtures/pipe.json: it is a pipe, a socket or a device",
        ]);
        assert!(
            !ended.stderr.contains("#harbor"),
            "an editor's lock: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_file_that_is_no_file_or_has_no_end_is_named() {
    let project = Project::offline();
    File::create(project.path("fixtures/endless.json"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    project
        .expect(2, "run --label a")
        .says(&["fixtures/endless.json: it has 3072 MB, and at most 256 are read"]);
    std::fs::remove_file(project.path("pipeline.toml")).unwrap();
    std::os::unix::fs::symlink("/nowhere/pipeline.toml", project.path("pipeline.toml")).unwrap();
    for command in ["plan", "cache ls"] {
        project
            .expect(2, command)
            .says(&["pipeline.toml: it is a link to a file that does not exist"]);
    }
}
