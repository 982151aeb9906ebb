//! Too little input: an unknown figure gets a sentence that says so, and no number.

#![cfg(unix)]

use serde_json::{Value, json};

use super::gate::{compared, lose, sessions};
use super::project::Project;
use super::server::Server;

/// The report of a label, with its lines joined and code unquoted.
fn report(project: &Project, label: &str) -> String {
    project
        .read(&format!("results/{label}/report.md"))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('`', "")
}

/// Asserts that report and page have a sentence.
fn both_say(project: &Project, label: &str, sentence: &str) {
    let text = report(project, label);
    assert!(text.contains(sentence), "{sentence}: {text}");
    let page = project
        .read(&format!("results/{label}/report.html"))
        .replace('`', "");
    assert!(page.contains(sentence), "{sentence}: not on the page");
}

#[test]
fn a_bank_without_constraint_tags_knows_nothing_of_rules() {
    let project = sessions(1, 3);
    project.expect(0, "run --label a");
    both_say(
        &project,
        "a",
        "no question has the tag constraint, so the user's rules are not measured",
    );
    assert_eq!(
        project.result("a", "summary.json")["methods"]["m1"]["constraints_kept"],
        Value::Null
    );
    assert!(
        !report(&project, "a").contains("| rules kept |"),
        "no column without a figure"
    );
}

