//! The formats that users bring: each with an example in the shape that the documentation gives.

use serde_json::{Value, json};

use super::brain::{Wanted, graded, material};
use super::project::Project;
use super::server::{Reply, Server};

const REQUEST: &str = r#"{
  "probe_question": "Which port does the harbour service use, and why?",
  "model_response": "It uses 8081, because nginx holds 8080.",
  "compacted_context": "The service moved to port 8081, since nginx holds 8080.",
  "ground_truth": {"expected_facts": ["8081", "nginx"], "reference_answer": "8081; nginx holds 8080."},
  "rubric_criteria": ["accuracy_factual", "completeness_coverage"]
}"#;

/// A project in which the stand-in plays all stages.
fn offline() -> Project {
    let project = Project::empty();
    project.expect(0, "init");
    project
}

#[test]
fn the_judge_reads_one_object_and_returns_one_object() {
    let project = offline();
    project.write("request.json", REQUEST);
    let ended = project.expect(0, "judge grade request.json");
    let reply: Value = serde_json::from_str(&ended.stdout).expect("JSON alone");
    assert_eq!(
        (
            &reply["aggregateScore"],
            &reply["dimensionScores"]["accuracy"]
        ),
        (&5.0.into(), &5.0.into())
    );
    let results = reply["criterionResults"].as_array().unwrap();
    let ids: Vec<&str> = results
        .iter()
        .map(|result| result["criterionId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["accuracy_factual", "completeness_coverage"]);
    assert!(
        results
            .iter()
            .all(|result| result["score"] == 5 && result["reasoning"].is_string()),
        "{results:?}"
    );
}

#[test]
fn the_judge_of_the_project_is_asked_once_and_sees_no_more_than_the_object() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match material(&asked.text) {
        Some(brief) if asked.wanted == Wanted::Grades => Reply::Text(graded(&brief, 4).unwrap()),
        _ => Reply::Sensible,
    });
    project.write("request.json", REQUEST);
    let first = project.expect(0, "judge grade request.json");
    assert_eq!(first.json()["criterionResults"][0]["score"], 4);
    assert_eq!(
        project.expect(0, "judge grade request.json").stdout,
        first.stdout
    );
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "the second time it is in the cache");
    assert_eq!(
        material(&asked[0].text).unwrap(),
        serde_json::from_str::<Value>(REQUEST).unwrap()
    );
    project.edit(
        "pipeline.toml",
        "[pipeline]",
        "[pipeline]\njudge_context = false",
    );
    project
        .expect(0, "judge grade request.json")
        .says(&["keeps `compacted_context` from the judge"]);
    assert_eq!(
        material(&server.asked()[1].text)
            .unwrap()
            .get("compacted_context"),
        None
    );
}

#[test]
fn a_judge_is_asked_without_a_truth_and_a_mistake_in_the_object_is_named() {
    let project = offline();
    let mut request: Value = serde_json::from_str(REQUEST).unwrap();
    request.as_object_mut().unwrap().remove("ground_truth");
    project.write("request.json", &request.to_string());
    let reply = project.expect(0, "judge grade request.json").json();
    assert!(
        reply["criterionResults"][0]["reasoning"]
            .as_str()
            .unwrap()
            .contains("without a known answer")
    );
    request["ground_truth"] = "It listens on 8081.".into();
    project.write("request.json", &request.to_string());
    project.expect(0, "judge grade request.json");
    project.write(
        "request.json",
        &REQUEST.replace("model_response", "model_reponse"),
    );
    project.expect(2, "judge grade request.json").says(&[
        "request.json:3",
        "model_reponse",
        "model_response",
    ]);
    project.write(
        "request.json",
        &REQUEST.replace("accuracy_factual", "accuracy_fact"),
    );
    project.expect(2, "judge grade request.json").says(&[
        "no criterion `accuracy_fact`",
        "did you mean `accuracy_factual`?",
    ]);
    project
        .expect(2, "judge grade no-such-file.json")
        .says(&["no-such-file.json"]);
}

