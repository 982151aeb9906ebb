//! Constraints through the program: rules are put into sessions in memory, which are compressed, and looked for in the
//! contexts.

use serde_json::{Value, json};

use super::project::Project;

const METHODS: &str = r#"
[pipeline]
runs = 2

[constraints]
enabled = true
set = "rules.toml"

[[compress]]
name = "full"
strategy = "full"

[[compress]]
name = "newest"
strategy = "truncate"
target_tokens = 150

[[compress]]
name = "none"
strategy = "none"
"#;

const RULES: &str = r#"
[[rule]]
name = "port"
language = "en"
text = "Never use port 48213."
object = ["48213"]

[[rule]]
name = "named-anyway"
language = "en"
text = "Do not touch src/worker.rs."
object = ["src/worker.rs"]

[[rule]]
name = "zh-port"
language = "zh"
text = "不要使用端口 48213。"
object = ["48213"]
"#;

/// A session of 12 messages of about 50 tokens each, with points after 6 and 12.
fn planted(rules: &str) -> Project {
    let project = Project::offline();
    std::fs::remove_file(project.path("fixtures/harbor.json")).unwrap();
    std::fs::remove_file(project.path("probes/harbor.probes.json")).unwrap();
    project.write("pipeline.toml", METHODS);
    project.write("rules.toml", rules);
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({ "role": role, "content": format!("Step {at} in src/worker.rs: {}", "go on ".repeat(20)) })
    };
    let session = json!({ "name": "steps", "messages": (0..12).map(message).collect::<Vec<_>>(), "points": [6, 12] });
    project.write("fixtures/steps.json", &session.to_string());
    project
}

fn rows(project: &Project, label: &str) -> Vec<Value> {
    let text = project.read(&format!("results/{label}/constraints.jsonl"));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

#[test]
fn rules_are_put_in_one_at_a_time_and_found_by_position_and_compressions() {
    let project = planted(RULES);
    let plan = project.expect(0, "plan --json").json();
    // Two points. Each session runs twice as it is, and once with the rule at each of three positions.
    assert_eq!(plan["stages"]["compress"]["cells"], 3 * 2 * (2 + 3));
    let ended = project.expect(0, "run --all --label a");
    assert!(
        ended.stdout.contains("word for word") && ended.stdout.contains("after 2"),
        "{}",
        ended.stdout
    );
    let all = rows(&project, "a");
    assert_eq!(
        all.len(),
        3 * 2 * 3,
        "the other rules are of another language, or named by the session"
    );
    let summary = project.result("a", "summary.json");
    let of = |method: &str| &summary["methods"][method]["constraints"];
    let share = |found: &Value| found["near_literal"]["share"].clone();
    assert_eq!(
        (share(of("full")), share(of("none"))),
        (json!(1.0), json!(0.0))
    );
    assert_eq!(of("full")["rules"], 1);
    // The newest 150 tokens of the first six messages hold the late rule alone. After the second compression they hold
    // none.
    let by = |group: &str, name: &str| share(&of("newest")[group][name]);
    assert_eq!(
        ["early", "middle", "late"].map(|name| by("by_position", name)),
        [json!(0.0), json!(0.0), json!(0.5)]
    );
    assert_eq!(
        [by("by_compressions", "2"), share(of("newest"))],
        [json!(0.0), json!(1.0 / 6.0)]
    );
    assert!(
        project
            .read("results/a/report.md")
            .contains("<summary>Constraints</summary>")
    );
    let page = project.read("results/a/report.html");
    assert!(
        page.contains("\"id\":\"constraints\""),
        "the page has the table"
    );
    assert_eq!(
        project.read("results/a/contexts.jsonl").lines().count(),
        3 * 2 * 2,
        "recorded sessions alone"
    );
}

#[test]
fn compressions_with_rules_are_cached_reachable_and_compared() {
    let project = planted(RULES);
    project.expect(0, "run --all --label a");
    let before = project.read("results/a/constraints.jsonl");
    project.expect(0, "run --all --label a");
    assert_eq!(project.read("results/a/constraints.jsonl"), before);
    assert_eq!(
        project.result("a", "manifest.json")["stages"]["compress"]["executed"],
        0
    );
    std::fs::remove_dir_all(project.path("results/a")).unwrap();
    let pruned = project.expect(0, "cache prune --unreachable --json").json();
    assert_eq!(pruned["entries"], 0, "{pruned}");
    project.edit(
        "rules.toml",
        "Never use port 48213.",
        "Port 48213 is forbidden.",
    );
    let stale = project.expect(0, "plan --json").json();
    assert_eq!(stale["stages"]["compress"]["stale"], 3 * 2 * 3);
    assert_eq!(
        stale["reasons"][0]["changed"],
        json!(["rules.toml"]),
        "{stale}"
    );
    project.edit(
        "rules.toml",
        "Port 48213 is forbidden.",
        "Never use port 48213.",
    );
    project.expect(0, "run --all --label b");
    project.edit(
        "pipeline.toml",
        "target_tokens = 150",
        "target_tokens = 400",
    );
    project.expect(0, "run --all --label c");
    let compared = project.expect(0, "compare --all c b");
    let text = compared
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("rules that contexts have, word for word or nearly so: 16.7% of 6 →"),
        "{}",
        compared.stdout
    );
    project.edit("pipeline.toml", "enabled = true", "enabled = false");
    let refused = project.expect(2, "run --all --label c");
    refused.says(&["the rules that are put into the sessions"]);
    project.expect(0, "run --all --label d");
    assert!(!project.exists("results/d/constraints.jsonl"));
    assert_eq!(
        project.result("d", "summary.json")["methods"]["full"]["constraints"],
        Value::Null
    );
}

