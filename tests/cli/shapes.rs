//! The messages that methods keep verbatim beside their summary, and the places of prompt and summary.

#![cfg(unix)]

use serde_json::Value;

use super::brain::text_of;
use super::project::Project;
use super::server::{Reply, Server};

const PROMPT: &str = "Compact the session now.\n{{ previous_summary }}\n{{ focus_topic }}\n";

fn project(server: &Server, keys: &str) -> Project {
    let project = Project::new(server);
    project.write("prompts/compact.md", PROMPT);
    let table = format!(
        "[[compress]]\nname = \"own\"\nmodel = \"mock/m\"\nprompt = \"prompts/compact.md\"\n{keys}\n"
    );
    project.write(
        "pipeline.toml",
        &format!("{table}\n{}", project.read("pipeline.toml")),
    );
    project
}

/// The requests for a summary.
fn compressions(server: &Server) -> Vec<Value> {
    let asked = server.asked();
    asked
        .iter()
        .filter(|asked| asked.text.contains("Compact the session now."))
        .map(|asked| asked.json.clone())
        .collect()
}

fn contexts(project: &Project) -> Vec<Value> {
    let lines = project.read("results/a/contexts.jsonl");
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["method"] == "own").collect()
}

const RUN: &str = "run --label a --methods own --runs 1";

#[test]
fn the_tail_stays_in_the_context_and_returns_to_the_next_span() {
    let server = Server::start();
    server.script(
        |asked| match asked.text.contains("Compact the session now.") {
            true => Reply::Text(
                "<analysis>skip this</analysis><summary>The port is 9091.</summary>".into(),
            ),
            false => Reply::Sensible,
        },
    );
    let keys = "strategy = \"anchored-iterative\"\nplacement = \"last\"\nkeep_head = 1\nkeep_tail = \"2 messages\"\nextract = \"summary\"";
    let project = project(&server, keys);
    let fixture = project.read("fixtures/harbor.json").replace(
        "You are a helpful assistant with access to tools.",
        "You look after the harbor service.",
    );
    project.write("fixtures/harbor.json", &fixture);
    project.expect(0, RUN);
    let requests = compressions(&server);
    assert_eq!(requests.len(), 2);
    let roles = |request: &Value| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect()
    };
    let own = "You look after the harbor service.";
    let first = &requests[0]["messages"][0];
    assert!(
        roles(&requests[0])[0] == "system" && first.to_string().contains(own),
        "the session's own system message comes first: {first}"
    );
    let told = server
        .asked()
        .iter()
        .filter(|asked| asked.text.contains(own))
        .count();
    assert!(told > requests.len(), "answerers get it, too");
    assert!(
        text_of(&requests[0]).contains("Then take another listen port"),
        "the tail stays in the request"
    );
    let second = text_of(&requests[1]);
    assert!(
        second.contains("Then take another listen port"),
        "what the tail kept is summarised at the next point"
    );
    assert!(
        second.contains("The port is 9091.") && !second.contains("skip this"),
        "{second}"
    );
    let shown = project
        .expect(0, "show harbor --label a --method own --probe port --json")
        .stdout;
    let context: Value = serde_json::from_str(&shown).unwrap();
    let context = context.to_string();
    let place = |text: &str| {
        context
            .find(text)
            .unwrap_or_else(|| panic!("no {text} in {context}"))
    };
    assert!(place("The harbor service does not start") < place("The port is 9091."));
    assert!(place("The port is 9091.") < place("Good. What is left?"));
    assert!(!context.contains("skip this"));
    let summary = project.result("a", "summary.json");
    let own = &summary["methods"]["own"];
    let [whole, alone] =
        ["fact_survival", "summary_survival"].map(|name| own[name].as_f64().unwrap());
    assert!(
        0.0 < alone && alone < whole,
        "{alone} of the facts in the summary, {whole} with what is kept"
    );
    project
        .expect(0, "report a --all")
        .stdout_says(&["own (kept first 1, last 2)", "in summary"]);
}

#[test]
fn a_history_that_is_kept_whole_sends_no_request() {
    let server = Server::start();
    let project = project(
        &server,
        "strategy = \"anchored-iterative\"\nplacement = \"last\"\nkeep_tail = 100000",
    );
    project.expect(0, RUN);
    assert!(compressions(&server).is_empty());
    let contexts = contexts(&project);
    assert_eq!(contexts.len(), 2);
    for context in contexts {
        assert_eq!(
            (&context["compressed"], &context["tokens"]),
            (&false.into(), &context["replaced_tokens"])
        );
    }
    let summary = project.result("a", "summary.json");
    let own = &summary["methods"]["own"];
    assert_eq!(
        (&own["overall"]["median"], &own["cells"]["judged"]),
        (&Value::Null, &0.into()),
        "it is not ranked"
    );
    assert_eq!(
        (
            &own["not_compressed"]["contexts"],
            &own["not_compressed"]["of"]
        ),
        (&2.into(), &2.into())
    );
    project
        .expect(0, "report a")
        .stdout_says(&["not compressed, and in no figure: own 2 of 2 contexts"]);
    assert!(
        project
            .read("results/a/report.md")
            .contains("not compressed, and in no figure")
    );
}

#[test]
fn keys_of_a_shape_are_for_strategies_with_a_prompt() {
    let server = Server::start();
    let project = project(&server, "strategy = \"opaque\"\nkeep_tail = 5");
    project
        .expect(2, "check --all")
        .says(&["does not take `keep_tail`"]);
}

#[test]
fn a_prompt_without_the_topic_is_warned_of_and_line_ends_make_nothing_stale() {
    let server = Server::start();
    let project = project(
        &server,
        "strategy = \"anchored-iterative\"\nplacement = \"last\"",
    );
    project.expect(0, RUN);
    let requests = compressions(&server).len();
    project.write("prompts/compact.md", &PROMPT.replace('\n', "\r\n"));
    project.expect(0, &format!("{RUN} --replace"));
    assert_eq!(compressions(&server).len(), requests);
    project.write("prompts/compact.md", "Compact the session now.\n");
    project
        .expect(0, &format!("{RUN} --replace --focus-topic ports"))
        .says(&["does not insert the --focus-topic"]);
}
