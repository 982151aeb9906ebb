//! Folders, manifests and rows in a real file system.

use std::collections::BTreeSet;
use std::fs;

use crate::action::{ActionKey, Digest, Stage};
use crate::entries::Refresh;
use crate::judge::Dimension;
use crate::results::fakes::{design, row};
use crate::results::*;

fn a_row(run: u32) -> Row {
    row("f1", "mine", run, &[(Dimension::Accuracy, 3.4)])
}

fn line(run: u32) -> String {
    format!("{}\n", serde_json::to_string(&a_row(run)).unwrap())
}

fn manifest(label: &str, started: &str) -> Manifest {
    Manifest::begin(
        label,
        started,
        design(&[("mine", "extract")], &[("f1", 1)], 3),
    )
}

fn with(results: &std::path::Path, label: &str, started: &str) -> ResultsFolder {
    let folder = ResultsFolder::new(results, &Label::new(label).unwrap());
    folder.write_manifest(&manifest(label, started)).unwrap();
    folder
}

#[test]
fn a_refresh_continues_after_a_run_that_was_stopped_and_after_no_other() {
    let results = tempfile::tempdir().unwrap();
    let label = Label::new("a").unwrap();
    let stages = BTreeSet::from([Stage::Judge]);
    let refresh = Refresh::new(stages.clone());
    let stopped = [
        Outcome::Running,
        Outcome::Interrupted,
        Outcome::Budget,
        Outcome::Pending,
    ]
    .map(|end| (end, true));
    let done = [Outcome::Complete, Outcome::Incomplete].map(|end| (end, false));
    for (outcome, continues) in stopped.into_iter().chain(done) {
        let last = Manifest {
            outcome,
            refresh: refresh.clone(),
            ..manifest("a", "2026-01-01T00:00:00Z")
        };
        ResultsFolder::new(results.path(), &label)
            .write_manifest(&last)
            .unwrap();
        let found = unfinished_refresh(results.path(), &stages);
        let expected = (label.clone(), refresh.clone());
        assert_eq!(found, Some(expected).filter(|_| continues), "{outcome:?}");
        let of_others = unfinished_refresh(results.path(), &BTreeSet::from([Stage::Answer]));
        assert_eq!(of_others, None, "{outcome:?}");
    }
}

fn runs(folder: &ResultsFolder) -> Vec<u32> {
    folder.rows().unwrap().map(|row| row.unwrap().run).collect()
}

#[test]
fn rows_end_in_the_order_of_the_matrix_whatever_order_they_came_in() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    let mut file = folder.begin_rows().unwrap();
    for run in [3, 1, 2] {
        file.append(&[u64::from(run)], &line(run)).unwrap();
    }
    assert_eq!(runs(&folder), [3, 1, 2]);
    file.finish().unwrap();
    assert_eq!(runs(&folder), [1, 2, 3]);
    let first = folder.rows().unwrap().next().unwrap().unwrap();
    assert_eq!(first, a_row(1));
    folder.begin_rows().unwrap();
    assert!(runs(&folder).is_empty(), "a run begins the file anew");
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let bytes = |label: &str, order: [u32; 4]| {
        let folder = with(temp.path(), label, "t");
        let mut file = folder.begin_rows().unwrap();
        for run in order {
            file.append(&[u64::from(run)], &line(run)).unwrap();
        }
        file.finish().unwrap();
        fs::read(folder.file(names::CELLS)).unwrap()
    };
    assert_eq!(bytes("a", [1, 2, 3, 4]), bytes("b", [4, 2, 1, 3]));
}

#[test]
fn rows_that_cannot_be_read_are_one_error_and_hide_no_keys() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    assert!(
        folder.known_keys().unwrap().is_empty(),
        "a run that was killed before its first row"
    );
    let mut file = folder.begin_rows().unwrap();
    file.append(&[1], &line(1)).unwrap();
    assert_eq!(folder.known_keys().unwrap().len(), 3);
    file.finish().unwrap();
    let path = folder.file(names::CELLS);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"\xff\n"].concat()).unwrap();
    let rows = folder.rows().unwrap().take(9);
    let faults = rows.filter(Result::is_err).count();
    assert_eq!(faults, 1, "it is said once, and then the file is over");
    assert!(folder.known_keys().is_err());
}

#[test]
fn lines_beside_the_rows_appear_whole_and_in_order() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    let mut file = folder.begin_lines(names::CONTEXTS).unwrap();
    for (place, line) in [(2, "b\n"), (1, "a\n")] {
        file.append(&[place], line).unwrap();
    }
    assert!(!folder.file(names::CONTEXTS).exists());
    file.finish().unwrap();
    assert_eq!(
        fs::read_to_string(folder.file(names::CONTEXTS)).unwrap(),
        "a\nb\n"
    );
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(
        left, 2,
        "no temporary file is left beside manifest and lines"
    );
}

#[test]
fn keys_are_listed_once_and_sorted() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    let keys = ["one", "two", "three"].map(|text| ActionKey(Digest::hash(text)));
    assert!(
        folder.keys().unwrap().is_empty(),
        "they are there when the run has ended"
    );
    folder.write_keys(&keys.into()).unwrap();
    assert_eq!(folder.keys().unwrap(), keys.into());
    let text = fs::read_to_string(folder.file(names::KEYS)).unwrap();
    assert!(
        text.lines().is_sorted() && text.lines().count() == 3,
        "{text}"
    );
    folder.write(names::KEYS, format!("{text}none\n")).unwrap();
    let error = folder.keys().unwrap_err().to_string();
    assert!(
        error.starts_with("line 4 of `") && error.contains("is not the key of an action"),
        "{error}"
    );
}