#[test]
fn a_wrong_set_of_rules_is_named_with_place_and_remedy() {
    let rule = "[[rule]]\nname = \"port\"\nlanguage = \"en\"\ntext = \"Never use port 48213.\"\nobject = [\"48213\"]\n";
    let cases = [
        ("object = [", "objekt = [", "unknown key `objekt`", "object"),
        (
            "object = [\"48213\"]",
            "object = \"48213\"",
            "expected a list of strings",
            "rules.toml:5",
        ),
        (
            "object = [\"48213\"]",
            "object = []",
            "`object` is empty",
            "every rule needs it",
        ),
        (
            "object = [\"48213\"]",
            "object = [\"48214\"]",
            "does not have its object, `48214`",
            "as it is written in the text",
        ),
        (
            "text = \"Never",
            "text = \"Please",
            "no sentence in the text of the rule `port`",
            "prohibition",
        ),
        (
            "text = \"Never use port 48213.\"\n",
            "",
            "this rule has no `text`",
            "`name`, `language`, `text` and `object`",
        ),
        (
            "\"en\"",
            "\"fr\"",
            "unknown language `fr`",
            "expected \"en\" or \"zh\"",
        ),
        (rule, "", "has no rules", "write a [[rule]] table"),
        ("[[rule]]", "[[rule]", "this is not TOML", "rules.toml:1"),
    ];
    let project = planted(rule);
    for (from, to, message, remedy) in cases {
        assert!(rule.contains(from));
        project.write("rules.toml", &rule.replace(from, to));
        project.expect(2, "plan").says(&[message, remedy]);
    }
    project.write("rules.toml", &format!("{rule}{rule}"));
    project
        .expect(2, "check")
        .says(&["two rules are named `port`", "rules.toml:7"]);
    std::fs::remove_file(project.path("rules.toml")).unwrap();
    project.expect(2, "check").says(&[
        "cannot read the set of rules rules.toml",
        "there is no such file",
    ]);
    project.write(
        "rules.toml",
        &rule
            .replace("\"en\"", "\"zh\"")
            .replace("Never use port", "不要使用端口"),
    );
    project
        .expect(0, "run --all --label a")
        .says(&["no rule of the constraints can be put into steps"]);
    assert!(!project.exists("results/a/constraints.jsonl"));
}
