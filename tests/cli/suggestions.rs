//! The command that the last line suggests.

use serde_json::json;

use super::brain::Wanted;
use super::project::{Ended, Project};
use super::server::{Reply, Server};

/// The last line of the output.
fn next(ended: &Ended) -> &str {
    ended
        .stdout
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("next: "))
        .expect("a command")
}

#[test]
fn an_unfinished_run_suggests_the_next_step() {
    let server = Server::start();
    let project = Project::new(&server);
    assert_eq!(next(&project.expect(0, "plan")), "compeval run");
    let planned = project.expect(0, "plan --runs 1");
    assert_eq!(next(&planned), "compeval run --runs 1");
    let run = "run --label a --runs 1 --methods full";
    let ended = project.expect(7, &format!("{run} --offline"));
    assert_eq!(next(&ended), format!("compeval {run}"));
    let ended = project.expect(6, &format!("{run} --max-requests 9"));
    assert_eq!(next(&ended), format!("compeval {run} --max-requests 9"));
    let ended = project.expect(6, &format!("{run} --max-requests 0"));
    assert_eq!(
        next(&ended),
        "compeval plan",
        "the same again would send nothing"
    );
    server.script(|asked| match asked.wanted {
        Wanted::Grades if asked.text.contains("Who owns") => {
            Reply::Raw(400, json!({"error": "not today"}).to_string())
        }
        _ => Reply::Sensible,
    });
    assert_eq!(next(&project.expect(5, run)), format!("compeval {run}"));
    server.script(|_| Reply::Sensible);
    assert_eq!(
        next(&project.expect(0, run)),
        "compeval show harbor --label a"
    );
}

#[test]
fn a_model_that_does_not_exist_is_not_suggested_again() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Answer => Reply::Raw(
            404,
            json!({"error": {"message": "no such model"}}).to_string(),
        ),
        _ => Reply::Sensible,
    });
    let ended = project.expect(5, "run --runs 1 --methods full --label a");
    assert!(!ended.stdout.contains("next:"), "{}", ended.stdout);
}

#[test]
fn a_comparison_suggests_the_cell_that_lost_most() {
    let project = Project::empty();
    project.expect(0, "init");
    project.expect(0, "run --label a --runs 1");
    project.edit("prompts/anchored.md", "## Current state\n", "");
    let ended = project.expect(0, "run --label b --runs 1 --compare-to a");
    let command = next(&ended);
    let (cell, flags) = command.split_once(" --probe ").expect("a cell");
    assert_eq!(
        cell, "compeval show tally-bank-export --method anchored",
        "{}",
        ended.stdout
    );
    assert!(flags.ends_with(" --label b"), "{command}");
    project
        .expect(0, &command.replace("compeval ", ""))
        .stdout_says(&["lost in compression; it stood in message "]);
}

#[test]
fn show_and_why_suggest_each_other() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    let cell = "harbor --method full --run 1 --probe left";
    assert_eq!(
        next(&project.expect(0, &format!("show {cell}"))),
        format!("compeval why {cell} --label a")
    );
    assert_eq!(
        next(&project.expect(0, &format!("why {cell}"))),
        format!("compeval show {cell} --label a")
    );
    let list = project.expect(0, "why harbor").stderr;
    assert!(
        list.contains("next: compeval why harbor --method full --run 1 --probe "),
        "{list}"
    );
    assert!(list.contains("   (the lowest score of these)"), "{list}");
}
