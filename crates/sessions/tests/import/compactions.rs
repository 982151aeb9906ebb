//! What an import records of compactions: where they were, and which messages they kept.

use std::fmt::Write as _;
use std::path::Path;

use compeval_sessions::import::{Conversation, DropReason, RecordedCompaction, read_bytes};
use compeval_sessions::transcript::{Message, Role};
use serde_json::{Value, json};

fn read(name: &str, log: &str) -> Conversation {
    let mut imported = read_bytes(Path::new(name), log.as_bytes().to_vec(), None).expect("reads");
    assert_eq!(imported.losses, []);
    imported.conversations.remove(0)
}

fn said(conversation: &Conversation) -> Vec<&str> {
    conversation
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect()
}

/// The texts that a recorded compaction kept.
fn kept(conversation: &Conversation, number: usize) -> Vec<&str> {
    let kept = conversation.kept_at(&conversation.recorded[number]);
    kept.into_iter()
        .map(|message| message.content.as_str())
        .collect()
}

/// How many ranges of messages are held for all compactions together.
fn ranges(conversation: &Conversation) -> usize {
    conversation
        .recorded
        .iter()
        .map(|compaction| compaction.kept.len())
        .sum()
}

const PI: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;

#[test]
fn compactions_of_pi_that_keep_everything_take_a_range_each() {
    let mut log = format!("{PI}\n");
    for n in 0..1000 {
        let parent = if n == 0 {
            "null".to_owned()
        } else {
            format!("\"c{}\"", n - 1)
        };
        let text = format!(r#""message":{{"role":"user","content":"text {n}"}}"#);
        let first = r#""summary":"s","firstKeptEntryId":"m0""#;
        let _ = writeln!(
            log,
            r#"{{"type":"message","id":"m{n}","parentId":{parent},{text}}}"#
        );
        let _ = writeln!(
            log,
            r#"{{"type":"compaction","id":"c{n}","parentId":"m{n}",{first}}}"#
        );
    }
    let conversation = read("pi.jsonl", &log);
    assert_eq!(
        (conversation.recorded.len(), ranges(&conversation)),
        (1000, 1000)
    );
    assert_eq!(kept(&conversation, 1), ["text 0", "text 1"]);
    assert_eq!(kept(&conversation, 999).len(), 1000);
}

#[test]
fn the_first_version_of_pi_names_the_first_kept_record_by_its_number() {
    let message = |text: &str| json!({"type": "message", "timestamp": "t", "message": {"role": "user", "content": text}});
    let compaction =
        |first: u64| json!({"type": "compaction", "summary": "S", "firstKeptEntryIndex": first});
    let records = [
        json!({"type": "session", "id": "s", "timestamp": "t", "cwd": "/", "provider": "p", "modelId": "m"}),
        message("one"),
        json!({"type": "thinking_level_change", "timestamp": "t", "thinkingLevel": "off"}),
        message("two"),
        compaction(2),
        message("three"),
        compaction(1 << 40),
    ];
    let conversation = read(
        "pi.jsonl",
        &records.map(|record| record.to_string()).join("\n"),
    );
    assert_eq!(said(&conversation), ["one", "two", "three"]);
    assert_eq!(
        (kept(&conversation, 0), kept(&conversation, 1)),
        (vec!["two"], vec![])
    );
}

#[test]
fn condensations_of_openhands_take_a_range_each_and_what_they_forget_once() {
    let events = (0..1000).flat_map(|n| {
        let forgotten = if n % 2 == 1 { vec![2 * n] } else { Vec::new() };
        let details = json!({"forgotten_event_ids": forgotten, "summary": "s"});
        [
            json!({"id": 2 * n, "source": "user", "action": "message", "args": {"content": format!("text {n}")}}),
            json!({"id": 2 * n + 1, "source": "agent", "action": "condensation", "args": details}),
        ]
    });
    let conversation = read("events.json", &Value::from_iter(events).to_string());
    assert_eq!(
        (conversation.recorded.len(), ranges(&conversation)),
        (1000, 1000)
    );
    assert_eq!(conversation.forgotten.len(), 500);
    assert_eq!(kept(&conversation, 3), ["text 0", "text 2"]);
    assert_eq!(kept(&conversation, 999).len(), 500);
}

#[test]
fn what_a_later_condensation_forgets_was_kept_before_and_a_result_goes_with_its_call() {
    let condensation = |id: u64, forgotten: Value| {
        let details = json!({"forgotten_event_ids": forgotten, "summary": "s"});
        json!({"id": id, "source": "agent", "action": "condensation", "args": details})
    };
    let events = json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "list"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}},
        {"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1},
        condensation(3, json!([])),
        {"id": 4, "source": "user", "action": "message", "args": {"content": "go on"}},
        condensation(5, json!([1])),
        {"id": 6, "source": "user", "action": "message", "args": {"content": "done?"}},
    ]);
    let conversation = read("events.json", &events.to_string());
    assert_eq!(kept(&conversation, 0), ["list", "", "a.py"]);
    assert_eq!(kept(&conversation, 1), ["list", "go on"]);
}

