//! Names with blanks: a label, a fixture, a method and a probe with one work everywhere, and the commands that are
//! suggested quote them.

#[cfg(unix)]
use std::process::Command;

use super::project::{Ended, Project};
use super::server::Server;

/// A project in which a fixture, a method and a probe have a blank in their names.
fn named(server: &Server) -> Project {
    let project = Project::new(server);
    for (from, to) in [
        ("fixtures/harbor.json", "fixtures/the harbor.json"),
        ("probes/harbor.probes.json", "probes/the harbor.probes.json"),
    ] {
        project.write(to, &project.read(from));
        project.remove(from);
    }
    project.edit(
        "fixtures/the harbor.json",
        r#""name": "harbor""#,
        r#""name": "the harbor""#,
    );
    project.edit(
        "probes/the harbor.probes.json",
        r#""fixture": "harbor""#,
        r#""fixture": "the harbor""#,
    );
    project.edit(
        "probes/the harbor.probes.json",
        r#""id": "port""#,
        r#""id": "the port""#,
    );
    project.edit(
        "pipeline.toml",
        r#"name     = "anchored""#,
        r#"name     = "my method""#,
    );
    project
}

/// Runs the program with arguments, and more that may have blanks.
fn run(project: &Project, code: i32, arguments: &str, more: &[&str]) -> Ended {
    let ended = Ended::of(&project.command(arguments).args(more).output().unwrap());
    assert_eq!(
        ended.code, code,
        "compeval {arguments} {more:?}\n{}\n{}",
        ended.stdout, ended.stderr
    );
    ended
}

/// The suggested command.
fn next(ended: &Ended) -> String {
    let mut lines = ended.stdout.lines().chain(ended.stderr.lines());
    let line = lines
        .find_map(|line| line.strip_prefix("next: "))
        .unwrap_or_else(|| panic!("{ended:?}"));
    line.split("   (").next().unwrap_or(line).to_owned()
}

/// Types a line into a shell that finds the program.
#[cfg(unix)]
fn type_line(project: &Project, shell: &str, line: &str) -> Ended {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_compeval"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = Command::new(shell);
    shell
        .args(["-c", line])
        .current_dir(project.path(""))
        .env("PATH", path)
        .env("MOCK_API_KEY", "key");
    let ended = Ended::of(&shell.output().unwrap());
    assert_eq!(ended.code, 0, "{line}\n{}\n{}", ended.stdout, ended.stderr);
    ended
}

#[test]
fn a_label_with_a_blank_is_run_compared_and_removed() {
    let server = Server::start();
    let project = named(&server);
    run(&project, 0, "run --runs 1 --label", &["my base"]);
    project.edit("prompts/anchored.md", "working notes", "other notes");
    let ended = run(
        &project,
        0,
        "run --runs 1",
        &["--label", "my run", "--compare-to", "my base"],
    );
    assert_eq!(next(&ended), "compeval show 'the harbor' --label 'my run'");
    assert!(project.exists("results/my run/report.html"));
    run(
        &project,
        0,
        "compare",
        &["my run:my method", "my base:my method"],
    );
    run(&project, 0, "report", &["my run"]);
    let opened = run(&project, 0, "report --open", &["my run"]);
    assert!(
        opened.stdout.contains("my run/report.html"),
        "{}",
        opened.stdout
    );
    run(&project, 0, "labels protect", &["my run"]);
    run(&project, 2, "labels rm", &["my run"]).says(&["compeval labels protect --off 'my run'"]);
    run(&project, 0, "labels protect --off", &["my run"]);
    run(&project, 0, "labels rm", &["my run"]);
    assert!(!project.exists("results/my run"));
    run(&project, 2, "run --label", &["my run "]).says(&["it begins or ends with a blank"]);
}

#[cfg(unix)]
#[test]
fn a_suggested_command_with_blanks_can_be_typed() {
    let server = Server::start();
    let project = named(&server);
    let ended = run(&project, 0, "run --runs 1 --label", &["my run"]);
    let list = type_line(&project, "sh", &next(&ended));
    let cell = next(&list);
    assert!(
        cell.starts_with("compeval show 'the harbor' --method "),
        "{cell}"
    );
    let why = next(&type_line(&project, "sh", &cell));
    assert!(
        why.starts_with("compeval why 'the harbor' --method "),
        "{why}"
    );
    type_line(&project, "sh", &why);
    let cell = [
        "the harbor",
        "--method",
        "my method",
        "--probe",
        "the port",
        "--label",
        "my run",
    ];
    let why = next(&run(&project, 0, "show --run 1", &cell));
    assert_eq!(
        why,
        "compeval why 'the harbor' --method 'my method' --run 1 --probe 'the port' --label 'my run'"
    );
    type_line(&project, "sh", &why);
}
