//! A shared cache in an object store, through the program: what it sends, and what it says of a store that is
//! unavailable, damaged, public or owned by others.

use std::time::{Duration, Instant, SystemTime};

use super::bucket::{BUCKET, KEY_ID, ObjectStore, Stored};
use super::project::{Ended, Key, Project, key};
use super::server::Server;

const RUN: &str = "run --label a --runs 1";
const SECRET: &str = "wJalrXUtnFEMIhunter2secretKEY";

/// A project whose remote is the prefix `team` of the bucket.
fn sharing(server: &Server, store: &ObjectStore, key: &Key) -> Project {
    let mut project = Project::new(server);
    project.share(&format!("s3://{BUCKET}/team"), &[("ci", key)]);
    project.set("AWS_ENDPOINT_URL", &store.endpoint());
    project.set("AWS_ACCESS_KEY_ID", KEY_ID);
    project.set("AWS_SECRET_ACCESS_KEY", SECRET);
    project
}

/// A project that also uploads.
fn writing(server: &Server, store: &ObjectStore, key: &Key) -> Project {
    sharing(server, store, key).upload(key)
}

#[test]
fn a_bucket_is_shared_and_a_second_checkout_sends_no_request_to_a_model() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let first = writing(&server, &store, &ci);
    first.expect(0, RUN).says(&["uploaded"]);
    assert_eq!(store.names("team/packs/").len(), 1, "{:?}", store.names(""));
    assert_eq!(
        store.names("").len(),
        3,
        "marker, pack, listing: {:?}",
        store.names("")
    );

    server.forget();
    let second = sharing(&server, &store, &ci);
    second.expect(0, RUN).says(&["pulled"]);
    assert_eq!(server.count(), 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
    assert_eq!(
        second.result("a", "manifest.json")["remote"]["url"],
        format!("s3://{BUCKET}/team")
    );
    // all that was stored anywhere
    let stored: Vec<u8> = store
        .contents()
        .objects
        .values()
        .flat_map(|object| object.bytes.to_vec())
        .collect();
    for secret in [SECRET, &ci.secret] {
        assert!(
            !stored
                .windows(secret.len())
                .any(|bytes| bytes == secret.as_bytes())
        );
    }
    let stats = second.expect(0, "cache stats --shared --json").json();
    assert_eq!(
        (&stats["packs"], &stats["writers"][0]["name"]),
        (&1.into(), &"ci".into())
    );
    let third = sharing(&server, &store, &ci);
    assert_eq!(
        third.expect(0, "cache pull --json").json()["entries"],
        stats["entries"]
    );
}

#[test]
fn a_store_that_refuses_every_request_once_is_asked_again() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    store.contents().refuses_first = true;
    let first = writing(&server, &store, &ci);
    first.expect(0, RUN).says(&["uploaded"]);
    server.forget();
    store.contents().failures = 3;
    let second = sharing(&server, &store, &ci);
    second.expect(0, RUN);
    assert_eq!((server.count(), store.contents().failures), (0, 0));
    for project in [first, second] {
        assert!(
            !project.expect(0, RUN).stderr.contains("remote:"),
            "nothing to complain of"
        );
    }
}

#[test]
fn a_store_that_is_away_is_one_warning_and_is_written_later() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let project = writing(&server, &store, &ci);
    store.contents().is_away = true;
    let ended = project.expect(0, RUN);
    ended.says(&["SlowDown", "this run continues without it"]);
    assert_eq!(
        ended.stderr.matches("remote:").count(),
        1,
        "{}",
        ended.stderr
    );
    assert!(store.names("").is_empty());
    store.contents().is_away = false;
    server.forget();
    project.expect(0, RUN).says(&["uploaded"]);
    assert_eq!(server.count(), 0);
    sharing(&server, &store, &ci).expect(0, RUN);
    assert_eq!(server.count(), 0);
}

#[test]
fn a_bucket_that_anybody_can_read_gets_no_entry() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    store.contents().is_public = true;
    let project = writing(&server, &store, &ci);
    project
        .expect(0, RUN)
        .says(&["can be read by anybody", "block public access"]);
    project
        .expect(2, "cache push")
        .says(&["can be read by anybody"]);
    assert!(store.names("team/packs").is_empty());
}

