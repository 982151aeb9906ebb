//! Tokens per task through the program: the formula, the pointers to a lost fact, and the break-even with the whole
//! transcript.

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

fn project(server: &Server, prices: &str) -> Project {
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
    project.write(
        "pipeline.toml",
        &format!("{pipeline}\n[[answer]]{stages}\n{prices}"),
    );
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
    let project = project(
        &server,
        "[prices.\"mock/small-1\"]\ninput = 2.0\ncached_input = 0.2\noutput = 8.0\n",
    );
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

    let summary = project.result("a", "summary.json");
    let method = |name: &str| &summary["methods"][name];
    for name in ["full", "nothing", "kept", "guided", "blind"] {
        let (c, r) = (
            number(&method(name)["task_context_tokens"]),
            number(&method(name)["refetch_tokens"]),
        );
        assert_eq!(number(&method(name)["cached_price_ratio"]), 0.1);
        for k in [1.0, 3.0, 10.0, 30.0] {
            let said = number(&method(name)["tokens_per_task"][format!("{k}")]);
            assert!(
                (said - (c * (1.0 + 0.1 * (k - 1.0)) + k * r)).abs() < 1e-6,
                "{name} {k}: {said}"
            );
        }
    }
    for k in ["1", "3", "10", "30"] {
        let tokens = |name: &str| number(&method(name)["tokens_per_task"][k]);
        assert!(
            tokens("nothing") >= tokens("full"),
            "an empty context does not know its way"
        );
    }
    assert!(
        method("kept")["break_even_k"].is_null(),
        "it is never dearer"
    );
    assert!(
        ended.stdout.contains("9 times at 0.10 of its tokens"),
        "{}",
        ended.stdout
    );
    assert!(
        project
            .read("results/a/report.md")
            .contains("9 times at 0.10 of its tokens")
    );
    let shown = project
        .expect(0, "show harbor --label a --method blind --probe port")
        .stdout;
    assert!(
        shown.contains("nothing in the context says where they were"),
        "{shown}"
    );
}

#[test]
fn without_a_price_the_context_costs_the_same_with_every_request() {
    let server = Server::start();
    let project = project(&server, "");
    project.expect(0, "run --all --label a --runs 1");
    let summary = project.result("a", "summary.json");
    let full = &summary["methods"]["full"];
    assert_eq!(full["cached_price_ratio"], 1.0);
    assert!(
        (number(&full["tokens_per_task"]["10"]) - 10.0 * number(&full["task_context_tokens"]))
            .abs()
            < 1e-6
    );
    // `none` costs as much as `full`, never less.
    let nothing = &summary["methods"]["nothing"];
    assert!(
        number(&nothing["tokens_per_task"]["10"]) >= number(&full["tokens_per_task"]["10"]) - 1e-6
    );
}
