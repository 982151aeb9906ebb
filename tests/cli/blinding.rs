//! Blinding, proven on the bytes that a judge's provider sees.

use super::brain::Wanted;
use super::project::Project;
use super::server::Server;

#[test]
fn no_judge_request_names_a_method_a_fixture_a_model_or_a_label() {
    let server = Server::start();
    let project = Project::new(&server);
    for (from, to) in [
        ("\"full\"\nstrategy", "\"qleak-ceiling\"\nstrategy"),
        ("\"twin\"", "\"qleak-twin\""),
        ("\"anchored\"", "\"qleak-notes\""),
        ("\"rewritten\"", "\"qleak-anew\""),
        ("\"nothing\"", "\"qleak-floor\""),
        ("\"agent\"", "\"qleak-agent\""),
        ("\"grader\"", "\"qleak-grader\""),
        ("mock/small-1", "mock/qleak-small"),
        ("mock/small-1", "mock/qleak-small"),
        ("mock/small-1", "mock/qleak-small"),
    ] {
        project.edit("pipeline.toml", from, to);
    }
    project.edit(
        "fixtures/harbor.json",
        "\"name\": \"harbor\"",
        "\"name\": \"qleak-fixture\"",
    );
    project.edit("fixtures/harbor.json", "example/model", "qleak/model");
    project.edit(
        "fixtures/harbor.json",
        "A small session",
        "qleak: a small session",
    );
    std::fs::rename(
        project.path("fixtures/harbor.json"),
        project.path("fixtures/qleak-fixture.json"),
    )
    .unwrap();
    project.edit(
        "probes/harbor.probes.json",
        "\"fixture\": \"harbor\"",
        "\"fixture\": \"qleak-fixture\"",
    );
    project.edit(
        "probes/harbor.probes.json",
        "\"id\": \"port\"",
        "\"id\": \"qleak-probe\", \"tags\": [\"qleak-tag\"]",
    );
    std::fs::rename(
        project.path("probes/harbor.probes.json"),
        project.path("probes/qleak-fixture.probes.json"),
    )
    .unwrap();
    project.expect(0, "run --label qleak-label");
    assert!(
        project
            .rows("qleak-label")
            .iter()
            .all(|row| row["method"].as_str().unwrap().starts_with("qleak-"))
    );

    let asked = server.asked();
    assert!(
        asked
            .iter()
            .any(|asked| String::from_utf8_lossy(&asked.body).contains("qleak-small"))
    );
    let judged: Vec<_> = asked
        .iter()
        .filter(|asked| asked.wanted == Wanted::Grades)
        .collect();
    assert!(judged.len() > 31);
    let strategies = ["anchored", "regenerative", "truncate", "no compression"];
    for asked in judged {
        let seen = format!(
            "{} {:?} {}",
            asked.path,
            asked.headers,
            String::from_utf8_lossy(&asked.body)
        )
        .to_lowercase();
        assert!(!seen.contains("qleak"), "{seen}");
        assert!(strategies.iter().all(|name| !seen.contains(name)), "{seen}");
    }
}

#[test]
fn judge_context_false_keeps_the_context_from_the_judge() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "runs = 2",
        "runs = 1\njudge_context = false",
    );
    project.expect(0, "run --label a");
    let asked = server.asked();
    let mut judged = asked.iter().filter(|asked| asked.wanted == Wanted::Grades);
    assert!(judged.all(|asked| !asked.text.contains("\"compacted_context\":")));
}
