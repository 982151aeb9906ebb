//! Requests that begin alike: the first goes ahead, the others are marked for the provider's prompt cache.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::brain::{self, Wanted};
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// All text of a request in Anthropic's dialect, and the part of it up to the last breakpoint.
fn text_and_prefix(request: &Value) -> (String, Option<String>) {
    let empty = Vec::new();
    let system = request["system"].as_array().unwrap_or(&empty);
    let said = request["messages"].as_array().into_iter().flatten();
    let blocks = system
        .iter()
        .chain(said.flat_map(|message| message["content"].as_array().unwrap_or(&empty)));
    let (mut text, mut prefix) = (Vec::new(), None);
    for block in blocks {
        text.push(block["text"].as_str().unwrap_or_default());
        if block.get("cache_control").is_some() {
            prefix = Some(text.join("\n\n"));
        }
    }
    (text.join("\n\n"), prefix)
}

/// Serves a prefix that was written before from its cache, as the vendor does.
fn anthropic() -> impl Fn(&Asked) -> Reply {
    let written: Mutex<HashSet<String>> = Mutex::default();
    move |asked| {
        let (text, prefix) = text_and_prefix(&asked.json);
        let reply = brain::reply(&json!({"messages": [{"role": "user", "content": text}]}));
        let is_new = prefix
            .as_ref()
            .is_none_or(|prefix| written.lock().unwrap().insert(prefix.clone()));
        let tokens = prefix.map_or(0, |prefix| prefix.len() / 4);
        let (read, written) = if is_new { (0, tokens) } else { (tokens, 0) };
        let usage = json!({"input_tokens": text.len() / 4 - tokens, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": 9});
        let body = json!({"id": "m", "type": "message", "role": "assistant", "model": "small-1",
            "content": [{"type": "text", "text": reply}], "stop_reason": "end_turn", "usage": usage});
        Reply::After(
            Duration::from_millis(40),
            Box::new(Reply::Raw(200, body.to_string())),
        )
    }
}

fn project(server: &Server) -> Project {
    let project = Project::new(server);
    let pipeline = project.read("pipeline.toml");
    let (head, _) = pipeline.split_once("[[compress]]").unwrap();
    let head = head
        .replace("openai-chat", "anthropic")
        .replace("runs = 2", "runs = { compress = 1, judge = 3 }");
    let stages = "requests_per_minute = 60000\n\n[[compress]]\nname = \"full\"\nstrategy = \"full\"\n\n\
                  [[answer]]\nname = \"agent\"\nmodel = \"mock/small-1\"\nprompt = \"prompts/answer.md\"\n\n\
                  [[judge]]\nname = \"grader\"\nmodel = \"mock/judge-1\"\n\n\
                  [prices.\"mock/small-1\"]\ninput = 1.0\ncached_input = 0.1\noutput = 5.0\n\n\
                  [prices.\"mock/judge-1\"]\ninput = 1.0\ncached_input = 0.1\noutput = 5.0\n";
    project.write("pipeline.toml", &format!("{head}{stages}"));
    let long = format!(
        "Find out why. {}",
        "There is much to read here. ".repeat(400)
    );
    project.edit("fixtures/harbor.json", "Find out why.", &long);
    project
}

#[test]
fn the_first_judgement_of_a_context_goes_ahead_and_the_others_share_its_beginning() {
    let server = Server::start();
    server.script(anthropic());
    let project = project(&server);
    let ended = project.expect(0, "run --label a --all");

    let mut groups: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
    for asked in server.asked() {
        let (text, prefix) = text_and_prefix(&asked.json);
        if brain::wanted(&text) == Wanted::Grades && text.contains("There is much to read here.") {
            let prefix = prefix.filter(|prefix| prefix.contains("\"compacted_context\":"));
            groups
                .entry(prefix.expect("a breakpoint after the context"))
                .or_default()
                .push(asked);
        }
    }
    assert!(
        groups.values().all(|group| group.len() >= 3),
        "three judgements of each answer share a context"
    );
    for group in groups.values() {
        let first = group[0].answered.unwrap();
        assert!(group[1..].iter().all(|asked| asked.came >= first));
    }

    let manifest: Value = serde_json::from_str(&project.read("results/a/manifest.json")).unwrap();
    let tokens = |kind: &str| manifest["usage"][kind].as_u64().unwrap();
    let (served, input) = (tokens("cached_input"), tokens("input"));
    assert!(0 < served && served <= input, "{served} of {input}");
    assert!(
        ended.stdout.contains("came from providers' prompt caches"),
        "{}",
        ended.stdout
    );
}
