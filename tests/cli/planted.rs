//! Planted items through the program: put into sessions in memory, compressed, asked about, graded and compared.

use serde_json::{Value, json};

use super::project::Project;
use super::server::{Asked, Reply, Server, with_finish};

const METHODS: &str = r#"
[pipeline]
runs = 2

[planted]
variants = 2

[[compress]]
name = "full"
strategy = "full"

[[compress]]
name = "newest"
strategy = "truncate"
target_tokens = 900

[[compress]]
name = "none"
strategy = "none"

[[answer]]
name = "agent"
model = "lexical"
"#;

/// Three sessions of 40 messages of about 250 tokens each, with points after 30 and 40, one of them in Chinese.
fn sessions() -> Project {
    let project = Project::offline();
    project.remove("fixtures/harbor.json");
    project.remove("probes");
    project.write("pipeline.toml", METHODS);
    for (name, words) in [
        ("one", "go on with it "),
        ("two", "check the next file "),
        ("three", "继续检查这个文件，"),
    ] {
        let message = |at: usize| {
            let role = if at.is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            };
            json!({ "role": role, "content": format!("{at} src/worker.rs: {}", words.repeat(60)) })
        };
        let session = json!({ "name": name, "messages": (0..40).map(message).collect::<Vec<_>>(), "points": [30, 40] });
        project.write(&format!("fixtures/{name}.json"), &session.to_string());
    }
    project
}

