//! The tools around a run, as a user meets them: the program itself, on projects of its own.
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::imports::log;
use super::loopback::LoopbackServer;
use axum::{Json, Router};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) struct Project(TempDir);

pub(super) struct Done {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Done {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

impl Project {
    pub(super) fn bare() -> Project {
        Project(tempfile::tempdir().unwrap())
    }

    pub(super) fn new() -> Project {
        let project = Project::bare();
        assert_eq!(project.run(&["init"]).code, 0);
        project
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compeval"));
        command
            .current_dir(self.path())
            .args(arguments)
            .env_remove("COMPEVAL_CACHE")
            .env("NO_COLOR", "1");
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"] {
            command.env_remove(key);
        }
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Done {
            code: status.code().unwrap(),
            out: text(stdout),
            err: text(stderr),
        }
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub(super) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} holds no {from}");
        self.write(name, &text.replace(from, to));
    }
}

const STARTER: &str = "tally-bank-export";

#[test]
fn a_new_project_is_sound_and_nothing_of_it_is_ever_overwritten() {
    let project = Project::new();
    let check = project.run(&["check", "--json"]);
    assert_eq!(
        (
            check.code,
            check.json()["ok"].clone(),
            check.json()["errors"].clone()
        ),
        (0, json!(true), json!([]))
    );
    project.write("pipeline.toml", "# mine");
    let again = project.run(&["init"]);
    assert_eq!(again.code, 2);
    assert!(
        again.err.contains("`pipeline.toml`") && again.err.contains("`.gitignore`"),
        "{}",
        again.err
    );
    assert_eq!(project.read("pipeline.toml"), "# mine");
}

#[test]
fn a_new_project_in_a_folder_of_its_own_runs_by_the_command_it_names() {
    let project = Project::bare();
    let made = project.run(&["init", "sub/p", "--json"]);
    let next = made.json()["next"].as_str().unwrap().to_owned();
    assert_eq!(next, "compeval -C sub/p run");
    assert_eq!(
        project
            .run(&["-C", "sub/p", "run", "--label", "first"])
            .code,
        0
    );
    assert!(
        project
            .path()
            .join("sub/p/results/first/cells.jsonl")
            .is_file()
    );
}

