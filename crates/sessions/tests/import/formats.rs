//! One small log of each shape of each format.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use compeval_sessions::import::{Format, ImportedLog, read_bytes, read_log};
use compeval_sessions::transcript::Message;

fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/import/logs")
        .join(name)
}

fn line(message: &Message) -> String {
    let calls: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| {
            format!(
                " {}={}{}",
                call.id, call.function.name, call.function.arguments
            )
        })
        .collect();
    let answers = message
        .tool_call_id
        .as_ref()
        .map(|id| format!(" {id}"))
        .unwrap_or_default();
    format!(
        "{}{answers}: {:?}{}",
        message.role.name(),
        message.content,
        calls.concat()
    )
}

fn shown(imported: &ImportedLog) -> String {
    let mut text = format!("{}\n", imported.format);
    for conversation in &imported.conversations {
        let model = conversation.model.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "== {} ({model}), compacted at {:?}",
            conversation.name_hint,
            conversation.compactions()
        );
        for message in &conversation.messages {
            let _ = writeln!(text, "{}", line(message));
        }
        for summary in conversation
            .recorded
            .iter()
            .filter_map(|one| one.summary.as_ref())
        {
            let _ = writeln!(text, "summary: {summary:?}");
        }
        for (kind, count) in &conversation.repairs {
            let _ = writeln!(text, "put right: {count} {kind:?}");
        }
        for (why, count) in &conversation.dropped {
            let _ = writeln!(text, "left out: {count} {why}");
        }
    }
    assert_eq!(imported.losses, []);
    text
}

#[test]
fn each_shape_of_each_format_is_read() {
    let mut names: Vec<String> = std::fs::read_dir(log(""))
        .expect("logs")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert!(names.len() >= 24);
    for name in names {
        let imported =
            read_log(&log(&name), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "snapshots"}, {
            insta::assert_snapshot!(name.replace('.', "-"), shown(&imported));
        });
    }
}

/// What an import reads of a log without a file.
fn read(name: &str, text: &str, format: Option<Format>) -> String {
    let imported = read_bytes(Path::new(name), text.as_bytes().to_vec(), format)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    shown(&imported)
}

#[test]
fn calls_and_results_in_rarer_shapes_are_kept() {
    let qwen = r#"[{"conversations": [
        {"from": "human", "value": "list"},
        {"from": "gpt", "value": "<tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</tool_call>"},
        {"from": "tool", "value": "<tool_response>a.rs</tool_response>"},
        {"from": "gpt", "value": "a.rs"}]}]"#;
    let text = read("qwen.json", qwen, Some(Format::Hermes));
    assert!(
        text.contains("bash<function=bash>") && text.contains("<parameter=command>ls"),
        "{text}"
    );
    let custom = r#"[{"role": "user", "content": "patch"},
        {"role": "assistant", "content": null, "tool_calls":
            [{"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin Patch"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"}]"#;
    let text = read("custom.json", custom, None);
    assert!(
        text.contains("apply_patch")
            && text.contains("*** Begin Patch")
            && !text.contains("unknown"),
        "{text}"
    );
    let search = r#"[{"role": "user", "content": "search"}, {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content":
            [{"type": "web_search_result", "title": "Ports", "url": "https://x.org/p"}]},
        {"type": "text", "text": "8081"}]}]"#;
    let text = read("search.json", search, Some(Format::Anthropic));
    assert!(text.contains("Ports https://x.org/p"), "{text}");
    let connector = r#"[{"role": "user", "content": "read"}, {"role": "assistant", "content": [
        {"type": "mcp_tool_use", "id": "m1", "name": "fetch", "server_name": "s", "input": {"q": "x"}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "content": [{"type": "text", "text": "port 8081"}]},
        {"type": "text", "text": "It is there."}]}]"#;
    let text = read("connector.json", connector, Some(Format::Anthropic));
    assert!(text.contains("port 8081\\nIt is there."), "{text}");
    // Goose, Amazon Bedrock, Google's client for Python and the AI SDK of 2024: four ways to wrap a call and its result.
    let wrapped = [
        [
            r#"{"role": "assistant", "content": [{"type": "toolRequest", "id": "g1", "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}}]}"#,
            r#"{"role": "user", "content": [{"type": "toolResponse", "id": "g1", "toolResult": {"status": "success", "value": [{"type": "text", "text": "b.rs"}]}}]}"#,
        ],
        [
            r#"{"role": "assistant", "content": [{"toolUse": {"toolUseId": "b1", "name": "shell", "input": {"command": "ls"}}}]}"#,
            r#"{"role": "user", "content": [{"toolResult": {"toolUseId": "b1", "content": [{"text": "b.rs"}], "status": "success"}}]}"#,
        ],
        [
            r#"{"role": "model", "parts": [{"function_call": {"name": "shell", "args": {"command": "ls"}}}]}"#,
            r#"{"role": "user", "parts": [{"function_response": {"name": "shell", "response": {"output": "b.rs"}}}]}"#,
        ],
        [
            r#"{"role": "assistant", "content": "I list.", "toolInvocations": [{"state": "result", "toolCallId": "v1", "toolName": "shell", "args": {"command": "ls"}, "result": "b.rs"}]}"#,
            r#"{"role": "assistant", "content": "b.rs is there."}"#,
        ],
    ];
    for [call, result] in wrapped {
        let log = format!(r#"[{{"role": "user", "content": "list"}}, {call}, {result}]"#);
        let text = read("wrapped.json", &log, None);
        let is_whole =
            text.contains("shell") && text.contains("\\\"ls\\\"") || text.contains("\"ls\"");
        assert!(is_whole && text.contains("b.rs"), "{text}");
        assert!(
            !text.contains("unknown") && !text.contains("value"),
            "{text}"
        );
    }
}

