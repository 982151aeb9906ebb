//! Rows in the cache are never served where they would be wrong, and are made again if they are damaged.

use std::collections::BTreeMap;

use serde_json::Value;

use super::brain::Wanted;
use super::project::Project;
use super::server::{Reply, Server};

const RUBRIC: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/assets/rubric/en.toml"
));

fn finished() -> (Server, Project) {
    let server = Server::start();
    let project = Project::new(&server);
    project.write("rubric.toml", RUBRIC);
    project.edit(
        "pipeline.toml",
        "runs = 2",
        "runs = 2\nrubric = \"rubric.toml\"",
    );
    project.expect(0, "run --label a");
    server.forget();
    (server, project)
}

/// The cached rows of a project: where in its pack each body begins.
fn cached_rows(project: &Project) -> (std::path::PathBuf, Vec<u8>, Vec<usize>) {
    const FRAME: [u8; 5] = [0xC5, b'f', b'r', 1, 8];
    const HEADER: usize = 92;
    let pack = project.files("cache/packs").pop().unwrap();
    let bytes = std::fs::read(&pack).unwrap();
    let begins = bytes
        .windows(FRAME.len())
        .enumerate()
        .filter(|(_, window)| *window == FRAME);
    let bodies = begins.map(|(at, _)| at + HEADER).collect();
    (pack, bytes, bodies)
}

#[test]
fn a_criterion_that_moves_gives_other_scores_and_asks_nobody() {
    let (server, project) = finished();
    let before = project.rows("a");
    project.write(
        "rubric.toml",
        &RUBRIC.replace("dimension = \"continuity\"", "dimension = \"completeness\""),
    );
    project.expect(0, "run --label a --replace");
    let after = project.rows("a");
    assert_eq!(server.count(), 0);
    let keys = |rows: &[Value]| {
        rows.iter()
            .map(|row| row["keys"].clone())
            .collect::<Vec<_>>()
    };
    assert!(keys(&before) == keys(&after), "the same actions");
    let has = |rows: &[Value]| {
        rows.iter()
            .any(|row| row["dimensions"]["continuity"].is_number())
    };
    assert!(has(&before) && !has(&after), "other scores");
    project.write("rubric.toml", RUBRIC);
    project.expect(0, "run --label a --replace");
    assert!(project.rows("a") == before);
}

/// Edits, of which some change a request, some only the text of a row, and some nothing. Each leaves the project as the
/// next one expects it.
const EDITS: [(&str, &str, &str); 17] = [
    ("pipeline.toml", "runs = 2", "runs = 1"),
    (
        "pipeline.toml",
        "rubric = ",
        "judge_context = false\nrubric = ",
    ),
    (
        "pipeline.toml",
        "rubric = ",
        "tail = \"verbatim\"\nrubric = ",
    ),
    (
        "pipeline.toml",
        "name     = \"twin\"",
        "name     = \"sibling\"",
    ),
    ("pipeline.toml", "name   = \"agent\"", "name   = \"reader\""),
    (
        "prompts/answer.md",
        "and from nothing else",
        "and from nothing but it",
    ),
    (
        "prompts/answer.md",
        "Answer",
        "{% if context %}Answer{% else %}Guess{% endif %}",
    ),
    ("prompts/anchored.md", "working notes", "standing notes"),
    (
        "prompts/anchored.md",
        "## Session intent",
        "{#\n## Never written\n#}\n## Session intent",
    ),
    (
        "probes/harbor.probes.json",
        "\"count = 4\"",
        "\"count = 4\", \"4711\"",
    ),
    (
        "probes/harbor.probes.json",
        "Who owns the machine?",
        "Who owns that machine?",
    ),
    (
        "rubric.toml",
        "dimension = \"continuity\"",
        "dimension = \"completeness\"",
    ),
    (
        "fixtures/harbor.json",
        "\"context_length\": 32000",
        "\"context_length\": 16000",
    ),
    (
        "pipeline.toml",
        "runs = 1",
        "runs = { compress = 2, answer = 2, judge = 1 }",
    ),
    (
        "pipeline.toml",
        "answer = 2, judge = 1",
        "answer = 1, judge = 2",
    ),
    (
        "pipeline.toml",
        "[[judge]]",
        "[[judge]]\nname = \"second\"\nmodel = \"mock/judge-2\"\n\n[[judge]]",
    ),
    (
        "pipeline.toml",
        "[[answer]]",
        "[[answer]]\nname = \"other\"\nmodel = \"mock/small-2\"\n\n[[answer]]",
    ),
];

