//! The place of a compaction prompt in its request: the system message, or after the conversation with its tools.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::text_of;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// A prompt in the style of coding agents, which inserts nothing.
const PROMPT: &str = "You compact the history of a coding session.\n\nSections:\n1. Primary Request and Intent: what \
the user wants\n2. Files and Code Sections: what was touched\n3. Pending Tasks: what is open\n";

#[test]
fn a_prompt_that_inserts_nothing_is_the_system_message_before_the_conversation() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write("prompts/compact.md", PROMPT);
    let pipeline = project.read("pipeline.toml");
    let table = "[[compress]]\nname = \"own\"\nstrategy = \"anchored-iterative\"\nmodel = \"mock/m\"\n\
                 prompt = \"prompts/compact.md\"\n";
    project.write(
        "pipeline.toml",
        &format!("{table}placement = \"system\"\n\n{pipeline}"),
    );
    project.expect(0, "run --label a --methods own --runs 1");
    let requests: Vec<Value> = server
        .asked()
        .iter()
        .map(|asked| asked.json.clone())
        .collect();
    let compressions: Vec<&Value> = requests
        .iter()
        .filter(|request| request["messages"][0]["content"] == PROMPT.trim_end())
        .collect();
    assert_eq!(compressions.len(), 2, "of {} requests", requests.len());
    for request in &compressions {
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages[0]["role"], "system");
        assert!(messages.len() > 3, "{request}");
        assert_eq!(messages.last().unwrap()["role"], "user");
        assert!(
            text_of(request).contains("Write the summary of this conversation now"),
            "{request}"
        );
    }
    // Inline, the same prompt would summarise nothing.
    project.write("pipeline.toml", &format!("{table}\n{pipeline}"));
    let refused = project.expect(2, "check");
    assert!(
        refused.stderr.contains("does not insert {{ transcript }}"),
        "{}",
        refused.stderr
    );
    project.write(
        "pipeline.toml",
        &format!("{table}placement = \"sytem\"\n\n{pipeline}"),
    );
    project
        .expect(2, "check")
        .says(&["unknown placement `sytem`", "system"]);
}

/// A method that sends its prompt last, and a fixture whose `tools` are these.
fn last(server: &Server, tools: &Value) -> Project {
    let project = Project::new(server);
    project.write("prompts/compact.md", PROMPT);
    let table = "[[compress]]\nname = \"own\"\nstrategy = \"anchored-iterative\"\nmodel = \"mock/m\"\n\
                 prompt = \"prompts/compact.md\"\nplacement = \"last\"\n";
    project.write(
        "pipeline.toml",
        &format!("{table}\n{}", project.read("pipeline.toml")),
    );
    let mut fixture: Value = serde_json::from_str(&project.read("fixtures/harbor.json")).unwrap();
    fixture["tools"] = tools.clone();
    project.write("fixtures/harbor.json", &fixture.to_string());
    project
}

fn compressions(server: &Server) -> Vec<Asked> {
    server
        .asked()
        .into_iter()
        .filter(|asked| asked.text.contains("You compact the history"))
        .collect()
}

const LAST: &str = "run --label a --methods own --runs 1";

#[test]
fn a_prompt_after_the_conversation_declares_its_tools_and_forbids_calls() {
    let server = Server::start();
    let schema = json!({"type": "function", "function": {"name": "shell", "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}});
    let project = last(&server, &json!([schema]));
    project.expect(0, LAST);
    let is_noted = || {
        project
            .result("a", "manifest.json")
            .to_string()
            .contains("records no tool schemas")
    };
    assert!(!is_noted());
    let asked = compressions(&server);
    assert_eq!(asked.len(), 2);
    for request in &asked {
        assert_eq!(
            (&request.json["tools"], &request.json["tool_choice"]),
            (&json!([schema]), &"none".into())
        );
    }
    // Without recorded schemas, stubs are made from the calls. That is reported, and the requests differ.
    project.write("fixtures/harbor.json", include_str!("data/harbor.json"));
    project.expect(0, &format!("{LAST} --replace"));
    assert!(is_noted());
    let stubs = compressions(&server);
    assert_eq!(stubs.len(), 4);
    let stub = &stubs[3].json["tools"][0]["function"];
    assert_eq!(
        (&stub["description"], &stub["parameters"]["type"]),
        (&"".into(), &"object".into()),
        "{stub}"
    );
}

#[test]
fn a_reply_that_calls_a_tool_fails_its_cell_and_is_not_asked_for_again() {
    let server = Server::start();
    server.script(|asked| match asked.text.contains("You compact the history") {
        true => Reply::Raw(
            200,
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": "Looking.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}]}}]})
            .to_string(),
        ),
        false => Reply::Sensible,
    });
    let project = last(&server, &json!([]));
    project
        .expect(5, LAST)
        .says(&["called the tool `shell` instead of answering"]);
    assert_eq!(
        compressions(&server).len(),
        1,
        "the second point needs the first"
    );
}
