//! The first minutes of a user: the sample anywhere, whether the models answer, and a label after a run without a
//! reply.

use super::brain::Wanted;
use super::project::Project;
use super::server::{Reply, Server};

#[test]
fn the_sample_is_written_and_run_anywhere() {
    let project = Project::empty();
    let ended = project.expect(0, "run --sample --runs 1 --label first");
    assert!(
        ended.stdout.starts_with("Dry run with built-in rules"),
        "{}",
        ended.stdout
    );
    assert!(
        project.exists("compeval-sample/results/first/summary.json") && !project.exists("results")
    );
    let next = ended
        .stdout
        .lines()
        .rev()
        .find(|line| line.starts_with("next:"))
        .unwrap_or_default()
        .to_owned();
    assert!(next.contains("-C compeval-sample"), "{next}");
    let before = project.read("compeval-sample/pipeline.toml");
    project.expect(0, "run --sample --label second --runs 1");
    assert_eq!(
        project.read("compeval-sample/pipeline.toml"),
        before,
        "it is written once"
    );
    let chinese = Project::empty();
    chinese.expect(0, "run --sample --runs 1 --label first --locale zh");
    assert!(
        chinese
            .read("compeval-sample/pipeline.toml")
            .contains("= \"zh\""),
        "it stays in the language of the run"
    );
    // It also runs inside a project of the user's, which it leaves alone.
    let own = Project::offline();
    own.expect(0, "run --sample --runs 1");
    // It stands in the folder that is named.
    own.expect(0, "-C . run --sample --runs 1 --label again");
    own.expect(0, "-C inside run --sample --runs 1");
    assert!(own.exists("inside/compeval-sample/pipeline.toml"));
    assert!(own.exists("compeval-sample/results") && !own.exists("results"));
}

#[test]
fn a_run_without_a_project_and_a_terminal_names_what_runs() {
    let project = Project::empty();
    project.expect(2, "run").says(&[
        "there is no pipeline.toml",
        "`compeval run --sample` runs a sample project",
    ]);
}

#[test]
fn check_pings_each_model_once_with_the_smallest_request() {
    let server = Server::start();
    let project = Project::new(&server);
    let checked = project.expect(0, "check").stdout;
    assert!(
        checked.starts_with("valid: 1 fixture"),
        "the result first: {checked}"
    );
    assert_eq!(server.count(), 0, "a check sends nothing by itself");
    let ended = project.expect(0, "check --ping");
    assert_eq!(
        server.count(),
        2,
        "one for each model, whatever the number of its stages"
    );
    for model in ["mock/small-1", "mock/judge-1"] {
        let line = ended
            .stdout
            .lines()
            .find(|line| line.starts_with(model))
            .unwrap();
        assert!(
            line.contains("ok") && line.contains("its price is unknown"),
            "{line}"
        );
    }
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.body.len() < 300 && asked.json.to_string().contains("16")),
        "small requests"
    );
    server.forget();
    server.script(|_| {
        Reply::Raw(
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error"}}"#.into(),
        )
    });
    let ended = project.expect(1, "check --ping --json").json();
    assert_eq!(server.count(), 2, "each is asked once");
    assert_eq!(
        (&ended["ok"], &ended["ping"][0]["ok"]),
        (&true.into(), &false.into()),
        "{ended}"
    );
    assert!(
        ended["ping"][0]["message"]
            .as_str()
            .unwrap()
            .contains("Incorrect API key"),
        "{ended}"
    );
    server.script(|_| {
        let error = r#"{"error":{"code":401,"message":"Invalid API key"}}"#;
        Reply::Raw(200, error.into())
    });
    let ended = project.expect(1, "check --ping --json").json();
    assert_eq!(ended["ping"][0]["ok"], false, "{ended}");
    let offline = Project::offline();
    offline.expect(1, "check --ping");
    let quiet = offline.expect(1, "check --ping --quiet");
    quiet.says(&["mock/small-1 failed cannot connect"]);
    assert_eq!(quiet.stdout, "");
}

#[test]
fn after_a_ping_without_a_reply_no_plan_is_suggested() {
    let project = Project::empty();
    project.expect(0, "init . --quiet");
    assert!(
        project
            .expect(0, "check")
            .stderr
            .contains("next: compeval plan")
    );
    project.edit(
        "pipeline.toml",
        "\"judge\"\nmodel = \"lexical\"",
        "\"judge\"\nmodel = \"down/x\"",
    );
    let down = "\n[providers.down]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    project.write("pipeline.toml", &(project.read("pipeline.toml") + down));
    let ended = project.expect(1, "check --ping");
    assert!(!ended.stderr.contains("next:"), "{}", ended.stderr);
}

#[test]
fn a_run_without_a_single_reply_does_not_lock_its_label() {
    let server = Server::start();
    let project = Project::new(&server);
    let refusal = || {
        Reply::Raw(
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error"}}"#.into(),
        )
    };
    server.script(move |_| refusal());
    project.expect(5, "run --label a --runs 1");
    assert!(
        project.exists("results/a/contexts.jsonl"),
        "what rules made is there"
    );
    server.script(|_| Reply::Sensible);
    project.edit("prompts/anchored.md", "working notes", "other notes");
    project.edit(
        "pipeline.toml",
        "[[compress]]\nname     = \"twin\"\nstrategy = \"full\"\n",
        "",
    );
    project.expect(0, "run --label a --runs 1");
    assert!(project.result("a", "manifest.json")["outcome"] == "complete");
    // One reply is enough to keep the label.
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Grades => Reply::Raw(
            400,
            r#"{"error":{"message":"not today","type":"invalid"}}"#.into(),
        ),
        _ => Reply::Sensible,
    });
    project.expect(5, "run --label a --runs 1");
    project.edit("prompts/answer.md", "{{", "Now: {{");
    project.edit(
        "pipeline.toml",
        "[[compress]]\nname     = \"twin\"\nstrategy = \"full\"\n",
        "",
    );
    let again = project.compeval("run --label a --runs 1");
    assert_eq!(again.code, 2, "{again:?}");
}

#[test]
fn without_a_command_the_help_says_how_to_start() {
    let empty = Project::empty();
    empty.expect(2, "").says(&["Start: compeval run --sample"]);
    empty
        .expect(2, "labels --locale zh")
        .says(&["requires a subcommand"]);
    empty.expect(2, "-C .").says(&["requires a subcommand"]);
}
