//! `guard`: verdicts and exit codes, messages and logs as input, and what is refused.

use serde_json::{Value, json};

use super::project::Project;
use super::server::Server;

fn history() -> Value {
    let mut messages = vec![
        json!({"role": "user", "content": "Make the retry limit in src/pool.rs configurable."}),
    ];
    for step in 0..20 {
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("c{step}"), "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"src/pool.rs\"}"}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{step}"), "content": "fn take() { wait(); }\n".repeat(20)}));
    }
    messages.into()
}

fn said(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

#[test]
fn a_summary_passes_or_is_rejected_with_the_reason() {
    let project = Project::empty();
    project.write("before.json", &history().to_string());
    project.write("good.json", &said("The user asked to make the retry limit in src/pool.rs configurable. Nothing is done yet.").to_string());
    project.write(
        "bad.json",
        &said("I'm sorry, but I can't help with that.").to_string(),
    );
    let passed = project
        .expect(0, "guard --before before.json --after good.json --json")
        .json();
    assert_eq!(
        (&passed["verdict"], &passed["findings"]),
        (&json!("pass"), &json!([]))
    );
    let rejected = project
        .expect(100, "guard --before before.json --after bad.json --json")
        .json();
    assert_eq!(
        (
            &rejected["verdict"],
            &rejected["findings"][0]["kind"],
            &rejected["findings"][0]["severity"]
        ),
        (&json!("reject"), &json!("empty"), &json!("reject"))
    );
    assert!(rejected["findings"][0]["where"].is_string() && rejected["not_applicable"].is_array());
    project
        .expect(100, "guard --before before.json --after bad.json")
        .stdout_says(&["reject", "empty"]);
    project.expect(
        0,
        "guard --before before.json --after bad.json --without empty,newest_request",
    );
    // A result whose call is gone: an import would have mended it.
    let orphan = json!([{"role": "user", "content": "Make src/pool.rs configurable."}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]);
    project.write("orphan.json", &orphan.to_string());
    project
        .expect(100, "guard --before before.json --after orphan.json")
        .stdout_says(&["broken_messages"]);
    let anthropic = json!([{"role": "user", "content": [{"type": "text", "text": "The retry limit in src/pool.rs is to be configurable."}]}]);
    project.write("blocks.json", &anthropic.to_string());
    project.expect(0, "guard --before before.json --after blocks.json");
}

#[test]
fn what_are_no_two_histories_is_refused() {
    let project = Project::empty();
    project.write("before.json", &history().to_string());
    for (name, text, words) in [
        ("none.json", "[]".to_owned(), "expected"),
        ("void.json", String::new(), "is empty"),
        (
            "prose.json",
            "just some words".to_owned(),
            "no known format",
        ),
        ("image.json", "\u{89}PNG\r\n".to_owned(), "no known format"),
        (
            "system.json",
            json!([{"role": "system", "content": "You are an agent."}]).to_string(),
            "expected",
        ),
    ] {
        project.write(name, &text);
        let refused = project.expect(2, &format!("guard --before {name} --after before.json"));
        refused.says(&[words]);
    }
    project.write("short.json", &said("a").to_string());
    project
        .expect(2, "guard --before short.json --after before.json")
        .says(&["shorter", "expected"]);
    project
        .expect(2, "guard --before missing.json --after before.json")
        .says(&["missing.json"]);
    project
        .expect(
            2,
            "guard --before before.json --after short.json --without x",
        )
        .says(&["no rule is called `x`"]);
    let as_log = "guard --before before.json --after short.json --format";
    project
        .expect(2, &format!("{as_log} pie"))
        .says(&["invalid value 'pie'", "claude-code"]);
    project
        .expect(2, &format!("{as_log} pi"))
        .says(&["before.json"]);
}

#[test]
#[cfg(unix)]
fn a_history_without_an_end_is_refused() {
    let project = Project::empty();
    project.write("after.json", &history().to_string());
    project
        .expect(2, "guard --before /dev/zero --after after.json")
        .says(&["`/dev/zero`", "longer than 256 MB"]);
}

#[test]
#[cfg(unix)]
fn a_run_shows_how_many_contexts_of_a_method_would_have_been_rejected() {
    let server = Server::start();
    let project = Project::new(&server);
    let method = |name: &str, summary: &str| {
        let command = format!("cat > /dev/null; printf '{{\"summary\":\"{summary}\"}}'");
        format!(
            "\n[[compress]]\nname = \"{name}\"\nstrategy = \"command\"\ncommand = ['sh', '-c', '''{command}''']\ndeterministic = true\n"
        )
    };
    project.write(
        "pipeline.toml",
        &format!(
            "{}{}{}",
            project.read("pipeline.toml"),
            method("refusal", "I am sorry, but I cannot help with that."),
            method(
                "sound",
                "The user wants the port of the harbor service changed to 9091."
            ),
        ),
    );
    let ended = project.expect(
        0,
        "run --label a --runs 1 --methods full,refusal,sound --all",
    );
    ended.stdout_says(&["rejected"]);
    let methods = &project.result("a", "summary.json")["methods"];
    let share = |method: &str| &methods[method]["guard"]["rejected_share"];
    assert_eq!(share("refusal"), &json!(1.0));
    assert_eq!(share("full"), &Value::Null, "nothing was summarised");
    let found = &methods["refusal"]["guard"]["findings"];
    assert!(found["empty"].as_u64() > Some(0), "{found}");
    assert!(methods["sound"]["guard"]["findings"].get("empty").is_none());
}

#[test]
fn of_a_log_with_sub_agents_the_main_conversation_is_guarded() {
    let project = Project::empty();
    let record = |uuid: &str, role: &str, agent: Option<&str>, text: &str| {
        let mut record = json!({"type": role, "sessionId": "s", "uuid": uuid, "parentUuid": null,
            "isSidechain": agent.is_some(), "message": {"role": role, "id": uuid, "content": text}});
        if let Some(agent) = agent {
            record["agentId"] = json!(agent);
        }
        record.to_string()
    };
    let log = [
        record(
            "a",
            "user",
            None,
            "Make the limit in src/pool.rs configurable.",
        ),
        record("b", "assistant", None, &"I look at the pool. ".repeat(60)),
        record("c", "user", Some("x"), "Find src/pool.rs."),
        record("d", "assistant", Some("x"), "Found."),
    ];
    project.write("log.jsonl", &log.join("\n"));
    project.write(
        "after.json",
        &said("The limit in src/pool.rs is to be configurable.").to_string(),
    );
    project
        .expect(0, "guard --before log.jsonl --after after.json")
        .stdout_says(&["pass"]);
}
