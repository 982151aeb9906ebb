//! Answers that the token limit cut off are graded and counted.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::Wanted;
use super::gate::{compared, lose, sessions};
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
fn truncated_answers_are_graded_and_counted() {
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
}

#[test]
fn an_answer_that_was_cut_off_before_it_began_fails() {
    let server = Server::start();
    let project = Project::new(&server);
    cut_off(&server, QUESTION, "<think>The retry limit");
    project.expect(5, "run --all --label a --runs 1 --methods full,nothing");
    assert_eq!(project.rows("a").len(), 2 * 6);
    let share = &project.result("a", "summary.json")["methods"]["full"]["truncated_share"];
    assert!(
        (share.as_f64().unwrap() - 1.0 / 7.0).abs() < 1e-9,
        "{share}"
    );
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
fn a_loss_of_answers_that_were_cut_off_is_a_loss_and_says_how_many_were() {
    let server = Server::start();
    let project = answered_sessions(&server);
    project.expect(0, "run --all --label before");
    lose(&project, "m1", 6, |session| 3 + session % 2);
    cut_off(
        &server,
        "What is the alpha code",
        "Let me see, the code could be",
    );
    let ended = project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let flat: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(
        flat.join(" ")
            .contains("answers that the token limit cut off: 0.0%"),
        "{}",
        ended.stdout
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
