//! The shipped pipeline: offline, with no key, and always with the same figures.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::gate::{compared, flat};
use super::project::Project;

/// A copy of the repository's own project.
fn shipped_project() -> Project {
    let project = Project::empty();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in ["fixtures", "probes", "prompts", "."] {
        for entry in std::fs::read_dir(repository.join(part)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if entry.path().is_file() && (part != "." || name == "pipeline.toml") {
                project.write(
                    &format!("{part}/{name}"),
                    &std::fs::read_to_string(entry.path()).unwrap(),
                );
            }
        }
    }
    project
}

/// The summary of a run.
fn run(project: &Project, label: &str, arguments: &str) -> Value {
    project.expect(0, &format!("run --label {label} {arguments}"));
    project.result(label, "summary.json")
}

fn rounded(value: &Value) -> Option<String> {
    value.as_f64().map(|number| format!("{number:.3}"))
}

#[test]
fn the_shipped_pipeline_separates_the_methods_its_figures_stand_and_a_cut_of_one_method_fails_the_gate()
 {
    let project = shipped_project();
    let summary = run(&project, "shipped", "");
    let methods = summary["methods"].as_object().unwrap();
    let overall = |method: &str| methods[method]["overall"]["median"].as_f64().unwrap();
    for method in ["anchored", "regenerative"] {
        assert!(overall("full") > overall(method) + 0.4, "{method}");
        assert!(overall(method) > overall("truncate") + 0.8, "{method}");
        assert!(
            methods[method]["retention"]["value"].as_f64().unwrap() < 1.0,
            "{method}"
        );
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
    insta::assert_json_snapshot!("shipped_figures", figures);

    project.edit(
        "pipeline.toml",
        "\"truncate\"\ntarget_tokens = 2000",
        "\"truncate\"\ntarget_tokens = 150",
    );
    let ended = project.expect(
        100,
        "run --all --label cut --compare-to shipped --fail-on-regression",
    );
    ended.says(&["regressed: truncate: overall −"]);
    assert!(
        flat(&ended).contains("edited (1): target_tokens: 2000 → 150."),
        "{}",
        ended.stdout
    );
    let comparison = compared(&project, "cut");
    assert_eq!(
        (&comparison["tested"], &comparison["primary"]),
        (&json!(1), &Value::Null)
    );
    for method in [
        "full",
        "anchored",
        "regenerative",
        "extract",
        "mask",
        "none",
    ] {
        assert_eq!(
            comparison["methods"][method]["overall"]["reason"], "unchanged",
            "{method}"
        );
    }
    let truncate = &comparison["methods"]["truncate"];
    assert!(
        !truncate["flipped"].as_array().unwrap().is_empty()
            && !truncate["facts_lost"].as_array().unwrap().is_empty()
    );
    // The report and the page have the same sentences.
    for file in ["report.md", "report.html"] {
        let text = project.read(&format!("results/cut/{file}"));
        assert!(
            text.contains("edited (1): target") && text.contains("facts lost from the context"),
            "{file}"
        );
    }
    let again = project.expect(0, "compare --all cut shipped");
    assert!(
        flat(&again).contains("probes from good to bad"),
        "{}",
        again.stdout
    );
}

/// The shipped settings, with one method for each of `prompts`.
fn variants(project: &Project, prompts: &[(String, String)]) {
    let mut pipeline = "[pipeline]\nfixtures = \"fixtures\"\nprobes = \"probes\"\nruns = 1\n\
        [[answer]]\nname = \"agent\"\nmodel = \"lexical\"\n[[judge]]\nname = \"judge\"\nmodel = \"lexical\"\n"
        .to_owned();
    for (name, text) in prompts {
        project.write(&format!("prompts/{name}.md"), text);
        pipeline.push_str(&format!(
            "[[compress]]\nname = \"{name}\"\nstrategy = \"anchored-iterative\"\nmodel = \"lexical\"\n\
             prompt = \"prompts/{name}.md\"\ntarget_tokens = 2000\n"
        ));
    }
    project.write("pipeline.toml", &pipeline);
}

#[test]
fn an_edit_of_the_shipped_prompt_moves_the_score_as_it_should() {
    let project = shipped_project();
    let shipped = project.read("prompts/anchored.md");
    let headings: Vec<&str> = shipped
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    let mut prompts: Vec<(String, String)> = (headings.iter().enumerate())
        .map(|(at, heading)| {
            (
                format!("without-{at}"),
                shipped.replace(&format!("{heading}\n"), ""),
            )
        })
        .collect();
    let others = [
        ("shipped", shipped.clone()),
        ("more", format!("{shipped}\n## Constraints\n")),
        ("short", format!("{shipped}\nAt most 300 words.\n")),
        ("banana", format!("{shipped}\n## Banana\n")),
    ];
    prompts.extend(others.map(|(name, text)| (name.to_owned(), text)));
    variants(&project, &prompts);
    // Three of the sessions show what all of them would, in less than half the time.
    let sessions = "--fixtures debug-job-queue,ci-failure-flaky,zh-log-cleanup";
    let summary = run(&project, "variants", sessions);
    let score = |method: &str| {
        summary["methods"][method]["overall"]["median"]
            .as_f64()
            .unwrap()
    };

    let before = score("shipped");
    let losses: Vec<f64> = (0..headings.len())
        .map(|at| before - score(&format!("without-{at}")))
        .collect();
    assert_eq!(losses.len(), 8);
    assert!(losses.iter().all(|loss| *loss >= -0.02), "{losses:?}");
    assert!(
        losses.iter().filter(|loss| **loss > 0.2).count() >= 2,
        "{losses:?}"
    );
    let [more, short, banana] = ["more", "short", "banana"].map(score);
    assert!(
        more >= before - 0.02 && banana >= before - 0.1 && banana <= before + 0.02,
        "{before} {more} {banana}"
    );
    assert!(
        (short - before).abs() < f64::EPSILON,
        "rules read headings alone: {short}"
    );

    // Another wording of the same demands yields the same summaries, so no answer or grade is made again.
    let reworded = shipped.replace(
        "Dense entries, one fact after the other",
        "Brief entries, fact by fact",
    );
    assert_ne!(reworded, shipped);
    variants(&project, &[("shipped".to_owned(), reworded)]);
    let summary = run(&project, "reworded", sessions);
    assert_eq!(
        summary["methods"]["shipped"]["overall"]["median"]
            .as_f64()
            .unwrap(),
        before
    );
    let manifest = project.result("reworded", "manifest.json");
    let executed = |stage: &str| manifest["stages"][stage]["executed"].as_u64();
    assert_eq!(executed("compress"), Some(6), "{}", manifest["stages"]);
    assert_eq!(
        (executed("answer"), executed("judge")),
        (Some(0), Some(0)),
        "{}",
        manifest["stages"]
    );
}
