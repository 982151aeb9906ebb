//! The ledger of tries: an improvement must hold among all designs that were compared with its baseline.

#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};

use super::gate::{compared, lose, sessions};
use super::project::{Ended, Project};

fn flat(ended: &Ended) -> String {
    format!("{} {}", ended.stdout, ended.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// A baseline that loses facts, more in one session than in the others.
fn project(methods: usize, fixtures: usize) -> Project {
    let project = sessions(methods, fixtures);
    for method in 1..=methods {
        lose(&project, &format!("m{method}"), fixtures, |session| {
            2 + session % 2
        });
    }
    project.expect(0, "run --all --label before");
    project
}

/// Another design of a method, which keeps `kept` facts in every session.
fn edit(project: &Project, method: &str, fixtures: usize, kept: usize) {
    lose(project, method, fixtures, |_| 4 - kept);
}

fn tries(project: &Project) -> Vec<Value> {
    let folder = project.path("results/before/tries");
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let read = |path: std::path::PathBuf| {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

/// The numbers of the entries of a method.
fn numbers(project: &Project, method: &str) -> Vec<u64> {
    let entries = tries(project)
        .into_iter()
        .filter(|entry| entry["method"] == method);
    let mut numbers: Vec<u64> = entries
        .map(|entry| entry["number"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

fn tried(project: &Project, label: &str, method: &str) -> Value {
    compared(project, label)["methods"][method]["overall"]["tried"].clone()
}

#[test]
fn each_design_of_a_method_is_one_try_however_often_it_is_run() {
    let project = project(2, 4);
    let run =
        |label: &str| project.expect(0, &format!("run --all --label {label} --compare-to before"));
    edit(&project, "m1", 4, 4);
    let ended = run("a");
    assert!(
        flat(&ended).contains("improved (1 try)"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        (numbers(&project, "m1"), numbers(&project, "m2")),
        (vec![1], vec![]),
        "m2 is the same"
    );
    // The same design run again, under another label, and in `compare`.
    run("a");
    run("b");
    project.expect(0, "compare a before");
    assert_eq!(
        (numbers(&project, "m1"), tried(&project, "b", "m1")),
        (vec![1], json!(1))
    );
    // An edit of another method is no try of this one.
    edit(&project, "m2", 4, 4);
    run("c");
    assert_eq!(
        (numbers(&project, "m1"), numbers(&project, "m2")),
        (vec![1], vec![1])
    );
    assert_eq!(
        (tried(&project, "c", "m1"), tried(&project, "c", "m2")),
        (json!(1), json!(1))
    );
    // A second design is a second try, and the p of an improvement counts it.
    edit(&project, "m1", 4, 3);
    let ended = run("d");
    assert_eq!(
        (numbers(&project, "m1"), tried(&project, "d", "m1")),
        (vec![1, 2], json!(2))
    );
    assert!(
        flat(&ended).contains("several designs were compared with before"),
        "{}",
        ended.stdout
    );
    // Later tries change nothing, and removing labels undoes no try.
    project.expect(0, "report a");
    assert_eq!(tried(&project, "a", "m1"), 1);
    project.expect(0, "labels rm a b c d");
    edit(&project, "m1", 4, 2);
    run("e");
    assert_eq!(tried(&project, "e", "m1"), 3);
}

#[test]
fn compare_counts_and_ci_reads_but_writes_only_if_told() {
    let mut project = project(1, 4);
    edit(&project, "m1", 4, 4);
    project.expect(0, "run --all --label a");
    assert_eq!(tries(&project).len(), 0, "compared with nothing");
    project.set("CI", "true");
    project.expect(0, "compare a before");
    project.expect(0, "run --all --label a --compare-to before");
    assert_eq!(
        (tries(&project).len(), tried(&project, "a", "m1")),
        (0, json!(1))
    );
    project.unset("CI");
    project.expect(0, "compare a before");
    assert_eq!(numbers(&project, "m1"), [1]);
    project.set("CI", "true");
    edit(&project, "m1", 4, 3);
    project.expect(0, "run --all --label b --compare-to before");
    assert_eq!(
        (numbers(&project, "m1"), tried(&project, "b", "m1")),
        (vec![1], json!(2)),
        "it reads"
    );
    project.expect(0, "run --all --label b --compare-to before --record");
    assert_eq!(numbers(&project, "m1"), [1, 2]);
}

#[test]
fn the_ledger_goes_with_the_baseline_and_copies_of_it_merge_by_union() {
    let project = project(1, 4);
    edit(&project, "m1", 4, 4);
    project.expect(0, "run --all --label a --compare-to before");
    // The same baseline run again, and copies of it on two machines.
    lose(&project, "m1", 4, |session| 2 + session % 2);
    project.expect(0, "run --all --label before");
    assert_eq!(numbers(&project, "m1"), [1]);
    let copy = |from: &str, to: &str| {
        fs::create_dir_all(project.path(to).join("tries")).unwrap();
        for folder in ["", "tries"] {
            for entry in fs::read_dir(project.path(from).join(folder))
                .unwrap()
                .flatten()
            {
                if entry.path().is_file() {
                    fs::copy(
                        entry.path(),
                        project.path(to).join(folder).join(entry.file_name()),
                    )
                    .unwrap();
                }
            }
        }
    };
    copy("results/before", "elsewhere/before");
    edit(&project, "m1", 4, 3);
    project.expect(0, "run --all --label b --compare-to before");
    edit(&project, "m1", 4, 2);
    project.expect(0, "run --all --label c --compare-to elsewhere/before");
    assert_eq!(
        tried(&project, "c", "m1"),
        2,
        "it knows nothing of the other machine"
    );
    copy("elsewhere/before", "results/before");
    assert_eq!(numbers(&project, "m1"), [1, 2, 2]);
    edit(&project, "m1", 4, 1);
    project.expect(0, "run --all --label d --compare-to before");
    assert_eq!(tried(&project, "d", "m1"), 4);
    project.write("results/before/tries/broken.json", "<<<<<<< ours\n");
    project
        .expect(2, "compare d before")
        .says(&["is no entry of the ledger of tries"]);
}

#[test]
fn a_winner_is_confirmed_once_on_fixtures_that_no_try_used() {
    let project = project(1, 8);
    for kept in [2, 3, 4] {
        edit(&project, "m1", 8, kept);
        project.expect(
            0,
            &format!("run --all --label k{kept} --fixtures s1,s2,s3,s4 --compare-to before"),
        );
    }
    assert_eq!(tried(&project, "k4", "m1"), 3);
    let run =
        |fixtures: &str| format!("run --all --label won --compare-to before --confirm {fixtures}");
    project.expect(2, &run("s4,s5,s6,s7")).says(&[
        "a try against `before` used these fixtures: s4",
        "--confirm needs",
    ]);
    let ended = project.expect(0, &run("s5,s6,s7"));
    assert!(
        flat(&ended).contains("on fixtures that no try used"),
        "{}",
        ended.stdout
    );
    let comparison = compared(&project, "won");
    assert_eq!(
        (&comparison["confirms"], &comparison["fixtures"]),
        (&json!(true), &json!(["s5", "s6", "s7"]))
    );
    let overall = comparison["methods"]["m1"]["overall"].clone();
    assert_eq!(
        (&overall["verdict"], &overall["tried"]),
        (&json!("improved"), &Value::Null)
    );
    assert_eq!(overall["p"], overall["p_adjusted"], "nothing is corrected");
    project.expect(0, "report won");
    assert_eq!(compared(&project, "won")["confirms"], true);
    // It may be confirmed again, but no other winner, and that is no try.
    project.expect(0, &run("s5,s6,s7"));
    edit(&project, "m1", 8, 1);
    project
        .expect(2, &run("s5,s6,s7").replace("won", "other"))
        .says(&["used these fixtures: s5, s6, s7"]);
    project.expect(
        0,
        "run --all --label other --fixtures s1,s2,s3,s4 --compare-to before",
    );
    assert_eq!(tried(&project, "other", "m1"), 4);
}
