//! Needed-later recall through the program: sessions with planted references that are needed later, without bank,
//! answerer or judge.

use serde_json::{Value, json};

use super::project::Project;

const METHODS: &str = r#"
[pipeline]
runs = 1

[[compress]]
name = "full"
strategy = "full"

[[compress]]
name = "mask"
strategy = "mask"
keep_results = 1

[[compress]]
name = "newest"
strategy = "truncate"
target_tokens = 100000

[[compress]]
name = "none"
strategy = "none"
"#;

fn calls(id: &str, tool: &str, arguments: &Value) -> Value {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": id, "type": "function", "function": function }] })
}

fn says(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// A session of over 20,000 tokens before its point. After the point it uses four references: one that the user gave,
/// two from results, and one that is fetched again.
fn session(name: &str) -> Value {
    let filler = "word ".repeat(11_000);
    let result =
        |id: &str, text: String| json!({ "role": "tool", "tool_call_id": id, "content": text });
    let read = |id: &str, path: &str| calls(id, "Read", &json!({ "file_path": path }));
    let messages = json!([
        { "role": "user", "content": "Rename `job_state` in the worker. Its pages live in src/store.rs." },
        read("c1", "src/worker.rs"), result("c1", format!("opening calls open_index(), closing calls close_index()\n{filler}")),
        read("c2", "src/store.rs"), result("c2", format!("writing calls flush_pages()\n{filler}")),
        says("I have read both."),
        says("Now `job_state` goes."),
        says("`open_index` calls it."),
        read("c3", "src/store.rs"), result("c3", "fn flush_pages() {}".to_owned()),
        says("`flush_pages` is fine."),
    ]);
    json!({ "name": name, "messages": messages, "points": [6] })
}

fn planted(fixtures: usize) -> Project {
    let project = Project::offline();
    std::fs::remove_file(project.path("fixtures/harbor.json")).unwrap();
    std::fs::remove_file(project.path("probes/harbor.probes.json")).unwrap();
    project.write("pipeline.toml", METHODS);
    for at in 1..=fixtures {
        let name = format!("session-{at}");
        project.write(
            &format!("fixtures/{name}.json"),
            &session(&name).to_string(),
        );
    }
    project
}

fn contexts(project: &Project, label: &str) -> Vec<Value> {
    let text = project.read(&format!("results/{label}/contexts.jsonl"));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a context"))
        .collect()
}

#[test]
fn a_pipeline_of_compressors_alone_is_complete() {
    let project = planted(2);
    let ended = project.expect(0, "run --all --label a");
    assert!(
        ended.stdout.contains("needed later") && !ended.stdout.contains("accuracy"),
        "{}",
        ended.stdout
    );
    let all = contexts(&project, "a");
    assert_eq!(all.len(), 2 * 4);
    let of = |method: &str| {
        all.iter()
            .find(|row| row["method"] == method)
            .expect(method)
    };
    let full = of("full");
    let names: Vec<&str> = full["references"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["job_state", "open_index", "src/store.rs", "flush_pages"]
    );
    let states: Vec<&str> = full["references"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["carried", "carried", "carried", "fetched_again"]);
    assert_eq!(full["needed"]["recall"], 1.0);
    assert_eq!(full["needed"]["caveat"], Value::Null);
    assert_eq!(of("none")["needed"]["recall"], 0.0);
    // The result of the first read is masked, and with it `open_index`. Four messages need something.
    assert_eq!(of("mask")["needed"]["recall"], 0.75);
    let summary = project.result("a", "summary.json");
    let needed = &summary["methods"]["mask"]["needed"];
    assert_eq!(
        (&needed["recall"], &needed["count"]),
        (&json!(0.75), &json!(8))
    );
    assert!(project.read("results/a/report.md").contains("needed later"));
    let shown = project
        .expect(0, "show session-1 --method mask --label a")
        .stdout;
    assert!(
        shown.contains("lost (1)") && shown.contains("open_index"),
        "{shown}"
    );
    let before = project.read("results/a/contexts.jsonl");
    project.expect(0, "run --all --label a");
    assert_eq!(project.read("results/a/contexts.jsonl"), before);
    assert_eq!(
        project.result("a", "manifest.json")["stages"]["compress"]["executed"],
        0
    );
}

#[test]
fn the_gate_sees_a_lost_recall() {
    let project = planted(6);
    project.expect(0, "run --all --label a");
    project.edit(
        "pipeline.toml",
        "target_tokens = 100000",
        "target_tokens = 10",
    );
    let ended = project.expect(
        100,
        "run --all --label b --compare-to a --fail-on-regression",
    );
    ended.says(&["regressed: newest: needed-later recall −1.00"]);
    let same = project.expect(0, "run --all --label c --compare-to b --fail-on-regression");
    assert!(!same.stderr.contains("regressed"), "{}", same.stderr);
}

#[test]
fn a_setting_that_changes_nothing_is_named() {
    let project = planted(1);
    let ended = project.expect(0, "run --all --label a");
    assert!(
        ended
            .stdout
            .contains("full and newest have identical contexts in all 1 compressions"),
        "{}",
        ended.stdout
    );
    let more = "\n[[compress]]\nname = \"newer\"\nstrategy = \"truncate\"\ntarget_tokens = 90000\n";
    project.write("pipeline.toml", &format!("{METHODS}{more}"));
    let ended = project.expect(0, "run --all --label b --methods newest,newer");
    let flat = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        flat.contains("target_tokens changed nothing"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_full_pipeline_can_stop_after_its_contexts() {
    let project = Project::offline();
    let ended = project.expect(
        0,
        "run --all --stages compress --methods full,nothing --label a",
    );
    assert!(!ended.stdout.contains("accuracy"), "{}", ended.stdout);
    assert_eq!(project.result("a", "manifest.json")["requests_sent"], 0);
    assert!(contexts(&project, "a").len() >= 2);
    let half = project
        .read("pipeline.toml")
        .replace("[[judge]]", "[[probes]]");
    project.write("pipeline.toml", &half);
    project
        .expect(2, "run --all --label b")
        .says(&["declares no [[judge]] table", "or neither of the two"]);
}

#[test]
fn logs_lead_to_a_table_in_three_commands() {
    let project = Project::offline();
    project.expect(0, "init logs-eval");
    let mut messages = session("x")["messages"].as_array().unwrap().clone();
    for turn in 0..40 {
        messages.push(says(&format!(
            "Step {turn}: `open_index` and `close_index`."
        )));
    }
    project.write("log.json", &json!({ "messages": messages }).to_string());
    project.expect(0, "-C logs-eval fixture import ../log.json");
    let name = project
        .files("logs-eval/fixtures")
        .into_iter()
        .find(|path| path.ends_with("log.json"))
        .expect("a fixture");
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(name).unwrap()).unwrap();
    assert_eq!(fixture["reference_patterns"], 1);
    let cut = fixture["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| !m["cut_references"].is_null())
        .expect("a cut");
    assert!(
        cut["cut_references"]
            .as_array()
            .unwrap()
            .contains(&json!("open_index"))
    );
    let ended = project.expect(0, "-C logs-eval run --all --stages compress --label a");
    assert!(ended.stdout.contains("needed later"), "{}", ended.stdout);
}

#[test]
fn points_cut_sessions_into_spans_and_do_not_move_questions() {
    let project = planted(1);
    project.expect(0, "run --all --label a --points 3 --methods full,mask");
    let all = contexts(&project, "a");
    assert_eq!(all.len(), 2 * 3);
    let replaced: Vec<u64> = all
        .iter()
        .filter_map(|row| row["replaced_tokens"].as_u64())
        .take(3)
        .collect();
    assert!(replaced.is_sorted() && replaced[0] > 10_000, "{replaced:?}");
    let ages = &project.result("a", "summary.json")["methods"]["full"]["survival_by_age"];
    assert_eq!(ages["references"]["1"]["share"], 1.0, "{ages}");
    assert!(
        project
            .expect(0, "plan --points 3 --methods full,mask")
            .stdout
            .contains('6')
    );
    let full = Project::offline();
    full.expect(2, "run --all --label a --points 3").says(&[
        "moves the points at which the questions",
        "--stages compress",
    ]);
    full.expect(
        0,
        "run --all --label a --points 3 --stages compress --methods full",
    );
    let log = json!({ "messages": session("x")["messages"] });
    full.write("log.json", &log.to_string());
    full.expect(0, "fixture import log.json --points 2 --name cut");
    let cut: Value = serde_json::from_str(&full.read("fixtures/cut.json")).expect("a fixture");
    let points = cut["points"].as_array().expect("points");
    assert_eq!(
        (points.len(), points.last()),
        (2, Some(&json!(cut["messages"].as_array().unwrap().len())))
    );
}

#[test]
fn a_list_of_identifiers_keeps_nothing() {
    let project = planted(3);
    let list =
        "\n[[compress]]\nname = \"list\"\nstrategy = \"reference-list\"\ntarget_tokens = 400\n";
    project.write("pipeline.toml", &format!("{METHODS}{list}"));
    project.expect(0, "run --all --label a --methods list");
    assert_eq!(
        project.result("a", "summary.json")["methods"]["list"]["needed"]["recall"],
        0.0
    );
}

#[test]
fn without_a_point_that_qualifies_there_is_a_reason_and_no_figure() {
    let project = planted(0);
    let mut session = session("short");
    for message in session["messages"].as_array_mut().unwrap() {
        let text = message["content"].as_str().unwrap().replace("word ", "");
        message["content"] = json!(text);
    }
    project.write("fixtures/short.json", &session.to_string());
    let ended = project.expect(0, "run --all --label a");
    let flat = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        flat.contains("needed later is not shown: no point meets its conditions"),
        "{}",
        ended.stdout
    );
    assert!(
        !flat.contains("lift") && flat.contains("tokens"),
        "{}",
        ended.stdout
    );
    assert!(!project.read("results/a/report.md").contains("newest text"));
    let needed = &project.result("a", "summary.json")["methods"]["mask"]["needed"];
    assert!(needed["recall"].is_number(), "{needed}");
}

/// Keeps three quarters of the 64 names of a span per compression. A name has its span and its number.
const LOSSY: &str = r#"grep -o 'open_s[0-9]_k[0-9]*_slot' | sort -u | awk -F_ '
{ span[NR] = substr($2, 2); key[NR] = substr($3, 2); name[NR] = $0; if (span[NR] > last) last = span[NR] }
END {
  split("drawer cabinet shelf locker", place, " ")
  printf "{\"summary\":\""
  for (i = 1; i <= NR; i++) {
    left = 64
    for (age = 0; age <= last - span[i]; age++) left *= 0.75
    if (key[i] + 0 < left) printf "%s %s. ", place[span[i]], name[i]
  }
  printf "\"}"
}'
"#;

#[test]
fn a_compressor_that_loses_a_known_share_a_round_keeps_less_of_what_is_older() {
    let project = planted(0);
    let methods = "\n[[compress]]\nname = \"lossy\"\nstrategy = \"command\"\ncommand = [\"sh\", \"lossy.sh\"]\ninputs = [\"lossy.sh\"]\n";
    project.write("pipeline.toml", &format!("[pipeline]\nruns = 1\n{methods}"));
    project.write("lossy.sh", LOSSY);
    let names = |span: usize, keys: std::ops::Range<usize>| {
        keys.map(|key| format!("`open_s{span}_k{key}_slot`"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for fixture in ["a", "b", "c"] {
        let mut messages: Vec<Value> = Vec::new();
        for span in 1..=4 {
            let place = ["drawer", "cabinet", "shelf", "locker"][span - 1];
            let said = (0..64)
                .map(|key| format!("A {place} is `open_s{span}_k{key}_slot`. "))
                .collect::<String>();
            messages.push(json!({ "role": "user", "content": said }));
            messages.push(says("Noted."));
        }
        for part in 0..4 {
            let all = (1..=4)
                .map(|span| names(span, 16 * part..16 * (part + 1)))
                .collect::<Vec<_>>();
            messages.push(says(&all.join(" ")));
        }
        let session = json!({ "name": fixture, "messages": messages, "points": [2, 4, 6, 8] });
        project.write(&format!("fixtures/{fixture}.json"), &session.to_string());
    }
    let ended = project.expect(0, "run --all --label a");
    let found = &project.result("a", "summary.json")["methods"]["lossy"]["survival_by_age"];
    let share = |age: &str| found["references"][age]["share"].as_f64().unwrap();
    assert_eq!(
        ["1", "2", "3"].map(share),
        [0.75, 0.5625, 27.0 / 64.0],
        "{found}"
    );
    assert!(ended.stdout.contains("needed, age 4"), "{}", ended.stdout);
    assert!(
        project
            .read("results/a/report.md")
            .contains("<summary>Survival by age</summary>")
    );
}

#[test]
fn a_tail_of_one_message_has_no_recall_and_says_why() {
    let project = planted(0);
    let mut session = session("short-tail");
    session["messages"].as_array_mut().unwrap().truncate(7);
    project.write("fixtures/short-tail.json", &session.to_string());
    let ended = project.expect(0, "run --all --label a");
    let flat = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        flat.contains("1 after which fewer than three messages use something from before"),
        "{}",
        ended.stdout
    );
    let one = contexts(&project, "a").remove(0);
    assert_eq!(
        (&one["needed"]["recall"], &one["needed"]["count"]),
        (&Value::Null, &json!(1)),
        "{one}"
    );
}
