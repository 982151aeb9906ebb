//! The pipeline that ships: offline, with no key, always the same figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The repository's own project, run into a folder of its own.
fn run() -> (tempfile::TempDir, Value) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for part in ["fixtures", "probes", "prompts"] {
        copy(&repository.join(part), &folder.path().join(part));
    }
    std::fs::copy(repository.join("pipeline.toml"), folder.path().join("pipeline.toml")).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_compeval"))
        .args(["run", "--label", "shipped"])
        .current_dir(folder.path())
        .env_clear()
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let summary = std::fs::read_to_string(folder.path().join("results/shipped/summary.json")).unwrap();
    (folder, serde_json::from_str(&summary).unwrap())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn rounded(value: &Value) -> Option<String> {
    value.as_f64().map(|number| format!("{number:.3}"))
}

#[test]
fn the_shipped_pipeline_separates_the_methods_and_its_figures_stand() {
    let (_folder, summary) = run();
    let methods = summary["methods"].as_object().unwrap();
    let overall = |method: &str| methods[method]["overall"]["median"].as_f64().unwrap();
    for method in ["anchored", "regenerative"] {
        assert!(overall("full") > overall(method), "{method}");
        assert!(overall(method) > overall("truncate"), "{method}");
    }
    assert!(overall("truncate") > overall("none"));

    let mut figures: BTreeMap<&str, BTreeMap<&str, Option<String>>> = BTreeMap::new();
    for (name, method) in methods {
        let figures = figures.entry(name).or_default();
        figures.insert("overall", rounded(&method["overall"]["median"]));
        for (dimension, value) in method["dimensions"].as_object().unwrap() {
            figures.insert(dimension, rounded(&value["median"]));
        }
        for figure in ["fact_survival", "compression_ratio", "retention"] {
            let value = &method[figure];
            figures.insert(figure, rounded(value).or_else(|| rounded(&value["median"])));
        }
    }
    insta::assert_json_snapshot!(figures);
}