fn rows(project: &Project, label: &str) -> Vec<Value> {
    let text = project.read(&format!("results/{label}/planted.jsonl"));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

fn share(summary: &Value, method: &str, figure: &str) -> Value {
    summary["methods"][method]["planted"][figure]["share"].clone()
}

#[test]
fn without_bank_and_judge_the_control_is_right_and_nothing_is_no_knowledge() {
    let project = sessions();
    let plan = project.expect(0, "plan --planted --json").json();
    // Three methods, three sessions, two variants, two points; two requests a context.
    assert_eq!(plan["stages"]["compress"]["cells"], 36);
    assert_eq!(plan["stages"]["answer"]["cells"], 72);
    assert_eq!(plan["stages"]["judge"]["cells"], 0);
    let ended = project.expect(0, "run --planted --all --label a");
    let all = rows(&project, "a");
    assert_eq!(
        all.len(),
        36 * 8,
        "seven items, one of them with two actions"
    );
    let summary = project.result("a", "summary.json");
    assert_eq!(share(&summary, "full", "obeyed"), json!(1.0));
    assert_eq!(share(&summary, "full", "state_right"), json!(1.0));
    assert_eq!(share(&summary, "full", "rules_kept"), json!(1.0));
    assert_eq!(share(&summary, "none", "obeyed"), json!(0.5));
    assert_eq!(share(&summary, "none", "forgotten"), json!(1.0));
    assert!(summary.get("planted_control").is_none());
    ended.stdout_says(&[
        "whole transcript: 0 of",
        "forgotten",
        "decoys done",
        "next: compeval show one --planted --label a",
    ]);
    let page = project.read("results/a/report.html");
    assert!(
        page.contains("\"id\":\"planted\""),
        "the page has the table"
    );
    let shown = project.expect(0, "show one --planted --method full --point 1 --label a");
    shown.stdout_says(&["replaced/", "context:", "reply: do; said: open"]);
    // What explains a score knows nothing of planted items.
    project.expect(2, "why one --planted --label a");
    project.expect(0, "run --planted --all --label a");
    assert_eq!(rows(&project, "a"), all);
    assert_eq!(
        project.result("a", "manifest.json")["stages"]["answer"]["executed"],
        0
    );
    // Without an answerer, the rules are looked for in the contexts.
    let ended = project.expect(0, "run --planted --stages compress --label b");
    ended.stdout_says(&["Planted rules kept"]);
    let kept = project.result("b", "summary.json");
    assert_eq!(share(&kept, "full", "rules_kept"), json!(1.0));
    assert_eq!(share(&kept, "full", "obeyed"), Value::Null);
}

#[test]
fn a_shorter_context_that_forgets_fails_the_gate() {
    let project = sessions();
    // Each kind stands early, in the middle and late in each of the few sessions.
    project.edit("pipeline.toml", "variants = 2", "variants = 3");
    project.edit(
        "pipeline.toml",
        "target_tokens = 900",
        "target_tokens = 9000",
    );
    project.expect(0, "run --planted --label a");
    project.edit(
        "pipeline.toml",
        "target_tokens = 9000",
        "target_tokens = 900",
    );
    let ended = project.expect(
        100,
        "run --planted --label b --compare-to a --fail-on-regression",
    );
    let compared =
        &project.result("b", "summary.json")["comparison"]["methods"]["newest"]["planted"];
    assert_eq!(
        compared["pooled"]["forgotten"]["regressed"], true,
        "{compared}"
    );
    assert_eq!(compared["pooled"]["resurrected"]["regressed"], false);
    ended.says(&["open tasks and jobs forgotten"]);
    ended.stdout_says(&["More planted items go wrong: newest"]);
}

/// A provider that answers all questions about planted items like this, and everything else by rules.
fn replying(reply: impl Fn(&Asked, &[u32]) -> Reply + Send + Sync + 'static) -> (Server, Project) {
    let server = Server::start();
    server.script(move |asked| {
        let numbers: Vec<u32> = asked
            .text
            .lines()
            .filter_map(|line| line.split_once(": ")?.0.parse().ok())
            .filter(|number| (11..100).contains(number))
            .collect();
        match asked.text.contains("\"leave\"") || asked.text.contains("nobody asked us") {
            true => reply(asked, &numbers),
            false => Reply::Sensible,
        }
    });
    let project = sessions();
    let provider = format!(
        "\n[providers.mock]\nkind = \"openai-chat\"\nbase_url = \"{}\"\napi_key_env = \"MOCK_API_KEY\"\n",
        server.url()
    );
    let text = METHODS.replace("model = \"lexical\"", "model = \"mock/small-1\"") + &provider;
    project.write("pipeline.toml", &text);
    (server, project)
}

/// A sound reply to either request: everything is left, and nothing is known.
fn leave(asked: &Asked, numbers: &[u32]) -> String {
    let word = if asked.text.contains("\"leave\"") {
        "leave"
    } else {
        "not in the context"
    };
    let entries: Vec<String> = numbers
        .iter()
        .map(|number| format!("\"{number}\":\"{word}\""))
        .collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn the_plan_counts_every_request_and_a_control_that_knows_nothing_voids_the_figures() {
    let (server, project) = replying(|asked, numbers| Reply::Text(leave(asked, numbers)));
    let plan = project
        .expect(0, "plan --planted --json --methods full")
        .json();
    assert_eq!(plan["estimate"]["requests"], 24, "{plan}");
    project.expect(0, "run --planted --label whole --methods full");
    assert_eq!(server.count(), 24);
    // About an empty context the requests of both points are equal, and are sent once.
    project.expect(0, "run --planted --label a --methods full,none");
    assert_eq!(server.count(), 24 + 12);
    let summary = project.result("a", "summary.json");
    let void = summary["planted_control"]["void"].as_str().expect("void");
    assert!(void.contains("significantly under 85%"), "{void}");
    assert_eq!(share(&summary, "none", "obeyed"), Value::Null);
    assert_eq!(share(&summary, "none", "rules_kept"), json!(0.0));
    project
        .expect(2, "compare a whole")
        .says(&["the planted items of a are void: from the whole transcript"]);
}

#[test]
fn a_reply_out_of_form_fails_by_name_and_never_counts_as_leave() {
    type Damage = fn(&Asked, &[u32]) -> Reply;
    let cases: [(&str, Damage); 6] = [
        ("which was not asked about", |asked, numbers| {
            Reply::Text(leave(asked, numbers).replacen("\"11\"", "\"99\"", 1))
        }),
        ("twice", |asked, numbers| {
            Reply::Text(leave(asked, numbers).replacen("\"12\"", "\"11\"", 1))
        }),
        ("not one JSON object", |asked, numbers| {
            Reply::Text(format!("Here you are: {}", leave(asked, numbers)))
        }),
        ("not one JSON object", |_, _| {
            Reply::Text("I cannot help with that.".to_owned())
        }),
        ("leaves out the number", |asked, numbers| {
            Reply::Text(leave(asked, &numbers[1..]))
        }),
        ("token limit", |asked, numbers| {
            Reply::Raw(200, with_finish(asked, &leave(asked, numbers), "length"))
        }),
    ];
    for (named, damage) in cases {
        let (_server, project) = replying(damage);
        project.expect(5, "run --planted --label a --methods full --fixtures one");
        let failures = project.result("a", "manifest.json")["failures"].clone();
        let failures = failures.as_array().expect("failures");
        // One answer for each of two variants, two points and two requests; a cause that repeats is asked once.
        assert!(!failures.is_empty(), "{named}");
        assert!(
            failures.iter().all(|one| one["message"]
                .as_str()
                .is_some_and(|text| text.contains(named))),
            "{named}: {failures:?}"
        );
        assert!(
            failures.iter().all(|one| one["variant"].is_number()),
            "{failures:?}"
        );
        assert!(
            rows(&project, "a")
                .iter()
                .all(|row| row["done"].is_null() && row["said"].is_null())
        );
        let void = project.result("a", "summary.json")["planted_control"]["void"].clone();
        assert!(
            void.as_str()
                .is_some_and(|text| text.contains("the required form")),
            "{void}"
        );
    }
}

#[test]
fn a_wrong_set_is_named_and_a_session_without_room_is_said() {
    let project = sessions();
    project.edit("pipeline.toml", "variants = 2", "set = \"items.toml\"");
    project
        .expect(2, "plan --planted")
        .says(&["cannot read the set of planted items items.toml"]);
    project.write("items.toml", "[[en.item]]\nname = \"a\"\naction = \"send {object}\"\ncommand = \"send {object}\"\nobjects = []\n");
    project
        .expect(2, "plan --planted")
        .says(&["too few `objects`", "items.toml:2"]);
    let set = |objects: &str| {
        let item =
            "[[en.item]]\nname = \"a\"\naction = \"send {object}\"\ncommand = \"send {object}\"";
        project.write("items.toml", &format!("{item}\nobjects = [{objects}]\n"));
    };
    set("\"N-1\", \"N-2\", \"N-3\", \"N-12\"");
    project.expect(2, "plan --planted").says(&[
        "items.toml:5",
        "`N-12`",
        "do not contain one another",
    ]);
    set("\"src/worker.rs\", \"N-1\", \"N-2\", \"N-3\"");
    let planned = project.expect(0, "plan --planted");
    planned.says(&["one mentions itself, and so does not get: src/worker.rs"]);
    planned.says(&["nothing can be planted in three", "in the user's language"]);
    let project = sessions();
    let short = json!({ "name": "short", "messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}], "points": [2] });
    project.write("fixtures/short.json", &short.to_string());
    project
        .expect(0, "plan --planted")
        .says(&["nothing can be planted in short"]);
    project.edit("pipeline.toml", "variants = 2", "variants = 0");
    project.expect(2, "plan --planted").says(&["variants"]);
}

#[test]
fn what_is_planted_in_a_session_does_not_depend_on_the_other_sessions() {
    let project = sessions();
    project.expect(0, "run --planted --label a");
    // A session of which all were planted is shown as it was.
    let shown = project.expect(0, "show two --planted --method full --point 1 --label a");
    let items: Vec<&str> = shown.stdout.trim().split("\n\n").collect();
    assert_eq!(items.len(), 2 * 8, "{}", shown.stdout);
    for item in items {
        let said = item.lines().nth(1).unwrap_or_default();
        assert!(!said.starts_with("  context:"), "what was said: {item}");
    }
    // Alone, it is what it was among the others.
    project.expect(
        0,
        "run --planted --fixtures two --label alone --compare-to a",
    );
    let stages = project.result("alone", "manifest.json")["stages"].clone();
    assert_eq!(stages["compress"]["executed"], 0, "{stages}");
    assert_eq!(stages["answer"]["executed"], 0, "{stages}");
    // A new session makes nothing stale, wherever its name stands.
    let added = project.read("fixtures/two.json");
    let added = added.replace("\"two\"", "\"another\"");
    project.write("fixtures/another.json", &added);
    let plan = project.expect(0, "plan --planted --json").json();
    assert_eq!(plan["stages"]["compress"]["cached"], 36, "{plan}");
    assert_eq!(plan["stages"]["answer"]["blocked"], 24, "{plan}");
}

#[test]
fn results_of_planted_items_are_read_compared_and_kept_without_any_bank() {
    let project = sessions();
    let judge = "[[judge]]\nname = \"judge\"\nmodel = \"lexical\"\n";
    project.write("pipeline.toml", &format!("{METHODS}\n{judge}"));
    let needs = [
        "no fixture has probes",
        "`compeval run --planted` needs none",
    ];
    project.expect(0, "check").says(&needs);
    project.expect(4, "run --label a").says(&needs);
    // Nor is a judge needed.
    project.write("pipeline.toml", METHODS);
    project.expect(0, "run --planted --label a");
    project.expect(0, "run --planted --label b --methods full,none");
    project.expect(0, "report");
    project.expect(0, "report a --all").stdout_says(&["obeyed"]);
    project.expect(0, "report a --csv");
    project.expect(0, "compare b a --only-common");
    // They are paid answers: no run of another design takes their place unasked.
    let listed = project.expect(0, "labels ls").stdout;
    assert!(
        listed.contains("planted items") && !listed.contains("contexts only"),
        "{listed}"
    );
    let before = rows(&project, "a");
    project.edit("pipeline.toml", "variants = 2", "variants = 1");
    project
        .expect(2, "run --planted --label a")
        .says(&["what is planted in the sessions"]);
    assert_eq!(rows(&project, "a"), before);
    project.expect(0, "run --planted --label a --replace");
    assert_eq!(rows(&project, "a~1"), before);
}

#[test]
fn the_sample_session_has_room_for_every_item() {
    let project = Project::empty();
    project.expect(0, "init");
    let checked = project.expect(0, "check --json").json();
    assert_eq!(checked["warnings"], json!([]));
    project.expect(0, "run --label first --planted --methods full,none --quiet");
    let rows = project.read("results/first/planted.jsonl");
    let items: std::collections::BTreeSet<String> = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap())
        .map(|row| format!("{} {}", row["variant"], row["kind"]))
        .collect();
    assert_eq!(
        items.len(),
        4 * 7,
        "four variants of seven kinds: {items:?}"
    );

    let project = Project::empty();
    project.expect(0, "init --empty");
    let pipeline = project.read("pipeline.toml");
    assert!(
        pipeline.contains("# [planted]"),
        "own sessions are not planted unasked"
    );
}
