//! Parts and the results of all of them: the bytes of one process whichever part was killed or failed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::brain::Wanted;
use super::project::{Ended, Project};
use super::server::{Reply, Server, wait_until};
use super::shared_cache::Remote;

const PARTS: u32 = 3;

fn part(project: &Project, remote: &Remote, index: u32, options: &str) -> Ended {
    project.compeval(&format!(
        "run --label x --part {index}/{PARTS} --remote {} {options}",
        remote.url()
    ))
}

fn selftest(project: &Project, remote: &Remote) {
    project.expect(0, &format!("judge selftest --remote {}", remote.url()));
}

fn merge(project: &Project, remote: &Remote, code: i32, options: &str) -> Ended {
    project.expect(
        code,
        &format!(
            "run --label x --remote {} --offline {options}",
            remote.url()
        ),
    )
}

/// All files of a result set except the manifest, which has times.
fn published(project: &Project) -> BTreeMap<String, Vec<u8>> {
    let files = project.files("results/x").into_iter();
    let named = files.filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        (name != "manifest.json").then(|| (name, fs::read(&path).expect("a file")))
    });
    named.collect()
}

#[test]
fn parts_are_one_process_where_answers_differ_a_part_is_killed_and_an_action_fails() {
    let (server, remote) = (Server::start(), Remote::new());
    // Two methods that differ only in name share all their compressions, and every answer differs from all others.
    let twin = |project: &Project| {
        let method = "\n[[compress]]\nname = \"anchored-too\"\nstrategy = \"anchored-iterative\"\nmodel = \"mock/small-1\"\n\
                      prompt = \"prompts/anchored.md\"\n";
        project.write("pipeline.toml", &(project.read("pipeline.toml") + method));
    };
    let number = AtomicUsize::new(0);
    server.script(move |asked| match asked.wanted {
        Wanted::Answer if asked.text.contains("Who owns the machine") => {
            Reply::Raw(400, r#"{"error": {"message": "no"}}"#.into())
        }
        Wanted::Answer => {
            let number = number.fetch_add(1, Ordering::Relaxed);
            Reply::Text(format!("The port is {number}."))
        }
        _ => Reply::Sensible,
    });
    let projects: Vec<Project> = (0..=PARTS).map(|_| Project::new(&server)).collect();
    projects.iter().for_each(twin);
    selftest(&projects[0], &remote);
    let options = "--runs 3";
    let mut running = projects[1].start(&format!(
        "run --label x --part 1/{PARTS} --remote {} {options} --jobs 1",
        remote.url()
    ));
    let before = server.count();
    wait_until(|| server.count() >= before + 3);
    running.kill();
    let mut sent = 0;
    for index in 1..=PARTS {
        let project = &projects[index as usize];
        let ended = part(project, &remote, index, options);
        assert!([0, 5].contains(&ended.code), "{}", ended.stderr);
        let manifest = project.read(&format!(
            "results/.parts/x/{index}-of-{PARTS}/x/manifest.json"
        ));
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        sent += manifest["requests_sent"].as_u64().unwrap();
    }
    assert!(sent > 0);
    server.forget();
    let all = Project::new(&server);
    twin(&all);
    let merged = merge(&all, &remote, 5, options);
    assert_eq!(server.count(), 0, "{}", merged.stderr);
    let manifest = all.result("x", "manifest.json");
    assert_eq!(manifest["outcome"], "incomplete");
    assert!(!manifest["failures"].as_array().unwrap().is_empty());
    assert!(manifest["requests_sent"].as_u64() > Some(0));

    // One process with these outputs, which fails where the parts failed.
    let one = Project::new(&server);
    twin(&one);
    one.expect(
        5,
        &format!("run --label x --remote {} {options}", remote.url()),
    );
    let (one, merged) = (published(&one), published(&all));
    for name in ["cells.jsonl", "contexts.jsonl"] {
        assert!(
            one.contains_key(name) && one.get(name) == merged.get(name),
            "{name}"
        );
    }
    // A second merge changes nothing.
    merge(&all, &remote, 5, options);
    assert_eq!(
        published(&all).get("cells.jsonl"),
        merged.get("cells.jsonl")
    );
}

#[test]
fn missing_parts_are_missing_cells_that_one_process_can_do() {
    let (server, remote) = (Server::start(), Remote::new());
    let one = Project::new(&server);
    one.expect(0, "run --label x");
    let calls = server.count();
    server.forget();
    let project = Project::new(&server);
    selftest(&project, &remote);
    assert_eq!(part(&project, &remote, 1, "").code, 0);
    merge(&project, &remote, 7, "");
    let paying = project.expect(0, &format!("run --label x --remote {}", remote.url()));
    paying.says(&["lacks some outputs: this run sends about"]);
    assert_eq!(server.count(), calls, "nothing is asked twice");
    assert_eq!(
        published(&one).get("cells.jsonl"),
        published(&project).get("cells.jsonl")
    );
}

#[test]
fn a_merge_continues_from_the_outputs_of_the_parts_where_it_has_others() {
    let (server, remote) = (Server::start(), Remote::new());
    let summaries = |text: &'static str| {
        server.script(move |asked| match asked.wanted {
            Wanted::Compression => Reply::Text(text.into()),
            _ => Reply::Sensible,
        });
    };
    summaries("The port was 8080.");
    let merging = Project::new(&server);
    merging.expect(0, "run --label early --stages compress");
    summaries("The port is 9091.");
    let machine = Project::new(&server);
    selftest(&machine, &remote);
    for index in 1..=PARTS {
        assert_eq!(part(&machine, &remote, index, "").code, 0);
    }
    server.forget();
    let (objects, fresh) = (remote.objects(), Project::new(&server));
    merge(&fresh, &remote, 0, "");
    merge(&merging, &remote, 0, "");
    assert_eq!(merging.rows("x"), fresh.rows("x"));
    assert_eq!(
        (server.count(), remote.objects()),
        (0, objects),
        "only read"
    );
}

