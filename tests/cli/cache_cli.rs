//! The cache, `show` and `why` as a user meets them: the program run in a project of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use compeval::action::{ActionKey, Digest};
use compeval::entries::{EntryLookup, key_of};
use compeval::pipeline::starter_files;
use serde_json::Value;
use store::cache::{Lookup, Store};
use tempfile::TempDir;

const FIXTURE: &str = "tally-bank-export";

/// A project that `init` would write, and the program run in it.
struct Project(TempDir);

impl Project {
    fn new() -> Project {
        let folder = TempDir::new().unwrap();
        for (path, text) in starter_files() {
            base::files::write_whole(&folder.path().join(path), text).unwrap();
        }
        Project(folder)
    }

    fn ran(label: &str) -> Project {
        let project = Project::new();
        project.ok(&["run", "--label", label]);
        project
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_compeval"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("COMPEVAL_CACHE")
            .output()
            .unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn edit(&self, path: &str, old: &str, new: &str) {
        let path = self.0.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{old}");
        base::files::write_whole(&path, text.replace(old, new)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }
}

fn keys(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["key"].as_str().unwrap())
        .collect()
}

fn probe(project: &Project) -> String {
    let cells = project.json(&["show", FIXTURE, "--method", "anchored"]);
    cells[0]["probe"].as_str().unwrap().to_owned()
}

#[test]
fn entries_are_listed_by_stage_method_and_age_and_shown_by_a_prefix() {
    let project = Project::ran("a");
    let all = project.json(&["cache", "ls"]);
    let anchored = project.json(&["cache", "ls", "--stage", "compress", "--method", "anchored"]);
    assert!(keys(&anchored).len() < keys(&all).len());
    let entry = &anchored[0];
    assert_eq!(
        (&entry["stage"], &entry["method"]),
        (&"compress".into(), &"anchored".into())
    );
    assert!(keys(&project.json(&["cache", "ls", "--older-than", "1d"])).is_empty());
    let shown = project.ok(&["cache", "show", &keys(&anchored)[0][..12]]);
    assert!(
        shown.contains("## Session intent") && shown.contains("prompts/anchored.md as of"),
        "{shown}"
    );
    assert!(
        shown.contains("previous_summary") && shown.contains("\nOutput\n"),
        "{shown}"
    );
    assert!(
        project
            .fails(2, &["cache", "ls", "--older-than", "soon"])
            .contains("30d or 12h")
    );
    assert!(
        project
            .fails(2, &["cache", "show", "xyz"])
            .contains("hexadecimal")
    );
}

#[test]
fn an_edited_prompt_is_explained_to_the_line_before_and_after_it_runs() {
    let project = Project::ran("a");
    let probe = probe(&project);
    project.edit("prompts/anchored.md", "## Next steps", "## What comes next");
    let arguments = ["why", FIXTURE, "--method", "anchored", "--probe", &probe];
    let text = project.ok(&arguments);
    assert!(
        text.contains("prompt changed: prompts/anchored.md:"),
        "{text}"
    );
    assert!(
        text.contains("-## Next steps") && text.contains("+## What comes next"),
        "{text}"
    );
    let chain = &project.json(&arguments)["chain"];
    let states: Vec<&str> = chain
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["state"].as_str().unwrap())
        .collect();
    assert_eq!(states.first(), Some(&"stale"));
    assert!(
        states[1..].iter().all(|state| *state == "blocked"),
        "{states:?}"
    );
    project.ok(&["run", "--label", "b"]);
    let after = project.json(&[&arguments[..], &["--label", "a"]].concat());
    let superseded = after["chain"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["state"] == "superseded")
        .unwrap();
    assert!(
        superseded["why"]
            .as_str()
            .unwrap()
            .starts_with("prompt changed"),
        "{superseded}"
    );
    let now = project.json(&[&arguments[..], &["--label", "b"]].concat());
    assert!(
        now["chain"]
            .as_array()
            .unwrap()
            .iter()
            .all(|step| step["state"] == "cached"),
        "{now}"
    );
}