#[test]
fn settings_that_cannot_work_are_refused_and_no_secret_is_shown() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let refused = |project: &Project, command: &str, words: &[&str]| {
        let ended = project.expect(2, command);
        ended.says(words);
        assert!(
            !ended.stderr.contains("hunter2") && !ended.stdout.contains("hunter2"),
            "{}",
            ended.stderr
        );
        assert!(store.names("").is_empty());
    };
    let mut project = writing(&server, &store, &ci);
    project.expect(
        0,
        "run --label a --runs 1 --methods nothing --remote-mode read",
    );
    refused(
        &project,
        "cache push --remote s3://nowhere/x",
        &["s3://nowhere/x does not exist", "AWS_ENDPOINT_URL"],
    );
    refused(
        &project,
        "cache push --remote https://host/x",
        &["a web server is only read"],
    );
    project.set("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE");
    refused(
        &project,
        "cache push",
        &[
            "access to s3://evals/team was denied",
            "AWS_SECRET_ACCESS_KEY",
        ],
    );
    project.unset("AWS_ACCESS_KEY_ID");
    project.set("HOME", "/nonexistent");
    refused(
        &project,
        "cache push",
        &["access to s3://evals/team was denied", "AWS_ACCESS_KEY_ID"],
    );
    project.unset("AWS_ENDPOINT_URL");
    refused(&project, "cache push", &["AWS_REGION is not set"]);
    refused(
        &project,
        "cache push --remote az://evals/x",
        &["AZURE_STORAGE_ACCOUNT_NAME"],
    );
    project.set("AZURE_STORAGE_CONNECTION_STRING", "AccountKey=hunter2");
    refused(
        &project,
        "cache push --remote az://evals/x",
        &["AZURE_STORAGE_CONNECTION_STRING"],
    );
}

#[test]
fn the_prefix_of_another_program_is_left_alone() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let photo = Stored {
        bytes: "x".into(),
        written: SystemTime::now(),
    };
    store
        .contents()
        .objects
        .insert("team/photo.jpg".into(), photo);
    let project = writing(&server, &store, &ci);
    project
        .expect(0, "run --label a --runs 1 --methods nothing")
        .says(&["photo.jpg", "no cache of compeval"]);
    project.expect(2, "cache push").says(&["photo.jpg"]);
    assert_eq!(store.names(""), ["team/photo.jpg"]);
}

#[test]
fn a_web_server_that_serves_the_bucket_is_read() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let mut first = writing(&server, &store, &ci);
    let url = format!("{}/{BUCKET}/team", store.endpoint());
    store.contents().is_public = true;
    first.set("COMPEVAL_REMOTE_MODE", "read");
    first
        .expect(2, &format!("cache pull --remote {url}"))
        .says(&["does not exist", "nothing was pushed"]);
    store.contents().is_public = false;
    first.set("COMPEVAL_REMOTE_MODE", "write");
    first.expect(0, RUN);

    store.contents().is_public = true;
    store.take_asked();
    server.forget();
    let mut second = sharing(&server, &store, &ci);
    for name in [
        "AWS_ENDPOINT_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        second.unset(name);
    }
    second.set("COMPEVAL_REMOTE", &url);
    second.expect(0, RUN).says(&["pulled"]);
    assert_eq!(server.count(), 0);
    let asked = store.take_asked();
    assert!(
        asked
            .iter()
            .all(|(request, _)| request.starts_with("GET ") && !request.contains("list-type")),
        "{asked:?}"
    );
    second.set("COMPEVAL_SIGNING_KEY", &ci.secret);
    second
        .expect(2, &format!("{RUN} --remote-mode write"))
        .says(&["a web server is only read"]);
    let newer = Stored {
        bytes: "compeval listing 7\n".into(),
        written: SystemTime::now(),
    };
    store
        .contents()
        .objects
        .insert("team/index/latest".into(), newer);
    second
        .expect(2, "cache pull")
        .says(&["format 7", "newer compeval"]);
}