#[test]
fn limits_and_money_are_divided() {
    let (server, remote) = (Server::start(), Remote::new());
    let project = Project::new(&server);
    selftest(&project, &remote);
    server.forget();
    for index in 1..=PARTS {
        let ended = part(&project, &remote, index, "--max-requests 20");
        assert!([0, 6].contains(&ended.code), "{}", ended.stderr);
        let again = format!(
            "next: compeval run --label x --part {index}/{PARTS} --remote {} --max-requests 20",
            remote.url()
        );
        assert_eq!(ended.stdout.contains(&again), ended.code == 6);
    }
    assert!(server.count() <= 20, "{}", server.count());
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 2");
    let ended = part(&project, &remote, 1, "");
    assert_eq!(ended.code, 2);
    ended.says(&["max_in_flight", "3 parts", "use fewer parts"]);
}

#[test]
fn bad_parts_are_refused_by_what_is_wrong() {
    let (server, remote) = (Server::start(), Remote::new());
    let project = Project::new(&server);
    let refused = |options: &str, words: &[&str]| {
        let url = remote.url();
        project
            .expect(2, &format!("run --remote {url} {options}"))
            .says(words);
    };
    refused("--label x --part 9/8", &["there is no part 9 of 8"]);
    refused("--label x --part 0/8", &["there is no part 0 of 8"]);
    refused("--label x --part 1", &["expected I/N"]);
    refused("--part 1/8", &["--label"]);
    refused("--label x --part 1/8 --offline", &["cannot be used with"]);
    refused(
        "--label x --part 1/8 --refresh answer",
        &["cannot be used with"],
    );
    project
        .expect(2, "run --label x --part 1/8")
        .says(&["share their outputs through a remote", "--remote"]);
    let untested = part(&project, &remote, 1, "");
    assert_eq!((untested.code, server.count()), (2, 0));
    untested.says(&["self-test is not in", "judge selftest --remote fs://"]);
}
