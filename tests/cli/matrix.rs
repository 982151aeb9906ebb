//! A full matrix: what is sent, what is not, and what is on disk afterwards.

use std::collections::BTreeSet;

use serde_json::Value;

use super::brain::Wanted;
use super::project::Project;
use super::server::Server;

/// Cases of one judge's self-test.
pub const SELFTEST: usize = compeval::judge::SELFTEST_CASES;

fn distinct(rows: &[Value], stage: &str, methods: &[&str]) -> usize {
    let of = rows
        .iter()
        .filter(|row| methods.is_empty() || methods.contains(&row["method"].as_str().unwrap()));
    of.map(|row| row["keys"][stage].as_str().unwrap().to_owned())
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn a_run_sends_one_request_per_distinct_action_and_a_second_run_none() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    let rows = project.rows("a");
    assert_eq!(
        rows.len(),
        5 * 7 * 2,
        "five methods, seven probes, two runs"
    );
    let sent = server.counts();
    assert_eq!(
        sent[&Wanted::Compression],
        distinct(&rows, "compress", &["anchored", "rewritten"])
    );
    assert_eq!(sent[&Wanted::Answer], distinct(&rows, "answer", &[]));
    assert_eq!(
        sent[&Wanted::Grades],
        distinct(&rows, "judge", &[]) + SELFTEST
    );
    assert_eq!(
        sent[&Wanted::Compression],
        2 * 2 * 2,
        "two methods, two points, two runs"
    );
    assert_eq!(
        sent[&Wanted::Answer],
        4 * 7 * 2,
        "the twin shares every action"
    );
    let manifest = project.result("a", "manifest.json");
    assert_eq!(manifest["requests_sent"], server.count());
    assert_eq!(manifest["failures"], Value::Array(vec![]));

    server.forget();
    project.expect(0, "run --label a");
    assert_eq!(server.count(), 0, "a second run sends nothing");
    assert_eq!(project.rows("a"), rows);
}

#[test]
fn offline_reproduces_a_run_byte_for_byte() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    drop(server);
    let reproducible = |path: &std::path::Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name != "manifest.json" && name != "report.html")
            .then(|| (name, std::fs::read(path).unwrap()))
    };
    let before: Vec<_> = project
        .files("results/a")
        .iter()
        .filter_map(|path| reproducible(path))
        .collect();
    std::fs::remove_dir_all(project.path("results/a")).unwrap();
    project.expect(0, "run --label a --offline");
    let after: Vec<_> = project
        .files("results/a")
        .iter()
        .filter_map(|path| reproducible(path))
        .collect();
    let names: Vec<&String> = before.iter().map(|(name, _)| name).collect();
    let written = [
        "cells.jsonl",
        "contexts.jsonl",
        "keys.txt",
        "report.md",
        "summary.json",
    ];
    assert_eq!(names, written);
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        assert!(
            before == after,
            "{name}:\n{}\nand now:\n{}",
            String::from_utf8_lossy(before),
            String::from_utf8_lossy(after)
        );
    }
}

#[test]
fn offline_with_an_empty_cache_is_pending_and_calls_nobody() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(7, "run --label a --offline");
    assert_eq!(server.count(), 0);
}

#[test]
fn grades_follow_what_the_methods_kept() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let overall = |method: &str| {
        let rows = project.rows("a");
        let grades: Vec<f64> = rows
            .iter()
            .filter(|r| r["method"] == method)
            .map(|r| r["overall"].as_f64().unwrap())
            .collect();
        grades.iter().sum::<f64>() / grades.len() as f64
    };
    assert!(overall("full") > overall("nothing") + 2.0);
    assert!(overall("anchored") > overall("nothing") + 2.0);
    assert!((overall("full") - overall("twin")).abs() < 1e-9);
}
