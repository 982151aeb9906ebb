//! Results of a label: what an unfinished run leaves, what a run replaces, and who may write.

use std::time::Duration;

use super::project::Project;
use super::server::{Reply, Server, wait_until};

/// A project with complete results `a`, and a prompt that was edited afterwards.
fn edited() -> (Server, Project) {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    project.edit(
        "prompts/answer.md",
        "and from nothing else",
        "and from nothing but it",
    );
    server.forget();
    (server, project)
}

/// Every file of a result set with its bytes.
fn bytes(project: &Project, label: &str) -> Vec<(String, Vec<u8>)> {
    let files = project.files(&format!("results/{label}"));
    files
        .iter()
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect()
}

fn cells(project: &Project, label: &str) -> usize {
    project.rows(label).len()
}

#[test]
fn a_run_that_does_not_finish_leaves_the_complete_results_as_they_were() {
    let (server, project) = edited();
    let before = bytes(&project, "a");
    for (code, flags) in [(7, "--offline"), (6, "--max-requests 1")] {
        let ended = project.expect(code, &format!("run --label a --runs 1 --replace {flags}"));
        ended.says(&["not replaced: `a` keeps its earlier results"]);
        assert!(bytes(&project, "a") == before, "{flags}");
        assert!(
            project.exists("results/.incomplete/a/manifest.json"),
            "{flags}"
        );
    }
    server.script(|_| Reply::Held);
    let mut running = project.start("run --label a --runs 1 --replace");
    server.wait_for(2);
    running.kill();
    server.let_go();
    assert!(bytes(&project, "a") == before, "kill -9");
    server.script(|_| Reply::Sensible);
    project.expect(0, "run --label a --runs 1 --replace");
    assert_eq!(project.result("a", "manifest.json")["outcome"], "complete");
    assert!(bytes(&project, "a") != before && !project.exists("results/.incomplete"));
    assert_eq!(
        project.result("a~1", "manifest.json")["outcome"],
        "complete",
        "what was replaced is kept"
    );
    assert_eq!(cells(&project, "a~1"), 5 * 7);
    project.expect(0, "show harbor --label a~1");
}

#[test]
fn a_server_that_is_down_costs_no_rows() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let before = bytes(&project, "a");
    server.script(|_| Reply::Raw(401, "{}".into()));
    project.expect(5, "run --label a --runs 1 --refresh judge");
    assert!(bytes(&project, "a") == before);
}

#[test]
fn a_label_of_another_design_is_refused_and_both_remedies_are_named() {
    let (server, project) = edited();
    let before = bytes(&project, "a");
    let ended = project.expect(2, "run --label a --runs 1");
    ended.says(&[
        "the results `a` are of another design",
        ": prompt",
        "another --label keeps both; --replace keeps the old results as `a~1`",
    ]);
    assert!(
        bytes(&project, "a") == before && server.count() == 0,
        "nothing was sent or written"
    );
    let parts = [
        ("--methods full", "method anchored is not in this run"),
        (
            "--probes port",
            "probes of fixture harbor that this run does not ask: 6 of them",
        ),
    ];
    project.edit(
        "prompts/answer.md",
        "and from nothing but it",
        "and from nothing else",
    );
    for (part, why) in parts {
        project
            .expect(2, &format!("run --label a --runs 1 {part}"))
            .says(&[why]);
    }
    assert!(bytes(&project, "a") == before);
}

#[test]
fn a_run_of_more_under_the_same_label_adds_to_it() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods full --probes port");
    for (more, cells) in [
        ("--runs 1 --methods full", 7),
        ("--runs 1", 5 * 7),
        ("--runs 2", 5 * 7 * 2),
    ] {
        project.expect(0, &format!("run --label a {more}"));
        assert_eq!(project.rows("a").len(), cells, "{more}");
    }
    assert!(
        !project.exists("results/a~1"),
        "nothing was lost, so nothing is kept twice"
    );
}

#[test]
fn replaced_results_are_shifted_and_a_note_of_the_user_stays() {
    let (_server, project) = edited();
    let first = project.read("results/a/cells.jsonl");
    project.expect(0, "run --label a --runs 1 --replace");
    let second = project.read("results/a/cells.jsonl");
    project.write("results/a/notes.txt", "mine");
    project.expect(0, "run --label a --runs 1 --refresh judge");
    assert_eq!(project.read("results/a/notes.txt"), "mine");
    project.edit(
        "prompts/answer.md",
        "and from nothing but it",
        "and from no other source",
    );
    project.write("results/a/.killed.tmp", "half");
    project.expect(0, "run --label a --runs 1 --replace");
    assert_eq!(project.read("results/a~2/cells.jsonl"), first);
    assert_eq!(project.read("results/a~1/cells.jsonl"), second);
    assert!(
        !project.exists("results/a~1/.killed.tmp"),
        "a temporary file of a killed process"
    );
    project
        .expect(2, "run --label a~1 --runs 1")
        .says(&["`a~1` is the label of results that were replaced"]);
    assert!(
        project
            .expect(0, "show harbor --label a~1")
            .stdout
            .contains("harbor in a~1")
    );
}