#[test]
fn two_entries_are_compared_input_by_input_and_line_by_line() {
    let project = Project::ran("a");
    let filter = ["cache", "ls", "--stage", "compress", "--method", "anchored"];
    let before = project.json(&filter);
    project.edit("prompts/anchored.md", "## Next steps", "## What comes next");
    project.ok(&["run", "--label", "b"]);
    let after = project.json(&filter);
    let old = before
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["point"] == 1)
        .unwrap();
    let is_new = |entry: &&Value| entry["point"] == 1 && entry["key"] != old["key"];
    let new = after.as_array().unwrap().iter().find(is_new).unwrap();
    let (old, new) = (old["key"].as_str().unwrap(), new["key"].as_str().unwrap());
    let found = project.json(&["cache", "show", old, new]);
    let lines = found["changes"][0]["diff"].as_array().unwrap();
    assert!(
        lines.contains(&"-## Next steps".into()) && lines.contains(&"+## What comes next".into()),
        "{found}"
    );
    let same = project.json(&["cache", "show", old, old]);
    assert_eq!(
        (&same["inputs"], &same["same_output"]),
        (&Value::Array(Vec::new()), &true.into())
    );
}

#[test]
fn prune_unreachable_keeps_what_the_pipeline_and_labels_need() {
    let project = Project::ran("a");
    project.edit(
        "pipeline.toml",
        "target_tokens = 2000",
        "target_tokens = 300",
    );
    project.ok(&["run", "--label", "b"]);
    let kept = project.json(&["cache", "prune", "--unreachable"]);
    assert_eq!(kept["entries"], 0, "label a still names the old ones");
    fs::remove_dir_all(project.0.path().join("results/a")).unwrap();
    let dry = project.json(&["cache", "prune", "--unreachable", "--dry-run"]);
    assert!(
        dry["entries"].as_u64().unwrap() > 0 && dry["freed"].is_null(),
        "{dry}"
    );
    let done = project.json(&["cache", "prune", "--unreachable"]);
    assert_eq!(done["entries"], dry["entries"]);
    assert!(done["freed"].as_u64().unwrap() > 0, "{done}");
    assert!(project.ok(&["plan"]).contains("everything is cached"));
    assert!(
        project
            .fails(2, &["cache", "prune"])
            .contains("--unreachable")
    );
}