#[test]
fn a_result_that_the_log_flags_as_an_error_says_so() {
    let claude = r#"{"type":"assistant","uuid":"a","parentUuid":null,"sessionId":"s","message":{"id":"m","role":"assistant","content":[
        {"type":"tool_use","id":"c1","name":"Edit","input":{}},{"type":"tool_use","id":"c2","name":"Bash","input":{}}]}}
        {"type":"user","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"user","content":[
        {"type":"tool_result","tool_use_id":"c1","content":"refused","is_error":true},
        {"type":"tool_result","tool_use_id":"c2","content":"Exit code 1\nrefused","is_error":true}]}}"#;
    let claude = claude.replace("[\n", "[").replace(",\n", ",");
    let pi = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}
        {"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}]}}
        {"type":"message","id":"b","parentId":"a","message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":"refused"}],"isError":true}}"#;
    let opencode = r#"{"info": {"id": "s"}, "messages": [{"info": {"role": "assistant"}, "parts": [
        {"type": "tool", "tool": "edit", "callID": "c1", "state": {"status": "error", "input": {}, "error": "refused"}}]}]}"#;
    let gemini = r#"{"sessionId": "s", "projectHash": "p", "messages": [{"id": "m", "type": "gemini", "content": "", "toolCalls": [
        {"id": "c1", "name": "replace", "args": {}, "status": "error",
         "result": [{"functionResponse": {"response": {"error": "refused"}}}]}]}]}"#;
    for (name, log) in [
        ("a.jsonl", claude.as_str()),
        ("b.jsonl", pi),
        ("c.json", opencode),
        ("d.json", gemini),
    ] {
        let text = read(name, log, None);
        assert!(text.contains("tool c1: \"Error: refused\""), "{text}");
    }
    let text = read("a.jsonl", &claude, None);
    assert!(
        text.contains(r#"tool c2: "Exit code 1\nrefused""#),
        "the code is mark enough: {text}"
    );
}

#[test]
fn the_reply_to_a_logged_request_of_the_responses_api_is_read() {
    let body = r#"{"model": "m", "input": [{"role": "user", "content": "hi"}], "response": {"output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ho"}]}]}}"#;
    let text = read("body.json", body, None);
    assert!(text.contains("assistant: \"ho\""), "{text}");
}

