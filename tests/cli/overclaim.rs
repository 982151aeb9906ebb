//! What answers do if their context lost every fact, in rows, summaries and comparisons.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::Wanted;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// Three sessions like that of the project, each with another port.
fn sessions(server: &Server) -> Project {
    let project = Project::new(server);
    let (fixture, bank) = (
        project.read("fixtures/harbor.json"),
        project.read("probes/harbor.probes.json"),
    );
    for path in ["fixtures/harbor.json", "probes/harbor.probes.json"] {
        std::fs::remove_file(project.path(path)).expect("a file");
    }
    for number in 1..=3 {
        let varied = |text: &str| {
            let text = text
                .replace("\": \"harbor\"", &format!("\": \"h{number}\""))
                .replace("9091", &format!("909{number}"));
            text.replace("does harbor run", &format!("does harbor h{number} run"))
        };
        project.write(&format!("fixtures/h{number}.json"), &varied(&fixture));
        project.write(&format!("probes/h{number}.probes.json"), &varied(&bank));
    }
    project
}

/// Answers to the questions asked of an empty context: one claims another value (in the first two sessions), one is
/// vague, one happens to be right, the others admit. No session has the claimed value.
fn scripted(asked: &Asked, claim: &str) -> Reply {
    if asked.wanted != Wanted::Answer || asked.text.contains("<context>") {
        return Reply::Sensible;
    }
    let says = |question: &str| asked.text.contains(question);
    let answer = if says("port does harbor h1") || says("port does harbor h2") {
        claim
    } else if says("What is left") {
        "The usual things are left, as agreed with the team."
    } else if says("retry limit raised") {
        "The upstream needs 6 tries when it wakes."
    } else if says("Who owns") {
        "The platform team owns it."
    } else {
        "The summary does not say."
    };
    Reply::Text(answer.to_owned())
}

fn run() -> (Server, Project) {
    let server = Server::start();
    server.script(|asked| scripted(asked, "It runs on port 9999 now."));
    let project = sessions(&server);
    let ended = project.expect(
        0,
        "run --all --label a --runs 1 --methods full,anchored,nothing",
    );
    let table = flat(&ended.stdout);
    assert!(
        table.contains("overclaims") && table.contains("0–35%") && table.contains("of 18"),
        "{table}"
    );
    (server, project)
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn near(value: &Value, wanted: f64) {
    let found = value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"));
    assert!((found - wanted).abs() < 1e-5, "{found} is not {wanted}");
}

#[test]
fn answers_without_facts_are_counted_by_what_they_do() {
    let (_server, project) = run();
    let of = |probe: &str, fixture: &str| -> Vec<Value> {
        let rows = project.rows("a").into_iter();
        let rows = rows.filter(|row| {
            row["probe"] == probe && row["fixture"] == fixture && row["method"] == "nothing"
        });
        rows.map(|row| row["answer_when_lost"].clone()).collect()
    };
    assert_eq!(of("port", "h1"), [json!("other_value")]);
    assert_eq!(of("port", "h3"), [json!("admission")]);
    assert_eq!(of("left", "h1"), [json!("vague")]);
    assert_eq!(of("retries", "h1"), [json!("right")]);
    assert_eq!(
        of("owner", "h1"),
        [Value::Null],
        "what nobody said was not lost"
    );
    assert!(
        project
            .rows("a")
            .iter()
            .filter(|row| row["method"] == "full")
            .all(|row| row["answer_when_lost"].is_null())
    );

    let summary = project.result("a", "summary.json");
    let overclaim = &summary["methods"]["nothing"]["overclaim"];
    // By session 1, 1 and 0 of 6: s = 0.096225, t(0.975, 2) = 4.302653, clipped at 0.
    near(&overclaim["other_value"]["share"], 1.0 / 9.0);
    near(&overclaim["other_value"]["ci95"][0], 0.0);
    near(&overclaim["other_value"]["ci95"][1], 0.350147);
    let counts = |kind: &str| {
        [&overclaim[kind]["count"], &overclaim[kind]["of"]].map(|n| n.as_u64().unwrap_or(99))
    };
    assert_eq!(counts("other_value"), [2, 18]);
    assert_eq!(counts("admission"), [10, 18]);
    assert_eq!(counts("vague"), [3, 18]);
    assert_eq!(counts("right"), [3, 18]);
    assert_eq!(
        summary["methods"]["full"]["overclaim"]["other_value"]["of"],
        0
    );
    let report = project.read("results/a/report.md");
    for line in [
        "| nothing | 11.1% 0–35% of 18 | 55.6% 32–79% of 18 | 16.7% of 18 | 16.7% of 18 |",
        "| 100.0% of 3 |",
    ] {
        assert!(report.contains(line), "{line} is missing in {report}");
    }
    let fabrication = &summary["methods"]["nothing"]["fabrication"];
    assert_eq!(
        (&fabrication["count"], &fabrication["of"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(
        fabrication["ci95"],
        Value::Null,
        "all sessions alike: no interval"
    );
}

#[test]
fn survival_is_given_by_heading() {
    let (_server, project) = run();
    let summary = project.result("a", "summary.json");
    let full = &summary["methods"]["full"];
    assert_eq!(
        full["survival_by_heading"],
        json!({}),
        "no prompt, no headings"
    );
    let anchored = &summary["methods"]["anchored"]["survival_by_heading"];
    assert!(
        anchored.get("Next steps").is_some() && anchored.get("Decisions and why").is_some(),
        "{anchored}"
    );
}

#[test]
fn a_comparison_says_how_overclaims_differ() {
    let (server, project) = run();
    server.script(|asked| scripted(asked, "I do not know the port."));
    let ended = project
        .expect(0, "run --all --label b --runs 1 --methods full,anchored,nothing --refresh answer --compare-to a");
    let sentence = "overclaims (another value where the context lost every expected fact): 11.1% [0%, 35%] of 18 → 0.0% \
                    of 18, difference −11.1 [−35.0, +12.8] percentage points";
    assert!(flat(&ended.stdout).contains(sentence), "{}", ended.stdout);
    let compared = project.result("b", "summary.json")["comparison"]["methods"]["nothing"].clone();
    near(&compared["overclaim"]["before"]["share"], 1.0 / 9.0);
    near(&compared["overclaim"]["after"]["share"], 0.0);
    near(&compared["overclaim"]["difference"], -1.0 / 9.0);
    near(&compared["fabrication"]["difference"], 0.0);
}
