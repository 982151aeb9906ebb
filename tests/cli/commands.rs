//! A program of the user as a method.

use serde_json::{Value, json};

use super::project::Project;
use super::server::{Server, wait_until};

const METHOD: &str = r#"
[[compress]]
name     = "mine"
strategy = "command"
command  = ["sh", "tools/compress.sh"]
inputs   = ["tools/compress.sh"]
env      = ["MINE_LEVEL"]
deterministic = true
target_tokens = 321
"#;

/// Saves its input, and counts in its state how often it was called.
const SCRIPT: &str = r#"mkdir -p seen
turn=$(ls seen | grep -c json)
cat > "seen/$turn.json"
env > "seen/$turn.env"
printf '{"summary":"The listen port is 9091, level %s.","state":{"turn":%d}}' "$MINE_LEVEL" "$turn"
"#;

fn project(server: &Server, script: &str) -> Project {
    let mut project = Project::new(server);
    project.write(
        "pipeline.toml",
        &format!("{}\n{METHOD}", project.read("pipeline.toml")),
    );
    project.write("tools/compress.sh", script);
    project.set("MINE_LEVEL", "high");
    project.set("UNDECLARED", "secret");
    project
}

fn seen(project: &Project, turn: usize) -> Value {
    serde_json::from_str(&project.read(&format!("seen/{turn}.json"))).unwrap()
}

#[test]
fn a_program_is_handed_spans_state_and_wishes_and_sees_no_undeclared_variable() {
    let server = Server::start();
    let project = project(&server, SCRIPT);
    project.expect(
        0,
        "run --label a --methods mine,nothing --focus-topic ports",
    );
    let (first, second) = (seen(&project, 0), seen(&project, 1));
    assert!(
        !project.exists("seen/2.json"),
        "one execution a point serves all runs"
    );
    assert_eq!(first["version"], 2);
    assert_eq!(first["previous"], Value::Null);
    assert_eq!(
        (&first["focus_topic"], &first["target_tokens"]),
        (&json!("ports"), &json!(321))
    );
    assert_eq!(
        (&first["fixture_model"], &first["context_length"]),
        (&json!("example/model"), &json!(32000))
    );
    assert_eq!(
        first["messages"].as_array().unwrap().len(),
        5,
        "the system message is kept aside"
    );
    assert_eq!(
        second["messages"].as_array().unwrap().len(),
        7,
        "the new span alone"
    );
    assert_eq!(second["all_messages"].as_array().unwrap().len(), 12);
    assert_eq!(second["previous"]["state"], json!({"turn": 0}));
    let names = |turn: usize| {
        let text = project.read(&format!("seen/{turn}.env"));
        text.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name.to_owned())
            .collect::<Vec<_>>()
    };
    for name in names(0) {
        assert!(
            ["PATH", "HOME", "MINE_LEVEL", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()),
            "{name}"
        );
    }
    let rows = project.rows("a");
    assert!(rows.iter().any(
        |row| row["method"] == "mine" && row["answer"].as_str().unwrap().contains("level high")
    ));
}

#[test]
fn a_change_of_an_input_file_or_a_declared_variable_starts_it_again_and_nothing_else_does() {
    let server = Server::start();
    let mut project = project(&server, SCRIPT);
    let run = "run --label a --runs 1 --methods mine,nothing";
    project.expect(0, run);
    project.set("UNDECLARED", "other");
    project.edit(
        "pipeline.toml",
        "name     = \"mine\"",
        "name     = \"ours\"",
    );
    project.expect(0, "run --label a --runs 1 --methods ours,nothing --replace");
    assert!(!project.exists("seen/2.json"));
    project.edit("tools/compress.sh", "mkdir", "# a remark\nmkdir");
    project.expect(0, "run --label a --runs 1 --methods ours,nothing --replace");
    assert!(project.exists("seen/3.json") && !project.exists("seen/4.json"));
    project.set("MINE_LEVEL", "low");
    project.expect(0, "run --label a --runs 1 --methods ours,nothing --replace");
    assert!(project.exists("seen/5.json") && !project.exists("seen/6.json"));
}

