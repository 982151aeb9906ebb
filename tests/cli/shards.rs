//! Shards and their merge: the same bytes as one process, whatever was killed, and clear errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::project::{Ended, Project};
use super::server::{Reply, Server, wait_until};

const SHARDS: u32 = 3;

/// All files of a result set but the manifest, which has times.
fn published(project: &Project, label: &str) -> BTreeMap<String, Vec<u8>> {
    let own = project.files(&format!("results/{label}")).into_iter().filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        (name != "manifest.json").then(|| (name, fs::read(&path).expect("a file")))
    });
    own.collect()
}

/// Without the files that say how long compressions took, which differs between runs that executed them.
fn untimed(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    files.retain(|name, _| !["contexts.jsonl", "summary.json", "report.html"].contains(&name.as_str()));
    files
}

fn shard(project: &Project, index: u32, options: &str) -> Ended {
    project.compeval(&format!("run --label x --shard {index}/{SHARDS} {options}"))
}

fn run_shards(project: &Project, options: &str) {
    for index in 1..=SHARDS {
        let ended = shard(project, index, options);
        assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &target) } else { assert!(fs::copy(&path, &target).is_ok()) }
    }
}

#[test]
fn shards_and_their_merge_are_one_process_byte_for_byte() {
    let server = Server::start();
    let (one, many) = (Project::new(&server), Project::new(&server));
    one.expect(0, "judge selftest --export selftest.bin");
    fs::copy(one.path("selftest.bin"), many.path("selftest.bin")).unwrap();
    server.forget();
    one.expect(0, "run --label x");
    let calls = server.counts();
    server.forget();
    run_shards(&many, "--selftest selftest.bin");
    assert_eq!(server.counts(), calls, "nothing is asked twice, and the self-test not at all");
    server.forget();
    many.expect(0, "merge x");
    assert_eq!(server.count(), 0);
    let own = published(&many, "x");
    assert_eq!(untimed(published(&one, "x")), untimed(own.clone()));

    let (whole, merged) = (one.result("x", "manifest.json"), many.result("x", "manifest.json"));
    assert_eq!(one.keys("x"), many.keys("x"));
    for field in ["outcome", "design", "requests_sent", "usage", "stages", "files"] {
        assert_eq!(whole[field], merged[field], "{field}");
    }
    assert_eq!(merged["merged"].as_array().unwrap().len(), SHARDS as usize);
    many.expect(0, "run --offline --label x");
    let again = published(&many, "x");
    let differing: Vec<&String> = again.keys().filter(|name| again.get(*name) != own.get(*name)).collect();
    assert_eq!(
        differing,
        ["report.html"],
        "one process makes the same of the same entries; the page counts its requests"
    );
}

#[test]
fn a_shard_that_was_killed_goes_on_and_pays_nothing_twice() {
    let server = Server::start();
    let (one, many) = (Project::new(&server), Project::new(&server));
    one.expect(0, "run --label x");
    let calls = server.count();
    server.forget();
    many.expect(0, "judge selftest --export selftest.bin");
    shard(&many, 1, "--selftest selftest.bin");
    shard(&many, 2, "--selftest selftest.bin");
    let before = server.count();
    let mut running = many.start(&format!("run --label x --shard 3/{SHARDS} --selftest selftest.bin --jobs 1"));
    wait_until(|| server.count() >= before + 3);
    running.kill();
    let again = many.expect(5, "merge x");
    again.says(&["these shards have work left: 3", "--shard 3/3", "compeval run --label x"]);
    assert_eq!(many.result("x", "manifest.json")["outcome"], "incomplete");
    let known = server.count();
    assert_eq!(shard(&many, 3, "").code, 0);
    assert!(server.count() > known);
    many.expect(0, "merge x");
    assert_eq!(published(&one, "x").get("cells.jsonl"), published(&many, "x").get("cells.jsonl"));
    assert!(server.count() <= calls + 1, "only what was under way is asked twice: {} of {calls}", server.count());
}

#[test]
fn missing_shards_are_named_as_the_engine_takes_them_and_nothing_complete_is_replaced() {
    let server = Server::start();
    let one = Project::new(&server);
    one.expect(0, "run --label x");
    let calls = server.count();
    server.forget();
    let mut project = Project::new(&server);
    project.set("SLURM_ARRAY_TASK_ID", "2");
    project.expect(0, "run --label x --shard auto/3");
    project.unset("SLURM_ARRAY_TASK_ID");
    project.expect(5, "merge x").says(&["of 3 shards these are missing: 1, 3", "sbatch --array=1,3"]);
    // The rest in one process, which asks for nothing that a shard has.
    project.expect(0, "run --label x");
    assert_eq!(server.count(), calls);
    let whole = published(&one, "x");
    assert_eq!(whole.get("cells.jsonl"), published(&project, "x").get("cells.jsonl"));
    project.expect(0, "merge x");
    assert_eq!(whole.get("cells.jsonl"), published(&project, "x").get("cells.jsonl"));
    assert_eq!(server.count(), calls);
}

#[test]
fn an_incomplete_merge_stands_beside_complete_results() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label x");
    let before = published(&project, "x");
    // Another project, on a machine that had nothing.
    let other = Project::new(&server);
    assert_eq!(shard(&other, 1, "").code, 0);
    copy(&project.path("results/x"), &other.path("results/x"));
    other.expect(5, "merge x").says(&["keeps its earlier results"]);
    assert_eq!(published(&other, "x"), before);
}