/// A log of Claude Code that begins with the summary of what came before.
fn midway_log() -> String {
    let summary =
        "This session is being continued from a previous conversation about src/net/cache.rs.";
    let lines = [
        json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": summary}}),
        json!({"type": "user", "message": {"role": "user", "content": "Go on with src/net/cache.rs."}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": "The limit in src/net/pool.rs is 512."}}),
        json!({"type": "user", "message": {"role": "user", "content": "Good, and then?"}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": "Then the tests."}}),
    ];
    let mut text = String::new();
    for (at, mut line) in lines.into_iter().enumerate() {
        line["uuid"] = json!(format!("u{at}"));
        line["parentUuid"] = if at == 0 {
            Value::Null
        } else {
            json!(format!("u{}", at - 1))
        };
        line["sessionId"] = json!("s");
        line["timestamp"] = json!(format!("2026-01-01T00:00:0{at}Z"));
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// A program whose summaries name a file that no session mentions.
const INVENTOR: &str = r#"printf '{"summary":"The limit of 512 is in src/net/pool.rs. The lock is in src/net/lock_table.rs."}\n'"#;

#[test]
fn a_log_that_begins_midway_has_no_invented_references() {
    let project = sessions(1, 1);
    project.write("tools/compress.sh", INVENTOR);
    project.expect(0, "run --stages compress --label a");
    let invented =
        |label: &str| project.result(label, "summary.json")["methods"]["m1"]["invented"].clone();
    assert_eq!(
        invented("a")["references"],
        json!(["src/net/lock_table.rs", "src/net/pool.rs"]),
        "{}",
        invented("a")
    );
    both_say(
        &project,
        "a",
        "m1 2 (83.3 per 1,000 tokens: src/net/lock_table.rs, src/net/pool.rs)",
    );
    assert!(report(&project, "a").contains("| invented/1k |"));

    project.remove("fixtures/s1.json");
    project.remove("probes/s1.probes.json");
    project.write("log/midway.jsonl", &midway_log());
    let imported = project.expect(0, "fixture import log/midway.jsonl --name midway");
    assert!(
        imported
            .stdout
            .contains("; it begins in the middle of a session"),
        "{}",
        imported.stdout
    );
    project.expect(0, "run --stages compress --label b");
    let context = project.read("results/b/contexts.jsonl");
    let context: Value =
        serde_json::from_str(context.lines().next().expect("a context")).expect("a context");
    assert_eq!(
        (&context["invented"], context["tokens"].is_u64()),
        (&Value::Null, true),
        "{context}"
    );
    assert_eq!(
        (
            &invented("b")["per_1000_tokens"],
            &invented("b")["begun_midway"]
        ),
        (&Value::Null, &json!(1))
    );
    both_say(
        &project,
        "b",
        "invented references: 1 of 1 contexts are of logs that begin in the middle of a session",
    );
    assert!(
        !report(&project, "b").contains("| invented/1k |"),
        "no column without a figure"
    );
}

#[test]
fn sessions_in_a_language_that_judges_were_not_tested_in_are_named() {
    let server = Server::start();
    let project = Project::new(&server);
    let note = "1 of 2 sessions are in Chinese, but judges were tested in English alone";
    project.expect(0, "run --label a --runs 1");
    assert!(!report(&project, "a").contains("are in Chinese"));
    let messages = json!([
        {"role": "user", "content": "请把缓存的端口记下来，网关的端口是多少？"},
        {"role": "assistant", "content": "网关监听端口 9090。"},
    ]);
    let fixture = json!({"name": "zh", "messages": messages, "points": [2]});
    let probe = json!({"id": "port", "type": "recall", "question": "网关监听哪个端口？", "expected_facts": ["9090"]});
    project.write("fixtures/zh.json", &fixture.to_string());
    project.write(
        "probes/zh.probes.json",
        &json!({"fixture": "zh", "probes": [probe]}).to_string(),
    );
    project.expect(0, "run --label b --runs 1");
    both_say(&project, "b", note);
}

#[test]
fn three_fixtures_of_which_one_changed_are_not_tested_and_a_small_loss_is_no_verdict() {
    let project = sessions(1, 3);
    project.expect(0, "run --label a");
    lose(&project, "m1", 3, |number| usize::from(number == 1));
    project.expect(0, "run --label b --compare-to a --fail-on-regression");
    both_say(
        &project,
        "b",
        "m1 cannot be tested: it changed in 1 of 3 fixtures, and a test needs 3",
    );
    assert_eq!(
        compared(&project, "b")["methods"]["m1"]["overall"]["verdict"],
        "no evidence"
    );
    lose(&project, "m1", 3, |number| [0, 1, 2][number - 1]);
    project.expect(0, "run --label c --compare-to a --fail-on-regression");
    assert_eq!(
        compared(&project, "c")["methods"]["m1"]["overall"]["verdict"],
        "no evidence"
    );
}

#[test]
fn one_run_of_a_model_cannot_tell_an_edit_from_chance() {
    let server = Server::start();
    let project = Project::new(&server);
    let note = "One repetition cannot tell an edit from chance";
    project.expect(0, "run --label a --runs 1");
    both_say(&project, "a", note);
    let all = project
        .expect(0, "report a --all")
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(all.contains(note), "{all}");
    project.edit("prompts/anchored.md", "## ", "## The ");
    project.expect(0, "run --label b --runs 1 --compare-to a");
    both_say(&project, "b", note);
    project.expect(0, "run --label c --runs 2");
    assert!(!report(&project, "c").contains(note));
}

#[test]
fn one_probe_is_too_little_to_compare_methods() {
    let project = sessions(2, 1);
    lose(&project, "m1", 1, |_| 1);
    let bank: Value = serde_json::from_str(&project.read("probes/s1.probes.json")).expect("a bank");
    let with = |count: usize| {
        let probes: Vec<Value> = bank["probes"]
            .as_array()
            .expect("probes")
            .iter()
            .take(count)
            .cloned()
            .collect();
        project.write(
            "probes/s1.probes.json",
            &json!({"fixture": "s1", "probes": probes}).to_string(),
        );
    };
    with(1);
    project.expect(0, "run --label a");
    both_say(
        &project,
        "a",
        "one probe: every figure is that of a single question, so methods are not compared",
    );
    let summary = project.result("a", "summary.json");
    assert_eq!(
        (
            &summary["probes"],
            &summary["methods"]["m1"]["overall"]["ci95"]
        ),
        (&json!(1), &Value::Null)
    );
    with(4);
    project.expect(0, "run --label b");
    both_say(
        &project,
        "b",
        "4 probes in all: each one has a large effect on every figure",
    );
}