/// A row of the database of Hermes.
fn row(role: &str, content: &str, is_compacted: bool) -> Value {
    json!({"role": role, "content": content, "active": i32::from(!is_compacted), "compacted": i32::from(is_compacted)})
}

fn summary(text: &str, is_compacted: bool) -> Value {
    let end =
        "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---";
    row(
        "user",
        &format!("[CONTEXT COMPACTION — REFERENCE ONLY] {text}\n\n{end}"),
        is_compacted,
    )
}

fn hermes(rows: &[Value]) -> Conversation {
    read(
        "hermes.json",
        &json!({"id": "x", "started_at": 1, "messages": rows}).to_string(),
    )
}

/// A session of Hermes up to its second compaction: all rows are marked, those that the first one inserted again, too.
fn compacted_twice() -> Vec<Value> {
    vec![
        row("user", "start", true),
        row("assistant", "one", true),
        row("user", "second", true),
        row("assistant", "two", true),
        row("user", "start", true),
        summary("S1", true),
        row("user", "second", true),
        row("assistant", "two", true),
        row("user", "third", true),
        row("assistant", "three", true),
    ]
}

#[test]
fn rows_that_two_compactions_of_hermes_inserted_again_are_read_once() {
    let newest = [
        row("user", "third", false),
        row("assistant", "three", false),
        row("user", "fourth", false),
    ];
    let first = row("user", "start", false);
    for first in [
        vec![first, summary("S2", false)],
        vec![summary("S2", false)],
    ] {
        let is_first_kept = first.len() > 1;
        let conversation = hermes(&[compacted_twice(), first, newest.to_vec()].concat());
        assert_eq!(
            said(&conversation),
            ["start", "one", "second", "two", "third", "three", "fourth"]
        );
        assert_eq!(
            (
                conversation.compactions().as_slice(),
                conversation.recorded.len()
            ),
            ([4, 6].as_slice(), 2)
        );
        let summaries: Vec<bool> = conversation
            .recorded
            .iter()
            .map(|one| one.summary.iter().any(|text| text.contains("END OF")))
            .collect();
        assert_eq!(summaries, [false, false]);
        assert_eq!(kept(&conversation, 0), ["start", "second", "two"]);
        let newest = if is_first_kept {
            vec!["start", "third", "three"]
        } else {
            vec!["third", "three"]
        };
        assert_eq!(kept(&conversation, 1), newest);
        assert!(!conversation.begins_midway);
    }
}

#[test]
fn a_message_of_hermes_that_a_summary_was_merged_into_is_read_once() {
    let merged = "[PRIOR CONTEXT — for reference only; not a new message]\nsecond\n\n\
                  [END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\nS1";
    let rows = [
        row("user", "start", true),
        row("assistant", "one", true),
        row("user", "second", true),
        row("user", merged, false),
        row("assistant", "two", false),
    ];
    let conversation = hermes(&rows);
    assert_eq!(said(&conversation), ["start", "one", "second", "two"]);
    assert_eq!(kept(&conversation, 0), ["second"]);
}