/// A bank with each kind of truth: facts, one fact as a string, a reference answer alone, nothing.
const BANK: &str = r#"{
  "fixture": "harbor",
  "probes": [
    {"id": "error", "type": "recall", "question": "Which error was it first?", "expected_facts": ["EADDRINUSE"]},
    {"id": "one", "type": "recall", "question": "What was in the way?", "expected_facts": "EADDRINUSE"},
    {"id": "why", "type": "decision", "question": "Why was the port moved?", "reference_answer": "Because it was taken."},
    {"id": "next", "type": "continuation", "question": "What should happen next?"},
    {"id": "files", "type": "artifact", "question": "Which files were touched?", "reference_answer": "The configuration."}
  ]
}"#;

#[test]
fn a_bank_has_facts_or_a_reference_answer_or_neither() {
    let project = Project::offline();
    project.write("probes/harbor.probes.json", BANK);
    project
        .expect(0, "check --all")
        .says(&["probe `next`: has neither expected facts nor a reference answer"]);
}

#[test]
fn measures_of_facts_are_unknown_without_facts() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write("probes/harbor.probes.json", BANK);
    project.expect(0, "run --label x --runs 1");
    let rows = project.rows("x");
    let without: Vec<&Value> = rows
        .iter()
        .filter(|row| row["probe"] == "why" || row["probe"] == "next")
        .collect();
    assert!(!without.is_empty());
    for row in without {
        for measure in [
            "fact_survival",
            "context_facts",
            "answer_when_lost",
            "fetch_tokens",
            "fabricated",
        ] {
            assert_eq!(row[measure], Value::Null, "{measure} of {}", row["probe"]);
        }
        assert!(row["overall"].is_number());
    }
    let alone = BANK
        .lines()
        .filter(|line| !line.contains("EADDRINUSE"))
        .collect::<Vec<_>>()
        .join("\n");
    project.write("probes/harbor.probes.json", &alone);
    project.expect(0, "run --label alone --runs 1");
    let summary = project.result("alone", "summary.json");
    for (name, method) in summary["methods"].as_object().unwrap() {
        assert_eq!(method["fact_survival"], Value::Null, "{name}");
    }
}

#[test]
fn a_bank_of_paraphrases_says_so_once() {
    let project = Project::offline();
    let paraphrase = BANK.replace("[\"EADDRINUSE\"]", "[\"the address was taken\"]");
    project.write("probes/harbor.probes.json", &paraphrase);
    project.expect(2, "check").says(&["the address was taken"]);
    project.write(
        "probes/harbor.probes.json",
        &paraphrase.replace("\"harbor\",", "\"harbor\", \"literal\": false,"),
    );
    project.expect(0, "check");
}

