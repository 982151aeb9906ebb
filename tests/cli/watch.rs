//! `run --watch` runs what an edit makes stale, within one budget, and prints what changed.

use super::brain::Wanted;
use super::project::Project;
use super::server::Server;

/// A project whose results are cached.
fn cached() -> (Server, Project) {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label before --runs 1");
    server.forget();
    (server, project)
}

#[test]
fn an_edit_is_run_and_compared_and_a_mistake_is_waited_out() {
    let (server, project) = cached();
    let mut running = project.start("run --label a --runs 1 --watch");
    running.wait_for_words("Ctrl-C ends it");
    assert_eq!(server.count(), 0);
    project.edit(
        "prompts/anchored.md",
        "working notes",
        "short working notes",
    );
    running.wait_for_words("edited: prompts/anchored.md");
    running.wait_for_words("Ctrl-C ends it");
    assert_eq!(
        server.counts()[&Wanted::Compression],
        2,
        "one method, two points"
    );
    project.edit(
        "pipeline.toml",
        "strategy = \"none\"",
        "strategy = \"nome\"",
    );
    running.wait_for_words("did you mean");
    running.wait_for_words("Ctrl-C ends it");
    project.edit(
        "pipeline.toml",
        "strategy = \"nome\"",
        "strategy = \"none\"",
    );
    running.wait_for_words("Ctrl-C ends it");
    running.interrupt();
    let ended = running.end();
    assert_eq!(ended.code, 130);
    assert!(
        ended.stdout.matches("since the last run").count() >= 1,
        "{}",
        ended.stdout
    );
    assert!(
        project.exists("results/a~1"),
        "the results before the edit are kept"
    );
}

#[test]
fn a_run_of_some_fixtures_waits_for_an_edit_of_these() {
    let (server, project) = cached();
    for file in ["fixtures/harbor.json", "probes/harbor.probes.json"] {
        project.write(
            &file.replace("harbor", "pier"),
            &project.read(file).replace("\"harbor\"", "\"pier\""),
        );
    }
    let mut running = project.start("run --label a --runs 1 --watch --fixtures harbor");
    running.wait_for_words("Ctrl-C ends it");
    assert_eq!(server.count(), 0);
    project.edit(
        "prompts/anchored.md",
        "working notes",
        "short working notes",
    );
    assert_eq!(running.line_with("edited:"), "edited: prompts/anchored.md");
    running.wait_for_words("Ctrl-C ends it");
    running.interrupt();
    assert_eq!(running.end().code, 130);
}

#[test]
fn a_round_begins_with_the_sentence_and_fits_on_a_screen() {
    let project = Project::empty();
    project.expect(0, "init");
    let mut running = project.start("run --label a --watch");
    running.wait_for_words("Ctrl-C ends it");
    project.edit("prompts/anchored.md", "## Current state\n", "");
    running.wait_for_words("edited: prompts/anchored.md");
    running.wait_for_words("Ctrl-C ends it");
    running.interrupt();
    let stdout = running.end().stdout;
    let begin = stdout
        .find("anchored −")
        .unwrap_or_else(|| panic!("{stdout}"));
    let before = stdout[..begin].lines().count();
    let lines: Vec<&str> = stdout.lines().skip(before - 1).collect();
    assert!(
        lines[0].starts_with("No evidence of a change: anchored −"),
        "{stdout}"
    );
    assert!(lines.len() <= 24, "{} lines: {stdout}", lines.len());
}

#[test]
fn all_rounds_share_one_budget() {
    let (server, project) = cached();
    let mut running = project.start("run --label a --runs 1 --watch --max-requests 1");
    running.wait_for_words("Ctrl-C ends it");
    for words in ["short working notes", "very short working notes"] {
        project.edit("prompts/anchored.md", "working notes", words);
        running.wait_for_words("stopped:");
        running.wait_for_words("Ctrl-C ends it");
        assert_eq!(server.count(), 1);
    }
    running.interrupt();
    assert_eq!(running.end().code, 130);
}
