//! A coding agent's own compaction prompt as the system message.

#![cfg(unix)]

use serde_json::Value;

use super::super::brain::text_of;
use super::project::Project;
use super::server::Server;

/// In the style of coding agents: it inserts nothing.
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
    project.write("pipeline.toml", &format!("{table}placement = \"system\"\n\n{pipeline}"));
    project.expect(0, "run --label a --methods own --runs 1");
    let requests: Vec<Value> = server.asked().iter().map(|asked| asked.json.clone()).collect();
    let compressions: Vec<&Value> =
        requests.iter().filter(|request| request["messages"][0]["content"] == PROMPT.trim_end()).collect();
    assert_eq!(compressions.len(), 2, "of {} requests", requests.len());
    for request in &compressions {
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages[0]["role"], "system");
        assert!(messages.len() > 3, "{request}");
        assert_eq!(messages.last().unwrap()["role"], "user");
        assert!(text_of(request).contains("Write the summary of this conversation now"), "{request}");
    }
    // Inline, the same prompt would summarise nothing.
    project.write("pipeline.toml", &format!("{table}\n{pipeline}"));
    let refused = project.expect(2, "check");
    assert!(refused.stderr.contains("does not insert {{ transcript }}"), "{}", refused.stderr);
    project.write("pipeline.toml", &format!("{table}placement = \"sytem\"\n\n{pipeline}"));
    project.expect(2, "check").says(&["unknown placement `sytem`", "system"]);
}
