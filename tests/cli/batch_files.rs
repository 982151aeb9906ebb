//! The file lane through the program: requests are exported, an engine works on the file, its results are imported.
//! Nobody listens at the provider, so whatever is sent fails.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::brain;
use super::project::Project;
use super::vendor_batches::{BatchServer, Vendor};

/// The project with all of its requests in the file lane.
fn project() -> Project {
    let project = Project::offline();
    project.edit("pipeline.toml", "identity    = \"mock\"", "identity    = \"mock\"\nlane        = \"file\"");
    let text = project
        .read("pipeline.toml")
        .replace("model    = \"mock/small-1\"", "model    = \"mock/small-1\"\nlane     = \"file\"");
    project.write("pipeline.toml", &text);
    project
}

/// The rows of a live run.
fn live_rows(select: &str) -> Vec<Value> {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = Project::offline();
    project.edit("pipeline.toml", "http://127.0.0.1:9/v1", &server.url());
    project.expect(0, &format!("run --label a {select}"));
    project.unpriced_rows("a")
}

/// The lines that vLLM's `run-batch` would write.
fn results(requests: &str) -> Vec<String> {
    let result = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a request");
        assert_eq!((&line["method"], &line["url"]), (&json!("POST"), &json!("/v1/chat/completions")));
        let text = brain::reply(&line["body"]);
        let (input, output) = (line["body"].to_string().len() / 4, text.len() / 4 + 1);
        let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "small-1-2025",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null, "stop_reason": null,
                "message": {"role": "assistant", "content": text, "refusal": null, "tool_calls": []}}],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}});
        answered(
            &line["custom_id"],
            &json!({"status_code": 200, "request_id": "vllm-batch-1", "body": body}),
            &Value::Null,
        )
    };
    requests.lines().map(result).collect()
}

fn answered(id: &Value, response: &Value, error: &Value) -> String {
    json!({"id": "vllm-1", "custom_id": id, "response": response, "error": error}).to_string()
}

fn open_batches(project: &Project) -> Vec<Value> {
    project.expect(0, "batch ls --json").json()["batches"].as_array().expect("a list").clone()
}

/// Exports, works and imports until the run has all results; returns the requests of each file.
fn work_off(project: &Project, select: &str) -> Vec<usize> {
    let mut files = Vec::new();
    while project.compeval(&format!("run --label a {select}")).code == 7 {
        for model in ["mock/small-1", "mock/judge-1"] {
            let name = format!("out/{}.jsonl", files.len());
            let exported = project.expect(0, &format!("batch export {name} {select} --only {model} --json")).json();
            if exported["requests"] == 0 {
                assert!(!project.exists(&name));
                continue;
            }
            let requests = project.read(&name);
            assert_eq!(exported["requests"], requests.lines().count());
            files.push(requests.lines().count());
            project.write("results.jsonl", &results(&requests).join("\n"));
            project.expect(0, "batch import results.jsonl");
        }
        assert!(files.len() < 12, "it never ends: {files:?}");
    }
    files
}

#[test]
fn an_engine_that_reads_files_measures_the_matrix_without_a_server() {
    let project = project();
    project.expect(7, "run --label a --runs 1").says(&["in the file lane; `compeval batch export FILE`"]);
    let plan = project.expect(0, "plan --runs 1");
    assert!(plan.stdout.contains("File: "), "{}", plan.stdout);
    assert!(!plan.stdout.contains("sends transcripts"), "nothing is sent to the provider:\n{}", plan.stdout);
    project.expect(2, "batch export out.jsonl --runs 1").says(&["mock/judge-1 (", "mock/small-1 (", "--only mock/"]);
    assert!(!project.exists("out.jsonl") && open_batches(&project).is_empty());
    let files = work_off(&project, "--runs 1");
    assert!(files.len() > 3, "compressions of each point and self-tests, answers, grades: {files:?}");
    assert!(project.unpriced_rows("a") == live_rows("--runs 1"));
    assert!(open_batches(&project).is_empty());
    let listed = project.expect(0, "cache ls --stage judge --json").stdout;
    assert!(listed.replace(' ', "").contains("\"lane\":\"file\""));
}

#[test]
fn what_is_in_a_file_is_asked_by_nothing_else_until_it_is_forgotten() {
    let project = project();
    let select = "--runs 1 --methods full";
    let export = |file: &str| {
        let exported = project.expect(0, &format!("batch export {file} {select} --only mock/small-1 --json"));
        exported.json()["requests"].as_u64().expect("a number")
    };
    let requests = export("a.jsonl");
    assert!(requests > 3);
    project.expect(2, &format!("batch export a.jsonl {select}")).says(&["exists"]);
    assert_eq!(export("b.jsonl"), 0);
    let [open] = open_batches(&project).try_into().expect("one batch");
    assert_eq!((&open["requests"], open["id"].is_null()), (&json!(requests), true));
    assert!(open["file"].as_str().expect("a file").ends_with("a.jsonl"));
    let nonce = open["nonce"].as_str().expect("a nonce");
    for wait in ["", "--wait"] {
        let ended = project.expect(7, &format!("run --label a {select} {wait}"));
        ended.says(&["1 open batch", "batch import", "a.jsonl"]);
    }
    project.expect(2, &format!("batch cancel {nonce}")).says(&["batch forget"]);
    project.expect(0, &format!("batch forget {nonce}"));
    assert_eq!(export("b.jsonl"), requests);
    project.write("results.jsonl", &results(&project.read("a.jsonl")).join("\n"));
    project.expect(2, "batch import results.jsonl").says(&["of no open batch", "nothing was imported"]);
    project.expect(2, "batch import nowhere.jsonl").says(&["nowhere.jsonl"]);
}

