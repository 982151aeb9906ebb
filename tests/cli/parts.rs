//! Parts and their merge: the bytes of one process whichever part was killed, and clear errors.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::project::{Ended, PRICES, Project, key};
use super::server::{Reply, Server, wait_until};

const PARTS: u32 = 3;

/// A folder that all parts share as their remote.
struct Meeting(TempDir);

impl Meeting {
    fn new() -> Meeting {
        let meeting = Meeting(tempfile::tempdir().expect("a folder"));
        fs::create_dir(meeting.folder()).expect("a folder");
        fs::set_permissions(meeting.folder(), fs::Permissions::from_mode(0o700)).expect("a mode");
        meeting
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("shared")
    }

    fn remote(&self) -> String {
        format!("--remote fs://{}", self.folder().display())
    }

    fn selftest(&self, project: &Project) {
        project.expect(0, &format!("judge selftest {}", self.remote()));
    }

    fn part(&self, project: &Project, index: u32, options: &str) -> Ended {
        project.compeval(&format!(
            "run --label x --part {index}/{PARTS} {} {options}",
            self.remote()
        ))
    }

    fn run_parts(&self, project: &Project, options: &str) {
        for index in 1..=PARTS {
            let ended = self.part(project, index, options);
            assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
        }
    }

    fn merge(&self, project: &Project, code: i32, options: &str) -> Ended {
        project.expect(
            code,
            &format!("run --label x --parts {PARTS} {} {options}", self.remote()),
        )
    }
}

/// All files of a result set except the manifest, which has times.
fn published(project: &Project, label: &str) -> BTreeMap<String, Vec<u8>> {
    let own = project
        .files(&format!("results/{label}"))
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            (name != "manifest.json").then(|| (name, fs::read(&path).expect("a file")))
        });
    own.collect()
}

/// Without the files that have the times of compressions: those differ between runs that executed them.
fn untimed(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    files.retain(|name, _| {
        !["contexts.jsonl", "summary.json", "report.html"].contains(&name.as_str())
    });
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)
        } else {
            assert!(fs::copy(&path, &target).is_ok())
        }
    }
}

#[test]
fn eight_parts_and_their_merge_are_one_process_byte_for_byte() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let (one, many) = (Project::new(&server), Project::new(&server));
    one.expect(0, "judge selftest");
    server.forget();
    one.expect(0, "run --label x");
    let calls = server.counts();
    meeting.selftest(&many);
    server.forget();
    let remote = meeting.remote();
    for index in 1..=8 {
        // Each part has a disk of its own.
        let disk = Project::new(&server);
        disk.expect(0, &format!("run --label x --part {index}/8 {remote}"));
    }
    assert_eq!(
        server.counts(),
        calls,
        "nothing is asked twice, and the self-test not at all"
    );
    server.forget();
    let merge = Project::new(&server);
    merge.expect(0, &format!("run --label x --parts 8 {remote}"));
    assert_eq!(server.count(), 0);
    let own = published(&merge, "x");
    assert_eq!(untimed(published(&one, "x")), untimed(own.clone()));

    let (whole, merged) = (
        one.result("x", "manifest.json"),
        merge.result("x", "manifest.json"),
    );
    assert_eq!(one.keys("x"), merge.keys("x"));
    for field in [
        "outcome",
        "design",
        "requests_sent",
        "usage",
        "stages",
        "files",
    ] {
        assert_eq!(whole[field], merged[field], "{field}");
    }
    assert_eq!(merged["merged"].as_array().unwrap().len(), 8);

    // One process with the same entries on another disk.
    let again = Project::new(&server);
    again.expect(0, &format!("cache pull {remote}"));
    again.expect(0, "run --offline --label x");
    for name in ["cells.jsonl", "summary.json"] {
        assert_eq!(published(&again, "x").get(name), own.get(name), "{name}");
    }
    // A second merge changes nothing.
    merge.expect(0, &format!("run --label x --parts 8 {remote}"));
    assert_eq!(published(&merge, "x"), own);
}

#[test]
fn a_part_that_was_killed_goes_on_and_pays_nothing_twice() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let (one, many) = (Project::new(&server), Project::new(&server));
    one.expect(0, "run --label x");
    let calls = server.count();
    server.forget();
    meeting.selftest(&many);
    meeting.part(&many, 1, "");
    meeting.part(&many, 2, "");
    let before = server.count();
    let mut running = many.start(&format!(
        "run --label x --part 3/{PARTS} {} --jobs 1",
        meeting.remote()
    ));
    wait_until(|| server.count() >= before + 3);
    running.kill();
    let early = meeting.merge(&many, 5, "");
    early.says(&[
        "these parts are not in the remote: 3",
        "--part 3/3",
        "merge again",
        "compeval run --label x",
    ]);
    assert_eq!(many.result("x", "manifest.json")["outcome"], "incomplete");
    let known = server.count();
    assert_eq!(meeting.part(&many, 3, "").code, 0);
    assert!(server.count() > known);
    meeting.merge(&many, 0, "");
    assert_eq!(
        published(&one, "x").get("cells.jsonl"),
        published(&many, "x").get("cells.jsonl")
    );
    assert!(
        server.count() <= calls + 1,
        "only what was under way is asked twice: {} of {calls}",
        server.count()
    );
}