#[test]
fn a_message_that_repeats_a_compacted_one_of_hermes_is_new() {
    let row = |role: &str, content: &str, compacted: u8, more: &str| {
        format!(r#"{{"role": "{role}", "content": "{content}", "compacted": {compacted}{more}}}"#)
    };
    let call = r#", "tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": "{}"}}]"#;
    let id = r#", "tool_call_id": "c1""#;
    let rows = [
        row("user", "start", 1, ""),
        row("assistant", "one", 1, ""),
        row("user", "continue", 1, ""),
        row("assistant", "", 1, call),
        row("tool", "a.py", 1, id),
        row("user", "once more", 1, ""),
        row("assistant", "two", 1, ""),
        row("user", "start", 0, ""),
        row("user", "[CONTEXT COMPACTION] one", 0, ""),
        row("assistant", "", 0, call),
        row("tool", "a.py", 0, id),
        row("user", "continue", 0, ""),
        row("assistant", "three", 0, ""),
        row("user", "once more", 0, ""),
        row("assistant", "four", 0, ""),
    ];
    let log = format!(
        r#"{{"id": "x", "started_at": 1, "messages": [{}]}}"#,
        rows.join(",")
    );
    let text = read("hermes.json", &log, Some(Format::Hermes));
    assert_eq!(
        (
            text.matches("\"continue\"").count(),
            text.matches("a.py").count()
        ),
        (2, 1),
        "{text}"
    );
    assert_eq!(
        text.matches("\"once more\"").count(),
        2,
        "a new reply ends what was inserted again: {text}"
    );
    assert!(
        text.contains("left out: 3 repeated record") && !text.contains("put right"),
        "{text}"
    );
}

#[test]
fn claude_code_marks_compactions_and_inserted_texts_in_two_ways() {
    let record = |uuid: &str, parent: &str, more: &str| {
        format!(
            r#"{{"type": "user", "sessionId": "s", "uuid": "{uuid}", "parentUuid": {parent}, {more}}}"#
        )
    };
    let said = |text: &str| format!(r#""message": {{"role": "user", "content": "{text}"}}"#);
    let lines = [
        record("u1", "null", &said("Caveat: the port is 8081")),
        record(
            "u2",
            "\"u1\"",
            &said(
                "Caveat: The messages below were generated by the user while running local commands.",
            ),
        ),
        record(
            "u3",
            "\"u2\"",
            &(said("Summary of the session") + r#", "isCompactSummary": true"#),
        ),
        record("u4", "\"u3\"", &said("go on")),
    ];
    let text = read("claude.jsonl", &lines.join("\n"), None);
    assert!(
        text.contains("Caveat: the port is 8081") && !text.contains("generated by the user"),
        "{text}"
    );
    assert!(
        text.contains("compacted at [1]") && text.contains("summary: \"Summary of the session\""),
        "{text}"
    );
}

#[test]
fn claude_code_commands_that_the_tool_carried_out_are_left_out() {
    let record = |uuid: &str, parent: &str, text: &str| {
        let content = format!(r#""message": {{"role": "user", "content": "{text}"}}"#);
        format!(
            r#"{{"type": "user", "sessionId": "s", "uuid": "{uuid}", "parentUuid": {parent}, {content}}}"#
        )
    };
    let local =
        "<command-name>/effort</command-name>\\n  <command-message>effort</command-message>";
    let prompt = "<command-message>review is running…</command-message>\\n<command-name>/review</command-name>\\n\
                  <command-args>the parser</command-args>";
    let lines = [
        record("u1", "null", local),
        record(
            "u2",
            "\"u1\"",
            "<local-command-stdout>Set effort level</local-command-stdout>",
        ),
        record("u3", "\"u2\"", "fix the wrong file"),
        // the person went back, changed the effort and asked for something else
        record("u4", "\"u2\"", local),
        record("u5", "\"u4\"", prompt),
    ];
    let text = read("claude.jsonl", &lines.join("\n"), None);
    assert!(
        !text.contains("/effort") && text.contains("user: \"/review the parser\""),
        "{text}"
    );
    assert!(
        text.contains("left out: 2 injected text `local command`"),
        "{text}"
    );
    assert!(!text.contains("the wrong file"), "{text}");
}

#[test]
fn what_is_mostly_unknown_or_lacks_its_results_is_refused_with_the_format_that_reads_it() {
    let read = |text: String, format| read_bytes(Path::new("a.jsonl"), text.into_bytes(), format);
    let unknown = r#"{"type": "mystery", "sessionId": "s", "uuid": "u", "parentUuid": null}"#;
    let claude = r#"{"type": "user", "sessionId": "s", "uuid": "a", "message": {"role": "user", "content": "hi"}}"#;
    let lines = (0..4).map(|at| unknown.replace("\"u\"", &format!("\"u{at}\"")));
    let lines: Vec<String> = lines.chain([claude.to_owned()]).collect();
    let error = read(lines.join("\n"), None)
        .expect_err("is refused")
        .to_string();
    assert!(
        error.contains("4 of 5 records are of unknown kinds, most of them `mystery`"),
        "{error}"
    );

    // Nothing is left of a message whose blocks are all unknown: it speaks for no format.
    let blocks = [
        r#"{"role": "assistant", "content": [{"type": "odd_call"}]}"#,
        r#"{"role": "user", "content": [{"type": "odd_result"}]}"#,
    ];
    let lines_of_blocks = [r#"{"role": "user", "content": "hi"}"#]
        .into_iter()
        .chain(blocks.repeat(4));
    let error = read(lines_of_blocks.collect::<Vec<_>>().join("\n"), None)
        .expect_err("is refused")
        .to_string();
    assert!(error.contains("are of unknown kinds"), "{error}");

    let calls: Vec<String> = (0..3)
        .map(|at| {
            let call =
                format!(r#"{{"id": "c{at}", "function": {{"name": "ls", "arguments": "{{}}"}}}}"#);
            format!(r#"{{"role": "assistant", "content": null, "tool_calls": [{call}]}}"#)
        })
        .collect();
    let error = read(calls.join("\n"), None)
        .expect_err("is refused")
        .to_string();
    assert!(error.contains("3 of 3 calls have no result"), "{error}");

    let folder = std::env::temp_dir().join(format!("compeval-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("a.jsonl");
    std::fs::write(
        &file,
        lines
            .join("\n")
            .replace("\"type\": \"user\"", "\"type\": \"odd\""),
    )
    .expect("a file");
    let error = read_log(&file, Some(Format::ClaudeCode))
        .expect_err("is refused")
        .to_string();
    std::fs::remove_dir_all(&folder).expect("it is removed");
    assert!(error.contains("claude-code"), "{error}");
}

#[test]
fn a_result_says_that_its_call_was_not_carried_out_whatever_state_the_log_gives_it() {
    let checkpoint = r#"[{"role": "user", "parts": [{"text": "fix"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "replace", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "replace", "response": {"error": "no such text"}}}]}]"#;
    let session = r#"{"sessionId": "s", "projectHash": "p", "messages": [{"id": "m", "type": "gemini", "content": "", "toolCalls": [
        {"id": "c", "name": "replace", "args": {}, "status": "cancelled",
         "result": [{"functionResponse": {"response": {"output": "no such text"}}}]}]}]}"#;
    let qwen = r#"{"uuid": "a", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": "fix"}]}}
        {"uuid": "b", "sessionId": "s", "type": "assistant", "message": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "edit", "args": {}}}]}}
        {"uuid": "c", "sessionId": "s", "type": "tool_result", "message": {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "edit", "response": {"output": "no such text"}}}]}, "toolCallResult": {"callId": "c", "status": "declined"}}"#;
    let codex = r#"{"type": "item.completed", "item": {"id": "c", "type": "command_execution", "command": "rm a", "aggregated_output": "no such text", "exit_code": -1, "status": "declined"}}"#;
    for (name, log) in [
        ("checkpoint.json", checkpoint),
        ("session.json", session),
        ("qwen.jsonl", qwen),
        ("codex.jsonl", codex),
    ] {
        let text = read(name, log, None);
        assert!(text.contains("Error: no such text"), "{name}: {text}");
    }
}