#[test]
fn a_compressor_of_another_program_is_added_to_a_project_and_runs() {
    let project = Project::new();
    for (name, runtime) in [("python", "python3"), ("node", "node")] {
        let made = project.run(&["init", "--compressor", name, "--json"]);
        assert_eq!(made.code, 0, "{}", made.err);
        let next = made.json()["next"].as_str().unwrap().to_owned();
        assert_eq!(next, format!("compeval run --methods {name}"));
        if Command::new(runtime).arg("--version").output().is_err() {
            eprintln!("skipped: {runtime} is not installed");
            continue;
        }
        let ran = project.run(&["run", "--methods", name, "--label", name]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let summary: Value =
            serde_json::from_str(&project.read(&format!("results/{name}/summary.json"))).unwrap();
        assert!(
            summary["methods"][name]["compression_ratio"]
                .as_f64()
                .unwrap()
                > 0.2,
            "{summary}"
        );
    }
    let again = project.run(&["init", "--compressor", "python"]);
    assert!(
        again.code == 2 && again.err.contains("a method `python` already"),
        "{}",
        again.err
    );
    project.write("compressors/compeval_method.py", "# mine");
    let other = project.run(&["init", "--compressor", "hermes"]);
    assert!(
        other.code == 2 && other.err.contains("different content"),
        "{}",
        other.err
    );
    assert!(!project.path().join("compressors/hermes").exists());
}

#[test]
fn a_new_project_may_begin_with_the_compressor_of_an_agent() {
    let project = Project::bare();
    assert_eq!(
        project
            .run(&["init", "p", "--compressor", "openhands"])
            .code,
        0
    );
    assert!(
        project
            .read("p/pipeline.toml")
            .contains("compressors/openhands/compress.py")
    );
    for name in [
        "compeval_method.py",
        "openhands/compress.py",
        "openhands/requirements.txt",
        "openhands/README.md",
    ] {
        assert!(
            project.path().join("p/compressors").join(name).is_file(),
            "{name}"
        );
    }
}

/// The module of the wheel, with the program of this build; pytest and pandas may be missing, and their tests are skipped.
#[test]
fn the_python_module_runs_evaluations_and_reads_their_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/python");
    let mut command = Command::new("python3");
    command
        .args(["-m", "unittest", "discover", "tests"])
        .current_dir(&root);
    command
        .env("PYTHONPATH", &root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("COMPEVAL", env!("CARGO_BIN_EXE_compeval"));
    let Ok(ran) = command.output() else {
        eprintln!("skipped: python3 is not installed");
        return;
    };
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn check_names_file_line_and_column_of_every_fault_at_once() {
    let project = Project::new();
    let fixture = format!("fixtures/{STARTER}.json");
    // A secret made here, so that no scanner trips over this file.
    let secret = ["gh", "p_", "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuI"].concat();
    let mut text: Value = serde_json::from_str(&project.read(&fixture)).unwrap();
    text["messages"][1]["content"] = json!(format!("use {secret} and mail jane@corp.io"));
    project.write(&fixture, &serde_json::to_string_pretty(&text).unwrap());
    project.edit("pipeline.toml", "runs     = 3", "runz     = 3");
    let check = project.run(&["check", "--json"]);
    assert_eq!(check.code, 2);
    let found = check.json();
    assert_eq!(found["errors"][0]["file"], "pipeline.toml");
    project.edit("pipeline.toml", "runz     = 3", "runs     = 3");
    let check = project.run(&["check", "--json"]);
    let found = check.json();
    let audit: Vec<&Value> = found["errors"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["file"] == fixture)
        .collect();
    assert_eq!((check.code, audit.len()), (2, 2), "{found}");
    let line = project
        .read(&fixture)
        .lines()
        .position(|line| line.contains("corp.io"))
        .unwrap()
        + 1;
    assert!(audit.iter().all(|error| error["line"] == line));
    assert!(!check.out.contains(&secret) && !project.run(&["check"]).err.contains(&secret));
    assert_eq!(project.run(&["fixture", "scrub", &fixture]).code, 0);
    let found = project.run(&["check", "--json"]).json();
    assert!(
        found["errors"]
            .as_array()
            .unwrap()
            .iter()
            .all(|e| e["file"] != fixture),
        "{found}"
    );
}

#[test]
fn recommendations_of_check_are_warnings() {
    let project = Project::new();
    let pipeline = project.read("pipeline.toml");
    project.write(
        "pipeline.toml",
        &pipeline.replace("[planted]\nenabled = true", ""),
    );
    let starter: Value =
        serde_json::from_str(&project.read(&format!("fixtures/{STARTER}.json"))).unwrap();
    let texts = ["port 8080", "port 8081", "port 8082"]
        .map(|text| format!("{text}. {}", "word ".repeat(28_000)));
    let messages: Vec<Value> = texts
        .iter()
        .map(|text| json!({"role": "user", "content": text}))
        .collect();
    let fixture = json!({"name": "large", "model": starter["model"], "points": [1, 2, 3], "messages": messages});
    project.write("fixtures/large.json", &fixture.to_string());
    let bank = |per_point: usize| {
        let probes = (0..per_point * 3).map(|n| {
            let kind = ["recall", "artifact", "continuation", "decision"][n % 4];
            json!({"id": format!("p{n}"), "type": kind, "point": n / per_point + 1, "question": format!("{n}?"),
                   "expected_facts": ["port 8080"]})
        });
        json!({"fixture": "large", "probes": probes.collect::<Vec<_>>()}).to_string()
    };
    for (per_point, count) in [
        (4, None),
        (2, Some("probes in the bank: 6; 8 to 36 are recommended")),
    ] {
        project.write("probes/large.probes.json", &bank(per_point));
        let check = project.run(&["check", "--json"]);
        let found = check.json();
        assert_eq!((check.code, &found["errors"]), (0, &json!([])), "{found}");
        let warnings: Vec<&str> = found["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w["message"].as_str().unwrap())
            .collect();
        let size = "fixtures/large.json has 420 KB, more than people review: 150 KB";
        let expected: Vec<&str> = count.into_iter().chain([size]).collect();
        assert_eq!(warnings, expected);
    }
}

#[test]
fn check_without_a_project_or_a_fixture_says_so_in_json() {
    let project = Project::bare();
    let check = project.run(&["check", "--json"]);
    assert_eq!((check.code, check.json()["ok"].clone()), (2, json!(false)));
    let project = Project::new();
    fs::remove_file(project.path().join(format!("fixtures/{STARTER}.json"))).unwrap();
    fs::remove_file(project.path().join(format!("probes/{STARTER}.probes.json"))).unwrap();
    let check = project.run(&["check", "--json"]);
    assert_eq!(
        (check.code, check.json()["fixtures"].clone()),
        (4, Value::Null)
    );
}

#[test]
fn check_recalls_the_paraphrase_and_counts_findings_by_kind() {
    let project = Project::new();
    project.write("session.json", &log());
    assert_eq!(project.run(&["fixture", "import", "session.json"]).code, 0);
    let probe = |n| json!({"id": format!("p{n}"), "type": "recall", "question": format!("{n}?"), "expected_facts": ["nowhere"]});
    let bank = json!({"fixture": "session", "probes": (0..40).map(probe).collect::<Vec<_>>()});
    project.write(
        "probes/session.probes.json",
        &serde_json::to_string_pretty(&bank).unwrap(),
    );
    let done = project.run(&["check"]);
    assert_eq!(done.code, 2);
    assert!(
        done.err
            .contains("message 0 is still in the user's own words"),
        "{}",
        done.err
    );
    for words in [
        "40 errors: probe `p0`",
        "probes/session.probes.json:6:9 and 39 like it",
        "compeval check --all",
    ] {
        assert!(done.err.contains(words), "{words}\n{}", done.err);
    }
    assert!(
        done.out.lines().chain(done.err.lines()).count() <= 9,
        "{}\n{}",
        done.err,
        done.out
    );
    let all = project.run(&["check", "--all"]);
    assert_eq!(all.err.matches("occurs nowhere").count(), 40, "{}", all.err);
    assert!(project.run(&["check", "-q"]).out.is_empty());
    assert!(
        project.run(&["check", "--json"]).json()["errors"]
            .as_array()
            .unwrap()
            .len()
            >= 40
    );
}

#[test]
fn probes_are_generated_by_rule_proven_and_cached() {
    let project = Project::new();
    project.write("session.json", &log());
    assert_eq!(project.run(&["fixture", "import", "session.json"]).code, 0);
    let first = project.run(&["probes", "generate", "--json"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let account = first.json();
    assert_eq!(
        (
            account["banks"][0]["fixture"].as_str(),
            account["cached"].as_u64()
        ),
        (Some("session"), Some(0))
    );
    let bank: Value = serde_json::from_str(&project.read("probes/session.probes.json")).unwrap();
    let probes = bank["probes"].as_array().unwrap();
    assert!(
        probes.iter().any(|probe| probe["type"] == "artifact"),
        "{bank}"
    );
    let refused = project.run(&["probes", "generate", "session"]);
    assert!(
        refused.code == 2 && refused.err.contains("--force"),
        "{}",
        refused.err
    );
    assert_eq!(project.run(&["probes", "generate"]).code, 4);
    let again = project
        .run(&["probes", "generate", "session", "--force", "--json"])
        .json();
    assert_eq!(again["executed"], 0);
    assert!(
        project
            .run(&["run", "--fixtures", "session", "--runs", "1"])
            .code
            == 0
    );
}

/// A server that speaks as OpenAI's, says `reply` to whoever asks, and counts.
fn server(
    reply: impl Fn(&str) -> String + Clone + Send + Sync + 'static,
) -> (LoopbackServer, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let answer = async move |body: String| {
        counted.fetch_add(1, Ordering::SeqCst);
        Json(
            json!({"id":"r","model":"m-1","choices":[{"index":0,"finish_reason":"stop",
            "message":{"role":"assistant","content":reply(&body)}}],
            "usage":{"prompt_tokens":20000,"completion_tokens":5}}),
        )
    };
    (LoopbackServer::start(Router::new().fallback(answer)), count)
}

fn with_server(project: &Project, server: &LoopbackServer) {
    let text = project.read("pipeline.toml");
    let provider = format!(
        "\n[providers.local]\nkind = \"openai-chat\"\nbase_url = \"{}/v1\"\n",
        server.url()
    );
    project.write(
        "pipeline.toml",
        &text.replace(
            "# A variation to be chosen",
            &format!("{provider}\n# A variation"),
        ),
    );
}

#[test]
fn a_model_is_asked_once_a_point_and_its_probes_once_without_context() {
    let project = Project::new();
    project.write("session.json", &log());
    assert_eq!(project.run(&["fixture", "import", "session.json"]).code, 0);
    let (server, count) = server(|body| {
        if !body.contains("expected_facts") {
            return "It must be DELAY_MS, I guess.".to_owned();
        }
        let probe = |question: &str, fact: &str| json!({"type":"recall","question":question,"expected_facts":[fact],"reference_answer":""});
        json!({"probes": [
            probe("Which port may not change?", "8081"),
            probe("What was the constant called?", "DELAY_MS"),
            probe("What was never said?", "nowhere at all"),
        ]})
        .to_string()
    });
    with_server(&project, &server);
    let arguments = [
        "probes",
        "generate",
        "session",
        "--model",
        "local/m-1",
        "--json",
    ];
    let account = project.run(&arguments).json();
    assert_eq!(
        account["banks"][0]["guessable"],
        json!(["p1-recall-2"]),
        "{account}"
    );
    let dropped = account["banks"][0]["points"][0]["dropped"].as_array();
    let [dropped] = dropped.unwrap().as_slice() else {
        panic!("{account}")
    };
    let why = dropped["why"].as_str().unwrap();
    assert!(why.contains("does not occur in the span"), "{why}");
    assert_eq!(
        (account["executed"].as_u64(), count.load(Ordering::SeqCst)),
        (Some(3), 3)
    );
    let again = project.run(&[&arguments[..], &["--force"]].concat()).json();
    assert_eq!(
        (again["cached"].as_u64(), count.load(Ordering::SeqCst)),
        (Some(3), 3)
    );
}

#[test]
fn a_missing_key_is_named_before_anyone_is_asked() {
    let project = Project::new();
    for arguments in [
        vec!["judge", "selftest", "--judge-model", "openai/gpt-5.2"],
        vec![
            "probes",
            "generate",
            STARTER,
            "--force",
            "--model",
            "openai/gpt-5.2",
        ],
    ] {
        let done = project.run(&arguments);
        assert_eq!(done.code, 2, "{}", done.err);
        assert!(
            done.err.contains("OPENAI_API_KEY is not set"),
            "{}",
            done.err
        );
    }
}

#[test]
fn the_built_in_judge_passes_and_is_not_asked_twice() {
    let project = Project::new();
    let first = project.run(&["judge", "selftest", "--json"]);
    let found = first.json();
    assert_eq!((first.code, found["executed"].as_u64()), (0, Some(55)));
    let judge = &found["judges"][0];
    assert_eq!(
        (&judge["passed"], &judge["may_grade"], &judge["labels"]),
        (&json!(true), &json!(true), &json!(96))
    );
    assert_eq!(
        project.run(&["judge", "selftest", "--json"]).json()["cached"],
        55
    );
}

#[test]
fn a_judge_that_likes_everything_fails_by_exit_one() {
    let project = Project::new();
    let (server, count) = server(|body| {
        // The schema of the request names the criteria that must be graded.
        let body: Value = serde_json::from_str(body).unwrap();
        let text = body.to_string();
        let ids = [
            "accuracy_factual",
            "accuracy_technical",
            "context_conversation_state",
            "context_artifact_state",
        ]
        .into_iter()
        .chain([
            "artifact_files_created",
            "artifact_files_modified",
            "artifact_key_details",
        ])
        .chain([
            "completeness_coverage",
            "completeness_depth",
            "continuity_work_state",
            "continuity_todo_state",
        ])
        .chain([
            "continuity_reasoning",
            "instruction_format",
            "instruction_constraints",
        ]);
        let graded: Vec<Value> = ids
            .filter(|id| {
                text.contains(&format!("\"{id}\"")) || text.contains(&format!("\\\"{id}\\\""))
            })
            .map(|id| json!({"criterionId": id, "score": 5, "reasoning": "fine"}))
            .collect();
        json!({ "criterionResults": graded }).to_string()
    });
    with_server(&project, &server);
    let done = project.run(&["judge", "selftest", "--judge-model", "local/m-1", "--json"]);
    let found = done.json();
    assert_eq!(
        (done.code, &found["judges"][0]["passed"]),
        (1, &json!(false)),
        "{found}{}",
        done.err
    );
    assert_eq!(count.load(Ordering::SeqCst), 55);
}

/// A blind sheet of the results `a`, with the scores that the judge gave.
fn filled_sheet(project: &Project) -> String {
    let sheet = ["judge", "agreement", "--blind-sheet", "sheet.csv"];
    assert_eq!(project.run(&sheet).code, 0);
    let mut scores = BTreeMap::new();
    for line in project.read("results/a/cells.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        for (dimension, score) in row["dimensions"].as_object().unwrap() {
            let answer = row["answer"].as_str().unwrap().to_owned();
            scores.insert((answer, dimension.clone()), score.to_string());
        }
    }
    let sheet = project.read("sheet.csv");
    let mut reader = csv::Reader::from_reader(sheet.as_bytes());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(reader.headers().unwrap()).unwrap();
    for record in reader.records() {
        let mut fields: Vec<String> = record.unwrap().iter().map(str::to_owned).collect();
        fields[2] = scores[&(fields[5].clone(), fields[1].clone())].clone();
        writer.write_record(&fields).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn grades_by_people_are_compared_with_the_judge() {
    let project = Project::new();
    assert_eq!(project.run(&["run", "--label", "a", "--runs", "1"]).code, 0);
    let sheet = filled_sheet(&project);
    project.write("sheet.csv", &sheet);
    let done = project.run(&["judge", "agreement", "sheet.csv", "--json"]);
    let found = done.json();
    let pooled = &found["judges"][0]["pooled"];
    assert_eq!(
        (
            done.code,
            pooled["exact"].as_f64(),
            pooled["quadratic_kappa"]["value"].as_f64()
        ),
        (0, Some(1.0), Some(1.0)),
        "{}",
        done.err
    );
    assert_eq!(found["judges"][0]["against_itself"], Value::Null);
    for (file, label, words) in [
        ("sheet.csv", "b", "no results `b`"),
        ("missing.csv", "a", "cannot read missing.csv"),
        ("pipeline.toml", "a", "the heading lacks"),
    ] {
        let done = project.run(&["judge", "agreement", file, "--label", label]);
        assert_eq!(done.code, 2, "{file}: {}", done.err);
        assert!(done.err.contains(words), "{file}: {}", done.err);
    }
    project.write("sheet.csv", "id,dimension,score\nfeed,accuracy,4\n");
    let done = project.run(&["judge", "agreement", "sheet.csv"]);
    assert!(
        done.code == 2 && done.err.contains("the results have no answer `feed`"),
        "{}",
        done.err
    );
}

#[test]
fn completion_scripts_know_the_flags() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project.run(&["completions", shell]).out;
        assert!(script.contains("compare-to"), "{shell}");
    }
}
