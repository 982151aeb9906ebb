//! What programs of methods report: cost, warnings, results that are none; and the keys that they need.

use serde_json::{Value, json};

use super::project::Project;
use super::server::Server;
#[cfg(unix)]
use super::server::wait_until;

const SECRET: &str = "sk-proj-Zk3vQ8rT1yLw6mXn4cJd";

const METHOD: &str = r#"
[[compress]]
name     = "mine"
strategy = "command"
command  = ["sh", "tools/compress.sh"]
inputs   = ["tools/compress.sh"]
secrets  = ["MINE_KEY"]
model    = "mock/large"
deterministic = true

[prices."mock/large"]
input  = 10.0
output = 20.0
"#;

fn project(server: &Server, script: &str) -> Project {
    let mut project = Project::new(server);
    project.write(
        "pipeline.toml",
        &format!("{}\n{METHOD}", project.read("pipeline.toml")),
    );
    project.write("tools/compress.sh", script);
    project.set("MINE_KEY", SECRET);
    project
}

const RUN: &str = "run --label a --runs 1 --methods mine";

fn contexts(project: &Project) -> Vec<Value> {
    let lines = project.read("results/a/contexts.jsonl");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_secret_is_seen_and_redacted_and_another_one_makes_nothing_stale() {
    let server = Server::start();
    let script = "cat > /dev/null; echo x >> starts; printf '{\"summary\":\"port 9091, key %s\"}' \"$MINE_KEY\"";
    let mut project = project(&server, script);
    project.expect(0, RUN);
    let holds = |bytes: &[u8]| {
        bytes
            .windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes())
    };
    for path in [project.files("cache"), project.files("results")].concat() {
        assert!(!holds(&std::fs::read(&path).unwrap()), "{}", path.display());
    }
    assert!(
        project
            .expect(0, "show harbor --label a --method mine --probe port")
            .stdout
            .contains("key ****")
    );
    let starts = project.read("starts");
    project.set("MINE_KEY", "sk-proj-another0one1of2them3");
    project.expect(0, &format!("{RUN} --replace"));
    assert_eq!(
        project.read("starts"),
        starts,
        "a rotated key pays nothing again"
    );
    project.set("MINE_KEY", "");
    project
        .expect(2, &format!("{RUN} --replace"))
        .says(&["MINE_KEY is not set", "export MINE_KEY"]);
}

