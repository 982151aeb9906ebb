//! A shared cache in an object store, through the program: what it sends, and what it says of a store that fails.

use super::bucket::{BUCKET, KEY_ID, ObjectStore};
use super::project::{Ended, Project};
use super::server::Server;

const RUN: &str = "run --label a --runs 1";
const WRITE: &str = "run --label a --runs 1 --remote-mode write";
const SECRET: &str = "wJalrXUtnFEMIhunter2secretKEY";

/// A project whose remote is the prefix `team` of the bucket.
fn sharing(server: &Server, store: &ObjectStore) -> Project {
    let mut project = Project::new(server);
    project.share(&format!("s3://{BUCKET}/team"));
    project.set("AWS_ENDPOINT_URL", &store.endpoint());
    project.set("AWS_ACCESS_KEY_ID", KEY_ID);
    project.set("AWS_SECRET_ACCESS_KEY", SECRET);
    project
}

fn one_warning(ended: &Ended, words: &[&str]) {
    ended.says(words);
    assert_eq!(
        ended.stderr.matches("remote:").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn a_bucket_is_shared_and_a_second_checkout_sends_no_request_to_a_model() {
    let (server, store) = (Server::start(), ObjectStore::start());
    store.contents().refuses_first = true;
    let first = sharing(&server, &store);
    first.expect(0, WRITE).says(&["put there"]);
    server.forget();
    let second = sharing(&server, &store);
    let ended = second.expect(0, RUN);
    ended.says(&["pulled"]);
    assert!(!ended.stderr.contains("remote:"), "{}", ended.stderr);
    assert_eq!(server.count(), 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
    let stored: Vec<u8> = store
        .contents()
        .objects
        .values()
        .flat_map(|object| object.bytes.to_vec())
        .collect();
    assert!(
        !stored
            .windows(SECRET.len())
            .any(|bytes| bytes == SECRET.as_bytes())
    );
    // A plan finds all of it, and asks for each object once.
    store.take_asked();
    let planning = sharing(&server, &store);
    let plan = planning.expect(0, "plan --runs 1 --json").json();
    assert_eq!(
        (&plan["estimate"]["requests"], &plan["remote"]["asked"]),
        (&0.into(), &true.into()),
        "{plan}"
    );
    let mut asked: Vec<String> = store
        .take_asked()
        .into_iter()
        .map(|(asked, _)| asked)
        .collect();
    let all = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), all);
}

#[test]
fn a_store_that_fails_costs_one_warning_and_no_cell() {
    let (server, store) = (Server::start(), ObjectStore::start());
    let first = sharing(&server, &store);
    first.expect(0, WRITE);
    let rows = first.read("results/a/cells.jsonl");
    for (status, code, words) in [
        (403, "AccessDenied", "was denied"),
        (403, "RequestTimeTooSkewed", "the clock of this machine"),
        (500, "InternalError", "could not read"),
        (503, "SlowDown", "could not read"),
    ] {
        store.contents().refuses_all = Some((status, code));
        let project = sharing(&server, &store);
        one_warning(&project.expect(0, RUN), &[words, "continues without"]);
        assert_eq!(project.read("results/a/cells.jsonl"), rows, "{code}");
    }
    store.contents().refuses_all = None;
    store.contents().away_after = Some(4);
    server.forget();
    let project = sharing(&server, &store);
    one_warning(&project.expect(0, RUN), &["continues without"]);
    assert!(server.count() > 0);
    assert_eq!(project.read("results/a/cells.jsonl"), rows);
}

#[test]
fn settings_that_cannot_work_are_named_and_no_secret_is_shown() {
    let (server, store) = (Server::start(), ObjectStore::start());
    let mut project = sharing(&server, &store);
    let warned = |project: &Project, options: &str, words: &[&str]| {
        let ended = project.expect(0, &format!("{RUN} --methods nothing {options}"));
        ended.says(words);
        assert!(
            !ended.stderr.contains("hunter2") && !ended.stdout.contains("hunter2"),
            "{}",
            ended.stderr
        );
    };
    project.set("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE");
    warned(
        &project,
        "",
        &[
            "access to s3://evals/team was denied",
            "AWS_SECRET_ACCESS_KEY",
        ],
    );
    project.unset("AWS_ENDPOINT_URL");
    project.remove("cache");
    warned(&project, "", &["AWS_REGION is not set"]);
    project.remove("cache");
    warned(
        &project,
        "--remote az://evals/x",
        &["AZURE_STORAGE_ACCOUNT_NAME"],
    );
    project.set("AZURE_STORAGE_CONNECTION_STRING", "AccountKey=hunter2");
    project.remove("cache");
    warned(
        &project,
        "--remote az://evals/x",
        &["AZURE_STORAGE_CONNECTION_STRING"],
    );
}

#[test]
fn a_web_server_that_serves_the_bucket_is_read() {
    let (server, store) = (Server::start(), ObjectStore::start());
    sharing(&server, &store).expect(0, WRITE);
    store.contents().is_public = true;
    store.take_asked();
    server.forget();
    let mut reader = Project::new(&server);
    let url = format!("{}/{BUCKET}/team", store.endpoint());
    reader.set("COMPEVAL_REMOTE", &url);
    reader.expect(0, RUN).says(&["pulled"]);
    assert_eq!(server.count(), 0);
    let asked = store.take_asked();
    assert!(
        asked.iter().all(|(request, _)| request.starts_with("GET ")),
        "{asked:?}"
    );
    reader.expect(2, WRITE).says(&["a web server is only read"]);
}

#[test]
fn eight_processes_share_one_bucket() {
    let (server, store) = (Server::start(), ObjectStore::start());
    let projects: Vec<Project> = (0..8).map(|_| sharing(&server, &store)).collect();
    let run = "run --label a --runs 1 --methods anchored";
    let children: Vec<_> = projects
        .iter()
        .map(|project| {
            let mut command = project.command(&format!("{run} --remote-mode write"));
            command.spawn().expect("the program")
        })
        .collect();
    for child in children {
        let ended = Ended::of(&child.wait_with_output().expect("an end"));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(!ended.stderr.contains("remote:"), "{}", ended.stderr);
    }
    let rows: Vec<String> = projects
        .iter()
        .map(|project| project.read("results/a/cells.jsonl"))
        .collect();
    assert!(rows.iter().all(|own| *own == rows[0]));
    server.forget();
    sharing(&server, &store).expect(0, run);
    assert_eq!(server.count(), 0);
}
