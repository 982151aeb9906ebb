//! What a run trusts: hosts, programs, paths and imported entries are listed, and refused unless the user agreed.

use super::project::{KEY, Project};
use super::server::Server;

#[test]
fn a_key_is_sent_unencrypted_to_this_machine_only_unless_the_project_says_so() {
    let project = Project::offline();
    let url = "base_url    = \"http://models.example.com/v1\"";
    project.edit(
        "pipeline.toml",
        "base_url    = \"http://127.0.0.1:9/v1\"",
        url,
    );
    let refused = project.expect(2, "run --label a --runs 1");
    refused.says(&[
        "MOCK_API_KEY",
        "unencrypted",
        "insecure = true under [providers.mock]",
    ]);
    assert!(!refused.stderr.contains(KEY));
    project.expect(2, "check");
    project.edit("pipeline.toml", url, &format!("{url}\ninsecure = true"));
    project.expect(0, "plan");
    project.edit("pipeline.toml", "insecure = true", "insecure = false");
    project.edit("pipeline.toml", "api_key_env = \"MOCK_API_KEY\"", "");
    project.expect(0, "plan");
}

#[test]
#[cfg(unix)]
fn paths_outside_of_the_project_are_refused_unless_it_says_so() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().to_string_lossy().into_owned();
    std::fs::write(
        outside.path().join("secret.md"),
        "{{ transcript }} {{ question }}",
    )
    .unwrap();
    let allowed = "outside of the project's folder";
    for (from, to) in [
        ("runs = 2", format!("runs = 2\nresults = \"{elsewhere}\"")),
        ("runs = 2", "runs = 2\nresults = \"../results\"".to_owned()),
        ("runs = 2", format!("runs = 2\ncache = \"{elsewhere}/cache\"")),
        ("runs = 2", "runs = 2\nprobes = \"missing/../../probes\"".to_owned()),
        ("runs = 2", "runs = 2\nfixtures = [\"../*/*.json\"]".to_owned()),
        ("prompts/answer.md", format!("{elsewhere}/secret.md")),
        ("prompts/answer.md", "prompts/link.md".to_owned()),
        (
            "name     = \"full\"\nstrategy = \"full\"",
            "name = \"x\"\nstrategy = \"command\"\ncommand = [\"cat\"]\ninputs = [\"prompts/*.md\"]".to_owned(),
        ),
    ] {
        let project = Project::offline();
        std::os::unix::fs::symlink(outside.path().join("secret.md"), project.path("prompts/link.md")).unwrap();
        project.edit("pipeline.toml", from, &to);
        project.expect(2, "check").says(&[allowed]);
        project.expect(2, "run --label a --offline").says(&[allowed]);
        project.edit("pipeline.toml", "runs = 2", "runs = 2\nallow_outside = true");
        assert!(!project.compeval("plan").stderr.contains(allowed), "{to}");
    }
    // A fixture that is a link could be any file of the user.
    let project = Project::offline();
    std::fs::rename(
        project.path("fixtures/harbor.json"),
        outside.path().join("harbor.json"),
    )
    .unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("harbor.json"),
        project.path("fixtures/harbor.json"),
    )
    .unwrap();
    project
        .expect(2, "check")
        .says(&["fixtures/harbor.json", allowed]);
    // A folder that the pipeline does not declare could be, too.
    for folder in ["results", "cache"] {
        let project = Project::offline();
        let target = outside.path().join(format!("new-{folder}"));
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(target, project.path(folder)).unwrap();
        project
            .expect(2, "run --label a --offline")
            .says(&[&format!("`{folder}` cannot be used"), allowed]);
        project.edit(
            "pipeline.toml",
            "runs = 2",
            "runs = 2\nallow_outside = true",
        );
        project.expect(0, "plan");
    }
    // The cache may lie where the user wants it.
    let mut project = Project::offline();
    project.set("COMPEVAL_CACHE", &format!("{elsewhere}/cache"));
    project.expect(0, "plan");
}

