//! Trends over result sets, and JUnit files.

use std::fs;

use super::project::Project;
use super::server::Server;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn a_trend_has_every_set_of_a_label_with_commit_and_intervals() {
    let server = Server::start();
    let project = Project::new(&server);
    project
        .expect(4, "labels trend")
        .says(&["no results with scores"]);
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write(".git/refs/heads/main", COMMIT);
    project.expect(0, "run --label nightly --runs 1");
    assert_eq!(project.result("nightly", "manifest.json")["commit"], COMMIT);
    project.edit("prompts/anchored.md", "## ", "## The ");
    project.expect(0, "run --label nightly --runs 1 --replace");
    project.expect(0, "run --label other --runs 1 --probes port");
    let points = project.expect(0, "labels trend nightly --json").json();
    let labels: Vec<&str> = points
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["nightly~1", "nightly"]);
    assert_eq!(points[0]["commit"], COMMIT);
    assert_eq!(
        points[1]["measured_otherwise"], false,
        "a prompt of a method is what a trend is about"
    );
    let (method, dimensions) = (&points[0]["methods"][0][0], &points[0]["methods"][0][1]);
    assert_eq!(
        (method.as_str(), dimensions[0][0].as_str()),
        (Some("full"), Some("overall"))
    );
    let summary = project.result("nightly", "summary.json");
    let last = &points[1]["methods"][0][1][0][1]["value"];
    assert_eq!(last, &summary["methods"]["full"]["overall"]["median"]);

    let shown = project.expect(0, "labels trend").stdout;
    assert!(
        shown.contains("nightly~1") && shown.contains("0123456789") && shown.contains("≠ other"),
        "{shown}"
    );
    let one = project
        .expect(
            0,
            "labels trend nightly* --method anchored --html trend.html",
        )
        .stdout;
    assert!(one.contains("accuracy") && !one.contains("other"), "{one}");
    let page = project.read("trend.html");
    assert!(
        page.contains("<svg") && page.contains("nightly~1") && !page.contains("<script"),
        "{page}"
    );
    // Contexts alone have no scores, and do not come between sets that can be compared.
    project.expect(0, "run --label contexts --stages compress");
    project.expect(0, "run --label last --runs 1 --probes port");
    let points = project
        .expect(0, "labels trend contexts other last --json")
        .json();
    assert_eq!(
        (
            points.as_array().unwrap().len(),
            &points[1]["measured_otherwise"]
        ),
        (2, &false.into()),
        "{points}"
    );
    project
        .expect(4, "labels trend contexts")
        .says(&["no results with scores match contexts"]);
    project
        .expect(2, "labels trend --method nobody")
        .says(&["no result has a method `nobody`", "anchored"]);
    project
        .expect(2, "labels trend nigthly")
        .says(&["did you mean `nightly`?"]);
}

#[test]
fn junit_files_have_a_test_for_each_method_and_dimension() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --junit out/run.xml");
    let run = project.read("out/run.xml");
    assert!(run.starts_with(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compeval\" tests="
    ));
    for method in ["full", "twin", "anchored", "rewritten", "nothing"] {
        for name in ["overall", "accuracy"] {
            assert!(
                run.contains(&format!(
                    "<testcase classname=\"{method}\" name=\"{name}\">"
                )),
                "{run}"
            );
        }
    }
    assert!(
        run.contains("failures=\"0\" errors=\"0\"") && run.contains("over 1 fixture</system-out>"),
        "{run}"
    );
    project.expect(0, "report a --junit report.xml");
    assert_eq!(project.read("report.xml"), run);
    project.expect(0, "compare a a --junit compare.xml");
    assert!(
        project
            .read("compare.xml")
            .contains("<testcase classname=\"anchored\" name=\"reliability\">")
    );
    // A method without a grade is an error, not a score of zero.
    project.edit(
        "pipeline.toml",
        "strategy = \"none\"",
        "strategy = \"command\"\ncommand = [\"false\"]",
    );
    project.expect(5, "run --label b --runs 1 --junit broken.xml");
    let broken = project.read("broken.xml");
    assert!(
        broken.contains("cells have no grade") && !broken.contains("errors=\"0\""),
        "{broken}"
    );
    assert!(fs::metadata(project.path("results/b/report.md")).is_ok());
}