#[test]
fn incomplete_results_are_shown_as_such_and_kept_by_prune() {
    let (_server, project) = edited();
    project.expect(6, "run --label a --runs 1 --replace --max-requests 14");
    let rows = cells(&project, ".incomplete/a");
    assert!(rows > 0 && rows < 5 * 7);
    for command in ["show harbor --label a", "report a"] {
        let ended = project.expect(0, command);
        ended.says(&["a later run of `a` is incomplete", "results/.incomplete/a"]);
    }
    let ended = project.expect(0, "report results/.incomplete/a");
    ended.says(&[&format!("incomplete: `a` has {rows} of 35 judged cells")]);
    assert!(
        ended.stdout.contains("results/.incomplete/a/report.html"),
        "{}",
        ended.stdout
    );
    project
        .expect(0, "show harbor --label results/.incomplete/a")
        .says(&["incomplete:"]);

    // Neither the complete nor the incomplete results are those that the pipeline needs now.
    project.edit(
        "prompts/answer.md",
        "and from nothing but it",
        "and from no other source",
    );
    let kept = [project.keys("a"), project.keys(".incomplete/a")].concat();
    project.expect(0, "cache prune --unreachable");
    let left = project.expect(0, "cache ls --json").json();
    let left: Vec<&str> = left
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["key"].as_str())
        .collect();
    assert!(
        kept.iter().all(|key| left.contains(&&**key)),
        "prune removed what a result set stands on"
    );
}

#[test]
fn what_a_killed_run_paid_for_is_kept_by_prune() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Late(Duration::from_millis(5)));
    let mut running = project.start("run --label a --runs 1 -j 2");
    server.wait_for(20);
    wait_until(|| {
        project
            .expect(0, "cache ls --json")
            .json()
            .as_array()
            .unwrap()
            .len()
            > 10
    });
    running.kill();
    let entries = || {
        project
            .expect(0, "cache ls --json")
            .json()
            .as_array()
            .unwrap()
            .len()
    };
    let before = entries();
    project.edit("prompts/anchored.md", "working notes", "other notes");
    project.edit(
        "prompts/answer.md",
        "and from nothing else",
        "and from nothing but it",
    );
    project.expect(0, "cache prune --unreachable");
    assert_eq!(entries(), before);
}

#[test]
fn results_of_another_format_or_without_a_manifest_are_named_and_not_read() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let format = compeval::results::FORMAT;
    project.edit(
        "results/a/manifest.json",
        &format!("\"format\": {format}"),
        "\"format\": 4",
    );
    let reads =
        format!("in format 4, and this program reads format {format}; read it with that version");
    for command in [
        "run --label a --runs 1",
        "report a",
        "compare a a",
        "show harbor --label a",
    ] {
        project
            .expect(2, command)
            .says(&[&reads, "or remove its folder and run the label again"]);
    }
    project.write("results/a/manifest.json", "{");
    project.expect(2, "run --label a --runs 1").says(&[
        "is not a manifest",
        "remove its folder and run the label again",
    ]);
    project.expect(0, "labels rm a");
    project.expect(0, "run --label a --runs 1");
}

#[test]
fn a_report_whose_baseline_is_gone_says_that_it_has_no_comparison() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label base --runs 1");
    project.expect(0, "run --label a --runs 1 --compare-to base");
    project.expect(0, "labels rm base");
    let ended = project.expect(2, "report a");
    ended.says(&[
        "not compared: the files have no comparison with `base`",
        "there are no results `base`",
    ]);
    assert!(!project.read("results/a/report.md").contains("against base"));
}

#[test]
fn a_crash_between_the_two_renames_is_recovered_by_the_next_command() {
    let (_server, project) = edited();
    project.expect(0, "run --label new --runs 1");
    let rename = |from: &str, to: &str| {
        std::fs::create_dir_all(project.path(to).parent().unwrap()).unwrap();
        std::fs::rename(project.path(from), project.path(to)).unwrap();
    };
    let (old, new) = (
        project.read("results/a/cells.jsonl"),
        project.read("results/new/cells.jsonl"),
    );
    // After the commit and before the first rename.
    rename("results/new", "results/.incomplete/a");
    project.expect(0, "show harbor --label a");
    let is_swapped = || {
        project.read("results/a/cells.jsonl") == new
            && project.read("results/a~1/cells.jsonl") == old
            && !project.exists("results/.incomplete")
            && !project.exists("results/.replaced")
    };
    assert!(is_swapped());
    // Between the renames.
    rename("results/a", "results/.incomplete/a");
    rename("results/a~1", "results/.replaced/a");
    project.expect(0, "report a");
    assert!(is_swapped());
    // After both renames, before the old set is put away.
    rename("results/a~1", "results/.replaced/a");
    project.expect(0, "compare --all a a");
    assert!(is_swapped());
    // Between the renames, with a command that does not name the label.
    rename("results/a", "results/.incomplete/a");
    rename("results/a~1", "results/.replaced/a");
    assert!(project.expect(0, "labels ls").stdout.contains("a~1"));
    assert!(is_swapped());
}

