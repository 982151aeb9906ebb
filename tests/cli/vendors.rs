//! The vendors' own compaction over several cycles: an item that comes back is sent again unchanged, and only to its
//! maker.

use serde_json::{Value, json};

use super::project::Project;
use super::server::{Asked, Reply, Server};

/// The prompt tokens that the vendors report for every answer.
const READ: u64 = 1000;

fn project(server: &Server, kind: &str, base: &str, strategy: &str) -> Project {
    let project = Project::new(server);
    let pipeline = format!(
        r#"
[pipeline]
regrade = false
runs = 1
judge_context = false

[providers.vendor]
kind = "{kind}"
base_url = "{base}"
api_key_env = "MOCK_API_KEY"

[providers.judging]
kind = "openai-chat"
base_url = "{}"

[[compress]]
name = "vendors-own"
strategy = "{strategy}"
model = "vendor/small-1"

[[answer]]
name = "agent"
model = "vendor/small-1"
prompt = "prompts/answer.md"
max_output_tokens = 400

[[judge]]
name = "grader"
model = "judging/judge-1"
"#,
        server.url()
    );
    project.write("pipeline.toml", &pipeline);
    project
}

/// The item of a cycle, spaced and escaped as no serializer would write it.
fn openai_items(cycle: usize) -> String {
    format!(
        r#"[{{"id":"cmp_{cycle}" ,"type":"compaction",  "encrypted_content":"gA\u0041{cycle}"}}]"#
    )
}

fn openai(asked: &Asked) -> Reply {
    let usage = json!({"input_tokens": READ, "output_tokens": 40, "total_tokens": READ + 40});
    match asked.path.as_str() {
        "/v1/responses/compact" => {
            let cycle = 1 + usize::from(asked.json["input"].to_string().contains("cmp_1"));
            let head = r#"{"id":"r","object":"response.compaction","created_at":0,"output":"#;
            Reply::Raw(
                200,
                format!("{head}{},\"usage\":{usage}}}", openai_items(cycle)),
            )
        }
        "/v1/responses" => {
            let said = json!([{"type": "output_text", "text": "It listens on port 8443.", "annotations": []}]);
            let output = json!([{"type": "message", "role": "assistant", "content": said}]);
            let body = json!({"id": "r", "object": "response", "model": "small-1", "status": "completed",
                "output": output, "usage": usage});
            Reply::Raw(200, body.to_string())
        }
        _ => Reply::Sensible,
    }
}

/// The items of a vendor that keeps the user's messages before its item.
fn openai_with_user_messages(asked: &Asked) -> Reply {
    let reply = openai(asked);
    let Reply::Raw(200, body) = &reply else {
        return reply;
    };
    let user = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"The service has to listen on port 8443."}]}"#;
    let head = r#""output":["#;
    match asked.path.ends_with("/compact") {
        true => Reply::Raw(200, body.replacen(head, &format!("{head}{user},"), 1)),
        false => reply,
    }
}

fn anthropic_block(cycle: usize) -> String {
    format!(
        r#"[{{"type":"compaction" , "content":"Notes {cycle}: port 8443.","signature":"E\u0075Y{cycle}"}}]"#
    )
}

fn anthropic(asked: &Asked) -> Reply {
    if asked.path != "/v1/messages" {
        return Reply::Sensible;
    }
    let (content, stop, usage) = if asked.json["compaction"].is_object() {
        let cycle = 1 + usize::from(asked.json["messages"].to_string().contains("Notes 1"));
        let spent = json!({"input_tokens": 0, "output_tokens": 0,
            "iterations": [{"type": "compaction", "input_tokens": 144, "output_tokens": 276}]});
        (anthropic_block(cycle), "compaction", spent)
    } else {
        let said = json!([{"type": "text", "text": "It listens on port 8443."}]).to_string();
        (
            said,
            "end_turn",
            json!({"input_tokens": READ, "output_tokens": 9}),
        )
    };
    let head = r#"{"id":"m","type":"message","role":"assistant","model":"small-1","content":"#;
    Reply::Raw(
        200,
        format!("{head}{content},\"stop_reason\":\"{stop}\",\"usage\":{usage}}}"),
    )
}

fn body(asked: &Asked) -> String {
    String::from_utf8_lossy(&asked.body).into_owned()
}

/// The block or item without the brackets of its list.
fn inner(items: &str) -> &str {
    items.trim_matches(['[', ']'])
}