#[test]
fn a_part_that_ended_early_is_named_and_both_of_its_runs_are_counted() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    meeting.selftest(&project);
    meeting.run_parts(&project, "");
    let whole = Project::new(&server);
    copy(
        &project.path("results/.parts"),
        &whole.path("results/.parts"),
    );
    let second = Meeting::new();
    second.selftest(&whole);
    server.forget();
    assert_eq!(second.part(&whole, 1, "").code, 0);
    assert_eq!(second.part(&whole, 2, "").code, 0);
    assert_eq!(server.count(), 0, "its folder has it all");
    whole.remove("results/.parts/x/3-of-3");
    assert_eq!(second.part(&whole, 3, "--max-requests 12").code, 6);
    let sent = server.count() as u64;
    second
        .merge(&whole, 5, "")
        .says(&["these parts have work left: 3", "--part 3/3"]);
    assert_eq!(whole.result("x", "manifest.json")["requests_sent"], sent);
    assert_eq!(second.part(&whole, 3, "").code, 0);
    second.merge(&whole, 0, "");
    assert_eq!(
        whole.result("x", "manifest.json")["requests_sent"],
        server.count() as u64
    );
    assert!(server.count() as u64 > sent);
}

#[test]
fn missing_parts_are_named_as_the_engine_takes_them_and_nothing_complete_is_replaced() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let one = Project::new(&server);
    one.expect(0, "run --label x");
    let calls = server.count();
    server.forget();
    let mut project = Project::new(&server);
    meeting.selftest(&project);
    project.set("SLURM_ARRAY_TASK_ID", "2");
    project.expect(
        0,
        &format!("run --label x --part auto/3 {}", meeting.remote()),
    );
    project.unset("SLURM_ARRAY_TASK_ID");
    let early = meeting.merge(&project, 5, "");
    early.says(&[
        "these parts are not in the remote: 1, 3",
        "--part 1/3",
        "sbatch --array=1,3",
    ]);
    // One process does the rest. It asks for nothing that a part has, and says first what it will pay.
    let paying = project.expect(0, &format!("run --label x {}", meeting.remote()));
    paying.says(&["has not all of it: this run sends about"]);
    assert_eq!(server.count(), calls);
    let whole = published(&one, "x");
    assert_eq!(
        whole.get("cells.jsonl"),
        published(&project, "x").get("cells.jsonl")
    );
    let merged = meeting.merge(&project, 0, "");
    merged.says(&[
        "these parts are not in the remote: 1, 3",
        "no cell is missing without them",
        "--part 1/3",
    ]);
    assert_eq!(
        whole.get("cells.jsonl"),
        published(&project, "x").get("cells.jsonl")
    );
    assert_eq!(server.count(), calls);
}

#[test]
fn a_label_is_removed_with_the_parts_that_it_was_merged_from() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    meeting.selftest(&project);
    meeting.run_parts(&project, "--runs 1");
    meeting.merge(&project, 0, "--runs 1");
    let part = |index| format!("results/.parts/x/{index}-of-{PARTS}");
    assert_eq!(meeting.part(&project, 2, "--runs 1").code, 0);
    project.expect(0, "labels rm x");
    assert!(
        !project.exists(&part(1)) && project.exists(&part(2)),
        "a part that ran again was not merged"
    );
    server.forget();
    meeting.merge(&project, 0, "--runs 1");
    project.expect(0, "labels rm x");
    assert!(!project.exists("results/.parts"));
    assert_eq!(server.count(), 0, "the remote has what the parts made");
}

#[test]
fn an_incomplete_merge_stands_beside_complete_results() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    project.expect(0, "run --label x");
    let before = published(&project, "x");
    // Another project on a machine without a cache.
    let other = Project::new(&server);
    meeting.selftest(&other);
    assert_eq!(meeting.part(&other, 1, "").code, 0);
    copy(&project.path("results/x"), &other.path("results/x"));
    meeting
        .merge(&other, 5, "")
        .says(&["keeps its earlier results"]);
    assert_eq!(published(&other, "x"), before);
}

