//! `observe` on planted sessions in every format, where it is known what is read again, fails again and is fetched
//! again.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sessions::import::Format;

use super::project::{Ended, Project};

/// One turn, or an event between turns.
enum Step {
    User(&'static str),
    Say(&'static str),
    /// Lines `first..=last` of a file; the whole file if `last` is 0.
    Read(&'static str, u64, u64, &'static str),
    Shell(&'static str, &'static str),
    Edit(&'static str),
    Compact(&'static str),
}
use Step::{Compact, Edit, Read, Say, Shell, User};

const FAILED: &str = "Exit code: 101\nerror[E0308]: mismatched types in the ledger";
const LEDGER: &str = "fn parse_ledger_entry() {} fn write_ledger_page() {}";
const SUMMARY: &str = "Write pages with write_ledger_page. Files: src/a.rs, src/b.rs, src/c.rs, src/d.rs, src/e.rs. Check with \
                       `cargo test`. Key: sk-ant-api03-Zq8vK2mW7xR4tY9uB3nC6dF1gH5jL0pS <script>alert(1)</script>";

/// All files are read before the compaction. After it, three are read again in lines that nothing changed.
fn planted() -> Vec<Step> {
    let mut steps = vec![
        User("Make the ledger work."),
        Read("src/a.rs", 0, 0, LEDGER),
        Read("src/b.rs", 1, 50, "b"),
        Read("src/c.rs", 1, 50, "c"),
        Read("src/d.rs", 0, 0, "d"),
        Shell("cat src/e.rs", "e"),
        Shell("cargo test", FAILED),
        Compact(SUMMARY),
        Read("src/a.rs", 0, 0, LEDGER),
        Read("src/b.rs", 40, 60, "b"),
        Read("src/c.rs", 60, 80, "c"),
        Edit("src/d.rs"),
        Read("src/d.rs", 0, 0, "d"),
        Shell("head -n 20 src/e.rs | nl", "e"),
        Shell("cargo test", FAILED),
        Say("Both parse_ledger_entry and write_ledger_page are called."),
        User("No, I said port 9090 for john@corp.io."),
    ];
    steps.extend((0..6).map(|_| Say("Going on.")));
    steps
}

/// A log of these steps.
fn log(format: &str, steps: &[Step]) -> String {
    let mut log = Log {
        format,
        records: Vec::new(),
    };
    match format {
        "codex" => log.push("session_meta", json!({"id": "s1", "cwd": "/p"})),
        "pi" => log.records.push(
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/p"}),
        ),
        "copilot-cli" => log.copilot(
            "session.start",
            json!({"sessionId": "s", "producer": "copilot-agent"}),
        ),
        "claude-code" | "openhands" | "hermes" => {}
        _ => unwritten(format),
    }
    steps.iter().for_each(|step| log.step(step));
    if format == "hermes" {
        // One line per session, as in the exports of Hermes.
        let messages = std::mem::take(&mut log.records);
        log.records.push(json!({"id": "s", "source": "cli", "model": "m", "started_at": 1.0, "messages": messages}));
    }
    log.records.iter().fold(String::new(), |mut text, record| {
        writeln!(text, "{record}").unwrap();
        text
    })
}

/// Ends the test, because every format whose compactions are analysed needs a planted session.
fn unwritten(format: &str) -> ! {
    panic!("this test does not know how a log of {format} is written")
}

struct Log<'f> {
    format: &'f str,
    records: Vec<Value>,
}

impl Log<'_> {
    /// A record of Codex.
    fn push(&mut self, kind: &str, payload: Value) {
        self.records.push(
            json!({"timestamp": "2026-01-02T10:00:00.000Z", "type": kind, "payload": payload}),
        );
    }

    /// An event of Copilot CLI.
    fn copilot(&mut self, kind: &str, data: Value) {
        self.records
            .push(json!({"timestamp": "2026-01-02T10:00:00.000Z", "type": kind, "data": data}));
    }

    /// An event of OpenHands.
    fn event(&mut self, kind: &str, source: &str, mut fields: Value) {
        fields["id"] = json!(format!("e{}", self.records.len()));
        fields["kind"] = json!(kind);
        fields["source"] = json!(source);
        fields["timestamp"] = json!("2026-01-02T10:00:00");
        self.records.push(fields);
    }

    /// A record of Claude Code or pi, linked to the one before.
    fn link(&mut self, mut record: Value) {
        let id = format!("r{}", self.records.len());
        let before = self.records.last();
        let parent = ["uuid", "id"]
            .iter()
            .find_map(|key| before?.get(*key))
            .filter(|id| *id != "s")
            .cloned();
        let names = if self.format == "pi" {
            ["id", "parentId"]
        } else {
            ["uuid", "parentUuid"]
        };
        record[names[0]] = json!(id);
        record[names[1]] = json!(parent);
        record["sessionId"] = json!("s1");
        record["timestamp"] = json!("2026-01-02T10:00:00.000Z");
        self.records.push(record);
    }

    fn step(&mut self, step: &Step) {
        match step {
            User(text) => self.message("user", text),
            Say(text) => self.message("assistant", text),
            Read(path, first, last, result) if self.format == "codex" => {
                let script = if *first == 0 {
                    format!("cat {path}")
                } else {
                    format!("sed -n '{first},{last}p' {path}")
                };
                self.call("exec_command", &json!({"cmd": script}), result);
            }
            Read(path, first, last, result)
                if matches!(self.format, "openhands" | "copilot-cli") =>
            {
                let name = if self.format == "openhands" {
                    "file_editor"
                } else {
                    "view"
                };
                let mut arguments = json!({ "path": path });
                if self.format == "openhands" {
                    arguments["command"] = json!("view");
                }
                if *first > 0 {
                    arguments["view_range"] = json!([first, last]);
                }
                self.call(name, &arguments, result);
            }
            Read(path, first, last, result) => {
                let (name, key) = match self.format {
                    "pi" => ("read", "path"),
                    "hermes" => ("read_file", "path"),
                    "claude-code" => ("Read", "file_path"),
                    _ => unwritten(self.format),
                };
                let mut arguments = json!({ key: path });
                if *first > 0 {
                    arguments["offset"] = json!(first);
                    arguments["limit"] = json!(last - first + 1);
                }
                self.call(name, &arguments, result);
            }
            Shell(command, result) => match self.format {
                "codex" => self.call("exec_command", &json!({"cmd": command}), result),
                "pi" | "copilot-cli" => self.call("bash", &json!({"command": command}), result),
                "openhands" | "hermes" => {
                    self.call("terminal", &json!({"command": command}), result)
                }
                "claude-code" => self.call("Bash", &json!({"command": command}), result),
                _ => unwritten(self.format),
            },
            Edit(path) => match self.format {
                "codex" => {
                    let patch = format!("*** Begin Patch\n*** Update File: {path}\n*** End Patch");
                    self.push(
                        "response_item",
                        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p", "input": patch}),
                    );
                    self.push(
                        "response_item",
                        json!({"type": "custom_tool_call_output", "call_id": "p", "output": "done"}),
                    );
                }
                "pi" => self.call(
                    "edit",
                    &json!({"path": path, "oldText": "x", "newText": "y"}),
                    "done",
                ),
                "openhands" => self.call(
                    "file_editor",
                    &json!({"command": "str_replace", "path": path}),
                    "done",
                ),
                "copilot-cli" => self.call("edit", &json!({"path": path, "old_str": "x"}), "done"),
                "hermes" => self.call(
                    "patch",
                    &json!({"mode": "replace", "path": path}),
                    r#"{"success": true}"#,
                ),
                "claude-code" => {
                    self.call(
                        "Edit",
                        &json!({"file_path": path, "old_string": "x", "new_string": "y"}),
                        "done",
                    );
                }
                _ => unwritten(self.format),
            },
            Compact(summary) => self.compact(summary),
        }
    }

    fn message(&mut self, role: &str, text: &str) {
        match self.format {
            "codex" => {
                let kind = if role == "user" { "input_text" } else { "output_text" };
                self.push(
                    "response_item",
                    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
                );
            }
            "openhands" => self.event(
                "MessageEvent",
                if role == "user" { "user" } else { "agent" },
                json!({"llm_message": {"role": role, "content": [{"type": "text", "text": text}]}}),
            ),
            "copilot-cli" => self.copilot(&format!("{role}.message"), json!({"content": text})),
            "hermes" => self.records.push(json!({"role": role, "content": text, "timestamp": 1.0})),
            "pi" => self.link(
                json!({"type": "message", "message": {"role": role, "content": [{"type": "text", "text": text}]}}),
            ),
            "claude-code" => {
                let id = format!("m{}", self.records.len());
                self.link(json!({"type": role, "message": {"role": role, "id": id, "content": [{"type": "text", "text": text}]}}));
            }
            _ => unwritten(self.format),
        }
    }

    fn call(&mut self, name: &str, arguments: &Value, result: &str) {
        let id = format!("c{}", self.records.len());
        match self.format {
            "codex" => {
                let call = json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments.to_string()});
                self.push("response_item", call);
                self.push(
                    "response_item",
                    json!({"type": "function_call_output", "call_id": id, "output": result}),
                );
            }
            "openhands" => {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let call = json!({"thought": [], "tool_name": name, "tool_call_id": id, "tool_call": {"function": function}});
                self.event("ActionEvent", "agent", call);
                let content = json!({"content": [{"type": "text", "text": result}]});
                self.event(
                    "ObservationEvent",
                    "environment",
                    json!({"tool_call_id": id, "observation": content}),
                );
            }
            "copilot-cli" => {
                let call = json!({"toolCallId": id, "name": name, "arguments": arguments});
                self.copilot(
                    "assistant.message",
                    json!({"content": "", "toolRequests": [call]}),
                );
                let done =
                    json!({"toolCallId": id, "success": true, "result": {"content": result}});
                self.copilot("tool.execution_complete", done);
            }
            "hermes" => {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let calls = json!([{"id": id, "type": "function", "function": function}]);
                self.records.push(json!({"role": "assistant", "content": "", "tool_calls": calls, "timestamp": 1.0}));
                self.records.push(json!({"role": "tool", "tool_call_id": id, "content": result, "timestamp": 1.0}));
            }
            "pi" => {
                let call =
                    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
                self.link(
                    json!({"type": "message", "message": {"role": "assistant", "content": [call]}}),
                );
                let content = json!([{"type": "text", "text": result}]);
                self.link(
                    json!({"type": "message", "message": {"role": "toolResult", "toolCallId": id, "content": content}}),
                );
            }
            "claude-code" => {
                let call = json!({"type": "tool_use", "id": id, "name": name, "input": arguments});
                self.link(json!({"type": "assistant", "message": {"role": "assistant", "id": format!("m{id}"), "content": [call]}}));
                let content =
                    json!([{"type": "tool_result", "tool_use_id": id, "content": result}]);
                self.link(json!({"type": "user", "message": {"role": "user", "content": content}}));
            }
            _ => unwritten(self.format),
        }
    }