#[test]
fn shards_merge_from_wherever_they_were_copied_to() {
    let server = Server::start();
    let (first, second, third) = (Project::new(&server), Project::new(&server), Project::new(&server));
    assert_eq!(shard(&first, 1, "").code, 0);
    assert_eq!(shard(&second, 2, "").code, 0);
    assert_eq!(shard(&third, 3, "").code, 0);
    let merged = Project::new(&server);
    for (project, name) in [(&first, "a"), (&second, "b/c"), (&third, "d")] {
        copy(&project.path("results/.shards/x"), &merged.path(&format!("artifacts/{name}")));
    }
    let one = Project::new(&server);
    one.expect(0, "run --label x");
    server.forget();
    merged.expect(0, "merge x artifacts artifacts/a");
    assert_eq!(server.count(), 0);
    assert_eq!(untimed(published(&one, "x")), untimed(published(&merged, "x")));

    copy(&first.path("results/.shards/x"), &merged.path("artifacts/again"));
    merged.expect(2, "merge x artifacts").says(&["shard 1/3 was found twice", "artifacts/a", "artifacts/again"]);
}

#[test]
fn a_shard_reads_the_projects_cache_and_a_lock_on_it_does_not_stop_it() {
    let server = Server::start();
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
    run_shards(&project, "");
    assert_eq!(server.count(), 0, "all is in the project's cache");
    server.let_go();
    drop(held);
    let rows: usize = (1..=SHARDS)
        .map(|index| project.read(&format!("results/.shards/x/{index}-of-{SHARDS}/x/cells.jsonl")).lines().count())
        .sum();
    assert_eq!(rows, project.rows("before").len());
}

#[test]
fn limits_and_money_are_divided() {
    let server = Server::start();
    let project = Project::new(&server);
    let mut sent = 0;
    for index in 1..=SHARDS {
        let ended = shard(&project, index, "--max-requests 60");
        assert_eq!(ended.code, 6, "{}", ended.stderr);
        let manifest: Value =
            serde_json::from_str(&project.read(&format!("results/.shards/x/{index}-of-{SHARDS}/x/manifest.json")))
                .unwrap();
        sent += manifest["requests_sent"].as_u64().unwrap();
    }
    assert!(sent <= 60 && server.count() <= 60, "{sent} of 60");
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 2");
    let ended = shard(&project, 1, "");
    assert_eq!(ended.code, 2);
    ended.says(&["max_in_flight", "3 shards", "--whole-limits"]);
    assert_eq!(shard(&project, 1, "--whole-limits").code, 0);
}

#[test]
fn bad_shards_are_refused_by_what_is_wrong() {
    let server = Server::start();
    let mut project = Project::new(&server);
    project.expect(2, "run --label x --shard 9/8").says(&["there is no shard 9 of 8", "from 1 to 8"]);
    project.expect(2, "run --label x --shard 1").says(&["expected I/N"]);
    project.expect(2, "run --shard 1/8").says(&["--label"]);
    project.expect(2, "run --label x --shard auto").says(&["no task of a job array"]);
    project.expect(2, "run --label x --shard 1/3 --selftest none.bin").says(&["there is no file", "selftest --export"]);
    project.set("JOB_COMPLETION_INDEX", "two");
    project.expect(2, "run --label x --shard auto/3").says(&["JOB_COMPLETION_INDEX is `two`"]);
    project.set("JOB_COMPLETION_INDEX", "1");
    project.expect(0, "check");
    project.expect(2, "run --label x --shard auto").says(&["does not say how many"]);
    let noted = project.expect(0, "run --label whole --methods nothing --runs 1");
    noted.says(&["JOB_COMPLETION_INDEX is set", "--shard auto/N"]);
    project.unset("JOB_COMPLETION_INDEX");
    project.expect(2, "merge x").says(&["no shards of `x`"]);

    run_shards(&project, "--runs 1");
    project.expect(2, "merge x").says(&["of another design", "runs: 1 → 2", "--runs"]);
    project.expect(2, "merge x --runs 1 --label x").says(&["first argument"]);
    assert!(!project.exists("results/x"));
    project.expect(0, "merge x --runs 1");
    let merged = published(&project, "x");
    project.expect(2, "merge x --runs 1").says(&["merged from these shards already", "compeval report x"]);
    project.expect(0, "run --label x --runs 1 --shard 1/2");
    project.expect(2, "merge x --runs 1").says(&["shards of 2 and of 3 are mixed"]);
    assert_eq!(published(&project, "x"), merged);
}

#[test]
fn a_shard_that_is_being_run_cannot_be_run_again() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Held);
    let _running = project.start("run --label x --shard 1/3");
    wait_until(|| server.count() > 0);
    project.expect(2, "run --label x --shard 1/3").says(&["shard 1/3 is being run already", "a number of its own"]);
    server.let_go();
}

#[test]
fn the_plans_of_all_shards_are_the_plan_of_the_whole() {
    let project = Project::offline();
    let cells = |plan: &Value, stage: &str| plan["stages"][stage]["cells"].as_u64().unwrap();
    let whole = project.expect(0, "plan --json").json();
    let shards: Vec<Value> =
        (1..=12).map(|index| project.expect(0, &format!("plan --json --label x --shard {index}/12")).json()).collect();
    for stage in ["compress", "answer", "judge"] {
        assert_eq!(shards.iter().map(|shard| cells(shard, stage)).sum::<u64>(), cells(&whole, stage), "{stage}");
    }
    let share: f64 = shards.iter().map(|shard| shard["shard"]["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9);
    let empty = shards.iter().position(|shard| shard["shard"]["chains"] == 0).expect("more shards than chains") + 1;
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, &format!("run --label x --shard {empty}/12")).says(&["has nothing to do"]);
    assert_eq!(server.count(), 0, "a shard without chains asks no judge");
}
