//! The shipped pipeline: offline, with no key, and always with the same figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A copy of the repository's own project.
fn project() -> tempfile::TempDir {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for part in ["fixtures", "probes", "prompts"] {
        copy(&repository.join(part), &folder.path().join(part));
    }
    std::fs::copy(repository.join("pipeline.toml"), folder.path().join("pipeline.toml")).unwrap();
    folder
}

/// The summary of a run.
fn run(folder: &Path, label: &str, arguments: &str) -> Value {
    let ended = Command::new(env!("CARGO_BIN_EXE_compeval"))
        .args(["run", "--label", label])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let summary = std::fs::read_to_string(folder.join(format!("results/{label}/summary.json"))).unwrap();
    serde_json::from_str(&summary).unwrap()
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
    let folder = project();
    let summary = run(folder.path(), "shipped", "");
    let methods = summary["methods"].as_object().unwrap();
    let overall = |method: &str| methods[method]["overall"]["median"].as_f64().unwrap();
    for method in ["anchored", "regenerative"] {
        assert!(overall("full") > overall(method) + 0.4, "{method}");
        assert!(overall(method) > overall("truncate") + 0.8, "{method}");
        assert!(methods[method]["retention"]["value"].as_f64().unwrap() < 1.0, "{method}");
    }
    assert!(overall("truncate") > overall("none") + 1.0);

    let mut figures: BTreeMap<&str, BTreeMap<&str, Option<String>>> = BTreeMap::new();
    for (name, method) in methods {
        let figures = figures.entry(name).or_default();
        figures.insert("overall", rounded(&method["overall"]["median"]));
        for (dimension, value) in method["dimensions"].as_object().unwrap() {
            figures.insert(dimension, rounded(&value["median"]));
        }
        figures.insert("retention", rounded(&method["retention"]["value"]));
        for figure in ["fact_survival", "compression_ratio"] {
            let value = &method[figure];
            figures.insert(figure, rounded(value).or_else(|| rounded(&value["median"])));
        }
    }
    insta::assert_json_snapshot!(figures);
}

/// The shipped settings, with one method for each of `prompts`.
fn variants(folder: &Path, prompts: &[(String, String)]) {
    let mut pipeline = "[pipeline]\nfixtures = \"fixtures\"\nprobes = \"probes\"\nruns = 1\n\
        [[answer]]\nname = \"agent\"\nmodel = \"lexical\"\n[[judge]]\nname = \"judge\"\nmodel = \"lexical\"\n"
        .to_owned();
    for (name, text) in prompts {
        std::fs::write(folder.join(format!("prompts/{name}.md")), text).unwrap();
        pipeline.push_str(&format!(
            "[[compress]]\nname = \"{name}\"\nstrategy = \"anchored-iterative\"\nmodel = \"lexical\"\n\
             prompt = \"prompts/{name}.md\"\ntarget_tokens = 2000\n"
        ));
    }
    std::fs::write(folder.join("pipeline.toml"), pipeline).unwrap();
}

#[test]
fn an_edit_of_the_shipped_prompt_moves_the_score_as_it_should() {
    let folder = project();
    let shipped = std::fs::read_to_string(folder.path().join("prompts/anchored.md")).unwrap();
    let headings: Vec<&str> = shipped.lines().filter(|line| line.starts_with("## ")).collect();
    let mut prompts: Vec<(String, String)> = (headings.iter().enumerate())
        .map(|(at, heading)| (format!("without-{at}"), shipped.replace(&format!("{heading}\n"), "")))
        .collect();
    let others = [
        ("shipped", shipped.clone()),
        ("more", format!("{shipped}\n## Constraints\n")),
        ("short", format!("{shipped}\nAt most 300 words.\n")),
        ("banana", "Write nothing but banana. {{ transcript }} {{ previous_summary }}".to_owned()),
    ];
    prompts.extend(others.map(|(name, text)| (name.to_owned(), text)));
    variants(folder.path(), &prompts);
    // Three of the sessions show what all of them would, in less than half the time.
    let sessions = "--fixtures debug-job-queue,ci-failure-flaky,zh-log-cleanup";
    let summary = run(folder.path(), "variants", sessions);
    let score = |method: &str| summary["methods"][method]["overall"]["median"].as_f64().unwrap();

    let before = score("shipped");
    let losses: Vec<f64> = (0..headings.len()).map(|at| before - score(&format!("without-{at}"))).collect();
    assert_eq!(losses.len(), 8);
    assert!(losses.iter().all(|loss| *loss >= -0.02), "{losses:?}");
    assert!(losses.iter().filter(|loss| **loss > 0.2).count() >= 2, "{losses:?}");
    let [more, short, banana] = ["more", "short", "banana"].map(score);
    assert!(more >= before - 0.02 && short < before - 0.5 && banana < 0.2, "{before} {more} {short} {banana}");

    // Another wording of the same demands yields the same summaries, so no answer or grade is made again.
    let reworded = shipped.replace("Dense entries, one fact after the other", "Brief entries, fact by fact");
    assert_ne!(reworded, shipped);
    variants(folder.path(), &[("shipped".to_owned(), reworded)]);
    let summary = run(folder.path(), "reworded", sessions);
    assert_eq!(summary["methods"]["shipped"]["overall"]["median"].as_f64().unwrap(), before);
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("results/reworded/manifest.json")).unwrap()).unwrap();
    let executed = |stage: &str| manifest["stages"][stage]["executed"].as_u64();
    assert_eq!(executed("compress"), Some(6), "{}", manifest["stages"]);
    assert_eq!((executed("answer"), executed("judge")), (Some(0), Some(0)), "{}", manifest["stages"]);
}