#[test]
fn an_id_is_that_of_another_call_once_it_was_answered_and_it_may_be_a_number() {
    let item =
        |text: &str| format!(r#"{{"type": "item.completed", "item": {{"id": "i0", {text}}}}}"#);
    let ran = |command: &str| {
        item(&format!(
            r#""type": "command_execution", "command": "{command}", "aggregated_output": "of {command}", "exit_code": 0"#
        ))
    };
    let log = [
        ran("one"),
        r#"{"type": "turn.started"}"#.to_owned(),
        ran("two"),
    ]
    .join("\n");
    let text = read("codex.jsonl", &log, None);
    assert!(text.contains("of one") && text.contains("of two"), "{text}");

    let call = |id: usize| {
        format!(r#"{{"id": {id}, "function": {{"name": "run", "arguments": "{{}}"}}}}"#)
    };
    let log = format!(
        r#"[{{"role": "user", "content": "go"}}, {{"role": "assistant", "content": null, "tool_calls": [{}, {}]}},
            {{"role": "tool", "tool_call_id": 2, "content": "of the second"}},
            {{"role": "tool", "tool_call_id": 1, "content": "of the first"}}]"#,
        call(1),
        call(2)
    );
    let text = read("openai.json", &log, None);
    assert!(
        text.contains("tool 1: \"of the first\"") && text.contains("tool 2: \"of the second\""),
        "{text}"
    );
}

#[test]
fn items_of_codex_that_only_began_or_are_unknown_or_old_are_not_lost_without_a_word() {
    let item =
        |event: &str, text: &str| format!(r#"{{"type": "item.{event}", "item": {{{text}}}}}"#);
    let log = [
        item(
            "completed",
            r#""id": "a", "item_type": "command_execution", "command": "pytest", "aggregated_output": "1 failed", "exit_code": 1"#,
        ),
        item(
            "completed",
            r#""id": "b", "item_type": "assistant_message", "text": "Repaired.""#,
        ),
        item("completed", r#""id": "c", "type": "hologram""#),
        item(
            "completed",
            r#""id": "d", "type": "reasoning", "text": "hm""#,
        ),
        item(
            "started",
            r#""id": "e", "type": "command_execution", "command": "sleep 9", "status": "in_progress""#,
        ),
    ];
    let text = read("codex.jsonl", &log.join("\n"), None);
    for part in [
        "pytest",
        "1 failed",
        "Repaired.",
        "sleep 9",
        "no result",
        "unknown record kind `item.completed hologram`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_an_environment_answers_is_kept_in_every_shape_and_is_not_the_persons_words() {
    let log = |observation: &str| {
        format!(
            r#"{{"schema_version": "ATIF-v1.7", "steps": [{{"source": "user", "message": "go"}},
                {{"source": "agent", "message": "ok", "observation": {observation}}}]}}"#
        )
    };
    for observation in [
        r#"{"content": "1 failed"}"#,
        r#"{"result": {"content": "1 failed"}}"#,
        r#"{"results": ["1 failed"]}"#,
        r#"{"results": [{"stdout": "1 failed"}]}"#,
        r#""1 failed""#,
    ] {
        let text = read("atif.json", &log(observation), None);
        assert!(
            text.contains("user: \"[observation]") && text.contains("1 failed"),
            "{observation}: {text}"
        );
    }
}

#[test]
fn a_stream_of_gemini_without_calls_and_a_resumed_task_of_cline_are_read() {
    let stream = r#"{"type": "init", "session_id": "s", "model": "gemini-3-pro"}
        {"type": "message", "role": "user", "content": "hi"}
        {"type": "message", "role": "assistant", "content": "ho"}
        {"type": "result", "status": "success"}"#;
    let text = read("stream.jsonl", stream, None);
    assert!(
        text.contains("gemini-3-pro") || !text.contains("unknown"),
        "{text}"
    );
    let list = format!("[{}]", stream.replace('\n', ","));
    assert!(read("stream.json", &list, None).contains("assistant: \"ho\""));

    let call = r#"{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "attempt_completion", "input": {}}]}"#;
    let cline = format!(
        r#"[{{"role": "user", "content": "<task>\nbuild\n</task>"}}, {call},
        {{"role": "user", "content": "[attempt_completion] Result:\nThe user has provided feedback.\n<feedback>\nuse port 9100\n</feedback>"}},
        {{"role": "assistant", "content": "ok"}},
        {{"role": "user", "content": "[TASK RESUMPTION] It was interrupted.\n<user_message>\ngo on\n</user_message>"}}]"#
    );
    let text = read("cline.json", &cline, Some(Format::Anthropic));
    assert!(
        text.contains("user: \"use port 9100\"") && text.contains("user: \"go on\""),
        "{text}"
    );
}