#[test]
fn results_that_lack_lines_repeat_them_or_are_of_others_lose_nothing() {
    let project = project();
    let select = "--runs 1 --methods full,nothing";
    project.expect(0, &format!("batch export a.jsonl {select} --only mock/small-1"));
    let requests = project.read("a.jsonl");
    let all = results(&requests);
    assert!(all.len() > 8);
    let id = |nth: usize| serde_json::from_str::<Value>(&all[nth]).expect("a line")["custom_id"].clone();
    let failed = |status: u16| json!({"status_code": status, "request_id": "r", "body": null});
    let mut lines = all.clone();
    // One is missing, one is refused, one met an error that may pass.
    lines.swap_remove(0);
    lines[1] = answered(&id(1), &failed(400), &json!("too odd"));
    lines[2] = answered(&id(2), &failed(500), &json!({"error": {"message": "out of memory", "code": 500}}));
    lines.reverse();
    lines.push(lines[4].clone());
    lines.push(answered(&json!("somebody-else"), &failed(200), &Value::Null));
    lines.push(all[3][..40].to_owned());
    project.write("r.jsonl", &(lines.join("\r\n\r\n") + "\n"));
    let imported = project.expect(0, "batch import r.jsonl --json");
    imported.says(&["1 line with a second result", "1 line of no open batch", "1 line without a result (the first: "]);
    let [batch] = imported.json()["batches"].as_array().expect("batches").clone().try_into().expect("one");
    let stored = all.len() - 3;
    assert_eq!((&batch["stored"], &batch["failed"], &batch["unfinished"]), (&json!(stored), &json!(1), &json!(2)));
    let exported = project.expect(0, &format!("batch export b.jsonl {select} --only mock/small-1 --json")).json();
    assert_eq!(exported["requests"], 3);
    assert_eq!(project.read("b.jsonl").matches("-02-").count(), 2, "a second attempt, and one anew");
    project.write("r.jsonl", &results(&project.read("b.jsonl")).join("\n"));
    project.expect(0, "batch import r.jsonl");
    work_off(&project, select);
    assert!(project.unpriced_rows("a") == live_rows(select));
}

#[test]
fn results_may_come_in_parts_and_twice() {
    let project = project();
    let select = "--runs 1 --methods full";
    project.expect(0, &format!("batch export a.jsonl {select} --only mock/small-1"));
    let all = results(&project.read("a.jsonl"));
    let (first, second) = all.split_at(2);
    project.write("first.jsonl", &first.join("\n"));
    project.write("second.jsonl", &second.join("\n"));
    let part = project.expect(0, "batch import first.jsonl --keep-open --json").json();
    assert_eq!(part["batches"][0]["is_closed"], false);
    assert_eq!(open_batches(&project).len(), 1);
    project.expect(0, "batch import first.jsonl --keep-open");
    let rest = project.expect(0, "batch import second.jsonl --json").json();
    assert_eq!((&rest["batches"][0]["is_closed"], &rest["batches"][0]["unfinished"]), (&json!(true), &json!(0)));
    work_off(&project, select);
    assert!(project.unpriced_rows("a") == live_rows(select));
}

#[test]
fn an_export_that_is_killed_is_out_or_never_was() {
    let project = project();
    for (nth, pause) in [5_u64, 20, 40, 60, 80, 120, 200].into_iter().enumerate() {
        let name = format!("{nth}.jsonl");
        let mut running = project.start(&format!("batch export {name} --runs 1 --only mock/small-1"));
        std::thread::sleep(Duration::from_millis(pause));
        running.kill();
        // The next run makes out what became of it.
        project.expect(7, "run --label a --runs 1");
        let open = open_batches(&project);
        assert_eq!(open.len(), usize::from(project.exists(&name)), "after {pause} ms");
        for batch in open {
            assert_eq!(project.read(&name).lines().count() as u64, batch["requests"].as_u64().expect("a number"));
            project.expect(0, &format!("batch forget {}", batch["nonce"].as_str().expect("a nonce")));
        }
    }
}

#[test]
fn a_project_without_the_lane_exports_answers_and_grades() {
    let project = Project::offline();
    let exported = project.expect(0, "batch export a.jsonl --runs 1 --methods full --only mock/small-1 --json").json();
    assert!(exported["requests"].as_u64().is_some_and(|requests| requests > 3));
    project.edit("pipeline.toml", "openai-chat", "anthropic");
    project.expect(0, "batch export b.jsonl --runs 1 --methods full").says(&["has no lane \"file\""]);
    assert!(!project.exists("b.jsonl"));
}
