//! Budgets are never exceeded with many requests in flight; the run stops cleanly, and the next one goes on.

use super::brain::Wanted;
use super::project::{PRICES, Project};
use super::server::{Asked, Reply, Server, with_finish};

/// Requests of the whole matrix: compressions, answers, grades, and the self-test of the judge.
fn whole(project: &Project, server: &Server) -> usize {
    project.expect(0, "run --label whole");
    let count = server.count();
    server.forget();
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    count
}

#[test]
fn max_requests_is_never_exceeded_and_the_next_run_goes_on() {
    let server = Server::start();
    let project = Project::new(&server);
    let whole = whole(&project, &server);
    for budget in [7, 50] {
        server.forget();
        let ended = project.expect(6, &format!("run --label a --max-requests {budget}"));
        ended.says(&["--max-requests"]);
        assert_eq!(server.count(), budget);
    }
    server.forget();
    project.expect(0, "run --label a");
    assert_eq!(
        server.count(),
        whole - 57,
        "what was paid for is not asked again"
    );
    assert_eq!(project.rows("a"), project.rows("whole"));
}

#[test]
fn retries_count_as_requests() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| super::server::Reply::Raw(500, "<html>".into()));
    project.expect(6, "run --label a --max-requests 20");
    assert_eq!(server.count(), 20);
}

fn spent(server: &Server) -> f64 {
    let asked = server.asked();
    let cost = |asked: &super::server::Asked| {
        let output = super::brain::reply(&asked.json).len() / 4 + 1;
        (asked.body.len() / 4) as f64 * 100e-6 + output as f64 * 200e-6
    };
    asked.iter().map(cost).sum()
}

#[test]
fn max_cost_is_never_exceeded_and_the_next_run_goes_on() {
    let server = Server::start();
    let project = Project::new(&server);
    let pipeline = project
        .read("pipeline.toml")
        .replace(
            "model = \"mock/judge-1\"",
            "model = \"mock/judge-1\"\nmax_output_tokens = 1000",
        )
        .replace(
            "model    = \"mock/small-1\"",
            "model    = \"mock/small-1\"\nmax_output_tokens = 1000",
        )
        .replace(
            "model  = \"mock/small-1\"",
            "model  = \"mock/small-1\"\nmax_output_tokens = 1000",
        );
    project.write("pipeline.toml", &format!("{pipeline}\n{PRICES}"));
    let ended = project.expect(6, "run --label a --max-cost 3");
    ended.says(&["--max-cost"]);
    let first = spent(&server);
    assert!(first <= 3.0, "{first}");
    assert!(first > 1.5, "{first}: most of the money is used");
    let usd = project.result("a", "manifest.json")["usd"]
        .as_f64()
        .unwrap();
    assert!((usd - first).abs() < 0.01, "reported {usd}, spent {first}");
    project.expect(0, "run --label a --max-cost 500");
    assert!(
        server
            .asked()
            .iter()
            .enumerate()
            .all(|(n, asked)| n == 0 || asked.earlier <= 1),
        "one for each repetition"
    );
    assert_eq!(project.rows("a").len(), 5 * 7 * 2);
}

#[test]
fn unused_replies_are_paid_for_and_reported() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write(
        "pipeline.toml",
        &format!("{}\n{PRICES}", project.read("pipeline.toml")),
    );
    let is_bad = |asked: &Asked| {
        asked.wanted == Wanted::Answer && asked.text.contains("Who owns the machine?")
    };
    server.script(move |asked| match is_bad(asked) {
        true => Reply::Raw(200, with_finish(asked, "", "length")),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a --runs 1");
    let manifest = project.result("a", "manifest.json");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(
        (number(&manifest["usd"]) - spent(&server)).abs() < 0.01,
        "{} of {}",
        manifest["usd"],
        spent(&server)
    );
    let lost = server.asked().iter().filter(|asked| is_bad(asked)).count();
    assert!(lost > 0);
    assert_eq!(manifest["unused"]["replies"], lost);
    assert!(
        number(&manifest["unused"]["usd"]) > 0.0
            && number(&manifest["unused"]["usage"]["output"]) > 0.0
    );
    let all: usize = server
        .asked()
        .iter()
        .map(|asked| asked.body.len() / 4)
        .sum();
    assert_eq!(manifest["usage"]["input"], all, "every reply is counted");
    assert!(
        ended
            .stdout
            .contains(&format!("{lost} replies gave no result and cost $")),
        "{}",
        ended.stdout
    );
}

#[test]
fn commands_beside_run_keep_to_a_budget_too() {
    let server = Server::start();
    let project = Project::new(&server);
    let cut_short = project.expect(6, "judge selftest --max-requests 5");
    cut_short.says(&["--max-requests 5 were sent"]);
    assert!(
        cut_short.stdout.contains("untested:") && !cut_short.stdout.contains("ranked"),
        "{}",
        cut_short.stdout
    );
    assert_eq!(server.count(), 5);
    project.expect(0, "judge selftest");
    assert_eq!(
        server.count(),
        super::matrix::SELFTEST,
        "what was paid for is not asked again"
    );
    server.forget();
    let generator = "[probes]\nmodel = \"mock/small-1\"\n";
    project.write(
        "pipeline.toml",
        &format!("{}\n{generator}", project.read("pipeline.toml")),
    );
    let generated = project.expect(6, "probes generate --force --max-requests 1");
    generated.says(&["--max-requests 1 were sent"]);
    generated.stdout_says(&[
        "no bank was written",
        "probes/harbor.probes.json stays as it was",
    ]);
    assert_eq!(server.count(), 1);
    project
        .expect(2, "judge selftest --max-cost 1")
        .says(&["mock/judge-1", "[prices."]);
}

#[test]
fn max_cost_with_an_unknown_price_is_refused_before_anything_is_called() {
    let server = Server::start();
    let project = Project::new(&server);
    project
        .expect(2, "run --label a --max-cost 3")
        .says(&["mock/small-1", "[prices."]);
    assert_eq!(server.count(), 0);
}

#[test]
fn a_limit_below_one_reply_is_named_before_the_run_and_stops_none_that_is_estimated_below_it() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write(
        "pipeline.toml",
        &format!(
            "{}\n{}",
            project.read("pipeline.toml"),
            PRICES.replace("input = 100.0", "input = 1.0")
        ),
    );
    // 32,768 tokens at 200 dollars a million.
    let run = "run --runs 1 --methods full,nothing --allow-weak-judge --label a";
    let ended = project.expect(2, &format!("{run} --max-cost 0.5"));
    ended.says(&[
        "--max-cost 0.5 is less than one reply of",
        "$6.55 for 32768 tokens",
        "max_output_tokens where",
        "it is missing there",
    ]);
    assert_eq!(server.count(), 0, "nothing was sent");
    assert!(!project.exists("results/a"), "and nothing written");
    let words = ended.stderr.split_whitespace().collect::<Vec<_>>();
    let at = words
        .windows(3)
        .position(|three| three[0] == "--max-cost" && three[2].starts_with("works"))
        .unwrap();
    let smallest: f64 = words[at + 1].parse().unwrap();
    assert!(
        smallest > 0.5 && smallest < 6.55,
        "{smallest}: the estimate of the run"
    );
    project.expect(0, &format!("{run} --max-cost {smallest}"));
    let usd = project.result("a", "manifest.json")["usd"]
        .as_f64()
        .unwrap();
    assert!(usd > 0.0 && usd <= smallest, "{usd} of {smallest}");
}
