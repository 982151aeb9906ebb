//! Answers that the token limit cut off are graded or fail as the answerer's settings say, are counted, and are never
//! the only reason of a verdict.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::{self, Wanted};
use super::gate::{compared, lose, sessions};
use super::kills::damage;
use super::project::Project;
use super::server::{Asked, Reply, Server, with_finish};

/// Cuts off the answers to prompts that contain these words.
fn cut_off(server: &Server, words: &'static str, said: &'static str) {
    server.script(move |asked: &Asked| {
        match asked.wanted == Wanted::Answer && asked.text.contains(words) {
            true => Reply::Raw(200, with_finish(asked, said, "length")),
            false => Reply::Sensible,
        }
    });
}

const QUESTION: &str = "Why was the retry limit raised";

fn truncated_rows(project: &Project, label: &str) -> Vec<Value> {
    project
        .rows(label)
        .into_iter()
        .filter(|row| row["truncated"] == json!(true))
        .collect()
}

#[test]
fn truncated_answers_are_graded_or_fail_as_set_and_nothing_is_asked_again() {
    let server = Server::start();
    let project = Project::new(&server);
    cut_off(&server, QUESTION, "It was raised because the upstream");
    let ended = project.expect(0, "run --all --label graded --runs 1");
    let (rows, cut) = (project.rows("graded"), truncated_rows(&project, "graded"));
    assert_eq!((rows.len(), cut.len()), (5 * 7, 5));
    assert!(
        cut.iter()
            .all(|row| row["probe"] == "retries" && row["overall"].is_number()),
        "{cut:?}"
    );
    let summary = project.result("graded", "summary.json");
    let share = |summary: &Value| {
        summary["methods"]["anchored"]["truncated_share"]
            .as_f64()
            .unwrap()
    };
    assert!((share(&summary) - 1.0 / 7.0).abs() < 1e-9, "{summary}");
    assert_eq!(
        project.result("graded", "manifest.json")["design"]["answerers"][0]["truncated_replies"],
        "grade"
    );
    for text in [
        ended.stdout,
        project.read("results/graded/report.md"),
        project.read("results/graded/report.html"),
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains("anchored 14.3%") && flat.contains("of the answers were cut off"),
            "{flat}"
        );
    }
    let shown = project.expect(
        0,
        "show harbor --label graded --method full --probe retries",
    );
    assert!(
        shown.stdout.contains("the token limit cut the answer off"),
        "{}",
        shown.stdout
    );

    // With the other setting the same answers fail, from the cache; nothing has to be sent.
    server.forget();
    project.edit(
        "pipeline.toml",
        "name   = \"agent\"",
        "name   = \"agent\"\ntruncated_replies = \"fail\"",
    );
    let plan = project.expect(0, "plan --runs 1 --json").json();
    assert_eq!(
        (
            &plan["stages"]["answer"]["stale"],
            &plan["stages"]["judge"]["stale"]
        ),
        (&json!(0), &json!(0))
    );
    assert_eq!(plan["stages"]["judge"]["blocked"], 0);
    project.expect(5, "run --all --label failed --runs 1");
    assert_eq!(
        (
            project.rows("failed").len(),
            truncated_rows(&project, "failed").len()
        ),
        (5 * 6, 0)
    );
    let failures = project.result("failed", "manifest.json")["failures"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(failures.len(), 5, "{failures:?}");
    assert!(
        failures
            .iter()
            .all(|failure| failure["class"] == "truncated"),
        "{failures:?}"
    );
    assert!((share(&project.result("failed", "summary.json")) - 1.0 / 7.0).abs() < 1e-9);
    assert!(
        project
            .read("results/failed/report.md")
            .contains("their cells failed")
    );

    // The two cannot be compared.
    for flags in ["", "--only-common"] {
        project
            .expect(2, &format!("compare --all failed graded {flags}"))
            .says(&["truncated_replies", "fail against grade"]);
    }
    project.edit(
        "pipeline.toml",
        "truncated_replies = \"fail\"",
        "truncated_replies = \"grade\"",
    );
    project.expect(0, "run --all --label again --runs 1");
    assert_eq!(project.rows("again"), rows);
    assert_eq!(server.count(), 0, "the setting asks nobody");
    project.edit(
        "pipeline.toml",
        "truncated_replies = \"grade\"",
        "truncated_replies = \"keep\"",
    );
    project
        .expect(2, "check")
        .says(&["unknown truncated_replies `keep`"]);
}