#[test]
fn parts_are_merged_through_a_web_server_and_their_records_go_after_a_month() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let project = writing(&server, &store, &ci);
    project.expect(0, &format!("judge selftest --remote s3://{BUCKET}/team"));
    for index in 1..=2 {
        project.expect(0, &format!("{RUN} --part {index}/2"));
    }
    assert_eq!(
        store.names("team/parts/a.").len(),
        2,
        "{:?}",
        store.names("")
    );
    store.contents().is_public = true;
    server.forget();
    let mut reader = sharing(&server, &store, &ci);
    for name in [
        "AWS_ENDPOINT_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        reader.unset(name);
    }
    let url = format!("{}/{BUCKET}/team", store.endpoint());
    let merge = format!("{RUN} --parts 2 --remote {url}");
    reader.expect(0, &merge);
    assert_eq!((server.count(), reader.rows("a").len()), (0, 5 * 7));
    assert_eq!(
        reader.result("a", "manifest.json")["merged"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );

    store.contents().is_public = false;
    let prune = |options: &str| {
        project
            .expect(0, &format!("cache prune --remote {options} --json"))
            .json()
    };
    assert_eq!(
        prune("--delete")["part_records"],
        0,
        "they may still be merged"
    );
    let month = Duration::from_secs(31 * 24 * 3600);
    let is_record = |name: &str| name.starts_with("team/parts/");
    let mut contents = store.contents();
    contents
        .objects
        .iter_mut()
        .filter(|(name, _)| is_record(name))
        .for_each(|(_, record)| record.written -= month);
    drop(contents);
    assert_eq!(
        (&prune("")["part_records"], store.names("team/parts").len()),
        (&2.into(), 2)
    );
    assert_eq!(
        (
            &prune("--delete")["part_records"],
            store.names("team/parts").len()
        ),
        (&2.into(), 0)
    );
    store.contents().is_public = true;
    let ended = reader.compeval(&merge);
    assert!(ended.code != 0, "{ended:?}");
    ended.says(&["no part of `a` in 2 parts"]);
}

#[test]
fn a_store_that_goes_away_in_a_run_costs_one_warning_and_no_cell() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let first = writing(&server, &store, &ci);
    first.expect(0, RUN);
    store.contents().away_after = Some(4);
    server.forget();
    let second = sharing(&server, &store, &ci);
    let ended = second.expect(0, RUN);
    ended.says(&["nothing more is pulled"]);
    assert_eq!(
        ended.stderr.matches("remote:").count(),
        1,
        "{}",
        ended.stderr
    );
    assert!(server.count() > 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
}

#[test]
fn a_process_that_is_killed_in_an_upload_leaves_nothing_half_written() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let project = writing(&server, &store, &ci);
    store.contents().latency = Duration::from_millis(400);
    let running = project.start(RUN);
    let begun = Instant::now();
    let is_uploading = |(request, _): &(String, u64)| request.starts_with("PUT ");
    while !store.contents().asked.iter().any(is_uploading) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "nothing is uploaded"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(running);
    store.contents().latency = Duration::ZERO;
    let reader = sharing(&server, &store, &ci);
    let ended = reader.expect(0, "cache stats --shared");
    assert!(!ended.stderr.contains("damaged"), "{}", ended.stderr);
    server.forget();
    project.expect(0, RUN);
    assert_eq!(server.count(), 0, "what was paid for is in the local cache");
    reader.expect(0, RUN);
    assert_eq!(server.count(), 0, "and in the remote");
}

#[test]
fn eight_processes_share_one_bucket() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let projects: Vec<Project> = (0..8).map(|_| writing(&server, &store, &ci)).collect();
    let run = "run --label a --runs 1 --methods anchored";
    let children: Vec<_> = projects
        .iter()
        .map(|project| project.command(run).spawn().expect("the program"))
        .collect();
    for child in children {
        let ended = Ended::of(&child.wait_with_output().expect("an end"));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(!ended.stderr.contains("remote:"), "{}", ended.stderr);
    }
    server.forget();
    sharing(&server, &store, &ci).expect(0, run);
    assert_eq!(server.count(), 0);
}