#[test]
fn the_compressor_model_reaches_a_program_and_is_part_of_its_key() {
    let server = Server::start();
    let project = project(&server, SCRIPT);
    let run = |label: &str, model: &str| {
        project.expect(
            0,
            &format!("run --label {label} --runs 1 --methods mine,nothing {model}"),
        );
    };
    run("unset", "");
    assert_eq!(seen(&project, 0)["model"], Value::Null);
    run("set", "--compressor-model mock/large");
    assert_eq!(seen(&project, 2)["model"], "mock/large");
    run("set", "--compressor-model mock/large");
    assert!(
        !project.exists("seen/4.json"),
        "the same model is served from the cache"
    );
    let manifest = project.result("set", "manifest.json");
    assert!(
        manifest.to_string().contains(r#""model":"mock/large""#),
        "{manifest}"
    );
    project.edit(
        "pipeline.toml",
        "strategy = \"command\"",
        "strategy = \"command\"\nmodel = \"mock/large\"",
    );
    run("declared", "");
    assert!(
        !project.exists("seen/4.json"),
        "declared or given as an argument is the same"
    );
}

/// A compressor class like those of agents: it knows its own output, and has attributes that JSON cannot hold.
const CLASS: &str = r#"
class Compressor:
    def __init__(self, model, base_url, quiet=False):
        self.model, self.base_url, self.quiet, self.cycles, self.lock = model, base_url, quiet, 0, object()
        self.api_key = "k-123"

    def update_model(self, model, context_length, base_url=""):
        self.model, self.context_length, self.base_url = model, context_length, base_url

    def compress(self, messages, current_tokens=None, focus_topic=None):
        print("compressing", len(messages))
        self.cycles += 1
        text = f"{self.model} {self.context_length} {self.quiet} {focus_topic} cycle {self.cycles}: {len(messages)}"
        text += f" at {self.base_url}, {self.mood}"
        return [{"role": "user", "content": f"The listen port is 9091. {text}"}]
"#;

#[test]
fn the_adapter_calls_a_compressor_class_by_name() {
    let server = Server::start();
    let project = project(&server, "");
    for path in ["compressors/adapt_class.py", "adapters/compeval_method.py"] {
        let text =
            std::fs::read_to_string(format!("{}/examples/{path}", env!("CARGO_MANIFEST_DIR")))
                .unwrap();
        project.write(
            &format!("tools/{}", path.rsplit('/').next().unwrap()),
            &text,
        );
    }
    project.write("agent/context.py", CLASS);
    let command = r#"["python3", "tools/adapt_class.py", "context:Compressor", "--path", "agent", "--option", "quiet=true",
        "--option", "base_url=http://here", "--attr", "mood=calm"]"#;
    project.edit("pipeline.toml", r#"["sh", "tools/compress.sh"]"#, command);
    project
        .expect(0, "run --label a --runs 1 --methods mine,nothing --focus-topic ports --compressor-model mock/large");
    let text = |probe: &str| {
        let shown = project.expect(
            0,
            &format!("show harbor --label a --method mine --probe {probe} --json"),
        );
        assert!(!shown.stdout.contains("k-123"), "{}", shown.stdout);
        shown.stdout
    };
    let (first, second) = (text("workers"), text("port"));
    assert!(
        first.contains("mock/large 32000 True ports cycle 1: 5 at http://here, calm"),
        "{first}"
    );
    assert!(
        second.contains("mock/large 32000 True ports cycle 2: 8"),
        "the kept message and the new span: {second}"
    );
}

#[test]
fn a_program_that_fails_fails_its_cells_with_its_last_words() {
    let server = Server::start();
    let project = project(
        &server,
        "cat > /dev/null\necho first >&2\necho the model file is missing >&2\nexit 3\n",
    );
    project.expect(5, "run --label a --runs 1 --methods mine,full");
    let failures = project.result("a", "manifest.json")["failures"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        failures.len(),
        1,
        "the second point waits for the first: {failures:?}"
    );
    let message = failures[0]["message"].as_str().unwrap();
    assert!(
        message.contains("exit status: 3") && message.contains("the model file is missing"),
        "{message}"
    );
    assert_eq!(failures[0]["blame"], "method");
    assert_eq!(project.rows("a").len(), 7, "the other method");
}

#[test]
fn output_that_is_no_json_fails_its_cells() {
    let server = Server::start();
    let project = project(&server, "cat > /dev/null\necho here is your summary\n");
    project.expect(5, "run --label a --runs 1 --methods mine,full");
    let failures = project.result("a", "manifest.json")["failures"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0]["message"].as_str().unwrap().contains("JSON"),
        "{failures:?}"
    );
}