#[test]
fn a_part_reads_the_projects_cache_and_a_lock_on_it_does_not_stop_it() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    project.expect(0, "run --label before");
    server.script(|_| Reply::Held);
    server.forget();
    project.edit("prompts/answer.md", "{{", "Note: {{");
    // A run that waits for its replies holds the cache.
    let held = project.start("run --label held --jobs 1");
    wait_until(|| server.count() > 0 && project.exists("results/held/manifest.json"));
    project.edit("prompts/answer.md", "Note: {{", "{{");
    server.forget();
    meeting.run_parts(&project, "");
    assert_eq!(server.count(), 0, "all is in the project's cache");
    server.let_go();
    drop(held);
    // The label was pushed with the entries of the parts, so that a machine with nothing can merge it.
    server.forget();
    let elsewhere = Project::new(&server);
    meeting.merge(&elsewhere, 0, "");
    assert_eq!(
        (server.count(), elsewhere.rows("x").len()),
        (0, project.rows("before").len())
    );
}

#[test]
fn limits_and_money_are_divided() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    meeting.selftest(&project);
    server.forget();
    let mut sent = 0;
    for index in 1..=PARTS {
        let ended = meeting.part(&project, index, "--max-requests 20");
        assert_eq!(ended.code, 6, "{}", ended.stderr);
        let manifest = project.read(&format!(
            "results/.parts/x/{index}-of-{PARTS}/x/manifest.json"
        ));
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        sent += manifest["requests_sent"].as_u64().unwrap();
    }
    assert!(sent <= 20 && server.count() <= 20, "{sent} of 20");
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 2");
    let ended = meeting.part(&project, 1, "");
    assert_eq!(ended.code, 2);
    ended.says(&["max_in_flight", "3 parts", "--whole-limits"]);
    assert_eq!(meeting.part(&project, 1, "--whole-limits").code, 0);
}

#[test]
fn bad_parts_are_refused_by_what_is_wrong() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let mut project = Project::new(&server);
    let remote = meeting.remote();
    project
        .expect(2, &format!("run --label x --part 9/8 {remote}"))
        .says(&["there is no part 9 of 8", "from 1 to 8"]);
    project
        .expect(2, &format!("run --label x --part 0/8 {remote}"))
        .says(&["there is no part 0 of 8"]);
    project
        .expect(2, &format!("run --label x --part 1 {remote}"))
        .says(&["expected I/N"]);
    project
        .expect(2, &format!("run --part 1/8 {remote}"))
        .says(&["--label"]);
    project
        .expect(2, "run --label x --part 1/8")
        .says(&["meet in a remote", "--remote"]);
    project
        .expect(2, "run --label x --parts 8")
        .says(&["meet in a remote", "--remote"]);
    project
        .expect(2, &format!("run --label x --parts 0 {remote}"))
        .says(&["number of parts is from 1"]);
    project
        .expect(2, &format!("run --label x --parts 8 --offline {remote}"))
        .says(&["cannot be used with"]);
    project
        .expect(2, &format!("run --label x --part auto {remote}"))
        .says(&["no task of a job array"]);
    let untested = project.expect(2, &format!("run --label x --part 1/3 {remote}"));
    untested.says(&["self-test is not in", "judge selftest"]);
    assert_eq!(
        (
            server.count(),
            project.exists("results/.parts/x/1-of-3/x/manifest.json")
        ),
        (0, false)
    );
    project
        .expect(2, "run --label x --part 1/3 --remote fs:///no/such/place")
        .says(&["does not exist"]);
    project.set("JOB_COMPLETION_INDEX", "two");
    project
        .expect(2, &format!("run --label x --part auto/3 {remote}"))
        .says(&["JOB_COMPLETION_INDEX is `two`"]);
    project.set("JOB_COMPLETION_INDEX", "1");
    project.expect(0, "check");
    project
        .expect(2, &format!("run --label x --part auto {remote}"))
        .says(&["does not say how many"]);
    let noted = project.expect(0, "run --label whole --methods nothing --runs 1");
    noted.says(&["JOB_COMPLETION_INDEX is set", "--part auto/N"]);
    project.unset("JOB_COMPLETION_INDEX");
    meeting
        .merge(&project, 2, "")
        .says(&["no part of `x` in 3 parts", "--part 1/3"]);

    meeting.selftest(&project);
    meeting.run_parts(&project, "--runs 1");
    meeting
        .merge(&project, 2, "")
        .says(&["of another design", "runs: 1 → 2", "--runs"]);
    assert!(!project.exists("results/x"));
    meeting.merge(&project, 0, "--runs 1");
    project
        .expect(2, &format!("run --label x --parts 4 --runs 1 {remote}"))
        .says(&["no part of `x` in 4 parts"]);
    meeting
        .merge(&project, 2, "--runs 1 --methods nothing --replace")
        .says(&["divided the work otherwise"]);
}