#[test]
fn hosts_and_programs_are_listed_once_by_a_run_and_always_by_check_and_plan() {
    let server = Server::start();
    let project = Project::new(&server);
    let command = "name = \"echo\"\nstrategy = \"command\"\ncommand = [\"cat\", \"notes.txt\"]\nenv = [\"LANG\"]\n\n[[compress]]";
    project.edit(
        "pipeline.toml",
        "name     = \"twin\"",
        &format!("{command}\nname     = \"twin\""),
    );
    project.write("notes.txt", "notes");
    let url = server.url();
    let host = format!(
        "sends transcripts to {}, with the key in MOCK_API_KEY",
        url.trim_end_matches("/v1")
    );
    let program = "starts `cat notes.txt` with LANG";
    let run = "run --label a --runs 1 --methods echo,full";
    let said = |text: &str| text.contains(&host) && text.contains(program);
    for _ in 0..2 {
        assert!(said(&project.compeval("check").stdout));
        assert!(said(&project.compeval("plan").stdout));
    }
    assert_eq!(
        project.expect(0, "plan --json").json()["access"]["hosts"][0]["key"],
        "MOCK_API_KEY"
    );
    assert!(
        !project
            .compeval(&format!("{run} --offline"))
            .stderr
            .contains("sends"),
        "nothing is sent"
    );
    assert!(said(&project.compeval(run).stderr));
    assert!(
        !project.compeval(run).stderr.contains("This project"),
        "once is enough"
    );
    project.edit("pipeline.toml", "\"notes.txt\"]", "\"notes.txt\", \"-u\"]");
    let run = run.replace("label a", "label b");
    assert!(
        project
            .compeval(&run)
            .stderr
            .contains("starts `cat notes.txt -u`"),
        "another list"
    );
}

#[test]
fn the_generator_of_probes_is_listed_only_where_it_may_be_asked() {
    let server = Server::start();
    let project = Project::new(&server);
    let generator = "[[probes]]\nname = \"writer\"\nmodel = \"mock/small-1\"\n";
    project.write(
        "pipeline.toml",
        &format!("{}\n{generator}", project.read("pipeline.toml")),
    );
    let (url, plan) = (server.url(), "plan --stages compress --methods full");
    let host = format!("sends transcripts to {}", url.trim_end_matches("/v1"));
    assert!(project.compeval("check").stdout.contains(&host));
    assert!(
        !project.expect(0, plan).stdout.contains("sends transcripts"),
        "full asks no model"
    );
    let generated = project.compeval("probes generate --force --max-requests 1");
    assert!(generated.stderr.contains(&host), "{}", generated.stderr);
}

/// The files and folders below `folder`, and the folder itself, that others than their owner can read or enter.
#[cfg(unix)]
fn open_to_others(project: &Project, folder: &str) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut left = vec![project.path(folder)];
    while let Some(path) = left.pop() {
        let meta = std::fs::metadata(&path).unwrap();
        if meta.permissions().mode() & 0o077 != 0 {
            found.push(path.display().to_string());
        }
        if meta.is_dir() {
            left.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    found
}

#[test]
#[cfg(unix)]
fn cache_and_results_are_private_unless_their_owner_opened_them() {
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let server = Server::start();
    let project = Project::new(&server);
    for arguments in [
        "run --label a --runs 1",
        "run --label a --runs 1",
        "report a",
        "cache prune --older-than 30d",
    ] {
        project.expect(0, arguments);
        assert_eq!(
            [
                open_to_others(&project, "cache"),
                open_to_others(&project, "results")
            ]
            .concat(),
            [""; 0]
        );
    }
    let open = |path: &str, mode| {
        std::fs::set_permissions(project.path(path), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    open("results", 0o755);
    open("results/a", 0o755);
    open("cache", 0o750);
    project.expect(0, "run --label a --runs 1");
    assert_eq!(
        ["results", "results/a", "cache"].map(|path| mode(project.path(path))),
        [0o755, 0o755, 0o750]
    );
    assert_eq!(
        mode(project.path("results/a/cells.jsonl")) & 0o044,
        0o044,
        "a result set stays as open as it was"
    );
}
