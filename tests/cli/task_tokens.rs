//! Tokens per question through the program, and the pointers to a lost fact.

#![cfg(unix)]

use serde_json::Value;

use super::project::Project;
use super::server::Server;

/// The methods, each with the whole context that it makes. The fact of the probe, `9091`, was last mentioned together
/// with `etc/harbor.toml`.
const CONTEXTS: [(&str, &str); 3] = [
    ("kept", "The listen port is 9091 now."),
    ("guided", "The listen port was changed in etc/harbor.toml."),
    ("blind", "The listen port was changed."),
];

fn project(server: &Server) -> Project {
    let project = Project::new(server);
    let text = project.read("pipeline.toml");
    let mut pipeline = text.split("[[compress]]").next().unwrap().to_owned();
    for (name, strategy) in [("full", "full"), ("nothing", "none")] {
        pipeline.push_str(&format!(
            "\n[[compress]]\nname = \"{name}\"\nstrategy = \"{strategy}\"\n"
        ));
    }
    for (name, context) in CONTEXTS {
        let echo = format!("echo '{{\\\"summary\\\": \\\"{context}\\\"}}'");
        pipeline.push_str(&format!(
            "\n[[compress]]\nname = \"{name}\"\nstrategy = \"command\"\ncommand = [\"sh\", \"-c\", \"{echo}\"]\n"
        ));
    }
    let (_, stages) = text.split_once("[[answer]]").unwrap();
    project.write("pipeline.toml", &format!("{pipeline}\n[[answer]]{stages}"));
    project
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_lost_fact_costs_its_message_if_the_context_points_to_it_and_everything_otherwise() {
    let server = Server::start();
    let project = project(&server);
    let ended = project.expect(0, "run --all --label a --runs 1 --probes port");
    let rows = project.rows("a");
    let row = |method: &str| rows.iter().find(|row| row["method"] == method).unwrap();
    let fetched = |method: &str| {
        (
            number(&row(method)["fetch_tokens"]),
            row(method)["refetch_unguided"] == true,
        )
    };
    let replaced = number(&row("blind")["replaced_tokens"]);
    assert_eq!([fetched("full"), fetched("kept")], [(0.0, false); 2]);
    assert_eq!(
        [fetched("blind"), fetched("nothing")],
        [(replaced, true); 2]
    );
    let (guided, is_blind) = fetched("guided");
    assert!(
        guided > 300.0 && guided < 350.0 && !is_blind,
        "{guided}: one message and 300"
    );

    // What is not solved is asked again with the whole transcript, so a reader who never looks is not cheap.
    let summary = project.result("a", "summary.json");
    for name in ["full", "nothing", "kept", "guided", "blind"] {
        let row = row(name);
        let is_solved = row["facts"][0]["answered"] == true;
        let again = if is_solved { 0.0 } else { replaced };
        assert_eq!(
            number(&summary["methods"][name]["tokens_per_question"]),
            number(&row["context_tokens"]) + again,
            "{name}"
        );
        assert_eq!(is_solved, ["full", "kept"].contains(&name), "{name}");
    }
    assert!(ended.stdout.contains("tokens/question"), "{}", ended.stdout);
}
