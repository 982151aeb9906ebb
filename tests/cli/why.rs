//! `why` explains what was edited, down to the line, and what failed, with all stages above it.

use serde_json::json;

use super::project::Project;
use super::server::Server;

const CELL: &str = "why harbor --method full --probe first-error --label a";

#[test]
fn an_edited_question_fact_or_message_is_shown_with_its_lines() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    // The texts that edited lines are computed from survive a prune.
    project.expect(0, "cache prune --older-than 100d");
    project.edit(
        "probes/harbor.probes.json",
        "Which error number came at start, and why?",
        "Which error came at start?",
    );
    project.edit(
        "probes/harbor.probes.json",
        "What is left to restart",
        "What is there to restart",
    );
    let output = project.expect(0, CELL).stdout;
    let lines = [
        "probe text: probes/harbor.probes.json: question of first-error",
        "@@ line 3 @@",
    ];
    let both = [
        "-    {\"id\": \"first-error\"",
        "+    {\"id\": \"first-error\"",
        "Which error came at start?\"",
    ];
    for words in lines.into_iter().chain(both) {
        assert!(output.contains(words), "`{words}` is missing in {output}");
    }
    assert!(
        !output.contains("What is there to restart"),
        "the edit of another probe\n{output}"
    );

    project.edit(
        "fixtures/harbor.json",
        "Never touch the ledger table.",
        "Never touch the ledger tables.",
    );
    let output = project.expect(0, CELL).stdout;
    let edited = "-The harbor service does not start. Find out why. Never touch the ledger table.";
    for words in [
        "fixtures/harbor.json, as models read it",
        edited,
        "ledger tables.\n",
    ] {
        assert!(output.contains(words), "`{words}` is missing in {output}");
    }
}

#[test]
fn what_was_pruned_is_superseded_and_not_called_damaged() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    project.edit("prompts/answer.md", "Answer from", "Reply from");
    project.expect(0, "cache prune --older-than 0s");
    project.expect(0, "run --label b --runs 1 --methods full");
    let text = project.expect(0, CELL).stdout;
    assert!(
        text.contains("superseded") && text.contains("(its entry is no longer in the cache)"),
        "{text}"
    );
    assert!(!text.contains("damaged"), "{text}");
    let written = project.expect(0, "report a");
    written.says(&[
        "cache: the cache no longer has",
        "of this run: the page lacks the contexts among them",
    ]);
    let written = project.expect(0, "report b");
    assert!(!written.stderr.contains("no longer"), "{written:?}");
    let why = project.expect(0, &format!("{CELL} --json")).json();
    let answer = &why["chain"][1];
    assert_eq!(
        (&answer["key"], &answer["why"]),
        (&why["keys"]["answer"], &json!(null))
    );
}

#[test]
fn a_rubric_of_ones_own_is_held_against_the_built_in_one() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    let built_in = include_str!("../../assets/rubric/en.toml");
    let own = built_in
        .lines()
        .map(|line| match line.strip_prefix("question = \"") {
            Some(question) => format!("question = \"Look closely. {question}"),
            None => line.to_owned(),
        });
    project.write("rubric.toml", &own.collect::<Vec<_>>().join("\n"));
    project.edit(
        "pipeline.toml",
        "runs = 2",
        "runs = 2\nrubric = \"rubric.toml\"",
    );
    let output = project.expect(0, CELL).stdout;
    assert!(
        output.contains("rubric: rubric.toml:") && output.contains("+question = \"Look closely. "),
        "{output}"
    );
}

#[test]
fn without_a_label_an_unfinished_run_is_passed_over_and_named() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full");
    project.edit("prompts/answer.md", "Answer from", "Reply from");
    project.expect(7, "run --label b --runs 1 --methods full --offline");
    let cell = "harbor --method full --probe first-error";
    for command in ["why", "show"] {
        let ended = project.expect(0, &format!("{command} {cell} --json"));
        assert_eq!(ended.json()["label"], "a");
        ended.says(&["these are the results `a`: a later run, `b`, is unfinished"]);
    }
    project
        .expect(4, &format!("why {cell} --label b"))
        .says(&["`b` has no such judged cell"]);
    project.expect(0, "run --label b --runs 1 --methods full");
    let ended = project.expect(0, &format!("why {cell} --json"));
    assert_eq!(
        (&ended.json()["label"], ended.stderr.contains("unfinished")),
        (&json!("b"), false)
    );
}

#[test]
fn a_failure_is_shown_with_the_chain_above_it() {
    let server = Server::start();
    let project = Project::new(&server);
    server.refuse_answers("Which error number");
    project.expect(5, "run --label a --runs 1 --methods full");
    let output = project.expect(0, CELL).stdout;
    for words in [
        "answer failed",
        "compress",
        "cached",
        "failed last time: invalid",
        "failed: HTTP 400",
        "not today",
    ] {
        assert!(output.contains(words), "`{words}` is missing in {output}");
    }
    assert!(output.contains("next: compeval plan"), "{output}");
    let why = project.expect(0, &format!("{CELL} --json")).json();
    assert_eq!(
        (&why["overall"], &why["keys"]["judge"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(
        (&why["chain"][1]["stage"], &why["failure"]["class"]),
        (&json!("answer"), &json!("invalid"))
    );
    project.expect(4, &CELL.replace("why", "show"));
}