#[test]
fn two_runs_of_one_label_do_not_mix() {
    let server = Server::start();
    let mut project = Project::new(&server);
    server.script(|_| Reply::Held);
    let running = project.start("run --label a --runs 1");
    server.wait_for(1);
    project.set("COMPEVAL_CACHE", "other-cache");
    let ended = project.expect(1, "run --label a --runs 1 --methods full");
    ended.says(&[
        "the results `a` are being written by",
        &format!("process {} (compeval run --label a", running.pid()),
    ]);
    project
        .expect(1, "labels rm a")
        .says(&["are being written by"]);
    server.let_go();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(cells(&project, "a"), 5 * 7);
}

#[test]
fn labels_are_listed_removed_and_protected() {
    let (_server, project) = edited();
    project.expect(6, "run --label b --runs 1 --max-requests 14");
    project.expect(0, "labels protect a");
    let listed = project.expect(0, "labels ls --json").json();
    let of = |label: &str| {
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|found| found["label"] == label)
            .unwrap()
            .clone()
    };
    let (a, b) = (of("a"), of("b"));
    assert_eq!(
        (&a["complete"], &a["protected"], &a["cells"], &a["expected"]),
        (&true.into(), &true.into(), &35.into(), &35.into())
    );
    assert!(a["methods"]["full"]["overall"]["median"].is_number() && a["started"].is_string());
    assert_eq!(
        (&b["complete"], &b["outcome"], &b["protected"]),
        (&false.into(), &"budget".into(), &false.into())
    );
    assert!(a["design"] != b["design"]);
    let table = project.expect(0, "labels ls").stdout;
    assert!(
        table.contains("35/35") && table.contains("protected"),
        "{table}"
    );

    let before = bytes(&project, "a");
    project
        .expect(2, "run --label a --runs 1 --replace")
        .says(&["the results `a` are protected", "labels protect --off a"]);
    project
        .expect(2, "labels rm b a")
        .says(&["protected", "nothing was removed"]);
    assert!(bytes(&project, "a") == before && project.exists("results/b"));
    project.expect(0, "labels protect --off a");
    project.expect(0, "run --label a --runs 1 --replace");
    project.expect(0, "labels protect a~1");
    project.edit(
        "prompts/answer.md",
        "and from nothing but it",
        "and from no other source",
    );
    project
        .expect(2, "run --label a --runs 1 --replace")
        .says(&["the results `a~1` are protected"]);
    project.expect(0, "labels rm a b a");
    assert!(!project.exists("results/a") && project.exists("results/a~1"));
    project
        .expect(2, "labels rm a")
        .says(&["there are no results `a`"]);
}

#[test]
fn a_set_without_questions_is_listed_without_a_count_of_cells() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(
        0,
        "run --label a --runs 1 --methods full,nothing --stages compress",
    );
    let listed = project.expect(0, "labels ls").stdout;
    assert!(
        listed.contains("contexts only") && !listed.contains("0/0"),
        "{listed}"
    );
}

#[test]
fn a_list_has_the_scores_of_every_set_with_commit_and_intervals() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let server = Server::start();
    let project = Project::new(&server);
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write(".git/refs/heads/main", COMMIT);
    project.expect(0, "run --label nightly --runs 1");
    assert_eq!(project.result("nightly", "manifest.json")["commit"], COMMIT);
    project.edit("prompts/anchored.md", "## ", "## The ");
    project.expect(0, "run --label nightly --runs 1 --replace");
    project.expect(0, "run --label other --runs 1 --probes port");
    // Contexts alone have no scores, and do not come between sets that can be compared.
    project.expect(0, "run --label contexts --stages compress");
    project.expect(0, "run --label last --runs 1 --probes port");
    let listed = project.expect(0, "labels ls --json").json();
    let found = |label: &str, key: &str| {
        let sets = listed.as_array().unwrap();
        let set = sets.iter().find(|set| set["label"] == label).unwrap();
        set[key].clone()
    };
    assert_eq!(found("nightly~1", "commit"), COMMIT);
    assert_eq!(
        found("nightly", "measured_otherwise"),
        false,
        "scores over time are about the prompt of a method"
    );
    assert_eq!(found("other", "measured_otherwise"), true);
    assert_eq!(found("last", "measured_otherwise"), false);
    let summary = project.result("nightly", "summary.json");
    assert_eq!(
        found("nightly", "methods")["full"]["overall"],
        serde_json::json!({
            "median": summary["methods"]["full"]["overall"]["median"],
            "ci95": summary["methods"]["full"]["overall"]["ci95"],
        })
    );
    let shown = project.expect(0, "labels ls").stdout;
    assert!(
        shown.contains("nightly~1") && shown.contains("0123456789") && shown.contains("≠ other"),
        "{shown}"
    );
}
