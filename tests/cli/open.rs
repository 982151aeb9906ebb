//! `report --open` shows the page of a label in the browser, if there is one.

use super::project::Project;
use super::server::Server;

/// A project with two result sets, of which the second is newer.
fn project() -> Project {
    let project = Project::offline();
    for (label, started) in [
        ("first", "2026-01-01T00:00:00Z"),
        ("second", "2026-01-02T00:00:00Z"),
    ] {
        let manifest =
            serde_json::json!({ "format": compeval::results::FORMAT, "started": started });
        project.write(
            &format!("results/{label}/manifest.json"),
            &manifest.to_string(),
        );
        project.write(&format!("results/{label}/report.html"), "<!doctype html>");
    }
    project
}

#[test]
fn without_a_browser_the_path_is_printed() {
    let project = project();
    let ended = project.expect(0, "report --open");
    assert!(
        ended.stdout.trim().ends_with("results/second/report.html"),
        "the newest: {}",
        ended.stdout
    );
    ended.says(&["There is no browser here"]);
    let json = project.expect(0, "report --open first --json").json();
    assert!(
        json["page"]
            .as_str()
            .unwrap()
            .ends_with("results/first/report.html"),
        "{json}"
    );
    assert_eq!(json["opened"], false);
}

#[test]
fn a_label_that_does_not_exist_is_answered_with_the_nearest_and_a_lost_page_with_the_command() {
    let project = project();
    project
        .expect(2, "report --open secnd")
        .says(&["there are no results `secnd`", "did you mean `second`?"]);
    std::fs::remove_file(project.path("results/first/report.html")).unwrap();
    project.expect(2, "report --open first").says(&[
        "the results `first` have no report.html",
        "compeval report first",
    ]);
}

#[cfg(unix)]
#[test]
fn the_browser_is_given_the_page() {
    use std::os::unix::fs::PermissionsExt;
    let mut project = project();
    project.write(
        "browser",
        "#!/bin/sh\nprintf '%s' \"$1\" > seen.tmp && mv seen.tmp seen\n",
    );
    let browser = project.path("browser");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();
    project.set(
        "BROWSER",
        &format!("/nowhere/browser:{}", browser.display()),
    );
    assert_eq!(
        project.expect(0, "report --open first --json").json()["opened"],
        true
    );
    super::server::wait_until(|| project.exists("seen"));
    assert!(project.read("seen").ends_with("results/first/report.html"));
}

#[test]
fn with_two_result_sets_the_page_switches_between_them() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label first --quiet");
    project.expect(0, "report --open");
    assert!(
        !project.exists("results/index.html"),
        "there is nothing to switch to"
    );
    project.expect(0, "run --label second --quiet");
    project.expect(0, "report --open first");
    let page = project.read("results/index.html");
    for option in [
        "<option value=\"first/report.html\" selected>first · ",
        "<option value=\"second/report.html\">second · ",
    ] {
        assert!(page.contains(option), "{page}");
    }
}

#[test]
fn removing_a_label_takes_it_from_the_page_that_switches() {
    let server = Server::start();
    let project = Project::new(&server);
    for label in ["first", "second", "third"] {
        project.expect(0, &format!("run --label {label} --quiet"));
    }
    project.expect(0, "labels rm third");
    assert!(
        !project.exists("results/index.html"),
        "nobody asked for it yet"
    );
    project.expect(0, "run --label third --quiet");
    project.expect(0, "report --open third");
    project.expect(0, "labels rm third");
    let page = project.read("results/index.html");
    assert!(
        !page.contains("third/report.html")
            && page.contains("<option value=\"second/report.html\" selected>"),
        "{page}"
    );
    project.expect(0, "labels rm second");
    assert!(
        !project.exists("results/index.html"),
        "there is nothing left to switch to"
    );
}
