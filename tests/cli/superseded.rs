//! Superseded facts through the program, and how they lower a grade of the built-in judge.

#![cfg(unix)]

use super::project::Project;

/// The methods, each with the whole context that it makes.
const CONTEXTS: [(&str, &str); 4] = [
    ("right", "The listen port of harbor is 9091."),
    (
        "former",
        "The listen port of harbor was 8080, now it is 9091.",
    ),
    (
        "both",
        "The listen port of harbor is 9091. The listen port of harbor is 8080.",
    ),
    ("stale", "The listen port of harbor is 8080."),
];

#[test]
fn a_superseded_fact_stated_as_current_lowers_the_grade_also_beside_all_expected_ones() {
    let project = Project::offline();
    let mut pipeline =
        "[pipeline]\nruns = 1\n\n[[answer]]\nname = \"agent\"\nmodel = \"lexical\"\n\n\
                        [[judge]]\nname = \"judge\"\nmodel = \"lexical\"\n"
            .to_owned();
    for (name, context) in CONTEXTS {
        let echo = format!("echo '{{\\\"summary\\\": \\\"{context}\\\"}}'");
        pipeline.push_str(&format!(
            "\n[[compress]]\nname = \"{name}\"\nstrategy = \"command\"\ncommand = [\"sh\", \"-c\", \"{echo}\"]\n"
        ));
    }
    project.write("pipeline.toml", &pipeline);
    project.expect(0, "run --label a --probes port");
    let rows = project.rows("a");
    let row = |method: &str| rows.iter().find(|row| row["method"] == method).unwrap();
    let accuracy = |method: &str| row(method)["dimensions"]["accuracy"].as_f64().unwrap();
    assert_eq!(
        [
            accuracy("right"),
            accuracy("former"),
            accuracy("both"),
            accuracy("stale")
        ],
        [5.0, 5.0, 3.0, 0.0]
    );
    for (method, stale) in [("right", 0), ("former", 0), ("both", 1), ("stale", 1)] {
        assert_eq!(
            row(method)["stale_facts"].as_array().unwrap().len(),
            stale,
            "{method}"
        );
    }
    let reason = row("both")["criteria"][0]["reasoning"].as_str().unwrap();
    assert!(
        reason.contains("Superseded facts stated as current: \"8080\"."),
        "{reason}"
    );
}