#[test]
fn what_the_person_says_in_the_result_of_a_call_is_said_by_the_person() {
    let claude = |result: &str| {
        format!(
            r#"{{"type": "user", "sessionId": "s", "uuid": "a", "parentUuid": null, "message": {{"role": "user", "content": "fix it"}}}}
            {{"type": "assistant", "sessionId": "s", "uuid": "b", "parentUuid": "a", "message": {{"id": "m", "model": "c", "content": [{{"type": "tool_use", "id": "t", "name": "Edit", "input": {{}}}}]}}}}
            {{"type": "user", "sessionId": "s", "uuid": "c", "parentUuid": "b", "message": {{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "t", "content": "{result}"}}]}}}}"#
        )
    };
    let refused =
        claude("The user doesn't want to proceed. To tell you how, the user said:\\nuse b.ts");
    let answered = claude(
        "User has answered your questions: \\\"Which?\\\"=\\\"b.ts\\\". You can now continue with them.",
    );
    let openai = r#"[{"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "t", "function": {"name": "ask", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t", "content": "<answer>\nuse b.ts\n</answer>"}]"#;
    for (name, log, said) in [
        ("refused.jsonl", refused.as_str(), "user: \"use b.ts\""),
        (
            "answered.jsonl",
            answered.as_str(),
            "user: \"\\\"Which?\\\"=\\\"b.ts\\\"\"",
        ),
        ("openai.json", openai, "user: \"use b.ts\""),
    ] {
        let text = read(name, log, None);
        assert!(text.contains(said), "{name}: {text}");
    }
    let file = claude("He wrote that the user said:\\nuse b.ts");
    let text = read("file.jsonl", &file, None);
    assert!(!text.contains("user: \"use b.ts\""), "{text}");
}