#[test]
fn a_result_without_a_readable_manifest_stops_a_prune() {
    let project = Project::ran("a");
    base::files::write_whole(&project.0.path().join("results/a/manifest.json"), "{").unwrap();
    let text = project.fails(1, &["cache", "prune", "--unreachable"]);
    assert!(text.contains("nothing was pruned"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_cache_is_full_leaves_a_report_of_what_there_is() {
    let project = Project::ran("a");
    enlarge(&project, 400, 300);
    // the pack can grow no more; all other files are smaller than it
    let pack = fs::metadata(project.path("cache/packs/00000001.pack"))
        .unwrap()
        .len();
    let limit = pack / 512 + 8;
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\""),
        ])
        .args([
            env!("CARGO_BIN_EXE_compeval"),
            "run",
            "--label",
            "new",
            "--refresh",
            "answer",
        ])
        .current_dir(project.0.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("can no longer be written to"), "{text}");
    let manifest: Value = serde_json::from_str(
        &fs::read_to_string(project.path("results/new/manifest.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(manifest["outcome"], "incomplete");
    assert!(
        manifest["ended"].is_string() && Path::new(&project.path("results/new/report.md")).exists()
    );
    project.ok(&["run", "--label", "new"]);
}

/// Puts entries of some size into the cache, made like one that is there.
#[cfg(target_os = "linux")]
fn enlarge(project: &Project, entries: u64, words: u64) {
    let store = Store::open(&project.0.path().join("cache"), "run", key_of).unwrap();
    let header = store.meta(&store.records().remove(0)).unwrap().header();
    let body = |n: u64| {
        (0..words)
            .map(|m: u64| Digest::hash([n, m].map(u64::to_le_bytes).concat()).hex())
            .collect::<String>()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let puts = (0..entries).map(|n: u64| {
            store.put_reply(
                ActionKey(Digest::hash(n.to_le_bytes())),
                &header,
                body(n).into(),
            )
        });
        futures::future::join_all(puts)
            .await
            .into_iter()
            .for_each(|put| drop(put.unwrap()));
    });
    store.close().unwrap();
}

/// Puts a call that failed into the cache, made like an entry that is there. Answers its key and that entry's.
fn failed_call(project: &Project) -> (String, String) {
    let folder = project.0.path().join("cache");
    let store = Store::open(&folder, "run", key_of).unwrap();
    let like = store.records().remove(0);
    let meta = store.meta(&like).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let key = ActionKey(Digest::hash("a call that failed"));
    runtime
        .block_on(store.fail(key, &meta.header(), "overloaded", "529 from the provider"))
        .unwrap();
    store.close().unwrap();
    (key.to_string(), like.key.to_string())
}

#[test]
fn a_failed_call_is_explained_as_one_and_not_as_damage() {
    let project = Project::ran("a");
    let (failed, other) = failed_call(&project);
    let text = project.fails(1, &["cache", "show", &failed, "--raw"]);
    assert!(
        text.contains("has no stored reply") && text.contains("overloaded: 529 from the provider"),
        "{text}"
    );
    assert!(
        project
            .ok(&["cache", "show", &failed])
            .contains("failed: overloaded: 529 from the provider")
    );
    let text = project.ok(&["cache", "show", &failed, &other]);
    assert!(
        text.contains("- failed: overloaded: 529 from the provider") && text.contains("+ output"),
        "{text}"
    );
    assert!(!text.contains("have the same text"), "{text}");
    let found = project.json(&["cache", "show", &other, &failed]);
    assert_eq!(
        (&found["a_status"], &found["same_output"]),
        (&"output".into(), &Value::Null)
    );
}

#[test]
fn inputs_of_either_side_are_counted() {
    let project = Project::ran("a");
    let of_stage = |stage: &str| project.json(&["cache", "ls", "--stage", stage]);
    let (compress, judge) = (of_stage("compress"), of_stage("judge"));
    for (old, new) in [(&compress, &judge), (&judge, &compress)] {
        let text = project.ok(&["cache", "show", keys(old)[0], keys(new)[0]]);
        let line = text
            .lines()
            .find(|line| line.ends_with("inputs differ"))
            .unwrap();
        let numbers: Vec<u32> = line
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(numbers[0] <= numbers[1], "{line}");
    }
}

#[test]
fn verify_reports_damage_and_the_rest_is_intact() {
    let project = Project::ran("a");
    project.ok(&["cache", "verify"]);
    let packs = project.0.path().join("cache/packs");
    let pack = fs::read_dir(packs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max()
        .unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let (third, half) = (bytes.len() / 3, bytes.len() / 2);
    bytes[third] ^= 0xFF;
    bytes[half] ^= 0xFF;
    base::files::write_whole(&pack, &bytes).unwrap();
    let output = project.run(&["cache", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    // Where a byte of a note was hit, the index counts as a third.
    assert!(text.matches("damaged: ").count() >= 2, "{text}");
    assert!(
        text.contains(" damaged places were found and removed"),
        "{text}"
    );
    project.ok(&["cache", "verify"]);
    project.ok(&["run", "--label", "b"]);
}

#[test]
fn packs_that_are_gone_are_named_before_anything_is_paid_again() {
    let project = Project::ran("a");
    let packs = project.0.path().join("cache/packs");
    for pack in fs::read_dir(packs).unwrap() {
        fs::remove_file(pack.unwrap().path()).unwrap();
    }
    let output = project.run(&["plan"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("its packs are missing"), "{text}");
    let output = project.run(&["cache", "verify"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("pack 1 is missing"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    project.ok(&["run", "--label", "b"]);
}

#[test]
fn every_output_of_a_run_is_keyed_in_the_sled_tree() {
    let project = Project::ran("a");
    let index = sled::Config::new()
        .path(project.path("cache/index"))
        .segment_size(32 << 10)
        .open()
        .unwrap();
    let actions = index.open_tree("actions").unwrap();
    let keys = fs::read_to_string(project.path("results/a/keys.txt")).unwrap();
    assert!(keys.lines().count() > 50);
    for key in keys.lines() {
        let digest: Digest = key.parse().unwrap();
        let record = actions.get(digest.0).unwrap();
        assert!(record.is_some_and(|record| record.len() <= 200), "{key}");
    }
}

#[test]
fn a_cell_is_shown_whole_and_names_are_suggested() {
    let project = Project::ran("a");
    let probe = probe(&project);
    let page = project.ok(&["show", FIXTURE, "--method", "anchored", "--probe", &probe]);
    for heading in [
        "Question",
        "Expected facts",
        "Context",
        "Answer",
        "Grades",
        "keys:",
    ] {
        assert!(page.contains(heading), "{heading}: {page}");
    }
    assert!(!page.contains('\u{1b}'), "no colours into a pipe");
    let list = project.ok(&["show", FIXTURE]);
    assert!(
        list.contains("regenerative") && list.contains(&probe),
        "{list}"
    );
    assert!(
        project
            .fails(2, &["show", "tally-bank-exprt"])
            .contains(&format!("did you mean `{FIXTURE}`?"))
    );
    assert!(
        project
            .fails(2, &["show", FIXTURE, "--method", "anchord"])
            .contains("did you mean `anchored`?")
    );
    assert!(
        project
            .fails(2, &["show", FIXTURE, "--run", "9"])
            .contains("runs are 1 to 3")
    );
}