    fn compact(&mut self, summary: &str) {
        match self.format {
            "codex" => {
                let usage = |tokens: u64| json!({"type": "token_count", "info": {"last_token_usage": {"input_tokens": tokens}}});
                self.push("event_msg", usage(500));
                self.push("compacted", json!({"message": summary, "replacement_history": []}));
                self.push("event_msg", usage(0));
                self.push("event_msg", usage(70));
            }
            "openhands" => {
                let forgotten: Vec<Value> = self.records.iter().map(|event| event["id"].clone()).collect();
                let fields = json!({"forgotten_event_ids": forgotten, "summary": summary, "summary_offset": 0});
                self.event("Condensation", "environment", fields);
            }
            "copilot-cli" => self.copilot(
                "session.compaction_complete",
                json!({"success": true, "preCompactionTokens": 500, "postCompactionTokens": 70, "summaryContent": summary}),
            ),
            "hermes" => {
                self.records.iter_mut().for_each(|row| row["compacted"] = json!(1));
                let text = format!("[CONTEXT COMPACTION — REFERENCE ONLY] {summary}");
                self.message("user", &text);
            }
            "pi" => self.link(json!({"type": "compaction", "summary": summary, "tokensBefore": 500})),
            "claude-code" => {
                let metadata = json!({"trigger": "auto", "preTokens": 500, "postTokens": 70});
                self.link(json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}));
                self.link(
                    json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": summary}}),
                );
            }
            _ => unwritten(self.format),
        }
    }
}