#[test]
fn opaque_items_go_back_unchanged_and_count_as_their_provider_reports() {
    let server = Server::start();
    server.script(openai);
    let project = project(&server, "openai-responses", &server.url(), "opaque");
    project.expect(0, "run --label a");

    let asked = server.asked();
    let compacted: Vec<_> = asked
        .iter()
        .filter(|a| a.path.ends_with("/compact"))
        .collect();
    assert_eq!(compacted.len(), 2, "two points, two cycles");
    assert!(body(compacted[1]).contains(inner(&openai_items(1))));
    let answers: Vec<_> = asked.iter().filter(|a| a.path == "/v1/responses").collect();
    let holds = |cycle| {
        answers
            .iter()
            .filter(|a| body(a).contains(inner(&openai_items(cycle))))
            .count()
    };
    assert!(holds(1) > 0 && holds(2) > 0);
    assert_eq!(holds(1) + holds(2), answers.len());

    for row in project.rows("a") {
        let tokens = row["context_tokens"]
            .as_u64()
            .expect("the provider's count");
        assert!(
            (READ - 80..READ).contains(&tokens),
            "{tokens}: all of the prompt but the question around it"
        );
        assert_eq!(row["fact_survival"], Value::Null, "nobody can read it");
    }
}

#[test]
fn user_messages_that_a_vendor_keeps_verbatim_are_counted() {
    let server = Server::start();
    server.script(openai_with_user_messages);
    let project = project(&server, "openai-responses", &server.url(), "opaque");
    project.expect(0, "run --label a");
    let contexts = project.read("results/a/contexts.jsonl");
    for line in contexts.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let tokens = row["user_tokens"]
            .as_u64()
            .expect("the messages are counted");
        assert!((5..20).contains(&tokens), "{tokens}");
    }
    let share =
        project.result("a", "summary.json")["methods"]["vendors-own"]["compression"]["user_share"]
            .as_f64();
    assert!(
        share.is_some_and(|share| 0.0 < share && share < 0.2),
        "{share:?}"
    );
    project
        .expect(0, "report a --all")
        .stdout_says(&["% of the tokens that vendors-own replaces are messages of the user"]);
    assert!(project.read("results/a/report.md").contains("user kept"));
    project
        .expect(0, "report a --all --locale zh")
        .stdout_says(&["用户原话", "厂商逐字保留的用户消息"]);
}

#[test]
fn an_item_alone_keeps_nothing_of_the_user() {
    let server = Server::start();
    server.script(openai);
    let project = project(&server, "openai-responses", &server.url(), "opaque");
    let shown =
        project.expect(0, "run --label a --all").stdout + &project.read("results/a/report.md");
    let summary = project.result("a", "summary.json");
    assert_eq!(
        summary["methods"]["vendors-own"]["compression"]["user_share"].as_f64(),
        Some(0.0)
    );
    assert!(
        !shown.contains("user kept") && !shown.contains("messages of the user"),
        "zeros say nothing: {shown}"
    );
}

#[test]
fn a_vendors_readable_block_goes_back_unchanged_with_its_header() {
    let server = Server::start();
    server.script(anthropic);
    let base = server.url();
    let project = project(
        &server,
        "anthropic",
        base.trim_end_matches("/v1"),
        "provider-compaction",
    );
    project.expect(0, "run --label a");

    let asked = server.asked();
    let vendor: Vec<_> = asked.iter().filter(|a| a.path == "/v1/messages").collect();
    assert!(
        vendor
            .iter()
            .all(|a| a.headers["anthropic-beta"] == "compact-2026-09-04")
    );
    let (compacted, answers): (Vec<&Asked>, Vec<&Asked>) = vendor
        .into_iter()
        .partition(|a| a.json["compaction"].is_object());
    assert_eq!(compacted.len(), 2, "two points, two cycles");
    assert!(body(compacted[1]).contains(inner(&anthropic_block(1))));
    let holds = |cycle| {
        answers
            .iter()
            .filter(|a| body(a).contains(inner(&anthropic_block(cycle))))
            .count()
    };
    assert!(holds(1) > 0 && holds(2) > 0);
    assert_eq!(holds(1) + holds(2), answers.len());

    for row in project.rows("a") {
        let tokens = row["context_tokens"].as_u64().expect("its text is counted");
        assert!(
            (5..30).contains(&tokens),
            "{tokens}: the block's text, by the pinned tokenizer"
        );
        assert!(
            row["fact_survival"].is_number() || row["facts"].as_array().is_some_and(Vec::is_empty)
        );
    }
}
