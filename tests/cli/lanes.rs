//! Lanes: how requests are sent changes their price and no key.

use super::project::{PRICES, Project};
use super::server::{Asked, Server};

fn usd(project: &Project, label: &str) -> f64 {
    project.result(label, "manifest.json")["usd"]
        .as_f64()
        .expect("a known cost")
}

#[test]
fn flex_costs_half_and_shares_its_outputs_with_live() {
    let server = Server::start();
    let mut runs = ["live", "flex"].map(|lane| {
        let project = Project::new(&server);
        project.write("pipeline.toml", &(project.read("pipeline.toml") + PRICES));
        server.forget();
        project.expect(0, &format!("run --label a --runs 1 --lane {lane}"));
        (project, server.asked())
    });
    let tiers = |asked: &[Asked]| {
        asked
            .iter()
            .filter(|asked| asked.json["service_tier"] == "flex")
            .count()
    };
    let [(live, live_asked), (flex, flex_asked)] = &mut runs;
    assert_eq!(
        (tiers(live_asked), tiers(flex_asked)),
        (0, flex_asked.len())
    );
    assert!(
        live.unpriced_rows("a") == flex.unpriced_rows("a"),
        "a lane changes no score"
    );
    let ratio = usd(flex, "a") / usd(live, "a");
    assert!(
        (0.5..0.505).contains(&ratio),
        "half the price for a few more bytes of input: {ratio}"
    );
    server.forget();
    flex.expect(0, "run --label a --runs 1");
    assert_eq!(server.count(), 0, "a key does not depend on the lane");
    let listed = flex.expect(0, "cache ls --json --stage judge");
    assert!(
        listed.stdout.contains("\"lane\":\"flex\"") || listed.stdout.contains("\"lane\": \"flex\"")
    );
    let plan = |lane: &str| {
        let ended = flex.expect(0, &format!("plan --json --refresh judge --lane {lane}"));
        let plan: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
        plan["estimate"]["usd"].as_f64().expect("a price")
    };
    assert!(plan("flex") < plan("live") * 0.7);
}

#[test]
fn a_lane_that_a_provider_lacks_is_an_error_at_its_place() {
    let project = Project::offline();
    project.edit("pipeline.toml", "[[judge]]", "[[judge]]\nlane = \"fast\"");
    project
        .expect(2, "check")
        .says(&["unknown lane `fast`", "pipeline.toml"]);
    project.edit("pipeline.toml", "lane = \"fast\"", "lane = \"flex\"");
    project.edit("pipeline.toml", "openai-chat", "anthropic");
    project
        .expect(2, "check")
        .says(&["the provider `mock` has no lane \"flex\""]);
    project
        .expect(2, "plan --lane slow")
        .says(&["live, flex, batch"]);
}