#[test]
fn after_any_edit_cached_rows_are_those_that_are_made_anew() {
    let (server, project) = finished();
    for (path, from, to) in EDITS {
        project.edit(path, from, to);
        // Once to make the new rows, once from cached rows, some of them older than the edit, and once without cached
        // rows.
        project.expect(0, "run --label made --replace");
        let made = project.rows("made");
        server.forget();
        project.expect(0, "run --label recalled --replace");
        project.expect(0, "cache prune --older-than 3650d");
        project.expect(0, "run --label anew --replace");
        assert_eq!(server.count(), 0, "{to}");
        assert!(!made.is_empty() && made == project.rows("recalled"), "{to}");
        assert!(made == project.rows("anew"), "{to}");
        for name in ["contexts.jsonl", "keys.txt"] {
            let read = |label: &str| project.read(&format!("results/{label}/{name}"));
            assert!(
                read("made") == read("anew") && read("recalled") == read("anew"),
                "{name} after {to}"
            );
        }
        let manifest = |label: &str| {
            let mut manifest = project.result(label, "manifest.json");
            for name in ["label", "started", "ended", "wall_s"] {
                manifest[name] = Value::Null;
            }
            manifest
        };
        assert_eq!(manifest("recalled"), manifest("anew"), "{to}");
    }
}

/// The files of a result set that follow from its rows alone, with their contents: reports also say what a run took.
fn files_of_rows(project: &Project, label: &str) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let files = project
        .files(&format!("results/{label}"))
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name != "manifest.json" && !name.starts_with("report.")
        });
    files
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn a_run_that_changes_nothing_writes_the_same_files_again() {
    let (server, project) = finished();
    let made = files_of_rows(&project, "a");
    assert_eq!(made.len(), 4, "{:?}", made.keys());
    // What was edited or removed is made again.
    project.write("results/a/summary.json", "edited");
    project.remove("results/a/cells.jsonl");
    project.expect(0, "run --label a").stdout_says(&["overall"]);
    assert!(files_of_rows(&project, "a") == made);
    let again = project.result("a", "manifest.json");
    assert_eq!(
        (
            &again["requests_sent"],
            &again["stages"]["judge"]["executed"]
        ),
        (&0.into(), &0.into())
    );
    assert!(!project.exists("results/.incomplete"));
    assert_eq!(server.count(), 0);
}

#[test]
fn warnings_of_contexts_are_the_same_in_every_run() {
    let (server, project) = finished();
    server.script(|asked| match asked.wanted {
        Wanted::Compression => Reply::Text("The port is another one now.".into()),
        _ => Reply::Sensible,
    });
    // No probe is asked at the first point, but the summary of the second depends on it.
    let part = "run --label part --methods anchored,rewritten --probes port";
    project.expect(0, &format!("{part} --refresh compress"));
    let made = project.read("results/part/report.md");
    assert!(made.contains("lacks"), "{made}");
    for _ in 0..2 {
        project.expect(0, part);
        assert_eq!(project.read("results/part/report.md"), made);
    }
    project.expect(0, "cache prune --older-than 3650d");
    project.expect(0, part);
    assert_eq!(project.read("results/part/report.md"), made);
}

#[test]
fn rows_of_a_selection_and_of_the_whole_are_the_same() {
    let (server, project) = finished();
    let whole = project.rows("a");
    project.expect(0, "run --label part --methods anchored --runs 1");
    let part = project.rows("part");
    assert!(!part.is_empty() && part.len() < whole.len());
    assert!(part.iter().all(|row| whole.contains(row)));
    assert_eq!(server.count(), 0);
}

#[test]
fn damaged_rows_are_reported_and_made_again() {
    let (server, project) = finished();
    let rows = project.rows("a");
    let (pack, mut bytes, bodies) = cached_rows(&project);
    assert!(bodies.len() > rows.len() / 14, "an entry for each context");
    bodies.iter().for_each(|at| bytes[*at] ^= 0xFF);
    std::fs::write(&pack, bytes).unwrap();
    project
        .expect(0, "run --label a")
        .says(&["checksum", "made again"]);
    assert_eq!(project.rows("a"), rows);
    let ended = project.expect(0, "run --label a");
    assert!(!ended.stderr.contains("checksum"), "{}", ended.stderr);
    assert_eq!(project.rows("a"), rows);
    assert_eq!(server.count(), 0);
}

#[test]
fn what_a_row_says_changes_with_its_version_only() {
    let (_server, project) = finished();
    let mut row = project.rows("a").remove(0);
    // A change of the text of a row raises `ROWS`: rows of the old version are no longer served.
    row["keys"] = Value::Null;
    row["usd"] = Value::Null;
    insta::assert_json_snapshot!(format!("row_v{}", compeval::results::ROWS), row);
}
