//! How a run ends early, and what it leaves behind and says then.

use serde_json::{Value, json};

use super::brain::Wanted;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// A judge that finds everything equally good.
fn indifferent(asked: &Asked) -> Reply {
    if asked.wanted != Wanted::Grades {
        return Reply::Sensible;
    }
    let mut graded: Value =
        serde_json::from_str(&super::brain::reply(&asked.json)).expect("grades");
    for result in graded["criterionResults"].as_array_mut().expect("a list") {
        result["score"] = json!(3);
    }
    Reply::Text(graded.to_string())
}

#[test]
fn a_weak_judge_leaves_the_older_results_and_no_older_report_beside_its_own() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let (rows, report) = (project.rows("a"), project.read("results/a/report.md"));
    // Another judge fails its self-test, so that nothing is graded.
    project.edit(
        "pipeline.toml",
        "model = \"mock/judge-1\"",
        "model = \"mock/judge-2\"",
    );
    server.script(indifferent);
    let ended = project.expect(1, "run --label a --runs 1 --replace");
    assert!(
        project.rows("a") == rows && project.read("results/a/report.md") == report,
        "complete results stay"
    );
    assert_eq!(project.result("a", "manifest.json")["outcome"], "complete");
    let beside = ".incomplete/a";
    assert!(project.rows(beside).is_empty());
    let summary = project.result(beside, "summary.json");
    for (_, method) in summary["methods"].as_object().unwrap() {
        assert_eq!(method["cells"]["judged"], 0, "{method}");
    }
    let renewed = project.read("results/.incomplete/a/report.md");
    // What contexts keep and cost needs no judge.
    let kept = |method: &str| summary["methods"][method]["compression"]["fact_survival"].as_f64();
    assert!(
        kept("nothing") == Some(0.0) && kept("full") > Some(0.5),
        "{summary}"
    );
    assert!(
        renewed.contains("| 100.0% | 0.0% |") && renewed.contains("<summary>Compressions<"),
        "{renewed}"
    );
    assert!(
        renewed.contains("| contexts | tokens | facts kept | calls | cost | seconds |"),
        "{renewed}"
    );
    assert!(
        renewed != report && renewed.contains("it was not used further"),
        "{renewed}"
    );
    assert_eq!(
        project.result(beside, "manifest.json")["outcome"],
        "incomplete"
    );
    ended.says(&["judge failed its self-test: grader", "--allow-weak-judge"]);
    // Which replies came first decides what is named: accuracy, or two of the others.
    let failures: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("  grader: "))
        .collect();
    let are_flat = failures
        .iter()
        .all(|line| line.contains("medians of right and wrong answers 3.00 and 3.00"));
    let are_enough = failures.len() >= 2 || failures.iter().any(|line| line.contains("accuracy"));
    assert!(are_flat && are_enough, "{}", ended.stderr);
    for words in [
        "a · ",
        "from the cache",
        "report: ",
        "next: compeval judge selftest",
    ] {
        assert!(
            ended.stdout.contains(words),
            "`{words}` is missing in {}",
            ended.stdout
        );
    }
    // The answers that nobody graded were paid for, too.
    assert!(
        ended
            .stdout
            .contains("facts kept  retention  cost of contexts"),
        "{}",
        ended.stdout
    );
    // A run that is compared with another ends the same way.
    project.expect(0, "run --label base --runs 1 --allow-weak-judge");
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    project.expect(1, "run --label b --runs 1 --compare-to base");
}

#[test]
fn queued_requests_are_not_sent_to_a_provider_that_refuses_everything() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 2");
    server.script(|_| {
        Reply::Raw(
            401,
            json!({"error": {"message": "no such key", "type": "auth"}}).to_string(),
        )
    });
    let ended = project.expect(5, "run --label a --runs 1 -j 12");
    ended.says(&["no such key", "no more calls to"]);
    assert!(server.count() <= 3, "{} were sent", server.count());
}

#[test]
fn equal_causes_of_a_self_test_are_reported_once() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| {
        Reply::Raw(
            400,
            json!({"error": {"message": "not today", "type": "invalid"}}).to_string(),
        )
    });
    let ended = project.expect(5, "judge selftest");
    assert_eq!(
        ended.stderr.matches("not today").count(),
        1,
        "{}",
        ended.stderr
    );
    ended.says(&[&format!(
        "(and {} more): HTTP 400",
        super::matrix::SELFTEST - 1
    )]);
}

#[test]
fn only_weak_judges_are_reported_as_weak() {
    let server = Server::start();
    let project = Project::new(&server);
    let second = "[[judge]]\nname = \"other\"\nmodel = \"mock/judge-2\"\n";
    project.write(
        "pipeline.toml",
        &format!("{}\n{second}", project.read("pipeline.toml")),
    );
    server.script(|asked| match asked.json["model"] == "judge-2" {
        true => Reply::Raw(
            400,
            json!({"error": {"message": "not today", "type": "invalid"}}).to_string(),
        ),
        false => indifferent(asked),
    });
    let ended = project.expect(
        5,
        "run --label a --runs 1 --methods full --allow-weak-judge",
    );
    ended.says(&[
        "judge failed its self-test: grader (",
        "the self-test of judge other did not complete",
    ]);
    assert!(
        ended.stderr.contains("  grader: accuracy: medians") && !ended.stderr.contains("  other: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_unknown_cost_is_reported_without_a_sum() {
    let server = Server::start();
    let project = Project::new(&server);
    let ended = project.expect(0, "run --label a --runs 1 --methods full");
    assert!(
        ended
            .stdout
            .contains("a · cost unknown · 0% from the cache"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains('$'), "{}", ended.stdout);
    let unused = project.result("a", "manifest.json")["unused"].clone();
    assert_eq!(
        (&unused["replies"], &unused["usd"]),
        (&json!(0), &json!(0.0)),
        "nothing lost costs nothing"
    );
}

#[test]
fn weak_judges_are_reported_in_the_order_of_the_pipeline() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(indifferent);
    let run = "run --label a --runs 1 --methods full --allow-weak-judge";
    project.expect(0, run);
    let second = "[[judge]]\nname = \"second\"\nmodel = \"mock/judge-2\"\n\n[[judge]]";
    project.edit("pipeline.toml", "[[judge]]", second);
    // one self-test is cached and done at once, the other is not
    for _ in 0..2 {
        project.expect(0, &format!("{run} --replace"));
        let weak = &project.result("a", "manifest.json")["caveats"]["weak_judges"];
        assert_eq!(weak, &json!(["second", "grader"]));
    }
}