#[test]
fn offline_starts_no_program() {
    let server = Server::start();
    let project = project(&server, SCRIPT);
    project.expect(7, "run --label a --runs 1 --methods mine --offline");
    assert!(!project.exists("seen"));
}

/// Leaves processes behind in every way: in its own group, in a group and session of theirs, and as an orphan.
#[cfg(target_os = "linux")]
const SPAWNING: &str = r#"cat > /dev/null
sleep 600 < /dev/null &
echo $! >> pids
setsid sh -c 'echo $$ >> pids; sleep 600 & echo $! >> pids; wait' > /dev/null 2>&1 < /dev/null &
(setsid sh -c 'echo $$ >> pids; exec sleep 600' > /dev/null 2>&1 < /dev/null &)
while [ "$(wc -l < pids)" -lt 4 ]; do sleep 0.01; done
echo $$ >> pids
"#;

/// The processes in `pids` that still run. A dead process that nobody waited for does not count.
#[cfg(target_os = "linux")]
fn running(project: &Project) -> Vec<String> {
    let is_running = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    let pids = std::fs::read_to_string(project.path("pids")).unwrap_or_default();
    pids.lines().map(str::to_owned).filter(is_running).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn processes_of_a_program_end_when_it_succeeds_and_when_it_times_out() {
    let server = Server::start();
    let project = project(
        &server,
        &format!("{SPAWNING}\nprintf '{{\"summary\":\"9091\"}}'\n"),
    );
    project.expect(0, "run --label a --runs 1 --methods mine");
    assert!(project.read("pids").lines().count() >= 5);
    wait_until(|| running(&project).is_empty());
    project.write("pids", "");
    project.write(
        "tools/compress.sh",
        &format!("{SPAWNING}\nexec sleep 600\n"),
    );
    project.edit(
        "pipeline.toml",
        "deterministic = true",
        "deterministic = true\ntimeout_s = 2",
    );
    project
        .expect(5, "run --label b --runs 1 --methods mine")
        .says(&["did not finish within 2 s"]);
    assert!(project.read("pids").lines().count() >= 5);
    wait_until(|| running(&project).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn processes_of_a_program_end_with_compeval_even_if_that_is_killed() {
    use rustix::process::Signal;
    let server = Server::start();
    let project = project(&server, &format!("{SPAWNING}\nexec sleep 600\n"));
    for signal in [Signal::KILL, Signal::TERM] {
        project.write("pids", "");
        let mut run = project.start("run --label a --runs 1 --methods mine");
        wait_until(|| project.read("pids").lines().count() >= 5);
        assert_eq!(running(&project).len(), 5);
        run.signal(signal);
        if signal == Signal::TERM {
            // Two pending signals of one kind would be one.
            run.wait_for_words("stopping");
            run.signal(signal);
        }
        let code = run.end().code;
        assert!(code == -1 || code == 130 || code == 6, "{code}");
        wait_until(|| running(&project).is_empty());
    }
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let server = Server::start();
    let project = project(&server, SCRIPT);
    project.edit(
        "pipeline.toml",
        "[\"sh\", \"tools/compress.sh\"]",
        "[\"tools/missing\", \"now\"]",
    );
    let ended = project.expect(5, "run --label a --runs 1 --methods mine");
    ended.says(&["could not start `tools/missing now`: No such file"]);
}