#[test]
fn an_answer_that_fails_because_it_was_cut_off_leaves_nothing_to_run() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "name   = \"agent\"",
        "name   = \"agent\"\ntruncated_replies = \"fail\"",
    );
    cut_off(&server, QUESTION, "It was raised because the upstream");
    project.expect(5, "run --all --label a");
    let pruned = project.expect(0, "cache prune --unreachable --dry-run");
    assert!(
        !pruned.stderr.contains("have no readable output"),
        "no run grades it: {}",
        pruned.stderr
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_stale_to_a_plan_and_is_made_again() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "name   = \"agent\"",
        "name   = \"agent\"\ntruncated_replies = \"fail\"",
    );
    project.expect(0, "run --label a --runs 1 --methods full");
    damage(
        &project,
        project.rows("a")[0]["keys"]["answer"].as_str().unwrap(),
    );
    let plan = project
        .expect(0, "plan --runs 1 --methods full --json")
        .json();
    assert_eq!(plan["stages"]["answer"]["stale"], 1, "{plan}");
    server.forget();
    project.expect(0, "run --label a --runs 1 --methods full");
    assert_eq!(server.counts().get(&Wanted::Answer), Some(&1));
}

#[test]
fn an_answer_that_was_cut_off_before_it_began_fails_in_either_case() {
    for setting in ["grade", "fail"] {
        let server = Server::start();
        let project = Project::new(&server);
        let table = format!("name   = \"agent\"\ntruncated_replies = \"{setting}\"");
        project.edit("pipeline.toml", "name   = \"agent\"", &table);
        cut_off(&server, QUESTION, "<think>The retry limit");
        project.expect(5, "run --all --label a --runs 1 --methods full,nothing");
        assert_eq!(project.rows("a").len(), 2 * 6, "{setting}");
        let share = &project.result("a", "summary.json")["methods"]["full"]["truncated_share"];
        assert!(
            (share.as_f64().unwrap() - 1.0 / 7.0).abs() < 1e-9,
            "{setting}: {share}"
        );
    }
}

#[test]
fn a_reply_of_anthropic_that_reached_max_tokens_is_graded_and_marked() {
    let server = Server::start();
    let project = Project::new(&server);
    let vendor = format!(
        "[providers.vendor]\nkind = \"anthropic\"\nbase_url = \"{}\"\n",
        server.url()
    );
    let pipeline = project.read("pipeline.toml").replace(
        "[[answer]]\nname   = \"agent\"\nmodel  = \"mock/small-1\"",
        &format!("{vendor}\n[[answer]]\nname   = \"agent\"\nmodel  = \"vendor/small-1\"\nmax_output_tokens = 20"),
    );
    project.write("pipeline.toml", &pipeline);
    server.script(|asked| match asked.path.ends_with("/messages") {
        true => {
            let reason = if asked.json.to_string().contains(QUESTION) { "max_tokens" } else { "end_turn" };
            let body = json!({"type": "message", "model": "small-1", "stop_reason": reason,
                "content": [{"type": "text", "text": "It was raised"}], "usage": {"input_tokens": 9, "output_tokens": 5}});
            Reply::Raw(200, body.to_string())
        }
        false => Reply::Sensible,
    });
    project.expect(0, "run --all --label a --runs 1 --methods full,nothing");
    let cut = truncated_rows(&project, "a");
    assert!(
        cut.len() == 2 && cut.iter().all(|row| row["probe"] == "retries"),
        "{cut:?}"
    );
}

/// Six sessions, whose probes a model answers.
fn answered_sessions(server: &Server) -> Project {
    let project = sessions(1, 6);
    let provider = format!(
        "[providers.mock]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\n[[answer]]",
        server.url()
    );
    project.edit("pipeline.toml", "[[answer]]", &provider);
    project.edit(
        "pipeline.toml",
        "model = \"lexical\"",
        "model = \"mock/small-1\"\nprompt = \"prompts/answer.md\"",
    );
    project
}

