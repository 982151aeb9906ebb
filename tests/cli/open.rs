//! `report --open` shows the page of a label in the browser, if there is one.

use super::project::Project;
use super::server::Server;

/// A project with two result sets, of which the second is newer.
fn project() -> Project {
    let server = Server::start();
    let project = Project::new(&server);
    for label in ["first", "second"] {
        project.expect(0, &format!("run --label {label} --runs 1 --quiet"));
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