#[test]
fn a_row_that_the_user_of_hermes_took_back_is_left_out_and_no_compaction() {
    let mut undone = row("user", "wrong", false);
    undone["active"] = json!(0);
    let rows = [
        row("user", "start", true),
        undone,
        row("assistant", "one", true),
        row("user", "start", false),
    ];
    let conversation = hermes(&rows);
    assert_eq!(said(&conversation), ["start", "one"]);
    assert_eq!(
        conversation.dropped.get(&DropReason::AbandonedBranch),
        Some(&1)
    );
    assert_eq!(conversation.recorded.len(), 1);
}

#[test]
fn the_request_of_a_compaction_of_opencode_comes_before_it() {
    let reply = |input: u64, read: u64, text: &str, summary: bool| {
        let tokens = json!({"input": input, "output": 5, "reasoning": 0, "cache": {"read": read, "write": 0}});
        let info =
            json!({"role": "assistant", "modelID": "m", "tokens": tokens, "summary": summary});
        json!({"info": info, "parts": [{"type": "text", "text": text}]})
    };
    let messages = [
        json!({"info": {"role": "user"}, "parts": [{"type": "text", "text": "look"}]}),
        reply(900, 100, "one", false),
        json!({"info": {"role": "user"}, "parts": [{"type": "compaction", "auto": true}]}),
        reply(50, 1000, "S", true),
        reply(200, 100, "two", false),
    ];
    let conversation = read(
        "opencode.json",
        &json!({"info": {"id": "s"}, "messages": messages}).to_string(),
    );
    let compaction = &conversation.recorded[0];
    assert_eq!(conversation.steps.len(), 3, "the request was billed");
    assert_eq!(
        (compaction.message, compaction.step, compaction.tokens_after),
        (2, 2, Some(300))
    );
    assert_eq!(compaction.summary.as_deref(), Some("S"));
}

#[test]
fn what_a_compaction_of_claude_code_preserved_may_be_named_by_its_ends() {
    let said = |uuid: &str, parent: Value, role: &str| {
        let message = json!({"role": role, "id": uuid, "content": [{"type": "text", "text": format!("text {uuid}")}]});
        json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message})
    };
    let boundary = |segment: Value| {
        let metadata = json!({"preTokens": 9, "preservedSegment": segment});
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "e", "parentUuid": null, "logicalParentUuid": "d",
               "sessionId": "s", "compactMetadata": metadata})
    };
    for (head, expected) in [("c", vec!["text c", "text d"]), ("lost", vec![])] {
        let records = [
            said("a", Value::Null, "user"),
            said("b", json!("a"), "assistant"),
            said("c", json!("b"), "user"),
            said("d", json!("c"), "assistant"),
            boundary(json!({"headUuid": head, "tailUuid": "d"})),
            said("f", json!("e"), "user"),
        ];
        let conversation = read(
            "claude.jsonl",
            &records.map(|record| record.to_string()).join("\n"),
        );
        assert_eq!(kept(&conversation, 0), expected);
    }
}

#[test]
fn a_head_that_a_compaction_keeps_stays_before_its_summary() {
    let messages = [
        (Role::System, "Be brief."),
        (Role::User, "Fix it."),
        (Role::Assistant, "I look."),
        (Role::User, "Now test it."),
    ];
    let conversation = Conversation {
        messages: messages
            .map(|(role, text)| Message::text(role, text))
            .to_vec(),
        recorded: vec![RecordedCompaction {
            message: 4,
            summary: Some("It was looked at.".to_owned()),
            kept: vec![0..2, 3..4],
            ..RecordedCompaction::default()
        }],
        ..Conversation::default()
    };
    let (_, after) = conversation.histories_at(0);
    let texts: Vec<&str> = after
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(
        texts,
        ["Be brief.", "Fix it.", "It was looked at.", "Now test it."]
    );
}