#[test]
fn a_key_among_the_arguments_is_refused_and_not_shown() {
    let server = Server::start();
    let project = project(&server, "");
    let with_key = format!("[\"sh\", \"tools/compress.sh\", \"--api-key\", \"{SECRET}\"]");
    project.edit(
        "pipeline.toml",
        "[\"sh\", \"tools/compress.sh\"]",
        &with_key,
    );
    let ended = project.expect(2, "check");
    ended.says(&["looks like a key", "list the variable in `secrets`"]);
    assert!(
        !ended.stdout.contains(SECRET) && !ended.stderr.contains(SECRET),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_a_program_reports_is_priced_by_its_model_and_what_it_does_not_report_is_unknown() {
    let server = Server::start();
    let script =
        |rest: &str| format!("cat > /dev/null; printf '{{\"summary\":\"port 9091\"{rest}}}'");
    let usage = r#","usage":{"prompt_tokens":1000,"completion_tokens":500,"calls":2}"#;
    let project = project(&server, &script(usage));
    let project_run = |expected: Value, calls: u32| {
        project.expect(0, &format!("{RUN} --replace"));
        let context = &contexts(&project)[0];
        assert_eq!(
            (&context["usd"], &context["calls"]),
            (&expected, &json!(calls))
        );
        assert_eq!(
            project.result("a", "manifest.json")["unused"]["replies"],
            0,
            "all that it asked for was of use"
        );
    };
    project_run(json!(0.02), 2);
    project.write("tools/compress.sh", &script(r#","usage":{"cost":0.5}"#));
    project_run(json!(0.5), 0);
    project.write("tools/compress.sh", &script(""));
    project_run(Value::Null, 0);
    project.write("tools/compress.sh", &script(r#","usage":{"calls":0}"#));
    project_run(json!(0.0), 0);
}

#[test]
fn what_a_program_has_paid_counts_against_the_budget() {
    let server = Server::start();
    let script = "cat > /dev/null; echo x >> starts; printf '{\"summary\":\"port 9091\",\"usage\":{\"cost\":0.5}}'";
    let project = project(&server, script);
    let ended = project.expect(
        6,
        &format!("{RUN} --stages compress --max-cost 0.4 --jobs 1"),
    );
    ended.says(&["--max-cost"]);
    assert_eq!(project.read("starts"), "x\n");
}

#[test]
fn what_a_program_makes_after_it_was_changed_is_not_stored_under_the_old_key() {
    let server = Server::start();
    let made = "cat > /dev/null; echo x >> starts; printf '{\"summary\":\"port 9091\"}'\n";
    let compress = format!("{RUN} --stages compress --jobs 1");
    let changing = project(
        &server,
        &format!("{made}echo '#' >> tools/compress.sh\nexit\n"),
    );
    let ended = changing.expect(5, &compress);
    ended.says(&["tools/compress.sh, one of the program's `inputs`, was changed"]);
    assert_eq!(changing.read("starts"), "x\n", "the others are not begun");
    // The next run sees another program.
    changing.write("tools/compress.sh", made);
    changing.expect(0, &compress);
    // Reading it, writing beside it, and a new date change nothing.
    let innocent = "cat tools/compress.sh > tools/compress.sh.bak; touch tools/compress.sh\n";
    project(&server, &format!("{innocent}{made}")).expect(0, &compress);
}

#[test]
fn a_degraded_result_fails_and_odd_ones_are_noted() {
    let server = Server::start();
    let degraded = r#"{"summary":"9091","degraded":"the model did not answer","usage":{"cost":0.5,"calls":1}}"#;
    let project = project(
        &server,
        &format!("cat > /dev/null; printf '%s' '{degraded}'"),
    );
    project
        .expect(5, &format!("{RUN} --stages compress"))
        .says(&["degraded: the model did not answer"]);
    // It was paid for all the same.
    let unused = &project.result("a", "manifest.json")["unused"];
    let [replies, usd] = ["replies", "usd"].map(|name| unused[name].as_f64());
    assert!(
        replies > Some(0.0) && usd == replies.map(|replies| 0.5 * replies),
        "{unused}"
    );
    let large = "port 9091 ".repeat(4000);
    let noted =
        format!(r#"{{"summary":"{large}","compressed":false,"warnings":["short of room"]}}"#);
    project.write("answer.json", &noted);
    project.write(
        "tools/compress.sh",
        "cat > /dev/null; echo fell back >&2; cat answer.json",
    );
    project.expect(0, &format!("{RUN} --replace"));
    let manifest = project.result("a", "manifest.json").to_string();
    let notes = [
        "the program warns: short of room",
        "lacks some of the history: it is scored",
        "last: fell back",
    ];
    for note in notes {
        assert!(manifest.contains(note), "{note} is missing in {manifest}");
    }
    // Contexts in which nothing was compressed are in no figure, so the word of a program that lost the history is not
    // enough.
    assert!(
        contexts(&project)
            .iter()
            .all(|context| context["compressed"].is_null())
    );
    let own = &project.result("a", "summary.json")["methods"]["mine"];
    assert!(
        own["overall"]["median"].is_number() && own["not_compressed"].is_null(),
        "{own}"
    );
}

/// A worker that notes each request in the file `asked`, does something, and answers that it has paid a dollar.
fn paying_worker(then: &str) -> String {
    let script = r#"echo '{"ready":true}'
while read -r line; do echo x >> asked; THEN id=${line#*\"id\":}
echo "{\"id\":${id%%,*},\"summary\":\"port 9091\",\"usage\":{\"cost\":1.0}}"; done"#;
    script.replace("THEN", then)
}

/// The project, in which one worker answers all requests of four runs.
fn queueing(server: &Server, then: &str) -> Project {
    let project = project(server, &paying_worker(then));
    project.edit(
        "pipeline.toml",
        "deterministic = true",
        "protocol = \"lines\"\nworkers = 1",
    );
    project
}

const QUEUE: &str = "run --label a --runs 4 --methods mine --stages compress";

#[test]
fn a_request_that_waits_for_a_worker_is_not_made_once_the_money_is_spent() {
    let server = Server::start();
    let project = queueing(&server, "");
    project.expect(6, &format!("{QUEUE} --max-cost 1.5"));
    assert_eq!(
        project.read("asked"),
        "x\nx\n",
        "the second request exceeds the limit"
    );
}

#[cfg(unix)]
#[test]
fn a_request_that_waits_for_a_worker_is_not_made_after_ctrl_c() {
    let server = Server::start();
    let project = queueing(&server, "while [ ! -e go ]; do sleep 0.01; done;");
    let mut running = project.start(QUEUE);
    wait_until(|| project.exists("asked"));
    running.interrupt();
    running.wait_for_words("stopping");
    project.write("go", "");
    let ended = running.end();
    assert_eq!(
        (ended.code, project.read("asked").as_str()),
        (130, "x\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_refresh_whose_result_cannot_be_used_keeps_the_one_before() {
    let server = Server::start();
    let project = project(
        &server,
        "cat > /dev/null; echo x >> starts; cat answer.json",
    );
    project.write("answer.json", r#"{"summary":"port 9091"}"#);
    let run =
        |label: &str| format!("run --label {label} --runs 1 --methods mine --stages compress");
    project.expect(0, &run("a"));
    project.write(
        "answer.json",
        r#"{"summary":"9091","degraded":"the model did not answer"}"#,
    );
    project.expect(5, &format!("{} --refresh compress", run("b")));
    let starts = project.read("starts");
    project.expect(0, &run("c"));
    assert_eq!(project.read("starts"), starts);
    assert_eq!(
        project.read("results/c/contexts.jsonl"),
        project.read("results/a/contexts.jsonl")
    );
}

#[test]
fn workers_answer_like_one_process_per_request_and_their_number_is_in_no_key() {
    let server = Server::start();
    let once = r#"cat > /dev/null; echo x >> starts; printf '{"summary":"port 9091"}'"#;
    let project = project(&server, once);
    project.expect(0, RUN);
    let starts = project.read("starts");
    project.edit(
        "pipeline.toml",
        "deterministic = true",
        "deterministic = true\nprotocol = \"lines\"\nworkers = 1",
    );
    project.expect(0, &format!("{RUN} --replace"));
    assert_eq!(
        project.read("starts"),
        starts,
        "the same request has the same key"
    );
    let lines = r#"echo x >> starts; echo '{"ready":true}'
while read -r line; do id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"summary\":\"port 9091\"}"; done"#;
    project.write("tools/compress.sh", lines);
    project.write("starts", "");
    project.expect(0, &format!("{RUN} --replace"));
    assert_eq!(
        project.read("starts"),
        "x\n",
        "one worker answered both points"
    );
}

#[test]
fn a_program_that_returns_the_whole_history_is_not_ranked_though_it_says_nothing() {
    let server = Server::start();
    let script = r#"sed 's/.*"all_messages":\(.*\),"focus_topic".*/{"messages":\1}/'"#;
    let project = project(&server, script);
    project.expect(0, RUN);
    assert!(
        project
            .result("a", "manifest.json")
            .to_string()
            .contains("nothing was compressed")
    );
    let contexts = contexts(&project);
    assert_eq!(contexts.len(), 2);
    assert!(
        contexts
            .iter()
            .all(|context| context["compressed"] == json!(false)),
        "{contexts:?}"
    );
    let own = &project.result("a", "summary.json")["methods"]["mine"];
    assert_eq!(
        (
            &own["overall"]["median"],
            &own["not_compressed"]["contexts"]
        ),
        (&Value::Null, &json!(2))
    );
}