#[test]
fn packs_that_no_label_needs_are_pruned_from_a_bucket() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let mut project = writing(&server, &store, &ci);
    project.expect(0, "run --label a --runs 1 --methods nothing");
    project.expect(0, "cache push --label a");
    project.expect(0, "run --label b --runs 1 --methods anchored");
    let dry = project.expect(0, "cache prune --remote --json").json();
    assert_eq!(
        (
            &dry["labels"],
            &dry["kept"],
            &dry["marked"],
            &dry["deleted"]
        ),
        (&1.into(), &1.into(), &1.into(), &0.into())
    );
    assert!(store.names("team/marks").is_empty());
    project.expect(0, "cache prune --remote --delete");
    let month = Duration::from_secs(31 * 24 * 3600);
    store
        .contents()
        .objects
        .iter_mut()
        .filter(|(name, _)| name.starts_with("team/marks/"))
        .for_each(|(_, mark)| mark.written -= month);
    let before = store.contents().objects.clone();
    let done = project
        .expect(0, "cache prune --remote --delete --json")
        .json();
    assert_eq!((&done["kept"], &done["deleted"]), (&1.into(), &1.into()));
    assert_eq!(store.names("team/packs").len(), 1);
    server.forget();
    // Another writer puts the deleted pack back.
    let packs = before
        .into_iter()
        .filter(|(name, _)| name.starts_with("team/packs/"));
    store.contents().objects.extend(packs);
    let stats = project.expect(0, "cache stats --shared --json").json();
    assert_eq!((&stats["packs"], &stats["removed"]), (&1.into(), &1.into()));
    let reader = sharing(&server, &store, &ci);
    reader
        .expect(0, "run --label b --runs 1 --methods anchored")
        .says(&["1 pack", "deleted by a prune"]);
    assert!(server.count() > 0, "what was pruned is made again");
    let done = project
        .expect(0, "cache prune --remote --delete --json")
        .json();
    assert_eq!((&done["kept"], &done["deleted"]), (&1.into(), &1.into()));
    assert_eq!(store.names("team/packs").len(), 1);
    server.forget();
    sharing(&server, &store, &ci).expect(0, "run --label a --runs 1 --methods nothing");
    assert_eq!(server.count(), 0);
    project.set("COMPEVAL_REMOTE_MODE", "read");
    project
        .expect(2, "cache prune --remote --delete")
        .says(&["only read"]);
    project.expect(2, "cache prune --remote --unreachable");
}

#[test]
fn entries_that_were_tampered_with_or_are_newer_are_named_and_made_again() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    writing(&server, &store, &ci).expect(0, RUN);
    let [pack] = &store.names("team/packs/")[..] else {
        panic!("one pack")
    };
    let whole = store.contents().objects[pack].bytes.to_vec();
    let end = whole.len();
    // an entry, the footer, the version
    for (at, bits, words) in [
        (end / 3, 0x55, "damaged"),
        (end - 200, 0x55, "damaged"),
        (end - 12, 0x08, "a newer version of compeval"),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= bits;
        store
            .contents()
            .objects
            .get_mut(pack)
            .expect("a pack")
            .bytes = bytes.into();
        server.forget();
        let reader = sharing(&server, &store, &ci);
        reader.expect(0, RUN).says(&[words, "not used"]);
        assert!(server.count() > 0, "made again");
    }
}

#[test]
fn a_clock_that_is_too_far_from_that_of_the_store_is_named() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    let project = writing(&server, &store, &ci);
    store.contents().refuses_all = Some((403, "RequestTimeTooSkewed"));
    project
        .expect(0, "run --label a --runs 1 --methods nothing")
        .says(&["the clock of this machine", "continues"]);
    project
        .expect(2, "cache push")
        .says(&["the clock of this machine"]);
}

#[test]
fn a_plan_counts_what_the_remote_has_and_asks_nothing_offline() {
    let (server, store, ci) = (Server::start(), ObjectStore::start(), key());
    writing(&server, &store, &ci).expect(0, RUN);
    let project = sharing(&server, &store, &ci);
    store.take_asked();
    let plan = project.expect(0, "plan --runs 1 --json").json();
    assert_eq!(
        (&plan["estimate"]["requests"], &plan["remote"]["asked"]),
        (&0.into(), &true.into()),
        "{plan}"
    );
    let asked = store.take_asked();
    assert!(
        asked.len() <= 10 && asked.iter().all(|(request, _)| request.starts_with("GET ")),
        "{asked:?}"
    );
    project
        .expect(0, "plan --runs 1 --offline")
        .says(&["was not asked"]);
    assert!(store.take_asked().is_empty());
    store.contents().is_away = true;
    let ended = project.expect(0, "plan --runs 1 --json");
    let plan = ended.json();
    assert!(
        plan["estimate"]["requests"].as_f64() > Some(0.0) && plan["remote"]["asked"] == false,
        "{plan}"
    );
    assert_eq!(
        ended.stderr.matches("remote:").count(),
        1,
        "{}",
        ended.stderr
    );
    store.contents().is_away = false;
    store.contents().latency = Duration::from_secs(60);
    project
        .expect(0, "plan --runs 1")
        .says(&["no answer within 10 s", "this plan continues"]);
}
