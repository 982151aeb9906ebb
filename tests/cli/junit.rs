//! JUnit files.

use std::fs;

use super::project::Project;
use super::server::Server;

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
    project.expect(
        0,
        "run --label c --runs 1 --compare-to a --junit compared.xml",
    );
    assert!(
        project
            .read("compared.xml")
            .contains("<testcase classname=\"anchored\" name=\"accuracy\">")
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