#[test]
fn a_fixture_is_a_header_and_messages() {
    let project = Project::offline();
    let fixture: Value = serde_json::from_str(&project.read("fixtures/harbor.json")).unwrap();
    for key in ["name", "description", "model", "context_length", "messages"] {
        assert!(!fixture[key].is_null(), "{key}");
    }
    let roles = fixture["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap());
    assert!(
        roles.clone().any(|role| role == "tool") && roles.clone().any(|role| role == "assistant")
    );
    let mut more = fixture.clone();
    more["scrubbed_by"] = json!("hand");
    project.write("fixtures/harbor.json", &more.to_string());
    project.expect(0, "check");
    more["messages"][1]["role"] = json!("robot");
    project.write("fixtures/harbor.json", &more.to_string());
    project.expect(2, "check").says(&["robot"]);
}

#[test]
fn documented_flags_select_and_replace() {
    let project = offline();
    project.expect(
        0,
        "run --label before --runs 1 --methods truncate,full,none --max-requests 0",
    );
    let plan = "plan --runs 2 --methods truncate --probes no-such-probe";
    project.expect(2, plan).says(&["no-such-probe"]);
    let plan = project.expect(
        0,
        "plan --json --runs 2 --methods truncate --model lexical/rules --focus-topic ports",
    );
    assert!(plan.json()["stages"]["judge"]["cells"].as_u64() > Some(0));
    for flag in ["--compressor-model", "--answer-model", "--judge-model"] {
        project.expect(0, &format!("plan --methods truncate {flag} lexical/rules"));
    }
    project
        .expect(0, "run --label after --runs 1 --methods truncate,full,none --compare-to before --fail-on-regression");
}

/// A rubric of the user, with the ids and weights of the built-in one and other words.
fn rubric(question: &str, anchors: [&str; 3]) -> String {
    let [zero, three, five] = anchors;
    let criterion = |id: &str, dimension: &str| {
        format!(
            "[[criteria]]\nid = \"{id}\"\nname = \"{id}\"\ndimension = \"{dimension}\"\nweight = 1.0\nquestion = \"{question}\"\n\
             [criteria.anchors]\n0 = \"{zero}\"\n3 = \"{three}\"\n5 = \"{five}\"\n"
        )
    };
    [
        criterion("accuracy_factual", "accuracy"),
        criterion("completeness_coverage", "completeness"),
    ]
    .join("\n")
}

#[test]
fn a_rubric_in_either_language_reaches_the_judge_word_for_word() {
    let english = (
        "Does every claim hold?",
        ["None of them.", "Most of them.", "All of them."],
    );
    let chinese = (
        "每个说法都站得住脚吗？",
        ["一个也不。", "大多数站得住。", "全部站得住。"],
    );
    for (question, anchors) in [english, chinese] {
        let server = Server::start();
        let project = Project::new(&server);
        project.write("rubric.toml", &rubric(question, anchors));
        project.edit(
            "pipeline.toml",
            "[pipeline]",
            "[pipeline]\nrubric = \"rubric.toml\"",
        );
        project.write("request.json", REQUEST);
        project.expect(0, "judge grade request.json");
        let sent = &server.asked()[0].text;
        let [zero, three, five] = anchors;
        let words = format!("\n{question}\n0: {zero}\n3: {three}\n5: {five}\n");
        assert!(sent.contains(&words), "{sent}");
    }
}

#[test]
fn a_baseline_is_a_path_in_the_project_from_wherever_the_program_is_started() {
    let project = offline();
    project.expect(
        0,
        "run --label before --runs 1 --methods truncate,full,none",
    );
    std::fs::create_dir_all(project.path("elsewhere")).expect("a folder");
    let mut command = project.command(
        "-C .. run --label after --runs 1 --methods truncate,full,none --compare-to results/before",
    );
    let output = command
        .current_dir(project.path("elsewhere"))
        .output()
        .expect("the program");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        project.result("after", "summary.json")["comparison"]["baseline"],
        "before"
    );
    let mut command = project.command("-C .. compare after:full results/before:full");
    let output = command
        .current_dir(project.path("elsewhere"))
        .output()
        .expect("the program");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_results_folder_is_a_path_from_the_folder_that_the_command_works_in() {
    let project = offline();
    project.expect(0, "run --label a --runs 1");
    std::fs::create_dir_all(project.path("elsewhere")).expect("a folder");
    for line in [
        "show tally-bank-export --label results/a",
        "why tally-bank-export --label ./results/a",
        "report results/a",
        "judge agreement --blind-sheet sheet.csv --label results/a",
        "labels protect results/a",
    ] {
        let mut command = project.command(&format!("-C .. {line}"));
        let output = command
            .current_dir(project.path("elsewhere"))
            .output()
            .expect("the program");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_fixture_is_scrubbed_by_its_name_and_an_empty_project_has_its_folders() {
    let project = Project::offline();
    project.edit(
        "fixtures/harbor.json",
        "Find out why.",
        "Mail jane@corp-mail.com why.",
    );
    project.expect(0, "fixture scrub harbor");
    assert!(
        !project
            .read("fixtures/harbor.json")
            .contains("jane@corp-mail.com")
    );
    project
        .expect(2, "fixture scrub no-such")
        .says(&["name a fixture, or its file"]);
    let empty = Project::empty();
    empty.expect(0, "init --empty");
    assert!(empty.path("fixtures").is_dir() && empty.path("probes").is_dir());
}

#[test]
fn an_import_of_equal_content_leaves_the_fixture_and_its_date_alone() {
    let project = Project::empty();
    project.expect(0, "init --empty");
    let log = r#"[{"role":"user","content":"Read the notes and compare both plans."},{"role":"assistant","content":"Plan B is shorter by 12 days."}]"#;
    project.write("session.json", log);
    project.expect(0, "fixture import session.json");
    let dated = project
        .read("fixtures/session.json")
        .replace("\"scrubbed_at\": \"2", "\"scrubbed_at\": \"1");
    project.write("fixtures/session.json", &dated);
    let again = project.expect(0, "fixture import session.json");
    assert!(
        again.stdout.contains("unchanged: fixtures/session.json"),
        "{}",
        again.stdout
    );
    assert_eq!(project.read("fixtures/session.json"), dated);
    project.write("session.json", &log.replace("12 days", "13 days"));
    project.expect(0, "fixture import session.json");
    assert!(
        project.exists("fixtures/session-2.json"),
        "other content is another fixture"
    );
    let third = project.expect(0, "fixture import session.json");
    assert!(
        third.stdout.contains("unchanged: fixtures/session-2.json"),
        "{}",
        third.stdout
    );
    assert!(
        !project.exists("fixtures/session-3.json"),
        "the same content is not imported twice"
    );
}

#[test]
fn the_first_files_of_a_folder_that_are_no_logs_are_listed() {
    let project = Project::empty();
    project.expect(0, "init --empty");
    (0..25).for_each(|n| project.write(&format!("logs/{n}.json"), "{\"a\": 1}"));
    let ended = project.expect(2, "fixture import logs");
    assert_eq!(
        ended.stderr.matches("no log: ").count(),
        20,
        "{}",
        ended.stderr
    );
    ended.says(&["and 5 more; --json lists all"]);
}

#[test]
fn an_account_name_that_is_left_comes_with_the_command_that_replaces_it() {
    let project = Project::empty();
    project.expect(0, "init --empty");
    let log = r#"[{"role":"user","content":"Read /home/jdoe77/notes.md, which jdoe77 wrote."},{"role":"assistant","content":"Plan B it is."}]"#;
    project.write("session.json", log);
    let scrub = "fixture scrub session --handle jdoe77";
    project
        .expect(0, "fixture import session.json")
        .says(&[&format!("if personal: compeval {scrub}")]);
    project.expect(0, scrub);
    assert!(!project.read("fixtures/session.json").contains("jdoe77"));
}

#[test]
fn a_method_may_be_named_by_several_words() {
    let project = offline();
    project.edit(
        "pipeline.toml",
        "name     = \"truncate\"",
        "name     = \"the newest messages\"",
    );
    let mut command = project.command("run --label a --runs 1");
    let output = command
        .args(["--methods", "the newest messages,full,none"])
        .output()
        .expect("the program");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        project
            .rows("a")
            .iter()
            .any(|row| row["method"] == "the newest messages")
    );
    project.edit(
        "pipeline.toml",
        "the newest messages",
        "the  newest messages",
    );
    project.expect(2, "check").says(&["holds two in a row"]);
}

#[test]
fn the_sample_of_research_work_proves_its_bank_and_runs() {
    let project = offline();
    project.edit("pipeline.toml", "[planted]\nenabled = true", "");
    let fixture = include_str!("../../examples/research/fixtures/research-compare-documents.json");
    let bank =
        include_str!("../../examples/research/probes/research-compare-documents.probes.json");
    project.write("fixtures/research-compare-documents.json", fixture);
    project.write("probes/research-compare-documents.probes.json", bank);
    let checked = project.expect(0, "check --json").json();
    let warnings: Vec<&str> = checked["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["message"].as_str().unwrap())
        .collect();
    assert!(
        warnings.iter().all(|warning| !warning.contains("research")),
        "{warnings:?}"
    );
    project.expect(
        0,
        "run --label a --runs 1 --fixtures research-compare-documents",
    );
    let rows = project.rows("a");
    assert!(
        rows.iter()
            .any(|row| row["probe"] == "open-question" && row["fact_survival"].is_null())
    );
}