fn observed(project: &Project, arguments: &str) -> Value {
    project
        .expect(0, &format!("observe {arguments} --json"))
        .json()
}

#[test]
fn planted_re_reads_failures_and_fetched_details_are_found_in_every_format() {
    let project = Project::offline();
    for format in Format::those(Format::is_observed)
        .into_iter()
        .map(Format::name)
    {
        project.write(&format!("logs/{format}.jsonl"), &log(format, &planted()));
        let found = observed(&project, &format!("logs/{format}.jsonl"));
        let one = &found["compactions"][0];
        assert_eq!(
            found["compactions"].as_array().unwrap().len(),
            1,
            "{format}: {found}"
        );
        // OpenHands and Hermes do not log the size of the context.
        let before = if matches!(format, "openhands" | "hermes") {
            Value::Null
        } else {
            json!(500)
        };
        assert_eq!(
            (&one["format"], &one["tokens_before"]),
            (&json!(format), &before)
        );
        assert_eq!(
            (&one["turns"], &one["not_counted"]),
            (&json!(14), &Value::Null),
            "{format}: {one}"
        );
        let figures = ["reads", "re_reads", "repeated_failures", "turns_to_edit"]
            .map(|key| one[key].as_u64());
        assert_eq!(
            figures,
            [Some(5), Some(3), Some(1), Some(4)],
            "{format}: {one}"
        );
        let again: Vec<&str> = one["re_read"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["path"].as_str().unwrap())
            .collect();
        assert_eq!(again, ["src/a.rs", "src/b.rs", "src/e.rs"], "{format}");
        assert_eq!(
            one["references"]["fetched_again"], 1,
            "{format}: parse_ledger_entry alone: {one}"
        );
        assert_eq!(one["references"]["unexplained"], 0, "{format}: {one}");
        assert!(
            one["fetched_again_share"].as_f64().unwrap() > 0.1,
            "{format}: {one}"
        );
        assert_eq!(found["difference"], Value::Null, "one session is too few");
    }
    let page = project.expect(0, "observe logs --html worst.html");
    let formats = Format::those(Format::is_observed).len();
    assert!(
        page.stdout
            .contains(&format!("{formats} sessions, {formats} compactions")),
        "{}",
        page.stdout
    );
    assert!(
        page.stdout
            .lines()
            .last()
            .unwrap()
            .starts_with("next: compeval fixture import logs/"),
        "{}",
        page.stdout
    );
    #[cfg(unix)]
    assert_eq!(
        mode(&project.path("worst.html")),
        0o600,
        "it quotes sessions"
    );
    let html = project.read("worst.html");
    assert!(
        html.contains("src/b.rs, lines 40 to 60 (turn 2)")
            && html.contains("Write pages with write_ledger_page")
    );
    assert!(
        !html.contains("<script>") && !html.contains("Zq8vK2mW7xR4tY9uB3nC6dF1gH5jL0pS"),
        "escaped and scrubbed"
    );
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

#[test]
fn what_observe_suggests_works_where_there_is_no_project() {
    let project = Project::empty();
    project.write(
        "logs/claude-code.jsonl",
        include_str!("../../crates/sessions/tests/import/logs/claude-code.jsonl"),
    );
    let ended = project.expect(0, "observe logs");
    let next = ended
        .stdout
        .lines()
        .last()
        .unwrap()
        .strip_prefix("next: ")
        .unwrap()
        .to_owned();
    for command in next.split(" && ") {
        project.expect(0, command.strip_prefix("compeval ").unwrap());
    }
    assert!(!project.files("eval/fixtures").is_empty(), "{next}");
}

#[test]
fn what_observe_suggests_works_for_a_project_in_another_folder() {
    let outer = Project::empty();
    outer.expect(0, "init there --empty --quiet");
    outer.write(
        "there/logs/a.jsonl",
        include_str!("../../crates/sessions/tests/import/logs/claude-code.jsonl"),
    );
    let ended = outer.expect(0, "observe logs -C there");
    let next = ended
        .stdout
        .lines()
        .last()
        .unwrap()
        .strip_prefix("next: compeval ")
        .unwrap()
        .to_owned();
    assert!(next.ends_with("--at-compactions"), "{next}");
    outer.expect(0, &next);
    assert!(!outer.files("there/fixtures").is_empty(), "{next}");
}

#[test]
fn a_copied_session_counts_once_and_the_copy_that_goes_on_counts() {
    let project = Project::offline();
    let mut longer = planted();
    longer.extend((0..4).map(|_| Say("And on.")));
    project.write("logs/a.jsonl", &log("claude-code", &planted()));
    project.write("logs/b/a.jsonl", &log("claude-code", &planted()));
    project.write("logs/c.jsonl", &log("claude-code", &longer));
    let found = observed(&project, "logs");
    assert_eq!(found["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(found["sessions"][1]["copy_of"], "logs/a.jsonl");
    let compactions = found["compactions"].as_array().unwrap();
    assert_eq!(compactions.len(), 1, "{found}");
    assert_eq!(
        (&compactions[0]["session"], &compactions[0]["turns"]),
        (&json!("c"), &json!(18))
    );
}

/// Sessions of 45 turns, the planted part, and as many turns again.
fn with_controls(project: &Project, sessions: usize, turns_after: usize) {
    for number in 0..sessions {
        let name = ["a", "b", "c", "d", "e", "f", "g", "h"][number];
        let mut steps = vec![User(name), Read("src/f.rs", 1, 20, "f")];
        // Both neighbours read known files, in other lines.
        let quiet = |steps: &mut Vec<Step>, turns: usize| {
            steps.extend((0..turns).map(|_| Say("Working.")));
        };
        quiet(&mut steps, 30);
        steps.push(Read("src/f.rs", 100, 120, "f"));
        quiet(&mut steps, 30);
        // The messages right before a compaction tell sessions from copies.
        steps.push(User(name));
        steps.extend(planted());
        quiet(&mut steps, 30);
        steps.push(Read("src/f.rs", 200, 220, "f"));
        quiet(&mut steps, turns_after);
        project.write(&format!("logs/{number}.jsonl"), &log("pi", &steps));
    }
}

#[test]
fn eight_sessions_with_controls_on_both_sides_give_a_difference_and_a_placebo() {
    let project = Project::offline();
    with_controls(&project, 8, 100);
    let found = observed(&project, "logs");
    assert_eq!(
        found["coverage"],
        json!({"counted": 8, "with_controls": 8}),
        "{}",
        found["sessions"]
    );
    let failures = &found["difference"]["repeated_failures_per_turn"];
    assert_eq!(failures["sessions"], 8, "{found}");
    assert!(
        (failures["before"]["difference"].as_f64().unwrap() - 1.0 / 20.0).abs() < 1e-9,
        "{failures}"
    );
    assert!(
        failures["finding"].is_null(),
        "equal sessions have no interval: {failures}"
    );
    assert!(found["placebo"].is_object(), "{found}");
    let ended = project.expect(0, "observe logs");
    for text in [
        "8 of 8 counted compactions have a control on both sides",
        "around turns without a compaction",
    ] {
        assert!(ended.stdout.contains(text), "`{text}`: {}", ended.stdout);
    }
    let place = |text: &str| {
        ended
            .stdout
            .find(text)
            .unwrap_or_else(|| panic!("`{text}`: {}", ended.stdout))
    };
    assert!(
        place("Re-reads of unchanged lines: ") < place("session  "),
        "the result first: {}",
        ended.stdout
    );
}

#[test]
fn without_room_for_controls_there_are_only_counts() {
    let project = Project::offline();
    with_controls(&project, 8, 0);
    let found = observed(&project, "logs");
    assert_eq!(found["coverage"], json!({"counted": 8, "with_controls": 0}));
    assert!(found["difference"].is_null() && found["placebo"].is_null());
    let ended = project.expect(0, "observe logs");
    assert!(
        ended
            .stdout
            .contains("Counts only: with controls at under half"),
        "{}",
        ended.stdout
    );
}

#[test]
fn what_holds_no_compaction_gets_a_sentence() {
    let project = Project::offline();
    let says = |ended: &Ended, text: &str| {
        assert!(ended.stdout.contains(text), "`{text}`: {}", ended.stdout)
    };
    project.write("one/a.jsonl", &log("pi", &[User("hi"), Say("ho")]));
    let ended = project.expect(0, "observe one");
    says(&ended, "No compaction was found.");
    says(&ended, "it has only one turn");
    let other = log("hermes", &[User("hey"), Say("hm")]).replace("\"id\":\"s\"", "\"id\":\"t\"");
    project.write(
        "two/a.jsonl",
        &format!("{}{other}", log("hermes", &[User("hi"), Say("ho")])),
    );
    says(
        &project.expect(0, "observe two"),
        "a.jsonl: it has only one turn of the assistant (2 sessions)",
    );
    project.write(
        "talk/a.jsonl",
        &log(
            "claude-code",
            &[User("hi"), Say("ho"), User("hi"), Say("hm")],
        ),
    );
    says(&project.expect(0, "observe talk"), "it has no tool calls");
    project.write(
        "summary/a.jsonl",
        &log("claude-code", &[Compact("All was done.")]),
    );
    says(
        &project.expect(0, "observe summary"),
        "there is no turn of the assistant",
    );
    project.write("empty/readme.txt", "nothing");
    says(&project.expect(4, "observe empty"), "0 sessions");
    let ended = project.expect(2, "observe nowhere");
    assert!(
        ended.stderr.contains("there is no file or folder")
            && ended.stderr.contains(".codex/sessions"),
        "{ended:?}"
    );
    let mut long = log("codex", &planted());
    long.push_str(&"x".repeat(33 << 20));
    project.write("long/a.jsonl", &long);
    let ended = project.expect(0, "observe long");
    says(&ended, "1 session, 1 compaction");
    assert!(
        ended.stderr.contains("longer than 32 MB; it was skipped"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_folder_of_events_is_one_session_of_openhands() {
    let project = Project::offline();
    for (number, event) in log("openhands", &planted()).lines().enumerate() {
        project.write(&format!("logs/talk/events/event-{number:05}-x.json"), event);
    }
    project.write(
        "logs/talk/base_state.json",
        r#"{"agent": {"llm": {"model": "m"}}}"#,
    );
    let ended = project.expect(0, "observe logs --json");
    let found = ended.json();
    assert_eq!(
        (
            &found["sessions"][0]["session"],
            &found["sessions"][0]["compactions"]
        ),
        (&json!("talk"), &json!(1))
    );
    assert_eq!(found["compactions"][0]["re_reads"], 3);
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_log_of_hermes_without_what_was_compacted_is_listed_and_not_counted() {
    let project = Project::offline();
    let whole = log("hermes", &planted());
    let rewritten = whole.replace("\"compacted\":1,", "");
    assert_ne!(rewritten, whole);
    project.write("logs/a.jsonl", &rewritten);
    let found = observed(&project, "logs");
    assert_eq!(
        found["compactions"][0]["not_counted"], "the log begins in the middle of the session",
        "{found}"
    );
    assert_eq!(found["coverage"]["counted"], 0);
    project.expect(0, "observe logs --html page.html");
    assert!(
        project
            .read("page.html")
            .contains("* not counted (1): the log begins in the middle of the session")
    );
}

#[test]
fn rows_of_the_database_of_hermes_are_a_session() {
    let project = Project::offline();
    let session: Value = serde_json::from_str(&log("hermes", &planted())).unwrap();
    let mut rows = session["messages"].clone();
    for row in rows.as_array_mut().unwrap() {
        row["compacted"] = row.get("compacted").cloned().unwrap_or(json!(0));
        // As SQLite stores them: a list is a string.
        row["tool_calls"] = row
            .get("tool_calls")
            .map_or(Value::Null, |calls| calls.to_string().into());
    }
    project.write("logs/hermes.json", &rows.to_string());
    let found = observed(&project, "logs");
    assert_eq!(
        (
            &found["compactions"][0]["format"],
            &found["compactions"][0]["re_reads"]
        ),
        (&json!("hermes"), &json!(3))
    );
}

/// A session of Claude Code with two requests before its compaction and one after it.
fn billed() -> String {
    let reply = |at: u32, read: u64, written: u64| {
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
                           "output_tokens": 100});
        let message = json!({"role": "assistant", "id": format!("r{at}"), "model": "claude-opus-4-6", "usage": usage,
                             "content": [{"type": "text", "text": format!("Reply {at}.")}]});
        json!({"type": "assistant", "uuid": format!("a{at}"), "sessionId": "s", "message": message,
               "timestamp": format!("2026-07-01T09:00:{at:02}.000Z")})
    };
    let user = |uuid: &str, text: &str| json!({"type": "user", "uuid": uuid, "sessionId": "s", "message": {"role": "user", "content": text}});
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "c", "sessionId": "s",
                          "compactMetadata": {"trigger": "auto", "preTokens": 90_000}});
    let mut summary = user("m", "The summary of the work so far.");
    summary["isCompactSummary"] = json!(true);
    let lines = [
        user("u", "Go on."),
        reply(1, 0, 50_000),
        reply(2, 50_000, 40_000),
        boundary,
        summary,
        reply(3, 20_000, 8_000),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

#[test]
fn economics_say_the_bill_and_what_a_compaction_made_the_provider_process_again() {
    let project = Project::offline();
    project.write("log.jsonl", &billed());
    let ended = project.expect(0, "observe log.jsonl --economics");
    ended.stdout_says(&[
        "1 session, 3 requests: $0.66 at list prices",
        "The worst 1 of 1 recorded compactions made the provider process 8,010 tokens again ($0.05)",
    ]);
    let said = observed(&project, "log.jsonl --economics");
    let bill = &said["economics"]["bill"];
    assert_eq!(
        (
            &bill["cache_write"]["tokens"],
            &bill["cache_read"]["tokens"]
        ),
        (&json!(98_000), &json!(70_000))
    );
    assert_eq!(said["economics"]["rewrites"][0]["tokens"], 8_010);

    let silent = json!({"type": "assistant", "sessionId": "s", "uuid": "z", "parentUuid": null,
        "message": {"id": "silent", "model": "claude-opus-4-6", "content": "Done."}});
    project.write("log.jsonl", &format!("{}\n{silent}", billed()));
    project
        .expect(0, "observe log.jsonl --economics")
        .stdout_says(&["left out: 1 request whose tokens the log does not count"]);

    project.write(
        "log.jsonl",
        &billed().replace("claude-opus-4-6", "nobody-knows"),
    );
    project
        .expect(0, "observe log.jsonl --economics")
        .stdout_says(&["left out: log: no price is known for `nobody-knows`"]);
    project
        .expect(
            0,
            "observe log.jsonl --economics --price-as claude-opus-4-6",
        )
        .stdout_says(&["1 session, 3 requests: $0.66 at list prices"]);
    project
        .expect(2, "observe log.jsonl --economics --price-as x")
        .says(&["expected a model of the price list"]);
}