#[test]
fn a_torn_last_line_is_passed_over_and_a_broken_one_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    let whole = serde_json::to_string(&a_row(1)).unwrap();
    folder
        .write(names::CELLS, format!("{whole}\n{}", &whole[..40]))
        .unwrap();
    assert_eq!(runs(&folder), [1]);
    assert_eq!(folder.row_count().unwrap(), 1);
    folder
        .write(names::CELLS, format!("{whole}\n{{}}\n"))
        .unwrap();
    let error = folder
        .rows()
        .unwrap()
        .nth(1)
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("line 2 of `") && error.contains("missing field"),
        "{error}"
    );
}

#[test]
fn a_row_is_flat_json_as_promised() {
    let json = serde_json::to_value(a_row(2)).unwrap();
    assert_eq!(json["type"], "recall");
    assert_eq!(json["keys"]["judge"].as_str().unwrap().len(), 64);
    assert_eq!(json["dimensions"], serde_json::json!({"accuracy": 3.4}));
    assert_eq!(json["criteria"][0]["criterionId"], "accuracy_factual");
    assert_eq!(json["facts"][0]["class"], "answered");
    assert!(json["fabricated"].is_null());
}

#[test]
fn a_missing_label_names_the_nearest() {
    let temp = tempfile::tempdir().unwrap();
    let empty = open_results(temp.path(), "x").unwrap_err().to_string();
    assert!(empty.contains("make some with `compeval run`"), "{empty}");
    with(temp.path(), "baseline", "t");
    let error = open_results(temp.path(), "basline")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("there are no results `basline`")
            && error.ends_with("did you mean `baseline`?"),
        "{error}"
    );
    assert!(open_results(temp.path(), "../x").is_err());
}

#[test]
fn a_label_a_path_and_a_side_are_all_found() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "base", "t");
    assert_eq!(open_results(temp.path(), "base").unwrap(), folder);
    let path = folder.path().to_string_lossy().into_owned();
    assert_eq!(open_results(temp.path(), &path).unwrap(), folder);
    let (side, method) = open_side(temp.path(), "base:mine").unwrap();
    assert_eq!(
        (side.label(), method.as_deref()),
        ("base".to_owned(), Some("mine"))
    );
    let (_, none) = open_side(temp.path(), "base").unwrap();
    assert_eq!(none, None);
}

#[test]
fn the_newest_label_is_the_one_that_began_last() {
    let temp = tempfile::tempdir().unwrap();
    assert!(matches!(newest(temp.path()), Err(FolderError::Empty(_))));
    with(temp.path(), "z", "2026-01-01T00:00:00Z");
    with(temp.path(), "a", "2026-01-02T00:00:00Z");
    assert_eq!(newest(temp.path()).unwrap().0.label(), "a");
    let all: Vec<String> = labels(temp.path())
        .unwrap()
        .iter()
        .map(Label::to_string)
        .collect();
    assert_eq!(all, ["a", "z"]);
}

#[test]
fn the_newest_is_of_a_run_that_ended_where_there_is_one() {
    let temp = tempfile::tempdir().unwrap();
    let ended = |label: &str, started: &str, outcome: Outcome| {
        with(temp.path(), label, started)
            .write_manifest(&Manifest {
                outcome,
                ..manifest(label, started)
            })
            .unwrap();
        let (folder, unfinished) = newest(temp.path()).unwrap();
        (folder.label(), unfinished.map(|label| label.to_string()))
    };
    let found =
        |taken: &str, passed_over: Option<&str>| (taken.to_owned(), passed_over.map(str::to_owned));
    assert_eq!(
        ended("a", "2026-01-01T00:00:00Z", Outcome::Budget),
        found("a", Some("a")),
        "there is no other"
    );
    assert_eq!(
        ended("b", "2026-01-02T00:00:00Z", Outcome::Complete),
        found("b", None)
    );
    assert_eq!(
        ended("c", "2026-01-03T00:00:00Z", Outcome::Interrupted),
        found("b", Some("c"))
    );
    assert_eq!(
        ended("d", "2026-01-04T00:00:00Z", Outcome::Incomplete),
        found("d", None),
        "its failures are of interest"
    );
}

#[test]
fn a_manifest_survives_its_file_and_another_format_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = with(temp.path(), "a", "t");
    assert_eq!(folder.manifest().unwrap(), manifest("a", "t"));
    for format in [0, FORMAT - 1, FORMAT + 1] {
        let other = Manifest {
            format,
            version: "9.1.0".into(),
            ..manifest("a", "t")
        };
        folder.write_manifest(&other).unwrap();
        let error = folder.manifest().unwrap_err().to_string();
        let named =
            format!("compeval 9.1.0 in format {format}, and this program reads format {FORMAT};");
        assert!(
            error.contains(&named) && matches!(newest(temp.path()), Err(FolderError::Empty(_))),
            "{error}"
        );
    }
    folder
        .write(names::MANIFEST, format!("{{\"format\": {FORMAT}}}"))
        .unwrap();
    assert!(
        folder
            .manifest()
            .unwrap_err()
            .to_string()
            .contains("is not a manifest")
    );
}