#[test]
fn a_verdict_that_rests_on_truncated_answers_is_withheld() {
    for (reason, code) in [("length", 1), ("stop", 100)] {
        let server = Server::start();
        let project = answered_sessions(&server);
        project.expect(0, "run --all --label before");
        lose(&project, "m1", 6, |session| 1 + usize::from(session == 2));
        // A model that lacks a fact thinks aloud until the limit.
        server.script(move |asked| match brain::reply(&asked.json) {
            said if asked.wanted == Wanted::Answer
                && asked.text.contains("What is the alpha code") =>
            {
                let said = if said.contains("-alpha") {
                    said
                } else {
                    "Let me see, the code could be".to_owned()
                };
                Reply::Raw(200, with_finish(asked, &said, reason))
            }
            said => Reply::Text(said),
        });
        let ended = project.expect(
            code,
            "run --all --label after --compare-to before --fail-on-regression",
        );
        let overall = &compared(&project, "after")["methods"]["m1"]["overall"];
        assert!(overall["difference"].as_f64().unwrap() < -0.9, "{overall}");
        if reason == "length" {
            assert_eq!(
                (&overall["verdict"], &overall["reason"]),
                (&json!("no evidence"), &json!("truncated"))
            );
            assert!(
                ended.stdout.contains("truncated replies"),
                "{}",
                ended.stdout
            );
            // The method may be what makes the model think aloud, so the gate does not pass either.
            ended.says(&[
                "gate refused: m1: overall −",
                "cut off, 0 of 24 in the baseline and 6 of 24 now",
            ]);
        } else {
            assert_eq!(overall["verdict"], "regressed");
        }
    }
}

#[test]
fn a_verdict_that_stands_without_truncated_answers_stands() {
    let server = Server::start();
    let project = answered_sessions(&server);
    project.expect(0, "run --all --label before");
    lose(&project, "m1", 6, |session| 3 + session % 2);
    cut_off(
        &server,
        "What is the alpha code",
        "Let me see, the code could be",
    );
    project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let m1 = compared(&project, "after")["methods"]["m1"].clone();
    assert_eq!(m1["overall"]["verdict"], "regressed", "{m1}");
    assert!(
        project.result("after", "summary.json")["methods"]["m1"]["truncated_share"]
            .as_f64()
            .unwrap()
            > 0.2
    );
}

#[test]
fn a_higher_limit_asks_again_for_what_was_cut_off_alone() {
    let server = Server::start();
    let project = Project::new(&server);
    cut_off(&server, QUESTION, "It was raised because the upstream");
    project.edit(
        "pipeline.toml",
        "name   = \"agent\"",
        "name   = \"agent\"\nmax_output_tokens = 400",
    );
    project.expect(0, "run --label a --runs 1 --methods full,anchored");
    let first = server.counts();
    let answers = first[&Wanted::Answer];
    project.edit(
        "pipeline.toml",
        "max_output_tokens = 400",
        "max_output_tokens = 500",
    );
    server.forget();
    let plan = project
        .expect(0, "plan --runs 1 --methods full,anchored --json")
        .json();
    let cut = truncated_rows(&project, "a").len();
    assert_eq!(
        plan["stages"]["answer"]["stale"],
        json!(cut),
        "of {answers}: {plan}"
    );
    project.expect(0, "run --label b --runs 1 --methods full,anchored");
    assert_eq!(server.counts().get(&Wanted::Answer), Some(&cut));
    assert_eq!(
        server.counts().get(&Wanted::Grades),
        None,
        "what was cut off says the same"
    );
    project
        .expect(0, "why harbor --method full --probe port --label b")
        .stdout_says(&["cached"]);
    // The replies stay in use. The pipeline reaches them, so they are not pruned, and no other limit sends them again.
    project.expect(0, "cache prune --unreachable");
    server.forget();
    project.edit(
        "pipeline.toml",
        "max_output_tokens = 500",
        "max_output_tokens = 600",
    );
    project.expect(0, "run --label c --runs 1 --methods full,anchored");
    assert_eq!(server.counts().get(&Wanted::Answer), Some(&cut));
    // A refresh that fails hides none of them.
    server.script(|_| Reply::Raw(400, "{}".into()));
    project.expect(
        5,
        "run --label e --runs 1 --methods full,anchored --refresh answer",
    );
    server.forget();
    project.expect(0, "run --label c --runs 1 --methods full,anchored");
    assert_eq!(server.count(), 0);
    // A lower limit could have cut them off.
    cut_off(&server, QUESTION, "It was raised because the upstream");
    project.edit(
        "pipeline.toml",
        "max_output_tokens = 600",
        "max_output_tokens = 300",
    );
    project.expect(0, "run --label d --runs 1 --methods full,anchored");
    assert_eq!(server.counts().get(&Wanted::Answer), Some(&answers));
}
