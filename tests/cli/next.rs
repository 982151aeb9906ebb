//! The command that the last line suggests repeats the flags that the next step needs.

use serde_json::json;

use super::super::brain::Wanted;
use super::project::{Ended, Project};
use super::server::{Reply, Server};

/// The last line of the output.
fn next(ended: &Ended) -> &str {
    ended.stdout.lines().rev().find_map(|line| line.strip_prefix("next: ")).expect("a command")
}

#[test]
fn a_plan_suggests_the_run_that_it_plans() {
    let server = Server::start();
    let project = Project::new(&server);
    let flags = "--runs 1 --methods full,anchored --refresh answer -c pipeline.toml";
    let ended = project.expect(7, &format!("plan {flags} --exit-code"));
    assert_eq!(next(&ended), format!("compeval run {flags}"));
    let ended = project.expect(0, "run -n --max-requests 5 --runs 1");
    assert_eq!(next(&ended), "compeval run --max-requests 5 --runs 1");
}

#[test]
fn an_unfinished_run_suggests_the_next_step() {
    let server = Server::start();
    let project = Project::new(&server);
    let ended = project.expect(7, "run --label a --runs 1 --methods full --offline");
    assert_eq!(next(&ended), "compeval run --label a --runs 1 --methods full");
    assert!(!ended.stdout.contains("Forecast / actual"), "{}", ended.stdout);
    let ended = project.expect(6, "run --runs 1 --methods full --max-requests 9 --label a");
    assert_eq!(next(&ended), "compeval run --runs 1 --methods full --max-requests 9 --label a");
    assert!(!ended.stdout.contains("Forecast / actual"), "{}", ended.stdout);
    let ended = project.expect(6, "run --runs 1 --methods full --max-requests 0 --label a");
    assert_eq!(next(&ended), "compeval plan --runs 1 --methods full --label a", "the same again would send nothing");
    server.script(|asked| match asked.wanted {
        Wanted::Grades if asked.text.contains("Who owns") => Reply::Raw(400, json!({"error": "not today"}).to_string()),
        _ => Reply::Sensible,
    });
    let ended = project.expect(5, "run --runs 1 --methods full --label a");
    assert_eq!(next(&ended), "compeval run --runs 1 --methods full --label a");
    server.script(|_| Reply::Sensible);
    let ended = project.expect(0, "run --runs 1 --methods full --label a -c pipeline.toml");
    assert_eq!(next(&ended), "compeval show harbor --label a -c pipeline.toml");
}

#[test]
fn a_model_that_does_not_exist_is_not_suggested_again() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Answer => Reply::Raw(404, json!({"error": {"message": "no such model"}}).to_string()),
        _ => Reply::Sensible,
    });
    let ended = project.expect(5, "run --runs 1 --methods full --label a");
    assert!(!ended.stdout.contains("next:"), "{}", ended.stdout);
}

#[test]
fn show_and_why_stay_with_the_result_set_and_the_project() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    project.expect(0, "run --label b --runs 1 --methods full");
    let cell = "harbor --method full --run 1 --probe left --label a -c pipeline.toml";
    assert_eq!(next(&project.expect(0, &format!("show {cell}"))), format!("compeval why {cell}"));
    assert_eq!(next(&project.expect(0, &format!("why {cell}"))), format!("compeval show {cell}"));
    let list = project.expect(0, "why harbor --label a").stderr;
    assert!(list.contains("next: compeval why harbor --method full --run 1 --probe "), "{list}");
    assert!(list.contains(" --label a   (the lowest score of these)"), "{list}");
}
