//! The command that the last line suggests repeats the flags that the next step needs.

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
    assert_eq!(
        next(&ended),
        "compeval run --label a --runs 1 --methods full"
    );
    assert!(
        !ended.stdout.contains("Forecast / actual"),
        "{}",
        ended.stdout
    );
    let ended = project.expect(6, "run --runs 1 --methods full --max-requests 9 --label a");
    assert_eq!(
        next(&ended),
        "compeval run --runs 1 --methods full --max-requests 9 --label a"
    );
    assert!(
        !ended.stdout.contains("Forecast / actual"),
        "{}",
        ended.stdout
    );
    let ended = project.expect(6, "run --runs 1 --methods full --max-requests 0 --label a");
    assert_eq!(
        next(&ended),
        "compeval plan --runs 1 --methods full --label a",
        "the same again would send nothing"
    );
    server.script(|asked| match asked.wanted {
        Wanted::Grades if asked.text.contains("Who owns") => {
            Reply::Raw(400, json!({"error": "not today"}).to_string())
        }
        _ => Reply::Sensible,
    });
    let ended = project.expect(5, "run --runs 1 --methods full --label a");
    assert_eq!(
        next(&ended),
        "compeval run --runs 1 --methods full --label a"
    );
    server.script(|_| Reply::Sensible);
    let ended = project.expect(0, "run --runs 1 --methods full --label a -c pipeline.toml");
    assert_eq!(
        next(&ended),
        "compeval show harbor --label a -c pipeline.toml"
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
fn suggestions_keep_the_folder_of_the_project() {
    let outer = Project::empty();
    outer.expect(0, "init there --quiet");
    let suggests = |code: i32, line: &str, words: &str| {
        let Ended { stdout, stderr, .. } = outer.expect(code, &format!("{line} -C there"));
        let all = format!("{stdout}\n{stderr}")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            all.contains(words),
            "`{words}` is missing in compeval {line}:\n{all}"
        );
    };
    suggests(0, "cache ls", "`compeval run -C there` fills it");
    suggests(0, "cache stats", "`compeval run -C there` fills it");
    suggests(0, "labels ls", "`compeval run -C there` makes some");
    suggests(4, "labels trend", "`compeval run -C there` makes some");
    suggests(
        2,
        "show tally-bank-export",
        "make some with `compeval run -C there`",
    );
    outer.expect(0, "run --label a --runs 1 --quiet -C there");
    suggests(
        2,
        "compare a nothing-alike",
        "compeval labels ls -C there lists what there is",
    );
    suggests(
        0,
        "judge agreement --blind-sheet s.csv",
        "compeval judge agreement s.csv -C there --label a",
    );
    suggests(0, "labels protect a", "a is now protected");
    suggests(2, "labels rm a", "compeval labels protect --off a -C there");
    outer.remove("there/results/a/report.html");
    suggests(2, "report --open a", "compeval report a -C there writes it");
    outer.remove("there/probes/tally-bank-export.probes.json");
    suggests(
        4,
        "check",
        "write a bank by hand or by `compeval probes generate -C there`",
    );
    outer.remove("there/fixtures/tally-bank-export.json");
    suggests(
        4,
        "check",
        "`compeval fixture import LOG -C there` makes one of a session log",
    );
    outer.remove("there/pipeline.toml");
    suggests(
        2,
        "check",
        "`compeval run --sample -C there` runs a sample project, `compeval init -C there` only writes it",
    );
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
        .stdout_says(&["lost in compression"]);
}

#[test]
fn show_and_why_stay_with_the_result_set_and_the_project() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    project.expect(0, "run --label b --runs 1 --methods full");
    let cell = "harbor --method full --run 1 --probe left --label a -c pipeline.toml";
    assert_eq!(
        next(&project.expect(0, &format!("show {cell}"))),
        format!("compeval why {cell}")
    );
    assert_eq!(
        next(&project.expect(0, &format!("why {cell}"))),
        format!("compeval show {cell}")
    );
    let list = project.expect(0, "why harbor --label a").stderr;
    assert!(
        list.contains("next: compeval why harbor --method full --run 1 --probe "),
        "{list}"
    );
    assert!(
        list.contains(" --label a   (the lowest score of these)"),
        "{list}"
    );
}