#[test]
fn samples_without_an_id_are_numbered() {
    let sample = serde_json::json!({"messages": [
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]});
    let named = |samples: &[&serde_json::Value]| {
        let log = serde_json::json!({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples});
        let text = read("log.json", &log.to_string(), Some(Format::Inspect));
        let heads = text.lines().filter_map(|line| line.strip_prefix("== "));
        heads
            .filter_map(|head| Some(head.split_once(' ')?.0.to_owned()))
            .collect::<Vec<String>>()
    };
    assert_eq!(named(&[&sample]), ["log"]);
    assert_eq!(named(&[&sample, &sample]), ["log-1", "log-2"]);
}

/// A line of Codex: an item of the conversation, or an event.
fn of_codex(kind: &str, payload: &str) -> String {
    format!(
        r#"{{"timestamp": "2026-01-02T10:00:00.000Z", "type": "{kind}", "payload": {{{payload}}}}}"#
    )
}

#[test]
fn turns_of_codex_that_the_person_took_back_are_left_out() {
    let says = |role: &str, text: &str| {
        let content = format!(r#""content": [{{"type": "text", "text": "{text}"}}]"#);
        of_codex(
            "response_item",
            &format!(r#""type": "message", "role": "{role}", {content}"#),
        )
    };
    let back = |turns: u64| {
        let event = format!(r#""type": "thread_rolled_back", "num_turns": {turns}"#);
        of_codex("event_msg", &event)
    };
    let log = |turns: u64| {
        let lines = [
            of_codex("session_meta", r#""id": "s""#),
            says("user", "<environment_context>e</environment_context>"),
            says("user", "one"),
            says("assistant", "did one"),
            says("user", "two"),
            says("user", "<user_shell_command>ls</user_shell_command>"),
            of_codex("compacted", r#""message": "sum""#),
            says("assistant", "did two"),
            says("user", "<turn_aborted>t</turn_aborted>"),
            back(turns),
            back(0),
            says("user", "other"),
        ];
        read("codex.jsonl", &lines.join("\n"), None)
    };
    let text = log(1);
    assert!(text.contains("did one") && text.contains("other"), "{text}");
    for gone in ["two", "ls", "compacted at [4]", "turn_aborted"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    assert!(
        text.contains("left out: 4 on an abandoned branch"),
        "{text}"
    );
    let all = log(9);
    assert!(
        all.contains("environment_context") && !all.contains("did one") && all.contains("other"),
        "{all}"
    );
    assert!(log(0).contains("did two"));
}

#[test]
fn a_log_that_lost_its_header_is_known_by_its_records() {
    let item = r#""type": "message", "role": "user", "content": "hi""#;
    let call = r#""type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1""#;
    let lines = [
        (
            Format::Codex,
            of_codex("session_meta", r#""id": "s""#),
            of_codex("response_item", item),
        ),
        (
            Format::Codex,
            r#"{"id": "s", "timestamp": "t", "instructions": "x"}"#.to_owned(),
            format!("{{{item}}}\n{{{call}}}"),
        ),
        (
            Format::CopilotCli,
            r#"{"type": "session.start", "id": "e0", "parentId": null, "data": {}}"#.to_owned(),
            r#"{"type": "user.message", "id": "e1", "parentId": "e0", "data": {"content": "hi"}}"#
                .to_owned(),
        ),
        (
            Format::Gemini,
            r#"{"sessionId": "s", "projectHash": "p", "kind": "main"}"#.to_owned(),
            r#"{"id": "m1", "type": "user", "content": "hi"}
               {"id": "m2", "type": "gemini", "content": "ho"}"#
                .to_owned(),
        ),
        (
            Format::Pi,
            r#"{"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}"#.to_owned(),
            r#"{"type": "message", "message": {"role": "user", "content": "hi"}}"#.to_owned(),
        ),
    ];
    for (format, header, rest) in lines {
        let read = |text: &str| {
            let read = read_bytes(Path::new("a.jsonl"), text.as_bytes().to_vec(), None);
            let mut read = read.unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(read.format, format, "{text}");
            let main = read.conversations.remove(0);
            (main.begins_midway, main.messages)
        };
        let (whole, cut) = (read(&format!("{header}\n{rest}")), read(&rest));
        assert_eq!((whole.0, cut.0), (false, true), "{format}");
        assert_eq!(whole.1, cut.1);
    }
}

#[test]
fn what_was_undone_in_opencode_or_only_shown_is_left_out() {
    let message = |id: &str, role: &str, text: &str, more: &str| {
        let part = format!(r#"{{"type": "text", "text": "{text}"{more}}}"#);
        format!(r#"{{"info": {{"id": "{id}", "role": "{role}"}}, "parts": [{part}]}}"#)
    };
    let messages = [
        message("m1", "user", "note", r#", "ignored": true"#),
        message("m2", "user", "one", r#", "ignored": false"#),
        message("m3", "assistant", "did one", ""),
        message("m4", "user", "two", ""),
        message("m5", "assistant", "did two", ""),
    ];
    for (revert, has_two) in [
        (r#""revert": {"messageID": "m4", "snapshot": "x"}"#, false),
        (r#""revert": {"messageID": "m9"}"#, true),
        (r#""revert": null"#, true),
    ] {
        let info = format!(r#"{{"id": "s", {revert}}}"#);
        let log = format!(
            r#"{{"info": {info}, "messages": [{}]}}"#,
            messages.join(", ")
        );
        let text = read("opencode.json", &log, None);
        assert!(text.contains("did one") && !text.contains("note"), "{text}");
        let parts = ["two", "did two"].map(|part| text.contains(&format!("\"{part}\"")));
        assert_eq!(parts, [has_two; 2], "{text}");
    }
}