#[test]
fn a_part_that_is_being_run_cannot_be_run_again_here_and_is_noticed_elsewhere() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let (project, other) = (Project::new(&server), Project::new(&server));
    meeting.selftest(&project);
    server.script(|_| Reply::Held);
    let command = format!("run --label x --part 1/3 {}", meeting.remote());
    server.forget();
    let running = project.start(&command);
    wait_until(|| server.count() > 0);
    project
        .expect(2, &command)
        .says(&["part 1/3 is being run already", "a number of its own"]);
    let begun = server.count();
    let elsewhere = other.start(&command);
    wait_until(|| server.count() > begun);
    server.let_go();
    server.script(|_| Reply::Sensible);
    assert_eq!((running.end().code, elsewhere.end().code), (0, 0));
    let merged = meeting.merge(&project, 5, "");
    merged.says(&[
        "this part ran in two processes at the same time: 1;",
        "not in the remote: 2, 3",
    ]);
    assert_eq!(
        project.result("x", "manifest.json")["requests_sent"],
        server.count() as u64
    );
}

#[test]
fn the_smallest_limit_that_a_part_names_is_one_of_the_whole_run() {
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    let prices = PRICES.replace("input = 100.0", "input = 1.0");
    project.write(
        "pipeline.toml",
        &format!("{}\n{prices}", project.read("pipeline.toml")),
    );
    let run = |index: u32, limit: &str| {
        let options = format!("--stages compress --max-cost {limit} {}", meeting.remote());
        project.compeval(&format!("run --label x --part {index}/2 {options}"))
    };
    let mut ended = (1..=2).map(|index| (index, run(index, "0.01")));
    let (index, refused) = ended
        .find(|(_, ended)| ended.code == 2)
        .expect("a part that asks a model");
    refused.says(&[
        "--max-cost 0.01 leaves $",
        "here, which is less than one reply of",
    ]);
    let words: Vec<&str> = refused.stderr.split_whitespace().collect();
    let hint = words
        .windows(3)
        .find(|three| three[0] == "--max-cost" && three[2].starts_with("works"))
        .expect("a hint");
    let accepted = run(index, hint[1]);
    assert_ne!(accepted.code, 2, "{}", accepted.stderr);
}

#[test]
fn parts_that_are_signed_count_for_those_who_trust_their_writer() {
    let (server, meeting, ci) = (Server::start(), Meeting::new(), key());
    let mut project = Project::new(&server);
    project.share(
        &format!("fs://{}", meeting.folder().display()),
        &[("ci", &ci)],
    );
    let stranger = Project::new(&server);
    project
        .expect(2, "run --label x --part 1/3")
        .says(&["COMPEVAL_SIGNING_KEY is not set"]);
    project.set("COMPEVAL_SIGNING_KEY", &ci.secret);
    project.expect(0, "judge selftest --remote-mode write");
    for index in 1..=3 {
        project.expect(0, &format!("run --label x --part {index}/3"));
    }
    project.expect(0, "run --label x --parts 3");
    let refused = meeting.merge(&stranger, 2, "");
    refused.says(&["records of parts", "not in `trust`", "no part of `x`"]);
    // Unsigned packs are refused if the pipeline names the folder.
    let unsigned = Meeting::new();
    let (open, trusting) = (Project::new(&server), Project::new(&server));
    unsigned.selftest(&open);
    unsigned.run_parts(&open, "");
    trusting.share(
        &format!("fs://{}", unsigned.folder().display()),
        &[("ci", &ci)],
    );
    trusting
        .expect(2, "run --label x --parts 3")
        .says(&["nobody signed", "--remote names that folder"]);
}

#[test]
fn the_plans_of_all_parts_are_the_plan_of_the_whole() {
    let project = Project::offline();
    let cells = |plan: &Value, stage: &str| plan["stages"][stage]["cells"].as_u64().unwrap();
    let whole = project.expect(0, "plan --json").json();
    let parts: Vec<Value> = (1..=12)
        .map(|index| {
            project
                .expect(0, &format!("plan --json --label x --part {index}/12"))
                .json()
        })
        .collect();
    for stage in ["compress", "answer", "judge"] {
        assert_eq!(
            parts.iter().map(|part| cells(part, stage)).sum::<u64>(),
            cells(&whole, stage),
            "{stage}"
        );
    }
    let share: f64 = parts
        .iter()
        .map(|part| part["part"]["share"].as_f64().unwrap())
        .sum();
    assert!((share - 1.0).abs() < 1e-9);
    let empty = parts
        .iter()
        .position(|part| part["part"]["chains"] == 0)
        .expect("more parts than chains")
        + 1;
    let (server, meeting) = (Server::start(), Meeting::new());
    let project = Project::new(&server);
    let command = format!("run --label x --part {empty}/12 {}", meeting.remote());
    project.expect(0, &command).says(&["has nothing to do"]);
    assert_eq!(server.count(), 0, "a part without chains asks no judge");
}
