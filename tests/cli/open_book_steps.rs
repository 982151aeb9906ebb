//! Open book: what the report says of the search alone, and how plan, budget, batches and `why` treat the steps of an
//! answer.

use std::sync::Arc;

use serde_json::{Value, json};

use super::batch_server::{BatchServer, Fate, Vendor};
use super::batches;
use super::brain::Wanted;
use super::open_book::{books, expected, may_search, project, question, searches_when_it_misses};
use super::project::{Ended, PRICES, Project};
use super::server::{Asked, Reply, Server};

/// Output without the line breaks of a terminal's width.
fn flat(ended: &Ended) -> String {
    ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_report_says_which_reference_is_missing_and_that_the_search_alone_is_near_the_transcript() {
    let server = Server::start();
    server.script(searches_when_it_misses);
    let project = project(&server, "");
    let without_none = project.expect(0, "run --label a --runs 1 --methods full,anchored");
    assert!(flat(&without_none).contains("No `none` method was answered with a search"));
    assert!(
        project
            .read("results/a/report.md")
            .contains("No `none` method")
    );
    let without_full = project.expect(0, "run --label b --runs 1 --methods nothing,anchored");
    assert!(
        flat(&without_full).contains("Add a `full` method"),
        "{}",
        without_full.stdout
    );
    let both = project.expect(0, "run --label c --runs 1 --methods full,nothing,anchored");
    assert!(
        flat(&both).contains("within 1.0 of the whole transcript"),
        "{}",
        both.stdout
    );
}

#[test]
fn why_explains_the_step_that_failed() {
    let server = Server::start();
    server.script(|asked| match asked.wanted {
        Wanted::Answer if asked.text.contains("[message ") => {
            Reply::Raw(400, json!({"error": {"message": "no index"}}).to_string())
        }
        _ => searches_when_it_misses(asked),
    });
    let project = project(&server, "");
    project.expect(5, "run --label a --runs 1 --methods nothing --probes port");
    let ended = project.expect(
        0,
        "why harbor --label a --method nothing --probe port --open",
    );
    let text = flat(&ended);
    let failed = text
        .split_once("answer step 2")
        .map(|(_, rest)| rest.to_owned())
        .expect("the second step");
    assert!(
        failed.contains("failed:") && failed.contains("no index"),
        "{text}"
    );
    assert_eq!(
        text.matches("no index").count(),
        1,
        "the step that failed, and no other: {text}"
    );
    let chain = project
        .expect(
            0,
            "why harbor --label a --method nothing --probe port --open --json",
        )
        .json();
    let states: Vec<&Value> = chain["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["state"])
        .collect();
    assert_eq!(states, ["cached", "cached", "stale"], "{chain}");
    // The answer from the context alone does not depend on it.
    project
        .expect(0, "why harbor --label a --method nothing --probe port")
        .stdout_says(&["0.00 of 5"]);
}

/// The requests for answers that `plan` expects with an empty cache.
fn planned(project: &Project) -> u64 {
    let estimate = &project
        .expect(0, "plan --runs 1 --methods nothing --refresh answer --json")
        .json()["estimate"];
    estimate["requests"].as_u64().expect("a number")
}

#[test]
fn a_plan_expects_a_second_step_of_each_answer() {
    let server = Server::start();
    let project = project(&server, "calls = 2");
    let open = planned(&project);
    project.edit(
        "pipeline.toml",
        "[answer.recovery]\nresults = 8\ncalls = 2",
        "",
    );
    assert_eq!(
        open - planned(&project),
        21,
        "for each of the seven questions two steps and a grade"
    );
}

#[test]
fn a_budget_stops_within_an_open_book_answer_and_the_next_run_goes_on() {
    let server = Server::start();
    server.script(searches_when_it_misses);
    let project = project(&server, "");
    let limit = |text: String, model: &str| {
        text.replace(model, &format!("{model}\nmax_output_tokens = 100"))
    };
    let models = [
        "model = \"mock/judge-1\"",
        "model    = \"mock/small-1\"",
        "model  = \"mock/small-1\"",
    ];
    let limited = models
        .into_iter()
        .fold(project.read("pipeline.toml"), limit);
    // The judge costs next to nothing, so the step that exceeds the budget is one of an answer.
    let cheap = "[prices.\"mock/judge-1\"]\ninput = 0.01\noutput = 0.01";
    let prices = PRICES.replace(
        "[prices.\"mock/judge-1\"]\ninput = 100.0\noutput = 200.0",
        cheap,
    );
    project.write("pipeline.toml", &format!("{limited}\n{prices}"));
    project.expect(0, "run --label whole --runs 1 --methods nothing");
    let whole = server.count();
    let asks_next = |asked: &Asked| may_search(asked) && asked.text.contains("[message ");
    let misses = |asked: &Asked| !expected(&question(asked)).is_empty();
    for limit in ["--max-requests", "--max-cost"] {
        project.remove("cache");
        let mut sent = 0;
        let (mut begun, mut ended, mut stopped_within) = (0, 0, 0);
        // One request at a time, so that the end of each run is determined: some runs end between the two steps of an
        // answer.
        for round in 0..60 {
            server.forget();
            // One step of an answer fits into the budget, and two do not.
            let budget = if limit == "--max-cost" { "0.14" } else { "7" };
            let run = project.compeval(&format!(
                "run --label a -j 1 --runs 1 --methods nothing {limit} {budget}"
            ));
            sent += server.count();
            if run.code == 0 {
                break;
            }
            assert_eq!((run.code, round < 59), (6, true), "{}", run.stderr);
            let rows = project.result("a", "manifest.json");
            assert_eq!(rows["failures"], json!([]), "a budget is no failure");
            let asked = server.asked();
            begun += asked
                .iter()
                .filter(|asked| may_search(asked) && !asks_next(asked) && misses(asked))
                .count();
            ended += asked.iter().filter(|asked| asks_next(asked)).count();
            stopped_within += usize::from(begun > ended);
        }
        assert_eq!(sent, whole, "{limit}: nothing was asked twice");
        assert!(stopped_within > 0, "{limit}: none ended within an answer");
        assert_eq!(project.rows("a"), project.rows("whole"), "{limit}");
    }
}

#[test]
fn the_first_step_goes_by_batch_and_the_others_live() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = batches::project(&server);
    let settings = "[answer.recovery]\ncalls = 1\n\n[[judge]]";
    project.edit("pipeline.toml", "[[judge]]", settings);
    server.book().behaviour.fates = Arc::new(|body, _| {
        if body["tools"].is_array() {
            Fate::Search("listen port")
        } else {
            Fate::Sensible
        }
    });
    project.expect(
        0,
        "run --label a --runs 1 --lane batch --wait --methods nothing",
    );
    let (_, open) = books(&project, "a");
    assert!(
        open.values()
            .all(|row| row["open_book"]["searches"].as_array().unwrap().len() == 1),
        "{open:?}"
    );
    let in_batches: Vec<String> = server
        .book()
        .batches
        .iter()
        .flat_map(|batch| &batch.lines)
        .map(|(_, body)| body.to_string())
        .collect();
    let has = |words: &str| in_batches.iter().any(|body| body.contains(words));
    assert_eq!((has("\"tools\""), has("tool_call_id")), (true, false));
    assert_eq!(server.billed_twice(), 0);
}
